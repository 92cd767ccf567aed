// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Where a connection comes from: an IPv4 address, or the network (/64) of an IPv6 address, which one client has whole.
public struct PeerAddress: Hashable, Sendable {
    private let network: UInt64
    private let isIPv6: Bool

    /// An address of the version 4, as a number.
    public init(v4: UInt32) { (network, isIPv6) = (UInt64(v4), false) }

    /// The network of an address of the version 6; one of the version 4 that is mapped counts as that.
    ///
    /// - Parameter bytes: The 16 bytes of an address.
    public init(v6 bytes: [UInt8]) {
        let isMapped = bytes[..<10].allSatisfy { $0 == 0 } && bytes[10] == 255 && bytes[11] == 255
        network = (isMapped ? bytes[12...] : bytes[..<8]).reduce(0) { $0 << 8 | UInt64($1) }
        isIPv6 = !isMapped
    }

    /// This machine.
    public static let local = PeerAddress(v4: 0x7f00_0001)

    /// As a person writes it: `192.0.2.7`, or `2001:db8:0:1::/64`.
    public var text: String {
        guard isIPv6 else {
            return [24, 16, 8, 0].map { String(network >> UInt64($0) & 255) }.joined(separator: ".")
        }
        let groups = [48, 32, 16, 0].map { String(network >> UInt64($0) & 0xffff, radix: 16) }
        return "\(groups.joined(separator: ":"))::/64"
    }

    /// Of the other end of a socket; all clients without an address count as one.
    public init(of socket: Int32) {
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
