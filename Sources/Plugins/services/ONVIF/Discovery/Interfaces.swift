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
        var first: UnsafeMutablePointer<ifaddrs>?
        guard getifaddrs(&first) == 0 else { return [] }
        defer { freeifaddrs(first) }
        var result: [Interface] = []
        var next = first
        while let entry = next {
            defer { next = entry.pointee.ifa_next }
            let flags = Int32(truncatingIfNeeded: entry.pointee.ifa_flags)
            guard flags & Int32(IFF_UP) != 0, flags & Int32(IFF_LOOPBACK) == 0,
                flags & Int32(IFF_MULTICAST) != 0, let address = ipv4(entry.pointee.ifa_addr),
                let mask = ipv4(entry.pointee.ifa_netmask)
            else { continue }
            result.append(
                Interface(name: String(cString: entry.pointee.ifa_name), address: address, mask: mask))
        }
        return result
    }

    private static func ipv4(_ address: UnsafeMutablePointer<sockaddr>?) -> UInt32? {
        guard let address, Int32(address.pointee.sa_family) == AF_INET else { return nil }
        return address.withMemoryRebound(to: sockaddr_in.self, capacity: 1) {
            UInt32(bigEndian: $0.pointee.sin_addr.s_addr)
        }
    }

    /// Whether an address is in the interface's network.
    func reaches(_ other: UInt32) -> Bool { address & mask == other & mask }
}
