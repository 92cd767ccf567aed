// SPDX-License-Identifier: Apache-2.0

/// Limits how often a password or token can be guessed. A value without clock; times are nanoseconds. Its size is fixed.
///
/// After ``freeTries`` wrong tries an address waits: 1 s, then twice as long after each further one, up to
/// ``longestPause``. Other addresses do not wait. Where a name is guessed from many addresses, each address has one try
/// before its first pause, so that many addresses gain little, and whoever knows the password always has a try at once
/// where nobody else guesses. So nobody can lock the owner out.
///
/// The same wrong secret again counts once: it tells nobody more, and programs repeat what they were given.
public struct LoginTries: Sendable {
    /// Wrong tries of an address before its first pause.
    public static let freeTries = 5
    /// Nanoseconds.
    public static let longestPause: Int64 = 60_000_000_000
    /// An address is forgotten after this time without a wrong try.
    public static let memory: Int64 = 600_000_000_000
    /// Addresses that are kept.
    public static let mostAddresses = 1024
    /// Names that are kept.
    public static let mostNames = 256
    /// Wrong tries of a name, of all addresses together, after which it counts as guessed.
    public static let namePatience = 20
    /// The time between two reports.
    public static let interval: Int64 = 10_000_000_000
    /// The most addresses that are reported at once. The others wait for their turn.
    public static let mostNews = 4

    /// Wrong tries of an address since its last report.
    public struct News: Sendable, Equatable {
        /// Where they came from.
        public var address: PeerAddress
        /// How many.
        public var count: Int
        /// Since the address was first seen here.
        public var total: Int
        /// The name of the last one, as it was sent.
        public var name: String?
    }

    private struct Entry: Sendable {
        /// Tries that count for the pause.
        var wrong = 0
        var last: Int64
        var until: Int64 = .min
        var secret: Int?
        var unreported = 0
        var total = 0
        var name: String?
    }

    private struct Name: Sendable {
        var wrong = 0
        var last: Int64
    }

    private var addresses: [PeerAddress: Entry] = [:]
    private var names: [Int: Name] = [:]
    private var toldAt: Int64?

    /// Without tries.
    public init() {}

    /// What is kept at the moment.
    public var count: (addresses: Int, names: Int) { (addresses.count, names.count) }

    /// Seconds that an address has to wait for its next try; nil where it need not.
    public func pause(of address: PeerAddress, now: Int64) -> Int? {
        guard let until = addresses[address]?.until, until > now else { return nil }
        return Int((until - now + 999_999_999) / 1_000_000_000)
    }

    /// A wrong try.
    ///
    /// - Parameters:
    ///   - name: As it was sent; nil for a token.
    ///   - secret: What was sent, of which only a keyed hash is kept.
    public mutating func failed(_ address: PeerAddress, name: String?, secret: String, now: Int64) {
        var entry = addresses[address] ?? Entry(last: now)
        if now - entry.last >= Self.memory { (entry.wrong, entry.secret, entry.until) = (0, nil, .min) }
        entry.unreported += 1
        entry.total += 1
        entry.name = name.map(Self.shown)
        let hash = Self.hash(name, secret)
        let isNew = hash != entry.secret
        entry.secret = hash
        entry.last = now
        if isNew {
            entry.wrong += 1
            let free = isGuessed(name, now) ? 1 : Self.freeTries
            if entry.wrong >= free {
                let doublings = min(entry.wrong - free, 6)
                entry.until = now + min(1_000_000_000 << Int64(doublings), Self.longestPause)
            }
            count(name, now)
        }
        if addresses[address] == nil, addresses.count >= Self.mostAddresses { forgetOne(now) }
        addresses[address] = entry
    }

    private func isGuessed(_ name: String?, _ now: Int64) -> Bool {
        guard let found = names[Self.hash(name, "")] else { return false }
        return found.wrong >= Self.namePatience && now - found.last < Self.memory
    }

    private mutating func count(_ name: String?, _ now: Int64) {
        let key = Self.hash(name, "")
        var found = names[key] ?? Name(last: now)
        if now - found.last >= Self.memory { found.wrong = 0 }
        found.wrong += 1
        found.last = now
        if names[key] == nil, names.count >= Self.mostNames,
            // The one that was tried least, so that invented names do not push out one that is guessed.
            let least = names.min(by: { ($0.value.wrong, $0.value.last) < ($1.value.wrong, $1.value.last) })?.key
        {
            names[least] = nil
        }
        names[key] = found
    }

    /// The address that has to wait the least, and of these the one that was quiet for the longest time.
    private mutating func forgetOne(_ now: Int64) {
        let least = addresses.min { a, b in
            (max(a.value.until, now), a.value.last) < (max(b.value.until, now), b.value.last)
        }
        if let least { addresses[least.key] = nil }
    }

    /// What to report now, at most ``mostNews``.
    public mutating func takeNews(now: Int64) -> [News] {
        guard toldAt.map({ now - $0 >= Self.interval }) ?? true else { return [] }
        var news: [News] = []
        for (address, entry) in addresses {
            if entry.unreported == 0 {
                if now - entry.last >= Self.memory { addresses[address] = nil }
                continue
            }
            guard news.count < Self.mostNews else { continue }
            news.append(News(address: address, count: entry.unreported, total: entry.total, name: entry.name))
            addresses[address]?.unreported = 0
        }
        if !news.isEmpty { toldAt = now }
        return news
    }

    /// Keyed by the process (`Hasher`).
    private static func hash(_ name: String?, _ secret: String) -> Int {
        var hasher = Hasher()
        hasher.combine(name)
        hasher.combine(secret)
        return hasher.finalize()
    }

    /// At most 64 characters, each printable.
    private static func shown(_ name: String) -> String {
        var text = ""
        for scalar in name.unicodeScalars.prefix(64) {
            text.unicodeScalars.append(UserLines.isPrintable(scalar) ? scalar : "\u{fffd}")
        }
        return text
    }
}
