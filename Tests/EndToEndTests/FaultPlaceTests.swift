// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// Where faults stand that are found while a chain is planned, and how the program ends with them.
@Suite struct FaultPlaceTests {
    let workspace: Workspace
    let framehost: Program

    init() throws {
        workspace = try Workspace()
        framehost = try Program.framehost
    }

    private func faults(_ stages: String, _ arguments: String...) throws -> [String] {
        try workspace.write("c.json", "{ \"stages\": [\n\(stages)\n] }")
        var lines: [[String]] = []
        for command in ["check", "run"] {
            let outcome = try framehost.run([command, "c.json"] + arguments, folder: workspace.folder.path)
            #expect(outcome.status == 2, "\(command)")
            lines.append(outcome.errorLines)
        }
        #expect(lines[0] == lines[1])
        return lines[0]
    }

    private static let rest = #"{ "use": "x264-encoder" }, { "use": "null-sink" }"#

    @Test func aMissingFileStandsAtItsKey() throws {
        #expect(
            try faults("{ \"use\": \"file-source\", \"path\": \"no.mp4\" },\n\(Self.rest)") == [
                "c.json:2:25: stages[0].path: 'no.mp4' does not exist. Correct 'path'. A relative path starts at the chain file's folder."
            ])
        let font = try faults(
            "{ \"use\": \"test-source\" }, { \"use\": \"text\", \"font\": \"no.ttf\" },\n\(Self.rest)")
        #expect(font.count == 1 && font[0].hasPrefix("c.json:2:44: stages[1].font: no.ttf cannot be read"), "\(font)")
    }

    @Test func aMisspeltParameterStandsAtItsKey() throws {
        let found = try faults(
            "{ \"use\": \"test-source\" },\n{ \"use\": \"frei0r\", \"effect\": \"glow\", \"parameters\": {\n  \"blurr\": 1 } },\n\(Self.rest)"
        )
        #expect(found == ["c.json:4:3: stages[1].parameters.blurr: glow has no such parameter. Did you mean 'Blur'?"])
    }

    @Test func aRuleOfSeveralOptionsStandsAtTheOneItNames() throws {
        #expect(
            try faults(
                "{ \"use\": \"test-source\" },\n{ \"use\": \"x264-encoder\", \"bitrateKbps\": 300, \"crf\": 20 },\n{ \"use\": \"null-sink\" }"
            ).map {
                String($0.prefix { $0 != "'" })
            } == ["c.json:3:46: stages[1].crf: "])
    }

    @Test func aFaultOfASettingIsTheSettings() throws {
        #expect(
            try faults(
                "{ \"id\": \"f\", \"use\": \"file-source\", \"path\": \"a.mp4\" },\n\(Self.rest)", "--set",
                "f.path=12:30.mp4") == [
                    "--set f.path=12:30.mp4: '12:30.mp4' does not exist. Correct 'path'. A relative path starts at the chain file's folder."
                ])
    }

    @Test func aMissingVariableIsOneFault() throws {
        #expect(
            try faults("{ \"use\": \"file-source\", \"path\": \"${FH_NONE}/a.mp4\" },\n\(Self.rest)") == [
                "c.json:2:33: stages[0].path: the environment variable 'FH_NONE' is not set. Set it, or write ${FH_NONE:-default}."
            ])
    }

    @Test func saysWhichStageTakesWhatIsNoFile() throws {
        let encoder = #"{ "use": "x264-encoder" }"#
        for (path, part) in [
            (
                "rtsp://camera/1",
                "'path' must be a file, but is the address rtsp://camera/1. Use 'network-source', with the address as its 'url'."
            ),
            (
                "rtsp://viewer:geheim@camera/1?token=geheim",
                "'path' must be a file, but is the address rtsp://camera/1. Use 'network-source', with the address as its 'url'."
            ),
            (
                "file:///a.mp4",
                "'path' must be a file, but is the address file:///a.mp4. Write only the path, without file://."
            ),
            (
                "-",
                "'path' must be a file, but is - (standard input). Name a file. 'y4m-source' reads raw video (y4m) from standard input."
            ),
        ] {
            let found = try faults("{ \"use\": \"file-source\", \"path\": \"\(path)\" },\n\(Self.rest)")
            #expect(found == ["c.json:2:25: stages[0].path: \(part)"])
        }
        #expect(
            try faults(
                "{ \"use\": \"image-source\", \"path\": \"https://example.com/a.png?key=geheim\" },\n\(Self.rest)") == [
                    "c.json:2:26: stages[0].path: 'path' must be a file, a folder or a pattern, but is the address https://example.com/a.png. Fetch the picture to a file first. 'network-source' plays streams, such as a camera's MJPEG."
                ])
        for (path, part) in [
            ("rtsp://:8554/live", "Name a file. 'rtsp-sink' serves a stream; no stage can send to an address yet."),
            (
                "-",
                "Name a file. 'y4m-sink' writes raw video to standard output; 'null-sink' with \"dump\": \"-\" writes anything there."
            ),
        ] {
            let found = try faults(
                "{ \"use\": \"test-source\" }, \(encoder),\n{ \"use\": \"recorder\", \"path\": \"\(path)\" }")
            #expect(
                found.count == 1 && found[0].hasPrefix("c.json:3:22: stages[2].path: ") && found[0].hasSuffix(part),
                "\(found)")
        }
    }

    /// Of links, buffers and marks, each on a line of its own.
    @Test(arguments: [
        ("\"buffers\": { \"s\":\n1 },", "", "2:1: buffers.s: must be "),
        ("", "\"link\": {\n\"queue\": 0 },", "5:10: stages[2].link.queue: \"queue\": 0 runs"),
        ("", "\"link\": {\n\"whenFull\": \"dropToKeyframe\" },", "5:13: stages[2].link.whenFull: 'dropToKeyframe'"),
        ("", "\n\"unread\": true,", "5:11: stages[2].unread: 'n' (null-sink) has no output"),
    ]) func faultsOfThePlanStandAtTheirMember(top: String, member: String, fault: String) throws {
        try workspace.write(
            "c.json",
            """
            { \(top) "stages": [
            { "id": "s", "use": "test-source" },
            { "use": "replicate", "from": "s", "copies": 4, "step": { "delay": 3 } },
            { \(member) "id": "n", "use": "null-sink", "from": "s" },
            { "use": "null-sink", "id": "m", "from": "replicate" }
            ] }
            """)
        let outcome = try framehost.run(["check", "c.json", "--json"], folder: workspace.folder.path)
        #expect(outcome.status == 2)
        let found = try JSON(parsing: outcome.output)["faults"][0]
        #expect("c.json:\(fault)".hasPrefix(found["place"].string ?? "?"))
        #expect("\(found["place"].string ?? "?"): \(found["what"].string ?? "?")".hasPrefix("c.json:\(fault)"))
        let place = fault.split(separator: ":")
        #expect(found["line"].int == Int(place[0]) && found["column"].int == Int(place[1]))
        #expect(found["file"].string == "c.json" && place[2].hasSuffix(found["path"].string ?? "?"))
        #expect(found["stage"].string == (top.isEmpty ? "n" : nil))
    }

    @Test func twoStagesAtOneFileStandAtTheOptionThatNamesIt() throws {
        let found = try faults(
            """
            { "id": "s", "use": "test-source" },
            { "id": "enc", "use": "x264-encoder" },
            { "id": "a", "use": "recorder", "path": "out.mp4" },
            { "id": "b", "use": "recorder", "from": "enc",
              "path": "out.mp4" }
            """)
        #expect(found.count == 1 && found[0].hasPrefix("c.json:6:3: stages[3].path: 'b' would write"), "\(found)")
    }

    /// Nothing would tell whose file is whose. A pattern is the same however it is written.
    @Test func twoStagesOfOnePatternStandAtIt() throws {
        let found = try faults(
            """
            { "id": "s", "use": "test-source" },
            { "id": "one", "use": "image-sink", "from": "s", "path": "%F-{nn}.png" },
            { "id": "two", "use": "image-sink", "from": "s", "path": "./%Y-%m-%d-{nn}.png" },
            { "id": "three", "use": "image-sink", "from": "s", "path": "%F-{nnn}.png" },
            { "id": "enc", "use": "x264-encoder", "from": "s" },
            { "id": "a", "use": "recorder", "path": "cam.mp4", "segmentSeconds": 5 },
            { "id": "b", "use": "recorder", "from": "enc", "path": "cam-{nnnn}.mp4" },
            { "id": "c", "use": "recorder", "from": "enc", "path": "cam-c-{nnnn}.mp4" }
            """)
        let place = "in the same folder, as does"
        try #require(found.count == 2, "\(found)")
        #expect(
            found[0].hasPrefix(
                "c.json:4:50: stages[2].path: 'two' names its files '%Y-%m-%d-{nn}.png' \(place) 'one'. Put something of its own into the 'path' of each"
            ), "\(found)")
        #expect(
            found[1].hasPrefix("c.json:8:48: stages[6].path: 'b' names its files 'cam-{nnnn}.mp4' \(place) 'a'. "),
            "\(found)")
    }

    /// The sound of a stream has its stage's options: what follows from a fault of the pictures is read behind it,
    /// wherever that fault stands, and no fault is said twice.
    @Test func whatFollowsFromAnotherFaultStandsBehindIt() throws {
        let found = try faults(
            """
            { "id": "door", "use": "network-source", "url": "rtsp://127.0.0.1:1/live",
              "slatePicture": "none.png" },
            { "id": "aac", "use": "audio-encoder", "from": "door.audio" }, { "id": "end", "use": "null-sink", "from": "aac" },
            { "use": "null-sink", "from": "door" }
            """)
        #expect(found.count == 2)
        #expect(
            found.first?.hasPrefix("c.json:3:3: stages[0].slatePicture: none.png cannot be read: ") == true, "\(found)")
        #expect(
            found.last?.hasPrefix("c.json:2:42: stages[0].url: the stream was not opened, so its sound is not known.")
                == true,
            "\(found)")
        let twice = try faults(
            """
            { "id": "clip", "use": "file-source", "path": "none.mp4" },
            { "id": "aac", "use": "audio-encoder", "from": "clip.audio" }, { "id": "end", "use": "null-sink", "from": "aac" },
            { "use": "null-sink", "from": "clip" }
            """)
        #expect(twice.count == 1 && twice[0].contains("'none.mp4' does not exist"), "\(twice)")
    }

    @Test func aPluginFolderThatIsNotThereIsAFault() throws {
        try workspace.write("c.json", Chains.short)
        for arguments in [
            ["check", "c.json"], ["run", "c.json"], ["plugins"], ["describe", "null-sink"], ["schema"],
        ] {
            let outcome = try framehost.run(arguments + ["--plugin-path", "/nope"], folder: workspace.folder.path)
            #expect(outcome.status == 2)
            #expect(
                outcome.errorLines == [
                    "--plugin-path /nope: does not exist. Build your plugin first (`swift build -c release`), or name another folder."
                ])
        }
    }

    @Test func aReaderThatDoesNotReadHoldsUpNobody() throws {
        try workspace.write("c.json", Chains.live.replacing("\"use\": \"null-sink\"", with: "\"use\": \"null-sink\""))
        let program = try framehost.start(["c.json", "--commands", "--events"], folder: workspace.folder.path)
        for tag in 0..<3000 { try program.write("{ \"command\": \"no\", \"tag\": \(tag) }\n") }
        program.closeInput()
        // Nobody has read so far: a pipe is full after 64 kB.
        usleep(2_500_000)
        program.send(SIGTERM)
        let outcome = try program.finish()
        #expect(outcome.isDoneOrBusy, "\(outcome.error)")
    }
}
