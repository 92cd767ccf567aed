// SPDX-License-Identifier: Apache-2.0

/// Lets through so many events a second, and as many at once after a rest.
struct RateBucket: Sendable {
    private let perSecond: Int
    private var tokens: Double
    private var filledAt: Int64

    init(perSecond: Int, now: Int64) {
        self.perSecond = perSecond
        tokens = Double(perSecond)
        filledAt = now
    }

    /// False for an event too many. `now` in nanoseconds.
    mutating func take(now: Int64) -> Bool {
        tokens = min(tokens + Double(now - filledAt) / 1e9 * Double(perSecond), Double(perSecond))
        filledAt = now
        guard tokens >= 1 else { return false }
        tokens -= 1
        return true
    }

    /// True when it is as full as it can be: it remembers nothing.
    func isRested(now: Int64) -> Bool { tokens + Double(now - filledAt) / 1e9 * Double(perSecond) >= Double(perSecond) }
}
