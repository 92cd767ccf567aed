// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization

/// [any thread] The clock that all stages of a chain read. Nothing on the frame path reads another clock.
///
/// A run counts nanoseconds of the monotonic clock; a ``ManualClock`` lets a test run hours in seconds.
public class ChainClock: @unchecked Sendable {
    /// Makes the system's monotonic clock.
    public init() {}

    /// Nanoseconds since an arbitrary start; never goes back. `CLOCK_MONOTONIC` (clock_gettime(2)).
    public func now() -> Int64 { MonotonicTime.now() }

    /// The wall-clock time of an instant of this clock, in nanoseconds since 1970 (UTC), by the mapping of this moment.
    public func unixTime(at instant: Int64) -> Int64 {
        // A busy machine may take the processor away between two readings.
        var (apart, ahead) = (Int64.max, Int64(0))
        for _ in 0..<4 where apart > 20_000 {
            var wall = timespec()
            let before = now()
            clock_gettime(CLOCK_REALTIME, &wall)
            let between = now() &- before
            guard between < apart else { continue }
            apart = between
            ahead = Int64(wall.tv_sec) &* 1_000_000_000 &+ Int64(wall.tv_nsec) &- before &- between / 2
        }
        return instant &+ ahead
    }

    /// The present moment, by the clocks that tell how old recordings are.
    public var moment: RecordingMoment { .now() }

    /// Sleeps on `condition` until `instant`. Returns false at once when `isEnded` is true, which it checks
    /// whenever `condition` is woken.
    func sleep(until instant: Int64, on condition: Condition, unless isEnded: () -> Bool) -> Bool {
        condition.lock()
        defer { condition.unlock() }
        while !isEnded() {
            if now() >= instant { return true }
            condition.wait(until: instant)
        }
        return false
    }

    /// Waits on `condition`, whose lock is held, at most until `instant`; may wake without reason.
    func wait(until instant: Int64, on condition: Condition) { condition.wait(until: instant) }
}

/// A clock that stands still until it is told to move.
///
/// Sleeping moves it: a chain under this clock runs as fast as it can, and every time it reads is exact.
public final class ManualClock: ChainClock, @unchecked Sendable {
    private let time: Atomic<Int64>

    /// Makes a clock that shows `start`, in nanoseconds.
    public init(at start: Int64 = 0) {
        time = Atomic(start)
        super.init()
    }

    /// The nanoseconds that the clock shows.
    override public func now() -> Int64 { time.load(ordering: .acquiring) }
    /// The instant itself: this clock counts from 1970.
    override public func unixTime(at instant: Int64) -> Int64 { instant }

    /// The same moment by every clock. This one is never wrong.
    override public var moment: RecordingMoment {
        let now = now()
        return RecordingMoment(up: now, wall: now, isSynchronised: true)
    }

    /// Moves the clock on to `instant`, in nanoseconds; an instant that has passed changes nothing.
    public func advance(to instant: Int64) { time.max(instant, ordering: .acquiringAndReleasing) }

    override func sleep(until instant: Int64, on condition: Condition, unless isEnded: () -> Bool) -> Bool {
        if isEnded() { return false }
        advance(to: instant)
        return true
    }

    override func wait(until instant: Int64, on condition: Condition) { advance(to: instant) }
}
