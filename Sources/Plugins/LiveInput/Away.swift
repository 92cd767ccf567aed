// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// When a source that is away is looked for, and when the next picture in its place is due. Pure.
package struct Away {
    package private(set) var since: Int64 = 0
    package private(set) var reason = ""
    package private(set) var nextTry: Int64 = 0
    package var nextPicture: Int64 = 0
    /// Why it could not be used when it was there.
    package var fault = ""
    private var backoff = Backoff()

    package init() {}

    package mutating func begin(now: Int64, reason: String) {
        self = Away()
        (since, self.reason, nextPicture) = (now, reason, now)
        nextTry = now + backoff.next()
    }

    package mutating func failed(now: Int64) { nextTry = now + backoff.next() }
}

/// From one attempt to the next: 0.1 s, then twice as long each time, a second at most; so what comes back at once is
/// seen at once. Pure.
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

    /// It was there: the next loss begins anew.
    package mutating func reset() { pause = Self.shortest }
}

extension Rational {
    /// How long one frame lasts; zero when unknown.
    package var period: MediaTime {
        numerator > 0
            ? MediaTime(nanoseconds: Int64(denominator) * 1_000_000_000 / Int64(numerator)) : .zero
    }
}
