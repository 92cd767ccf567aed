// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The times at which a camera's pictures were taken, on the chain's timeline: the driver's monotonic time where that
/// is possible. Pure.
struct CameraTimes {
    /// A driver's time that is further in the past or future than this is not a time of capture, nanoseconds.
    private static let oldest: Int64 = 10_000_000_000
    private static let future: Int64 = 100_000_000
    /// The least time from one picture to the next, nanoseconds.
    private static let step: Int64 = 1_000_000

    /// Of the newest picture.
    private(set) var last: Int64?
    private var lastSequence: UInt32?
    private var lastCounted: Int64 = 0
    /// Pictures without a time from the driver, or with an impossible one.
    private(set) var replaced = 0

    /// - Parameters:
    ///   - given: The driver's.
    ///   - now: The time of the chain clock, which is the driver's clock too.
    mutating func time(_ given: Int64?, now: Int64) -> Int64 {
        var time = now
        if let given, given >= now &- Self.oldest, given <= now &+ Self.future { time = given } else { replaced += 1 }
        // A chain's times must rise by more than a tick of RTP and files. The first picture of a camera that is back
        // may have been taken before the last stand-in was shown.
        if let last, time < last + Self.step { time = last + Self.step }
        last = time
        return time
    }

    /// Pictures lost in the driver since the one before: a gap in its count. A count that begins anew, as after a
    /// reset, is not a gap. The result is limited by the time that has passed, since v4l2loopback 0.12 skips numbers
    /// where no picture is missing.
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

    /// Begins another stream, which counts anew.
    mutating func restart() { lastSequence = nil }
}
