// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// One of several inputs at a time, under a recording and an RTSP reader.
@Suite struct SwitchTests {
    let workspace: Workspace
    let framehost: Program

    init() throws {
        workspace = try Workspace()
        framehost = try Program.framehost
        chain = Self.chain(port: try RTSPStream.freePort())
    }

    private let chain: String

    private static func chain(port: Int) -> String {
        """
        {
          "stages": [
            { "id": "a", "use": "test-source", "size": "320x240", "rate": 30, "live": true, "pattern": "balls" },
            { "id": "b", "use": "test-source", "size": "160x120", "rate": 25, "live": true, "pattern": "bars" },
            { "id": "sw", "use": "source-switch", "from": ["a", "b"], "lostSeconds": 60 },
            { "id": "h264", "use": "x264-encoder", "preset": "ultrafast", "bitrateKbps": 500, "link": { "queue": 60 } },
            { "id": "file", "use": "recorder", "path": "out.mp4" },
            { "id": "live", "use": "rtsp-sink", "from": "h264", "port": \(port), "path": "/live" }
          ]
        }
        """
    }

    /// Sixty here; a thousand in Tests/Soak/switch.py.
    @Test(.needs(.ffprobe), .needs(.ffmpeg)) func switchesUnderARecordingAndAReader() throws {
        try workspace.write("chain.json", chain)
        let program = try framehost.start(["chain.json", "--commands", "--events"], folder: workspace.folder.path)
        try program.waitForOutput(#""state":"streaming""#)
        // Until each of them has given a picture.
        try program.waitForFrames(200)
        let switches = 60
        for number in 1...switches {
            try program.write(
                #"{ "stage": "sw", "command": "switch", "tag": \#(number), "arguments": { "to": "\#(number % 2 == 1 ? "b" : "a")" } }"#
                    + "\n")
            try program.waitForAnswers(number)
        }
        try program.waitForFrames(300)
        program.send(SIGINT)
        let outcome = try program.finish()
        #expect(outcome.isDoneOrBusy, "\(outcome.error)")
        let switched = try outcome.lines.map { try JSON(parsing: $0) }.filter { $0["event"].string == "input-switched" }
        #expect(switched.count == switches)
        #expect(switched.allSatisfy { $0["reason"].string == "command" })
        let probe = try Tool.ffprobe.run(
            "-v", "error", "-select_streams", "v:0", "-show_entries", "frame=pts_time", "-of", "csv=p=0",
            workspace.path("out.mp4"))
        #expect(probe.error == "")
        let times = probe.output.split(separator: "\n").compactMap {
            Double($0.trimmingCharacters(in: CharacterSet(charactersIn: ",\r ")))
        }
        #expect(times.count > 60)
        #expect(zip(times.dropFirst(), times).allSatisfy { $0 > $1 }, "times rise")
    }

    /// A source that ends is one that is lost: the other goes on, and so does the file.
    @Test(.needs(.ffprobe)) func showsTheOtherWhereOneEnds() throws {
        try workspace.write(
            "chain.json",
            chain.replacing("\"pattern\": \"balls\"", with: "\"pattern\": \"balls\", \"frames\": 30").replacing(
                "\"pattern\": \"bars\"", with: "\"pattern\": \"bars\", \"frames\": 250"))
        let outcome = try framehost.run(["chain.json", "--events"], folder: workspace.folder.path)
        #expect(outcome.isDoneOrBusy, "\(outcome.error)")
        #expect(outcome.output.contains(#""event":"input-switched""#) && outcome.output.contains("'a' is lost"))
        let probe = try Tool.ffprobe.run(
            "-v", "error", "-show_entries", "format=duration", "-of", "csv=p=0", workspace.path("out.mp4"))
        let seconds = Double(probe.output.trimmingCharacters(in: .whitespacesAndNewlines)) ?? 0
        // The first one alone has one second, the other one ten.
        #expect((7...60).contains(seconds), "\(seconds)")
    }

    @Test func refusesAFileThatKeepsNoTime() throws {
        try workspace.write(
            "chain.json",
            """
            { "stages": [
              { "id": "a", "use": "test-source", "frames": 100 },
              { "id": "b", "use": "test-source", "live": true },
              { "id": "c", "use": "y4m-source", "path": "in.y4m" },
              { "id": "d", "use": "image-source", "path": "in.ppm", "seconds": 1 },
              { "id": "wall", "use": "mosaic", "from": ["a", "b", "c", "d"] },
              { "use": "null-sink" } ] }
            """)
        try workspace.write("in.y4m", "YUV4MPEG2 W2 H2 F25:1 C420jpeg\nFRAME\n123456")
        try workspace.write("in.ppm", "P6\n2 2\n255\nabcdefghijkl")
        let outcome = try framehost.run(["check", "chain.json"], folder: workspace.folder.path)
        #expect(outcome.status == 2)
        // Each is told by what its own stage has.
        for (id, remedy) in [
            ("a", #"Use "live": true at 'a'."#), ("c", "Use a live source in the place of 'c'."),
            ("d", #"Use "live": true at 'd'."#),
        ] {
            #expect(
                outcome.error.contains(
                    "stages[4].from: '\(id)' gives pictures as fast as it can, not in real time, and 'wall' takes only the newest one at each tick of its clock: most would be lost. \(remedy)"
                ), "\(outcome.error)")
        }
    }
}
