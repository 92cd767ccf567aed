import FrameCore

/// What happens to a face.
enum EffectName: String, OptionChoice, CaseIterable {
    case pixelate, blur, box, replace, sticker, smooth

    /// Makes a face unrecognisable.
    var covers: Bool { self == .pixelate || self == .blur || self == .replace }
}

enum DetectorName: String, OptionChoice { case auto, haar, lbp, yunet }

/// How long a frame may wait for its detection.
enum LatencyName: String, OptionChoice { case frame, none }

/// Where a sticker's middle lies.
enum StickerAnchor: String, OptionChoice { case eyes, forehead, mouth, face }

struct FaceEffectOptions: StageOptions {
    @Option(help: "What happens to a face.", live: true) var effect = EffectName.pixelate
    @Option(help: "Changes the picture; false only finds faces and lets them travel with the frame.", live: true)
    var draw = true
    @Option(help: "Colour of box and replace.", live: true) var color = RGBColor(red: 0x20, green: 0xa0, blue: 0xff)
    @Option(help: "PNG of sticker, or that replace puts over its colour; absolute or from the chain file's folder.")
    var image: String? =
        nil
    @Option(help: "Where the sticker's middle lies.", live: true) var anchor = StickerAnchor.face
    @Option(help: "Width of the sticker in widths of the face.", range: 0.1...4, live: true) var scale = 1.3
    @Option(help: "Blocks of pixelate across a face.", range: 2...64, live: true) var blocks = 8
    @Option(help: "How strong blur and smooth are.", range: 0.05...1, live: true) var strength = 0.6
    @Option(help: "How much larger than the face its region is, as a share of the face.", range: 0...1, live: true)
    var margin = 0.3
    @Option(
        help: "Share of the region's radius over which the effect fades out; 0 for a hard edge.", range: 0...1,
        live: true)
    var feather = 0.15
    @Option(
        help:
            "auto takes yunet where a model is named or found in a data folder, else haar with a warning; with privacy yunet alone."
    )
    var detector = DetectorName.auto
    @Option(
        help: "YuNet model (.onnx) or cascade (.xml); without it what is found in the data folders and of opencv-data.")
    var model: String? = nil
    @Option(
        help:
            "Long side of what is searched; without it 480 for yunet, 640 for haar and lbp. With privacy as fine as finds faces of 12 px, live as fine as the core allows; check says the smallest face.",
        range: 96...2560, unit: "px")
    var detectionSize: Int? = nil
    @Option(
        help:
            "Frames from one search to the next; without it 4 of yunet, 6 of haar and lbp. With privacy each frame is searched.",
        range: 1...120)
    var every: Int? = nil
    @Option(help: "yunet: least confidence of a new face; 0.2 less keep one that is known.", range: 0.3...0.99)
    var threshold = 0.8
    @Option(help: "haar, lbp: smallest face, as a share of the picture's height.", range: 0.02...0.9) var smallestFace =
        0.12
    @Option(help: "haar, lbp: how much larger each search is than the one before.", range: 1.02...2) var scaleStep = 1.2
    @Option(help: "haar, lbp: how many neighbouring windows must agree.", range: 1...20) var neighbours = 3
    @Option(
        help:
            "haar, lbp: evens out the small copy's histogram first: fewer false faces for up to half as much work again."
    )
    var equalize = true
    @Option(help: "frame waits for a detection that is due, a part of a frame's duration live; none never waits.")
    var latency = LatencyName.frame
    @Option(
        help: "Longest wait for a detection; without it half a frame's duration live, 2000 from a file.",
        range: 0...60_000, unit: "ms")
    var waitMilliseconds: Int? = nil
    @Option(
        help:
            "Covers every face that is found, and the whole frame where no search of it is there in time. Not promised: a face that the detector misses. For pixelate, blur and replace."
    )
    var privacy = false
    @Option(
        help: "privacy: lets haar and lbp search, which miss small, turned and tilted faces; these go out uncovered.")
    var acceptMissedFaces = false
    @Option(help: "privacy: how long a lost face stays covered.", range: 0...30, unit: "s") var hold = 0.7
    @Option(help: "Writes a line of JSON for each frame there.") var facesFile: String? = nil
    @Option(
        help: "Shows people too when the number of faces changes; programs and rules get the event faces in any case.",
        live: true) var events = false

    /// Least confidence of a detection of a face that is known.
    var keepThreshold: Double { threshold - 0.2 }

    /// Frames from one search to the next with this detector.
    func every(_ detector: any FaceDetecting) -> Int { privacy ? 1 : every ?? (detector.isDependable ? 4 : 6) }

    func validate() throws(OptionFault) {
        if effect == .sticker, image == nil {
            throw OptionFault("effect sticker needs a picture", remedy: "Name a PNG: \"image\": \"hat.png\".")
        }
        if image != nil, effect != .sticker, effect != .replace {
            throw OptionFault(
                "image is only used by sticker and replace", remedy: "Leave it out, or choose one of these.")
        }
        guard privacy else {
            guard acceptMissedFaces else { return }
            throw OptionFault("acceptMissedFaces is only used with privacy", remedy: "Leave it out, or set privacy.")
        }
        if !effect.covers {
            throw OptionFault(
                "privacy needs an effect that covers faces, and \(effect.rawValue) does not",
                remedy: "Use pixelate, blur or replace.")
        }
        if !draw { throw OptionFault("privacy and draw false contradict each other", remedy: "Leave one of them out.") }
        if effect == .pixelate, blocks > 12 {
            throw OptionFault(
                "\(blocks) blocks across a face leave it recognisable", remedy: "With privacy, use 12 blocks at most.")
        }
        if effect == .blur, strength < 0.4 {
            throw OptionFault(
                "a blur of strength \(strength) leaves a face recognisable", remedy: "With privacy, use 0.4 at least.")
        }
        if margin < 0.1 {
            throw OptionFault(
                "a margin of \(margin) leaves the edge of a face raw", remedy: "With privacy, use 0.1 at least.")
        }
        if latency == .none {
            throw OptionFault("privacy waits for detections and latency none does not", remedy: "Leave latency out.")
        }
    }
}
