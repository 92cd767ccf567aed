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
            { "id": "camera", "use": "test-source", "size": "64x48", "rate": 50, "live": true },
            { "id": "mark", "use": "text", "text": "one", "link": { "queue": 1000 } },
            { "id": "h264", "use": "x264-encoder", "preset": "ultrafast", "bitrateKbps": 500,
              "link": { "queue": 1000 } },
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

    /// Room for twenty seconds on either way: a busy machine drops frames of a live source, which is counted elsewhere.
    @Test(.needs(.ffprobe)) func attachesARecordingBranchAndTakesItAway() throws {
        let program = try start(chain: Self.chain.replacing("\"stages\"", with: "\"spare\": 1020, \"stages\""))
        let attached = try program.sendPatiently(
            #"{ "command": "attach", "at": "mark", "stages": [ { "id": "small", "use": "crop-orient", "size": "32x24", "link": { "queue": 1000 } }, { "id": "small264", "use": "x264-encoder", "preset": "ultrafast" }, { "id": "second", "use": "recorder", "path": "small.mp4" } ] }"#
        )
        try program.waitForOutput(#""event":"stage-attached""#)
        try program.waitForFrames(try #require(attached["frame"].int, "\(attached)") + 60)
        let detached = try program.sendPatiently(#"{ "command": "detach", "stage": "small" }"#)
        try program.waitForOutput(#""event":"branch-ended""#)
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.isDoneOrBusy, "\(outcome.error)")
        #expect(attached["ok"].bool == true && detached["ok"].bool == true, "\(attached) \(detached)")
        #expect(try frames("small.mp4") == detached["frame"].int! - attached["frame"].int!)
        // The other recording has lost none.
        let captured = try #require(outcome.error.firstMatch(of: /Done: (\d+) frames/)).1
        #expect(try frames("out.mp4") == Int(captured))
    }

    @Test(.needs(.ffprobe)) func replacesTheEncoderUnderARecording() throws {
        let program = try start()
        let replaced = try program.sendPatiently(
            #"{ "command": "replace", "stage": "h264", "with": { "use": "x264-encoder", "preset": "veryfast", "bitrateKbps": 900, "bframes": 0 } }"#
        )
        #expect(replaced["replaced"][0].string == "h264", "\(replaced)")
        try program.waitForFrames((replaced["frame"].int ?? 0) + 60)
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.isDoneOrBusy, "\(outcome.error)")
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
        try workspace.write("chain.json", Self.chain.replacing("\"size\": \"64x48\"", with: "\"size\": \"128x96\""))
        program.send(SIGHUP)
        try program.waitForOutput("needs a restart")
        try change(program, to: Self.chain.replacing("\"one\"", with: "\"two\""), until: #""set":["mark"]"#) {
            program.send(SIGHUP)
        }
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.isDoneOrBusy, "\(outcome.error)")
        let errors = try outcome.lines.compactMap { try JSON(parsing: $0)["error"].string }
            .filter { !$0.contains(", so nothing was changed") }
        #expect(errors.count == 2, "\(errors)")
        let rate = "chain.json:3:70: stages[0].rate: 0 must be a frame rate of at least 0.001 frames per second."
        #expect(errors.first?.contains(rate) == true, "\(errors)")
        #expect(errors.first?.contains("chain.json:4:36: stages[1].tekst: ") == true, "\(errors)")
        #expect(errors.last?.hasPrefix("chain.json:3:45: stages[0].size: needs a restart:") == true, "\(errors)")
        #expect(errors.allSatisfy { $0.hasSuffix("The chain goes on without this change.") }, "\(errors)")
        // Each of several faults, and what follows from them, on a line of its own.
        let texts = try outcome.lines.compactMap { try JSON(parsing: $0)["text"].string }
        let several = texts.first { $0.hasPrefix(rate) }
        #expect(several?.contains("\n  chain.json:4:36: stages[1].tekst: ") == true, "\(texts)")
        #expect(several?.hasSuffix("\n  The chain goes on without this change.") == true, "\(texts)")
    }

    private func send(_ program: RunningProgram, _ line: String) throws { try program.write(line + "\n") }

    /// Writes the chain file and waits until the program has said `text`: again where a stage that got no processor for
    /// a second has refused the change as a whole.
    private func change(
        _ program: RunningProgram, to chain: String, until text: String, afterwards: () -> Void = {}
    ) throws {
        for _ in 0..<20 {
            let before = program.refusals
            try workspace.write("chain.json", chain)
            afterwards()
            let deadline = Date() + 180
            while !program.output.contains(text), program.refusals == before, Date() < deadline {
                program.listen(seconds: 0.1)
            }
            if program.refusals == before { break }
        }
        try program.waitForOutput(text, timeout: 1)
    }

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
        let replaced = try program.sendPatiently(
            #"{ "command": "replace", "stage": "clip", "with": { "path": "two.mp4", "pace": "realtime" } }"#)
        #expect(replaced["replaced"][0].string == "clip", "\(replaced)")
        try program.waitForFrames((replaced["frame"].int ?? 0) + 60)
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.status == 0, "\(outcome.error)")
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
        let replaced = try program.sendPatiently(
            #"{ "command": "replace", "stage": "file", "with": { "path": "second.mp4" } }"#)
        #expect(replaced["ok"].bool == true, "\(replaced)")
        try program.waitForFrames((replaced["frame"].int ?? 0) + 400)
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.isDoneOrBusy, "\(outcome.error)")
        let captured = try #require(outcome.error.firstMatch(of: /Done: (\d+) frames/)).1
        let (first, second) = (try frames("out.mp4"), try frames("second.mp4"))
        // A busy machine may take seconds to the keyframe; the next one of its own would come after 1,000 frames.
        #expect(
            second > 0 && first + second <= Int(captured)! && first + second >= Int(captured)! - 300,
            "\(first) \(second) \(captured)")
    }

    /// What a run has recorded it does not replace: the next file is the second one, as after a stop and a start.
    @Test(.needs(.ffprobe)) func recordsOnUnderTheNextNameWhereTheNameIsThisRunsOwn() throws {
        let program = try start()
        try workspace.write(
            "chain.json", Self.chain.replacing("\"out.mp4\"", with: "\"out.mp4\", \"finalize\": \"never\""))
        for (command, name) in [
            (#"{ "command": "reload" }"#, "out-0002.mp4"),
            (#"{ "command": "replace", "stage": "file", "with": { "path": "b.mp4" } }"#, "b.mp4"),
            (#"{ "command": "replace", "stage": "file", "with": { "path": "out.mp4" } }"#, "out-0003.mp4"),
        ] {
            let answer = try program.sendPatiently(command)
            #expect(answer["ok"].bool == true, "\(answer)")
            try program.waitForOutput(name)
        }
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.isDoneOrBusy, "\(outcome.error)")
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
        let attached = try program.sendPatiently(#"{ "command": "attach", \#(branch), "copy": true }"#)
        try program.waitForAnswers(1)
        try send(program, #"{ "stage": "small-copy", "command": "detach", "tag": 3 }"#)
        try send(program, #"{ "stage": "small-copy", "command": "replace", "with": { "use": "fps-meter" }, "tag": 4 }"#)
        try program.waitForAnswers(3)
        try program.waitForFrames((attached["frame"].int ?? 0) + 60)
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.isDoneOrBusy, "\(outcome.error)")
        let answers = try answers(outcome)
        #expect(answers[1]?["error"].string?.hasPrefix("stages[0]: 'small' needs ") == true, "\(answers)")
        // The tap is no stage of the file: it comes and goes with the one that it copies for.
        #expect(attached["attached"].list.compactMap(\.string) == ["small", "recorder"], "\(attached)")
        for tag in [3, 4] {
            #expect(
                answers[tag]?["error"].string
                    == "small-copy: framehost has inserted this stage for 'small', and it changes only with 'small'. Name 'small' instead.",
                "\(answers)")
        }
        #expect(try frames("small.mp4") > 20)
        let tap = try JSON(parsing: String(contentsOfFile: workspace.path("stats.json"), encoding: .utf8))["stages"]
            .list.first { $0["id"].string == "small-copy" }
        #expect(tap?["pixelCopies"].int ?? 0 > 20)
        #expect(answers[1]?["error"].string?.contains("\"copy\": true") == true, "\(answers)")
        #expect(attached["ok"].bool == true, "\(attached)")
    }

    @Test func refusesAPipeInThePlaceOfItsFileAndGoesOnToTakeChanges() throws {
        let program = try start()
        #expect(mkfifo(workspace.path("pipe.json"), 0o600) == 0)
        try send(program, #"{ "command": "reload", "file": "\#(workspace.path("pipe.json"))", "tag": 1 }"#)
        let paused = try program.sendPatiently(#"{ "command": "pause", "stage": "mark" }"#)
        try program.waitForAnswers(1)
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.isDoneOrBusy, "\(outcome.error)")
        let answers = try answers(outcome)
        #expect(answers[1]?["error"].string?.contains("pipe.json: must be a regular file") == true, "\(answers)")
        #expect(paused["ok"].bool == true, "\(paused)")
    }

    /// With the size that it had, and its time set back: only its content and the time of its change tell.
    @Test func watchesAFileThatIsWrittenInPlace() throws {
        try workspace.write("chain.json", Self.patient)
        var times = stat()
        #expect(stat(workspace.path("chain.json"), &times) == 0)
        let program = try framehost.start(
            ["chain.json", "--watch", "--events"], folder: workspace.folder.path)
        try program.waitForOutput(#""state":"streaming""#)
        // Another time of change alone is no news.
        #expect(chmod(workspace.path("chain.json"), 0o600) == 0)
        program.listen(seconds: 1.2)
        #expect(!program.output.contains("takes effect"))
        let file = open(workspace.path("chain.json"), O_WRONLY)
        let next = Self.patient.replacingOccurrences(of: #""text": "a""#, with: #""text": "b""#)
        #expect(next.withCString { pwrite(file, $0, strlen($0), 0) } == next.utf8.count)
        let back = [times.st_atim, times.st_mtim]
        #expect(futimens(file, back) == 0)
        close(file)
        try program.waitForOutput(#"the chain file takes effect"#)
        program.send(SIGINT)
        #expect(try program.finish().isDoneOrBusy)
    }

    private static let patient = """
        { "stages": [ { "id": "camera", "use": "test-source", "size": "64x64", "rate": 50, "live": true },
                      { "id": "text", "use": "text", "text": "a" }, { "id": "sink", "use": "null-sink" } ] }
        """

    @Test func watchesItsFile() throws {
        let program = try start("--watch")
        try change(program, to: Self.chain.replacing("\"one\"", with: "\"two\""), until: #""set":["mark"]"#)
        program.send(SIGINT)
        #expect(try program.finish().isDoneOrBusy)
    }

    /// Nobody typed it, so nobody looks for an answer on standard output.
    @Test func theLogSaysTooWhatIsWrongWithAWatchedFile() throws {
        let program = try start("--watch")
        try workspace.write("chain.json", Self.chain.replacing("\"text\": \"one\"", with: "\"txt\": \"one\""))
        try program.waitForError("The chain goes on without this change.")
        #expect(program.error.contains("txt"), "\(program.error)")
        // An answer to a command is for whoever sent it.
        let refused = try program.sendPatiently(#"{ "stage": "nobody", "set": { "text": "b" } }"#)
        #expect(refused["ok"].bool == false)
        #expect(!program.error.contains("nobody"), "\(program.error)")
        program.send(SIGINT)
        _ = try program.finish()
    }

    /// The source waits for its pipe's writer while the chain is planned, when its file has been read.
    @Test func takesAFileThatIsSavedWhileTheChainIsPlanned() throws {
        #expect(mkfifo(workspace.path("in"), 0o600) == 0)
        let chain = """
            { "stages": [ { "id": "in", "use": "y4m-source", "path": "in" },
              { "id": "mark", "use": "text", "text": "one" }, { "use": "null-sink" } ] }
            """
        try workspace.write("chain.json", chain)
        let program = try framehost.start(
            ["chain.json", "--watch", "--events", "--commands"], folder: workspace.folder.path)
        var writer: Int32 = -1
        let deadline = Date() + 120
        while writer < 0, Date() < deadline {
            // Succeeds once the source has opened the pipe.
            writer = open(workspace.path("in"), O_WRONLY | O_NONBLOCK | O_CLOEXEC)
            if writer < 0 { usleep(10_000) }
        }
        #expect(writer >= 0)
        try workspace.write("chain.json", chain.replacing("\"one\"", with: "\"two\""))
        var bytes = Array("YUV4MPEG2 W64 H48 F50:1 C420jpeg\n".utf8)
        while !program.output.contains(#""set":["mark"]"#), Date() < deadline {
            bytes += Array("FRAME\n".utf8) + [UInt8](repeating: 128, count: 64 * 48 * 3 / 2)
            let count = write(writer, bytes, bytes.count)
            bytes.removeFirst(max(0, count))
            program.listen(seconds: 0.02)
        }
        #expect(program.output.contains(#""set":["mark"]"#), "\(program.output)")
        close(writer)
        _ = try program.finish()
    }

    /// The reader of a pipe takes nothing for a while, so the thread before it has no time for the change.
    @Test func triesAWatchedChangeAgainThatTheChainHadNoTimeFor() throws {
        #expect(mkfifo(workspace.path("pipe"), 0o600) == 0)
        let reader = open(workspace.path("pipe"), O_RDONLY | O_NONBLOCK)
        #expect(reader >= 0)
        let chain = """
            { "stages": [
              { "id": "camera", "use": "test-source", "size": "640x480", "rate": 50, "live": true },
              { "id": "mark", "use": "text", "text": "one", "link": { "queue": 2, "whenFull": "dropOldest" } },
              { "id": "out", "use": "y4m-sink", "path": "pipe", "link": { "queue": 0 } } ] }
            """
        let program = try start("--watch", chain: chain)
        // The sink makes the pipe as large as it can: 1 MiB, two pictures.
        try program.waitForFrames(50)
        try workspace.write("chain.json", chain.replacing("\"one\"", with: "\"two\""))
        // inotify(7) tells of each attempt, which opens the file.
        let notices = inotify_init1(Int32(IN_NONBLOCK) | Int32(IN_CLOEXEC))
        defer { close(notices) }
        #expect(inotify_add_watch(notices, workspace.path("chain.json"), UInt32(IN_OPEN | IN_CLOSE_NOWRITE)) >= 0)
        try program.waitForOutput(
            ", so nothing was changed. Wait: framehost tries the change again until the chain has time for it.")
        var bytes = [UInt8](repeating: 0, count: 1 << 16)
        _ = read(notices, &bytes, bytes.count)
        // 0.5 s, 1 s and 2 s after the answer before: other commands have their turn in between.
        program.listen(seconds: 6)
        let count = max(0, read(notices, &bytes, bytes.count))
        let opened = stride(from: 0, to: count, by: 16).count { bytes[$0 + 4] & UInt8(IN_OPEN) != 0 }
        #expect((1...3).contains(opened), "\(opened) attempts")
        let deadline = Date() + 180
        while !program.output.contains(#""set":["mark"]"#), Date() < deadline {
            while read(reader, &bytes, bytes.count) > 0 {}
            program.listen(seconds: 0.05)
        }
        #expect(program.output.contains(#""set":["mark"]"#), "\(program.output)")
        // Said once, however often it was tried.
        #expect(program.refusals == 1, "\(program.output)")
        // Without its reader the sink fails, so that nothing waits at the end.
        close(reader)
        program.send(SIGINT)
        _ = try program.finish()
    }

    /// The change of the file came before the command, and would undo it.
    @Test func doesNotTryAWatchedChangeAgainOnceACommandHasChangedTheChain() throws {
        #expect(mkfifo(workspace.path("pipe"), 0o600) == 0)
        let reader = open(workspace.path("pipe"), O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        #expect(reader >= 0)
        let chain = """
            { "stages": [
              { "id": "camera", "use": "test-source", "size": "640x480", "rate": 50, "live": true },
              { "id": "title", "use": "text", "text": "a" },
              { "id": "mark", "use": "text", "text": "one", "link": { "queue": 2, "whenFull": "dropOldest" } },
              { "id": "out", "use": "y4m-sink", "path": "pipe", "link": { "queue": 0 } } ] }
            """
        let program = try start("--watch", chain: chain)
        // The sink makes the pipe as large as it can: 1 MiB, two pictures.
        try program.waitForFrames(50)
        try workspace.write("chain.json", chain.replacing("\"one\"", with: "\"two\""))
        try program.waitForOutput(
            ", so nothing was changed. Wait: framehost tries the change again until the chain has time for it.")
        let set = try program.sendPatiently(#"{ "stage": "title", "set": { "text": "b" } }"#)
        #expect(set["ok"].bool == true, "\(set)")
        try program.waitForOutput(
            #""framehost does not try the changed chain file again: a command has changed the chain meanwhile. Save the file again to use it.""#
        )
        program.send(SIGHUP)
        try program.waitForOutput(", so nothing was changed. Send SIGHUP again later.\"")
        // Without its reader the sink fails, so that nothing waits at the end.
        close(reader)
        program.send(SIGINT)
        _ = try program.finish()
    }

    /// A fault of a whole stage has no member that a command could name.
    @Test(.needs(.curl)) func aFaultOfTheNewStageAsAWholeStandsAtTheStageThatItReplaces() throws {
        let run = try ControlledRun(arguments: ["--plugin-path", try PluginBuild.misbehave().path])
        let outcome = try run.ctl("replace", "text", #"{ "use": "fall", "early": true, "way": "plain" }"#)
        #expect(outcome.status == 1)
        #expect(outcome.errorLines.first?.hasPrefix("text: an error of type '") == true, "\(outcome.error)")
        try run.finish()
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
            #"{ "command": "attach", "at": "mark", "stages": [ { "use": "null-sink", "from": "camera" } ], "tag": 12 }"#,
            #"{ "command": "attach", "at": "mark", "stages": [ { "use": "mosaic" }, { "use": "null-sink" } ], "tag": 13 }"#,
            #"{ "command": "attach", "at": "file", "stages": [ { "use": "null-sink" } ], "tag": 14 }"#,
        ]
        for line in lines { try program.write(line + "\n") }
        try program.waitForAnswers(lines.count)
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.isDoneOrBusy, "\(outcome.error)")
        let answers = try answers(outcome)
        #expect(answers[1]?["error"].string == "fil: no such stage. Did you mean 'file'?")
        #expect(
            answers[2]?["error"].string
                == "file: no other stage takes the output of 'h264'. Attach another branch after 'h264' first, or replace 'file'."
        )
        #expect(answers[3]?["error"].string?.hasPrefix("'at' and 'stages' must both be given.") == true)
        #expect(answers[4]?["error"].string?.hasPrefix("'with' is missing.") == true)
        #expect(answers[5]?["error"].string?.hasPrefix("stages[0].use: no stage type 'nul-sink'") == true)
        #expect(
            answers[6]?["error"].string
                == "'stage' is missing. Name the stage that the command is for: \"stage\": \"…\".")
        #expect(answers[7]?["plan"]["stages"].list.count == 4)
        #expect(
            answers[8]?["error"].string
                == "camera: nothing would be left: every other stage comes after 'camera'. End the run with the command \"drain\"."
        )
        #expect(answers[9]?["error"].string?.hasPrefix("stages[0].size: ") == true, "\(answers)")
        #expect(
            answers[10]?["error"].string
                == #"with.text: expected a string, found a number. Write the text in double quotes, or leave the key out for "{date} {time}"."#,
            "\(answers)")
        #expect(answers[11]?["error"].string?.hasPrefix("copy: expected true or false") == true, "\(answers)")
        #expect(
            answers[12]?["error"].string
                == #"stages[0].from: the branch is attached at 'mark', which 'from' does not name. Leave 'from' out, or name another stage in "at"."#
        )
        #expect(
            answers[13]?["error"].string
                == #"at: 'mosaic' (mosaic) joins several inputs, but only one is named. Name two or more: "from": ["mark", "…"]."#
        )
        #expect(
            answers[14]?["error"].string
                == "at: 'file' (recorder) has no output. Attach the branch to a stage that has an output, such as 'h264'."
        )
    }

    /// The first stage of a branch takes what the stage gives that it is attached to, and perhaps more.
    @Test func attachesAJoinWithAFurtherInput() throws {
        let program = try start(chain: Self.chain.replacing("\"stages\"", with: "\"spare\": 20, \"stages\""))
        let attached = try program.sendPatiently(
            #"{ "command": "attach", "at": "mark", "stages": [ { "id": "wall", "use": "mosaic", "from": ["mark", "camera"] }, { "id": "end", "use": "null-sink" } ] }"#
        )
        #expect(attached["attached"].list.compactMap(\.string) == ["wall", "end"], "\(attached)")
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.isDoneOrBusy, "\(outcome.error)")
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
        #expect(outcome.isDoneOrBusy, "\(outcome.error)")
        let answers = try answers(outcome)
        let id = line.contains("raw") ? "raw" : line.contains("input.json") ? "in" : "end"
        let fault =
            id == "in"
            ? "--commands: 'in' reads standard input, where commands would come from."
            : "--events: '\(id)' writes to standard output, where events would go."
        let option = line.contains("dump") ? "dump" : "path"
        let outcomeOfReload = line.contains("reload") ? " The chain goes on without this change." : ""
        #expect(
            answers[1]?["error"].string
                == "\(fault) Leave \(id == "in" ? "--commands" : "--events") out, or give '\(id)' a named pipe (made with 'mkfifo') as its \"\(option)\".\(outcomeOfReload)",
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
              { "id": "odd", "use": "misbehave", "fault": "throw", "at": 20, "onError": "\(onError)",
                "link": { "queue": 500 } },
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
        #expect(!outcome.error.lowercased().contains("ledger"), "\(outcome.error)")
    }
}
