// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameNetwork
import ServerAccess

/// Where and how a server listens. All stages of one port must agree on it.
struct ServerEndpoint: Sendable, Equatable {
    var port: Int
    /// Empty for all addresses, IPv4 and IPv6.
    var address = ""
    /// PEM files; nil for RTSP without TLS.
    var certificatePath: String?
    var keyPath: String?

    var isSecure: Bool { certificatePath != nil }

    /// - Throws: ``FrameHostError`` for files that cannot be read or do not fit.
    func tlsContext() throws -> NIOSSLContext? {
        guard let certificatePath, let keyPath else { return nil }
        return try ServerCertificate.context(certificate: certificatePath, key: keyPath)
    }

    /// The addresses under which clients reach it, best first: loopback, then IPv4 of each interface, then IPv6.
    func reachableAddresses() -> [String] {
        guard address.isEmpty || address == "0.0.0.0" || address == "::" else { return [address] }
        let all = ((try? System.enumerateDevices()) ?? []).compactMap { IPAddress($0.address) }
        let isV4Only = address == "0.0.0.0"
        let v4 = all.filter { $0.isIPv4 && !$0.isLoopback }
        // Link-local addresses need the name of an interface, which players do not accept.
        let v6 = isV4Only ? [] : all.filter { !$0.isIPv4 && !$0.isLoopback && $0.high >> 54 != 0x3fa }
        return (["127.0.0.1"] + (v4 + v6).map(\.description)).reduce(into: []) { list, text in
            if !list.contains(text) { list.append(text) }
        }
    }

    func url(host: String, path: String) -> String {
        RTSPURL(isSecure: isSecure, host: host, port: UInt16(port), path: path).text
    }
}
