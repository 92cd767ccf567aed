// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameNetwork

/// The certificate of a server, and its private key: PEM files that the options `certificate` and `key` name.
public enum ServerCertificate {
    /// [any thread] Reads both files.
    ///
    /// - Parameters:
    ///   - certificate: The path of the certificate chain.
    ///   - key: The path of the private key.
    /// - Returns: A context for TLS 1.2 and later.
    /// - Throws: ``FrameHostError`` for files that cannot be read or do not fit; its place is the option.
    public static func context(certificate: String, key: String) throws -> NIOSSLContext {
        for (option, path) in [("certificate", certificate), ("key", key)] {
            try RunFiles.checkReadable(path, option: option)
        }
        do {
            let chain = try NIOSSLCertificate.fromPEMFile(certificate).map { NIOSSLCertificateSource.certificate($0) }
            let privateKey = try NIOSSLPrivateKey(file: key, format: .pem)
            var configuration = TLSConfiguration.makeServerConfiguration(
                certificateChain: chain, privateKey: .privateKey(privateKey))
            configuration.minimumTLSVersion = .tlsv12
            // A client that does not answer the end of TLS must not hold up anything.
            configuration.shutdownTimeout = .milliseconds(250)
            return try NIOSSLContext(configuration: configuration)
        } catch {
            throw FrameHostError(
                .unavailable, place: "certificate",
                what: "the certificate '\(certificate)' with the key '\(key)' cannot be used",
                remedy:
                    "Set 'certificate' to a PEM file with the certificate chain, and 'key' to a PEM file with its private key, without a password.",
                cause: reason(error))
        }
    }

    /// Sentences for NIO's errors that are only names, such as `failedToLoadCertificate`.
    private static func reason(_ error: any Error) -> String {
        switch error as? NIOSSLError {
        case .failedToLoadCertificate: "The file of 'certificate' has no certificate in PEM format."
        case .failedToLoadPrivateKey:
            "The file of 'key' has no private key in PEM format that can be read without a password."
        default: String(describing: error)
        }
    }
}
