// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

/// Nobody reads a terminal or a pipe: the run is controlled as ever, ends when told, and says what it left out.
@Suite struct UnreadOutputTests {
    let workspace: Workspace
    let framehost: Program

    init() throws {
        workspace = try Workspace()
        framehost = try Program.framehost
    }

    private static let chain = """
        { "stages": [ { "id": "camera", "use": "test-source", "size": "64x64", "rate": 50, "live": true },
                      { "id": "text", "use": "text", "text": "a" }, { "id": "sink", "use": "null-sink" } ] }
        """

    @Test func aTerminalThatNobodyReadsHoldsUpNothing() throws {
        try workspace.write("chain.json", Self.chain)
        let program = try framehost.start(
            ["chain.json", "--commands", "-v"], folder: workspace.folder.path, onTerminal: true)
        // From here on only standard output is read. Each of these commands is a line on the terminal, which takes
        // about 4 KiB.
        program.readsError = false
        for number in 0..<400 {
            try program.write(#"{ "stage": "text", "set": { "text": "\#(number)" }, "tag": \#(number) }"# + "\n")
        }
        try program.waitForAnswers(400)
        #expect(try program.frames() >= 1)
        program.send(SIGTERM)
        let begin = Date()
        let status = program.waitForEnd(seconds: 60)
        #expect(status == 0)
        // A second is promised; a busy machine gets more here.
        #expect(Date().timeIntervalSince(begin) < 5)
    }

    @Test func whatNobodyReadsIsCountedWhereItIsMissing() throws {
        try workspace.write("chain.json", Self.chain)
        let program = try framehost.start(["chain.json", "--commands", "--events"], folder: workspace.folder.path)
        try program.waitForOutput(#""state":"streaming""#)
        program.readsOutput = false
        // More than a pipe takes (64 KiB) and than waits behind it (4 MiB): an event of 3.7 KB for each. In small pieces, since
        // a stage takes only so many commands at once, and since behind 1,024 answers that wait none is read.
        let long = String(repeating: "x", count: 3500)
        var count = 0
        while !program.error.contains("of standard output were left out"), count < 20_000 {
            for _ in 0..<100 {
                try program.write(
                    #"{ "stage": "text", "set": { "text": "\#(long)\#(count)" }, "tag": \#(count) }"# + "\n")
                count += 1
            }
            program.listen(seconds: 0.15)
        }
        #expect(program.error.contains("of standard output were left out"))
        program.readsOutput = true
        try program.waitForAnswers(count)
        program.send(SIGTERM)
        let outcome = try program.finish()
        var tags: [Int] = []
        var (lost, changed, done) = (0, 0, 0)
        for line in outcome.lines {
            let event = try JSON(parsing: line)
            switch event["event"].string {
            case "command-answered":
                event["tag"].int.map { tags.append($0) }
                done += event["ok"].bool == true ? 1 : 0
            case "option-changed": changed += 1
            case "lines-lost":
                #expect(event["stream"].string == "output" && event["level"].string == "warning")
                lost += event["lines"].int ?? 0
            default: break
            }
        }
        // Each command has one answer, and each event is there or counted. An answer holds up others for a second at most,
        // which a stage on a busy machine may exceed.
        #expect(tags.sorted() == Array(0..<count))
        #expect(lost > 0 && changed < done && changed + lost >= done)
        // All of it is said at the end too.
        #expect(outcome.status == 1)
        #expect(
            outcome.error.contains("This run counts as failed: \(lost) lines of standard output were left out"),
            "\(lost): \(outcome.error.suffix(2000))")
    }

    /// Lines that were asked for and not read make a failure, whether or not somebody reads the log.
    @Test(arguments: [false, true]) func linesThatNobodyReadsFailTheRun(readsLog: Bool) throws {
        try workspace.write("chain.json", Self.chain)
        let program = try framehost.start(["chain.json", "--events", "--commands"], folder: workspace.folder.path)
        try program.waitForOutput(#""state":"streaming""#)
        (program.readsOutput, program.readsError) = (false, readsLog)
        // Each makes an event of that size; a pipe takes 64 KiB of them.
        let long = String(repeating: "x", count: 3500)
        for count in 0..<100 {
            try program.write(#"{ "stage": "text", "set": { "text": "\#(long)\#(count)" } }"# + "\n")
            if count % 10 == 9 { usleep(100_000) }
        }
        program.send(SIGTERM)
        if readsLog { try program.waitForError("This run counts as failed: ") }
        #expect(program.waitForEnd(seconds: 60) == 1)
    }

    @Test func oneShotCommandsWaitForTheirReader() throws {
        let program = try framehost.start(["schema"])
        // Longer than any patience with a reader, and more text than a pipe takes.
        usleep(1_500_000)
        let outcome = try program.finish()
        #expect(outcome.status == 0 && outcome.output.utf8.count > 65536)
        _ = try JSON(parsing: outcome.output)
    }
}
