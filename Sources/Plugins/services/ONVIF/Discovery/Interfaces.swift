// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The IPv4 addresses of this machine that multicast reaches.
struct Interface: Sendable, Hashable {
    var name: String
    /// Network byte order made into a number of this machine: 192.0.2.7 is 0xc0000207.
    var address: UInt32
    var mask: UInt32

    var text: String { [24, 16, 8, 0].map { String(address >> UInt32($0) & 255) }.joined(separator: ".") }

    /// [any thread] Those that are up and can multicast (getifaddrs(3)). Loopback is not among them.
    static func all() -> [Interface] {
        MachineAddress.entries { entry in
            guard Int32(truncatingIfNeeded: entry.ifa_flags) & Int32(IFF_MULTICAST) != 0,
                let address = ipv4(entry.ifa_addr), let mask = ipv4(entry.ifa_netmask)
            else { return nil }
            return Interface(name: String(cString: entry.ifa_name), address: address, mask: mask)
        }
    }

    private static func ipv4(_ address: UnsafeMutablePointer<sockaddr>?) -> UInt32? {
        MachineAddress.bytes(address).flatMap { bytes in
            bytes.count == 4 ? bytes.reduce(0) { $0 << 8 | UInt32($1) } : nil
        }
    }

    /// Whether an address is in the interface's network.
    func reaches(_ other: UInt32) -> Bool { address & mask == other & mask }
}

/// An address of this machine, of the version 4 or 6, with its interface.
struct MachineAddress: Sendable, Hashable {
    var interface: String
    /// 4 or 16, in network byte order.
    var bytes: [UInt8]
    var prefixLength: Int

    var isIPv6: Bool { bytes.count == 16 }

    var text: String {
        var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
        guard inet_ntop(isIPv6 ? AF_INET6 : AF_INET, bytes, &text, socklen_t(text.count)) != nil else { return "" }
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// [any thread] Those of interfaces that are up. Loopback is not among them.
    static func all() -> [MachineAddress] {
        entries { entry in
            guard let bytes = bytes(entry.ifa_addr) else { return nil }
            let mask = self.bytes(entry.ifa_netmask) ?? []
            return MachineAddress(
                interface: String(cString: entry.ifa_name), bytes: bytes,
                prefixLength: mask.reduce(0) { $0 + $1.nonzeroBitCount })
        }
    }

    /// The one of a connection.
    ///
    /// - Parameter host: The connection's own end, as a URL has it: `192.0.2.7`, `[2001:db8::7]`.
    /// - Returns: The first of all where the connection came in over loopback; nil if there is none.
    static func used(by host: String, of all: [MachineAddress]) -> MachineAddress? {
        let bytes = parsed(host)
        return all.first { $0.bytes == bytes } ?? all.first
    }

    /// Of a text. An address of the version 4 that is mapped into the version 6 counts as that.
    private static func parsed(_ host: String) -> [UInt8]? {
        let text = String(host.filter { $0 != "[" && $0 != "]" }.prefix { $0 != "%" })
        var bytes = [UInt8](repeating: 0, count: 16)
        if inet_pton(AF_INET, text, &bytes) == 1 { return Array(bytes[..<4]) }
        guard inet_pton(AF_INET6, text, &bytes) == 1 else { return nil }
        let isMapped = bytes[..<10].allSatisfy { $0 == 0 } && bytes[10] == 255 && bytes[11] == 255
        return isMapped ? Array(bytes[12...]) : bytes
    }

    /// What is taken of each address of interfaces that are up and not loopback (getifaddrs(3)).
    fileprivate static func entries<Result>(_ take: (ifaddrs) -> Result?) -> [Result] {
        var first: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&first) == 0 else { return [] }
        defer { freeifaddrs(first) }
        var result: [Result] = []
        var next = first
        while let entry = next {
            next = entry.pointee.ifa_next
            let flags = Int32(truncatingIfNeeded: entry.pointee.ifa_flags)
            guard flags & Int32(IFF_UP) != 0, flags & Int32(IFF_LOOPBACK) == 0 else { continue }
            if let one = take(entry.pointee) { result.append(one) }
        }
        return result
    }

    fileprivate static func bytes(_ address: UnsafeMutablePointer<sockaddr>?) -> [UInt8]? {
        guard let address else { return nil }
        switch Int32(address.pointee.sa_family) {
        case AF_INET:
            return address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
                withUnsafeBytes(of: $0.pointee.sin_addr) { Array($0) }
            }
        case AF_INET6:
            return address.withMemoryRebound(to: sockaddr_in6.self, capacity: 1) {
                withUnsafeBytes(of: $0.pointee.sin6_addr) { Array($0) }
            }
        default: return nil
        }
    }
}
