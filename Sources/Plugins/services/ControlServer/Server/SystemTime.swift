// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Nanoseconds of the monotonic clock, whatever clock the chain has.
enum SystemTime {
    private static let clock = ChainClock()
    static func now() -> Int64 { clock.now() }

    /// Waits until something is so.
    ///
    /// - Parameters:
    ///   - milliseconds: The longest wait.
    ///   - end: An instant of this clock that ends it too.
    static func wait(_ milliseconds: Int, until end: Int64, _ isSo: () -> Bool) {
        let end = min(end, now() + Int64(milliseconds) * 1_000_000)
        while !isSo(), now() < end { usleep(1000) }
    }
}
