// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Glibc
import Testing

@testable import RTSPSink

@Suite struct ServerEndpointTests {
    /// Each is found at the check of a chain, and a FIFO without a writer holds nothing up.
    @Test func saysWhichFileCannotBeRead() throws {
        let folder = NSTemporaryDirectory() + "endpoint-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        func fault(_ certificate: String, _ key: String) -> String {
            do {
                let endpoint = ServerEndpoint(
                    port: 1, certificatePath: "\(folder)/\(certificate)", keyPath: "\(folder)/\(key)")
                _ = try endpoint.tlsContext()
                return ""
            } catch { return "\(error)" }
        }
        try "no PEM\n".write(toFile: "\(folder)/text", atomically: false, encoding: .utf8)
        mkfifo("\(folder)/fifo", 0o600)
        #expect(
            fault("none", "text")
                == "certificate: the file '\(folder)/none' does not exist. Create it, or correct 'certificate'.")
        #expect(
            fault("fifo", "text")
                == "certificate: '\(folder)/fifo' must be a regular file, but is a pipe. Name a regular file."
        )
        #expect(fault("text", "") == "key: '\(folder)/' is a folder. Name a file in it.")
        #expect(
            fault("text", "text").hasPrefix(
                "certificate: the certificate '\(folder)/text' with the key '\(folder)/text' cannot be used. "))
    }

    @Test func hasNoTLSWithoutCertificate() throws {
        #expect(try ServerEndpoint(port: 1).tlsContext() == nil)
    }
}
