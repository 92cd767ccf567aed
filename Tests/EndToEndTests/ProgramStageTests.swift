// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// Filters that are programs, in Python and C. docs/python.md, docs/stage-protocol.md.
@Suite struct ProgramStageTests {
    let workspace: Workspace
    let framehost: Program

    init() throws {
        workspace = try Workspace()
        framehost = try Program.framehost
    }

    /// A Python filter in `filter.py`, with this body of its class, and a method `process` if that has none.
    private func write(_ body: String, _ file: String = "filter.py") throws {
        let body = body.contains("def process") ? body : body + "\ndef process(self, frame): pass"
        try workspace.write(
            file,
            "import os, time\nimport framehost\n\n\nclass Try(framehost.Filter):\n    \"\"\"Tries something.\"\"\"\n"
                + body.split(separator: "\n", omittingEmptySubsequences: false).map { "    \($0)\n" }.joined())
    }

    /// Pictures of one grey through the filter, into a file. The chain file is in a folder of its own.
    private func run(
        _ filter: String = #""use": "python:../filter.py""#, frames: Int = 10, format: String = "64x48",
        _ arguments: String...
    ) throws -> Outcome {
        try FileManager.default.createDirectory(
            at: workspace.folder.appending(path: "chains"), withIntermediateDirectories: true)
        try workspace.write(
            "chains/chain.json",
            """
            { "stages": [
                { "id": "pictures", "use": "test-source", "pattern": "solid", "color": "#fff", "size": "\(format)", "frames": \(frames) },
                { \(filter) },
                { "id": "out", "use": "y4m-sink", "path": "../out.y4m" } ] }
            """)
        return try framehost.run(["chains/chain.json", "--events"] + arguments, folder: workspace.folder.path)
    }

    private func events(_ outcome: Outcome, _ name: String) throws -> [JSON] {
        try outcome.lines.map { try JSON(parsing: $0) }.filter { $0["event"].string == name }
    }

    /// The first byte of luma of each picture of 64x48.
    private func lumas() throws -> [UInt8] {
        let bytes = try Data(contentsOf: workspace.folder.appending(path: "out.y4m"))
        let (header, picture) = (try #require(bytes.firstIndex(of: 10)) + 1, 64 * 48 * 3 / 2 + 6)
        return stride(from: header, to: bytes.count - picture + 1, by: picture).map { bytes[$0 + 6] }
    }

    private static let darken = """
        formats = ["i420"]
        modifies = True

        @framehost.options
        class Options:
            amount: float = framehost.option(0.5, "How much.", minimum=0, maximum=1, live=True)
            way: str = framehost.option("fast", "How.", choices=["fast", "slow"])

        def process(self, frame):
            frame.planes[0][:] = frame.planes[0] * (1 - self.options.amount)
        """

    // MARK: Python

    @Test func aFilterInPythonWritesIntoFrames() throws {
        try write(Self.darken)
        let outcome = try run(#""use": "python:../filter.py", "amount": 0.75"#)
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(try lumas() == Array(repeating: 58, count: 10))
    }

    /// Odd sizes and all formats: each plane is what the picture has, in its shape.
    @Test(arguments: ["i420", "nv12", "yuyv", "bgra", "rgb24", "gray8"]) func planesHaveTheirShapes(format: String)
        throws
    {
        try write(
            """
            formats = ["\(format)"]

            def process(self, frame):
                self.post("seen", str([list(each.shape) for each in frame.planes]), each=int(frame.planes[0].max()))
            events = [framehost.Event("seen", "A frame.", [framehost.member("each", int, "A value.")])]
            """)
        let outcome = try run(frames: 1, format: "35x21")
        #expect(outcome.status == 0, "\(outcome.error)")
        let shapes = [
            "i420": "[[21, 35], [11, 18], [11, 18]]", "nv12": "[[21, 35], [11, 18, 2]]", "yuyv": "[[21, 36, 2]]",
            "bgra": "[[21, 35, 4]]", "rgb24": "[[21, 35, 3]]", "gray8": "[[21, 35]]",
        ]
        let seen = try events(outcome, "seen")
        #expect(seen.first?["text"].string == shapes[format])
        #expect(seen.first?["each"].int ?? 0 > 100)
    }

    @Test func optionsAreCheckedByTheProgramAndLiveOnesReachIt() throws {
        try write(Self.darken)
        for (option, what) in [
            (#""amount": 2"#, "2 must be from 0 to 1"), (#""amount": "much""#, "expected a number, found a string"),
            (#""way": "fastt""#, "Did you mean 'fast'?"), (#""amont": 1"#, "Did you mean 'amount'?"),
        ] {
            let outcome = try run(#""use": "python:../filter.py", \#(option)"#)
            #expect(outcome.status == 2 && outcome.error.contains(what), "\(outcome.error)")
            #expect(outcome.error.contains("stages[1]."), "\(outcome.error)")
        }
        try workspace.write(
            "live.json",
            """
            { "stages": [ { "use": "test-source", "size": "64x48", "live": true },
              { "use": "python:filter.py" }, { "use": "null-sink" } ] }
            """)
        let program = try framehost.start(
            ["live.json", "--commands", "--events", "--for", "4"], folder: workspace.folder.path)
        try program.write(#"{"stage": "filter", "set": {"amount": 1}}"# + "\n")
        try program.write(#"{"stage": "filter", "set": {"amount": 3}}"# + "\n")
        try program.write(#"{"stage": "filter", "set": {"way": "slow"}}"# + "\n")
        let outcome = try program.finish()
        let answers = try outcome.lines.map { try JSON(parsing: $0) }.filter { $0["ok"].bool != nil }
        #expect(answers.map { $0["ok"].bool } == [true, false, false], "\(answers)")
        #expect(outcome.status == 0, "\(outcome.error)")
    }

    /// An exception costs its frame and not the process, and the run does not end as if all were well.
    @Test func anExceptionNamesItsLineAndCostsOneFrame() throws {
        try write(
            """
            formats = ["i420"]
            modifies = True

            def process(self, frame):
                frame.planes[0][:] = 7
                if frame.number == 3:
                    raise ValueError("no such thing")
            """)
        let outcome = try run()
        #expect(outcome.status == 1)
        #expect(outcome.error.contains("1 of 10 frames could not be processed"), "\(outcome.error)")
        var expected = Array(repeating: UInt8(7), count: 10)
        expected[3] = 235
        #expect(try lumas() == expected)
        let failed = try events(outcome, "frame-failed")
        #expect(failed.count == 1 && failed.first?["frame"].int == 3)
        #expect(failed.first?["reason"].string == "filter.py:13: ValueError: no such thing")
        #expect(failed.first?["cause"].string?.contains("raise ValueError(\"no such thing\")") == true)
        #expect(try events(outcome, "stage-lost").isEmpty)
    }

    @Test func aProcessThatEndsIsFollowedByAnother() throws {
        try write(
            """
            formats = ["i420"]

            def process(self, frame):
                if frame.number == 3:
                    os.kill(os.getpid(), 11)
                return framehost.DROP if frame.number == 5 else None
            """)
        let outcome = try run()
        #expect(outcome.status == 1)
        #expect(
            outcome.error.contains("1 of 10 frames were not processed, since its process ended"), "\(outcome.error)")
        #expect(try events(outcome, "stage-lost").first?["frame"].int == 3)
        #expect(try lumas().count == 9)
    }

    @Test(arguments: [
        ("formats = [\"i420\"]\ndef process(self frame): pass", "filter.py:8: SyntaxError"),
        ("import nothing_of_this_name", "filter.py:7: ModuleNotFoundError: No module named 'nothing_of_this_name'"),
        ("formats = [\"i422\"]", "'formats' must be a list of 'i420'"),
        (
            "formats = [\"i420\"]\ndef negotiate(self): raise framehost.Refusal('not at this size', 'Use a larger one.')",
            "not at this size. Use a larger one."
        ),
        ("formats = [\"i420\"]\ndef start(self): self.nothing()", "filter.py:8: AttributeError"),
        ("@framehost.options\nclass Options:\n    id: int = framehost.option(1, \"A key.\")", "reserved key"),
        (
            "@framehost.options\nclass Options:\n    more: int = framehost.option(5, \"More.\", maximum=3)",
            "the default of the option 'more': 5 must be 3 or less"
        ),
    ])
    func whatCannotBeIsSaidBeforeFramesCome(body: String, what: String) throws {
        try write(body)
        let outcome = try run()
        #expect(outcome.status != 0 && outcome.error.contains(what), "\(outcome.error)")
        let out = workspace.folder.appending(path: "out.y4m")
        #expect((try? Data(contentsOf: out).count) ?? 0 == 0)
    }

    @Test func missingFilesAndTwoFiltersAreRefused() throws {
        var outcome = try run(#""use": "python:nowhere.py""#)
        #expect(outcome.status == 2 && outcome.error.contains("cannot be read: No such file"), "\(outcome.error)")
        outcome = try run(#""use": "python:""#)
        #expect(outcome.status == 2 && outcome.error.contains("names no file"), "\(outcome.error)")
        try write("formats = [\"i420\"]\n\n\nclass Other(framehost.Filter):\n    \"\"\"Other.\"\"\"")
        let text = try String(contentsOf: workspace.folder.appending(path: "filter.py"), encoding: .utf8)
        try workspace.write("filter.py", text + "\nclass Second(framehost.Filter):\n    \"\"\"Second.\"\"\"\n")
        outcome = try run()
        #expect(outcome.status == 2 && outcome.error.contains("has 2 filters"), "\(outcome.error)")
    }

    @Test func describeShowsWhatTheFileSays() throws {
        try write(Self.darken)
        let outcome = try framehost.run(["describe", "python:filter.py", "--json"], folder: workspace.folder.path)
        #expect(outcome.status == 0, "\(outcome.error)")
        let described = try JSON(parsing: outcome.output)
        #expect(described["summary"].string == "Tries something.")
        #expect(described["options"].list.map { $0["name"].string } == ["amount", "way"])
    }

    /// A saved file takes over; one with a fault does not.
    @Test func aSavedFileTakesOver() throws {
        try write("formats = [\"gray8\"]\nmodifies = True\ndef process(self, frame): self.figures = {\"version\": 1}")
        try workspace.write(
            "live.json",
            """
            { "stages": [ { "use": "test-source", "size": "64x48", "live": true },
              { "use": "python:filter.py" }, { "use": "null-sink" } ] }
            """)
        let program = try framehost.start(
            ["live.json", "--commands", "--events", "--watch-plugins"], folder: workspace.folder.path)
        func version() throws -> Int? {
            try program.sendPatiently(#"{"command": "figures"}"#)["figures"]["stages"].list
                .first { $0["id"].string == "filter" }?["figures"]["version"].int
        }
        func waitFor(_ wanted: Int) throws -> Bool {
            for _ in 0..<300 {
                if try version() == wanted { return true }
                usleep(50_000)
            }
            return false
        }
        #expect(try waitFor(1))
        try write("formats = [\"gray8\"]\nmodifies = True\ndef process(self, frame) self.figures = {\"version\": 2}")
        try program.waitForOutput("SyntaxError")
        #expect(try version() == 1)
        try write("formats = [\"gray8\"]\nmodifies = True\ndef process(self, frame): self.figures = {\"version\": 3}")
        #expect(try waitFor(3))
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.status == 0, "\(outcome.error)")
    }

    @Test(arguments: [("default", "Permission denied"), ("none", "a socket")]) func theSandboxForbidsTheNetwork(
        sandbox: String, what: String
    ) throws {
        try write(
            """
            formats = ["gray8"]

            def process(self, frame):
                import socket
                socket.socket(socket.AF_UNIX).close()
                try:
                    socket.socket(socket.AF_INET).close()
                    self.log("a socket")
                except OSError as error:
                    self.log(str(error))
            """)
        let outcome = try run(
            #""use": "python:../filter.py", "isolate": { "sandbox": "\#(sandbox)" }"#, frames: 1)
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(try events(outcome, "log").contains { $0["text"].string?.contains(what) == true }, "\(outcome.output)")
    }

    /// Whoever may send commands may not run what lies on the machine.
    @Test func noCommandAddsAProgram() throws {
        try write(Self.darken)
        try workspace.write(
            "live.json",
            """
            { "stages": [ { "use": "test-source", "size": "64x48", "live": true },
              { "use": "python:filter.py" }, { "id": "end", "use": "null-sink" } ] }
            """)
        try write(Self.darken, "other.py")
        let program = try framehost.start(["live.json", "--commands", "--events"], folder: workspace.folder.path)
        try program.waitForOutput(#""state":"streaming""#)
        let refused = try program.sendPatiently(
            #"{"command": "attach", "at": "filter", "stages": [{"use": "python:other.py"}, {"use": "null-sink"}]}"#)
        #expect(refused["ok"].bool == false)
        #expect(refused["error"].string?.contains("is a program, which no command can add") == true, "\(refused)")
        let taken = try program.sendPatiently(
            #"{"command": "attach", "at": "filter", "stages": [{"id": "more", "use": "null-sink"}]}"#)
        #expect(taken["ok"].bool == true, "\(taken)")
        program.send(SIGINT)
        #expect(try program.finish().status == 0)
    }

    // MARK: C

    private func done(_ tool: String, _ arguments: [String]) throws {
        let outcome = try Tool(name: tool).run(arguments)
        #expect(outcome.status == 0, "\(outcome.error)")
    }

    private func build(_ source: String) throws {
        let include = Repository.root.appending(path: "Sources/Core/StageLink/include").path
        try done("cc", ["-O1", "-Wall", "-Werror", "-I", include, "-o", workspace.path("filter"), source])
    }

    @Test func theExampleInCInvertsThePicture() throws {
        try build(Repository.root.appending(path: "examples/filters/invert.c").path)
        let outcome = try run(#""use": "program:../filter""#)
        #expect(outcome.status == 0, "\(outcome.error)")
        #expect(try lumas() == Array(repeating: 20, count: 10))
    }

    /// Whatever it starts goes with it, and its declared events alone are posted.
    @Test func whatItStartsGoesWithIt() throws {
        try write(
            """
            formats = ["gray8"]

            def start(self):
                import subprocess
                self.log("started " + str(subprocess.Popen(["sleep", "300"]).pid))

            def process(self, frame):
                self._say({"event": "stage-lost", "level": "error", "text": "a lie", "details": {}})
            """)
        let outcome = try run()
        #expect(outcome.status == 0, "\(outcome.error)")
        let text = try events(outcome, "log").compactMap { $0["text"].string }.first { $0.hasPrefix("started ") }
        let pid = try #require(text.flatMap { Int32($0.dropFirst("started ".count)) })
        for _ in 0..<100 where kill(pid, 0) == 0 { usleep(50_000) }
        #expect(kill(pid, 0) != 0)
        #expect(try events(outcome, "stage-lost").isEmpty)
        #expect(
            try events(outcome, "log").contains { $0["text"].string?.contains("which it does not declare") == true })
    }

    /// Also those that end while they carry out a command.
    @Test func deathsInCommandsCount() throws {
        try write(
            """
            formats = ["gray8"]

            @framehost.command("Ends.")
            def end(self):
                os._exit(3)

            def process(self, frame):
                pass
            """)
        try workspace.write(
            "live.json",
            """
            { "stages": [ { "use": "test-source", "size": "64x48", "live": true },
              { "use": "python:filter.py", "isolate": { "deathsPerMinute": 0 } }, { "use": "null-sink" } ] }
            """)
        let program = try framehost.start(["live.json", "--commands", "--events"], folder: workspace.folder.path)
        try program.waitForOutput(#""state":"streaming""#)
        try program.write(#"{"stage": "filter", "command": "end"}"# + "\n")
        let outcome = try program.finish()
        #expect(
            outcome.status == 1 && outcome.error.contains("its process ended 1 times within a minute"),
            "\(outcome.error)")
    }

    /// What a program says is checked: it can end its own process and nothing else.
    @Test(arguments: [
        ("fh_say(\"no JSON\")", "it said what is not JSON"),
        ("fh_say(\"{\\\"version\\\": 7, \\\"describe\\\": {}}\")", "speaks version 7 of the stage protocol"),
        ("fh_say(\"{\\\"version\\\": 1, \\\"describe\\\": 5}\")", "'summary' of the description must be a text"),
        ("fh_say(\"{\\\"ready\\\": true}\")", "it was ready before it had negotiated"),
        ("exit(9)", "ended with status 9"),
    ])
    func whatAProgramSaysIsChecked(act: String, what: String) throws {
        try workspace.write(
            "filter.c", "#include \"stage_filter.h\"\nint main(void) { \(act); pause(); return 0; }\n")
        try build(workspace.path("filter.c"))
        let outcome = try run(#""use": "program:../filter""#)
        #expect(outcome.status == 2 && outcome.error.contains(what), "\(outcome.error)")
    }

    /// Wrong counts and verdicts end the process; frames go on as they came, and the chain ends as `deathsPerMinute` says.
    @Test(arguments: [
        "slot->replies += 2", "slot->reply.verdict = 77; slot->replies++",
        "slot->reply.text_bytes = 1u << 31; slot->replies++",
    ])
    func whatAProgramAnswersIsChecked(act: String) throws {
        try workspace.write(
            "filter.c",
            """
            #include "stage_filter.h"
            static struct fh_filter filter;
            int main(void) {
                if (fh_make(&filter, "{\\"summary\\": \\"Lies.\\", \\"formats\\": [\\"i420\\"], \\"modifies\\": true}") || fh_start(&filter)) return 1;
                struct fh_call *call = fh_next(&filter);
                if (!call) return 0;
                memset(filter.buffers, 0, filter.control->buffer_bytes);
                struct fh_slot *slot = &filter.control->slot[0];
                \(act);
                fh_wake(&slot->replies);
                pause();
            }
            """)
        try build(workspace.path("filter.c"))
        let outcome = try run(#""use": "program:../filter", "isolate": { "deathsPerMinute": 3 }"#)
        #expect(
            outcome.status == 1 && outcome.error.contains("its process ended 4 times within a minute"),
            "\(outcome.error)")
        #expect(try lumas() == [235, 235, 235])
    }

    // MARK: New ones

    @Test(arguments: ["python", "c"]) func aNewFilterRunsAsItIs(language: String) throws {
        var outcome = try framehost.run(
            ["new", "filter", "--language", language, "night-mode"], folder: workspace.folder.path)
        #expect(outcome.status == 0, "\(outcome.error)")
        let folder = workspace.path("night-mode")
        if language == "c" {
            try done("make", ["-C", folder])
        } else {
            let path = try framehost.run(["--python-path"]).output.trimmingCharacters(in: .newlines)
            try done("env", ["-C", folder, "PYTHONPATH=\(path)", "python3", "-m", "unittest"])
        }
        outcome = try framehost.run(["chain.json"], folder: folder)
        #expect(outcome.status == 0, "\(outcome.error)")
    }
}
