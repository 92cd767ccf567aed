// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// What happens to a face.
enum EffectName: String, OptionChoice, CaseIterable {
    case pixelate, blur, box, replace, sticker, smooth

    /// Whether it makes a face unrecognisable.
    var covers: Bool { self == .pixelate || self == .blur || self == .replace }
}

enum DetectorName: String, OptionChoice { case auto, haar, lbp, yunet }

/// How long a frame may wait for its detection.
enum LatencyName: String, OptionChoice { case frame, none }

/// Where a sticker's middle lies.
enum StickerAnchor: String, OptionChoice { case eyes, forehead, mouth, face }

struct FaceEffectOptions: StageOptions {
    @Option(help: "What happens to a face.", live: true) var effect = EffectName.pixelate
    @Option(help: "Changes the picture. false only finds faces and attaches them to the frame.", live: true)
    var draw = true
    @Option(help: "Colour for box and replace.", live: true) var color = RGBColor(red: 0x20, green: 0xa0, blue: 0xff)
    @Option(
        help:
            "PNG for sticker, or for replace to draw on top of its colour. A relative path starts at the chain file's folder."
    )
    var image: String? =
        nil
    @Option(help: "Where the sticker's centre is.", live: true) var anchor = StickerAnchor.face
    @Option(help: "Width of the sticker, in face widths.", range: 0.1...4, live: true) var scale = 1.3
    @Option(help: "How many blocks pixelate puts across a face.", range: 2...64, live: true) var blocks = 8
    @Option(help: "How strong blur and smooth are.", range: 0.05...1, live: true) var strength = 0.6
    @Option(help: "Margin added around the face, as a share of its size.", range: 0...1, live: true)
    var margin = 0.3
    @Option(
        help: "Share of the region's radius over which the effect fades out; 0 is a hard edge.", range: 0...1,
        live: true)
    var feather = 0.15
    @Option(
        help:
            "auto uses yunet if a model is named or found in a data folder, otherwise haar with a warning. With privacy it uses only yunet, unless acceptMissedFaces is set."
    )
    var detector = DetectorName.auto
    @Option(
        help: "YuNet model (.onnx) or cascade (.xml). Default: one from the data folders or from opencv-data.")
    var model: String? = nil
    @Option(
        help:
            "Long side of the picture that is searched. Default: 480 for yunet, 640 for haar and lbp. With privacy, yunet's default is large enough for faces of 12 px or, in a live chain, as large as the processor's speed allows. `framehost check` shows the smallest face that is found.",
        range: 96...2560, unit: "px")
    var detectionSize: Int? = nil
    @Option(
        help:
            "privacy, yunet, live chain without detectionSize: the smallest long side to which the search is reduced while searches come too late.",
        range: 96...2560, unit: "px")
    var leastDetectionSize = 320
    @Option(
        help:
            "Frames from one search to the next. Default: 4 for yunet, 6 for haar and lbp. With privacy every frame is searched.",
        range: 1...120)
    var every: Int? = nil
    @Option(help: "yunet: minimum confidence for a new face. A known face is kept at 0.2 less.", range: 0.3...0.99)
    var threshold = 0.8
    @Option(help: "haar, lbp: smallest face, as a share of the picture's height.", range: 0.02...0.9) var smallestFace =
        0.12
    @Option(help: "haar, lbp: factor by which the search window grows in each step.", range: 1.02...2) var scaleStep =
        1.2
    @Option(help: "haar, lbp: how many neighbouring windows must agree.", range: 1...20) var neighbours = 3
    @Option(
        help:
            "haar, lbp: equalizes the histogram before the search. Gives fewer false faces, but takes up to 50 % more work."
    )
    var equalize = true
    @Option(
        help:
            "frame: each frame waits for a detection that is due, in a live chain only for part of the frame's duration. none: no frame waits."
    )
    var latency = LatencyName.frame
    @Option(
        help: "Longest wait for a detection. Default: half a frame's duration in a live chain, 10,000 in others.",
        range: 0...60_000, unit: "ms")
    var waitMs: Int? = nil
    @Option(
        help:
            "Covers every face that is found, and the whole frame if its search does not finish in time. A face that the detector misses stays uncovered. For pixelate, blur and replace."
    )
    var privacy = false
    @Option(
        help: "privacy: permits haar and lbp. They miss small, turned and tilted faces, which then stay uncovered.")
    var acceptMissedFaces = false
    @Option(help: "privacy: how long a lost face stays covered.", range: 0...30, unit: "s") var holdSeconds = 0.7
    @Option(
        help:
            "privacy, no live source: how far ahead of each frame to search. A face is also covered for up to this long before it is found, for the first time or again. Delays the picture. Default: 1 s, with at most 256 MB of frames; 0 turns it off.",
        range: 0...10, unit: "s")
    var lookAheadSeconds: Double? = nil
    @Option(help: "File that gets a line of JSON for each frame.") var facesFile: String? = nil
    @Option(
        help:
            "privacy, no live source: page of HTML with every frame's faces, why each was covered, and pictures of the moments that a person should look at. These pictures are taken from the output."
    )
    var reviewFile: String? = nil
    @Option(
        help:
            "Also prints a line when the number of faces changes. Rules and --events always get the event 'faces'; mqtt and nats get it only with this option, or with \"level\": \"debug\".",
        live: true) var events = false

    /// The least confidence of a detection that keeps a known face.
    var keepThreshold: Double { threshold - 0.2 }

    /// Frames from one search to the next with this detector.
    func every(_ detector: any FaceDetecting) -> Int { privacy ? 1 : every ?? (detector.isDependable ? 4 : 6) }

    func validate() throws(OptionFault) {
        if effect == .sticker, image == nil {
            throw OptionFault(
                "the effect 'sticker' needs an 'image'",
                remedy: "Name a PNG in the chain file (\"image\": \"hat.png\"), or use another effect.",
                options: ["image"])
        }
        if image != nil, effect != .sticker, effect != .replace {
            throw OptionFault(
                "'image' is only used by the effects 'sticker' and 'replace'",
                remedy: "Use \(privacy ? "'replace'" : "one of these effects"), or leave 'image' out.",
                options: ["image"])
        }
        guard privacy else {
            if lookAheadSeconds != nil || reviewFile != nil {
                throw OptionFault(
                    "'\(lookAheadSeconds != nil ? "lookAheadSeconds" : "reviewFile")' is only used with \"privacy\": true",
                    remedy: "Leave it out, or set 'privacy' to true.",
                    options: [lookAheadSeconds != nil ? "lookAheadSeconds" : "reviewFile"])
            }
            guard acceptMissedFaces else { return }
            throw OptionFault(
                "'acceptMissedFaces' is only used with \"privacy\": true",
                remedy: "Leave it out, or set 'privacy' to true.", options: ["acceptMissedFaces"])
        }
        if !effect.covers {
            throw OptionFault(
                "'privacy' needs an effect that covers faces, but '\(effect.rawValue)' does not cover them",
                remedy: "Use 'pixelate', 'blur' or 'replace'.", options: ["privacy"])
        }
        if !draw {
            throw OptionFault(
                "'privacy' needs \"draw\": true",
                remedy: "Leave 'draw' out to cover faces, or leave 'privacy' out of the chain file.",
                options: ["privacy"])
        }
        if effect == .pixelate, blocks > 12 {
            throw OptionFault(
                "'blocks' must be from 2 to 12 with 'privacy', but is \(blocks): smaller blocks leave a face recognisable",
                remedy: "Use at most 12.", options: ["blocks", "privacy"])
        }
        if effect == .blur, strength < 0.4 {
            throw OptionFault(
                "'strength' must be from 0.4 to 1 for 'blur' with 'privacy', but is \(strength.optionJSON.text()): a weaker blur leaves a face recognisable",
                remedy: "Use at least 0.4.", options: ["strength", "privacy"])
        }
        if margin < 0.1 {
            throw OptionFault(
                "'margin' must be from 0.1 to 1 with 'privacy', but is \(margin.optionJSON.text()): a smaller one leaves the edge of a face uncovered",
                remedy: "Use at least 0.1.", options: ["margin", "privacy"])
        }
        if latency == .none {
            throw OptionFault(
                "'privacy' must wait for detections, but \"latency\": \"none\" does not wait",
                remedy: "Leave 'latency' out.", options: ["privacy"])
        }
    }
}
