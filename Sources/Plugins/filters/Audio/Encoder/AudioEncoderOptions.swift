// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// A codec of ``AudioEncoder``.
enum SoundCodec: String, OptionChoice {
    /// AAC-LC, by libavcodec.
    case aac
    /// By libopus.
    case opus

    var codec: Codec { self == .aac ? .aac : .opus }
    var title: String { codec.description }
    /// The encoder's name in libavcodec.
    var encoderName: String { self == .aac ? "aac" : "libopus" }
    /// Rates that it takes, samples per second.
    var sampleRates: [Int] {
        switch self {
        case .aac:
            [96_000, 88_200, 64_000, 48_000, 44_100, 32_000, 24_000, 22_050, 16_000, 12_000, 11_025, 8_000, 7_350]
        case .opus: [48_000, 24_000, 16_000, 12_000, 8_000]
        }
    }
    /// Layouts whose channels come back at their positions. Opus has those of RFC 7845, 5.1.1.2, without 5.0 and 6.1:
    /// libavcodec hands libopus their channels in a wrong order. AAC has those that ISO/IEC 14496-3 numbers or
    /// libavcodec finds again.
    var layouts: [ChannelLayout] {
        let names =
            self == .aac
            ? [
                "mono", "stereo", "2.1", "3.0", "3.0(back)", "4.0", "quad", "quad(side)", "5.0", "5.1", "6.0(front)",
                "7.1",
            ] : ["mono", "stereo", "3.0", "quad", "5.1", "7.1"]
        return names.compactMap { ChannelLayout($0) }
    }

    /// How the codec calls a layout; nil where it has none like it. Codecs do not tell loudspeakers beside the
    /// listener from those behind.
    func layout(for given: ChannelLayout) -> ChannelLayout? {
        let alike = [("5.0(side)", "5.0"), ("5.1(side)", "5.1"), ("quad(side)", "quad")]
        if layouts.contains(given) { return given }
        guard let back = alike.first(where: { ChannelLayout($0.0) == given }).flatMap({ ChannelLayout($0.1) }) else {
            return nil
        }
        return layouts.contains(back) ? back : nil
    }

    /// The bitrate of one channel where none is asked for.
    var usualKbpsPerChannel: Int { self == .aac ? 64 : 48 }

    /// The most that a stream may have, kbit/s. AAC: 6144 bits per frame of 1024 samples and channel (ISO/IEC 14496-3,
    /// 4.5.3); Opus: what libopus takes.
    func mostKbps(_ format: AudioFormat) -> Int {
        switch self {
        case .aac: 6 * format.sampleRate * format.channelCount / 1000
        case .opus: 256 * format.channelCount
        }
    }
}

/// Options of ``AudioEncoder``.
struct AudioEncoderOptions: StageOptions {
    @Option(help: "Codec: aac (AAC-LC) or opus.") var codec = SoundCodec.aac
    @Option(
        help: "Average bitrate. Default: 64 for each channel of AAC, 48 for each of Opus.", range: 6...2304,
        unit: "kbit/s") var bitrateKbps: Int? = nil
    @Option(
        help: "Longest gap in the input that is filled with silence; after a longer one the times jump.",
        range: 0...3600, unit: "s") var maxGapSeconds = 2.0
}
