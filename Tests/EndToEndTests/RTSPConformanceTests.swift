// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// The conformance suite (`make rtsp-conformance`) before our own server: no rule may be broken, not even a "should".
@Suite(.serialized) struct RTSPConformanceTests {
    private struct Verdict: Decodable {
        var rule: String
        var outcome: String
        var detail: String
    }

    private static let suite = Repository.root.appending(path: "Tests/Conformance/rtsp").path
    /// A busy machine may keep the suite from reading for seconds: it loses nothing, and is not disconnected.
    private static let lenience = #""queueSeconds": 30, "stuckSeconds": 300"#

    /// Runs it with more patience than it has by itself.
    private static func ask(_ arguments: String...) throws -> Outcome {
        try Tool.python.run([suite, "--patience", "60"] + arguments, timeout: 900)
    }

    /// Runs all rules; groups with rules that say nothing about this server must be those in `silent`. How many are
    /// kept.
    private static func conforms(_ url: String, silent: Set<String>) throws -> Int {
        let outcome = try ask("--long", "--strict", "--json", "--jobs", "8", url)
        let verdicts = try outcome.lines.map { try JSONDecoder().decode(Verdict.self, from: Data($0.utf8)) }
        for verdict in verdicts where verdict.outcome != "ok" && verdict.outcome != "n/a" {
            Issue.record("\(verdict.rule): \(verdict.detail)")
        }
        #expect(outcome.status == 0, "\(outcome.error)")
        let unasked = Set(verdicts.filter { $0.outcome == "n/a" }.map { String($0.rule.prefix { $0 != "/" }) })
        #expect(unasked == silent, "\(verdicts.filter { $0.outcome == "n/a" }.map(\.rule))")
        return verdicts.count { $0.outcome == "ok" }
    }

    @Test(.needs(.python)) func keepsEveryRule() throws {
        let stream = try RTSPStream(sink: #""sessionSeconds": 5, "# + Self.lenience)
        // Rules of passwords, of TLS and of sound say nothing here.
        #expect(try Self.conforms(stream.url, silent: ["access", "hostile", "persona", "sound"]) >= 120)
        _ = try stream.finish()
    }

    @Test(.needs(.python)) func keepsEveryRuleWithSound() throws {
        let stream = try RTSPStream(sink: #""sessionSeconds": 5, "# + Self.lenience, sound: "aac")
        // Rules of Opus and of a password for the sound say nothing here.
        #expect(try Self.conforms(stream.url, silent: ["access", "hostile", "persona", "sound"]) >= 170)
        _ = try stream.finish()
    }

    @Test(.needs(.python)) func keepsTheRulesOfSoundWithOpus() throws {
        let stream = try RTSPStream(sink: Self.lenience, sound: "opus")
        let outcome = try Self.ask("--strict", "--only", "sound/", stream.url)
        #expect(outcome.status == 0, "\(outcome.output)")
        #expect(outcome.output.contains("ok       must    sound/sdp-opus"), "\(outcome.output)")
        _ = try stream.finish()
    }

    @Test(.needs(.python), .needs(.openssl)) func keepsEveryRuleWithPasswordsOverTLS() throws {
        let stream = try RTSPStream(
            sink: #""sessionSeconds": 5, "users": "env:RTSP_USERS""#, isSecure: true,
            environment: ["RTSP_USERS": "anna:secret"])
        let named = stream.url.replacingOccurrences(of: "rtsps://", with: "rtsps://anna:secret@")
        // Rules of UDP and of sound say nothing here, and thousands of connections are asked in the clear.
        let silent: Set<String> = ["hostile", "media", "message", "persona", "play", "setup", "sound"]
        #expect(try Self.conforms(named, silent: silent) >= 109)
        _ = try stream.finish()
    }

    @Test(.needs(.python)) func basicAuthenticationKeepsTheRulesOfAccess() throws {
        let stream = try RTSPStream(
            sink: #""users": "env:RTSP_USERS", "authentication": "basic""#, environment: ["RTSP_USERS": "anna:secret"])
        let named = stream.url.replacingOccurrences(of: "rtsp://", with: "rtsp://anna:secret@")
        for part in ["access/", "persona/"] {
            let outcome = try Self.ask("--strict", "--only", part, named)
            #expect(outcome.status == 0, "\(outcome.output)")
        }
        _ = try stream.finish()
    }

    /// At the usual timeout of sessions, which would end them much later.
    @Test(.needs(.python), .needs(.openssl)) func cutsOffSlowRequestsAndHandshakes() throws {
        let stream = try RTSPStream(isSecure: true)
        let outcome = try Self.ask("--long", "--strict", "--only", "hostile/slow", stream.url)
        #expect(outcome.output.contains("2 ok"), "\(outcome.output)")
        _ = try stream.finish()
    }

    /// The suite can fail: a path without a stream breaks rules, a port without a server ends it.
    @Test(.needs(.python)) func findsFault() throws {
        let stream = try RTSPStream()
        let missing = try Self.ask("--only", "describe/", stream.url + "/nothing")
        #expect(missing.status == 1)
        #expect(missing.output.contains("FAILED   must    describe/describe"))
        #expect(missing.output.contains("404 Not Found"))
        _ = try stream.finish()
        let unreachable = try Self.ask(stream.url)
        #expect(unreachable.status == 2)
        #expect(unreachable.error.contains("rtsp-conformance: rtsp://"))
    }
}
