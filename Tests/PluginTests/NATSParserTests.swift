// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Publishing
import Testing

@testable import NATSEvents

/// What a server, or whoever answers in its place, may send to `nats-events`.
@Suite struct NATSParserTests {
    private static func read(_ text: [UInt8], step: Int = .max) throws -> [NATSParser.Piece] {
        var (parser, pieces) = (NATSParser(), [NATSParser.Piece]())
        var rest = text[...]
        while !rest.isEmpty {
            parser.append(Array(rest.prefix(step)))
            rest = rest.dropFirst(step)
            while let piece = try parser.next() { pieces.append(piece) }
        }
        return pieces
    }

    @Test func readsTheSameInPiecesOfAnySize() throws {
        let text = Array(
            "INFO {\"a\":1}\r\nPING\r\n+OK\r\nPONG\r\n-ERR 'No\u{1b}way'\r\nMSG in.1 1 5\r\nab\r\nc\r\nMSG in.2 1 back 0\r\n\r\nHMSG in.3 1 16 18\r\nNATS/1.0 503\r\n\r\nhi\r\n"
                .utf8)
        let pieces: [NATSParser.Piece] = [
            .info(Array("{\"a\":1}".utf8)), .ping, .ok, .pong, .fault("No?way"),
            .message(NATSMessage(subject: "in.1", body: Array("ab\r\nc".utf8))), .message(NATSMessage(subject: "in.2")),
            .message(
                NATSMessage(subject: "in.3", headers: Array("NATS/1.0 503\r\n\r\n".utf8), body: Array("hi".utf8))),
        ]
        for step in 1...text.count { #expect(try Self.read(text, step: step) == pieces) }
        guard case .message(let last) = pieces.last else { return }
        #expect(last.status == 503)
    }

    @Test(arguments: [
        ("MSG a 1 2147483647\r\n", "announced a message of '2147483647' bytes"), ("MSG a 1 -1\r\n", "'-1'"),
        ("MSG a 1 99999999999999\r\n", "'99999999999999'"), ("MSG a 1 67108865\r\n", "'67108865'"),
        ("MSG a 1 \r\n", "does not speak"), ("HMSG a 1 2147483647 2147483647\r\n", "'2147483647'"),
        ("HMSG a 1 100 10\r\n", "does not speak"), ("MSG a\r\n", "does not speak"),
        ("HTTP/1.1 400\r\n", "does not speak"),
        ("\r\n", "does not speak"), ("MSG a 1 1\r\nabc", "longer than it had announced"),
        ("MSG a 1 9223372036854775807\r\n", "'9223372036854775807'"),
    ]) func refusesWhatNoServerSends(text: String, reason: String) {
        #expect {
            try Self.read(Array(text.utf8))
        } throws: {
            ($0 as? ServerFault)?.reason.contains(reason) == true
        }
    }

    @Test func boundsALineAndAMessage() throws {
        #expect(throws: ServerFault.self) { try Self.read([UInt8](repeating: 65, count: 70_000)) }
        #expect(throws: ServerFault.self) {
            try Self.read(Array("MSG ".utf8) + [UInt8](repeating: 65, count: 70_000) + Array(" 1 5\r\n".utf8))
        }
        // Larger than anything that is wanted: left out, and what follows is read.
        let large = Array("MSG in.1 1 3000000\r\n".utf8) + [UInt8](repeating: 65, count: 3_000_002)
        #expect(try Self.read(large + Array("PING\r\n".utf8), step: 65_536) == [.tooLarge("in.1"), .ping])
    }

    /// Bytes of a conversation, changed at random: a fault or pieces, and never more than is bounded.
    @Test func livesThroughAnyBytes() {
        var random = SplitRandom(state: 37)
        let text = Array(
            "INFO {\"a\":1}\r\nMSG in.1 1 5\r\nabcde\r\nHMSG in.3 1 16 18\r\nNATS/1.0 503\r\n\r\nhi\r\n-ERR 'x'\r\n"
                .utf8)
        for _ in 0..<5000 {
            var bytes = text
            for _ in 0..<Int.random(in: 1...6, using: &random) {
                let place = Int.random(in: 0..<bytes.count, using: &random)
                switch Int.random(in: 0...2, using: &random) {
                case 0: bytes[place] = UInt8.random(in: 0...255, using: &random)
                case 1: bytes.insert(UInt8.random(in: 48...57, using: &random), at: place)
                default: bytes.remove(at: place)
                }
            }
            for piece in (try? Self.read(bytes, step: Int.random(in: 1...40, using: &random))) ?? [] {
                guard case .message(let message) = piece else { continue }
                #expect(message.body.count + message.headers.count <= bytes.count)
                _ = message.status
            }
        }
    }

    @Test func readsWhatAServerSaysOfItself() throws {
        let info = try NATSServerInfo(
            Array(
                #"{"headers":true,"max_payload":99999999999999999999,"tls_required":true,"nonce":"x","connect_urls":["10.0.0.2:4222","bad host:1","[::1]:4223","a/b"]}"#
                    .utf8))
        #expect(info.hasHeaders && info.needsTLS && info.nonce == "x")
        #expect((0...NATSParser.mostAnnouncedBytes).contains(info.maxPayload))
        let named = try ServerAddress("tls://cam.example", option: "servers", schemes: [("tls", 4222)])
        var servers = NATSServers([named])
        let first = servers.take()
        servers.learn(info.cluster, from: first)
        #expect(servers.count == 3)
        let told = [servers.take(), servers.take(), servers.take()]
        #expect(
            told.map { "\($0.address)" }.sorted() == [
                "tls://10.0.0.2:4222", "tls://[::1]:4223", "tls://cam.example:4222",
            ])
        // Of an address that the cluster has told, the certificate names the server that told it.
        #expect(told.allSatisfy { $0.certificateName == "cam.example" })
        servers.learn((0..<1000).map { "10.0.1.\($0 % 250):\(1 + $0)" }, from: first)
        #expect(servers.count == 1 + NATSServerInfo.mostServers)
        #expect(throws: ServerFault.self) { try NATSServerInfo(Array("[1]".utf8)) }
        #expect(throws: ServerFault.self) {
            try NATSServerInfo(Array(#"{"nonce":"\#(String(repeating: "n", count: 2000))"}"#.utf8))
        }
    }

    @Test func findsTheIDOfAMessage() {
        #expect(
            NATSConnection.id(inHeaders: Array("NATS/1.0\r\nA: b\r\nnats-msg-id: h.b.r.7\r\n\r\n".utf8)) == "h.b.r.7")
        #expect(NATSConnection.id(inHeaders: Array("NATS/1.0\r\n\r\n".utf8)) == nil)
    }

    /// The seed is the example of the documentation of NKeys; the signature is OpenSSL's own program's.
    @Test func signsWithAKeyOfACredentialsFile() throws {
        let text = """
            -----BEGIN NATS USER JWT-----
            eyJ0eXAiOiJKV1QifQ.eyJhIjoxfQ.c2ln
            ------END NATS USER JWT------

            ************************* IMPORTANT *************************
            -----BEGIN USER NKEY SEED-----
            SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY
            ------END USER NKEY SEED------
            """
        let read = try #require(NATSCredentials(Array(text.utf8)))
        #expect(read.token == "eyJ0eXAiOiJKV1QifQ.eyJhIjoxfQ.c2ln")
        #expect(
            read.signature(of: "nonce")
                == "AVfpO7Pw3rc56hoO1OJcFxXUCfBmO2qouchBchSlL45Fuur9zS15UzytEI1QC5wwVG7uiHIdqyfmOS6uPrwqCg")
        // A wrong digit, another kind of key, no token.
        for (from, to) in [("CU3VY", "CU4VY"), ("SUACS", "SAACS"), ("eyJ0", "abc0")] {
            #expect(NATSCredentials(Array(text.replacingOccurrences(of: from, with: to).utf8)) == nil)
        }
        #expect(NATSCredentials([]) == nil)
    }

    @Test func refusesCredentialsWithoutAKeyBeforeTheRun() throws {
        let folder = try ScratchFolder()
        try Data("no key\n".utf8).write(to: URL(fileURLWithPath: folder.file("a.creds")))
        var options = NATSEventsOptions()
        options.credentials = "a.creds"
        let fault = #expect(throws: FrameHostError.self) { try NATSEvents(options: options).check(folder: folder.path) }
        #expect(
            fault?.description
                == "credentials: the file '\(folder.file("a.creds"))' must hold a user's JWT and the seed of its key, each between two lines of dashes. Write it with `nsc generate creds`, or correct 'credentials'."
        )
    }
}
