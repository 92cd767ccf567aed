// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// Several chains in one process: each by itself, with what they share (docs/several-chains.md).
@Suite struct SeveralChainsTests {
    let workspace: Workspace
    let framehost: Program

    init() throws {
        workspace = try Workspace()
        framehost = try Program.framehost
    }

    private func run(_ arguments: String...) throws -> Outcome {
        try framehost.run(arguments, folder: workspace.folder.path)
    }

    private func start(_ arguments: [String], onTerminal: Bool = false) throws -> RunningProgram {
        try framehost.start(arguments, folder: workspace.folder.path, onTerminal: onTerminal)
    }

    /// A camera's pace, served at a path of a port.
    private func served(_ port: Int, _ path: String, size: String, source: String = "") -> String {
        """
        {
          "stages": [
            { "id": "camera", "use": "test-source", "size": "\(size)", "rate": 25, "live": true\(source) },
            { "id": "h264", "use": "x264-encoder", "preset": "ultrafast", "keyframeSeconds": 0.5 },
            { "id": "live", "use": "rtsp-sink", "port": \(port), "path": "/\(path)" }
          ]
        }
        """
    }

    /// A live chain with a faulty stage.
    private func faulty(_ members: String) -> String {
        """
        {
          "drainSeconds": 0.5,
          "stages": [
            { "id": "camera", "use": "test-source", "size": "64x64", "rate": 50, "live": true },
            { "id": "odd", "use": "misbehave", \(members) }, { "use": "null-sink" }
          ]
        }
        """
    }

    /// Events of one chain.
    private func events(_ output: String, of chain: String) throws -> [JSON] {
        try output.split(separator: "\n").map { try JSON(parsing: String($0)) }.filter { $0["chain"].string == chain }
    }

    /// Whether all of them ended as they should. On a machine that has no time for it a live chain loses frames, and
    /// counts as failed then, without an error of its own.
    private func areDoneOrBusy(_ outcome: Outcome, _ chains: Int) -> Bool {
        guard outcome.status != 0 else { return outcome.errorLines.last == "Done: \(chains) chains." }
        let errors = outcome.errorLines.filter { $0.hasPrefix("error") }
        return outcome.status == 1 && outcome.error.contains("the live chain lost") && errors.count == 1
            && errors[0].contains(" of \(chains) chains failed: ")
    }

    /// Without times and rates.
    private func plain(_ lines: [String]) -> [String] {
        lines.map { $0.replacing(/\ in [0-9:.]+ \([0-9.–]+ fps\)/, with: "") }
    }

    // MARK: What runs

    @Test func runsSeveralFilesAndNamesEachInItsLines() throws {
        try workspace.write("a.json", Chains.short)
        try workspace.write("b.json", Chains.short.replacing("30 }", with: "20 }"))
        let outcome = try run("a.json", "b.json")
        #expect(outcome.status == 0)
        #expect(outcome.output == "")
        let lines = plain(outcome.errorLines)
        #expect(lines.last == "Done: 2 chains.")
        #expect(
            lines.dropLast().sorted() == [
                "a: Done: 30 frames, 30 delivered, 0 dropped.", "b: Done: 20 frames, 20 delivered, 0 dropped.",
            ])
    }

    @Test func runsEachChainOfAFolder() throws {
        try workspace.write("chains.d/b.json", Chains.short)
        try workspace.write("chains.d/a.json", Chains.short)
        try workspace.write("chains.d/.c.json", "no chain")
        // What a mask keeps beside its chain.
        try workspace.write("chains.d/b.areas.json", #"{ "use": "mask", "areas": [] }"#)
        try workspace.write("chains.d/notes.txt", "no chain")
        let outcome = try run("chains.d/", "--quiet", "--stats", "figures.json")
        #expect(outcome.status == 0)
        #expect(outcome.error == "")
        let chains = try JSON(file: workspace.path("figures.json"))["chains"].list
        #expect(chains.map { $0["chain"].string } == ["a", "b"])
        #expect(chains.map { $0["file"].string } == ["chains.d/a.json", "chains.d/b.json"])
        #expect(chains.map { $0["status"].string } == ["done", "done"])
        for chain in chains {
            #expect(chain["figures"]["stages"].first("id", "sink")["framesIn"].int == 30)
        }
    }

    @Test func namesTheChainOfAFolderThatHasOne() throws {
        try workspace.write("chains.d/only.json", Chains.short)
        let outcome = try run("chains.d")
        #expect(outcome.status == 0)
        #expect(plain(outcome.errorLines) == ["only: Done: 30 frames, 30 delivered, 0 dropped.", "Done: 1 chain."])
    }

    @Test func saysInEachEventWhoseItIs() throws {
        try workspace.write("a.json", Chains.short)
        try workspace.write("b.json", Chains.short)
        let outcome = try run("a.json", "b.json", "--events", "--log-format", "json")
        #expect(outcome.status == 0)
        for chain in ["a", "b"] {
            let states = try events(outcome.output, of: chain).filter { $0["event"].string == "state" }
            #expect(states.map { $0["state"].string } == ["starting", "streaming", "stopped"])
        }
        #expect(try outcome.lines.allSatisfy { try JSON(parsing: $0)["chain"].string != nil })
        let log = try outcome.errorLines.map { try JSON(parsing: $0) }
        #expect(
            log.contains { $0["chain"].string == "a" && $0["message"].string?.hasPrefix("Done: 30 frames") == true })
        #expect(log.last?["message"].string == "Done: 2 chains.")
        #expect(log.last?["chain"].string == nil)
    }

    @Test func servesSeveralChainsOnOnePort() throws {
        let port = try RTSPStream.freePort()
        try workspace.write("a.json", served(port, "a", size: "320x240"))
        try workspace.write("b.json", served(port, "b", size: "160x120"))
        let program = try start(["a.json", "b.json"])
        program.closeInput()
        for chain in ["a", "b"] { try program.waitForError("\(chain): live: Readers can open ") }
        for (path, size) in [("a", "320x240"), ("b", "160x120")] {
            let probe = try ClipProbe.ofStream("rtsp://127.0.0.1:\(port)/\(path)")
            #expect(probe == size)
        }
        program.send(SIGTERM)
        let outcome = try program.finish()
        #expect(areDoneOrBusy(outcome, 2), "\(outcome.error)")
    }

    @Test func endsNoChainButTheOneWhosePathItServes() throws {
        let port = try RTSPStream.freePort()
        try workspace.write("a.json", served(port, "a", size: "320x240", source: #", "frames": 25"#))
        try workspace.write("b.json", served(port, "b", size: "160x120"))
        let program = try start(["a.json", "b.json"])
        program.closeInput()
        try program.waitForError(": 25 frames in ")
        #expect(try ClipProbe.ofStream("rtsp://127.0.0.1:\(port)/b") == "160x120")
        program.send(SIGTERM)
        let outcome = try program.finish()
        #expect(areDoneOrBusy(outcome, 2), "\(outcome.error)")
    }

    // MARK: Each fails alone

    @Test func aChainThatFailsDoesNotEndTheOthers() throws {
        try workspace.write("bad.json", faulty(#""fault": "throw", "at": 10"#))
        try workspace.write("good.json", Chains.live)
        let program = try startMisbehaving(["bad.json", "good.json", "--events"])
        try program.waitForError("bad: Failed: ")
        let before = try frames(of: "good", program)
        try program.waitForFrames(before + 50, of: "good")
        program.send(SIGTERM)
        let outcome = try program.finish()
        #expect(outcome.status == 1)
        // The first one from 10 on that its link has not dropped.
        let frame = outcome.error.firstMatch(of: /error: bad: odd \(misbehave\): frame (\d+),/).flatMap { Int($0.1) }
        #expect(try #require(frame, "\(outcome.error)") >= 10)
        #expect(outcome.error.contains("good: Done: "))
        #expect(outcome.errorLines.last == "error: 1 of 2 chains failed: 'bad'.")
    }

    @Test func aStageThatHangsInStartHoldsUpNoOtherChain() throws {
        try workspace.write("a.json", Chains.live)
        try workspace.write("bad.json", faulty(#""inStart": true"#))
        try workspace.write("c.json", Chains.live)
        let program = try startMisbehaving(["a.json", "bad.json", "c.json", "--events"])
        try program.waitForFrames(100, of: "a")
        try program.waitForFrames(100, of: "c")
        try program.waitForOutput(#""event":"stage-hangs""#)
        program.send(SIGTERM)
        let outcome = try program.finish()
        #expect(outcome.status == 1)
        #expect(outcome.error.contains("a: Done: "))
        #expect(outcome.error.contains("c: Done: "))
        #expect(
            outcome.error.contains(
                "error: bad: odd (misbehave) did not return within 800 ms after the stop and was abandoned"))
        #expect(outcome.errorLines.last == "error: 1 of 3 chains failed: 'bad'.")
        // c waited for nobody but for a quarter of a second.
        let streaming = try ["a", "c"].map { chain in
            try events(outcome.output, of: chain).first { $0["state"].string == "streaming" }?["time"].double ?? 0
        }
        #expect(streaming[1] - streaming[0] < 5)
    }

    @Test func aChainThatCannotStartDoesNotKeepTheOthersFromStarting() throws {
        let port = try RTSPStream.freePort()
        try workspace.write("first.json", served(port, "x", size: "64x64"))
        let first = try start(["first.json"])
        first.closeInput()
        try first.waitForError("live: Readers can open ")
        try workspace.write("a.json", served(port, "a", size: "64x64"))
        try workspace.write("b.json", Chains.short)
        let outcome = try run("a.json", "b.json")
        #expect(outcome.status == 1)
        #expect(outcome.error.contains("error: a: live (rtsp-sink): "), "\(outcome.error)")
        #expect(outcome.error.contains("b: Done: 30 frames"))
        #expect(outcome.errorLines.last == "error: 1 of 2 chains failed: 'a'.")
        first.send(SIGTERM)
        _ = try first.finish()
    }

    @Test func aCrashNamesTheChain() throws {
        try workspace.write("a.json", Chains.live)
        try workspace.write(
            "b.json",
            """
            { "stages": [ { "id": "pictures", "use": "test-source", "size": "64x64", "rate": 50 },
              { "id": "odd", "use": "fall", "way": "segv", "at": 20 }, { "use": "null-sink" } ] }
            """)
        let outcome = try startMisbehaving(
            ["a.json", "b.json"], environment: ["SWIFT_BACKTRACE": "enable=no"]
        ).finish()
        #expect(outcome.status > 128)
        #expect(outcome.error.contains("error: b: odd (fall, "), "\(outcome.error)")
        #expect(outcome.error.contains(" crashed in its call 'process', at frame 20: "), "\(outcome.error)")
    }

    // MARK: Commands and signals

    @Test func aCommandIsForTheChainThatItNames() throws {
        try workspace.write("cam1.json", Chains.live)
        try workspace.write("cam2.json", Chains.live)
        let program = try start(["cam1.json", "cam2.json", "--commands"])
        try program.waitForFrames(10, of: "cam1")
        try program.waitForFrames(10, of: "cam2")
        for line in [
            #"{ "command": "drain", "tag": 1 }"#, #"{ "chain": "cam3", "command": "drain", "tag": 2 }"#,
            #"{ "chain": "cam1", "command": "drain", "tag": 3 }"#,
        ] {
            try program.write(line + "\n")
        }
        try program.waitForError("cam1: Done: ")
        let before = try frames(of: "cam2", program)
        try program.waitForFrames(before + 20, of: "cam2")
        try program.write(#"{ "chain": "cam1", "command": "status", "tag": 4 }"# + "\n")
        try program.waitForOutput(#""tag":4"#)
        program.send(SIGTERM)
        let outcome = try program.finish()
        #expect(outcome.status == 0)
        let answers = try outcome.lines.map { try JSON(parsing: $0) }
        func answer(_ tag: Int) -> JSON { answers.first { $0["tag"].int == tag } ?? JSON(nil) }
        #expect(
            answer(1)["error"].string
                == #"'chain' is missing. Name the chain that the command is for, 'cam1' or 'cam2': "chain": "cam1"."#
        )
        #expect(answer(2)["error"].string == "chain: no chain has the name 'cam3'. Did you mean 'cam1'?")
        #expect(answer(3)["ok"].bool == true)
        #expect(answer(3)["chain"].string == "cam1")
        #expect(
            answer(4)["error"].string
                == "cam1: the chain has not started yet, or has ended. Wait until it has started, or run it again if it has ended."
        )
    }

    @Test func oneSignalDrainsAll() throws {
        for name in ["a", "b", "c"] { try workspace.write("\(name).json", Chains.live) }
        let program = try start(["a.json", "b.json", "c.json", "--events"])
        program.closeInput()
        for name in ["a", "b", "c"] {
            try program.waitForOutput(#""event":"state","chain":"\#(name)","level":"info","text":"chain: streaming."#)
        }
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.status == 0)
        for name in ["a", "b", "c"] { #expect(outcome.error.contains("\(name): Done: ")) }
        #expect(outcome.errorLines.last == "Done: 3 chains.")
    }

    @Test func aHangupReloadsAll() throws {
        for name in ["a", "b"] { try workspace.write("\(name).json", Chains.live) }
        let program = try start(["a.json", "b.json", "--events"])
        program.closeInput()
        for name in ["a", "b"] {
            try program.waitForOutput(#""event":"state","chain":"\#(name)","level":"info","text":"chain: streaming."#)
        }
        for name in ["a", "b"] {
            try workspace.write(
                "\(name).json",
                Chains.live.replacing(#""stages""#, with: #""drainSeconds": 5, "stages""#))
        }
        program.send(SIGHUP)
        for name in ["a", "b"] {
            try program.waitForOutput(#""event":"command-answered","chain":"\#(name)""#)
        }
        program.send(SIGTERM)
        let outcome = try program.finish()
        #expect(outcome.status == 0)
        for name in ["a", "b"] {
            let answer = try events(outcome.output, of: name).first { $0["event"].string == "command-answered" }
            #expect(answer?["ok"].bool == true, "\(outcome.output)")
        }
    }

    @Test func showsOneProgressLineForAll() throws {
        for name in ["a", "b"] { try workspace.write("\(name).json", Chains.live) }
        let program = try start(["a.json", "b.json"], onTerminal: true)
        program.closeInput()
        try program.waitForError("2 chains: 2 streaming  ")
        program.send(SIGTERM)
        #expect(try program.finish().status == 0)
    }

    // MARK: Options

    @Test func setsAnOptionOfOneChainOrOfEach() throws {
        try workspace.write("a.json", Chains.short)
        try workspace.write("b.json", Chains.short)
        let outcome = try run("a.json", "b.json", "--set", "pictures.frames=7", "--set", "b:pictures.frames=9")
        #expect(outcome.status == 0)
        #expect(outcome.error.contains("a: Done: 7 frames"))
        // What is meant for one chain wins wherever it stands.
        #expect(outcome.error.contains("b: Done: 9 frames"), "\(outcome.error)")
        let wrong = try run(
            "a.json", "b.json", "--set", "picture.frames=1", "--set", "a:pictures.framez=1")
        #expect(wrong.status == 2)
        #expect(
            wrong.errorLines == [
                "--set picture.frames=1: no chain has a stage 'picture'. Did you mean 'pictures'?",
                "a: --set pictures.framez=1: no such option. Did you mean 'frames'?",
            ])
        let unknown = try run("a.json", "b.json", "--set", "c:pictures.frames=1")
        #expect(unknown.status == 2)
        #expect(unknown.errorLines == ["--set c:pictures.frames=1: no chain has the name 'c'. Did you mean 'a'?"])
    }

    @Test func writesATraceOfEachChain() throws {
        try workspace.write("a.json", Chains.short)
        try workspace.write("b.json", Chains.short)
        #expect(try run("a.json", "b.json", "--quiet", "--trace", "run.trace").status == 0)
        #expect(workspace.names.filter { $0.hasSuffix(".trace") } == ["run-a.trace", "run-b.trace"])
    }

    // MARK: Checks

    @Test func runsNothingWhenOneChainIsWrong() throws {
        try workspace.write("a.json", recording("a.mp4"))
        try workspace.write("b.json", #"{ "stages": [ { "use": "test-sourc" }, { "use": "null-sink" } ] }"#)
        let outcome = try run("a.json", "b.json")
        #expect(outcome.status == 2)
        #expect(outcome.errorLines.count == 1)
        #expect(outcome.error.hasPrefix("b.json:1:"))
        #expect(!workspace.exists("a.mp4"))
        let skipping = try run("a.json", "b.json", "--skip-wrong")
        #expect(skipping.status == 1)
        #expect(skipping.error.contains("a: Done: "))
        #expect(skipping.error.contains("error: 'b.json' is left out (--skip-wrong)."))
        #expect(skipping.errorLines.last == "error: 1 of 2 chains was left out: 'b'.")
        #expect(workspace.exists("a.mp4"))
        let both = try run("b.json", "b.json", "--skip-wrong")
        #expect(both.status == 2)
        #expect(both.errorLines.first == "b.json: is named twice. Name it once.")
    }

    // MARK: What is away

    private func reading(_ port: Int) -> String {
        """
        { "stages": [ { "id": "net", "use": "network-source", "url": "rtsp://127.0.0.1:\(port)/live" },
                      { "id": "sink", "use": "null-sink" } ] }
        """
    }

    /// A camera that is away costs only its own chain, which begins when it is there.
    @Test(.needs(.ffmpeg)) func aChainWhoseCameraIsAwayBeginsLater() throws {
        let port = try RTSPStream.freePort()
        try workspace.write("a.json", Chains.live)
        try workspace.write("b.json", reading(port))
        let run = try start(["a.json", "b.json", "--events", "--stats", "stats.json"])
        try run.waitForOutput(#""state":"streaming""#)
        try run.waitForError("b: ")
        #expect(run.error.contains("'rtsp://127.0.0.1:\(port)/live' cannot be opened: Connection refused"))
        #expect(run.error.contains("The chain is tried again after 1 s"))
        run.listen(seconds: 2)
        // Said once.
        #expect(run.error.split(separator: "\n").count { $0.contains("Connection refused") } == 1, "\(run.error)")
        let camera = try RTSPStream(port: port)
        try run.waitForError("What was away is there after ")
        run.listen(seconds: 1)
        run.send(SIGINT)
        let outcome = try run.finish()
        _ = try camera.finish()
        #expect(areDoneOrBusy(outcome, 2), "\(outcome.error)")
        let stats = try JSON(file: workspace.path("stats.json"))
        #expect(stats["chains"].first("chain", "b")["status"].string != "away")
        #expect(try !events(outcome.output, of: "b").isEmpty)
    }

    /// A chain that waits for its camera also waits for its file, which somebody edits, and no SIGHUP ends it.
    @Test(.needs(.ffmpeg), arguments: [1, 2]) func aChainThatIsAwayMayBeEdited(chains: Int) throws {
        let port = try RTSPStream.freePort()
        try workspace.write("a.json", Chains.live)
        let waiting = reading(port).replacing(#""url""#, with: #""ifMissing": "wait", "decode": false, "url""#)
        try workspace.write("b.json", waiting)
        let environment = ["STATE_DIRECTORY": workspace.path("state")]
        let run = try framehost.start(
            (chains == 1 ? ["b.json"] : ["a.json", "b.json"]) + ["--events"], environment: environment,
            folder: workspace.folder.path)
        try run.waitForError("Connection refused")
        try workspace.write("b.json", "{ ")
        run.send(SIGHUP)
        try run.waitForError("b.json:1:")
        try workspace.write("b.json", waiting)
        run.send(SIGHUP)
        let camera = try RTSPStream(port: port)
        try run.waitForError(" is there after ")
        run.listen(seconds: 1)
        run.send(SIGINT)
        let outcome = try run.finish()
        _ = try camera.finish()
        #expect(chains == 1 ? outcome.isDoneOrBusy : areDoneOrBusy(outcome, chains), "\(outcome.error)")
    }

    @Test func aChainThatNeverBeganHasFailed() throws {
        let port = try RTSPStream.freePort()
        try workspace.write("a.json", Chains.live)
        try workspace.write("b.json", reading(port))
        try workspace.write(
            "c.json", #"{ "stages": [ { "use": "file-source", "path": "none.mp4" }, { "use": "null-sink" } ] }"#)
        let run = try start(["a.json", "b.json", "c.json", "--stats", "stats.json", "--verbose"])
        try run.waitForError("2 away")
        run.send(SIGINT)
        let outcome = try run.finish()
        #expect(outcome.status == 1)
        #expect(outcome.error.contains("b: The chain ends without having begun: something is still away."))
        #expect(outcome.errorLines.last == "error: 2 of 3 chains failed: 'b' and 'c'.", "\(outcome.error)")
        let stats = try JSON(file: workspace.path("stats.json"))
        #expect(stats["chains"].list.map { $0["status"].string } == ["done", "away", "away"])
        #expect(stats["chains"].first("chain", "b")["faults"].list.count == 1)
        // With --for each chain waits no longer than that.
        let limited = try self.run("b.json", "c.json", "--for", "1.5")
        #expect(limited.status == 1 && limited.errorLines.last == "error: 2 of 2 chains failed: 'b' and 'c'.")
    }

    /// A file that comes later is taken. A fault of a chain file still refuses all.
    @Test func aFileThatIsAwayIsTakenWhenItIsThere() throws {
        try workspace.write("a.json", Chains.live)
        try workspace.write(
            "b.json", #"{ "stages": [ { "use": "y4m-source", "path": "late.y4m" }, { "use": "null-sink" } ] }"#)
        let run = try start(["a.json", "b.json"])
        try run.waitForError("The chain is tried again")
        let picture = [UInt8](repeating: 128, count: 16 * 16 * 3 / 2)
        try workspace.write("late.y4m", Data("YUV4MPEG2 W16 H16 F25:1\nFRAME\n".utf8) + Data(picture))
        try run.waitForError("b: Done: 1 frame")
        run.send(SIGINT)
        let outcome = try run.finish()
        #expect(areDoneOrBusy(outcome, 2), "\(outcome.error)")
        try workspace.write("c.json", #"{ "stages": [ { "use": "test-sourc" }, { "use": "null-sink" } ] }"#)
        try workspace.write("late.json", reading(1))
        for files in [["late.json", "c.json"], ["late.json", "none.json"]] {
            let refused = try framehost.run(files, folder: workspace.folder.path)
            #expect(refused.status == 2 && !refused.error.contains("tried again"), "\(refused.error)")
        }
    }

    @Test func findsWhatOnlyOneChainCanHave() throws {
        try workspace.write("a.json", recording("out.mp4"))
        try workspace.write("b.json", recording("out.mp4"))
        try workspace.write("c.json", served(8554, "cam", size: "64x64"))
        try workspace.write("d.json", served(8554, "cam", size: "64x64"))
        try workspace.write("e.json", controlled())
        try workspace.write("f.json", controlled())
        try workspace.write("g.json", recording("cam-{nn}.mp4"))
        try workspace.write("h.json", recording("cam-{nn}.mp4"))
        for command in ["check", "run"] {
            let outcome = try run(
                command, "a.json", "b.json", "c.json", "d.json", "e.json", "f.json", "g.json", "h.json")
            #expect(outcome.status == 2)
            #expect(
                outcome.errorLines == [
                    "b.json:4:38: stages[2].path: 'file' would write 'out.mp4', which 'file' of the chain 'a' writes. Name another file.",
                    "d.json:5:55: stages[2].path: 'live' serves port 8554, path '/cam', as does 'live' of the chain 'c'. Give each stage a 'path' or 'port' of its own.",
                    "f.json: control.listen: 'control' listens on port 8080, as does 'control' of the chain 'e'. Set another port for one of them.",
                    "h.json:4:38: stages[2].path: 'file' names its files 'cam-{nn}.mp4' in the same folder, as does 'file' of the chain 'g'. Put something of its own into the 'path' of each, such as a camera's name: otherwise nothing tells whose file is whose.",
                ], "\(outcome.error)")
        }
    }

    @Test func refusesTwoChainsOfOneNameAndEmptyFolders() throws {
        try workspace.write("x/cam.json", Chains.short)
        try workspace.write("y/cam.json", Chains.short)
        try FileManager.default.createDirectory(
            at: workspace.folder.appending(path: "none"), withIntermediateDirectories: true)
        let outcome = try run("check", "x/cam.json", "y", "none")
        #expect(outcome.status == 2)
        #expect(
            outcome.errorLines == [
                "none: is a folder without chain files (*.json). Name a chain file, or a folder that has some.",
                "y/cam.json: the chain has the name 'cam', and so has the chain of x/cam.json. Give one of the files another name.",
            ])
    }

    @Test func checksSeveralAndSumsTheirMemory() throws {
        try workspace.write("a.json", Chains.short)
        try workspace.write("b.json", Chains.short)
        let outcome = try run("check", "a.json", "b.json")
        #expect(outcome.status == 0)
        #expect(outcome.output.hasPrefix("a.json:\n"))
        #expect(outcome.output.contains("\nb.json:\n"))
        #expect(outcome.lines.last?.hasPrefix("2 chains need ") == true)
        let json = try JSON(parsing: try run("check", "a.json", "b.json", "--json").output)
        #expect(json["chains"].list.map { $0["chain"].string } == ["a", "b"])
        #expect((json["memoryBytes"].int ?? 0) > 2 * 320 * 240)
        #expect(json["chains"][1]["stages"].list.count == 2)
    }

    // MARK: Helpers

    private func recording(_ path: String) -> String {
        """
        { "stages": [
          { "id": "pictures", "use": "test-source", "size": "64x64", "rate": 30, "frames": 10 },
          { "id": "h264", "use": "x264-encoder" },
          { "id": "file", "use": "recorder", "path": "\(path)" } ] }
        """
    }

    private func controlled() -> String {
        """
        { "control": {}, "stages": [
          { "id": "pictures", "use": "test-source", "size": "64x64", "frames": 10 }, { "use": "null-sink" } ] }
        """
    }

    private func startMisbehaving(_ arguments: [String], environment: [String: String] = [:]) throws -> RunningProgram {
        try framehost.start(
            arguments + ["--plugin-path", try PluginBuild.misbehave().path, "--commands"], environment: environment,
            folder: workspace.folder.path)
    }

    private func frames(of chain: String, _ program: RunningProgram) throws -> Int {
        try program.waitForFrames(0, of: chain)
    }
}

extension RunningProgram {
    /// Asks a chain of several, by `--commands`, until its sources have given so many frames; how many they have.
    @discardableResult
    func waitForFrames(_ count: Int, of chain: String, timeout: Double = 60) throws -> Int {
        let deadline = Date() + timeout
        while Date() < deadline {
            let tag = "\(chain) \(UInt32.random(in: 0 ... .max))"
            try write(#"{ "chain": "\#(chain)", "command": "status", "tag": "\#(tag)" }"# + "\n")
            try waitForOutput(#""tag":"\#(tag)""#)
            let line = output.split(separator: "\n").last { $0.contains(#""tag":"\#(tag)""#) }
            if let line, let frame = try JSON(parsing: String(line))["frame"].int, frame >= count { return frame }
            listen(seconds: 0.05)
        }
        throw TestFault("'\(chain)' did not come to frame \(count) within \(timeout) s")
    }
}

extension ClipProbe {
    /// The size of the pictures that ffprobe finds at an address.
    static func ofStream(_ url: String) throws -> String {
        let outcome = try Tool.ffprobe.run(
            "-v", "error", "-rtsp_transport", "tcp", "-select_streams", "v:0", "-show_entries", "stream=width,height",
            "-of", "csv=p=0:s=x", url)
        guard outcome.status == 0 else { throw TestFault("ffprobe: \(outcome.error)") }
        return outcome.lines.first ?? ""
    }
}
