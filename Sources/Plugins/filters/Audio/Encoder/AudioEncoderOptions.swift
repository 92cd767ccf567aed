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
    /// Numbers of channels. Opus has other positions for three and four than libavutil's layouts (RFC 7845, 5.1.1.2).
    var channelCounts: [Int] { self == .aac ? Array(1...8) : [1, 2, 5, 6, 7, 8] }

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
