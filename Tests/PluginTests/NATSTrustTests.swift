// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Testing

@testable import NATSEvents

/// `caFile` of `nats-events`, whose contents the check reads.
@Suite struct NATSTrustTests {
    private func service() -> NATSEvents {
        var options = NATSEventsOptions()
        options.servers = ["tls://127.0.0.1:4222"]
        options.caFile = "ca.pem"
        return NATSEvents(options: options)
    }

    @Test func refusesAFileWithoutCertificatesBeforeTheRun() throws {
        let folder = try ScratchFolder()
        try Data("no certificate\n".utf8).write(to: URL(fileURLWithPath: folder.file("ca.pem")))
        let fault = #expect(throws: FrameHostError.self) { try service().check(folder: folder.path) }
        #expect(fault?.place.description == "caFile")
        #expect(fault?.what.hasPrefix("OpenSSL refuses 'caFile': ") == true)
        #expect(fault?.remedy == "Name a PEM file with the trusted certificates.")
    }

    @Test func takesAFileWithACertificate() throws {
        let folder = try ScratchFolder()
        let openssl = try #require(Tool.find("openssl"), "openssl is not installed: make test-packages")
        try Tool.run(
            openssl,
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                "-subj", "/CN=framehost-test", "-keyout", folder.file("ca.key"), "-out", folder.file("ca.pem"),
            ])
        try service().check(folder: folder.path)
    }
}
