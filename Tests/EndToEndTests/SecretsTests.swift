// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

/// Cameras whose password or stream key stands in their address: no output of any command has it.
@Suite struct SecretsTests {
    private static let secret = "GEHEIM7Q"
    private static let addresses = [
        "query": "http://127.0.0.1:1/video.cgi?user=admin&pwd=\(secret)",
        "path": "rtsp://127.0.0.1:1/user=admin&password=\(secret)&channel=1&stream=0.sdp",
        "underscores": "RTSP://127.0.0.1:1/user=admin_password=\(secret)_channel=1_stream=0.sdp",
        "encoded": "rtsp://127.0.0.1:1/user%3Dadmin%26password%3D\(secret)",
        "slash": "rtsp://admin:1/\(secret)@127.0.0.1:1/live",
        "passphrase": "srt://127.0.0.1:1?passphrase=\(secret)12345",
        "key": "rtmp://127.0.0.1:1/live/\(secret)",
        "token": "http://127.0.0.1:1/\(secret)/live.m3u8",
    ]
    private static let refused = [
        "http://admin:\(secret)@127.0.0.1:1/x", "rtsp://admin:p@\(secret)@127.0.0.1/", "rtsp://admin:\(secret)",
        "rtsp://admin:\(secret)/x@127.0.0.1/", "rtsp://admin:#\(secret)@127.0.0.1/", "admin:\(secret)@127.0.0.1/live",
        "127.0.0.1/user=admin&password=\(secret)", "onvif://127.0.0.1/\(secret)", "rtsp://[::1/password=\(secret)",
        "rtsp://127.0.0.1/password=\(secret) x", "rtsp://127.0.0.1/password=\(secret)…",
    ]

    @Test(.needs(.curl)) func noOutputOfAnyCommandHasASecretOfAnAddress() throws {
        let workspace = try Workspace()
        let stages = Self.addresses.sorted { $0.key < $1.key }.map {
            """
            { "id": "\($0.key)", "use": "network-source", "url": "\($0.value)", "size": "320x240", "rate": 10, "ifMissing": "wait",
              "connectSeconds": 1 },
            { "id": "\($0.key)-sink", "use": "null-sink", "from": "\($0.key)" }
            """
        }.joined(separator: ",\n")
        try workspace.write(
            "c.json",
            """
            { "control": { "listen": "127.0.0.1:0" },
              "mqtt": { "broker": "mqtt://127.0.0.1:1", "spool": "spool", "level": "debug" },
              "stages": [ \(stages) ] }
            """)
        var outputs: [(what: String, text: String)] = []
        func note(_ what: String, _ outcome: Outcome) {
            outputs.append((what, outcome.output + outcome.error))
        }
        for words in [
            ["check", "c.json"], ["check", "c.json", "--json"], ["graph", "c.json"], ["describe", "network-source"],
            ["check", "c.json", "--set", "key.urls=rtmp://127.0.0.1/live/\(Self.secret)"],
            ["check", "c.json", "--json", "--set", "key.size=rtmp://127.0.0.1/live/\(Self.secret)"],
            ["check", "rtmp://127.0.0.1/live/\(Self.secret)"], ["rtmp://127.0.0.1/live/\(Self.secret)"],
            ["latency", "rtsp://127.0.0.1:1/user=a&password=\(Self.secret)", "--for", "0.2"],
        ] {
            note(words.joined(separator: " "), try Program.framehost.run(words, folder: workspace.folder.path))
        }
        let program = try Program.framehost.start(
            ["c.json", "--events", "--verbose", "--stats", "stats.json", "--trace", "c.trace"],
            folder: workspace.folder.path)
        program.closeInput()
        try program.waitForOutput(#""event":"control-listening""#)
        for name in Self.addresses.keys { try program.waitForOutput(#""event":"stream-refused","stage":"\#(name)""#) }
        let line = program.output.split(separator: "\n").first { $0.contains(#""event":"control-listening""#) }
        let url = try JSON(parsing: String(try #require(line)))["url"].string ?? ""
        for path in [
            "healthz", "metrics", "openapi.json", "api/v1/status", "api/v1/chain", "api/v1/plan", "api/v1/figures",
            "api/v1/metrics",
            "api/v1/kinds", "api/v1/stages", "api/v1/stages/key", "api/v1/stages/path", "api/v1/stages/slash",
        ] {
            note(path, try Tool.curl.run(["-sS", "--max-time", "60", url + path]))
        }
        for words in [["status"], ["stages"], ["plan"], ["chain"], ["get", "key"], ["get", "path.url"], ["figures"]] {
            note("ctl \(words)", try Program.framehost.run(["ctl", url] + words))
        }
        note("top", try Program.framehost.run(["top", url, "--json", "--once"]))
        // What was shown can be sent back, with a change beside it.
        let chain = try Tool.curl.run(["-sS", url + "api/v1/chain"]).output
        try workspace.write(
            "edited.json", chain.replacingOccurrences(of: #""connectSeconds":1"#, with: #""connectSeconds":2"#))
        let edited = try Tool.curl.run(
            [
                "-sS", "-X", "PUT", "--data-binary", "@\(workspace.path("edited.json"))", "-H",
                "Content-Type: application/json",
                url + "api/v1/chain",
            ])
        note("put", edited)
        #expect(try JSON(parsing: edited.output)["ok"].bool != false, "\(edited.output)")
        let again = try Tool.curl.run(["-sS", url + "api/v1/chain"])
        #expect(
            again.output.contains(#""connectSeconds":2"#) && !again.output.contains(#""connectSeconds":1"#),
            "\(edited.output)")
        program.send(SIGINT)
        note("run", try program.finish())
        for file in try FileManager.default.subpathsOfDirectory(atPath: workspace.folder.path)
        where !["c.json"].contains(file) {
            guard let data = FileManager.default.contents(atPath: workspace.path(file)) else { continue }
            outputs.append((file, String(decoding: data, as: UTF8.self)))
        }
        #expect(outputs.contains { $0.what.hasPrefix("spool/") && $0.text.contains("stream-refused") })
        for (what, text) in outputs {
            #expect(
                !text.contains("GEHEIM"), "\(what): \(text.split(separator: "\n").filter { $0.contains("GEHEIM") })")
        }
        let plan = outputs.first { $0.what == "check c.json" }?.text ?? ""
        #expect(plan.contains("rtsp://127.0.0.1:1/user=…&password=…&channel=…&stream=…"), "\(plan)")
    }

    @Test func aFaultThatQuotesAnOptionHasNoSecretOfIt() throws {
        let workspace = try Workspace()
        func faults(_ stage: String) throws -> String {
            try workspace.write("c.json", "{ \"stages\": [ \(stage), { \"use\": \"null-sink\" } ] }")
            let (plain, json) = (
                try Program.framehost.run(["check", workspace.path("c.json")]),
                try Program.framehost.run(["check", workspace.path("c.json"), "--json"])
            )
            #expect(plain.status == 2 && json.status == 2, "\(stage)")
            return plain.output + plain.error + json.output + json.error
        }
        for url in Self.refused {
            let said = try faults("{ \"use\": \"network-source\", \"url\": \"\(url)\" }")
            #expect(said.contains("url") && !said.contains("GEHEIM"), "\(url): \(said)")
        }
        // The address in the place of another value.
        let url = Self.addresses["path"]!
        for option in ["transport", "size", "slateColor", "rate", "login", "caFile", "no", "from", "use", "link"] {
            let use = option == "use" ? "" : "\"use\": \"network-source\", \"url\": \"udp://:5000\", "
            let said = try faults("{ \(use)\"\(option)\": \"\(url)\" }")
            #expect(!said.contains("GEHEIM"), "\(option): \(said)")
        }
        for stage in ["file-source", "image-source", "y4m-source"] {
            let said = try faults("{ \"use\": \"\(stage)\", \"path\": \"\(url)\" }")
            #expect(!said.contains("GEHEIM"), "\(stage): \(said)")
        }
    }
}
