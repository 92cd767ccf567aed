// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Which connections the server keeps.
///
/// A connection is a *stranger* until it has sent a request that the gate lets through: with the token, where there is
/// one. Strangers get a few places for each address, and never the last ones. Where places are lacking, the stranger that
/// has been silent longest makes room. So whoever has the token always gets in: idle connections of others only push out
/// each other. A value without sockets or clock; times are nanoseconds.
public struct ConnectionBook<Key: Hashable & Sendable>: Sendable {
    /// How many connections, and for how long.
    public struct Limits: Sendable {
        /// Of all clients together.
        public var all: Int
        /// Strangers of one address. Behind a proxy all clients have one.
        public var strangersPerAddress: Int
        /// How long a stranger may send no complete request.
        public var patience: Int64

        /// Limits, which are those of the control server unless given.
        public init(all: Int = 2400, strangersPerAddress: Int = 64, patience: Int64 = 10_000_000_000) {
            (self.all, self.strangersPerAddress, self.patience) = (all, strangersPerAddress, patience)
        }

        /// The rest is for those who have the token.
        public var strangers: Int { max(all - max(all / 4, 1), 1) }
    }

    /// Whether a connection has a place.
    public enum Entrance: Equatable, Sendable {
        /// It has a place, which another one has left for it.
        case taken(pushedOut: Key?)
        /// There is none.
        case refused
    }

    private struct Entry: Sendable {
        var address: PeerAddress
        var isStranger = true
        /// Requests that are being answered, streams too.
        var answering = 0
        /// When it came, or when its last answer ended.
        var since: Int64
    }

    /// As given at first.
    public let limits: Limits
    private var entries: [Key: Entry] = [:]
    private var strangers: [PeerAddress: Int] = [:]
    private var strangerCount = 0
    /// Connections that are kept though they got one of the last descriptors. While there are any, descriptors are lacking,
    /// also where the next connection gets a lower number, which another one has left.
    private var short: Set<Key> = []

    /// A book without connections.
    public init(_ limits: Limits = Limits()) { self.limits = limits }

    /// How many there are.
    public var count: Int { entries.count }
    /// All of them.
    public var keys: [Key] { Array(entries.keys) }

    /// A connection was accepted.
    ///
    /// - Parameter isShort: Whether it got one of the last descriptors: then another one has to go for it in any case.
    public mutating func open(_ key: Key, _ address: PeerAddress, isShort: Bool = false, now: Int64) -> Entrance {
        var pushedOut: Key?
        if strangers[address] ?? 0 >= limits.strangersPerAddress {
            pushedOut = longestSilent { $0.isStranger && $0.address == address }
        } else if isShort || !short.isEmpty || entries.count >= limits.all || strangerCount >= limits.strangers {
            let isFull = isShort || entries.count >= limits.all
            pushedOut = longestSilent { $0.isStranger } ?? (isFull ? longestSilent { isForgotten($0, now) } : nil)
            guard pushedOut != nil || (!isFull && strangerCount < limits.strangers) else { return .refused }
        }
        if let pushedOut { close(pushedOut) }
        entries[key] = Entry(address: address, since: now)
        if isShort { short.insert(key) }
        count(address, 1)
        return .taken(pushedOut: pushedOut)
    }

    /// Somebody may just be about to send the next request.
    private func isForgotten(_ entry: Entry, _ now: Int64) -> Bool {
        entry.answering == 0 && now - entry.since > limits.patience
    }

    /// Those that are being answered come last.
    private func longestSilent(_ isMeant: (Entry) -> Bool) -> Key? {
        entries.filter { isMeant($0.value) }.min {
            ($0.value.answering > 0 ? 1 : 0, $0.value.since) < ($1.value.answering > 0 ? 1 : 0, $1.value.since)
        }?.key
    }

    private mutating func count(_ address: PeerAddress, _ change: Int) {
        strangerCount += change
        let count = (strangers[address] ?? 0) + change
        strangers[address] = count > 0 ? count : nil
    }

    /// The gate has let a request through.
    public mutating func welcome(_ key: Key) {
        guard let entry = entries[key], entry.isStranger else { return }
        entries[key]?.isStranger = false
        count(entry.address, -1)
    }

    /// A request of it is being answered.
    public mutating func beginAnswer(_ key: Key) { entries[key]?.answering += 1 }

    /// The answer has ended.
    public mutating func endAnswer(_ key: Key, now: Int64) {
        guard let entry = entries[key], entry.answering > 0 else { return }
        entries[key]?.answering -= 1
        entries[key]?.since = now
    }

    /// It has gone.
    public mutating func close(_ key: Key) {
        guard let entry = entries.removeValue(forKey: key) else { return }
        short.remove(key)
        if entry.isStranger { count(entry.address, -1) }
    }

    /// Strangers that have sent no complete request for too long. They are closed.
    public mutating func expire(now: Int64) -> [Key] {
        guard strangerCount > 0 else { return [] }
        let late = entries.filter { $0.value.isStranger && isForgotten($0.value, now) }
        for key in late.keys { close(key) }
        return Array(late.keys)
    }
}
