// SPDX-License-Identifier: Apache-2.0

/// How a card writes a sample, in the machine's byte order.
enum CardSamples: String, CaseIterable {
    case s32, s16, float

    var bytes: Int { self == .s16 ? 2 : 4 }
}

/// What a card was set to, as it was read back.
struct CardFormat: Equatable, CustomStringConvertible {
    var samples: CardSamples
    /// Frames per second.
    var rate: Int
    var channels: Int
    /// Frames that the card gives at a time, and those that it keeps until they are lost.
    var period: Int
    var buffer: Int

    /// Bytes of one sample of every channel.
    var frameBytes: Int { samples.bytes * channels }

    /// `s16, 48000 Hz, 2 channels, 10 ms at a time`.
    var description: String {
        "\(samples), \(rate) Hz, \(channels == 1 ? "1 channel" : "\(channels) channels"), \(period * 1000 / rate) ms at a time"
    }
}

/// A negative answer of ALSA.
struct CardFault: Error, Equatable {
    /// The call: `snd_pcm_open`.
    var call: String
    /// The errno, above 0.
    var errno: Int32
}
