// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// What a tone source plays.
enum TonePattern: String, OptionChoice {
    /// One tone without an end.
    case tone
    /// A tone of 100 ms that starts on each whole second.
    case beep
    /// Nothing but zeros.
    case silence
}

/// The samples of a tone source: a function of the sample's number, so that any block can be made again.
///
/// All channels have the same samples.
struct ToneWave {
    /// How long a beep lasts and how long it takes to rise and to fall, as parts of a second.
    private static let beepsPerSecond = 10
    private static let rampsPerSecond = 1000

    private let pattern: TonePattern
    private let sampleRate: Int
    private let frequency: Double
    private let amplitude: Double
    private let channelCount: Int

    /// - Parameters:
    ///   - frequency: Hz, at most half of `sampleRate`.
    ///   - level: The peak in dBFS: 0 is full scale.
    init(_ pattern: TonePattern, sampleRate: Int, channelCount: Int, frequency: Double, level: Double) {
        self.pattern = pattern
        self.sampleRate = sampleRate
        self.channelCount = channelCount
        self.frequency = frequency
        amplitude = pow(10, level / 20)
    }

    /// Fills an interleaved block. Allocates nothing.
    ///
    /// - Parameter first: The number of its first sample, at least 0; sample 0 stands on a whole second.
    func fill(_ samples: UnsafeMutableBufferPointer<Float>, from first: Int64) {
        switch pattern {
        case .silence: samples.update(repeating: 0)
        case .tone:
            // Cycles that are over at the first sample. The product of two integers is exact up to 2^53.
            let rate = Double(sampleRate)
            let begin = (frequency * Double(first)).truncatingRemainder(dividingBy: rate) / rate
            for moment in 0..<samples.count / channelCount {
                put(amplitude * sin(2 * .pi * (begin + frequency * Double(moment) / rate)), samples, moment)
            }
        case .beep:
            for moment in 0..<samples.count / channelCount {
                put(beep(Int((first + Int64(moment)) % Int64(sampleRate))), samples, moment)
            }
        }
    }

    /// The sample that is `position` samples after a whole second.
    private func beep(_ position: Int) -> Double {
        let length = sampleRate / Self.beepsPerSecond
        guard position < length else { return 0 }
        let ramp = Double(max(sampleRate / Self.rampsPerSecond, 1))
        let envelope = min(1, Double(position) / ramp, Double(length - 1 - position) / ramp)
        return amplitude * envelope * sin(2 * .pi * frequency * Double(position) / Double(sampleRate))
    }

    private func put(_ value: Double, _ samples: UnsafeMutableBufferPointer<Float>, _ moment: Int) {
        for channel in 0..<channelCount { samples[moment * channelCount + channel] = Float(value) }
    }
}
