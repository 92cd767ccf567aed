// SPDX-License-Identifier: Apache-2.0

import Shared

extension NetworkInput {
    /// What a connection is asked for.
    struct Settings: Sendable {
        var address: NetworkAddress
        var login: ServerLogin?
        var trust: CertificateTrust
        var isDecoded: Bool
        var takesSound: Bool
        /// Whether access units are given beside the pictures.
        var takesUnits: Bool
        var transport: NetworkTransport
        var connectSeconds: Double
        var stallSeconds: Double
        var latencyMs: Int
        var bufferBytes: Int
        var probeBytes: Int
        var analyzeSeconds: Double
        var noBuffer: Bool

        /// Whether ``RTSPClient`` can be used: it speaks over one TCP connection, without TLS.
        var canUseClient: Bool { address.scheme == .rtsp && transport == .tcp }
        /// Whether libavformat would cut the login.
        var isLoginTooLong: Bool {
            guard let login, let most = address.scheme.mostLoginBytes else { return false }
            return login.encoded.utf8.count > most
        }
        var needsClient: Bool { canUseClient && isLoginTooLong }
    }
}
