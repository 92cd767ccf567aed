// SPDX-License-Identifier: Apache-2.0

/// Lets `perSecond` events through each second, and as many at once after a pause.
struct RateBucket: Sendable {
    private let perSecond: Int
    private var tokens: Double
    private var filledAt: Int64

    init(perSecond: Int, now: Int64) {
        self.perSecond = perSecond
        tokens = Double(perSecond)
        filledAt = now
    }

    /// False when there were too many events. `now` in nanoseconds.
    mutating func take(now: Int64) -> Bool {
        tokens = min(tokens + Double(now - filledAt) / 1e9 * Double(perSecond), Double(perSecond))
        filledAt = now
        guard tokens >= 1 else { return false }
        tokens -= 1
        return true
    }

    /// Whether it is full, so that it need not be kept.
    func isRested(now: Int64) -> Bool { tokens + Double(now - filledAt) / 1e9 * Double(perSecond) >= Double(perSecond) }
}
