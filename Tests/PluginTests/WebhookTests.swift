// SPDX-License-Identifier: Apache-2.0

@testable import FrameCore
import Foundation
import Glibc
import FrameSupport
import Publishing
import Testing
@testable import Webhook

/// A receiver that answers one request with this text, then sends bytes one by one until the other side leaves.
private final class SlowReceiver: Sendable {
    let port: Int
    /// Raised once the answer's text without the bytes behind it is sent.
    let hasAnswered = WaitableFlag()
    private let file: Int32

    init(_ answer: String) throws {
        let file = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        withUnsafeMutablePointer(to: &address) { address in
            address.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                _ = bind(file, address, size)
                _ = listen(file, 4)
                _ = getsockname(file, address, &size)
            }
        }
        (self.file, port) = (file, Int(UInt16(bigEndian: address.sin_port)))
        try #require(port > 0)
        Thread { [hasAnswered] in
            let peer = accept(file, nil, nil)
            var bytes = [UInt8](repeating: 0, count: 65_536)
            _ = recv(peer, &bytes, bytes.count, 0)
            _ = send(peer, answer, answer.utf8.count, Int32(MSG_NOSIGNAL))
            hasAnswered.raise()
            while send(peer, "x", 1, Int32(MSG_NOSIGNAL)) == 1 { usleep(100_000) }
            close(peer)
        }.start()
    }

    deinit { close(file) }

    func post(left: () -> Int?) throws -> WebhookPost.Outcome {
        let target = WebhookPost.Target(
            address: try WebhookAddress("http://127.0.0.1:\(port)/"), verify: true, timeoutSeconds: 120)
        return try WebhookPost(target).post(Array("{}".utf8), fields: ["Expect:"], left: left)
    }
}

@Suite struct WebhookTests {
    private static func fault(_ text: String) throws -> String {
        let members = try JSONReader.read(Array(text.utf8), file: "t").asObject!
        do {
            _ = try OptionDecoder.decode(WebhookOptions.self, from: members) { key, _ in FaultPlace(key) }
            return ""
        } catch let faults as FrameHostErrors {
            return faults.errors.map(\.description).joined(separator: "\n")
        }
    }

    @Test(arguments: [
        (#"{"url":"https://a.example/x?y=z"}"#, ""),
        (#"{"url":"HTTP://[::1]:8080","login":"env:L","secret":"env:S"}"#, ""),
        (
            #"{"url":""}"#,
            "url: 'url' must be an address that begins with https:// or http://. Write it like \"https://192.168.1.7/events\"."
        ),
        (
            #"{"url":"ftp://a/secret"}"#,
            "url: 'url' must be an address that begins with https:// or http://. Write it like \"https://192.168.1.7/events\"."
        ),
        (
            #"{"url":"https://me:secret@a/x"}"#,
            "url: 'url' contains an @, as an address with a login does, which everyone who can read the chain file would see. Leave a login out, and set 'login' to a file with a line name:password, or to env:NAME. Write an @ that belongs to the path as %40."
        ),
        (
            #"{"url":"https://a:70000/secret"}"#,
            "url: the port in 'url' must be from 1 to 65535. Correct the port, or leave it out for 443."
        ),
        (
            #"{"url":"https://a/secret\r\nX: y"}"#,
            "url: 'url' must have at most 4096 bytes, all of them printable ASCII without blanks and \\. Write it like \"https://192.168.1.7/events\", and any other character as %20 or xn--…."
        ),
        (
            #"{"url":"https://a/secret#b"}"#,
            "url: 'url' has a fragment (#…), which is never sent to a server. Leave it out, and write a # that belongs to the path as %23."
        ),
        (
            #"{"url":"http://a","caFile":"ca.pem"}"#,
            "caFile: 'caFile' is set, but http:// has no certificates. Use https:// in 'url', or leave 'caFile' out."
        ),
        (
            #"{"url":"https://a","crlFile":"crl.pem","verify":false}"#,
            "crlFile: 'crlFile' says which certificates are trusted, but \"verify\": false trusts all. Leave one of the two out."
        ),
        (
            #"{"url":"https://a","secret":""}"#,
            "secret: 'secret' must name a file or env:NAME, but is empty. Name a file or env:NAME, or leave 'secret' out."
        ),
    ]) func saysWhatIsWrongWithItsOptions(text: String, fault: String) throws {
        #expect(try Self.fault(text) == fault)
    }

    @Test func showsNothingBehindTheHostOfItsAddress() throws {
        let address = try WebhookAddress("https://hooks.example.com/T00/B00/hidden?token=hidden")
        #expect("\(address)" == "https://hooks.example.com:443")
        var dumped = ""
        dump(address, to: &dumped)
        #expect(!dumped.contains("hidden"))
    }

    @Test func readsASecretAndNeverShowsIt() throws {
        let folder = try ScratchFolder()
        func fault(_ name: String) -> String {
            do {
                return "\(try WebhookSecret.read(name) { folder.file($0) })"
            } catch { return "\(error)" }
        }
        for (name, text) in [
            ("good", "hidden-hidden-hidden\n"), ("short", "hidden"),
            ("two", "hidden-hidden-hidden\nhidden-hidden-hidden"),
            ("empty", ""), ("blank", "hidden hidden hidden"), ("umlaut", "hidden-hidden-hüdden"),
        ] { try text.write(toFile: folder.file(name), atomically: false, encoding: .utf8) }
        #expect(fault("good") == "a secret")
        for name in ["short", "two", "empty", "blank", "umlaut"] {
            #expect(
                fault(name)
                    == "secret: the file '\(folder.file(name))' must contain exactly one line of 16 to 1024 ASCII letters, digits and marks, without blanks. Make one with `openssl rand -hex 32`, and give the same to the receiver."
            )
        }
        #expect(!fault("nothing-hidden-in-this-name").contains("hidden-in"))
    }

    /// RFC 4231 has no message of this form; these are what Python's hmac gives.
    @Test(arguments: [
        (
            "0123456789abcdef", 1_700_000_000, "{}",
            "sha256=e4f8e2ecae2295b2ddb2f0b5584c8275e226c0ebe9b3b819e70156bb67122e3e"
        ),
        (
            String(repeating: "k", count: 200), 0, "",
            "sha256=76a82ba859636cc3081c72aa270fd66ac81a202f8182404e7752795c6e7ba88f"
        ),
    ]) func signsTimeAndBody(secret: String, time: Int, body: String, signature: String) {
        #expect(WebhookSecret(secret).signature(time: time, body: Array(body.utf8)) == signature)
    }

    @Test func takesNothingButATwoHundredForAnEventThatIsThere() {
        for status in 200...299 { #expect(WebhookAnswer(status: status) == .taken) }
        for status in 300...399 {
            guard case .notTaken(_, after: nil) = WebhookAnswer(status: status, retryAfter: 9) else {
                Issue.record("\(status)")
                continue
            }
        }
        for status in [400, 406, 409, 411, 413, 415, 418, 422, 431, 499] {
            #expect(WebhookAnswer(status: status, retryAfter: 9) == .refused("it answers \(status)"))
        }
        for status in [401, 403, 404, 408, 410] {
            #expect(WebhookAnswer(status: status, retryAfter: 9) == .notTaken("it answers \(status)", after: nil))
        }
        for status in [429, 500, 503, 599, 999] {
            #expect(WebhookAnswer(status: status, retryAfter: 9) == .notTaken("it answers \(status)", after: 9))
        }
    }

    @Test func waitsLongerEachTimeAndAsLongAsItIsAskedWithinBounds() {
        var pause = WebhookPause()
        let pauses = (0..<8).map { _ in pause.take(asked: nil, share: 0) }
        #expect(pauses == [1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000])
        pause.reset()
        let asked = [
            pause.take(asked: nil, share: 1), pause.take(asked: 30, share: 0), pause.take(asked: .max, share: 0),
            pause.take(asked: -5, share: 0),
        ]
        #expect(asked == [750, 30_000, 600_000, 8000])
        for _ in 0..<5 { _ = pause.take(asked: nil) }
        for _ in 0..<100 {
            let taken = pause.take(asked: nil)
            #expect((45_000...60_000).contains(taken))
        }
    }

    /// The library waits four minutes for the text, and then says that there was no answer in time.
    @Test(.timeLimit(.minutes(3)), arguments: [(200, ""), (503, "Retry-After: 7\r\n"), (400, "")])
    func anAnswerCountsThoughItsTextDrips(status: Int, field: String) throws {
        let receiver = try SlowReceiver("HTTP/1.1 \(status) X\r\n\(field)Content-Length: 10000\r\n\r\n")
        #expect(try receiver.post { nil } == .answered(status: status, retryAfter: field.isEmpty ? nil : 7))
    }

    @Test(.timeLimit(.minutes(3))) func anAnswerCountsThoughTheRunEndsWithinItsText() throws {
        let receiver = try SlowReceiver("HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n")
        var turns = 0
        let outcome = try receiver.post {
            // Between two turns the library reads what is there.
            if receiver.hasAnswered.isRaised { turns += 1 }
            return turns > 1 ? 0 : 600_000
        }
        #expect(outcome == .answered(status: 200, retryAfter: nil))
    }

    @Test func headerFieldsThatDripAreNoAnswer() throws {
        let receiver = try SlowReceiver("HTTP/1.1 200 OK\r\nX: ")
        var turns = 0
        let outcome = try receiver.post {
            if receiver.hasAnswered.isRaised { turns += 1 }
            return turns > 3 ? 0 : 600_000
        }
        #expect(outcome == .cancelled)
    }
}
