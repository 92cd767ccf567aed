/// One sound track as its origin has it: what a container's writer needs to carry its packets along untouched.
public struct AudioTrackFormat: Sendable, Hashable, CustomStringConvertible {
    /// By libavcodec's short names: `aac`, `opus`, `pcm_s16le`.
    public var codec: Codec
    /// The tick of the packets' times.
    public var timeBase: TimeBase
    /// Samples per second.
    public var sampleRate: Int
    public var channelCount: Int
    /// Bit per loudspeaker position as in WAVEFORMATEXTENSIBLE; 0 when the track does not say.
    public var channelMask: UInt64
    /// Samples of a packet; 0 when it varies.
    public var samplesPerPacket: Int
    /// Bits per second; 0 when unknown.
    public var bitRate: Int
    /// Bytes of a block, for codecs that count in blocks; else 0.
    public var blockAlign: Int
    public var bitsPerSample: Int
    /// The codec's own number; nil when unknown.
    public var profile: Int?
    /// Samples at the begin that a decoder throws away.
    public var initialPadding: Int
    /// Samples to decode before the first that is heard after a seek.
    public var seekPreroll: Int
    /// What a decoder must have before the first packet (MP4: `esds`, `dOps` …).
    public var extradata: [UInt8]
    /// ISO 639-2, empty when unknown.
    public var language: String

    public init(
        codec: Codec, timeBase: TimeBase, sampleRate: Int, channelCount: Int, channelMask: UInt64 = 0,
        samplesPerPacket: Int = 0,
        bitRate: Int = 0, blockAlign: Int = 0, bitsPerSample: Int = 0, profile: Int? = nil, initialPadding: Int = 0,
        seekPreroll: Int = 0, extradata: [UInt8] = [], language: String = ""
    ) {
        self.codec = codec
        self.timeBase = timeBase
        self.sampleRate = sampleRate
        self.channelCount = channelCount
        self.channelMask = channelMask
        self.samplesPerPacket = samplesPerPacket
        self.bitRate = bitRate
        self.blockAlign = blockAlign
        self.bitsPerSample = bitsPerSample
        self.profile = profile
        self.initialPadding = initialPadding
        self.seekPreroll = seekPreroll
        self.extradata = extradata
        self.language = language
    }

    public var description: String {
        "\(codec) \(sampleRate) Hz, \(channelCount == 1 ? "1 channel" : "\(channelCount) channels")"
    }
}

/// One packet of encoded sound. Its times lie within ±``TimeBase/mostTicks``; what is beyond is cut to that.
public struct AudioPacket: Sendable, Equatable {
    public var bytes: [UInt8]
    /// Ticks of the track on the chain's time line; below 0 for samples before its begin, which a decoder needs and
    /// nobody hears.
    public let pts: Int64
    public let dts: Int64
    /// Ticks; not below 0.
    public let duration: Int64

    public init(bytes: [UInt8], pts: Int64, dts: Int64, duration: Int64) {
        func bounded(_ ticks: Int64, from least: Int64 = -TimeBase.mostTicks) -> Int64 {
            min(max(ticks, least), TimeBase.mostTicks)
        }
        self.bytes = bytes
        self.pts = bounded(pts)
        self.dts = bounded(dts)
        self.duration = bounded(duration, from: 0)
    }
}

/// The sound that belongs to a source's pictures, for a sink that carries it along untouched. A source offers it with
/// ``StageContext/offerAudio(_:)``; stages behind find it as ``StageContext/audio``.
///
/// It is pulled: each reader reads for itself, at the pace of the pictures it goes with. So sound needs no buffers of
/// the plan, and never keeps pictures waiting.
public protocol AudioOrigin: AnyObject, Sendable {
    var tracks: [AudioTrackFormat] { get }

    /// [control thread, at the latest in `start`] A reader of its own from the begin; the track counts as carried.
    ///
    /// - Parameter track: Index in `tracks`.
    func open(track: Int) throws -> any AudioReader
}

/// Reads one sound track from its begin to its end. Used by one thread at a time: the one of the stage that opened it.
public protocol AudioReader: AnyObject {
    /// The next packet in the order of decoding; nil at the end.
    func next() throws -> AudioPacket?
}
