// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The pauses between attempts: 0.1 s, then twice as long each time, at most a second. A source that comes back at once
/// is found at once. Pure.
package struct Backoff {
    private static let shortest: Int64 = 100_000_000
    private static let longest: Int64 = 1_000_000_000
    private var pause = shortest

    package init() {}

    /// Nanoseconds until the next attempt.
    package mutating func next() -> Int64 {
        defer { pause = min(2 * pause, Self.longest) }
        return pause
    }

    /// Starts again with the shortest pause, since the source was there.
    package mutating func reset() { pause = Self.shortest }
}

extension Rational {
    /// How long one frame lasts; zero when unknown.
    package var period: MediaTime {
        numerator > 0
            ? MediaTime(nanoseconds: Int64(denominator) * 1_000_000_000 / Int64(numerator)) : .zero
    }
}
