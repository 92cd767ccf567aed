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

    /// Twenty seconds of four files of different rates in one picture: far faster than real time, and the same bytes each time.
    @Test(.needs(.ffmpeg), arguments: ["mosaic", "source-switch"]) func joinsFilesByTheirTimes(stage: String) throws {
        let rates = ["25", "30", "10", "30000/1001"]
        for (number, rate) in rates.enumerated() {
            let made = try Tool.ffmpeg.run(
                "-nostdin", "-v", "error", "-y", "-f", "lavfi", "-i",
                "testsrc2=size=160x120:rate=\(rate):duration=\(number == 1 ? 8 : 20)", "-c:v", "mpeg4", "-g", "50",
                workspace.path("\(number).\(number % 2 == 0 ? "mp4" : "mkv")"))
            #expect(made.error == "")
        }
        let sources = rates.indices.map {
            #"{ "id": "in\#($0)", "use": "file-source", "path": "\#($0).\#($0 % 2 == 0 ? "mp4" : "mkv")" }"#
        }.joined(separator: ", ")
        var dumps: [Data] = []
        for name in ["one.yuv", "two.yuv"] {
            try workspace.write(
                "chain.json",
                """
                { "stages": [ \(sources),
                  { "id": "wall", "use": "\(stage)", "from": ["in1", "in0", "in2", "in3"], "size": "64x48", "rate": 25 },
                  { "use": "null-sink", "dump": "\(name)" } ] }
                """)
            let begin = Date()
            let outcome = try framehost.run(["chain.json", "--events"], folder: workspace.folder.path)
            #expect(outcome.status == 0, "\(outcome.error)")
            #expect(Date().timeIntervalSince(begin) < 12, "twenty seconds in real time")
            #expect(!outcome.output.contains("input-lost") || stage == "source-switch")
            #expect(outcome.output.contains(#""event":"input-switched""#) == (stage == "source-switch"))
            dumps.append(try Data(contentsOf: URL(fileURLWithPath: workspace.path(name))))
        }
        // The last picture at 30000/1001 ends at 20.02 s.
        #expect(dumps[0].count == 501 * 64 * 48 * 3 / 2, "\(dumps[0].count)")
        #expect(dumps[0] == dumps[1])
    }

    /// Whether the chain takes the sound is not the join's to say: it warns of nothing that is there.
    @Test(.needs(.ffmpeg), arguments: ["mosaic", "source-switch"]) func saysNothingOfSoundThatIsTaken(stage: String)
        throws
    {
        let made = try Tool.ffmpeg.run(
            "-nostdin", "-v", "error", "-y", "-f", "lavfi", "-i", "testsrc2=size=160x120:rate=25:duration=2", "-f",
            "lavfi", "-i", "sine=duration=2", "-c:v", "mpeg4", "-c:a", "aac", workspace.path("clip.mp4"))
        #expect(made.error == "")
        func run(_ sound: String) throws -> Outcome {
            try workspace.write(
                "chain.json",
                """
                { "stages": [ { "id": "clip", "use": "file-source", "path": "clip.mp4" },
                  { "id": "test", "use": "test-source", "frames": 50, "rate": 25 },
                  { "id": "wall", "use": "\(stage)", "from": ["clip", "test"] }, { "id": "end", "use": "null-sink" }\(sound) ] }
                """)
            return try framehost.run(["chain.json", "--events"], folder: workspace.folder.path)
        }
        let taken = try run(
            #", { "use": "audio-encoder", "from": "clip.audio" }, { "id": "sound", "use": "null-sink" }"#)
        #expect(taken.status == 0 && !taken.error.contains("warning"), "\(taken.error)")
        #expect(!taken.output.contains("track-not-carried"))
        let dropped = try run("")
        #expect(dropped.status == 0 && dropped.error.contains("wall: this stage gives no sound."), "\(dropped.error)")
        #expect(dropped.output.contains("The audio track 1 (aac) is dropped."), "\(dropped.output)")
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
