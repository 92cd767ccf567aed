// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

/// `webhook` with a receiver in Python, over HTTP and HTTPS.
@Suite(.serialized, .needs(.python), .needs(.openssl)) struct WebhookTests {
    private static let secret = "0123456789abcdef0123456789abcdef"
    private let workspace: Workspace

    init() throws { workspace = try Workspace() }

    /// What the receiver has said of one request.
    private struct Request {
        var answer: String
        var id: String
        var text: String
        var node: JSON
    }

    private func startReceiver(_ options: [String] = [], _ answers: String...) throws -> (RunningProgram, port: Int) {
        let script = Repository.root.appending(path: "Tests/Tools/webhook-receiver.py").path
        let receiver = try Tool.python.start([script] + options + answers)
        try receiver.waitForOutput("\n")
        return (receiver, try #require(receiver.output.split(separator: "\n").first.flatMap { Int($0) }))
    }

    private func requests(_ receiver: RunningProgram) throws -> [Request] {
        // The last line may have come in part.
        for _ in 0..<1000 where !receiver.output.hasSuffix("\n") { receiver.listen(seconds: 0.05) }
        return try receiver.output.split(separator: "\n").dropFirst().compactMap { line in
            let node = try JSON(parsing: String(line))
            guard let answer = node["answer"].string else { return nil }
            return Request(
                answer: answer, id: node["id"].string ?? "", text: node["event"]["options"]["text"].string ?? "",
                node: node)
        }
    }

    private func startHost(_ url: String, _ more: String = "", events: String = #"["option-changed"]"#) throws
        -> RunningProgram
    {
        try workspace.write(
            "door.json",
            """
            {
              "webhook": { "url": "\(url)", "host": "porch", "level": "debug", "events": \(events)\(more) },
              "stages": [
                { "id": "cam", "use": "test-source", "size": "160x120", "rate": 10, "live": true },
                { "id": "text", "use": "text", "text": "0", "link": { "queue": 64 } },
                { "id": "sink", "use": "null-sink" }
              ]
            }
            """)
        return try Program.framehost.start(
            ["door.json", "--commands", "--verbose"],
            environment: [
                "XDG_STATE_HOME": workspace.path("state"), "STATE_DIRECTORY": "", "WEBHOOK_SECRET": Self.secret,
                // It is for the receiver alone.
                "http_proxy": "http://127.0.0.1:1", "https_proxy": "http://127.0.0.1:1",
            ],
            folder: workspace.folder.path)
    }

    private func post(_ numbers: ClosedRange<Int>, _ host: RunningProgram) throws {
        for number in numbers {
            try host.write(#"{"stage":"text","set":{"text":"\#(number)"},"tag":"n\#(number)"}"# + "\n")
            // No more than the mailbox of a stage takes, on a busy machine too.
            if number % 20 == 0 { try host.waitForOutput(#""tag":"n\#(number)""#) }
        }
        try host.waitForOutput(#""tag":"n\#(numbers.upperBound)""#)
    }

    private func end(_ host: RunningProgram) throws -> String {
        kill(host.pid, SIGINT)
        let outcome = try host.finish()
        #expect(outcome.isDoneOrBusy, "\(outcome.status): \(outcome.error)")
        return outcome.error
    }

    private func makeTrust() throws {
        let script = Repository.root.appending(path: "Tests/Tools/webhook-trust.py").path
        let made = try Tool.python.run(script, workspace.folder.path)
        guard made.status == 0 else { throw TestFault("webhook-trust.py: \(made.error)") }
    }

    private func secured(_ name: String) -> [String] {
        ["--tls", workspace.path("\(name).pem"), workspace.path("\(name).key"), "--secret", Self.secret]
    }

    @Test(.timeLimit(.minutes(10))) func postsEachEventOnceInOrderAndSigned() throws {
        try makeTrust()
        try workspace.write("login", "bob:a-password\n")
        let (receiver, port) = try startReceiver(secured("good"), "204")
        let host = try startHost(
            "https://127.0.0.1:\(port)/hook?key=a-long-token",
            #", "secret": "env:WEBHOOK_SECRET", "caFile": "ca.pem", "crlFile": "crl.pem", "login": "login""#)
        try post(1...200, host)
        try receiver.waitForOutput(#""text": "200""#)
        let said = try end(host)
        #expect(said.contains("Events go to the webhook server https://127.0.0.1:\(port)."), "\(said)")
        let requests = try requests(receiver)
        #expect(requests.map(\.text) == (1...200).map { "\($0)" })
        #expect(Set(requests.map(\.id)).count == 200)
        for request in requests {
            #expect(request.node["right"].bool == true && request.node["timely"].bool == true, "\(request.node)")
            #expect(request.node["event"]["id"].string == request.id)
        }
        let first = try #require(requests.first)
        #expect(first.node["path"].string == "/hook?key=a-long-token")
        #expect(first.node["type"].string == "application/json")
        // bob:a-password
        #expect(first.node["login"].string == "Basic Ym9iOmEtcGFzc3dvcmQ=")
        #expect(first.node["event"]["host"].string == "porch" && first.node["event"]["chain"].string == "door")
        // Nothing that was said or written has a secret.
        var texts = [said, host.output]
        for file in workspace.names(below: "state") {
            texts.append(String(decoding: try workspace.data("state/" + file), as: UTF8.self))
        }
        #expect(texts.contains { $0.contains("option-changed") })
        for text in texts {
            #expect(!["a-long-token", Self.secret, "a-password"].contains { text.contains($0) }, "\(text.prefix(500))")
        }
    }

    /// One of these answers, and then good ones.
    @Test(
        .timeLimit(.minutes(10)),
        arguments: [
            ("500", "it answers 500"), ("503:1", "it answers 503"), ("429:2", "it answers 429"),
            ("408", "it answers 408"),
            ("404", "it answers 404"),
            ("301", "it answers 301 and names another address, and redirects are not followed"),
            ("drop", "it closed the connection before it had answered"),
            ("half", "it closed the connection before it had answered"),
            ("header", "the header of its answer has more than 64 KiB"),
            ("silent", "it did not answer within the time of 'timeoutSeconds'"), ("garbage", "does not speak HTTP"),
        ])
    func sendsAgainUntilTheReceiverTakesIt(answer: String, reason: String) throws {
        let (receiver, port) = try startReceiver([], answer, "204")
        let host = try startHost("http://127.0.0.1:\(port)/hook", #", "timeoutSeconds": 2"#)
        try post(1...3, host)
        try host.waitForError("Events go to the webhook server http://127.0.0.1:\(port) again.")
        try receiver.waitForOutput(#""text": "3""#)
        let said = try end(host)
        #expect(said.contains("The webhook server http://127.0.0.1:\(port) takes no events: "), "\(said)")
        #expect(said.contains(reason), "\(said)")
        let requests = try requests(receiver)
        #expect(requests.prefix(2).map(\.text) == ["1", "1"])
        // It is the same event under the same id, and nothing overtakes it. No request was for another path.
        #expect(Set(requests.filter { $0.text == "1" }.map(\.id)).count == 1)
        #expect(requests.filter { $0.answer == "204" }.map(\.text) == ["1", "2", "3"])
        #expect(requests.allSatisfy { $0.node["path"].string == "/hook" && $0.node["signed"].bool == false })
    }

    @Test(.timeLimit(.minutes(10))) func dropsWhatTheReceiverRefusesAndSaysSo() throws {
        let (receiver, port) = try startReceiver([], "204", "422", "413", "204")
        let host = try startHost("http://127.0.0.1:\(port)/")
        try post(1...5, host)
        try receiver.waitForOutput(#""text": "5""#)
        let said = try end(host)
        #expect(try requests(receiver).map(\.text) == ["1", "2", "3", "4", "5"])
        #expect(said.contains("for the webhook server were lost") || said.contains("for the webhook server was lost"))
        #expect(said.contains("refused by the server: it answers 4"), "\(said)")
    }

    /// A refusal is no event that is taken, and the event about it makes no further one, at the end of the run either.
    @Test(.timeLimit(.minutes(10))) func aReceiverThatRefusesAllIsNotConnectedAndIsReportedOnce() throws {
        let (receiver, port) = try startReceiver([], "400")
        let host = try startHost("http://127.0.0.1:\(port)/", events: #"["option-changed", "events-lost"]"#)
        try post(1...1, host)
        try receiver.waitForOutput(#""events-lost""#)
        let said = try end(host)
        #expect(!said.contains("Events go to"), "\(said)")
        let reports = said.split(separator: "\n").filter { $0.contains("1 event for the webhook server was lost") }
        #expect(reports.count == 1, "\(said)")
        #expect(!said.contains("Since the start"), "\(said)")
    }

    /// The receiver of the README: it takes no event twice whatever its header fields say, and nothing blocks it.
    @Test(.timeLimit(.minutes(10))) func theDocumentedReceiverTakesNoEventAgain() throws {
        let readme = try String(
            contentsOf: Repository.root.appending(path: "Sources/Plugins/services/Webhook/README.md"), encoding: .utf8)
        let begin = try #require(readme.range(of: "```python\n"))
        let end = try #require(readme.range(of: "```\n", range: begin.upperBound..<readme.endIndex))
        let port = try RTSPStream.freePort()
        try workspace.write("secret", Self.secret + "\n")
        try workspace.write(
            "receiver.py",
            readme[begin.upperBound..<end.lowerBound].replacingOccurrences(of: "8085", with: "\(port)")
                .replacingOccurrences(of: "examples/webhook.secret", with: workspace.path("secret")))
        try workspace.write("client.py", Self.client)
        let receiver = try Tool.python.start([workspace.path("receiver.py")])
        defer { kill(receiver.pid, SIGKILL) }
        let client = try Tool.python.run(workspace.path("client.py"), "\(port)", Self.secret)
        #expect(client.status == 0, "\(client.error)")
        // Length -1, no number, none, too large; a forged one; three times the same under other ids; an old one.
        #expect(client.output == "413\n413\n413\n413\n403\n204\n204\n204\n403\n204\n", "\(client.output)")
        try receiver.waitForOutput("event second\n")
        #expect(receiver.output == "event first\nevent second\n")
    }

    /// Prints the code of each answer. A connection that sends nothing stays open meanwhile.
    private static let client = """
        import hashlib, hmac, json, socket, sys, time
        port, secret = int(sys.argv[1]), sys.argv[2].encode()
        def connect():
            for _ in range(1200):
                try: return socket.create_connection(("127.0.0.1", port))
                except OSError: time.sleep(0.05)
        def ask(fields, body=b""):
            peer = connect()
            lines = "".join(f"{name}: {value}\\r\\n" for name, value in fields.items())
            peer.sendall(f"POST / HTTP/1.1\\r\\n{lines}\\r\\n".encode() + body)
            answer = b""
            while b"\\r\\n" not in answer:
                more = peer.recv(4096)
                if not more: break
                answer += more
            print(answer.split(b" ")[1].decode() if answer else "none", flush=True)
        def event(name, header_id, age=0, key=secret):
            body, sent = json.dumps({"id": "h.b.r." + name, "event": name}).encode(), int(time.time()) - age
            sign = hmac.new(key, f"{sent}.".encode() + body, hashlib.sha256).hexdigest()
            ask({"Content-Length": len(body), "Framehost-Id": header_id, "Framehost-Time": sent, "Framehost-Signature": "sha256=" + sign}, body)
        silent = connect()
        for length in ["-1", "x", "", "99999999"]: ask({"Content-Length": length})
        event("first", "a", key=b"another")
        for number in range(3): event("first", f"a{number}")
        event("second", "b", age=3600)
        event("second", "b")
        """

    /// A text without an end, and one that breaks off: the code in front of it counts.
    @Test(.timeLimit(.minutes(10)), arguments: ["endless", "short"]) func needsNoTextOfAnAnswer(answer: String) throws {
        let (receiver, port) = try startReceiver([], answer, answer, "204")
        let host = try startHost("http://127.0.0.1:\(port)/")
        try post(1...3, host)
        try receiver.waitForOutput(#""text": "3""#)
        let text = try String(contentsOfFile: "/proc/\(host.pid)/status", encoding: .utf8)
        let peak = try #require(text.split(separator: "\n").first { $0.hasPrefix("VmHWM:") })
        #expect((Int(peak.filter(\.isNumber)) ?? 0) >> 10 < 200, "\(peak)")
        let said = try end(host)
        #expect(!said.contains("takes no events"), "\(said)")
        #expect(try requests(receiver).map(\.text) == ["1", "2", "3"])
        let taken = try receiver.output.split(separator: "\n").dropFirst()
            .compactMap { try JSON(parsing: String($0))["answered"].int }
        // What waits in the kernel's buffers counts as taken.
        #expect(taken.allSatisfy { $0 < 16 << 20 }, "\(taken)")
    }

    /// A receiver that holds a request neither holds up the end, nor is the event lost: the next run sends it.
    @Test(.timeLimit(.minutes(10))) func endsBesideAReceiverThatHangsAndSendsInTheNextRun() throws {
        let (receiver, port) = try startReceiver([], "silent", "204")
        let host = try startHost("http://127.0.0.1:\(port)/", #", "timeoutSeconds": 120"#)
        try post(1...2, host)
        try receiver.waitForOutput(#""answer": "silent""#)
        // Its thread would have been abandoned otherwise, with a warning.
        #expect(!(try end(host)).contains("had not ended"))
        let next = try startHost("http://127.0.0.1:\(port)/")
        try receiver.waitForOutput(#""text": "2""#)
        _ = try end(next)
        let requests = try requests(receiver)
        try #require(requests.map(\.text) == ["1", "1", "2"])
        #expect(requests[0].id == requests[1].id && requests[1].id != requests[2].id)
    }

    @Test(.timeLimit(.minutes(10))) func keepsEventsOverAKillWhileNobodyListens() throws {
        let port = try RTSPStream.freePort()
        let host = try startHost("http://127.0.0.1:\(port)/")
        try post(1...50, host)
        try host.waitForError("The webhook server http://127.0.0.1:\(port) takes no events: Connection refused.")
        kill(host.pid, SIGKILL)
        _ = try host.finish()
        let (receiver, other) = try startReceiver([], "204")
        let next = try startHost("http://127.0.0.1:\(other)/")
        try receiver.waitForOutput(#""text": "50""#)
        _ = try end(next)
        #expect(try requests(receiver).map(\.text) == (1...50).map { "\($0)" })
    }

    @Test(.timeLimit(.minutes(10))) func trustsOnlyACertificateThatItShould() throws {
        try makeTrust()
        func said(_ name: String, _ options: String) throws -> String {
            let (receiver, port) = try startReceiver(secured(name), "204")
            defer { kill(receiver.pid, SIGKILL) }
            let host = try startHost("https://127.0.0.1:\(port)/", options)
            try post(1...1, host)
            // Both sentences have it: that it takes events, and that it takes none.
            try host.waitForError("webhook server https://127.0.0.1:\(port)")
            return try end(host)
        }
        let (ca, lists) = (#", "caFile": "ca.pem""#, #", "caFile": "ca.pem", "crlFile": "crl.pem""#)
        #expect(try said("good", lists).contains("Events go to"))
        #expect(try said("revoked", ca).contains("Events go to"))
        let revoked = try said("revoked", lists)
        #expect(revoked.contains("certificate revoked") && revoked.contains("takes no events"), "\(revoked)")
        let other = try said("other", ca)
        #expect(other.contains("the TLS connection failed") && other.contains("takes no events"), "\(other)")
        let stranger = try said("good", #", "caFile": "stranger.pem""#)
        #expect(stranger.contains("the TLS connection failed"), "\(stranger)")
        #expect(try said("good", "").contains("the TLS connection failed"))
        #expect(try said("other", #", "verify": false"#).contains("Events go to"))
    }
}
