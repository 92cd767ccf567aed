// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

/// `framehost top`: with a real chain, in a real terminal (tmux), and before a server that tells whatever a test wants.
@Suite(.serialized) struct TopTests {
    private static let chain = """
        { "id": "cam", "use": "test-source", "size": "320x240", "rate": 50, "live": true },
        { "id": "text", "use": "text", "text": "one", "link": { "queue": 4 } },
        { "id": "h264", "use": "x264-encoder", "preset": "ultrafast", "bitrateKbps": 500 },
        { "id": "sink", "use": "null-sink" }
        """

    // MARK: Lines and JSON

    @Test func printsATableForEachInterval() throws {
        let run = try ControlledRun(stages: Self.chain)
        let outcome = try Program.framehost.run(["top", run.url, "--interval", "0.5", "--count", "2"])
        #expect(outcome.status == 0 && outcome.error == "", "\(outcome.error)")
        let tables = outcome.output.components(separatedBy: "\n\n")
        #expect(tables.count == 2, "\(outcome.output)")
        for table in tables {
            let lines = table.split(separator: "\n").map(String.init)
            #expect(lines.first?.hasPrefix("chain: streaming, healthy  up 0:") == true, "\(table)")
            #expect(lines.first?.contains("of a core  RSS ") == true)
            let heading = lines.first { $0.contains("stage ") }
            for word in ["state", "fps", "wait", "busy", "p99", "queue", "held", "oldest", "drop/s", "drops", "format"]
            {
                #expect(heading?.contains(word) == true, "\(word) in \(table)")
            }
            for id in ["cam", "text", "h264", "sink"] {
                #expect(lines.contains { $0.dropFirst(2).hasPrefix("\(id) ") }, "\(id) in \(table)")
            }
            #expect(table.contains("i420 320x240 50 fps"))
            #expect(!table.contains("\u{1b}"))
        }
        try run.finish()
    }

    @Test func tellsFiguresThatAreTrue() throws {
        let run = try ControlledRun(stages: Self.chain)
        let begin = Date()
        let outcome = try Program.framehost.run(["top", run.url, "--interval", "1", "--count", "4", "--json"])
        let looks = try outcome.lines.map { try JSON(parsing: $0) }
        #expect(outcome.status == 0 && looks.count == 4, "\(outcome.error)")
        let passed = Date().timeIntervalSince(begin)
        #expect(passed >= 4)
        // As the source says itself; a busy machine gives less than was asked for. Where it costs a stage frames, or
        // makes two looks at nearly one time, the rates differ: then another look tells the truth.
        let ids = ["cam", "text", "h264", "sink"]
        func isCalm(_ look: JSON, _ before: JSON) -> Bool {
            let seconds = (look["uptimeSeconds"].double ?? 0) - (before["uptimeSeconds"].double ?? 0)
            guard let captured = look["captured"].double, captured > 5, captured < 56, seconds >= 0.9 else {
                return false
            }
            // It waits for its clock most of the time.
            guard let wait = look["stages"].first("id", "cam")["waitSeconds"].double, wait > 0.005 else { return false }
            return ids.allSatisfy { id in
                let rate = look["stages"].first("id", id)["rate"].double ?? 0
                return abs(rate - captured) < 8
            }
        }
        var all = looks
        var calm = zip(all.dropFirst(), all).first { isCalm($0, $1) }?.0
        if calm == nil {
            let more = try Program.framehost.run(["top", run.url, "--interval", "1", "--count", "20", "--json"])
            all = try more.lines.map { try JSON(parsing: $0) }
            calm = zip(all.dropFirst(), all).first { isCalm($0, $1) }?.0
        }
        let last = try #require(calm, "\(all)")
        for id in ids {
            let stage = last["stages"].first("id", id)
            #expect(stage["state"].string == "streaming" && stage["drops"].int != nil, "\(stage)")
        }
        // That it waits is no work.
        #expect(last["stages"].first("id", "cam")["busy"].isNull, "\(last)")
        let encoder = last["stages"].first("id", "h264")
        #expect((encoder["busy"].double ?? 0) > 0 && (encoder["busy"].double ?? 2) <= 1, "\(encoder)")
        #expect((encoder["p99Seconds"].double ?? 0) > 0 && encoder["format"].string?.hasPrefix("H.264") == true)
        #expect(last["stages"].first("id", "text")["queues"][0]["capacity"].int == 4)
        #expect(last["latency"]["sink"].string == "sink" && (last["latency"]["seconds"].double ?? 0) > 0)
        #expect((last["processor"].double ?? 0) > 0 && (last["processor"].double ?? 9) < 8)
        #expect((last["residentBytes"].int ?? 0) > 5_000_000)
        // By the host's own clock. A look that was late on a busy machine is nearer to the next one.
        let uptimes = looks.map { $0["uptimeSeconds"].double ?? 0 }
        #expect(zip(uptimes, uptimes.dropFirst()).allSatisfy { $0 < $1 }, "\(uptimes)")
        #expect(uptimes[3] - uptimes[0] > 1.5 && uptimes[3] - uptimes[0] < passed, "\(uptimes)")
        try run.finish()
    }

    /// Stages come, go and are exchanged while it looks: no rate is ever one that no stage had.
    @Test func saysNoNonsenseWhileTheChainChanges() throws {
        let run = try ControlledRun(stages: Self.chain)
        let top = try Program.framehost.start(["top", run.url, "--interval", "0.2", "--json"])
        try top.waitForOutput("\n")
        // From now on.
        func wait(until isShown: (JSON) -> Bool) throws {
            let seen = top.output.components(separatedBy: "\n").count - 1
            let deadline = Date() + 120
            while Date() < deadline {
                top.listen(seconds: 0.1)
                let looks = top.output.components(separatedBy: "\n").dropLast().dropFirst(seen)
                if try looks.contains(where: { isShown(try JSON(parsing: $0)) }) { return }
            }
            throw TestFault("no look was as wanted: \(top.output.suffix(4000))")
        }
        for round in 0..<4 {
            _ = try run.send("PUT", "/api/v1/stages/text", #"{ "use": "fps-meter" }"#)
            let attached = try run.send(
                "POST", "/api/v1/branches",
                #"{ "at": "cam", "stages": [ { "id": "more\#(round % 2)", "use": "null-sink" } ], "copy": true }"#)
            #expect(attached.status == 200, "\(attached.json)")
            try wait {
                $0["stages"].first("id", "text")["use"].string == "fps-meter"
                    && $0["stages"].first("id", "more\(round % 2)")["rate"].double != nil
            }
            _ = try run.send("PUT", "/api/v1/stages/text", #"{ "use": "text", "text": "\#(round)" }"#)
            #expect(try run.ctl("detach", "more\(round % 2)").status == 0)
            try wait {
                $0["stages"].first("id", "text")["use"].string == "text"
                    && $0["stages"].first("id", "more\(round % 2)")["id"].string == nil
            }
        }
        top.send(SIGINT)
        let outcome = try top.finish()
        let looks = try outcome.lines.map { try JSON(parsing: $0) }
        #expect(looks.count > 10, "\(outcome.error)")
        #expect(looks.contains { $0["stages"].first("id", "more0")["rate"].double != nil })
        #expect(looks.contains { $0["stages"].first("id", "text")["use"].string == "fps-meter" })
        var before: Double?
        for look in looks {
            let uptime = try #require(look["uptimeSeconds"].double)
            // The first one is an interval after one that is not told.
            let window = before.map { uptime - $0 } ?? 0.2
            before = uptime
            // A source that was late catches up: twice its rate within a window, not more. A short one may have a frame
            // too many at each of its ends.
            let most = 110 + 2 / window
            for stage in look["stages"].list {
                #expect((0...most).contains(stage["rate"].double ?? 0), "\(window) s: \(stage)")
                #expect((0...1).contains(stage["busy"].double ?? 0), "\(stage)")
                #expect((0...30).contains(stage["waitSeconds"].double ?? 0), "\(stage)")
                #expect((stage["dropRate"].double ?? 0) >= 0, "\(stage)")
            }
        }
        try run.finish()
    }

    @Test func saysHowTheChainEnded() throws {
        func watched(_ end: (ControlledRun) throws -> Void) throws -> (outcome: Outcome, url: String) {
            let run = try ControlledRun()
            let top = try Program.framehost.start(["top", run.url, "--interval", "0.2"])
            try top.waitForOutput("cam")
            try end(run)
            return (try top.finish(), run.url)
        }
        // On a busy machine the last event may come too late.
        var ended = try watched { try $0.finish() }.outcome
        for _ in 0..<4 where ended.status != 0 { ended = try watched { try $0.finish() }.outcome }
        #expect(ended.status == 0 && ended.error == "The chain has ended.\n", "\(ended.error)")

        let (gone, url) = try watched { $0.program.send(SIGKILL) }
        #expect(gone.status == 1 && gone.errorLines.count == 1, "\(gone.error)")
        let begin = "\(url): the server has gone; the chain was streaming ("
        #expect(
            ["cannot be reached: ", "the server closed the connection"].contains { gone.error.hasPrefix(begin + $0) },
            "\(gone.error)")
    }

    @Test func saysWhyItCannotLook() throws {
        let port = try RTSPStream.freePort()
        let nobody = try Program.framehost.run("top", "127.0.0.1:\(port)")
        #expect(nobody.status == 1 && nobody.error.contains("cannot be reached"), "\(nobody.error)")
        #expect(try Program.framehost.run("top", "http://").status == 2)
        #expect(try Program.framehost.run("top", "127.0.0.1:1", "--interval", "0").status == 2)
        #expect(try Program.framehost.run("top", "127.0.0.1:1", "--interval", "nan").status == 2)
        #expect(try Program.framehost.run("top", "127.0.0.1:1", "--count", "0").status == 2)
        let token = "0123456789abcdef0123"
        let run = try ControlledRun(control: #""token": "\#(token)""#)
        let refused = try Program.framehost.run("top", run.url, "--count", "1")
        #expect(refused.status == 1 && refused.error.contains("FRAMEHOST_TOKEN"), "\(refused.error)")
        let shown = try Program.framehost.run(
            ["top", run.url, "--count", "1", "--interval", "0.2"], environment: ["FRAMEHOST_TOKEN": token])
        #expect(shown.status == 0 && shown.output.contains("cam") && !shown.output.contains(token))
        try run.workspace.write("token", token + "\n")
        let file = try Program.framehost.run(
            "top", run.url, "--count", "1", "--interval", "0.2", "--token-file", run.workspace.path("token"))
        #expect(file.status == 0, "\(file.error)")
    }

    @Test func endsWithItsReader() throws {
        let run = try ControlledRun()
        let top = try Program.framehost.start(["top", run.url, "--interval", "0.2"])
        try top.waitForOutput("cam")
        top.closeOutput()
        #expect(try top.finish().status == 0)
    }

    // MARK: Whatever a server tells

    @Test(.needs(.python)) func reckonsRatesAndSaysWhereItHurts() throws {
        var looks: [String] = []
        for second in 0..<6 {
            // The sink is another of the same name from the fourth look on.
            let sink = second < 3 ? 1000 + 30 * second : 5 + 10 * (second - 3)
            looks.append(
                StandIn.look(
                    uptime: Double(100 + second),
                    stages: [
                        StandIn.Stage(
                            "cam", kind: "source", out: 30 * second, busy: 0.9 * Double(second), count: 30 * second),
                        StandIn.Stage(
                            "enc", kind: "transform", in: 30 * second, out: 30 * second, busy: 0.6 * Double(second),
                            count: 30 * second, held: 3, limit: 3, oldest: 1.5),
                        StandIn.Stage(
                            "sink", kind: "sink", in: sink, busy: 0.3 * Double(sink) / 30, count: sink,
                            dropped: ["damaged": second]),
                    ],
                    links: [
                        StandIn.Link(
                            "cam", "enc", depth: 2, capacity: 2, offered: 30 * second, dropped: ["evicted": 2 * second]),
                        StandIn.Link("enc", "sink", depth: 0, capacity: 0, offered: sink),
                    ]))
        }
        let server = try StandIn(looks)
        let outcome = try Program.framehost.run(["top", server.url, "--interval", "0.1", "--count", "5", "--json"])
        #expect(outcome.status == 0, "\(outcome.error)")
        let told = try outcome.lines.map { try JSON(parsing: $0) }
        #expect(told.count == 5)
        func stage(_ look: Int, _ id: String) -> JSON { told[look]["stages"].first("id", id) }
        // By the server's clock, not by that of who looks.
        #expect(told.allSatisfy { $0["stages"].first("id", "cam")["rate"].double == 30 })
        #expect(stage(1, "sink")["rate"].double == 30)
        #expect(
            stage(2, "sink")["rate"].isNull && stage(2, "sink")["busy"].isNull && stage(2, "sink")["dropRate"].isNull)
        #expect(stage(3, "sink")["rate"].double == 10)
        // A stage's time is its own: that of the sink, which runs inline behind the encoder, is not part of it.
        for look in 1...3 {
            #expect(abs((stage(look, "enc")["busy"].double ?? 0) - 0.6) < 0.001, "\(stage(look, "enc"))")
        }
        #expect(abs((stage(1, "sink")["busy"].double ?? 0) - 0.3) < 0.001, "\(stage(1, "sink"))")
        // Two wait, thirty come a second.
        #expect(abs((stage(1, "enc")["waitSeconds"].double ?? 0) - 2.0 / 30) < 0.001)
        #expect(stage(1, "enc")["dropRate"].double == 2 && stage(1, "enc")["drops"].int == 4)
        let words = stage(4, "enc")["problems"].list.compactMap(\.string)
        #expect(
            words == [
                "10 items were lost in the last 10 s (queue full, oldest dropped).",
                "The queue from cam was full (2 of 2) at the last 6 updates.",
                "It holds 3 of 3 buffers, the oldest for 1.5 s.",
            ], "\(words)")
        // 99 of 100 took no longer than 6.5 ms since the start, and no longer than 10 ms of late.
        #expect(stage(1, "cam")["p99Seconds"].double == 0.0065 && stage(1, "cam")["p99IsBound"].bool == false)
        // Since the start says something else than the last seconds: these count.
        #expect(stage(1, "enc")["p99Seconds"].double == 0.01 && stage(1, "enc")["p99IsBound"].bool == true)
    }

    /// The counters beside the rates would give other rates.
    @Test(.needs(.python)) func drawsTheRatesOfTheServer() throws {
        let stage = """
            { "id": "cam", "use": "some-source", "kind": "source", "state": "paused", "rate": 12.5, "waitSeconds": 0.25,
              "busy": 0.5, "busySeconds": 0.75, "latencySeconds": 1.25, "p99Seconds": null, "p99IsBound": false,
              "p99AboveSeconds": 3, "queues": [{ "depth": 2, "capacity": 4 }], "held": 1, "heldLimit": 3,
              "heldOldestSeconds": 4.5, "dropRate": 6.5, "drops": 7, "lost": 8, "lostInAll": 9, "replaced": 10,
              "format": "i420 64x64 30 fps", "problems": ["It is slow."],
              "notes": [{ "level": "warn", "word": "slow", "text": "It is slow." }] }
            """
        let rates = """
            { "name": "chain", "state": "streaming", "healthy": false, "problems": ["It is hot."], "captured": 11.5,
              "latency": { "sink": "cam", "seconds": 0.5, "p99Seconds": 1, "p99IsBound": true, "p99AboveSeconds": null },
              "uptimeSeconds": 100, "processor": 1.5, "residentBytes": 20000000, "stages": [\(stage)],
              "links": [{ "from": "cam", "to": "cam", "depth": 2, "capacity": 4, "rate": 12.5, "drops": 1, "replaced": 2,
                "lost": 3, "full": true }],
              "pools": [{ "name": "cam", "buffers": 4, "free": 1, "starved": 0.25 }] }
            """
        let look =
            #"{ "metrics": { "stages": [{ "id": "cam", "framesOut": 7 }], "links": [], "rates": \#(rates) } }"#
        let server = try StandIn([look])
        let told = try Program.framehost.run(["top", server.url, "--interval", "0.1", "--count", "1", "--json"])
        #expect(told.status == 0, "\(told.error)")
        func sorted(_ text: String) throws -> String {
            let value = try JSONSerialization.jsonObject(with: Data(text.utf8))
            return String(
                decoding: try JSONSerialization.data(withJSONObject: value, options: .sortedKeys), as: UTF8.self)
        }
        #expect(try sorted(told.output) == sorted(rates))
        let table = try Program.framehost.run(["top", server.url, "--interval", "0.1", "--count", "1"]).output
        for words in [
            "captured 11.5/s", "latency 500 ms to cam, p99 ≤ 1 s", "! It is hot.", "12.5", "> 3 s", "2/4",
            "! cam: It is slow.", "of the pool cam for 25 % of the time",
        ] { #expect(table.contains(words), "\(words) in \(table)") }
        for odd in [
            #"{ "state": "x", "stages": [7, {}, { "id": "\u001b]0;owned\u0007", "rate": -5, "held": 1e300, "notes": [1, { "level": "x", "text": "\u009b31m" }] }] }"#,
            #"{ "state": "x", "stages": [{ "queues": [[], { "depth": -1 }], "p99AboveSeconds": 1e308, "notes": {} }], "latency": 7, "links": 7 }"#,
        ] {
            let server = try StandIn([#"{ "metrics": { "rates": \#(odd) } }"#])
            let said = try Program.framehost.run(["top", server.url, "--interval", "0.1", "--count", "1"])
            #expect(
                said.status == 0 && !said.output.contains("\u{1b}") && !said.output.contains("\u{9b}"), "\(said.error)")
        }
    }

    @Test(.needs(.python)) func obeysNothingThatAServerSays() throws {
        let evil = "a\u{1b}]0;owned\u{7}\u{9b}31m\n\u{202e}b"
        let long = String(repeating: "x", count: 70_000)
        let look = StandIn.look(
            name: evil, uptime: 1, problems: [evil, long],
            stages: [
                StandIn.Stage(evil, kind: "source", out: -5, busy: -1, count: 1 << 62),
                StandIn.Stage(long, kind: "sink", in: 7), StandIn.Stage("日本語", kind: "filter"),
            ], links: [StandIn.Link(evil, long, depth: -1, capacity: 1 << 61, offered: 3)])
        let server = try StandIn([look, look, look])
        let outcome = try Program.framehost.run(["top", server.url, "--interval", "0.1", "--count", "2"])
        #expect(outcome.status == 0, "\(outcome.error)")
        let odd = outcome.output.unicodeScalars.filter { scalar in
            (scalar.value < 0x20 && scalar != "\n") || (0x7f..<0xa0).contains(scalar.value)
                || (0x2028...0x202e).contains(scalar.value)
        }
        #expect(odd.isEmpty)
        #expect(outcome.output.contains("a?]0;owned??31m??b") && outcome.output.contains("日本語"))
        for answer in [
            "[]", "{}", #"{"status":7,"metrics":[],"figures":null,"plan":{}}"#,
            #"{"status":{"state":"x"},"metrics":{"stages":[7,{"id":7},{}]},"figures":{},"plan":{"stages":[{}]}}"#,
        ] {
            let odd = try StandIn([answer, answer, answer])
            let said = try Program.framehost.run(["top", odd.url, "--interval", "0.1", "--count", "1"])
            #expect(said.status == 0 || (said.status == 1 && said.errorLines.count == 1), "\(answer): \(said.error)")
        }
    }

    // MARK: In a terminal

    @Test(.needs(.tmux)) func drawsItselfAnewAndLeavesTheTerminalAsItWas() throws {
        let run = try ControlledRun(stages: Self.chain)
        let terminal = try Terminal(columns: 120, rows: 20, folder: run.workspace.folder.path)
        try terminal.type(
            "echo before; stty -g > modes; framehost top \(run.url) --interval 0.3; echo status $?; stty -g > after")
        let screen = try terminal.wait { $0.contains("q quit") && $0.contains(" 320x240 ") && !$0.contains("before") }
        #expect(screen.hasPrefix("chain: streaming, healthy"), "\(screen)")
        // Rates come with the second look, and change.
        _ = try terminal.wait { $0.firstMatch(of: /cam +streaming +[1-9]\d*\.\d/) != nil }
        #expect(try terminal.value("#{alternate_on} #{cursor_flag} #{wrap_flag}") == "1 0 0")

        // Narrow: what matters most stays, nothing breaks.
        try terminal.resize(columns: 44, rows: 12)
        let narrow = try terminal.wait {
            !$0.contains("format") && $0.contains("fps") && $0.contains("q quit") && $0.contains("busy")
                && $0.contains("cam") && !$0.contains("oldest")
        }
        #expect(narrow.split(separator: "\n").allSatisfy { $0.count <= 44 })
        // Of any width: a line that fills it to the last column has all its characters.
        let words: Set<Substring> = [
            "stage", "state", "fps", "wait", "busy", "p99", "queue", "held", "oldest", "drop/s", "drops", "format",
        ]
        for columns in 60...76 {
            try terminal.resize(columns: columns, rows: 12)
            let uptime = /up [0-9:]+/
            let before = try terminal.wait { $0.contains(uptime) }.firstMatch(of: uptime)?.output
            _ = try terminal.wait { screen in
                // Drawn since then.
                guard screen.contains("q quit"), let now = screen.firstMatch(of: uptime)?.output, now != before else {
                    return false
                }
                let lines = screen.split(separator: "\n")
                let heading = lines.first { $0.contains("fps") }
                let last = lines.first { $0.contains("sink ") }?.split(separator: " ").last
                return heading?.split(separator: " ").allSatisfy { words.contains($0) } == true
                    && (heading?.hasSuffix("drops") != true || last == "0")
            }
        }
        // Low: stages that do not fit are a key away.
        try terminal.resize(columns: 100, rows: 6)
        _ = try terminal.wait { $0.contains("of 4, arrows move") && !$0.contains("sink  ") }
        for _ in 0..<4 { try terminal.press("Down") }
        _ = try terminal.wait { $0.contains("to 4 of 4") && $0.contains("sink  ") }
        try terminal.resize(columns: 160, rows: 20)
        _ = try terminal.wait { $0.contains("oldest") && $0.contains("i420 320x240 50 fps") }
        try terminal.press("s")
        _ = try terminal.wait { $0.contains("sort (rate)") }

        try terminal.press("q")
        let after = try terminal.wait { $0.contains("status 0") }
        #expect(after.contains("before") && !after.contains("q quit"), "\(after)")
        #expect(try terminal.value("#{alternate_on} #{cursor_flag} #{wrap_flag}") == "0 1 1")
        try terminal.modesAreEqual(in: run.workspace)
        try run.finish()
    }

    @Test(.needs(.tmux), arguments: ["C-c", "C-\\", "TERM", "HUP"])
    func leavesTheTerminalAsItWasWhoeverEndsIt(by way: String) throws {
        let run = try ControlledRun()
        let terminal = try Terminal(columns: 100, rows: 20, folder: run.workspace.folder.path)
        try terminal.type(
            "stty -g > modes; framehost top \(run.url) & echo $! > pid; fg; echo status $?; stty -g > after")
        _ = try terminal.wait { $0.contains("q quit") }
        if way.hasPrefix("C-") {
            try terminal.press(way)
        } else {
            let pid = try String(contentsOfFile: run.workspace.path("pid"), encoding: .utf8)
            kill(pid_t(pid.trimmingCharacters(in: .whitespacesAndNewlines))!, way == "TERM" ? SIGTERM : SIGHUP)
        }
        _ = try terminal.wait { $0.contains("status 0") && !$0.contains("q quit") }
        #expect(try terminal.value("#{alternate_on} #{cursor_flag} #{wrap_flag}") == "0 1 1")
        try terminal.modesAreEqual(in: run.workspace)
        try run.finish()
    }

    @Test(.needs(.tmux)) func stopsAndGoesOnAsTheShellAsks() throws {
        let run = try ControlledRun()
        let terminal = try Terminal(columns: 100, rows: 20, folder: run.workspace.folder.path)
        try terminal.type("framehost top \(run.url)")
        _ = try terminal.wait { $0.contains("q quit") }
        try terminal.press("C-z")
        _ = try terminal.wait { $0.contains("Stopped") && !$0.contains("q quit") }
        #expect(try terminal.value("#{alternate_on} #{cursor_flag} #{wrap_flag}") == "0 1 1")
        try terminal.type("fg")
        _ = try terminal.wait { $0.contains("q quit") && $0.contains("healthy") }
        #expect(try terminal.value("#{alternate_on} #{cursor_flag}") == "1 0")
        try terminal.press("q")
        _ = try terminal.wait { $0.contains("Stopped") }
        try run.finish()
    }

    @Test(.needs(.tmux)) func saysThatTheServerHasGoneOnTheScreenThatWasThere() throws {
        let run = try ControlledRun()
        let terminal = try Terminal(columns: 160, rows: 20, folder: run.workspace.folder.path)
        try terminal.type("stty -g > modes; framehost top \(run.url) --interval 0.3; echo status $?; stty -g > after")
        _ = try terminal.wait { $0.contains("q quit") }
        // One that does not answer keeps nobody waiting.
        run.program.send(SIGSTOP)
        _ = try terminal.wait { $0.contains("has not answered for") }
        run.program.send(SIGKILL)
        let screen = try terminal.wait { $0.contains("status 1") }
        #expect(screen.contains("the server has gone") && !screen.contains("q quit"), "\(screen)")
        try terminal.modesAreEqual(in: run.workspace)
    }
}

// MARK: - A terminal

/// tmux with one window and a shell in it: a terminal as people have it.
private final class Terminal {
    private let name = "framehost-test-\(UUID().uuidString.prefix(8))"
    private let tmux: Program

    init(columns: Int, rows: Int, folder: String) throws {
        tmux = Program(URL(fileURLWithPath: try #require(Tool.tmux.path)))
        let program = try Program.framehost.executable.deletingLastPathComponent().path
        let path = "\(program):\(ProcessInfo.processInfo.environment["PATH"] ?? "")"
        let outcome = try tmux.run(
            [
                "-L", name, "-f", "/dev/null", "new-session", "-d", "-x", "\(columns)", "-y", "\(rows)", "-c", folder,
                "bash", "--norc", "--noprofile", "-i",
            ],
            environment: ["LC_ALL": "C.UTF-8", "PATH": path, "PS1": "$ ", "FRAMEHOST_TOKEN": ""])
        guard outcome.status == 0 else { throw TestFault("tmux: \(outcome.error)") }
        _ = try command("set-option", "-g", "status", "off")
        _ = try command("set-option", "-g", "window-size", "manual")
        try resize(columns: columns, rows: rows)
    }

    deinit { _ = try? command("kill-server") }

    private func command(_ words: String...) throws -> String {
        let outcome = try tmux.run(["-L", name] + words, environment: ["LC_ALL": "C.UTF-8"])
        guard outcome.status == 0 else { throw TestFault("tmux \(words): \(outcome.error)") }
        return outcome.output
    }

    func type(_ text: String) throws {
        _ = try command("send-keys", "-l", text)
        try press("Enter")
    }

    func press(_ key: String) throws { _ = try command("send-keys", key) }

    func resize(columns: Int, rows: Int) throws {
        _ = try command("resize-window", "-x", "\(columns)", "-y", "\(rows)")
    }

    func value(_ format: String) throws -> String {
        try command("display-message", "-p", format).trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// The screen, once it is as wanted.
    func wait(timeout: Double = 180, _ isWanted: (String) -> Bool) throws -> String {
        let deadline = Date() + timeout
        var screen = ""
        while Date() < deadline {
            screen = try command("capture-pane", "-p")
            if isWanted(screen) { return screen }
            usleep(50_000)
        }
        throw TestFault("the screen did not become as wanted:\n\(screen)")
    }

    /// The files `modes` and `after` are what stty(1) said before and after the program.
    func modesAreEqual(in workspace: Workspace) throws {
        let deadline = Date() + 60
        while Date() < deadline, (try? workspace.data("after"))?.isEmpty ?? true { usleep(20_000) }
        let (before, after) = (try workspace.data("modes"), try workspace.data("after"))
        #expect(!before.isEmpty && before == after)
    }
}

// MARK: - A server

/// In the place of a control server: tells one look after the other, whatever is in it.
final class StandIn {
    let url: String
    private let program: RunningProgram
    private let workspace: Workspace

    private static let server = """
        import http.server, json, sys, threading, time
        looks, at = json.load(open(sys.argv[1])), -1

        class Answer(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                global at
                name = self.path.rsplit('/', 1)[1]
                if name == 'status':
                    at = min(at + 1, len(looks) - 1)
                self.send_response(200)
                self.end_headers()
                if name == 'events':
                    time.sleep(600)
                look = looks[at]
                self.wfile.write(json.dumps(look.get(name) if isinstance(look, dict) else look).encode())

            def log_message(self, *words):
                pass

        server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Answer)
        server.daemon_threads = True
        print(f'port {server.server_port} is open', flush=True)
        server.serve_forever()
        """

    /// - Parameter looks: JSON: `status`, `metrics`, `figures` and `plan`; the last one stays.
    init(_ looks: [String]) throws {
        workspace = try Workspace()
        let file = try workspace.write("looks.json", "[" + looks.joined(separator: ",") + "]")
        program = try Tool.python.start(["-c", Self.server, file])
        try program.waitForOutput(" is open")
        url = "127.0.0.1:\(program.output.split(separator: " ")[1])"
    }

    struct Stage {
        var metrics: [String: Any]
        var plan: [String: Any]

        init(
            _ id: String, kind: String, in taken: Int = 0, out: Int = 0, busy: Double = 0, count: Int = 0,
            held: Int = 0,
            limit: Int = 1, oldest: Double = 0, dropped: [String: Int] = [:], state: String = "streaming",
            output: String? = nil, thread: Int = 0
        ) {
            let histogram: [String: Any] = [
                "count": count, "sumSeconds": busy,
                "buckets": [["le": 0.003, "count": 0], ["le": 0.01, "count": count], ["le": 0.03, "count": count]],
            ]
            metrics = [
                "id": id, "use": "some-\(kind)", "kind": kind, "framesIn": taken, "framesOut": out, "held": held,
                "heldLimit": limit, "heldOldestSeconds": oldest, "dropped": dropped, "busy": histogram, "state": state,
            ]
            plan = [
                "id": id, "use": "some-\(kind)", "kind": kind, "thread": thread, "inserted": false, "live": false,
                "output": output ?? NSNull(),
            ]
        }
    }

    struct Link {
        var metrics: [String: Any]
        var plan: [String: Any]

        init(_ from: String, _ to: String, depth: Int, capacity: Int, offered: Int, dropped: [String: Int] = [:]) {
            metrics = [
                "from": from, "to": to, "depth": depth, "capacity": capacity, "offered": offered, "dropped": dropped,
            ]
            plan = ["from": from, "to": to, "queue": capacity, "whenFull": "wait", "format": "i420 64x64 30 fps"]
        }
    }

    /// A look; percentiles since the start are 6.5 ms for all but `enc`, which has 50 ms.
    static func look(
        name: String = "chain", uptime: Double, problems: [String] = [], stages: [Stage], links: [Link] = [],
        pools: [[String: Any]] = []
    ) -> String {
        let look: [String: Any] = [
            "status": [
                "name": name, "state": "streaming", "healthy": problems.isEmpty, "problems": problems,
                "stages": stages.map { ["id": $0.metrics["id"]!, "state": $0.metrics["state"]!] },
            ],
            "metrics": [
                "stages": stages.map(\.metrics), "links": links.map(\.metrics), "pools": pools,
                "process": ["uptimeSeconds": uptime, "processorSeconds": uptime / 4, "residentBytes": 20_000_000],
            ],
            "figures": [
                "stages": stages.map {
                    ["id": $0.metrics["id"]!, "p99Us": $0.metrics["id"] as? String == "enc" ? 50_000 : 6_500]
                }
            ],
            "plan": [
                "stages": stages.map(\.plan), "links": links.map(\.plan), "threads": 2,
                "pools": pools.map {
                    ["stage": $0["name"]!, "copies": false, "min": 2, "need": 4, "buffers": 6, "bytes": 9_000_000]
                },
            ],
        ]
        return String(decoding: try! JSONSerialization.data(withJSONObject: look), as: UTF8.self)
    }
}

extension Tool {
    static let tmux = Tool(name: "tmux")
}
