// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

@Suite struct RunTests {
    let workspace: Workspace
    let framehost: Program

    init() throws {
        workspace = try Workspace()
        framehost = try Program.framehost
    }

    private func run(_ chain: String, _ arguments: String..., input: String? = nil) throws -> Outcome {
        try workspace.write("chain.json", chain)
        return try framehost.run(["chain.json"] + arguments, input: input, folder: workspace.folder.path)
    }

    private func start(_ chain: String, _ arguments: String..., onTerminal: Bool = false) throws -> RunningProgram {
        try workspace.write("chain.json", chain)
        return try framehost.start(["chain.json"] + arguments, folder: workspace.folder.path, onTerminal: onTerminal)
    }

    /// The one line on how a run ended, without its times.
    private func summary(_ outcome: Outcome) -> String {
        (outcome.errorLines.last ?? "").replacing(/\ in [0-9:.]+ \([0-9.–]+ fps\)/, with: "")
    }

    @Test func runsAChainToItsEnd() throws {
        let outcome = try run(Chains.short)
        #expect(outcome.status == 0)
        #expect(outcome.output == "")
        #expect(outcome.errorLines.count == 1)
        #expect(summary(outcome) == "Done: 30 frames, 30 delivered, 0 dropped.")
    }

    @Test func takesRunAsAWordToo() throws {
        try workspace.write("chain.json", Chains.short)
        #expect(try framehost.run("run", workspace.path("chain.json"), "--quiet").status == 0)
    }

    @Test func endsEachSourceAfterTheGivenFrames() throws {
        #expect(summary(try run(Chains.endless, "--frames", "17")) == "Done: 17 frames, 17 delivered, 0 dropped.")
        #expect(summary(try run(Chains.short, "--frames", "1000")) == "Done: 30 frames, 30 delivered, 0 dropped.")
    }

    @Test func drainsAfterTheGivenSeconds() throws {
        let outcome = try run(Chains.live, "--for", "0.5")
        #expect(outcome.status == 0)
        #expect(outcome.seconds >= 0.5)
    }

    @Test func changesAnOptionForOneRun() throws {
        let outcome = try run(Chains.endless, "--set", "pictures.frames=7", "--set", "pictures.pattern=balls")
        #expect(summary(outcome) == "Done: 7 frames, 7 delivered, 0 dropped.")
    }

    @Test func saysWhatIsWrongWithASetting() throws {
        let outcome = try run(
            Chains.short, "--set", "pictures", "--set", "picture.frames=3", "--set", "pictures.framez=3", "--set",
            "pictures.frames=many",
            "--set", "sink.use=recorder")
        #expect(outcome.status == 2)
        #expect(
            outcome.errorLines == [
                "--set pictures: must have the form stage.option=value. Write for example --set h264.bitrateKbps=2500.",
                "--set picture.frames=3: no stage 'picture'. Did you mean 'pictures'?",
                "--set sink.use=recorder: 'use' is a key of the chain file, and --set changes only the options of a stage. Change 'use' in the chain file.",
                "--set pictures.framez=3: no such option. Did you mean 'frames'?",
                "--set pictures.frames=many: expected a whole number, found a string. Write only a number, without quotes and without a unit.",
            ])
    }

    /// Also where another option makes the value moot.
    @Test func refusesTimesAndCountsOfNothing() throws {
        let seconds = "it must be a number of seconds from 0.001 to 1000000000, such as 10."
        let frames = "it must be a whole number from 1 to 9223372036854775807."
        for (arguments, sentence) in [
            (["--for", "0"], "'0' is invalid for '--for <seconds>': \(seconds)"),
            (["--for", "nan"], "'nan' is invalid for '--for <seconds>': \(seconds)"),
            (["--for", "1e300"], "'1e300' is invalid for '--for <seconds>': \(seconds)"),
            (["--for", "1e10"], "'1e10' is invalid for '--for <seconds>': \(seconds)"),
            (["--for", "ten"], "'ten' is invalid for '--for <seconds>': \(seconds)"),
            (["--for", "-5"], "'-5' is invalid for '--for <seconds>': \(seconds)"),
            (["--for", "0", "--for", "10"], "'0' is invalid for '--for <seconds>': \(seconds)"),
            (["--frames", "0"], "'0' is invalid for '--frames <frames>': \(frames)"),
            (["--frames", "1.5", "--verbose", "--quiet"], "'1.5' is invalid for '--frames <frames>': \(frames)"),
            (
                ["--frames", "3", "--trace-megabytes", "0"],
                "'0' is invalid for '--trace-megabytes <number>': it must be a whole number from 1 to 1000000."
            ),
        ] {
            let outcome = try framehost.run([try workspace.write("chain.json", Chains.short)] + arguments)
            #expect(outcome.status == 2)
            #expect(outcome.errorLines.first == "Error: The value \(sentence)")
        }
    }

    @Test func saysNothingWhenQuiet() throws {
        let outcome = try run(Chains.short, "--quiet")
        #expect(outcome.status == 0)
        #expect(outcome.output + outcome.error == "")
    }

    @Test func endsWithStatus2ForAWrongCommandLine() throws {
        let outcome = try framehost.run("chain.json", "--no-such-option")
        #expect(outcome.status == 2)
        #expect(outcome.error.contains("Unknown option '--no-such-option'"))
        let near = try framehost.run("chek")
        #expect(near.status == 2)
        #expect(near.errorLines == ["chek: no such command and no such file. Did you mean 'framehost check'?"])
        let withFile = try framehost.run("chekc", "g.json")
        #expect(withFile.status == 2)
        #expect(withFile.errorLines == ["chekc: no such command and no such file. Did you mean 'framehost check'?"])
        let unknown = try framehost.run("qqq", "g.json")
        #expect(unknown.status == 2)
        #expect(
            unknown.error.hasPrefix(
                "qqq: no such command and no such file. Name a chain file that exists, or one of the commands: run, batch, check, "
            ))
        let alone = try framehost.run("stages")
        #expect(alone.status == 2)
        #expect(
            alone.error.hasPrefix(
                "stages: no such command and no such file. Name a chain file that exists, or one of the commands: run, batch, check, "
            ))
        let help = try framehost.run("help", "nonsense")
        #expect(help.status == 2)
        #expect(help.error.hasPrefix("nonsense: no such command. Name one of the commands: run, batch, check, "))
        let late = try framehost.run("--plugin-path", ".", "describe", "night-mode")
        #expect(late.status == 2)
        #expect(
            late.errorLines
                == ["describe: the command must come first. Write `framehost describe … --plugin-path DIR`."])
        try workspace.write("camera.json", "{}")
        for arguments in [["--plugin-path", "camera.json"], ["check", "--plugin-path", "camera.json"]] {
            let forgotten = try framehost.run(arguments, folder: workspace.folder.path)
            #expect(forgotten.status == 2)
            #expect(
                forgotten.errorLines == [
                    "--plugin-path camera.json: is a file, not a folder. Write `--plugin-path DIR camera.json`."
                ])
        }
    }

    @Test func saysItsVersionForShort() throws {
        #expect(try framehost.run("-v").output == framehost.run("--version").output)
        #expect(try framehost.run("-v").output.hasPrefix("framehost "))
    }

    // MARK: Lines and progress

    @Test func writesPlainLinesWhereThereIsNoTerminal() throws {
        let outcome = try run(Chains.live, "--for", "12")
        let pattern = /00:\d\d\.\d  \d+ frames  \d+\.\d fps  \d\.\d\dx  \d+ dropped/
        // A busy machine may warn of late pictures besides.
        let lines = outcome.errorLines.filter { !$0.hasPrefix("warning: ") }
        // Each five seconds.
        #expect(lines.count >= 2, "\(outcome.error)")
        #expect(try pattern.wholeMatch(in: lines.first ?? "") != nil, "\(outcome.error)")
        #expect(lines.last?.hasPrefix("Done: ") == true)
        #expect(!outcome.error.contains("\u{1b}") && !outcome.error.contains("\r"))
    }

    @Test func keepsOneProgressLineOnATerminal() throws {
        let program = try start(
            Chains.live.replacing("\"live\": true", with: "\"live\": true, \"frames\": 400"), onTerminal: true)
        program.closeInput()
        let outcome = try program.finish()
        #expect(outcome.status == 0)
        let updates = outcome.error.components(separatedBy: "\r").filter { $0.contains("frames  ") }
        #expect(updates.count >= 3, "\(outcome.error)")
        let pattern = /\d\d:\d\d\.\d  \d+ frames  \d+\.\d fps  \d\.\d\dx  \d+ dropped  ETA \d\d:\d\d\.\d\u{1b}\[K/
        // Before the first frame nobody knows how long it takes.
        let first = /\d\d:\d\d\.\d  0 frames  0\.0 fps  0\.00x  0 dropped\u{1b}\[K/
        #expect(
            try updates.allSatisfy { try pattern.wholeMatch(in: $0) != nil || first.wholeMatch(in: $0) != nil },
            "\(updates)")
        // Where a busy machine lost frames, a line about them comes before.
        #expect(outcome.error.contains(/(\r\u{1b}\[K|\R)Done: 400 frames/), "\(outcome.error)")
    }

    // MARK: Signals and readers that go

    @Test(arguments: [SIGINT, SIGTERM])
    func drainsAtTheFirstSignal(signal: Int32) throws {
        let program = try start(Chains.live, "--events")
        try program.waitForOutput(#""state":"streaming""#)
        program.send(signal)
        let outcome = try program.finish()
        #expect(outcome.status == 0)
        #expect(try states(outcome) == ["starting", "streaming", "draining", "stopped"])
    }

    @Test func drainsAChainThatNeverWaits() throws {
        let program = try start(Chains.endless, "--events")
        try program.waitForOutput(#""state":"streaming""#)
        program.send(SIGINT)
        #expect(try program.finish().status == 0)
    }

    @Test func endsAtTheFirstSignalWhileNothingIsOpen() throws {
        // A pipe without a writer: the chain file is being waited for.
        #expect(mkfifo(workspace.path("chain.json"), 0o600) == 0)
        let program = try framehost.start(["chain.json"], folder: workspace.folder.path)
        try program.waitUntilItTakesSignals()
        program.send(SIGINT)
        #expect(try program.finish().status == 1)
    }

    @Test func survivesAReaderThatGoes() throws {
        let program = try start(Chains.endless, "--events", "--commands", "--frames", "5000")
        program.closeOutput()
        program.closeInput()
        #expect(try program.finish().status == 0)
    }

    @Test func survivesAnEmptyAndAnEndedInput() throws {
        #expect(try run(Chains.short, "--commands", input: "").status == 0)
        #expect(try run(Chains.short, "--commands", input: "\n\n").status == 0)
    }

    /// Else the next file that is opened becomes standard output.
    @Test(arguments: [(">&-", 1), ("2>&-", 0), ("<&-", 0), ("<&- >&- 2>&-", 1)])
    func writesNoLineIntoAFileWhereADescriptorIsClosed(closed: String, status: Int) throws {
        try workspace.write(
            "chain.json",
            """
            { "stages": [
                { "use": "test-source", "size": "64x64", "rate": 25, "frames": 50 },
                { "use": "x264-encoder", "preset": "ultrafast", "keyframeSeconds": 0.2 },
                { "use": "recorder", "path": "out-{nn}.mkv", "segmentSeconds": 0.2 } ] }
            """)
        let outcome = try Program(URL(fileURLWithPath: "/bin/sh")).run(
            ["-c", "exec \"$0\" chain.json --events \(closed)", try Repository.executable.path],
            folder: workspace.folder.path)
        // Events that cannot be written are lost, and that is a failure; the recording is whole all the same.
        #expect(outcome.status == status, "\(outcome.error)")
        let files = workspace.names.filter { $0.hasSuffix(".mkv") }
        #expect(files.count >= 9)
        for file in files { #expect(try workspace.data(file).firstRange(of: Data("wallTime".utf8)) == nil, "\(file)") }
    }

    // MARK: Events

    private func states(_ outcome: Outcome) throws -> [String] {
        try outcome.lines.map { try JSON(parsing: $0) }.filter { $0["event"].string == "state" }.compactMap {
            $0["state"].string
        }
    }

    @Test func writesEventsAsJSONLines() throws {
        let outcome = try run(Chains.short, "--events", "--quiet")
        #expect(try states(outcome) == ["starting", "streaming", "stopped"])
        var time = 0.0
        for line in outcome.lines {
            let event = try JSON(parsing: line)
            #expect(
                try /20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/.wholeMatch(in: event["wallTime"].string ?? "") != nil,
                "\(line)")
            for key in ["time", "event", "level", "text"] { #expect(event.keys.contains(key), "\(line)") }
            #expect(event["time"].double! >= time)
            time = event["time"].double!
        }
    }

    @Test func writesOneEventForEachSecondOfTheMeter() throws {
        let chain = """
            { "stages": [
                { "id": "camera", "use": "test-source", "size": "160x120", "rate": 50, "live": true }, { "id": "fps", "use": "fps-meter" },
                { "id": "sink", "use": "null-sink" } ] }
            """
        let outcome = try run(chain, "--events", "--frames", "500")
        let rates = try outcome.lines.map { try JSON(parsing: $0) }.filter { $0["event"].string == "fps" }
        // Ten seconds of frames; on a machine that stands still for a while it posts fewer.
        #expect(rates.count >= 2)
        #expect(
            rates.allSatisfy {
                $0["stage"].string == "fps" && $0["fpsByPTS"].double != nil && $0["latencyMs"].double != nil
            })
    }

    // MARK: Losses of a live chain

    /// An encoder that cannot keep up with a camera.
    @Test func saysWhichStageIsTooSlowWhileFramesAreLostAndAtTheEnd() throws {
        let outcome = try run(
            """
            { "stages": [
                { "id": "cam", "use": "test-source", "size": "1280x720", "rate": 120, "live": true },
                { "id": "h264", "use": "x264-encoder", "preset": "placebo", "threads": 1 },
                { "id": "sink", "use": "null-sink" } ] }
            """, "--for", "4", "--log-format", "text")
        let warnings = outcome.errorLines.filter { $0.hasPrefix("warning: h264: ") && $0.contains(" dropped between ") }
        // Once a minute, however many are lost.
        #expect(warnings.count == 1, "\(outcome.error)")
        #expect(
            warnings.first?.wholeMatch(
                of:
                    /warning: h264: \d+ frames? dropped between cam and h264 \(queue full\), \d+ in all\. h264 \(x264-encoder\) is too slow: it(s thread)? was at work for \d+ % of the last second(, \d+ % in this stage)?\. Use a smaller picture, a lower rate or a faster setting\./
            ) != nil, "\(outcome.error)")
        let end = try #require(outcome.errorLines.firstIndex { $0.hasPrefix("Done: ") || $0.hasPrefix("Failed: ") })
        #expect(
            outcome.errorLines[..<end].contains {
                $0.wholeMatch(of: /\d+ frames lost between cam and h264: h264 \(x264-encoder\) was too slow\./) != nil
            }, "\(outcome.error)")
    }

    @Test func countsOneFrameAsOne() throws {
        #expect(summary(try run(Chains.short, "--frames", "1")) == "Done: 1 frame, 1 delivered, 0 dropped.")
    }

    // MARK: Standard output that cannot be written

    /// A line of a shell, in the workspace; `$F` is framehost.
    private func shell(_ line: String) throws -> Outcome {
        try Program(URL(fileURLWithPath: "/bin/sh")).run(
            ["-c", line], environment: ["F": framehost.executable.path], folder: workspace.folder.path)
    }

    @Test(arguments: [
        "schema", "describe null-sink", "describe chain", "plugins", "check chain.json", "check --json chain.json",
        "--version", "--help", "--core-path", "graph chain.json", "--events chain.json",
    ])
    func outputThatCannotBeWrittenIsAFailure(arguments: String) throws {
        try workspace.write("chain.json", Chains.short)
        let outcome = try shell("\"$F\" \(arguments) > /dev/full")
        #expect(outcome.status == 1, "\(outcome.error)")
        #expect(
            outcome.error.contains(
                "standard output: cannot be written: No space left on device. Free some space"
            ), "\(outcome.error)")
        #expect(try shell("\"$F\" \(arguments) > /dev/null").status == 0)
        // A reader that wants no more is no fault.
        #expect(try shell("(\"$F\" \(arguments); echo $? > status) | true; grep -qx 0 status").status == 0)
    }

    @Test func outputThatIsClosedIsAFailure() throws {
        let outcome = try shell("\"$F\" schema >&-")
        #expect(outcome.status == 1)
        #expect(outcome.error.contains("standard output: cannot be written: Bad file descriptor."), "\(outcome.error)")
        try workspace.write(
            "y4m.json", #"{ "stages": [ { "use": "test-source", "frames": 3 }, { "use": "y4m-sink" } ] }"#)
        let raw = try shell("\"$F\" y4m.json >&-")
        #expect(raw.status == 1, "\(raw.error)")
        #expect(raw.error.contains("standard output is closed. Start the program without '>&-'"), "\(raw.error)")
        try workspace.write("chain.json", Chains.short)
        for name in ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"] {
            try workspace.write(
                "dump.json",
                #"{ "stages": [ { "use": "test-source", "frames": 3 }, { "use": "null-sink", "dump": "\#(name)" } ] }"#)
            let dump = try shell("\"$F\" dump.json --quiet >&-")
            #expect(
                dump.status == 1
                    && dump.error.contains("cannot be written: Bad file descriptor. Start the program without '>&-'."),
                "\(dump.error)")
            let stats = try shell("\"$F\" chain.json --quiet --stats \(name) >&-")
            #expect(stats.status != 0 && stats.error.contains("Bad file descriptor"), "\(stats.error)")
        }
    }

    // MARK: A signal from outside

    @Test(arguments: [SIGSEGV, SIGBUS, SIGABRT]) func aSignalThatAnotherProcessSendsEndsTheProgram(signal: Int32) throws
    {
        try workspace.write("chain.json", Chains.live)
        let program = try framehost.start(["chain.json", "--events"], folder: workspace.folder.path)
        try program.waitForOutput(#""state":"streaming""#)
        program.send(signal)
        let outcome = try program.finish()
        #expect(outcome.status == 128 + Int(signal))
        #expect(
            outcome.error.contains(
                ", which process \(getpid()) sent. What was being written may be incomplete. Send SIGTERM instead: the chain then ends in order."
            ), "\(outcome.error)")
    }

    // MARK: What is waited for

    @Test func saysWhatItWaitsForWhilePlanning() throws {
        try workspace.write(
            "chain.json", #"{ "stages": [ { "id": "in", "use": "y4m-source", "path": "p" }, { "use": "null-sink" } ] }"#
        )
        #expect(mkfifo(workspace.path("p"), 0o600) == 0)
        let program = try framehost.start(["check", "chain.json"], folder: workspace.folder.path)
        try program.waitForError(
            "in (y4m-source) is still negotiating. It may be waiting for a file, pipe, device or server. Ctrl-C ends this.\n"
        )
        program.send(SIGINT)
        #expect(try program.finish().status == 128 + Int(SIGINT))
    }
}
