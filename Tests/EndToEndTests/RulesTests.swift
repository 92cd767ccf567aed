// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// Rules of a chain file, carried out by the program.
@Suite(.serialized) struct RulesTests {
    let workspace: Workspace
    let framehost: Program

    init() throws {
        workspace = try Workspace()
        framehost = try Program.framehost
    }

    private func events(_ outcome: Outcome, _ name: String) throws -> [JSON] {
        try outcome.lines.map { try JSON(parsing: $0) }.filter { $0["event"].string == name }
    }

    /// A camera that can be paused, with a title and a recorder that waits.
    private static func chain(_ rules: String, record: String = "onCommand") -> String {
        """
        { "stages": [
            { "id": "cam", "use": "test-source", "size": "320x240", "rate": 30, "live": true },
            { "id": "meter", "use": "fps-meter" },
            { "id": "title", "use": "text", "text": "a" },
            { "id": "h264", "use": "x264-encoder", "preset": "ultrafast", "tune": "zerolatency", "keyframeSeconds": 1 },
            { "id": "rec", "use": "recorder", "path": "out-{n}.mp4", "record": "\(record)" }
          ],
          "on": \(rules) }
        """
    }

    private func start(_ rules: String, _ arguments: String...) throws -> RunningProgram {
        try workspace.write("chain.json", Self.chain(rules))
        let program = try framehost.start(
            ["chain.json", "--commands", "--events"] + arguments, folder: workspace.folder.path)
        try program.waitForOutput(#""state":"streaming""#)
        try program.waitForFrames(5)
        return program
    }

    // MARK: A start that fails

    /// The disk is full when a recording is asked for: the recorder lives on, and a rule may ask again.
    @Test(.needs(.ffprobe), arguments: ["stop", "restart"]) func asksAgainForARecordingOnAFullDisk(onError: String)
        throws
    {
        try workspace.write("films/keep", "")
        let disk = try SmallDisk(at: workspace.path("films"))
        guard !disk.isLimit else { return }
        try disk.empty(room: 4096)
        try workspace.write(
            "chain.json",
            Self.chain(
                #"[{ "event": "recording-did-fail", "every": 5, "do": { "stage": "rec", "command": "start" } }]"#
            )
            .replacingOccurrences(
                of: #""path": "out-{n}.mp4""#,
                with: #""path": "films/out-{n}.mp4", "preEventSeconds": 2, "onError": "\#(onError)""#))
        let program = try framehost.start(["chain.json", "--commands", "--events"], folder: workspace.folder.path)
        try program.waitForOutput(#""state":"streaming""#)
        try program.waitForFrames(75)
        try program.write(#"{"stage":"rec","command":"start"}"# + "\n")
        try program.waitForOutput(#""event":"recording-did-fail""#)
        try program.waitForFrames(105)
        try disk.empty(room: 32 << 20)
        try program.waitForOutput(#""event":"recording-did-start""#)
        try program.write(#"{"stage":"rec","command":"stop"}"# + "\n")
        try program.waitForOutput(#""event":"recording-did-stop""#)
        try program.write(#"{"command":"drain"}"# + "\n")
        let outcome = try program.finish()
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(try events(outcome, "rule-failed").isEmpty)
        let stop = try #require(try events(outcome, "recording-did-stop").first)
        // Two seconds before the command and more than one after it.
        #expect((stop["seconds"].double ?? 0) > 3, "\(stop)")
        #expect(workspace.exists("films/out-1.mp4"))
    }

    // MARK: A face records

    private static let hasCascades = FileManager.default.fileExists(
        atPath: "/usr/share/opencv4/haarcascades/haarcascade_frontalface_alt2.xml")

    /// Three seconds of grey, four of a face, nine of grey.
    @Test(
        .needs(.ffmpeg), .needs(.ffprobe),
        .enabled(if: hasCascades || Tool.isCI, "opencv-data is not installed: make test-packages"))
    func recordsOnlyWhileThereIsAFace() throws {
        let workshop = try ClipWorkshop()
        let portrait = Repository.root.appending(path: "examples/media/astronaut_portrait.png").path
        let clip = try workshop.ffmpeg([
            "-f", "lavfi", "-i", "color=0x808080:size=320x320:rate=15,trim=duration=16", "-loop", "1", "-r", "15", "-t",
            "16",
            "-i", portrait, "-filter_complex",
            "[1]scale=320:320[p];[0][p]overlay=enable='between(t,3,6.99)':shortest=1,format=yuv420p", "-c:v", "libx264",
            "-preset", "veryfast", "clip.mp4",
        ])
        let chain = try workshop.workspace.write(
            "chain.json",
            """
            { "stages": [
                { "id": "in", "use": "file-source", "path": "\(clip)", "pace": "realtime" },
                { "id": "face", "use": "face-effect", "detector": "haar", "draw": false },
                { "id": "h264", "use": "x264-encoder", "preset": "ultrafast", "tune": "zerolatency", "keyframeSeconds": 10 },
                { "id": "rec", "use": "recorder", "path": "out.mp4", "record": "onCommand" }
              ],
              "on": [ {
                "event": "faces", "when": { "count": { "above": 0 } }, "for": 0.5,
                "do": { "stage": "rec", "command": "start" },
                "otherwise": { "for": 1, "do": { "stage": "rec", "command": "stop" } }
              } ] }
            """)
        let outcome = try framehost.run([chain, "--events"], timeout: 300)
        #expect(outcome.status == 0, "\(outcome.error)")
        let (begun, ended) = (try events(outcome, "recording-did-start"), try events(outcome, "recording-did-stop"))
        #expect(begun.count == 1 && ended.count == 1, "\(outcome.output)")
        // The face is found a little after it has come, and must be there for half a second. A busy machine sees it
        // later.
        let begin = begun.first?["startSeconds"].double ?? 0
        #expect((3.4..<7).contains(begin), "begins at \(begin) s")
        // It ends a second after the face has gone, and what follows of a face is followed for a while.
        let end = begin + (ended.first?["seconds"].double ?? 0)
        // Without the rule it would end with the clip, at 16 s.
        #expect((7.9..<15).contains(end), "ends at \(end) s")
        let file = try RecordedFile(workshop.workspace.path("out-0001.mp4"))
        #expect(file.packets.count == ended.first?["frames"].int && file.packets.count > 10)
        let counts = try events(outcome, "faces")
        #expect(
            counts.map { $0["count"].int } == [1, 0] && counts.allSatisfy { $0["level"].string == "debug" }, "\(counts)"
        )
        #expect(try events(outcome, "rule-did").map { $0["otherwise"].bool } == [false, true])
        #expect(!outcome.error.contains("1 face."), "for people only when asked for")
    }

    // MARK: States and moments

    @Test func followsAStateThereAndBack() throws {
        let program = try start(
            """
            [ { "event": "state", "stage": "title", "when": { "state": "paused" }, "for": 0.3,
                "do": [ { "stage": "title", "set": { "text": "b" } }, { "stage": "rec", "command": "start" } ],
                "otherwise": { "do": { "stage": "rec", "command": "stop" } } } ]
            """)
        try program.write(#"{ "stage": "title", "command": "pause" }"# + "\n")
        try program.waitForOutput(#""event":"recording-did-start""#)
        program.listen(seconds: 0.5)
        try program.write(#"{ "stage": "title", "command": "resume" }"# + "\n")
        try program.waitForOutput(#""event":"recording-did-stop""#)
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.isDoneOrBusy, "\(outcome.error)")
        let did = try events(outcome, "rule-did")
        #expect(
            did.map { $0["rule"].string } == ["on[0]", "on[0]"] && did.map { $0["otherwise"].bool } == [false, true])
        let paused = try events(outcome, "state").first {
            $0["stage"].string == "title" && $0["state"].string == "paused"
        }
        let held = (did.first?["time"].double ?? 0) - (paused?["time"].double ?? 0)
        #expect(held >= 0.29, "after \(held) s")
        #expect(try events(outcome, "option-changed").first?["options"]["text"].string == "b")
        #expect(try events(outcome, "recording-did-stop").count == 1)
    }

    @Test func takesAPictureOfALossEachTimeWithANameOfItsOwn() throws {
        try workspace.write(
            "chain.json",
            """
            { "stages": [
                { "id": "a", "use": "test-source", "size": "320x240", "rate": 30, "live": true },
                { "id": "b", "use": "test-source", "size": "320x240", "rate": 30, "live": true, "pattern": "balls" },
                { "id": "sw", "use": "source-switch", "from": ["a", "b"], "lostSeconds": 2, "backSeconds": 0.2 },
                { "id": "end", "use": "null-sink" }
              ],
              "on": [
                { "event": "input-lost", "when": { "input": "a" },
                  "do": { "stage": "sw", "command": "snapshot", "path": "lost-%Y%m%d-%H%M%S.jpg" } },
                { "event": "input-back", "when": { "input": "a" },
                  "do": { "stage": "sw", "command": "snapshot", "path": "100%%.png", "overwrite": true } }
              ] }
            """)
        let program = try framehost.start(["chain.json", "--commands", "--events"], folder: workspace.folder.path)
        try program.waitForOutput(#""state":"streaming""#)
        func said(_ event: String, _ member: String) -> Int {
            program.output.split(separator: "\n").count {
                $0.contains(#""event":"\#(event)""#) && $0.contains(member)
            }
        }
        func wait(_ what: String, until isThere: () -> Bool) throws {
            let deadline = Date() + 180
            while !isThere(), Date() < deadline { program.listen(seconds: 0.05) }
            guard isThere() else { throw TestFault("no \(what): \(program.output.suffix(4000))") }
        }
        var lost: [String] { workspace.names.filter { $0.hasSuffix(".jpg") } }
        // A stage that gets no processor for a second gives no picture: then once more.
        var round = 0
        while round < 2 || round < 10 && (lost.count < 2 || !workspace.exists("100%.png")) {
            round += 1
            try program.write(#"{ "stage": "a", "command": "pause" }"# + "\n")
            try wait("picture \(round) of a loss") {
                lost.count + said("rule-failed", #""rule":"on[0]""#) >= round
            }
            try program.write(#"{ "stage": "a", "command": "resume" }"# + "\n")
            try wait("input \(round) that is back") { said("input-back", #""input":"a""#) >= round }
            try wait("picture \(round) of what is back") {
                workspace.exists("100%.png") || said("rule-failed", #""rule":"on[1]""#) >= round
            }
        }
        program.send(SIGINT)
        let outcome = try program.finish()
        let failed = try events(outcome, "rule-failed")
        let late = failed.filter { $0["level"].string == "error" }
        #expect(late.allSatisfy { $0["error"].string?.contains("gave no picture within") == true }, "\(late)")
        #expect(late.isEmpty ? outcome.isDoneOrBusy : outcome.status == 1, "\(outcome.error)")
        let year = Calendar(identifier: .gregorian).component(.year, from: Date())
        let names = lost
        #expect(names.count >= 2 && names.allSatisfy { $0.hasPrefix("lost-\(year)") }, "\(workspace.names)")
        #expect(names.allSatisfy { $0.count == "lost-20261231-235959.jpg".count })
        // One for each loss, and none else.
        let did = try events(outcome, "rule-did").count { $0["rule"].string == "on[0]" }
        #expect(names.count == did - failed.count { $0["rule"].string == "on[0]" }, "\(workspace.names)")
        #expect(workspace.exists("100%.png"))
    }

    @Test func endsTheChain() throws {
        try workspace.write(
            "chain.json",
            Self.chain(#"[ { "event": "fps", "when": { "fpsByPTS": { "above": 0 } }, "do": { "command": "drain" } } ]"#)
        )
        let outcome = try framehost.run(["chain.json"], folder: workspace.folder.path)
        #expect(outcome.isDoneOrBusy, "\(outcome.error)")
        #expect(outcome.seconds < 120)
    }

    // MARK: What fails

    @Test func aCommandThatFailsIsAnErrorAndTheChainGoesOn() throws {
        let program = try start(
            #"[ { "event": "option-changed", "stage": "title", "do": [ { "stage": "rec", "command": "stop" }, { "stage": "h264", "command": "keyframe" } ] } ]"#
        )
        try program.write(#"{ "stage": "title", "set": { "text": "x" } }"# + "\n")
        try program.waitForOutput(#""event":"rule-failed""#)
        try program.write(#"{ "stage": "title", "set": { "text": "y" } }"# + "\n")
        let deadline = Date() + 180
        while program.output.components(separatedBy: #""event":"rule-failed""#).count < 3, Date() < deadline {
            program.listen(seconds: 0.05)
        }
        try program.waitForFrames(30)
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.status == 1)
        let failed = try events(outcome, "rule-failed")
        #expect(failed.count == 2)
        #expect(failed.first?["command"].string == "on[0].do[0]" && failed.first?["level"].string == "error")
        #expect(failed.first?["error"].string == "the recorder 'rec' is not recording, so there is nothing to stop.")
        #expect(
            outcome.errorLines.contains(
                "error: on[0].do[0] (rec stop): the recorder 'rec' is not recording, so there is nothing to stop."),
            "\(outcome.error)")
        #expect(
            outcome.error.contains(
                "error: on[0].do[0] (rec stop): the command of this rule was sent 2 times and failed 2 times.\n  the recorder 'rec' is not recording, so there is nothing to stop.\n"
            ), "\(outcome.error)")
        #expect(outcome.errorLines.contains { $0.hasPrefix("Failed: ") }, "\(outcome.error)")
    }

    @Test func aRuleThatLeadsToItsOwnEventRests() throws {
        let program = try start(
            #"[ { "event": "option-changed", "stage": "title", "do": { "stage": "title", "set": { "text": "b" } } } ]"#)
        try program.write(#"{ "stage": "title", "set": { "text": "x" } }"# + "\n")
        try program.waitForOutput(#""event":"rule-rests""#)
        program.listen(seconds: 1)
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.isDoneOrBusy, "\(outcome.error)")
        #expect(try events(outcome, "rule-did").count == 20)
        #expect(
            outcome.errorLines.contains(
                "warning: on[0] ran 20 times within 10 s, so it pauses for 10 s. Its command probably causes the event that triggers the rule: change one of them, or set the shortest time between two runs with 'every'."
            ), "\(outcome.error)")
    }

    @Test func aCommandToAStageThatHasEndedIsNoFailure() throws {
        try workspace.write(
            "chain.json",
            """
            { "stages": [
                { "id": "short", "use": "test-source", "size": "320x240", "frames": 3 },
                { "id": "end", "use": "null-sink", "from": "short" },
                { "id": "cam", "use": "test-source", "size": "320x240", "rate": 30, "live": true, "frames": 90 },
                { "id": "meter", "use": "fps-meter", "from": "cam" },
                { "id": "title", "use": "text", "from": "short" },
                { "id": "end2", "use": "null-sink", "from": "title" },
                { "id": "end3", "use": "null-sink", "from": "meter" }
              ],
              "on": [ { "event": "fps", "do": { "stage": "title", "set": { "text": "x" } } } ] }
            """)
        let outcome = try framehost.run(["chain.json", "--events"], folder: workspace.folder.path)
        #expect(outcome.status == 0, "\(outcome.error)")
        let failed = try events(outcome, "rule-failed")
        #expect(!failed.isEmpty && failed.allSatisfy { $0["level"].string == "debug" }, "\(failed)")
    }

    /// The reader of a pipe takes nothing for a while, so that each change takes a second, and the rule's waits.
    @Test func aCommandThatStillWaitsAtTheEndIsNoFailure() throws {
        #expect(mkfifo(workspace.path("pipe"), 0o600) == 0)
        let reader = open(workspace.path("pipe"), O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        #expect(reader >= 0)
        defer { close(reader) }
        try workspace.write(
            "chain.json",
            """
            { "stages": [
                { "id": "cam", "use": "test-source", "size": "640x480", "rate": 50, "live": true },
                { "id": "meter", "use": "fps-meter" },
                { "id": "title", "use": "text", "text": "a", "link": { "queue": 2, "whenFull": "dropOldest" } },
                { "id": "out", "use": "y4m-sink", "path": "pipe", "link": { "queue": 0 } } ],
              "on": [ { "event": "fps", "when": { "fpsByPTS": { "above": 0 } }, "for": 4,
                        "do": { "stage": "cam", "command": "pause" } } ] }
            """)
        let program = try framehost.start(
            ["chain.json", "--commands", "--events"], folder: workspace.folder.path)
        try program.waitForOutput(#""state":"streaming""#)
        try program.waitForFrames(25)
        for _ in 0..<10 {
            try program.write(#"{ "stage": "title", "command": "replace", "with": { "text": "b" } }"# + "\n")
        }
        try program.waitForOutput(#""event":"rule-did""#)
        program.send(SIGINT)
        var bytes = [UInt8](repeating: 0, count: 1 << 16)
        let outcome = try program.finish { while read(reader, &bytes, bytes.count) > 0 {} }
        #expect(!outcome.error.contains("the command of this rule"), "\(outcome.error)")
        let failed = try events(outcome, "rule-failed")
        // Without one the command was carried out before the end, and nothing waited.
        #expect(!failed.isEmpty && failed.allSatisfy { $0["level"].string == "debug" }, "\(failed)")
    }

    // MARK: Changes

    @Test func aReloadBringsOtherRulesAndKeepsTheStateOfTheSame() throws {
        let kept =
            #"{ "event": "state", "stage": "cam", "when": { "state": "paused" }, "for": 16, "do": { "stage": "title", "set": { "text": "kept" } } }"#
        let program = try start("[ \(kept) ]")
        try program.write(#"{ "stage": "cam", "command": "pause" }"# + "\n")
        try program.waitForOutput(#""state":"paused""#)
        program.listen(seconds: 8)
        try workspace.write(
            "chain.json",
            Self.chain(
                #"[ { "event": "option-changed", "every": 5, "do": { "stage": "rec", "command": "start" } }, \#(kept) ]"#
            ))
        let reloaded = try program.sendPatiently(#"{ "command": "reload" }"#)
        #expect(reloaded["ok"].bool == true, "\(reloaded)")
        try program.waitForOutput(#""event":"rules-changed""#)
        try program.waitForOutput(#""rule":"on[1]""#)
        try program.waitForOutput(#""rule":"on[0]""#)
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.isDoneOrBusy, "\(outcome.error)")
        let changed = try events(outcome, "rules-changed").first
        #expect(changed?["count"].int == 2 && changed?["kept"].int == 1)
        let paused = try events(outcome, "state").first {
            $0["stage"].string == "cam" && $0["state"].string == "paused"
        }
        let did = try events(outcome, "rule-did")
        #expect(did.first?["rule"].string == "on[1]")
        let time = did.first?["time"].double ?? 0
        let held = time - (paused?["time"].double ?? 0)
        #expect(held >= 15.99, "held for \(held) s, the reload in between")
        // A rule that begins anew with the reload waits for the whole of its time again.
        let left = time - (changed?["time"].double ?? 0)
        #expect(left < 15.5, "\(left) s after the reload")
    }

    @Test func refusesAReloadWithABadRuleAndADetachThatOneNeeds() throws {
        let program = try start(
            #"[ { "event": "fps", "when": { "jitterMs": { "above": 1e6 } }, "do": { "stage": "rec", "command": "start" } } ]"#
        )
        let answers = try [
            #"{ "stage": "rec", "command": "replace", "with": { "use": "null-sink" } }"#,
            #"{ "command": "attach", "at": "meter", "stages": [ { "id": "more", "use": "null-sink" } ] }"#,
            #"{ "stage": "more", "command": "detach" }"#,
        ].map { try program.sendPatiently($0) }
        try workspace.write(
            "chain.json", Self.chain(#"[ { "event": "fsp", "do": { "stage": "rec", "command": "start" } } ]"#))
        let reload = try program.sendPatiently(#"{ "command": "reload" }"#)
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.isDoneOrBusy, "\(outcome.error)")
        #expect(
            answers[0]["error"].string?.contains(
                "on[0].do.command: null-sink has no command 'start'. It has 'pause', 'resume' and 'snapshot'.") == true,
            "\(answers)")
        #expect(answers[1]["ok"].bool == true && answers[2]["ok"].bool == true, "\(answers)")
        #expect(
            reload["error"].string?.contains("on[0].event: no stage of this chain posts 'fsp'. Did you mean 'fps'?")
                == true, "\(reload)")
    }

    // MARK: What it says

    @Test func checkShowsTheRules() throws {
        try workspace.write(
            "chain.json",
            Self.chain(
                """
                [ { "event": "fps", "when": { "fpsByPTS": { "below": 20.5 } }, "for": 1.5, "every": 60,
                    "do": [ { "stage": "rec", "command": "start" }, { "stage": "title", "set": { "text": "slow" } } ],
                    "otherwise": { "for": 5, "do": { "stage": "rec", "command": "stop" } } },
                  { "event": "stage-failed", "when": { "code": { "not": "stopped" } }, "do": { "command": "drain" } } ]
                """))
        let outcome = try framehost.run(["check", "chain.json"], folder: workspace.folder.path)
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(
            outcome.output.hasSuffix(
                """

                Rules
                  on[0]  fps of meter, fpsByPTS below 20.5, for 1.5 s, every 60 s at most: rec start, title set text="slow"; otherwise for 5 s: rec stop
                  on[1]  stage-failed of any stage, code not "stopped": drain

                """), "\(outcome.output)")
        let json = try JSON(
            parsing: framehost.run(["check", "chain.json", "--json"], folder: workspace.folder.path).output)
        #expect(json["rules"].list.map { $0["rule"].string } == ["on[0]", "on[1]"])
    }

    @Test func figuresHaveTheRules() throws {
        let program = try start(
            #"[ { "event": "option-changed", "do": { "stage": "h264", "command": "keyframe" } } ]"#, "--stats",
            "stats.json")
        try program.write(#"{ "stage": "title", "set": { "text": "x" } }"# + "\n")
        try program.waitForOutput(#""event":"rule-did""#)
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.isDoneOrBusy, "\(outcome.error)")
        let rules = try JSON(file: workspace.path("stats.json"))["rules"]
        #expect(rules[0]["rule"].string == "on[0]" && rules[0]["done"].int == 1, "\(rules)")
    }
}
