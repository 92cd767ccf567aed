// SPDX-License-Identifier: Apache-2.0

/// A codec of access units: a string, so that further codecs need no change of Core's interface.
public struct Codec: Sendable, Hashable, Codable, RawRepresentable, CustomStringConvertible {
    /// The codec's name: `h264`.
    public var rawValue: String

    /// The codec of this name.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// ITU-T H.264 | ISO/IEC 14496-10.
    public static let h264 = Codec(rawValue: "h264")
    public var description: String { self == .h264 ? "H.264" : rawValue }
}

/// What all access units of a link have in common.
public struct EncodedFormat: Sendable, Hashable, CustomStringConvertible {
    /// How NAL units are told apart in the payload.
    public enum Framing: String, Sendable, Hashable, Codable {
        /// Start codes 00 00 01, H.264 annex B.
        case annexB
        /// A 4-byte big-endian size before each, ISO/IEC 14496-15.
        case lengthPrefixed
    }

    /// The codec.
    public var codec: Codec
    /// How NAL units are told apart.
    public var framing: Framing
    /// H.264: SPS and PPS, each with a start code, known before the first access unit. Empty where the codec has none.
    public var parameterSets: [UInt8]
    /// The format of the pictures that were encoded.
    public var video: VideoFormat
    /// How many pictures a decoder must reorder at most: 0 without B-frames.
    public var reorderDepth: Int
    /// The average in kbit/s where the encoder keeps one; nil where quality decides.
    public var bitrateKbps: Int?

    /// A format of access units.
    public init(
        codec: Codec, framing: Framing = .annexB, parameterSets: [UInt8] = [], video: VideoFormat,
        reorderDepth: Int = 0,
        bitrateKbps: Int? = nil
    ) {
        self.codec = codec
        self.framing = framing
        self.parameterSets = parameterSets
        self.video = video
        self.reorderDepth = reorderDepth
        self.bitrateKbps = bitrateKbps
    }

    public var description: String {
        let rate = video.frameRate.isZero ? "variable rate" : "\(video.frameRate) fps"
        return "\(codec) \(video.width)x\(video.height) \(rate)"
    }
}

/// What a link carries.
public enum MediaFormat: Sendable, Hashable, CustomStringConvertible {
    /// Raw pictures.
    case video(VideoFormat)
    /// Access units.
    case encoded(EncodedFormat)

    public var description: String {
        switch self {
        case .video(let format): format.description
        case .encoded(let format): format.description
        }
    }

    /// The format of raw pictures; nil for access units.
    public var video: VideoFormat? { if case .video(let format) = self { format } else { nil } }
    /// The format of access units; nil for raw pictures.
    public var encoded: EncodedFormat? { if case .encoded(let format) = self { format } else { nil } }
}

extension MediaFormat {
    /// As ``VideoFormat/impossibility``, of either kind.
    var impossibility: String? {
        switch self {
        case .video(let format): format.impossibility
        case .encoded(let format): format.impossibility
        }
    }
}

extension EncodedFormat {
    /// As ``VideoFormat/impossibility``. H.264 reorders 16 pictures at most (A.3.1, MaxDpbFrames).
    var impossibility: String? {
        if !(0...16).contains(reorderDepth) { return "a reorder depth of \(reorderDepth), which must be 0...16" }
        if let bitrateKbps, !(1...100_000_000).contains(bitrateKbps) {
            return "a bitrate of \(bitrateKbps) kbit/s, which must be 1...100000000"
        }
        return video.impossibility
    }
}
