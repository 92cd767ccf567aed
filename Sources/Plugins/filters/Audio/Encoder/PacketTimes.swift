// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The times of packets whose encoder only counts samples: sample 0 has the time of the first block, and each jump
/// gives other times to the samples after it.
struct PacketTimes {
    private struct Span {
        /// The number of its first sample.
        var begin: Int64
        /// What is added to a number for its tick.
        var offset: Int64
        /// Whether it follows a jump, and no packet of it has been seen.
        var isNew: Bool
    }

    /// Jumps that may lie inside an encoder at once: each takes two frames of it.
    private static let mostSpans = 4

    private let timeBase: TimeBase
    private var spans: [Span] = []

    init(_ format: AudioFormat) {
        timeBase = format.timeBase
        spans.reserveCapacity(Self.mostSpans + 1)
    }

    /// From sample `number` on, samples have the ticks from `tick` on.
    mutating func begin(sample number: Int64, at tick: Int64) {
        if spans.count == Self.mostSpans { spans.removeFirst() }
        spans.append(Span(begin: number, offset: tick - number, isNew: !spans.isEmpty))
    }

    /// The time and length of a packet of `count` samples from `number` on, which is negative for an encoder's priming.
    ///
    /// - Returns: Also whether it is the first after a jump.
    mutating func take(_ number: Int64, count: Int64) -> (pts: MediaTime, duration: MediaTime, isJump: Bool) {
        while spans.count > 1, spans[1].begin <= number { spans.removeFirst() }
        let tick = number + (spans.first?.offset ?? 0)
        let pts = timeBase.time(ofTicks: tick)
        let isJump = spans.first?.isNew == true
        if isJump { spans[0].isNew = false }
        return (pts, timeBase.time(ofTicks: tick + count) - pts, isJump)
    }
}
