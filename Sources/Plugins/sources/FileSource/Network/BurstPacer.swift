// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Spreads items that come at once (what a sender has since its last keyframe, what was read to examine a stream, what
/// a network held up) by the stream's own times: the queue behind a live source is short, and would drop most of them.
/// A pure value: the caller passes the clock's time, and waits.
///
/// A sender that is faster than ``speed`` for long fills the queue of packets, until what comes is urgent and given at
/// once. The delay then stays at what that queue holds, and the queue behind the source drops and counts what its
/// consumer does not take.
///
/// All times in nanoseconds; inputs lie within ``MediaTime/range``.
struct BurstPacer {
    /// How many times faster than they were captured items are given at most.
    private static let speed: Int64 = 2
    /// The longest time between two items, whatever the stream says.
    private static let longest: Int64 = 50_000_000

    /// The stream's own time of the newest item, and when it was given.
    private var newest: (given: Int64, at: Int64)?

    /// Begins another connection, whose times are unrelated to the earlier ones.
    mutating func begin() { newest = nil }

    /// When the item is to be given: `now`, or later where it comes too soon after the one before it.
    ///
    /// - Parameters:
    ///   - given: The stream's own time; nil where it has none, so that nothing is known about the next one either.
    ///   - now: The time of the chain clock.
    ///   - isUrgent: Whether it is given at once, since more waits than there is room for.
    mutating func place(_ given: MediaTime?, now: Int64, isUrgent: Bool) -> Int64 {
        guard let given = given?.nanoseconds else {
            newest = nil
            return now
        }
        var instant = now
        if let newest, !isUrgent {
            // Both lie within ±2^61.
            instant = max(now, newest.at + min(max((given - newest.given) / Self.speed, 0), Self.longest))
        }
        newest = (given, instant)
        return instant
    }
}
