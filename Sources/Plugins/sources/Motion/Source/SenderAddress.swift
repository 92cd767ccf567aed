// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Who sent a datagram.
struct SenderAddress {
    /// `192.168.1.20`.
    let host: String
    private let port: String

    init(_ address: sockaddr_storage, _ length: socklen_t) {
        var address = address
        var host = [CChar](repeating: 0, count: Int(NI_MAXHOST))
        var port = [CChar](repeating: 0, count: Int(NI_MAXSERV))
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                getnameinfo(
                    pointer, length, &host, socklen_t(host.count), &port, socklen_t(port.count),
                    NI_NUMERICHOST | NI_NUMERICSERV)
            }
        }
        func text(_ letters: [CChar]) -> String {
            String(decoding: letters.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }
        self.host = result == 0 ? text(host) : "?"
        self.port = result == 0 ? text(port) : "?"
    }

    /// A sender may use a port of its own for each datagram.
    func isSameHost(as other: SenderAddress) -> Bool { host == other.host }

    /// `192.168.1.20:40000`.
    var text: String { host.utf8.contains(UInt8(ascii: ":")) ? "[\(host)]:\(port)" : "\(host):\(port)" }
}

extension SocketPlace {
    /// Whether the address is numeric, so that no name is looked up.
    var isNumeric: Bool {
        var bytes = in6_addr()
        return inet_pton(isIPv6 ? AF_INET6 : AF_INET, address, &bytes) == 1
    }

    /// Binds a socket; returns an errno where that fails.
    func bind(_ socket: Int32) -> Int32? {
        func bound<Address>(_ address: inout Address) -> Int32? {
            let result = withUnsafePointer(to: &address) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer in
                    Glibc.bind(socket, pointer, socklen_t(MemoryLayout<Address>.size))
                }
            }
            return result == 0 ? nil : errno
        }
        if isIPv6 {
            var place = sockaddr_in6()
            place.sin6_family = sa_family_t(AF_INET6)
            place.sin6_port = in_port_t(port).bigEndian
            inet_pton(AF_INET6, address, &place.sin6_addr)
            return bound(&place)
        }
        var place = sockaddr_in()
        place.sin_family = sa_family_t(AF_INET)
        place.sin_port = in_port_t(port).bigEndian
        inet_pton(AF_INET, address, &place.sin_addr)
        return bound(&place)
    }
}
