// SPDX-License-Identifier: Apache-2.0

/// An IPv4 or IPv6 address as 16 bytes; IPv4 as `::ffff:a.b.c.d` (RFC 4291, 2.5.5.2), so that both ways of writing one
/// are equal.
public struct IPAddress: Sendable, Hashable, CustomStringConvertible {
    /// The first eight bytes.
    public var high: UInt64
    /// The last eight bytes.
    public var low: UInt64

    /// The 16 bytes as two numbers.
    public init(high: UInt64, low: UInt64) {
        self.high = high
        self.low = low
    }

    /// An address of the version 4, as a number.
    public init(v4: UInt32) {
        high = 0
        low = 0xffff_0000_0000 | UInt64(v4)
    }

    /// `127.0.0.1`.
    public static let loopback = IPAddress(v4: 0x7f00_0001)

    /// Whether it is of the version 4, mapped or not.
    public var isIPv4: Bool { high == 0 && low >> 32 == 0xffff }
    /// Whether only programs of this machine reach it.
    public var isLoopback: Bool { isIPv4 ? low >> 24 & 0xff == 127 : high == 0 && low == 1 }

    /// Dotted quad, or RFC 4291 text; an interface's name after `%` is left out. Nil for anything else.
    public init?(_ text: some StringProtocol) {
        let text = text.prefix { $0 != "%" }
        if !text.contains(":") {
            guard let word = Self.quad(text) else { return nil }
            self.init(v4: word)
            return
        }
        guard text.utf8.count <= 45, let groups = Self.groups(String(text)) else { return nil }
        self.init(
            high: groups[..<4].reduce(0) { $0 << 16 | UInt64($1) },
            low: groups[4...].reduce(0) { $0 << 16 | UInt64($1) })
    }

    private static func quad(_ text: some StringProtocol) -> UInt32? {
        let parts = text.split(separator: ".", omittingEmptySubsequences: false)
        guard parts.count == 4 else { return nil }
        var word: UInt32 = 0
        for part in parts {
            guard part.utf8.count <= 3, let number = ASCII.number(part, atMost: 255) else { return nil }
            word = word << 8 | UInt32(number)
        }
        return word
    }

    /// The eight groups of an IPv6 address.
    private static func groups(_ text: String) -> [UInt16]? {
        func parse(_ text: Substring, isEnd: Bool = true) -> [UInt16]? {
            guard !text.isEmpty else { return [] }
            var groups: [UInt16] = []
            let parts = text.split(separator: ":", omittingEmptySubsequences: false)
            for (index, part) in parts.enumerated() {
                if isEnd, index == parts.count - 1, part.contains(".") {
                    guard let word = quad(part) else { return nil }
                    groups += [UInt16(word >> 16), UInt16(word & 0xffff)]
                } else {
                    guard !part.isEmpty, part.utf8.count <= 4, part.utf8.allSatisfy({ ASCII.hexDigit($0) != nil }),
                        let group = UInt16(part, radix: 16)
                    else { return nil }
                    groups.append(group)
                }
            }
            return groups
        }
        guard let gap = text.firstRange(of: "::") else {
            let all = parse(text[...])
            return all?.count == 8 ? all : nil
        }
        guard let before = parse(text[..<gap.lowerBound], isEnd: false), let after = parse(text[gap.upperBound...]),
            before.count + after.count < 8
        else {
            return nil
        }
        return before + Array(repeating: 0, count: 8 - before.count - after.count) + after
    }

    /// RFC 5952 text; IPv4 as a dotted quad.
    public var description: String {
        if isIPv4 {
            return [24, 16, 8, 0].map { (bits: UInt64) in "\(low >> bits & 0xff)" }.joined(separator: ".")
        }
        let groups = [high, low].flatMap { (half: UInt64) -> [UInt16] in
            [48, 32, 16, 0].map { (bits: UInt64) in UInt16(truncatingIfNeeded: half >> bits) }
        }
        var best = 0..<0
        var index = 0
        while index < 8 {
            let end = groups[index...].firstIndex { $0 != 0 } ?? 8
            if end - index > max(best.count, 1) { best = index..<end }
            index = max(end, index + 1)
        }
        func text(_ part: some Sequence<UInt16>) -> String { part.map { String($0, radix: 16) }.joined(separator: ":") }
        return best.isEmpty ? text(groups) : text(groups[..<best.lowerBound]) + "::" + text(groups[best.upperBound...])
    }
}

/// Addresses that share a prefix: `192.168.1.0/24`, `fd00::/8`, or one address alone (RFC 4632).
public struct AddressRange: Sendable, Equatable {
    private let base: IPAddress
    private let prefixBits: Int

    /// Nil for a text that is not such a range.
    public init?(_ text: String) {
        let parts = text.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 1 || parts.count == 2, let address = IPAddress(parts[0]) else { return nil }
        base = address
        guard parts.count == 2 else {
            prefixBits = 128
            return
        }
        let isQuad = !parts[0].contains(":")
        guard let bits = ASCII.number(parts[1], atMost: isQuad ? 32 : 128) else { return nil }
        prefixBits = Int(bits) + (isQuad ? 96 : 0)
    }

    /// Whether the address lies in it.
    public func contains(_ address: IPAddress) -> Bool {
        let highMask: UInt64 = prefixBits == 0 ? 0 : prefixBits >= 64 ? .max : .max << UInt64(64 - prefixBits)
        let lowMask: UInt64 = prefixBits <= 64 ? 0 : prefixBits == 128 ? .max : .max << UInt64(128 - prefixBits)
        return (address.high ^ base.high) & highMask == 0 && (address.low ^ base.low) & lowMask == 0
    }
}
