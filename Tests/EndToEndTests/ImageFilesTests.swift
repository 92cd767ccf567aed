// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import Testing

/// `image-sink` in a running program: what others read of its files, a full disk, a kill.
@Suite struct ImageFilesTests {
    let workspace: Workspace

    init() throws {
        workspace = try Workspace()
        try FileManager.default.createDirectory(atPath: workspace.path("shots"), withIntermediateDirectories: true)
    }

    private func run(_ source: String, _ sinks: String) throws -> Outcome {
        try workspace.write(
            "chain.json", #"{ "stages": [ { "id": "src", "use": "test-source", \#(source) }, \#(sinks) ] }"#)
        return try Program.framehost.run(["chain.json"], folder: workspace.folder.path)
    }

    /// PNG is exact, with the mark in it; JPEG has the size that it should.
    @Test(.needs(.ffmpeg)) func writesWhatFFmpegReads() throws {
        let outcome = try run(
            #""size": "161x91", "format": "rgb24", "rate": 25, "frames": 100"#,
            """
            { "use": "null-sink", "from": "src", "dump": "all.rgb" },
            { "use": "image-sink", "from": "src", "path": "shots/%Y-p-{nn}.png" },
            { "id": "few", "use": "image-sink", "from": "src", "path": "shots/few-{n}.jpg", "everySeconds": 1.5, "quality": 95 }
            """)
        #expect(outcome.status == 0, "\(outcome.error)")
        let names = workspace.names(below: "shots").sorted()
        let still = names.filter { $0.hasSuffix(".png") }
        #expect(still.count == 100 && names.filter { $0.hasSuffix(".jpg") }.count == 3 && names.count == 103)
        let year = try #require(still.first?.split(separator: "-").first)
        let read = try Tool.ffmpeg.run(
            "-nostdin", "-v", "error", "-start_number", "1", "-i", workspace.path("shots/\(year)-p-%02d.png"), "-f",
            "rawvideo", "-pix_fmt", "rgb24", workspace.path("read.rgb"))
        #expect(read.status == 0 && read.error.isEmpty, "\(read.error)")
        // From 100 on there are three digits.
        let first = try workspace.data("read.rgb")
        #expect(first.count >= 99 * 161 * 91 * 3)
        #expect(try workspace.data("all.rgb").prefix(first.count) == first)
        let jpeg = try Tool.ffmpeg.run(
            "-nostdin", "-v", "error", "-i", workspace.path("shots/few-2.jpg"), "-f", "rawvideo", "-pix_fmt", "rgb24",
            workspace.path("jpeg.rgb"))
        #expect(jpeg.status == 0 && jpeg.error.isEmpty, "\(jpeg.error)")
        // The picture of 1.52 s, of whose slot it is the first: 1.5 s lies between two.
        let wanted = try workspace.data("all.rgb").dropFirst(38 * 161 * 91 * 3).prefix(161 * 91 * 3)
        let got = try workspace.data("jpeg.rgb")
        try #require(got.count == wanted.count)
        let error = zip(got, wanted).reduce(0) { $0 + abs(Int($1.0) - Int($1.1)) }
        #expect(Double(error) / Double(got.count) < 3)
    }

    /// Those that ffprobe calls keyframes, also behind stages that make other pictures.
    @Test(.needs(.ffmpeg)) func writesTheKeyframesOfAClip() throws {
        let made = try Tool.ffmpeg.run(
            "-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=320x240:rate=25:duration=4", "-pix_fmt",
            "yuv420p", "-c:v", "libx264", "-preset", "veryfast", "-g", "17", "-sc_threshold", "0",
            workspace.path("clip.mp4"))
        #expect(made.status == 0, "\(made.error)")
        try workspace.write(
            "chain.json",
            """
            { "stages": [ { "id": "src", "use": "file-source", "path": "clip.mp4" },
              { "id": "turned", "use": "crop-orient", "rotate": 90 },
              { "id": "a", "use": "image-sink", "from": "src", "path": "shots/a-{n}.jpg", "keyframesOnly": true },
              { "id": "b", "use": "image-sink", "from": "turned", "path": "shots/b-{n}.jpg", "keyframesOnly": true } ] }
            """)
        let outcome = try Program.framehost.run(["chain.json"], folder: workspace.folder.path)
        #expect(outcome.status == 0, "\(outcome.error)")
        // At 0, 17, 34, 51, 68, 85.
        let names = workspace.names(below: "shots")
        #expect(names == (1...6).map { "a-\($0).jpg" } + (1...6).map { "b-\($0).jpg" }, "\(names)")
    }

    @Test func saysAtCheckWhatItTakes() throws {
        func check(_ stages: String) throws -> String {
            try workspace.write(
                "chain.json", #"{ "stages": [ { "id": "src", "use": "test-source", "frames": 1 }, \#(stages) ] }"#)
            let outcome = try Program.framehost.run(["check", "chain.json"], folder: workspace.folder.path)
            #expect(outcome.status == 2)
            return outcome.error
        }
        let encoded = try check(
            #"{ "id": "h264", "use": "x264-encoder" }, { "id": "shots", "use": "image-sink", "path": "shots/{n}.jpg" }"#
        )
        #expect(encoded.contains("'shots' takes raw video") && encoded.contains("gives H.264"), "\(encoded)")
        let twice = try check(
            """
            { "id": "a", "use": "image-sink", "from": "src", "path": "now.jpg", "overwrite": true },
            { "id": "b", "use": "image-sink", "from": "src", "path": "./now.jpg", "overwrite": true }
            """)
        #expect(twice.contains("'b'") && twice.contains("now.jpg"), "\(twice)")
        let folder = try check(#"{ "use": "image-sink", "path": "nowhere/{n}.jpg" }"#)
        #expect(folder.contains("path: the folder") && folder.contains("does not exist. Create it"), "\(folder)")
    }

    /// A disk that is full for a while costs its pictures, a sentence and the exit status; all files are whole.
    @Test(.needs(.ffmpeg)) func beginsAgainWhenTheDiskHasRoom() throws {
        let disk = try SmallDisk(at: workspace.path("shots"))
        guard !disk.isLimit else { return }
        try disk.empty(room: 64 << 10)
        try workspace.write(
            "chain.json",
            """
            { "stages": [
              { "id": "src", "use": "test-source", "size": "320x240", "rate": 25, "live": true },
              { "id": "shots", "use": "image-sink", "path": "shots/{nnnn}.png" } ] }
            """)
        let running = try Program.framehost.start(
            ["chain.json", "--commands", "--events"], folder: workspace.folder.path)
        try running.waitForOutput(#""event":"images-failing""#)
        try disk.empty(room: 4 << 20)
        try running.waitForOutput(#""event":"images-resumed""#)
        try running.waitForFrames(running.frames() + 25)
        running.send(SIGINT)
        let outcome = try running.finish()
        #expect(outcome.status == 1)
        let lines = try outcome.lines.map { try JSON(parsing: $0) }
        let failing = lines.filter { $0["event"].string == "images-failing" }
        #expect(failing.first?["reason"].string?.contains("No space left on device") == true)
        #expect(failing.first?["text"].string?.contains("Free some space") == true)
        #expect(outcome.error.contains("pictures could not be written: "), "\(outcome.error)")
        let names = workspace.names(below: "shots")
        #expect(names.count > 5 && names.allSatisfy { $0.hasSuffix(".png") && !$0.contains(".new") }, "\(names)")
        for name in names { try expectWhole("shots/\(name)") }
    }

    /// A picture of noise takes a while to write; killed at random moments, no name leads to half of one.
    @Test func leavesNoHalfFileWhenItIsKilled() throws {
        try workspace.write(
            "chain.json",
            """
            { "stages": [
              { "id": "src", "use": "test-source", "size": "640x480" },
              { "id": "shots", "use": "image-sink", "from": "src", "path": "shots/{nnnn}.jpg" },
              { "id": "now", "use": "image-sink", "from": "src", "path": "now.jpg", "overwrite": true } ] }
            """)
        for round in 1...10 {
            let program = try Program.framehost.start(["chain.json", "--events"], folder: workspace.folder.path)
            while workspace.names(below: "shots").count < round * 5, program.isRunning { usleep(1000) }
            usleep(.random(in: 0...20_000))
            program.send(SIGKILL)
            _ = try program.finish()
            try expectWhole("now.jpg")
        }
        let names = workspace.names(below: "shots").filter { $0.hasSuffix(".jpg") }
        // A program that was killed may leave a file of another name.
        #expect(names.count >= 40)
        for name in names { try expectWhole("shots/\(name)") }
    }

    /// A file ends as its format says.
    private func expectWhole(_ name: String) throws {
        let bytes = try workspace.data(name)
        let end: [UInt8] = name.hasSuffix(".png") ? [0x49, 0x45, 0x4E, 0x44, 0xAE, 0x42, 0x60, 0x82] : [0xFF, 0xD9]
        #expect(bytes.suffix(end.count).elementsEqual(end), "\(name)")
    }
}
