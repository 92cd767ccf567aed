// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Which connections the server keeps.
///
/// A connection is a *stranger* until it has sent a request that the gate lets through: with the token, where there is
/// one. Strangers get a few places for each address, and never the last ones. Where places are lacking, the stranger that
/// has been silent longest makes room. So whoever has the token always gets in: idle connections of others only push out
/// each other. A value without sockets or clock; times are nanoseconds.
struct ConnectionBook<Key: Hashable & Sendable>: Sendable {
    struct Limits: Sendable {
        var all = 2400
        /// Strangers of one address. Behind a proxy all clients have one.
        var strangersPerAddress = 64
        /// How long a stranger may send no complete request.
        var patience: Int64 = 10_000_000_000

        /// The rest is for those who have the token.
        var strangers: Int { max(all - max(all / 4, 1), 1) }
    }

    enum Entrance: Equatable, Sendable {
        /// It has a place, which another one has left for it.
        case taken(pushedOut: Key?)
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

    let limits: Limits
    private var entries: [Key: Entry] = [:]
    private var strangers: [PeerAddress: Int] = [:]
    private var strangerCount = 0
    /// Connections that are kept though they got one of the last descriptors. While there are any, descriptors are lacking,
    /// also where the next connection gets a lower number, which another one has left.
    private var short: Set<Key> = []

    init(_ limits: Limits = Limits()) { self.limits = limits }

    var count: Int { entries.count }
    var keys: [Key] { Array(entries.keys) }

    /// A connection was accepted.
    ///
    /// - Parameter isShort: Whether it got one of the last descriptors: then another one has to go for it in any case.
    mutating func open(_ key: Key, _ address: PeerAddress, isShort: Bool = false, now: Int64) -> Entrance {
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
    mutating func welcome(_ key: Key) {
        guard let entry = entries[key], entry.isStranger else { return }
        entries[key]?.isStranger = false
        count(entry.address, -1)
    }

    mutating func beginAnswer(_ key: Key) { entries[key]?.answering += 1 }

    mutating func endAnswer(_ key: Key, now: Int64) {
        guard let entry = entries[key], entry.answering > 0 else { return }
        entries[key]?.answering -= 1
        entries[key]?.since = now
    }

    mutating func close(_ key: Key) {
        guard let entry = entries.removeValue(forKey: key) else { return }
        short.remove(key)
        if entry.isStranger { count(entry.address, -1) }
    }

    /// Strangers that have sent no complete request for too long. They are closed.
    mutating func expire(now: Int64) -> [Key] {
        guard strangerCount > 0 else { return [] }
        let late = entries.filter { $0.value.isStranger && isForgotten($0.value, now) }
        for key in late.keys { close(key) }
        return Array(late.keys)
    }
}

/// Where a connection comes from: an IPv4 address, or the network (/64) of an IPv6 address, which one client has whole.
struct PeerAddress: Hashable, Sendable {
    private let network: UInt64
    private let isIPv6: Bool

    init(v4: UInt32) { (network, isIPv6) = (UInt64(v4), false) }

    /// - Parameter bytes: The 16 bytes of an address.
    init(v6 bytes: [UInt8]) {
        let isMapped = bytes[..<10].allSatisfy { $0 == 0 } && bytes[10] == 255 && bytes[11] == 255
        network = (isMapped ? bytes[12...] : bytes[..<8]).reduce(0) { $0 << 8 | UInt64($1) }
        isIPv6 = !isMapped
    }

    /// This machine.
    static let local = PeerAddress(v4: 0x7f00_0001)

    /// As a person writes it: `192.0.2.7`, or `2001:db8:0:1::/64`.
    var text: String {
        guard isIPv6 else {
            return [24, 16, 8, 0].map { String(network >> UInt64($0) & 255) }.joined(separator: ".")
        }
        let groups = [48, 32, 16, 0].map { String(network >> UInt64($0) & 0xffff, radix: 16) }
        return "\(groups.joined(separator: ":"))::/64"
    }

    /// Of the other end of a socket; all clients without an address count as one.
    init(of socket: Int32) {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let result = withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(socket, $0, &length) }
        }
        guard result == 0 else {
            self.init(v4: 0)
            return
        }
        self = withUnsafePointer(to: &storage) { pointer in
            if Int32(pointer.pointee.ss_family) == AF_INET6 {
                pointer.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) { v6 in
                    PeerAddress(v6: withUnsafeBytes(of: v6.pointee.sin6_addr) { Array($0) })
                }
            } else {
                pointer.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
                    PeerAddress(v4: UInt32(bigEndian: $0.pointee.sin_addr.s_addr))
                }
            }
        }
    }
}
