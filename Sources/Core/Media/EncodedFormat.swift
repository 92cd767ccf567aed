// SPDX-License-Identifier: Apache-2.0

/// A codec of access units: a string, so that further codecs need no change of Core's interface.
public struct Codec: Sendable, Hashable, Codable, RawRepresentable, CustomStringConvertible {
    /// The codec's name: `h264`.
    public var rawValue: String

    /// The codec of this name.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// ITU-T H.264 | ISO/IEC 14496-10.
    public static let h264 = Codec(rawValue: "h264")
    /// ITU-T H.265 | ISO/IEC 23008-2.
    public static let h265 = Codec(rawValue: "h265")
    /// Motion JPEG: each picture a JPEG, ISO/IEC 10918-1.
    public static let mjpeg = Codec(rawValue: "mjpeg")
    /// AOMedia Video 1.
    public static let av1 = Codec(rawValue: "av1")
    /// Advanced Audio Coding, ISO/IEC 14496-3; packets without ADTS headers.
    public static let aac = Codec(rawValue: "aac")
    /// Opus, RFC 6716.
    public static let opus = Codec(rawValue: "opus")
    /// MPEG-1 and MPEG-2 audio layer III, ISO/IEC 11172-3 and 13818-3; whole frames.
    public static let mp3 = Codec(rawValue: "mp3")
    /// µ-law of ITU-T G.711: a byte for each sample.
    public static let muLaw = Codec(rawValue: "pcm_mulaw")
    /// A-law of ITU-T G.711: a byte for each sample.
    public static let aLaw = Codec(rawValue: "pcm_alaw")
    /// ITU-T G.726 packed as RTP has it, the first sample in the lowest bits (RFC 3551, 4.5.4).
    public static let g726 = Codec(rawValue: "adpcm_g726le")
    public var description: String {
        switch self {
        case .h264: "H.264"
        case .h265: "H.265"
        case .mjpeg: "MJPEG"
        case .av1: "AV1"
        case .aac: "AAC"
        case .opus: "Opus"
        case .mp3: "MP3"
        case .muLaw: "G.711 (µ-law)"
        case .aLaw: "G.711 (A-law)"
        case .g726: "G.726"
        default: rawValue
        }
    }
}

/// What all access units of a link have in common.
public struct EncodedFormat: Sendable, Hashable, CustomStringConvertible {
    /// How the parts of a payload are told apart.
    public enum Framing: String, Sendable, Hashable, Codable {
        /// Start codes 00 00 01, annex B of H.264 and H.265.
        case annexB
        /// A 4-byte big-endian size before each, ISO/IEC 14496-15.
        case lengthPrefixed
        /// There are no NAL units: a whole JPEG, or a temporal unit of AV1 whose open bitstream units have their sizes
        /// (low-overhead format, 5.2), as MP4 and Matroska hold it.
        case own
    }

    /// The codec.
    public var codec: Codec
    /// How the parts of a payload are told apart.
    public var framing: Framing
    /// H.264: SPS and PPS; H.265: VPS, SPS and PPS; each with a start code; AV1: the sequence header, as an open
    /// bitstream unit with its size; known before the first access unit. Empty where the codec has none, as MJPEG.
    public var parameterSets: [UInt8]
    /// What was encoded.
    public var content: Content
    /// How many pictures a decoder must reorder at most: 0 without B-frames.
    public var reorderDepth: Int
    /// The average in kbit/s where the encoder keeps one; nil where quality decides.
    public var bitrateKbps: Int?

    /// What access units can be made of.
    public enum Content: Sendable, Hashable {
        /// Pictures of this format.
        case video(VideoFormat)
        /// Sound; the track says what a container or a client needs to decode it.
        case audio(AudioTrackFormat)
    }

    /// The format of the pictures that were encoded; nil for sound.
    public var video: VideoFormat? {
        get { if case .video(let format) = content { format } else { nil } }
        set { if let newValue { content = .video(newValue) } }
    }

    /// The track of the sound that was encoded; nil for pictures.
    public var audio: AudioTrackFormat? { if case .audio(let track) = content { track } else { nil } }

    /// A format of access units of sound.
    public init(codec: Codec, audio: AudioTrackFormat) {
        self.codec = codec
        framing = .annexB
        parameterSets = []
        content = .audio(audio)
        reorderDepth = 0
        bitrateKbps = audio.bitRate > 0 ? max(audio.bitRate / 1000, 1) : nil
    }

    /// A format of access units of pictures.
    public init(
        codec: Codec, framing: Framing = .annexB, parameterSets: [UInt8] = [], video: VideoFormat,
        reorderDepth: Int = 0,
        bitrateKbps: Int? = nil
    ) {
        self.codec = codec
        self.framing = framing
        self.parameterSets = parameterSets
        content = .video(video)
        self.reorderDepth = reorderDepth
        self.bitrateKbps = bitrateKbps
    }

    public var description: String {
        guard let video else { return audio?.description(of: codec) ?? "\(codec)" }
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
    /// Sound that is not encoded.
    case audio(AudioFormat)
    /// Samples of motion.
    case motion(MotionFormat)

    public var description: String {
        switch self {
        case .video(let format): format.description
        case .encoded(let format): format.description
        case .audio(let format): format.description
        case .motion(let format): format.description
        }
    }

    /// The format of raw pictures; nil for anything else.
    public var video: VideoFormat? { if case .video(let format) = self { format } else { nil } }
    /// The format of access units; nil for anything else.
    public var encoded: EncodedFormat? { if case .encoded(let format) = self { format } else { nil } }
    /// The format of sound that is not encoded; nil for anything else.
    public var audio: AudioFormat? { if case .audio(let format) = self { format } else { nil } }
    /// The format of motion; nil for anything else.
    public var motion: MotionFormat? { if case .motion(let format) = self { format } else { nil } }
}

extension MediaFormat {
    /// Whether the items lie in a slab, and links are limited in bytes and time too; others have a pool.
    var liesInSlab: Bool { video == nil }

    /// Whether it is neither pictures nor access units of pictures, but something that goes with them.
    var goesWithPictures: Bool { isSound || motion != nil }

    /// Whether it is sound, encoded or not.
    var isSound: Bool { audio != nil || encoded?.audio != nil }

    /// As ``VideoFormat/impossibility``, for every kind of format.
    var impossibility: String? {
        switch self {
        case .video(let format): format.impossibility
        case .encoded(let format): format.impossibility
        case .audio(let format): format.impossibility
        case .motion(let format): format.impossibility
        }
    }
}

extension EncodedFormat {
    /// As ``VideoFormat/impossibility``. H.264 reorders 16 pictures at most (A.3.1, MaxDpbFrames).
    var impossibility: String? {
        if !(0...16).contains(reorderDepth) { return "a reorder depth of \(reorderDepth), which must be from 0 to 16" }
        if let bitrateKbps, !(1...100_000_000).contains(bitrateKbps) {
            return "a bitrate of \(bitrateKbps) kbit/s, which must be from 1 to 100000000"
        }
        return video?.impossibility ?? audio?.impossibility
    }
}
