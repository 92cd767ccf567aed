// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Testing

@testable import FileSource

/// Servers of HTTPS on the loopback with certificates that they have signed themselves.
@Suite(.needsFFmpeg, .serialized) struct CertificateTrustTests {
    private let folder: ScratchFolder

    init() throws {
        folder = try ScratchFolder()
        try ClipMaker.ffmpeg(
            "-f", "lavfi", "-i", ClipMaker.moving(count: 50), "-pix_fmt", "yuv420p", "-c:v", "libx264", "-g", "25",
            folder.file("clip.ts"))
    }

    /// A server with a certificate for `names`, which stands in `NAME.pem`; its port.
    private func serve(_ name: String, names: String) throws -> (Peer, port: Int) {
        let openssl = try #require(Tool.find("openssl"), "openssl is not installed: make test-packages")
        try Tool.run(
            openssl,
            [
                "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                "-subj", "/CN=framehost-test", "-addext", "subjectAltName=\(names)", "-keyout",
                folder.file("\(name).key"), "-out", folder.file("\(name).pem"),
            ])
        let python = try #require(Tool.find("python3"), "python3 is not installed: make test-packages")
        let port = try Peer.freePort()
        let program = """
            import functools, http.server, ssl, sys
            handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[1])
            server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), handler)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(f"{sys.argv[1]}/{sys.argv[3]}.pem", f"{sys.argv[1]}/{sys.argv[3]}.key")
            server.socket = context.wrap_socket(server.socket, server_side=True)
            server.serve_forever()
            """
        return (try Peer(python, ["-c", program, folder.path, "\(port)", name]), port)
    }

    private func fault(_ url: String, _ options: String = "") -> String {
        do {
            try NetworkSourceTests.driver(url, options).stop()
            return ""
        } catch { return FrameHostError.wrap(error).description }
    }

    @Test func trustsNoCertificateThatIsNotNamed() throws {
        let (server, port) = try serve("own", names: "IP:127.0.0.1,DNS:localhost")
        defer { server.kill() }
        let url = "https://127.0.0.1:\(port)/clip.ts"
        let trusting = try NetworkSourceTests.connect(url, #""verify": false"#)
        #expect(try NetworkSourceTests.pictures(trusting, count: 20).count >= 20)
        #expect(
            trusting.takeEvents().contains {
                $0.level == .warning
                    && $0.text
                        == "any server can pose as '\(url)': \"verify\": false accepts any certificate."
            })
        try trusting.stop()
        let refused = fault(url)
        #expect(
            refused.hasPrefix(
                "the certificate of '\(url)', or of a server it redirects to, cannot be trusted. Set 'caFile' to a PEM file with the certificate of the authority that signed it."
            ), "\(refused)")
        for address in [url, "https://localhost:\(port)/clip.ts"] {
            let knowing = try NetworkSourceTests.driver(address, #""caFile": "\#(folder.file("own.pem"))""#)
            #expect(try NetworkSourceTests.pictures(knowing, count: 20).count >= 20)
            try knowing.stop()
        }
        #expect(
            fault(url, #""caFile": "/nowhere/ca.pem""#).hasPrefix(
                "caFile: the file '/nowhere/ca.pem' does not exist. Create it, or correct 'caFile'."))
    }

    /// libavformat would ignore such a file, or wait for the writer of a FIFO.
    @Test func refusesAuthoritiesThatCannotBeRead() {
        mkfifo(folder.file("fifo"), 0o600)
        for (path, text) in [
            (
                folder.file("fifo"),
                "'\(folder.file("fifo"))' must be a regular file, but is a pipe. Name a regular file."
            ), (folder.path, "'\(folder.path)' is a folder. Name a file in it."),
        ] {
            let error = #expect(throws: FrameHostError.self) { try CertificateTrust(verify: true, caFile: path) }
            #expect(error?.description == "caFile: \(text)")
        }
    }

    /// A certificate that is trusted, for another name: libavformat compares names with GnuTLS and OpenSSL alike.
    @Test func trustsNoCertificateOfAnotherName() throws {
        let (server, port) = try serve("other", names: "DNS:elsewhere.example")
        defer { server.kill() }
        let url = "https://127.0.0.1:\(port)/clip.ts"
        try NetworkSourceTests.connect(url, #""verify": false"#).stop()
        let refused = fault(url, #""caFile": "\#(folder.file("other.pem"))""#)
        #expect(refused.contains("cannot be trusted"), "\(refused)")
    }

    /// libavformat hands none of the options on to the parts of a playlist.
    @Test func verifiesThePartsOfAPlaylistToo() throws {
        let (own, port) = try serve("own", names: "IP:127.0.0.1")
        let (other, otherPort) = try serve("other", names: "DNS:elsewhere.example")
        defer {
            own.kill()
            other.kill()
        }
        for (name, target) in [("good", port), ("bad", otherPort)] {
            try """
            #EXTM3U
            #EXT-X-TARGETDURATION:2
            #EXTINF:2,
            https://127.0.0.1:\(target)/clip.ts
            #EXT-X-ENDLIST

            """.write(toFile: folder.file("\(name).m3u8"), atomically: true, encoding: .utf8)
        }
        let both =
            try String(contentsOfFile: folder.file("own.pem"), encoding: .utf8)
            + String(contentsOfFile: folder.file("other.pem"), encoding: .utf8)
        try both.write(toFile: folder.file("both.pem"), atomically: true, encoding: .utf8)
        let trust = #""caFile": "\#(folder.file("both.pem"))""#
        try NetworkSourceTests.connect("https://127.0.0.1:\(otherPort)/clip.ts", #""verify": false"#).stop()
        let good = try NetworkSourceTests.connect("https://127.0.0.1:\(port)/good.m3u8", trust)
        #expect(try NetworkSourceTests.pictures(good, count: 20).count >= 20)
        try good.stop()
        let bad = "https://127.0.0.1:\(port)/bad.m3u8"
        let trusting = try NetworkSourceTests.driver(bad, #""verify": false"#)
        #expect(try NetworkSourceTests.pictures(trusting, count: 20).count >= 20)
        try trusting.stop()
        #expect(fault(bad, trust).contains("cannot be trusted"), "\(fault(bad, trust))")
    }

    /// Its TLS is opened without options: what cannot be verified is not played unless told.
    @Test func refusesRTSPSUnlessTold() throws {
        let port = try Peer.freePort()
        let url = "rtsps://127.0.0.1:\(port)/live"
        #expect {
            _ = try NetworkSourceTests.driver(url)
        } throws: {
            "\($0)".contains(
                "'url' is rtsps, but libavformat cannot verify the certificate of an RTSP server. Set \"verify\": false, which accepts any certificate"
            )
        }
        #expect(fault(url, #""verify": false"#).contains("cannot be opened: Connection refused"))
    }
}
