// SPDX-License-Identifier: Apache-2.0

/// What all blocks of sound of a link have in common.
///
/// Samples are 32-bit floats; full scale is −1 to 1. The samples of one moment, one of each channel, stand side by side
/// (interleaved), in the order of ``layout``: left, right for two.
public struct AudioFormat: Sendable, Hashable, CustomStringConvertible {
    /// Samples per second of each channel.
    public var sampleRate: Int
    /// How many channels there are.
    public var channelCount: Int
    /// Which loudspeaker each channel is for.
    public var layout: ChannelLayout

    /// A format of sound.
    ///
    /// - Parameters:
    ///   - sampleRate: Samples per second of each channel.
    ///   - channelCount: How many channels there are.
    ///   - layout: Which loudspeaker each channel is for; nil for the usual one of so many channels.
    public init(sampleRate: Int, channelCount: Int, layout: ChannelLayout? = nil) {
        self.sampleRate = sampleRate
        self.channelCount = channelCount
        self.layout = layout ?? ChannelLayout(usualFor: channelCount)
    }

    /// The range of ``sampleRate``, in samples per second.
    public static let sampleRates = 1_000...768_000
    /// The range of ``channelCount``.
    public static let channelCounts = 1...64

    /// The size of one sample of every channel in bytes.
    public var bytesPerMoment: Int { channelCount * MemoryLayout<Float>.stride }

    /// The tick of the samples.
    public var timeBase: TimeBase { TimeBase(1, Int32(clamping: max(sampleRate, 1))) }

    public var description: String {
        "sound \(sampleRate) Hz, \(channelText)"
    }

    /// `1 channel`, `4 channels`, and where the layout is not the usual one `4 channels (quad)`.
    public var channelText: String {
        let count = channelCount == 1 ? "1 channel" : "\(channelCount) channels"
        return layout == ChannelLayout(usualFor: channelCount) ? count : "\(count) (\(layout))"
    }

    /// As ``VideoFormat/impossibility``.
    var impossibility: String? {
        if !Self.sampleRates.contains(sampleRate) {
            return "\(sampleRate) samples per second, which must be from 1000 to 768000"
        }
        if !Self.channelCounts.contains(channelCount) { return "\(channelCount) channels, which must be from 1 to 64" }
        if ![0, channelCount].contains(layout.channelCount) {
            return "\(channelCount) channels in a layout of \(layout.channelCount) (\(layout))"
        }
        return nil
    }
}
