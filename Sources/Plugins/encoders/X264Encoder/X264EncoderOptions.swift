// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// x264's presets: how much time a frame may cost.
enum X264Preset: String, OptionChoice {
    case ultrafast, superfast, veryfast, faster, fast, medium, slow, slower, veryslow, placebo

    /// The cost for the plan. Ultrafast, veryfast and medium were measured with a 720x720 clip at 2.5 Mbit/s. The
    /// others are interpolated in x264's order.
    var nanosecondsPerPixel: Double {
        switch self {
        case .ultrafast: 5
        case .superfast: 7
        case .veryfast: 10
        case .faster: 16
        case .fast: 25
        case .medium: 39
        case .slow: 60
        case .slower: 120
        case .veryslow: 240
        case .placebo: 500
        }
    }
}

/// What x264 is tuned for; `none` leaves the preset as it is.
enum X264Tune: String, OptionChoice {
    case none, zerolatency, film, animation, grain, stillimage, psnr, ssim, fastdecode
}

/// H.264 profiles for 8-bit 4:2:0 (A.2). x264_param_apply_profile turns off what the profile lacks.
enum X264Profile: String, OptionChoice {
    case baseline, main, high
}

/// A level of H.264 (A.3), written `4.1` or `"4.1"`.
struct H264Level: OptionValue, Hashable {
    private static let names = [
        "1", "1b", "1.1", "1.2", "1.3", "2", "2.1", "2.2", "3", "3.1", "3.2", "4", "4.1", "4.2", "5", "5.1", "5.2", "6",
        "6.1", "6.2",
    ]

    let name: String

    /// level_idc: ten times the level; 9 stands for 1b, as in x264.
    var number: Int32 {
        guard name != "1b" else { return 9 }
        let digits = Int32(name.filter { $0 != "." })!
        return name.contains(".") ? digits : digits * 10
    }

    static func decodeOption(_ node: JSONNode) throws(OptionFault) -> H264Level {
        let text = node.asString ?? (node.asDouble != nil ? node.text() : "")
        let name = text.hasSuffix(".0") ? String(text.dropLast(2)) : text
        guard names.contains(name) else {
            throw OptionFault(
                "\(node.text()) must be an H.264 level", remedy: "Use one of \(names.joined(separator: ", ")).")
        }
        return H264Level(name: name)
    }
    /// The most macroblocks of a picture at level 6.2 (table A-1, MaxFS).
    static let mostMacroblocks = 139_264
    /// The largest side at level 6.2: the square root of 8 MaxFS, in macroblocks, times 16 (A.3.1, f and g).
    static let mostSide = 1055 * 16

    /// Whether there is a level for pictures of this size.
    static func fits(width: Int, height: Int) -> Bool {
        (width + 15) / 16 * ((height + 15) / 16) <= mostMacroblocks && max(width, height) <= mostSide
    }

    var optionJSON: JSONNode { .string(name) }
    static var optionTypeName: String { "H.264 level" }
    static var optionSchema: JSONNode {
        ["enum": .array(names.map { .string($0) } + names.compactMap { Double($0) }.map { .number($0) })]
    }
}

/// Options of ``X264Encoder``.
struct X264EncoderOptions: StageOptions {
    @Option(help: "x264's preset: a faster one gives a larger stream at the same quality.")
    var preset = X264Preset.veryfast

    @Option(help: "x264's tune. Default: \"zerolatency\" in a live chain, otherwise \"none\".")
    var tune: X264Tune? = nil

    @Option(
        help:
            "The highest H.264 profile to use: baseline turns off B-frames, CABAC, weighted prediction and the 8x8 transform; main turns off only the 8x8 transform. Default: the lowest that the other options need, up to high, or High 4:4:4 Predictive with a crf below 1."
    )
    var profile: X264Profile? = nil

    @Option(
        help:
            "H.264 level to declare. Default: the lowest that the stream fits. x264 warns if the stream exceeds it."
    )
    var level: H264Level? = nil

    @Option(
        help:
            "Average bitrate. Default: 4000, unless crf or qp is set. Can change while running if a VBV buffer limits the stream to this bitrate.",
        range: 64...300_000, unit: "kbit/s", live: true)
    var bitrateKbps: Int? = nil

    @Option(help: "Constant quality instead of a bitrate. Lower is better; 23 is usual.", range: 0...51)
    var crf: Double? = nil

    @Option(
        help:
            "Constant quantizer: how a picture is encoded does not depend on how many bits other pictures took. For tests and comparisons; crf gives better quality at the same bitrate.",
        range: 1...51)
    var qp: Int? = nil

    @Option(
        help:
            "Highest bitrate over the duration of the buffer. Default: bitrateKbps in a live chain or with vbvBufferKbits, otherwise none.",
        range: 64...600_000, unit: "kbit/s")
    var vbvMaxKbps: Int? = nil

    @Option(
        help: "Size of the decoder's buffer. Default: one second of the highest bitrate.", range: 16...1_200_000,
        unit: "kbit")
    var vbvBufferKbits: Int? = nil

    @Option(help: "Longest time from one keyframe to the next.", range: 0.01...600, unit: "s")
    var keyframeSeconds = 2.0

    @Option(
        help:
            "How easily a scene change becomes a keyframe; 0 is never. Default: set by preset and tune, usually 40.",
        range: 0...100)
    var sceneCut: Int? = nil

    @Option(help: "Threads of x264. Default: as many as suit the machine.", range: 1...64)
    var threads: Int? = nil

    @Option(help: "Most B-frames in a row. Default: set by preset and tune.", range: 0...16)
    var bframes: Int? = nil

    @Option(
        help:
            "Adds an SEI message to each picture, with the capture time, the number and the faces of that picture. `framehost latency` reads these messages."
    )
    var stamp = false

    func validate() throws(OptionFault) {
        if crf != nil, bitrateKbps != nil {
            throw OptionFault(
                "'crf' and 'bitrateKbps' cannot be used together",
                remedy: "Keep one of them. To limit the bitrate with 'crf', set 'vbvMaxKbps'.",
                options: ["crf", "bitrateKbps"])
        }
        if qp != nil, let other = crf != nil ? "crf" : bitrateKbps != nil ? "bitrateKbps" : nil {
            throw OptionFault(
                "'qp' and '\(other)' cannot be used together", remedy: "Keep one of them.", options: ["qp", other])
        }
        if qp != nil, vbvMaxKbps != nil || vbvBufferKbits != nil {
            let limits = [vbvMaxKbps == nil ? nil : "'vbvMaxKbps'", vbvBufferKbits == nil ? nil : "'vbvBufferKbits'"]
                .compactMap { $0 }.joined(separator: " and ")
            throw OptionFault(
                "with 'qp' a picture may take any number of bits, which \(limits) cannot limit",
                // A 'crf' with a buffer alone is refused below.
                remedy:
                    "Leave \(limits) out, or use \(vbvMaxKbps == nil ? "" : "'crf' or ")'bitrateKbps' instead of 'qp'.",
                options: ["qp", "vbvMaxKbps", "vbvBufferKbits"])
        }
        if let vbvMaxKbps, let bitrateKbps, vbvMaxKbps < bitrateKbps {
            throw OptionFault(
                "'vbvMaxKbps' \(vbvMaxKbps) must be at least 'bitrateKbps' \(bitrateKbps)",
                remedy: "Lower 'bitrateKbps', or raise 'vbvMaxKbps' in the chain file.",
                options: ["vbvMaxKbps", "bitrateKbps"])
        }
        if vbvMaxKbps == nil, vbvBufferKbits != nil, crf != nil {
            throw OptionFault(
                "'vbvBufferKbits' needs 'vbvMaxKbps' when 'crf' is set",
                remedy: "Set 'vbvMaxKbps' too, or leave 'vbvBufferKbits' out.",
                options: ["vbvBufferKbits", "vbvMaxKbps", "crf"])
        }
        // As in x264_param_apply_profile.
        if let profile, let crf, crf < 1 {
            throw OptionFault(
                "'crf' must be from 1 to 51 with the profile '\(profile.rawValue)', but is \(crf.optionJSON.text()): below 1 x264 is lossless, which this profile does not permit",
                remedy: "Raise 'crf', or leave 'profile' out.", options: ["crf"])
        }
        if profile == .baseline, let bframes, bframes > 0 {
            throw OptionFault(
                "the baseline profile has no B-frames", remedy: "Use the main or high profile, or leave 'bframes' out.",
                options: ["profile", "bframes"])
        }
    }
}

/// How many bits a picture may have.
struct RateControl: Equatable {
    enum Goal: Equatable {
        case average(kbps: Int)
        case quality(Double)
        case quantizer(Int)
    }

    /// The decoder's buffer, filled at `maxKbps`.
    struct Buffer: Equatable {
        var maxKbps: Int
        var kbits: Int
    }

    static let defaultKbps = 4000

    var goal: Goal
    /// nil where single pictures may have any size.
    var buffer: Buffer?

    /// - Parameter isLive: Whether the chain is live. A live stream never exceeds its bitrate for longer than a second.
    init(_ options: X264EncoderOptions, isLive: Bool) {
        if let qp = options.qp {
            goal = .quantizer(qp)
            return
        }
        if let crf = options.crf {
            goal = .quality(crf)
            buffer = options.vbvMaxKbps.map { Buffer(maxKbps: $0, kbits: options.vbvBufferKbits ?? $0) }
            return
        }
        let kbps = options.bitrateKbps ?? Self.defaultKbps
        goal = .average(kbps: kbps)
        let isBounded = isLive || options.vbvMaxKbps != nil || options.vbvBufferKbits != nil
        let maxKbps = options.vbvMaxKbps ?? kbps
        buffer = isBounded ? Buffer(maxKbps: maxKbps, kbits: options.vbvBufferKbits ?? maxKbps) : nil
    }

    /// Whether x264 can change the bitrate while it runs: only where pictures are held to the average (x264's
    /// ratecontrol.c: "if the stream starts as CBR, keep it CBR").
    var isAdjustable: Bool {
        guard let averageKbps, let buffer else { return false }
        return buffer.maxKbps <= averageKbps
    }

    var averageKbps: Int? { if case .average(let kbps) = goal { kbps } else { nil } }
}
