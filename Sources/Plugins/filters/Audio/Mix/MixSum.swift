// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// The sum of several sounds by the numbers of their samples. Pure.
///
/// Samples are added at any place from ``begin`` on, and taken away in order.
struct MixSum {
    private let channelCount: Int
    /// The number of the first sample that was not taken.
    private(set) var begin: Int64 = 0
    /// From `begin` on, interleaved.
    private var sums: [Float] = []

    /// - Parameter capacity: Samples of each channel for which there is room from the start.
    init(channelCount: Int, capacity: Int) {
        self.channelCount = channelCount
        sums.reserveCapacity(capacity * channelCount)
    }

    /// The number after the last sample that was added.
    var end: Int64 { begin + Int64(sums.count / channelCount) }

    /// Starts at another sample. What was not taken is forgotten.
    mutating func restart(at number: Int64) {
        begin = number
        sums.removeAll(keepingCapacity: true)
    }

    /// Adds samples, of which the first has the number `first`; those before ``begin`` are left out.
    mutating func add(_ samples: UnsafeBufferPointer<Float>, at first: Int64) {
        let lacking = max(begin - first, 0)
        guard lacking < Int64(samples.count / channelCount) else { return }
        let place = Int(first + lacking - begin) * channelCount
        let skipped = Int(lacking) * channelCount
        let count = samples.count - skipped
        fill(to: place + count)
        sums.withUnsafeMutableBufferPointer { sums in
            for index in 0..<count { sums[place + index] += samples[skipped + index] }
        }
    }

    /// Takes the samples up to the number `end` to `body`; silence where none was added.
    mutating func take(to end: Int64, _ body: (UnsafeBufferPointer<Float>) throws -> Void) rethrows {
        let count = Int(end - begin) * channelCount
        guard count > 0 else { return }
        fill(to: count)
        defer {
            sums.removeFirst(count)
            begin = end
        }
        try sums.withUnsafeBufferPointer { try body(UnsafeBufferPointer(rebasing: $0[..<count])) }
    }

    private mutating func fill(to count: Int) {
        if sums.count < count { sums.append(contentsOf: repeatElement(0, count: count - sums.count)) }
    }
}

/// What becomes of a sum beyond full scale.
enum MixLimit: String, OptionChoice {
    /// Bent towards full scale, which it never passes.
    case soft
    /// Left as it is.
    case off

    /// Up to here samples stay as they are.
    static let knee: Float = 0.9

    func callAsFunction(_ sample: Float) -> Float {
        guard self == .soft, abs(sample) > Self.knee else { return sample }
        let room = 1 - Self.knee
        let bent = Self.knee + room * tanhf((abs(sample) - Self.knee) / room)
        return sample < 0 ? -bent : bent
    }
}
