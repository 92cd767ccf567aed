// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// When a camera's pictures were taken, on the chain's timeline: the driver's monotonic time where it can be meant.
/// Pure.
struct CameraTimes {
    /// Where the driver's time lies further off from now, it is no time of capture: nanoseconds.
    private static let oldest: Int64 = 10_000_000_000
    private static let future: Int64 = 100_000_000
    /// From one picture to the next at least: nanoseconds.
    private static let step: Int64 = 1_000_000

    /// Of the newest picture.
    private(set) var last: Int64?
    private var lastSequence: UInt32?
    private var lastCounted: Int64 = 0
    /// Pictures whose driver did not say when they were taken, or said what cannot be.
    private(set) var replaced = 0

    /// - Parameters:
    ///   - given: The driver's.
    ///   - now: Of the chain clock, which is the same clock.
    mutating func time(_ given: Int64?, now: Int64) -> Int64 {
        var time = now
        if let given, given >= now &- Self.oldest, given <= now &+ Self.future { time = given } else { replaced += 1 }
        // A chain's times rise, by more than the ticks of RTP and files: the first picture of a camera that is back was
        // taken before the last one in its place was shown.
        if let last, time < last + Self.step { time = last + Self.step }
        last = time
        return time
    }

    /// Pictures lost in the driver since the one before: a gap in its count. A count that begins anew, as after a
    /// reset, is no gap. Nor are there more than there was time for: v4l2loopback 0.12 leaves out numbers where no picture
    /// is missing.
    ///
    /// - Parameters:
    ///   - time: The picture's, nanoseconds.
    ///   - period: From one picture to the next by the camera's rate, nanoseconds; 0 where it is not known.
    mutating func missed(_ sequence: UInt32, at time: Int64, period: Int64) -> Int {
        defer { (lastSequence, lastCounted) = (sequence, time) }
        guard let lastSequence else { return 0 }
        let step = sequence &- lastSequence
        guard step > 1, step < 100_000 else { return 0 }
        let room = period > 0 ? (time - lastCounted + period / 2) / period : Int64(step)
        return max(0, min(Int(step), Int(room)) - 1)
    }

    /// Another stream begins, and counts anew.
    mutating func restart() { lastSequence = nil }
}
