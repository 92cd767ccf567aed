// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// `--commands`: JSON lines in, each answered.
@Suite struct CommandsTests {
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
            { "id": "odd", "use": "misbehave" },
            { "id": "h264", "use": "x264-encoder", "preset": "ultrafast", "tune": "zerolatency", "bitrateKbps": 500 },
            { "id": "sink", "use": "null-sink" }
          ]
        }
        """

    /// Sends lines once pictures flow, and gives the answer to each `tag`.
    private func answers(_ lines: [String], _ arguments: String...) throws -> (outcome: Outcome, byTag: [Int: JSON]) {
        try workspace.write("chain.json", Self.chain)
        let program = try framehost.start(
            ["chain.json", "--commands", "--events", "--plugin-path", try PluginBuild.misbehave().path] + arguments,
            folder: workspace.folder.path)
        try program.waitForOutput(#""state":"streaming""#)
        try waitForDelivery(program)
        for line in lines { try program.write(line + "\n") }
        // Answered in turn by each stage, so this one's answer alone does not mean that all have come.
        try program.waitForAnswers(lines.count)
        program.send(SIGINT)
        let outcome = try program.finish()
        var byTag: [Int: JSON] = [:]
        for line in outcome.lines {
            let event = try JSON(parsing: line)
            guard event["event"].string == "command-answered", event["figures"].value == nil else { continue }
            #expect(event.keys.isSuperset(of: ["time", "event", "level", "text", "ok"]), "\(line)")
            if let tag = event["tag"].int { byTag[tag] = event }
        }
        return (outcome, byTag)
    }

    private static let quick = """
        { "stages": [ { "id": "camera", "use": "test-source", "size": "64x64", "rate": 50, "live": true },
                      { "id": "text", "use": "text", "text": "a" }, { "id": "sink", "use": "null-sink" } ] }
        """

    /// node and asyncio set their ends of pipes so, and a terminal is shared with whoever did.
    @Test(.needs(.python)) func readsAnInputThatAnotherProgramHasMadeNonBlocking() throws {
        try workspace.write("chain.json", Self.quick)
        let wrapper = "import os, sys; os.set_blocking(0, False); os.execv(sys.argv[1], sys.argv[1:])"
        let python = Program(URL(fileURLWithPath: try #require(Tool.python.path)))
        let program = try python.start(
            ["-c", wrapper, framehost.executable.path, "chain.json", "--commands"], folder: workspace.folder.path)
        for number in 1...3 {
            // Each finds nothing to read before it comes.
            program.listen(seconds: 0.2)
            try program.write(#"{ "command": "status", "tag": \#(number) }"# + "\n")
            try program.waitForAnswers(number)
        }
        try program.write(#"{ "command": "drain", "tag": 4 }"# + "\n")
        let outcome = try program.finish()
        #expect(outcome.isDoneOrBusy && outcome.lines.count == 4, "\(outcome.error)")
    }

    @Test func answersEachCommandOnceThoughTheRunEnds() throws {
        try workspace.write("chain.json", Self.quick)
        let program = try framehost.start(["chain.json", "--commands"], folder: workspace.folder.path)
        #expect(try program.frames() >= 0)
        let count = 3000
        let lines = (0..<count).map { number in
            number == count / 2
                ? #"{ "command": "drain", "tag": \#(number) }"#
                : number % 2 == 0
                    ? #"{ "command": "status", "tag": \#(number) }"#
                    : #"{ "stage": "text", "set": { "text": "\#(number)" }, "tag": \#(number) }"#
        }
        try program.write(lines.joined(separator: "\n") + "\n")
        let outcome = try program.finish()
        #expect(outcome.isDoneOrBusy, "\(outcome.error)")
        let answers = try outcome.lines.map { try JSON(parsing: $0) }.compactMap { $0["tag"].int }
        // What did not fit into the pipe was not read when the run ended.
        #expect(answers == Array(0..<answers.count) && answers.count > count / 2)
    }

    /// Waits until a frame has passed all stages.
    private func waitForDelivery(_ program: RunningProgram) throws {
        let deadline = Date() + 180
        while Date() < deadline {
            let figures = try program.sendPatiently(#"{ "command": "figures" }"#)["figures"]
            if figures["ledger"]["delivered"].int ?? 0 >= 1 { return }
            program.listen(seconds: 0.05)
        }
        throw TestFault("no frame was delivered: \(program.error)")
    }

    @Test func answersWithTheFrameItTookEffectAt() throws {
        let (outcome, answers) = try answers([
            #"{ "stage": "odd", "set": { "level": 70 }, "tag": 1 }"#,
            #"{ "stage": "h264", "set": { "bitrateKbps": 800 }, "tag": 2 }"#,
            #"{ "stage": "h264", "command": "keyframe", "tag": 3 }"#,
        ])
        #expect(outcome.isDoneOrBusy, "\(outcome.error)")
        for tag in 1...3 {
            #expect(answers[tag]?["ok"].bool == true, "\(String(describing: answers[tag]))")
            #expect((1...100_000).contains(answers[tag]?["frame"].int ?? 0), "\(String(describing: answers[tag]))")
        }
        #expect(answers[2]?["stage"].string == "h264")
    }

    @Test func answersWithWhatIsWrong() throws {
        let lines = [
            #"{ "stage": "od", "set": { "level": 1 }, "tag": 1 }"#,
            #"{ "stage": "odd", "set": { "leval": 1 }, "tag": 2 }"#,
            #"{ "stage": "odd", "set": { "level": 101 }, "tag": 3 }"#,
            #"{ "stage": "odd", "set": { "level": "x" }, "tag": 4 }"#,
            #"{ "stage": "odd", "set": { "at": 3 }, "tag": 5 }"#,
            #"{ "stage": "odd", "command": "go", "tag": 6 }"#,
            #"{ "stage": "h264", "command": "keyfram", "tag": 7 }"#,
            #"{ "stage": "odd", "tag": 8 }"#,
            #"{ "set": { "level": 1 }, "tag": 9 }"#,
            #"{ "stage": "odd", "sets": { "level": 1 }, "tag": 10 }"#,
            #"{ "stage": "odd", "command": "go", "set": {}, "tag": 11 }"#,
            #"{ "stage": 3, "command": "go", "tag": 12 }"#,
        ]
        let texts = [
            "od: no such stage. Did you mean 'odd'?",
            "odd.leval: no such option. Did you mean 'level'?",
            "odd.level: 101 must be from 0 to 100. Use 100 or less.",
            "odd.level: expected a whole number, found a string. Write only a number, without quotes and without a unit.",
            "odd.at: cannot change while the chain runs. Set it in the chain file, then reload or restart the chain. Only 'level' can change while it runs.",
            "odd: misbehave has no command 'go'. It takes only the commands that every stage has, such as 'pause'.",
            "h264: x264-encoder has no command 'keyfram'. Did you mean 'keyframe'?",
            #"'command' and 'set' are both missing. Write either "command": "name" or "set": { "option": value }."#,
            #"'stage' is missing. Add "stage": "…"."#,
            "'sets' is not a key of a command. Did you mean 'set'?",
            #"'command' and 'set' contradict each other. Write either "command": "name" or "set": { "option": value }."#,
            "stage: expected a string, found a number. Write \"stage\": \"…\".",
        ]
        let (outcome, answers) = try answers(lines)
        #expect(outcome.isDoneOrBusy, "\(outcome.error)")
        for (index, text) in texts.enumerated() {
            let answer = answers[index + 1]
            #expect(answer?["ok"].bool == false)
            #expect(answer?["error"].string == text)
            #expect(answer?["frame"].value == nil)
        }
    }

    @Test func changesAllOptionsOfACommandOrNone() throws {
        let (_, answers) = try answers([#"{ "stage": "odd", "set": { "level": 7, "leval": 1, "at": 2 }, "tag": 1 }"#])
        #expect(answers[1]?["ok"].bool == false)
    }

    @Test func answersLinesThatAreNoJSON() throws {
        let (outcome, _) = try answers([
            "hello", "[1, 2", "[1]", "\u{0}",
            "{ \"stage\": \"odd\", \"note\": \"" + String(repeating: "x", count: 70000) + "\" }",
        ])
        #expect(outcome.isDoneOrBusy, "\(outcome.error)")
        let errors = try outcome.lines.map { try JSON(parsing: $0) }.filter { $0["event"].string == "command-answered" }
            .compactMap { $0["error"].string }
        #expect(
            errors == [
                "command:1:1: expected a value, found 'hello'. Write an object, such as {\"command\":\"drain\"}.",
                "command:1:6: expected ',' or ']' after a value, found the end of the text. Close the list that starts at 1:1 with ']'.",
                "expected an object, found a list. Write an object, such as {\"command\":\"drain\"}.",
                "command:1:1: expected a value, found U+0000. Write an object, such as {\"command\":\"drain\"}.",
                "the line is longer than 65536 bytes. Send one command per line, and reload a long chain from a file.",
            ])
    }

    @Test func answersALastLineWithoutALineFeed() throws {
        try workspace.write("chain.json", Self.chain)
        for (text, answer) in [
            (String(repeating: "x", count: 70000), "the line is longer than 65536 bytes"),
            (#"{ "command": "quit" }"#, "quit"),
            ("  ", nil),
        ] {
            let program = try framehost.start(
                ["chain.json", "--commands", "--events", "--plugin-path", try PluginBuild.misbehave().path],
                folder: workspace.folder.path)
            try program.waitForOutput(#""state":"streaming""#)
            try program.write(text)
            program.closeInput()
            if let answer {
                try program.waitForAnswers(1)
                program.send(SIGINT)
                let outcome = try program.finish()
                #expect(outcome.output.contains(answer), "\(outcome.output)")
            } else {
                program.listen(seconds: 1)
                program.send(SIGINT)
                #expect(try !program.finish().output.contains("command-answered"))
            }
        }
    }

    @Test func answersInTheOrderOfTheLines() throws {
        var lines: [String] = []
        for tag in stride(from: 0, to: 40, by: 4) {
            lines += [
                #"{ "stage": "odd", "set": { "level": \#(tag) }, "tag": \#(tag) }"#,
                #"{ "command": "quit", "tag": \#(tag + 1) }"#,
                #"{ "stage": "h264", "command": "keyframe", "tag": \#(tag + 2) }"#,
                #"{ "command": "figures", "tag": \#(tag + 3) }"#,
            ]
        }
        for attempt in 1...5 {
            let (outcome, answers) = try answers(lines)
            let answered = try outcome.lines.map { try JSON(parsing: $0) }.filter {
                $0["event"].string == "command-answered" && $0["tag"].int != nil
            }
            let tags = answered.compactMap { $0["tag"].int }
            #expect(tags.sorted() == Array(0..<40))
            #expect(
                answers[1]?["error"].string
                    == #"the chain has no command 'quit'. Use 'attach', 'drain', 'figures', 'plan', 'reload', 'reload-plugin' or 'status', or, for a command of a stage, add "stage": "…"."#
            )
            // An answer that does not come within a second holds up no other one.
            let times = answered.compactMap { $0["time"].double }
            let isLate = (times.max() ?? 0) - (times.min() ?? 0) >= 1
            if tags != Array(0..<40), isLate, attempt < 5 { continue }
            #expect(tags == Array(0..<40))
            return
        }
    }

    @Test func drainsOnCommandAndSaysSo() throws {
        try workspace.write("chain.json", Chains.live)
        let program = try framehost.start(["chain.json", "--commands"], folder: workspace.folder.path)
        try program.waitForFrames(1)
        try program.write(#"{ "command": "drain", "tag": "last" }"# + "\n")
        let outcome = try program.finish()
        #expect(outcome.isDoneOrBusy, "\(outcome.error)")
        let answer = try JSON(parsing: try #require(outcome.lines.last))
        #expect(answer["ok"].bool == true)
        #expect(answer["tag"].string == "last")
        #expect(answer["frame"].int != nil)
    }

    @Test func writesAnswersAloneWithoutEvents() throws {
        try workspace.write("chain.json", Chains.live)
        let program = try framehost.start(["chain.json", "--commands"], folder: workspace.folder.path)
        try program.write(#"{ "stage": "camera", "set": { "rate": 3 } }"# + "\n")
        try program.waitForOutput("command-answered")
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.isDoneOrBusy, "\(outcome.error)")
        #expect(outcome.lines.count == 1)
        #expect(
            try JSON(parsing: outcome.output)["error"].string
                == "camera.rate: cannot change while the chain runs. Set it in the chain file, then reload or restart the chain."
        )
    }

    // MARK: Orders right before a drain

    /// The sources do not end under what was asked for before.
    @Test func carriesOutWhatWasAskedBeforeADrain() throws {
        try workspace.write("chain.json", Self.chain)
        for attempt in 1...5 {
            let program = try framehost.start(
                ["chain.json", "--commands", "--events", "--plugin-path", try PluginBuild.misbehave().path],
                folder: workspace.folder.path)
            try program.waitForOutput(#""state":"streaming""#)
            try program.waitForFrames(1)
            try program.write(
                """
                { "stage": "odd", "set": { "level": 70 }, "tag": 1 }
                { "stage": "camera", "command": "snapshot", "path": "a\(attempt).jpg", "tag": 2 }
                { "stage": "odd", "command": "pause", "tag": 3 }
                { "command": "attach", "at": "camera", "stages": [ { "id": "late", "use": "null-sink" } ], "copy": true, "tag": 4 }
                { "command": "drain", "tag": 5 }

                """)
            let outcome = try program.finish()
            let answers = try outcome.lines.map { try JSON(parsing: $0) }.filter {
                $0["event"].string == "command-answered"
            }
            // So a stage answers that gets no processor for a second.
            let isBusy = answers.contains {
                let error = $0["error"].string ?? ""
                return error.contains(", so nothing was changed") || error.contains("gave no picture within")
            }
            if isBusy, attempt < 5 { continue }
            #expect(outcome.isDoneOrBusy, "\(outcome.error)")
            for tag in 1...5 {
                let answer = answers.first { $0["tag"].int == tag }
                #expect(answer?["ok"].bool == true, "\(String(describing: answer))")
            }
            #expect(workspace.exists("a\(attempt).jpg"))
            return
        }
    }

    /// A stage that hangs keeps nobody from ending the chain.
    @Test func aDrainDoesNotWaitForAStageThatHangs() throws {
        try workspace.write(
            "chain.json",
            Self.chain.replacing(#""use": "misbehave" }"#, with: #""use": "misbehave", "fault": "pause", "at": 5 }"#)
                .replacing("\"stages\"", with: #""drainSeconds": 0.5, "stages""#))
        let program = try framehost.start(
            ["chain.json", "--commands", "--events", "--plugin-path", try PluginBuild.misbehave().path],
            folder: workspace.folder.path)
        try program.waitForOutput(#""event":"stage-hangs","stage":"odd""#)
        try program.write("{ \"stage\": \"odd\", \"set\": { \"level\": 70 } }\n{ \"command\": \"drain\" }\n")
        try program.waitForOutput(#""state":"draining""#)
        #expect(try program.finish().status == 1)
    }
}
