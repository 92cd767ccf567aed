// SPDX-License-Identifier: Apache-2.0

import ServerAccess

/// The server's nonces of HTTP digest, and how often each was used (RFC 2617, 3.2.2). A value without clock; times are
/// nanoseconds.
///
/// A nonce is its time, a number and a keyed digest of both, so a stranger who asks for many costs no memory. Only
/// those that somebody who knows a password has used are kept.
struct NonceBook: Sendable {
    /// How long a nonce is good.
    static let life: Int64 = 300_000_000_000
    static let most = 1024

    enum Verdict: Sendable, Equatable {
        case good
        /// Of this server, but too old, or used before: the client tries again with a new one.
        case stale
        case forged
    }

    private struct Used {
        var made: Int64
        var highest: UInt32
        /// The counts below the highest one that were used: bit 0 is the highest itself.
        var window: UInt64
    }

    private let key: [UInt8]
    private var number: UInt32 = 0
    private var used: [String: Used] = [:]
    /// Nonces that were made at this time or before are stale.
    private var floor = Int64.min
    private let most: Int

    /// - Parameter key: Random bytes.
    init(key: [UInt8], most: Int = most) { (self.key, self.most) = (key, max(most, 1)) }

    /// Whether `random` gives the bytes of a key.
    static func randomKey() -> [UInt8] {
        var random = SystemRandomNumberGenerator()
        return (0..<32).map { _ in UInt8.random(in: .min ... .max, using: &random) }
    }

    var count: Int { used.count }

    mutating func make(now: Int64) -> String {
        number &+= 1
        return nonce(made: now, number)
    }

    private func nonce(made: Int64, _ number: UInt32) -> String {
        let head = Self.hex(UInt64(bitPattern: made), 16) + Self.hex(UInt64(number), 8)
        return head + ASCII.hex(MessageDigest.sha256(key + Array(head.utf8)).prefix(16))
    }

    private static func hex(_ number: UInt64, _ digits: Int) -> String {
        let text = String(number, radix: 16)
        return String(repeating: "0", count: max(digits - text.count, 0)) + text
    }

    /// When a nonce was made; nil where this server did not make it.
    private func made(_ nonce: String) -> Int64? {
        let text = Array(nonce.utf8)
        guard text.count == 56, let made = UInt64(String(decoding: text[..<16], as: UTF8.self), radix: 16),
            let number = UInt32(String(decoding: text[16..<24], as: UTF8.self), radix: 16),
            Secrets.isEqual(self.nonce(made: Int64(bitPattern: made), number), nonce)
        else { return nil }
        return Int64(bitPattern: made)
    }

    /// Uses a nonce for a request whose digest is right.
    ///
    /// - Parameter count: The client's number of the request with this nonce, from 1 on.
    mutating func take(_ nonce: String, count: UInt32, now: Int64) -> Verdict {
        guard let made = made(nonce) else { return .forged }
        guard made > floor, made <= now, now - made < Self.life, count > 0 else { return .stale }
        guard var entry = used[nonce] else {
            makeRoom(now)
            guard made > floor else { return .stale }
            used[nonce] = Used(made: made, highest: count, window: 1)
            return .good
        }
        if count > entry.highest {
            let step = count - entry.highest
            entry.window = step < 64 ? entry.window << UInt64(step) | 1 : 1
            entry.highest = count
        } else {
            let back = entry.highest - count
            guard back < 64, entry.window & 1 << UInt64(back) == 0 else { return .stale }
            entry.window |= 1 << UInt64(back)
        }
        used[nonce] = entry
        return .good
    }

    private mutating func makeRoom(_ now: Int64) {
        guard used.count >= most else { return }
        used = used.filter { now - $0.value.made < Self.life }
        guard used.count >= most else { return }
        let times = used.values.map(\.made).sorted()
        floor = max(floor, times[times.count / 4])
        used = used.filter { $0.value.made > floor }
    }
}
