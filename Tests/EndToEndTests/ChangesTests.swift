// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// A chain that is changed while it runs: by commands, and by its file read again.
@Suite struct ChangesTests {
    let workspace: Workspace
    let framehost: Program

    init() throws {
        workspace = try Workspace()
        framehost = try Program.framehost
    }

    private static let chain = """
        {
          "stages": [
            { "id": "camera", "use": "test-source", "size": "320x240", "rate": 50, "live": true },
            { "id": "mark", "use": "text", "text": "one", "link": { "queue": 200 } },
            { "id": "h264", "use": "x264-encoder", "preset": "ultrafast", "bitrateKbps": 500, "link": { "queue": 200 } },
            { "id": "file", "use": "recorder", "path": "out.mp4" }
          ]
        }
        """

    private func start(_ arguments: String..., chain: String = Self.chain) throws -> RunningProgram {
        try workspace.write("chain.json", chain)
        let program = try framehost.start(
            ["chain.json", "--commands", "--events"] + arguments, folder: workspace.folder.path)
        try program.waitForOutput(#""state":"streaming""#)
        try program.waitForFrames(20)
        return program
    }

    /// The answers, by tag.
    private func answers(_ outcome: Outcome) throws -> [Int: JSON] {
        var byTag: [Int: JSON] = [:]
        for line in outcome.lines {
            let event = try JSON(parsing: line)
            if event["event"].string == "command-answered", let tag = event["tag"].int { byTag[tag] = event }
        }
        return byTag
    }

    /// Pictures that ffmpeg decodes without a word of complaint.
    private func frames(_ name: String) throws -> Int {
        let outcome = try Tool.ffprobe.run(
            "-v", "error", "-count_frames", "-select_streams", "v:0", "-show_entries", "stream=nb_read_frames", "-of",
            "csv=p=0", workspace.path(name))
        #expect(outcome.error == "")
        return Int(outcome.output.trimmingCharacters(in: .whitespacesAndNewlines)) ?? -1
    }

    /// Room for four seconds on either way: a busy machine drops frames of a live source, which is counted elsewhere.
    @Test(.needs(.ffprobe)) func attachesARecordingBranchAndTakesItAway() throws {
        let program = try start(chain: Self.chain.replacing("\"stages\"", with: "\"spare\": 220, \"stages\""))
        try program.write(
            #"{ "command": "attach", "at": "mark", "tag": 1, "stages": [ { "id": "small", "use": "crop-orient", "size": "160x120", "link": { "queue": 200 } }, { "id": "small264", "use": "x264-encoder", "preset": "ultrafast" }, { "id": "second", "use": "recorder", "path": "small.mp4" } ] }"#
                + "\n")
        try program.waitForOutput(#""event":"stage-attached""#)
        try program.waitForFrames(80)
        try program.write(#"{ "command": "detach", "stage": "small", "tag": 2 }"# + "\n")
        try program.waitForOutput(#""event":"branch-ended""#)
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.status == 0, "\(outcome.error)")
        let answers = try answers(outcome)
        let (attached, detached) = (try #require(answers[1]), try #require(answers[2]))
        #expect(attached["ok"].bool == true && detached["ok"].bool == true, "\(attached) \(detached)")
        #expect(try frames("small.mp4") == detached["frame"].int! - attached["frame"].int!)
        // The other recording has lost none.
        let captured = try #require(outcome.error.firstMatch(of: /Done: (\d+) frames/)).1
        #expect(try frames("out.mp4") == Int(captured))
    }

    @Test(.needs(.ffprobe)) func replacesTheEncoderUnderARecording() throws {
        let program = try start()
        try program.write(
            #"{ "command": "replace", "stage": "h264", "tag": 1, "with": { "use": "x264-encoder", "preset": "veryfast", "bitrateKbps": 900, "bframes": 0 } }"#
                + "\n")
        try program.waitForAnswers(1)
        try program.waitForFrames(100)
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(try answers(outcome)[1]?["replaced"][0].string == "h264", "\(outcome.output)")
        let captured = try #require(outcome.error.firstMatch(of: /Done: (\d+) frames/)).1
        #expect(try frames("out.mp4") == Int(captured))
    }

    @Test func readsItsFileAgainAtSIGHUPAllOrNothing() throws {
        let program = try start()
        try workspace.write(
            "chain.json",
            Self.chain.replacing("\"rate\": 50", with: "\"rate\": 0").replacing(
                "text\": \"one\"", with: "tekst\": \"x\""))
        program.send(SIGHUP)
        try program.waitForOutput("stages[1].tekst")
        try workspace.write("chain.json", Self.chain.replacing("\"size\": \"320x240\"", with: "\"size\": \"640x480\""))
        program.send(SIGHUP)
        try program.waitForOutput("needs a restart")
        try workspace.write("chain.json", Self.chain.replacing("\"one\"", with: "\"two\""))
        program.send(SIGHUP)
        try program.waitForOutput(#""set":["mark"]"#)
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.status == 0, "\(outcome.error)")
        let errors = try outcome.lines.compactMap { try JSON(parsing: $0)["error"].string }
        #expect(errors.count == 2, "\(errors)")
        #expect(errors.first?.contains("chain.json:3:72: stages[0].rate: 0 must be a frame rate.") == true, "\(errors)")
        #expect(errors.first?.contains("chain.json:4:36: stages[1].tekst: ") == true, "\(errors)")
        #expect(errors.last?.hasPrefix("chain.json:3:45: stages[0].size: needs a restart:") == true, "\(errors)")
    }

    private func send(_ program: RunningProgram, _ line: String) throws { try program.write(line + "\n") }

    /// Both files begin at 0; in the recording the second goes on where the first was left.
    @Test(.needs(.ffprobe)) func recordsEveryPictureWhereAFileIsReplacedByAnother() throws {
        try workspace.write(
            "make.json",
            """
            { "stages": [
              { "id": "test", "use": "test-source", "size": "160x120", "rate": 50 },
              { "id": "h264", "use": "x264-encoder", "preset": "ultrafast" },
              { "id": "file", "use": "recorder", "path": "one.mp4" } ] }
            """)
        #expect(try framehost.run(["make.json", "--frames", "400"], folder: workspace.folder.path).status == 0)
        try FileManager.default.copyItem(atPath: workspace.path("one.mp4"), toPath: workspace.path("two.mp4"))
        try workspace.write(
            "chain.json",
            """
            { "stages": [
              { "id": "clip", "use": "file-source", "path": "one.mp4", "pace": "realtime" },
              { "id": "h264", "use": "x264-encoder", "preset": "ultrafast" },
              { "id": "file", "use": "recorder", "path": "out.mp4" } ] }
            """)
        let program = try framehost.start(["chain.json", "--commands", "--events"], folder: workspace.folder.path)
        try program.waitForOutput(#""state":"streaming""#)
        try program.waitForFrames(50)
        try send(
            program,
            #"{ "command": "replace", "stage": "clip", "tag": 1, "with": { "path": "two.mp4", "pace": "realtime" } }"#)
        try program.waitForAnswers(1)
        try program.waitForFrames(120)
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(try answers(outcome)[1]?["replaced"][0].string == "clip", "\(outcome.output)")
        let captured = try #require(outcome.error.firstMatch(of: /Done: (\d+) frames/)).1
        #expect(try frames("out.mp4") == Int(captured), "\(outcome.error)")
    }

    /// The keyframes come 20 s apart: what a new recorder gets at once it has asked for.
    @Test(.needs(.ffprobe)) func recordsOnFromTheFrameAtWhichARecorderIsReplaced() throws {
        try workspace.write(
            "chain.json",
            Self.chain.replacing("\"bitrateKbps\": 500", with: "\"bitrateKbps\": 500, \"keyframeSeconds\": 20"))
        let program = try framehost.start(
            ["chain.json", "--commands", "--events"], folder: workspace.folder.path)
        try program.waitForOutput(#""state":"streaming""#)
        try program.waitForFrames(20)
        try send(
            program, #"{ "command": "replace", "stage": "file", "tag": 1, "with": { "path": "second.mp4" } }"#)
        try program.waitForAnswers(1)
        try program.waitForFrames(100)
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.status == 0, "\(outcome.error)")
        let captured = try #require(outcome.error.firstMatch(of: /Done: (\d+) frames/)).1
        let (first, second) = (try frames("out.mp4"), try frames("second.mp4"))
        #expect(
            first + second <= Int(captured)! && first + second >= Int(captured)! - 20, "\(first) \(second) \(captured)")
    }

    /// What a run has recorded it does not replace: the next file is the second one, as after a stop and a start.
    @Test(.needs(.ffprobe)) func recordsOnUnderTheNextNameWhereTheNameIsThisRunsOwn() throws {
        let program = try start()
        try workspace.write(
            "chain.json", Self.chain.replacing("\"out.mp4\"", with: "\"out.mp4\", \"finalize\": \"never\""))
        try send(program, #"{ "command": "reload", "tag": 1 }"#)
        try program.waitForOutput("out-0002.mp4")
        try send(program, #"{ "command": "replace", "stage": "file", "tag": 2, "with": { "path": "b.mp4" } }"#)
        try program.waitForOutput("b.mp4")
        try send(program, #"{ "command": "replace", "stage": "file", "tag": 3, "with": { "path": "out.mp4" } }"#)
        try program.waitForOutput("out-0003.mp4")
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.status == 0, "\(outcome.error)")
        for tag in 1...3 { #expect(try answers(outcome)[tag]?["ok"].bool == true, "\(outcome.output)") }
        for name in ["out.mp4", "out-0002.mp4", "b.mp4", "out-0003.mp4"] {
            #expect(try frames(name) > 0, "\(name)")
        }
    }

    @Test(.needs(.ffprobe)) func attachesABranchWithCopiesWhereNothingIsToSpare() throws {
        try workspace.write(
            "spare.json", Self.chain.replacing("\"stages\"", with: "\"spare\": 0, \"stages\""))
        let program = try framehost.start(
            ["spare.json", "--commands", "--events", "--stats", "stats.json"], folder: workspace.folder.path)
        try program.waitForFrames(20)
        let branch =
            #""at": "mark", "stages": [ { "id": "small", "use": "x264-encoder", "preset": "ultrafast" }, { "use": "recorder", "path": "small.mp4" } ]"#
        try send(program, #"{ "command": "attach", \#(branch), "tag": 1 }"#)
        try send(program, #"{ "command": "attach", \#(branch), "copy": true, "tag": 2 }"#)
        try program.waitForAnswers(2)
        try send(program, #"{ "stage": "small-copy", "command": "detach", "tag": 3 }"#)
        try send(program, #"{ "stage": "small-copy", "command": "replace", "with": { "use": "fps-meter" }, "tag": 4 }"#)
        try program.waitForAnswers(4)
        try program.waitForFrames(80)
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.status == 0, "\(outcome.error)")
        let answers = try answers(outcome)
        #expect(answers[1]?["error"].string?.hasPrefix("stages[0]: 'small' needs ") == true, "\(answers)")
        // The tap is no stage of the file: it comes and goes with the one that it copies for.
        #expect(answers[2]?["attached"].list.compactMap(\.string) == ["small", "recorder"], "\(answers)")
        for tag in [3, 4] {
            #expect(
                answers[tag]?["error"].string
                    == "small-copy: was inserted for 'small' and changes with it. Name 'small' instead.", "\(answers)")
        }
        #expect(try frames("small.mp4") > 20)
        let tap = try JSON(parsing: String(contentsOfFile: workspace.path("stats.json"), encoding: .utf8))["stages"]
            .list.first { $0["id"].string == "small-copy" }
        #expect(tap?["pixelCopies"].int ?? 0 > 20)
        #expect(answers[1]?["error"].string?.contains("\"copy\": true") == true, "\(answers)")
        #expect(answers[2]?["ok"].bool == true, "\(answers)")
    }

    @Test func refusesAPipeInThePlaceOfItsFileAndGoesOnToTakeChanges() throws {
        let program = try start()
        #expect(mkfifo(workspace.path("pipe.json"), 0o600) == 0)
        try send(program, #"{ "command": "reload", "file": "\#(workspace.path("pipe.json"))", "tag": 1 }"#)
        try send(program, #"{ "command": "pause", "stage": "mark", "tag": 2 }"#)
        try program.waitForAnswers(2)
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.status == 0, "\(outcome.error)")
        let answers = try answers(outcome)
        #expect(answers[1]?["error"].string?.contains("pipe.json: must be a regular file") == true, "\(answers)")
        #expect(answers[2]?["ok"].bool == true, "\(answers)")
    }

    @Test func watchesItsFile() throws {
        let program = try start("--watch")
        try workspace.write("chain.json", Self.chain.replacing("\"one\"", with: "\"two\""))
        try program.waitForOutput(#""set":["mark"]"#)
        program.send(SIGINT)
        #expect(try program.finish().status == 0)
    }

    @Test func refusesWhatCannotBeAndChangesNothing() throws {
        let program = try start()
        let lines = [
            #"{ "command": "detach", "stage": "fil", "tag": 1 }"#,
            #"{ "command": "detach", "stage": "file", "tag": 2 }"#,
            #"{ "command": "attach", "at": "mark", "tag": 3 }"#,
            #"{ "command": "replace", "stage": "mark", "tag": 4 }"#,
            #"{ "command": "attach", "at": "mark", "stages": [ { "use": "nul-sink" } ], "tag": 5 }"#,
            #"{ "command": "pause", "tag": 6 }"#, #"{ "command": "plan", "tag": 7 }"#,
            #"{ "command": "detach", "stage": "camera", "tag": 8 }"#,
            #"{ "command": "attach", "at": "mark", "stages": [ { "use": "crop-orient", "size": "0x9" }, { "use": "null-sink" } ], "tag": 9 }"#,
            #"{ "command": "replace", "stage": "mark", "with": { "text": 5 }, "tag": 10 }"#,
            #"{ "command": "attach", "at": "mark", "stages": [ { "use": "null-sink" } ], "copy": 1, "tag": 11 }"#,
        ]
        for line in lines { try program.write(line + "\n") }
        try program.waitForAnswers(lines.count)
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.status == 0, "\(outcome.error)")
        let answers = try answers(outcome)
        #expect(answers[1]?["error"].string == "fil: no such stage. Did you mean 'file'?")
        #expect(
            answers[2]?["error"].string
                == "file: nothing else takes what 'h264' gives. Detach 'h264', attach another branch after it first, or replace 'file'."
        )
        #expect(answers[3]?["error"].string?.hasPrefix("'at' or 'stages' is missing.") == true)
        #expect(answers[4]?["error"].string?.hasPrefix("'with' is missing.") == true)
        #expect(answers[5]?["error"].string?.hasPrefix("stages[0].use: no kind of stage 'nul-sink'") == true)
        #expect(answers[6]?["error"].string == "'stage' is missing. Name its stage: \"stage\": \"…\".")
        #expect(answers[7]?["plan"]["stages"].list.count == 4)
        #expect(
            answers[8]?["error"].string
                == "camera: nothing would be left: every other stage comes after 'camera'. End the run with the command \"drain\"."
        )
        #expect(answers[9]?["error"].string?.hasPrefix("stages[0].size: ") == true, "\(answers)")
        #expect(answers[10]?["error"].string?.hasPrefix("with.text: ") == true, "\(answers)")
        #expect(answers[11]?["error"].string?.hasPrefix("copy: expected true or false") == true, "\(answers)")
    }

    /// As at the start: standard output has the events, standard input the commands.
    @Test(arguments: [
        #"{ "command": "attach", "at": "mark", "stages": [ { "id": "raw", "use": "y4m-sink" } ], "tag": 1 }"#,
        #"{ "command": "attach", "at": "mark", "stages": [ { "id": "raw", "use": "null-sink", "dump": "-" } ], "tag": 1 }"#,
        #"{ "command": "replace", "stage": "end", "with": { "use": "y4m-sink" }, "tag": 1 }"#,
        #"{ "command": "reload", "file": "output.json", "tag": 1 }"#,
        #"{ "command": "reload", "file": "input.json", "tag": 1 }"#,
    ])
    func refusesAStageThatWouldTakeAStandardStreamOfTheProgram(line: String) throws {
        let chain = """
            { "stages": [
              { "id": "camera", "use": "test-source", "size": "64x48", "rate": 50, "live": true },
              { "id": "mark", "use": "fps-meter" },
              { "id": "end", "use": "null-sink", "link": { "queue": 4 } } ] }
            """
        try workspace.write("output.json", chain.replacing(#""null-sink""#, with: #""y4m-sink""#))
        try workspace.write(
            "input.json",
            chain.replacing(
                "] }",
                with: #", { "id": "in", "use": "y4m-source" }, { "id": "rest", "use": "null-sink", "from": "in" } ] }"#)
        )
        let program = try start(chain: chain)
        try program.write(line + "\n")
        // Read by the program, not by the source that was refused.
        try program.write(#"{ "command": "plan", "tag": 2 }"# + "\n")
        try program.waitForAnswers(2)
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.status == 0, "\(outcome.error)")
        let answers = try answers(outcome)
        let id = line.contains("raw") ? "raw" : line.contains("input.json") ? "in" : "end"
        let fault =
            id == "in"
            ? "--commands: 'in' reads standard input, where commands would come from."
            : "--events: '\(id)' writes to standard output, where events would go."
        #expect(
            answers[1]?["error"].string == "\(fault) Leave it out, or give '\(id)' a pipe made with 'mkfifo'.",
            "\(answers)")
        #expect(answers[2]?["ok"].bool == true)
    }

    // MARK: onError

    private func faulty(_ onError: String) throws -> RunningProgram {
        try workspace.write(
            "chain.json",
            """
            { "stages": [
              { "id": "camera", "use": "test-source", "size": "64x64", "rate": 50, "live": true },
              { "id": "odd", "use": "misbehave", "fault": "throw", "at": 20, "onError": "\(onError)" },
              { "id": "end", "use": "null-sink" } ] }
            """)
        let program = try framehost.start(
            [
                "chain.json", "--commands", "--events", "--stats", "stats.json", "--plugin-path",
                try PluginBuild.misbehave().path,
            ],
            folder: workspace.folder.path)
        try program.waitForOutput(#""event":"stage-failed""#)
        return program
    }

    @Test func letsFramesByAFilterThatFailed() throws {
        let program = try faulty("bypass")
        try program.waitForFrames(60)
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.status == 1)
        let stages = try JSON(parsing: String(contentsOfFile: workspace.path("stats.json"), encoding: .utf8))["stages"]
        #expect(stages.first("id", "odd")["dropped"]["failed"].int == 1)
        #expect((stages.first("id", "end")["framesIn"].int ?? 0) >= 59)
    }

    /// It fails at each frame from the 20th on: made anew it fails again, and again after twice the time.
    @Test func startsAStageThatFailedAnew() throws {
        let program = try faulty("restart")
        try program.waitForOutput(#""event":"stage-restarted""#)
        program.send(SIGINT)
        let outcome = try program.finish()
        let events = try outcome.lines.map { try JSON(parsing: $0) }
        #expect(events.contains { $0["event"].string == "stage-restarted" && $0["stage"].string == "odd" })
        #expect(!outcome.error.contains("ledger"), "\(outcome.error)")
    }
}
