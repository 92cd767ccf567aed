import FrameCore

/// When a camera's pictures were taken, on the chain's timeline: the driver's monotonic time where it can be meant.
/// Pure.
struct CameraTimes {
    /// Where the driver's time lies further off from now, it is no time of capture: nanoseconds.
    private static let oldest: Int64 = 10_000_000_000
    private static let future: Int64 = 100_000_000

    /// Of the newest picture.
    private(set) var last: Int64?
    private var lastSequence: UInt32?
    /// Pictures whose driver did not say when they were taken, or said what cannot be.
    private(set) var replaced = 0

    /// - Parameters:
    ///   - given: The driver's.
    ///   - now: Of the chain clock, which is the same clock.
    mutating func time(_ given: Int64?, now: Int64) -> Int64 {
        var time = now
        if let given, given >= now &- Self.oldest, given <= now &+ Self.future { time = given } else { replaced += 1 }
        // A chain's times rise.
        if let last, time <= last { time = last + 1 }
        last = time
        return time
    }

    /// Pictures lost in the driver since the one before: a gap in its count. A count that begins anew, as after a
    /// reset, is no gap.
    mutating func missed(_ sequence: UInt32) -> Int {
        defer { lastSequence = sequence }
        guard let lastSequence else { return 0 }
        let step = sequence &- lastSequence
        return step > 1 && step < 100_000 ? Int(step) - 1 : 0
    }

    /// Another stream begins, and counts anew.
    mutating func restart() { lastSequence = nil }
}
