// SPDX-License-Identifier: Apache-2.0

import COpenSSL
import FrameCore

/// Which certificates of servers are trusted: those that a file's certificates have signed, those that the system's
/// have, or any.
///
/// `@unchecked Sendable`: the context is complete before anybody else has it, and OpenSSL counts its users.
package final class TLSTrust: @unchecked Sendable {
    let context: OpaquePointer
    /// Whether a certificate must be trusted, and name the server.
    package let verifies: Bool

    /// - Parameter caFile: A PEM file with the trusted certificates; nil for the system's.
    /// - Throws: ``FrameHostError`` where the file has none, or OpenSSL cannot be used.
    package init(caFile: String?, verify: Bool) throws(FrameHostError) {
        // Without OpenSSL's own clean-up at the end of the process: a thread that was abandoned may still use it.
        OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_ATEXIT), nil)
        ERR_clear_error()
        guard let made = SSL_CTX_new(TLS_client_method()) else {
            throw FrameHostError(
                .exhausted, what: "OpenSSL cannot be used: \(Self.reason())",
                remedy: "End other programs to free memory, then start the chain again.")
        }
        (context, verifies) = (made, verify)
        SSL_CTX_ctrl(made, SSL_CTRL_SET_MIN_PROTO_VERSION, Int(TLS1_2_VERSION), nil)
        // The bytes of a write that has to wait may lie elsewhere at the next attempt.
        SSL_CTX_ctrl(
            made, SSL_CTRL_MODE, Int(SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER), nil)
        guard verify else { return }
        SSL_CTX_set_verify(made, SSL_VERIFY_PEER, nil)
        guard let caFile else {
            SSL_CTX_set_default_verify_paths(made)
            return
        }
        guard SSL_CTX_load_verify_locations(made, caFile, nil) == 1 else {
            throw FrameHostError(
                .invalidConfiguration, place: "caFile", what: "OpenSSL refuses 'caFile': \(Self.reason())",
                remedy: "Name a PEM file with the trusted certificates.")
        }
    }

    deinit { SSL_CTX_free(context) }

    /// Checks whether a file has revocation lists (RFC 5280, section 5), which a library then reads by its name.
    ///
    /// - Throws: ``FrameHostError`` whose place is `option`.
    package static func checkRevocations(_ file: String, option: String) throws(FrameHostError) {
        ERR_clear_error()
        let store = X509_STORE_new()
        defer { X509_STORE_free(store) }
        let count = X509_STORE_add_lookup(store, X509_LOOKUP_file()).map {
            X509_load_crl_file($0, file, X509_FILETYPE_PEM)
        }
        guard let count, count > 0 else {
            throw FrameHostError(
                .invalidConfiguration, place: FaultPlace(option), what: "OpenSSL refuses '\(option)': \(reason())",
                remedy: "Name a PEM file with revocation lists (BEGIN X509 CRL).")
        }
    }

    /// The words of the oldest fault that OpenSSL has noted on this thread; the others are forgotten.
    static func reason() -> String {
        let code = ERR_get_error()
        ERR_clear_error()
        guard code != 0, let words = ERR_reason_error_string(code) else { return "it gives no reason" }
        return String(cString: words)
    }

    /// Why there is no connection, as a part of a sentence.
    package static func fault(host: String, verify: Bool, reason: String? = nil) -> String {
        let certificate =
            verify
            ? ", and the certificate must name '\(host)' and be trusted ('caFile', or the system's certificates)" : ""
        return
            "the TLS connection failed\(reason.map { " (\($0))" } ?? ""). The port must be one for TLS\(certificate)"
    }
}
