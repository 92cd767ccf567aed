// SPDX-License-Identifier: Apache-2.0

/// What all blocks of sound of a link have in common.
///
/// Samples are 32-bit floats; full scale is −1 to 1. The samples of one moment, one of each channel, stand side by side
/// (interleaved), in the order of the channels of libavutil's default layout: left, right for two.
public struct AudioFormat: Sendable, Hashable, CustomStringConvertible {
    /// Samples per second of each channel.
    public var sampleRate: Int
    /// How many channels there are.
    public var channelCount: Int

    /// A format of sound.
    public init(sampleRate: Int, channelCount: Int) {
        self.sampleRate = sampleRate
        self.channelCount = channelCount
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
        "sound \(sampleRate) Hz, \(channelCount == 1 ? "1 channel" : "\(channelCount) channels")"
    }

    /// As ``VideoFormat/impossibility``.
    var impossibility: String? {
        if !Self.sampleRates.contains(sampleRate) {
            return "\(sampleRate) samples per second, which must be from 1000 to 768000"
        }
        if !Self.channelCounts.contains(channelCount) { return "\(channelCount) channels, which must be from 1 to 64" }
        return nil
    }
}
