// SPDX-License-Identifier: Apache-2.0

import ServerAccess

/// Counts wrong passwords, and requests from addresses that may not ask, by address and path. They are reported at
/// intervals, so that a brute-force attack is visible and cannot flood the log.
///
/// A value without clock; times are nanoseconds. Its size is bounded by ``mostEntries``. What does not fit is counted
/// in the totals, and reported together.
struct FailedLogins: Sendable {
    /// The time between two reports of the same address and path.
    static let interval: Int64 = 10_000_000_000
    /// The most reports at once. The others wait for their turn.
    static let mostNews = 4
    static let mostEntries = 1024

    enum Kind: Sendable {
        case password
        /// The address is not among those that the path allows.
        case address
    }

    /// Failures of one address at one path since its last report.
    struct News: Sendable, Equatable {
        /// Nil for the addresses that were too many to be counted separately.
        var address: IPAddress?
        var path: String
        var count: Int
        /// Since the address was first seen here.
        var total: Int
        var kind = Kind.password
    }

    private struct Key: Hashable {
        var kind: Kind
        var address: IPAddress?
        var path: String
    }

    private struct Entry {
        var count = 0
        var total = 0
        var toldAt: Int64?
        /// Nil once everything was reported.
        var place: UInt64?
    }

    private var entries: [Key: Entry] = [:]
    /// By the time of the first unreported failure, oldest first: the one that waits longest is reported first.
    private var waiting: [(place: UInt64, key: Key)] = []
    private var nextPlace: UInt64 = 0
    /// Wrong passwords of each path.
    private(set) var totals: [String: Int] = [:]

    mutating func add(_ address: IPAddress, _ path: String, _ kind: Kind = .password) {
        if kind == .password { totals[path, default: 0] += 1 }
        var key = Key(kind: kind, address: address, path: path)
        if entries[key] == nil, entries.count >= Self.mostEntries { key.address = nil }
        var entry = entries[key] ?? Entry()
        entry.count += 1
        entry.total += 1
        if entry.place == nil {
            entry.place = nextPlace
            waiting.append((nextPlace, key))
            nextPlace += 1
        }
        entries[key] = entry
    }

    /// What to report now, at most ``mostNews``. Entries are forgotten six intervals after their last report.
    ///
    /// - Parameter path: A path that ends: all its failures are reported, whatever their age.
    mutating func takeNews(now: Int64, endOf path: String? = nil) -> [News] {
        var news: [News] = []
        var left: [(place: UInt64, key: Key)] = []
        for (place, key) in waiting {
            guard var entry = entries[key] else { continue }
            let isDue = path.map { $0 == key.path } ?? (entry.toldAt.map { now - $0 >= Self.interval } ?? true)
            guard isDue, news.count < Self.mostNews else {
                left.append((place, key))
                continue
            }
            news.append(
                News(address: key.address, path: key.path, count: entry.count, total: entry.total, kind: key.kind))
            entry.count = 0
            entry.place = nil
            entry.toldAt = now
            entries[key] = entry
        }
        waiting = left
        if let path, news.count == Self.mostNews { news += rest(of: path) }
        if path == nil { forget(now: now) }
        return news
    }

    /// The unreported failures of a path that ends, as one report.
    private mutating func rest(of path: String) -> [News] {
        let open = waiting.filter { $0.key.path == path }
        waiting.removeAll { $0.key.path == path }
        var counts: [Kind: Int] = [:]
        for (_, key) in open { counts[key.kind, default: 0] += entries.removeValue(forKey: key)?.count ?? 0 }
        return counts.map { News(address: nil, path: path, count: $1, total: $1, kind: $0) }
    }

    private mutating func forget(now: Int64) {
        for (key, entry) in entries
        where entry.place == nil && entry.toldAt.map({ now - $0 >= 6 * Self.interval }) ?? true {
            entries[key] = nil
        }
    }
}
