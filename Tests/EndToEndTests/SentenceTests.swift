// SPDX-License-Identifier: Apache-2.0

import Testing

/// Sentences are for people: with each of them replaced by `x`, programs read the same
/// (docs/design/046-faults.md). ``BadChainTests`` does this for the checker.
@Suite struct SentenceTests {
    private static let requests = [
        ("POST", "/api/v1/stages/nobody/pause", "{}"),
        ("POST", "/api/v1/stages/nobody/commands/go", "{}"),
        ("POST", "/api/v1/stages/text/commands/go", "{}"),
        ("GET", "/api/v1/stages/nobody/picture", ""),
        ("DELETE", "/api/v1/stages/nobody", ""),
        ("DELETE", "/api/v1/stages/cam", ""),
        ("PATCH", "/api/v1/stages/text/options", #"{ "txet": "two" }"#),
        ("PATCH", "/api/v1/stages/text/options", #"{ "size": -1 }"#),
        ("PATCH", "/api/v1/stages/cam/options", #"{ "rate": 3 }"#),
        ("POST", "/api/v1/branches", #"{ "at": "nobody", "stages": [{ "use": "null-sink" }] }"#),
        ("POST", "/api/v1/branches", #"{ "at": "text", "stages": [{ "use": "null-sinc" }] }"#),
        ("PUT", "/api/v1/stages/text", #"{ "use": "text", "sise": 3 }"#),
        ("PUT", "/api/v1/chain", #"{ "stages": [{ "use": "test-source", "framez": 1 }, { "use": "null-sink" }] }"#),
    ]

    /// What a program reads of the answers of a control server and of the exit statuses of `ctl` and `snapshot`.
    private func answers(_ environment: [String: String]) throws -> [String] {
        let run = try ControlledRun(environment: environment)
        var found: [String] = []
        for (method, path, body) in Self.requests {
            var answer = try run.send(method, path, body)
            // A stage that gets no processor for a second: the change has not been made.
            for _ in 0..<20 where answer.status == 503 { answer = try run.send(method, path, body) }
            let error = answer.json["error"]
            // The server's own refusals are no faults: it makes them with their status.
            let isReplaced = !environment.isEmpty && error["code"].string != "not-found"
            #expect((error["what"].string == "x") == isReplaced, "\(path): \(error)")
            let members = ["code", "place", "reason", "option"].map { "\($0)=\(error[$0])" }
            found.append("\(method) \(path): \(answer.status) \(members.joined(separator: " "))")
        }
        for words in [["pause", "nobody"], ["pause"], ["pauze", "text"], ["set", "text"]] {
            let outcome = try Program.framehost.run(["ctl", run.url] + words, environment: environment)
            found.append("ctl \(words): \(outcome.status)")
        }
        for (url, stage) in [(run.url, "nobody"), ("ftp://127.0.0.1", "text")] {
            let outcome = try Program.framehost.run(
                ["snapshot", url, stage, run.workspace.path("a.jpg")], environment: environment)
            found.append("snapshot \(stage): \(outcome.status)")
        }
        _ = try run.finish()
        return found
    }

    @Test(.needs(.curl)) func programsReadTheSameWithoutSentences() throws {
        let found = try answers([:])
        #expect(found == (try answers(["FRAMEHOST_SENTENCES": "x"])))
        #expect(found.count { $0.contains(": 404 ") } >= 4, "\(found)")
        #expect(found.suffix(6).map { String($0.suffix(1)) } == ["1", "2", "2", "2", "1", "2"], "\(found)")
    }
}
