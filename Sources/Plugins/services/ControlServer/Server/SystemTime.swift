// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Nanoseconds of the monotonic clock, whatever clock the chain has.
enum SystemTime {
    private static let clock = ChainClock()
    static func now() -> Int64 { clock.now() }
}
