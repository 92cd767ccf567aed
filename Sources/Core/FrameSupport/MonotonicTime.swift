// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The system's monotonic clock, whatever clock a chain has: for what a simulated clock must not decide. [any thread]
public enum MonotonicTime {
    /// Nanoseconds since an arbitrary start; never goes back. `CLOCK_MONOTONIC` (clock_gettime(2)).
    @inlinable
    public static func now() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
    }

    /// The same in milliseconds.
    public static func milliseconds() -> Int64 { now() / 1_000_000 }

    /// The same in seconds.
    public static func seconds() -> Double { Double(now()) / 1e9 }

    /// Sleeps for `seconds`, not at all if they are less than 0.
    public static func sleep(seconds: Double) {
        let end = now() + Int64(seconds * 1e9)
        while case let left = end - now(), left > 0 {
            var time = timespec(tv_sec: Int(left / 1_000_000_000), tv_nsec: Int(left % 1_000_000_000))
            // A signal may wake it early.
            nanosleep(&time, nil)
        }
    }

    /// Looks again and again whether something is so, for what no ``Condition`` and no ``WaitableFlag`` tells.
    ///
    /// - Parameters:
    ///   - milliseconds: The longest wait; nil where only `end` bounds it.
    ///   - end: An instant of this clock that ends it too.
    ///   - pause: Microseconds between two looks.
    /// - Returns: Whether it is so.
    @discardableResult
    public static func wait(
        milliseconds: Int? = nil, until end: Int64 = .max, lookingEvery pause: UInt32 = 1000, for isSo: () -> Bool
    ) -> Bool {
        let end = milliseconds.map { min(end, now() + Int64($0) * 1_000_000) } ?? end
        while !isSo() {
            guard now() < end else { return false }
            usleep(pause)
        }
        return true
    }
}
