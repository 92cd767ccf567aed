// SPDX-License-Identifier: Apache-2.0

/// Counts refused connections and reports them at intervals, so that a flood of connections is not a flood of events.
///
/// A value without clock; times are nanoseconds.
struct Refusals: Sendable {
    static let interval: Int64 = 10_000_000_000

    /// Refused connections since the last report, and why the newest of them was refused.
    struct News: Sendable, Equatable {
        var count: Int
        var reason: String
    }

    private(set) var total = 0
    private var news = News(count: 0, reason: "")
    private var toldAt: Int64?

    mutating func add(_ reason: String) {
        total += 1
        news = News(count: news.count + 1, reason: reason)
    }

    /// What to report now; nil where there is nothing new, or where the last report is less than ``interval`` old.
    ///
    /// - Parameter isLast: Whether nothing is reported after this, so that nothing waits.
    mutating func takeNews(now: Int64, isLast: Bool = false) -> News? {
        guard news.count > 0, isLast || toldAt.map({ now - $0 >= Self.interval }) ?? true else { return nil }
        toldAt = now
        defer { news = News(count: 0, reason: "") }
        return news
    }
}
