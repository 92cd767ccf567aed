// SPDX-License-Identifier: Apache-2.0

import CAudio
import FrameCore
import Glibc

/// What a meter knows of the sound so far. Loudness is in LUFS, negative infinity for digital silence.
struct Loudness: Equatable {
    /// Of the last 400 ms.
    var momentary = -Double.infinity
    /// Of the last 3 s.
    var shortTerm = -Double.infinity
    /// Of all the sound, without its silent parts (EBU R 128's gate).
    var integrated = -Double.infinity
    /// The highest peak so far, of any channel, between the samples too; dBTP.
    var truePeak = -Double.infinity
}

/// One loudness meter of libebur128; the only place that calls the library.
///
/// Used by one thread at a time. It measures as EBU R 128 and ITU-R BS.1770-4 say; channels are weighted by their
/// positions.
final class MeterHandle {
    /// Samples of each channel that are handed over at once.
    private static let chunk = 1024
    /// The loudest sample that is measured, +36 dBFS. A float beyond it is not sound, and would disturb the filters
    /// for ever.
    private static let loudest: Float = 64

    private let state: UnsafeMutablePointer<ebur128_state>
    private let scratch: UnsafeMutableBufferPointer<Float>
    private let channelCount: Int

    /// [control thread] Opens a meter (`ebur128_init`).
    init(_ format: AudioFormat) throws {
        guard
            let state = ebur128_init(
                UInt32(format.channelCount), UInt(format.sampleRate), fh_ebur128_modes)
        else {
            throw FrameHostError(
                .exhausted, what: "not enough memory to measure \(format)",
                remedy:
                    "Free some memory, or put an 'audio-resample' with a lower 'sampleRate' or fewer 'channels' before this stage."
            )
        }
        for (channel, position) in format.layout.positions.enumerated() {
            ebur128_set_channel(state, UInt32(channel), Self.place(position, in: format.layout))
        }
        self.state = state
        channelCount = format.channelCount
        scratch = .allocate(capacity: Self.chunk * format.channelCount)
        scratch.initialize(repeating: 0)
    }

    /// libebur128's name of a position, by the number of its bit (BS.1770-4, table 4). Where there are no loudspeakers beside
    /// the listener, those behind are the surround channels.
    private static func place(_ position: Int, in layout: ChannelLayout) -> Int32 {
        let hasSides = layout.mask & 0x600 != 0
        let place: channel =
            switch position {
            case 0: EBUR128_LEFT
            case 1: EBUR128_RIGHT
            case 2: EBUR128_CENTER
            case 3, 35: EBUR128_UNUSED
            case 4: hasSides ? EBUR128_Mp135 : EBUR128_LEFT_SURROUND
            case 5: hasSides ? EBUR128_Mm135 : EBUR128_RIGHT_SURROUND
            case 6: EBUR128_MpSC
            case 7: EBUR128_MmSC
            case 8: EBUR128_Mp180
            case 9: EBUR128_Mp090
            case 10: EBUR128_Mm090
            default: EBUR128_Up180
            }
        return Int32(place.rawValue)
    }

    deinit {
        var state: UnsafeMutablePointer<ebur128_state>? = state
        ebur128_destroy(&state)
        scratch.deallocate()
    }

    /// Measures interleaved samples.
    ///
    /// - Returns: Whether one of them is not exactly 0.
    func add(_ samples: UnsafeBufferPointer<Float>) throws -> Bool {
        var isHeard = false
        var first = 0
        while first < samples.count {
            let count = min(scratch.count, samples.count - first)
            for index in 0..<count {
                let value = samples[first + index]
                // The comparison is false for NaN too.
                let sound = value.magnitude <= Self.loudest ? value : 0
                isHeard = isHeard || sound != 0
                scratch[index] = sound
            }
            let code = ebur128_add_frames_float(state, scratch.baseAddress, count / channelCount)
            guard code == 0 else {
                throw FrameHostError(
                    .callFailed, what: "libebur128 failed with code \(code): no memory is left",
                    remedy: "Free some memory, and start the chain again.")
            }
            first += count
        }
        return isHeard
    }

    /// The loudness of the last 400 ms alone; costs one pass over them.
    var momentary: Double {
        var value = -Double.infinity
        ebur128_loudness_momentary(state, &value)
        return value
    }

    /// All figures; costs one pass over the last 3 s.
    var loudness: Loudness {
        var loudness = Loudness()
        loudness.momentary = momentary
        ebur128_loudness_shortterm(state, &loudness.shortTerm)
        ebur128_loudness_global(state, &loudness.integrated)
        var highest = 0.0
        for channel in 0..<channelCount {
            var peak = 0.0
            ebur128_true_peak(state, UInt32(channel), &peak)
            highest = max(highest, peak)
        }
        loudness.truePeak = 20 * log10(highest)
        return loudness
    }
}
