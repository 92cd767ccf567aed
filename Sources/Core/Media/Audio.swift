// SPDX-License-Identifier: Apache-2.0

/// One sound track: what the writer of a container needs to carry the track's packets along unchanged.
public struct AudioTrackFormat: Sendable, Hashable, CustomStringConvertible {
    /// The codec by libavcodec's short name: `aac`, `opus`, `pcm_s16le`.
    public var codec: Codec
    /// The tick of the packets' times.
    public var timeBase: TimeBase
    /// Samples per second.
    public var sampleRate: Int
    /// How many channels the track has.
    public var channelCount: Int
    /// One bit per loudspeaker position as in WAVEFORMATEXTENSIBLE; 0 when the track does not say.
    public var channelMask: UInt64
    /// Samples of a packet; 0 when it varies.
    public var samplesPerPacket: Int
    /// Bits per second; 0 when unknown.
    public var bitRate: Int
    /// Bytes of a block, for codecs that count in blocks; otherwise 0.
    public var blockAlign: Int
    /// Bits of one sample; 0 when unknown.
    public var bitsPerSample: Int
    /// The codec's own number; nil when unknown.
    public var profile: Int?
    /// Samples at the start that a decoder throws away.
    public var initialPadding: Int
    /// Samples that a decoder decodes after a seek before the first that is heard.
    public var seekPreroll: Int
    /// What a decoder must have before the first packet (MP4: `esds`, `dOps` …).
    public var extradata: [UInt8]
    /// ISO 639-2, empty when unknown.
    public var language: String

    /// Describes a track; what is left out is unknown.
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

    public var description: String { description(of: codec) }

    func description(of codec: Codec) -> String { "\(codec) \(sampleRate) Hz, \(decoded.channelText)" }

    /// The sound that the track has once it is decoded.
    public var decoded: AudioFormat {
        AudioFormat(
            sampleRate: sampleRate, channelCount: channelCount,
            layout: channelMask.nonzeroBitCount == channelCount ? ChannelLayout(mask: channelMask) : nil)
    }

    /// The track without its bit rate, which a decoder need not know.
    var withoutBitRate: AudioTrackFormat {
        var track = self
        track.bitRate = 0
        return track
    }

    /// As ``VideoFormat/impossibility``.
    var impossibility: String? {
        AudioFormat(sampleRate: sampleRate, channelCount: channelCount).impossibility
    }
}

/// One packet of encoded sound. Its times lie within ±``TimeBase/mostTicks``.
public struct AudioPacket: Sendable, Equatable {
    /// The payload.
    public var bytes: [UInt8]
    /// When it is heard, in ticks of the track on the chain's timeline. Samples before the start of the timeline, which
    /// a decoder needs and nobody hears, have a negative time.
    public let pts: Int64
    /// When it is decoded, in ticks.
    public let dts: Int64
    /// How long it lasts, in ticks; at least 0.
    public let duration: Int64

    /// Makes a packet; times beyond ±``TimeBase/mostTicks`` are cut to that.
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

/// The sound that belongs to a source's pictures, for a sink that carries it along unchanged.
///
/// A source offers it with ``StageContext/offerAudio(_:)``; stages behind find it as ``StageContext/audio``. A sink
/// reads it at the pace of its pictures. Sound therefore needs no buffers of the plan, and pictures never wait for it.
public protocol AudioOrigin: AnyObject, Sendable {
    /// The tracks there are.
    var tracks: [AudioTrackFormat] { get }

    /// [any thread] Whether all pictures beside which the sound runs were given, to their own end: sound after them then
    /// belongs to them. False where they were only ended early.
    var hasGivenAllPictures: Bool { get }

    /// [control thread, or setup thread in `start`] Opens a reader of a track, which begins at the track's start.
    /// The track then counts as carried.
    ///
    /// - Parameter track: The track's index in ``tracks``.
    func open(track: Int) throws -> any AudioReader
}

extension AudioOrigin {
    /// False: sound ends with the pictures.
    public var hasGivenAllPictures: Bool { false }
}

/// Reads one sound track from its start to its end. Only the thread of the stage that opened it uses it.
public protocol AudioReader: AnyObject {
    /// Reads the next packet in the order of decoding; nil at the end.
    func next() throws -> AudioPacket?
}
