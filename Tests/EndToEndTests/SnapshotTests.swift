// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// The commands `snapshot` and `status`.
@Suite struct SnapshotTests {
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
            { "id": "turned", "use": "crop-orient", "rotate": 90 },
            { "id": "h264", "use": "x264-encoder", "preset": "ultrafast", "bitrateKbps": 500 },
            { "id": "sink", "use": "null-sink" }
          ]
        }
        """

    /// What is answered to each command, counted from 1.
    ///
    /// - Parameter once: Those that are not sent again where a stage gives no picture.
    private func answers(
        _ lines: [String], once: Set<Int> = []
    ) throws -> (outcome: Outcome, byNumber: [Int: JSON]) {
        try workspace.write("chain.json", Self.chain)
        let program = try framehost.start(["chain.json", "--commands", "--events"], folder: workspace.folder.path)
        try program.waitForOutput(#""state":"streaming""#)
        try program.waitForFrames(1)
        var byNumber: [Int: JSON] = [:]
        // One after the other: each finds what the one before has left.
        for (number, line) in zip(1..., lines) {
            if once.contains(number) {
                try program.write(line + "\n")
                try program.waitForAnswers(once.count { $0 <= number })
            } else {
                byNumber[number] = try program.sendPatiently(line)
            }
        }
        program.send(SIGINT)
        let outcome = try program.finish()
        let answers = try outcome.lines.map { try JSON(parsing: $0) }.filter {
            $0["event"].string == "command-answered" && $0["tag"].string == nil
        }
        for (number, answer) in zip(once.sorted(), answers) { byNumber[number] = answer }
        return (outcome, byNumber)
    }

    private func size(of name: String) throws -> String {
        try Tool.ffprobe.run(
            "-v", "error", "-show_entries", "stream=codec_name,width,height", "-of", "csv=p=0",
            workspace.path(name)
        ).output.trimmingCharacters(in: .whitespacesAndNewlines)
    }

    @Test(.needs(.ffprobe)) func writesTheNextPictureOfAStage() throws {
        let (outcome, answers) = try answers([
            #"{ "stage": "camera", "command": "snapshot", "path": "a.jpg" }"#,
            #"{ "stage": "turned", "command": "snapshot", "path": "b.png" }"#,
            #"{ "stage": "turned", "command": "snapshot", "path": "c.jpg", "width": 64, "height": 64 }"#,
            #"{ "stage": "camera", "command": "snapshot", "path": "a.jpg", "overwrite": true }"#,
        ])
        #expect(outcome.isDoneOrBusy, "\(outcome.error)")
        for tag in 1...4 { #expect(answers[tag]?["ok"].bool == true, "\(String(describing: answers[tag]))") }
        #expect(try size(of: "a.jpg") == "mjpeg,320,240")
        #expect(try size(of: "b.png") == "png,240,320")
        #expect(try size(of: "c.jpg") == "mjpeg,64,64")
        let first = answers[1]?["frame"].int ?? -1
        #expect(first > 0 && first < (answers[4]?["frame"].int ?? -1))
        #expect(answers[1]?["takenAt"].string?.hasSuffix("Z") == true)
        #expect((answers[2]?["bytes"].int ?? 0) > 100)
    }

    @Test func saysWhyThereIsNone() throws {
        try workspace.write("mine.jpg", "not a picture")
        let commands = [
            #"{ "stage": "camera", "command": "snapshot", "path": "mine.jpg" }"#,
            #"{ "stage": "h264", "command": "snapshot", "path": "x.jpg" }"#,
            #"{ "stage": "camera", "command": "snapshot" }"#,
            #"{ "stage": "camera", "command": "snapshot", "path": "x.gif", "width": 0, "rotate": 45, "fit": "all" }"#,
            #"{ "stage": "camera", "command": "snapshot", "path": "no/such/x.jpg" }"#,
            #"{ "stage": "camera", "command": "pause" }"#,
            #"{ "stage": "camera", "command": "snapshot", "path": "x.jpg" }"#,
            #"{ "command": "status" }"#,
            #"{ "stage": "camera", "command": "snapshot", "path": "x\u0000.jpg" }"#,
        ]
        let (outcome, answers) = try answers(commands, once: [7])
        #expect(outcome.isDoneOrBusy, "\(outcome.error)")
        let texts = [1, 2, 3, 4, 5, 7].map { answers[$0]?["error"].string ?? "-" }
        #expect(
            texts[0].hasSuffix(
                "mine.jpg' already exists. Name another file, or set \"overwrite\": true to replace it."), "\(texts[0])"
        )
        #expect(try String(contentsOfFile: workspace.path("mine.jpg"), encoding: .utf8) == "not a picture")
        #expect(texts[1] == "h264 (x264-encoder): gives no pictures. Ask for the pictures of 'turned'.")
        #expect(texts[2] == "'path' is missing. Write \"path\": \"picture.jpg\".")
        #expect(
            texts[3] == """
                path: 'x.gif' must end in .jpg, .jpeg or .png. Write the ending of the format that you want.
                width: 0 must be a whole number from 1 to 16384. Write a number in this range, or leave the key out.
                rotate: 45 must be 0, 90, 180 or 270. Write how many degrees to rotate clockwise, or leave the key out.
                fit: 'all' must be 'fill' or 'contain'. Write one of them, or leave the key out.
                """)
        #expect(texts[4].contains("no/such"), "\(texts[4])")
        #expect(texts[5] == "camera: gave no picture within 1 s. Try again when frames flow.")
        #expect(!FileManager.default.fileExists(atPath: workspace.path("x.jpg")))
        #expect(answers[9]?["error"].string == "'path' must not contain the character U+0000. Remove its \\u0000.")
        #expect(!FileManager.default.fileExists(atPath: workspace.path("x")))
        let status = answers[8]?["status"]
        #expect(status?["state"].string == "paused" && status?["healthy"].bool == true)
        #expect(status?["stages"].list.first?["state"].string == "paused")
    }

    @Test(.needs(.ffprobe)) func takesPicturesBySignal() throws {
        try workspace.write("chain.json", Self.chain)
        try workspace.write("now-0002.jpg", "mine")
        let program = try framehost.start(
            [
                "chain.json", "--events", "--commands", "--snapshot-on-signal", "camera=now.jpg",
                "--snapshot-on-signal",
                "turned=turned.png",
            ], folder: workspace.folder.path)
        try program.waitForOutput(#""state":"streaming""#)
        try program.waitForFrames(1)
        func names(_ ending: String) -> [String] {
            workspace.names.filter { $0.hasSuffix(ending) && $0 != "now-0002.jpg" }
        }
        // A stage that gets no processor for a second gives no picture, and its number is passed over: then once more.
        var asked = 0
        while asked < 2 || asked < 10 && (names(".jpg").count < 2 || names(".png").count < 2) {
            asked += 1
            program.send(SIGUSR1)
            try program.waitForAnswers(2 * asked)
        }
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.isDoneOrBusy, "\(outcome.error)")
        let late = outcome.lines.count { $0.contains("gave no picture within") }
        let (jpegs, pngs) = (names(".jpg"), names(".png"))
        #expect(jpegs.count >= 2 && pngs.count >= 2, "\(workspace.names)")
        #expect(jpegs.count + pngs.count + late == 2 * asked, "\(workspace.names)")
        let jpegNames = ["now.jpg"] + (3...(asked + 1)).map { String(format: "now-%04d.jpg", $0) }
        let pngNames = ["turned.png"] + (2...asked).map { String(format: "turned-%04d.png", $0) }
        #expect(Set(jpegs).isSubset(of: jpegNames) && Set(pngs).isSubset(of: pngNames), "\(workspace.names)")
        for name in jpegs { #expect(try size(of: name) == "mjpeg,320,240") }
        for name in pngs { #expect(try size(of: name) == "png,240,320") }
        #expect(try String(contentsOfFile: workspace.path("now-0002.jpg"), encoding: .utf8) == "mine")
        #expect(outcome.output.contains("camera: frame "), "\(outcome.output)")
        for (wish, text) in [
            ("camera", "must be a stage's id, '=' and a file that ends in .jpg, .jpeg or .png"),
            ("camera=x.gif", "must be a stage's id"),
            ("camrea=x.jpg", "no stage 'camrea'. Did you mean 'camera'?"),
            ("h264=x.jpg", "'h264' gives no pictures"),
        ] {
            let refused = try framehost.run(
                ["chain.json", "--snapshot-on-signal", wish], folder: workspace.folder.path)
            #expect(refused.status == 2 && refused.error.contains(text), "\(refused.error)")
        }
    }

    /// Before any server is asked.
    @Test func refusesWrongArgumentsWithStatus2() throws {
        for (arguments, text) in [
            (["--width", "0"], "'--width <width>': it must be a whole number from 1 to 16384."),
            (["--height", "99999"], "'--height <height>': it must be a whole number from 1 to 16384."),
            (["--rotate", "45"], "'--rotate <degrees>': it must be 0, 90, 180 or 270."),
            (["--quality", "0"], "'--quality <quality>': it must be a whole number from 1 to 100."),
            (["--fit", "all"], "--fit all: must be fill or contain."),
        ] {
            let outcome = try framehost.run(["snapshot", "127.0.0.1:1", "camera", workspace.path("x.jpg")] + arguments)
            #expect(outcome.status == 2 && outcome.error.contains(text), "\(outcome.error)")
        }
    }

    /// The events of each stage whose state people would ask for.
    @Test func tellsOfStates() throws {
        let commands = [
            #"{ "stage": "camera", "command": "pause" }"#,
            #"{ "stage": "turned", "command": "snapshot", "path": "x.jpg" }"#,
            #"{ "stage": "camera", "command": "resume" }"#,
            #"{ "stage": "turned", "command": "snapshot", "path": "x.jpg" }"#,
        ]
        let (outcome, _) = try answers(commands, once: [2])
        #expect(outcome.isDoneOrBusy, "\(outcome.error)")
        let events = try outcome.lines.map { try JSON(parsing: $0) }.filter { $0["event"].string == "state" }
        #expect(events.contains { $0["stage"].string == "camera" && $0["state"].string == "paused" })
        #expect(events.contains { $0["stage"].value == nil && $0["state"].string == "paused" })
    }

    /// Who sends a signal gets no answer: the exit status tells.
    @Test func aPictureBySignalThatCannotBeWrittenFailsTheRun() throws {
        try workspace.write("chain.json", Self.chain)
        let folder = try workspace.write("full/x", "")
        let program = try framehost.start(
            ["chain.json", "--events", "--snapshot-on-signal", "camera=full/now.jpg"], folder: workspace.folder.path)
        try program.waitForOutput(#""state":"streaming""#)
        program.listen(seconds: 0.2)
        // As a disk that has gone; a full one gives another reason.
        try FileManager.default.removeItem(atPath: String(folder.dropLast(2)))
        var asked = 0
        while !program.output.contains("No such file or directory"), asked < 10 {
            asked += 1
            program.send(SIGUSR1)
            try program.waitForLines(program.output.split(separator: "\n").count + 1)
            program.listen(seconds: 0.5)
        }
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.status == 1)
        #expect(
            outcome.error.contains("error: --snapshot-on-signal: 1 picture could not be taken. Correct the cause"),
            "\(outcome.error)")
        #expect(outcome.errorLines.last?.hasPrefix("Failed: ") == true)
    }

    /// The plugin that writes pictures is loaded with the first one.
    @Test(.needs(.prlimit)) func aLackOfDescriptorsIsNoFaultOfAPlugin() throws {
        let workspace = try Workspace()
        try workspace.write(
            "chain.json",
            #"{ "stages": [ { "id": "camera", "use": "test-source", "size": "64x64", "rate": 50, "live": true }, { "use": "null-sink" } ] }"#
        )
        let program = try Program.framehost.start(
            ["chain.json", "--commands", "--events"], folder: workspace.folder.path)
        try program.waitForOutput(#""state":"streaming""#)
        _ = try Tool.prlimit.run("--pid", "\(program.pid)", "--nofile=3:")
        let answer = try program.sendPatiently(#"{ "stage": "camera", "command": "snapshot", "path": "a.jpg" }"#)
        let error = answer["error"].string ?? ""
        #expect(error.contains("Raise the limit of open files (ulimit -n)."), "\(error)")
        #expect(!error.contains("uild the plugin") && !error.contains("swift build"), "\(error)")
        _ = try Tool.prlimit.run("--pid", "\(program.pid)", "--nofile=1024:")
        program.send(SIGINT)
        _ = try program.finish()
    }

    @Test func saysThatNobodyAskedForPicturesBySignal() throws {
        let workspace = try Workspace()
        try workspace.write(
            "chain.json",
            #"{ "stages": [ { "use": "test-source", "size": "64x64", "rate": 50, "live": true }, { "use": "null-sink" } ] }"#
        )
        let program = try Program.framehost.start(["chain.json", "--events"], folder: workspace.folder.path)
        try program.waitForOutput(#""state":"streaming""#)
        program.send(SIGUSR1)
        try program.waitForError("Start framehost with --snapshot-on-signal STAGE=FILE.")
        program.send(SIGINT)
        #expect(try program.finish().status == 0)
    }
}
