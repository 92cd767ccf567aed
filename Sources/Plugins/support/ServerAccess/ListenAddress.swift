// SPDX-License-Identifier: Apache-2.0

import Glibc

/// An IP address of either family with a port: where the server listens.
public struct ListenAddress: Sendable, Equatable {
    /// As inet_ntop(3) writes it, without brackets.
    public var address: String
    /// From 0 on.
    public var port: Int
    /// Whether the address is of the version 6.
    public var isIPv6: Bool
    /// Whether only programs of this machine reach it.
    public var isLoopback: Bool
    /// Whether it stands for all addresses of this machine.
    public var isWildcard: Bool

    /// `127.0.0.1:8080`, `[::1]:8080` or `localhost:8080`; nil for anything else.
    public init?(_ text: String) {
        guard let (host, port) = Self.split(text) else { return nil }
        self.port = port
        if host == "localhost" {
            (address, isIPv6, isLoopback, isWildcard) = ("127.0.0.1", false, true, false)
        } else if let literal = IPLiteral(host) {
            address = literal.text
            isIPv6 = literal.isIPv6
            isLoopback = literal.isLoopback
            isWildcard = literal.isUnspecified
        } else {
            return nil
        }
    }

    /// The address as in a URL.
    public var authority: String { isIPv6 ? "[\(address)]:\(port)" : "\(address):\(port)" }

    private static func split(_ text: String) -> (host: String, port: Int)? {
        guard text.utf8.count <= 64, let colon = text.lastIndex(of: ":"),
            let port = portNumber(text[text.index(after: colon)...], from: 0)
        else { return nil }
        var host = text[..<colon]
        if host.hasPrefix("[") {
            guard host.hasSuffix("]"), host.contains(":") else { return nil }
            host = host.dropFirst().dropLast()
        } else if host.contains(":") {
            return nil
        }
        return (String(host), port)
    }
}

/// An IPv4 or IPv6 address as a person writes it.
public struct IPLiteral: Equatable {
    /// As inet_ntop(3) writes it.
    public var text: String
    /// Whether it is of the version 6.
    public var isIPv6: Bool
    /// Whether only programs of this machine reach it.
    public var isLoopback: Bool
    /// Whether it stands for all addresses of this machine.
    public var isUnspecified: Bool

    /// Nil for a text that is no address.
    public init?(_ text: String) {
        var bytes = [UInt8](repeating: 0, count: 16)
        var shown = [CChar](repeating: 0, count: 64)
        if inet_pton(AF_INET, text, &bytes) == 1 {
            isIPv6 = false
            isLoopback = bytes[0] == 127
            isUnspecified = bytes[..<4].allSatisfy { $0 == 0 }
        } else if inet_pton(AF_INET6, text, &bytes) == 1 {
            isIPv6 = true
            let isMapped = bytes[..<10].allSatisfy { $0 == 0 } && bytes[10] == 255 && bytes[11] == 255
            isLoopback = bytes[..<15].allSatisfy { $0 == 0 } && bytes[15] == 1 || isMapped && bytes[12] == 127
            isUnspecified = bytes.allSatisfy { $0 == 0 }
        } else {
            return nil
        }
        guard inet_ntop(isIPv6 ? AF_INET6 : AF_INET, bytes, &shown, socklen_t(shown.count)) != nil else { return nil }
        self.text = String(decoding: shown.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}

/// The name in a request's Host field, in lower case, and its port.
public struct HostName: Sendable, Hashable {
    /// Without brackets; an IP address as inet_ntop(3) writes it.
    public var name: String
    /// Nil where it is left out.
    public var port: Int?
    /// Whether it is an IP address.
    public var isLiteral: Bool

    /// The same name at another port.
    public func at(_ port: Int) -> HostName {
        var name = self
        name.port = port
        return name
    }

    /// RFC 9110 §7.2; nil for anything else.
    public init?(_ text: String) {
        var host = Substring(text.lowercased())
        guard !host.isEmpty, host.utf8.count <= 260 else { return nil }
        (name, port, isLiteral) = ("", nil, false)
        func digits(after colon: Substring.Index) -> Int? { portNumber(host[host.index(after: colon)...], from: 1) }
        if host.hasPrefix("[") {
            guard let end = host.firstIndex(of: "]") else { return nil }
            let after = host.index(after: end)
            if after != host.endIndex {
                guard host[after] == ":", let number = digits(after: after) else { return nil }
                port = number
                host = host[..<after]
            }
            guard host.hasSuffix("]"), let literal = IPLiteral(String(host.dropFirst().dropLast())), literal.isIPv6
            else { return nil }
            (name, isLiteral) = (literal.text, true)
            return
        }
        if let colon = host.firstIndex(of: ":") {
            guard let number = digits(after: colon) else { return nil }
            port = number
            host = host[..<colon]
        }
        if let literal = IPLiteral(String(host)) {
            (name, isLiteral) = (literal.text, true)
            return
        }
        let isName = host.utf8.allSatisfy { byte in
            (97...122).contains(byte) || (48...57).contains(byte) || byte == 45 || byte == 46 || byte == 95
        }
        guard isName, !host.isEmpty, host.utf8.count <= 253 else { return nil }
        // A name may end with the dot of the DNS root.
        if host.hasSuffix("."), host.utf8.count > 1 { host = host.dropLast() }
        (name, isLiteral) = (String(host), false)
    }
}

/// Decimal digits of a port.
private func portNumber(_ text: Substring, from lowest: Int) -> Int? {
    guard (1...5).contains(text.utf8.count), text.utf8.allSatisfy({ (48...57).contains($0) }), let port = Int(text),
        (lowest...65_535).contains(port)
    else { return nil }
    return port
}
