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
        "parameter": "rtsp://127.0.0.1:1/live;\(secret)",
    ]
    /// What people write in the place of any value.
    private static let planted = [
        "rtsp://admin:\(secret)@127.0.0.1:1/live", "rtsp://admin:my \(secret) pw@127.0.0.1:1/live",
        "rtsp://admin:it's \(secret), 'x' \"y\"@127.0.0.1:1/live", "rtsp://admin:a\n\(secret)@127.0.0.1:1/live",
        "admin:\(secret)@127.0.0.1/live", "admin:my '\(secret)' pw@127.0.0.1", "admin:a\t\u{1b}\n\(secret)@127.0.0.1",
        "127.0.0.1/live?\(secret)", "cam.example:554/live;\(secret)", "rtsp://127.0.0.1:1/a;\(secret)",
        "rtsp%3A%2F%2Fadmin%3A\(secret)%40127.0.0.1", "user=admin&password=\(secret)", "http://127.0.0.1:1/x?\(secret)",
    ]

    private static func json(_ text: String) throws -> String {
        String(decoding: try JSONSerialization.data(withJSONObject: text, options: .fragmentsAllowed), as: UTF8.self)
    }

    private struct Kind {
        var id: String
        var kind: String
        var options: [(name: String, type: String)]
    }

    /// All stages and services, with their options.
    private static func kinds(_ folder: String) throws -> [Kind] {
        let framehost = try Program.framehost
        let plugins = try JSON(parsing: try framehost.run(["plugins", "--json"], folder: folder).output)["plugins"]
        return try plugins.list.map { plugin in
            let id = plugin["id"].string ?? ""
            let told = try JSON(parsing: try framehost.run(["describe", id, "--json"], folder: folder).output)
            return Kind(
                id: id, kind: plugin["kind"].string ?? "",
                options: told["options"].list.map { ($0["name"].string ?? "", $0["type"].string ?? "") })
        }
    }

    /// A chain in which a stage or service has these options.
    private static func chain(_ kind: Kind, _ options: String) -> String {
        let stage = "{ \"use\": \"\(kind.id)\"\(options.isEmpty ? "" : ", ")\(options) }"
        let source = "{ \"use\": \"test-source\", \"size\": \"64x64\", \"frames\": 3 }"
        switch kind.kind {
        case "service":
            let key = ["control-server": "control", "mqtt-events": "mqtt", "nats-events": "nats"][kind.id] ?? kind.id
            return "{ \"\(key)\": { \(options) }, \"stages\": [ \(source), { \"use\": \"null-sink\" } ] }"
        case "source": return "{ \"stages\": [ \(stage), { \"use\": \"null-sink\" } ] }"
        case "sink": return "{ \"stages\": [ \(source), \(stage) ] }"
        default: return "{ \"stages\": [ \(source), \(stage), { \"use\": \"null-sink\" } ] }"
        }
    }

    /// Each option of each stage and service at once, as a word, in a list and in an object.
    @Test(arguments: planted.indices) func noFaultOfAnyOptionShowsASecret(index: Int) throws {
        let workspace = try Workspace()
        let framehost = try Program.framehost
        let value = try Self.json(Self.planted[index])
        let kinds = try Self.kinds(workspace.folder.path)
        #expect(kinds.count > 30)
        for form in [value, "[\(value)]", "{ \"a\": \(value) }"] {
            var stages: [String] = []
            var services: [String] = []
            for kind in kinds {
                var options = kind.options.map { "\"\($0.name)\": \(form)" }
                options.append("\"unknown\": \(form)")
                if kind.kind == "service" {
                    let keys = [
                        "control-server": "control", "mqtt-events": "mqtt", "nats-events": "nats", "onvif": "onvif",
                        "webhook": "webhook",
                    ]
                    let key = keys[kind.id]
                    if let key { services.append("\"\(key)\": { \(options.joined(separator: ", ")) }") }
                } else {
                    stages.append("{ \"use\": \"\(kind.id)\", \(options.joined(separator: ", ")) }")
                }
            }
            for key in ["use", "id", "from", "link", "join", "lead", "onError", "unread"] {
                stages.append(
                    "{ \"use\": \"null-sink\", \"\(key)\": \(form) }".replacing(
                        "\"use\": \"null-sink\", \"use\"", with: "\"use\""))
            }
            let link = ["queue", "whenFull", "seconds", "megabytes", "unknown"].map { "\"\($0)\": \(form)" }
            let join = ["lead", "rule", "end", "match", "unknown"].map { "\"\($0)\": \(form)" }
            stages.append(
                "{ \"use\": \"mosaic\", \"link\": { \(link.joined(separator: ", ")) }, \"join\": { \(join.joined(separator: ", ")) } }"
            )
            let rule = ["event", "stage", "when", "for", "every", "otherwise", "unknown"].map { "\"\($0)\": \(form)" }
            let order = ["command", "stage", "set", "unknown"].map { "\"\($0)\": \(form)" }
            services.append(
                """
                "on": [ { \(rule.joined(separator: ", ")), "do": \(form) },
                        { "event": "state", "when": { "state": \(form), "x": \(form) }, "do": { \(order.joined(separator: ", ")) } } ]
                """)
            let top = ["drainSeconds", "spare", "buffers", "unknown"].map { "\"\($0)\": \(form)" }
            try workspace.write(
                "c.json",
                "{ \((services + top).joined(separator: ",\n")), \"stages\": [ \(stages.joined(separator: ",\n")) ] }")
            for words in [
                ["check", "c.json"], ["check", "c.json", "--json"], ["graph", "c.json"], ["run", "c.json", "--events"],
            ] {
                let outcome = try framehost.run(words, folder: workspace.folder.path)
                let said = outcome.output + outcome.error
                #expect(outcome.status == 2, "\(words): \(said.prefix(500))")
                #expect(
                    !said.contains("GEHEIM"),
                    "\(words) \(form): \(said.split(separator: "\n").filter { $0.contains("GEHEIM") }.prefix(5))")
                // What is wrong is still said, for each option.
                if words == ["check", "c.json"], form == value {
                    for name in ["bitrateKbps", "preset", "transport", "listen", "device", "frames"] {
                        #expect(said.contains(name), "\(name): \(said.prefix(500))")
                    }
                }
            }
        }
    }

    /// Each option that takes any text, alone: `check`, and a run as far as it comes.
    @Test func noRunWithASecretInAnyTextShowsIt() throws {
        let workspace = try Workspace()
        let framehost = try Program.framehost
        var number = 0
        for kind in try Self.kinds(workspace.folder.path) {
            for option in kind.options where option.type.contains("string") || option.type.contains("text") {
                for _ in 0..<2 {
                    let text = Self.planted[number % Self.planted.count]
                    number += 1
                    let value = try Self.json(text)
                    let form = option.type.hasPrefix("list") ? "[ \(value) ]" : value
                    // The options without which the stage is refused for another reason.
                    let others = kind.options.filter {
                        $0.name != option.name && ["path", "url", "effect", "broker", "servers"].contains($0.name)
                    }
                    .map { ", \"\($0.name)\": \($0.type.hasPrefix("list") ? "[ \"x.mp4\" ]" : "\"x.mp4\"")" }
                    try workspace.write(
                        "c.json", Self.chain(kind, "\"\(option.name)\": \(form)\(others.joined())"))
                    for words in [
                        ["check", "c.json"], ["check", "c.json", "--json"],
                        ["run", "c.json", "--events", "--verbose", "--stats", "stats.json", "--for", "0.3"],
                    ] {
                        let outcome = try framehost.run(words, folder: workspace.folder.path)
                        let stats =
                            (try? workspace.data("stats.json")).map { String(decoding: $0, as: UTF8.self) } ?? ""
                        let said = outcome.output + outcome.error + stats
                        #expect(
                            !said.contains("GEHEIM"),
                            "\(kind.id).\(option.name) \(words[0]): \(said.split(separator: "\n").filter { $0.contains("GEHEIM") }.prefix(3))"
                        )
                    }
                }
            }
        }
        #expect(number > 80)
    }
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
        for value in Self.planted {
            for option in ["size", "url", "connectSeconds", "none"] {
                note("set", try Program.framehost.run(["ctl", url, "set", "key.\(option)=\(value)"]))
            }
            try workspace.write(
                "attach.json", "[ { \"use\": \"null-sink\", \"dump\": \(Self.json(value)), \"x\": 1 } ]")
            for way in ["attach", "replace"] {
                note(way, try Program.framehost.run(["ctl", url, way, "key", workspace.path("attach.json")]))
            }
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
        where !["c.json", "attach.json"].contains(file) {
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
