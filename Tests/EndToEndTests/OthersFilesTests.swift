// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

/// What belongs to somebody else stays: beside a recorder with retention, beside another chain of the process, in a
/// batch's store.
@Suite struct OthersFilesTests {
    let workspace: Workspace
    let framehost: Program

    init() throws {
        workspace = try Workspace()
        framehost = try Program.framehost
    }

    private func run(_ arguments: String...) throws -> Outcome {
        try framehost.run(arguments, folder: workspace.folder.path)
    }

    private func age(_ name: String, days: Double) throws {
        try FileManager.default.setAttributes(
            [.modificationDate: Date() - days * 86_400], ofItemAtPath: workspace.path(name))
    }

    /// Any word fits `%A`; a recorder removes only what it has recorded. What an earlier version recorded is adopted by
    /// hand, and goes in the next run.
    @Test(.needs(.ffmpeg)) func retentionLeavesTheWeddingAlone() throws {
        let made = try Tool.ffmpeg.run(
            "-v", "error", "-f", "lavfi", "-i", "testsrc=s=160x120:r=25:d=1", "-c:v", "libx264", workspace.path("w.mp4")
        )
        #expect(made.status == 0, "\(made.error)")
        let clip = try workspace.data("w.mp4")
        try FileManager.default.createDirectory(atPath: workspace.path("ring"), withIntermediateDirectories: true)
        for name in ["My wedding", "Wednesday", "old recording"] {
            try workspace.write("ring/\(name).mp4", clip)
            try age("ring/\(name).mp4", days: 10)
        }
        try workspace.write(
            "c.json",
            """
            { "stages": [ { "use": "test-source", "size": "160x120", "frames": 30 }, { "use": "x264-encoder" },
              { "id": "r", "use": "recorder", "path": "ring/%A.mp4", "keepSeconds": 604800 } ] }
            """)
        let first = try run("c.json")
        #expect(first.status == 0, "\(first.error)")
        #expect(
            first.error.contains("3 files have names of this recorder's pattern, but no mark")
                && first.error.contains("framehost recordings adopt "), "\(first.error)")
        for name in ["My wedding", "Wednesday", "old recording"] {
            #expect(try workspace.data("ring/\(name).mp4") == clip)
        }
        // A cut-off file is not touched, and without --yes nothing is.
        try workspace.write("ring/cut.mp4", clip.dropLast(100))
        let listed = try run("recordings", "adopt", "ring", "--only", "[oc]*.mp4")
        #expect(listed.status == 1)
        #expect(
            listed.output.contains("would adopt ring/old recording.mp4 (")
                && listed.output.contains("left: 'ring/cut.mp4' is cut off, or still being written")
                && listed.output.contains("Nothing was changed."), "\(listed.output)")
        #expect(try workspace.data("ring/old recording.mp4") == clip)
        let adopted = try run("recordings", "adopt", "ring", "--only", "old*", "--yes")
        #expect(adopted.status == 0 && adopted.output.contains("1 file ("), "\(adopted.output)\(adopted.error)")
        #expect(try workspace.data("ring/old recording.mp4").starts(with: clip))
        #expect(try ClipProbe(workspace.path("ring/old recording.mp4")).times.count == 25)
        let second = try run("c.json")
        #expect(second.status == 0, "\(second.error)")
        #expect(!workspace.exists("ring/old recording.mp4"), "\(second.error)")
        for name in ["My wedding", "Wednesday"] { #expect(try workspace.data("ring/\(name).mp4") == clip) }
        #expect(try run("recordings", "adopt", "nowhere").status == 2)
    }

    /// A mark at the end of a clip, as `adopt` adds one, of any machine.
    private func marked(_ clip: Data, _ file: String, machine: String?) -> Data {
        func fingerprint(_ text: String) -> String {
            String(
                text.utf8.reduce(0xCBF2_9CE4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 }, radix: 16)
        }
        let folder = URL(filePath: workspace.path("ring")).resolvingSymlinksInPath().path
        let text =
            #"{"framehost":1,"recorder":"c/r","run":"a","number":1,"file":"\#(file)","folder":"\#(fingerprint(folder))","utc":5,"clock":6,"boot":"b","beside":[]\#(machine.map { #","machine":"\#($0)""# } ?? "")}"#
        let identifier: [UInt8] = [
            0x7C, 0x8C, 0x31, 0x8A, 0xED, 0x64, 0x40, 0x1D, 0xBF, 0x10, 0x07, 0xE5, 0xBA, 0x90, 0x50, 0x5A,
        ]
        let size = UInt32(24 + text.utf8.count)
        let head = stride(from: UInt32(24), through: 0, by: -8).map { UInt8(truncatingIfNeeded: size >> $0) }
        return clip + Data(head + Array("uuid".utf8) + identifier + Array(text.utf8))
    }

    /// A ring that was copied from another machine with folder and chain is not this one's, until somebody says so.
    @Test(.needs(.ffmpeg)) func aRingOfAnotherMachineIsNotOurs() throws {
        let made = try Tool.ffmpeg.run(
            "-v", "error", "-f", "lavfi", "-i", "testsrc=s=160x120:r=25:d=1", "-c:v", "libx264", workspace.path("w.mp4")
        )
        #expect(made.status == 0, "\(made.error)")
        let clip = try workspace.data("w.mp4")
        try FileManager.default.createDirectory(atPath: workspace.path("ring"), withIntermediateDirectories: true)
        try workspace.write("ring/theirs.mp4", marked(clip, "theirs.mp4", machine: "1"))
        // By the version before, which named no machine.
        try workspace.write("ring/ours.mp4", marked(clip, "ours.mp4", machine: nil))
        try workspace.write(
            "c.json",
            """
            { "stages": [ { "use": "test-source", "size": "160x120", "frames": 30 }, { "use": "x264-encoder" },
              { "id": "r", "use": "recorder", "path": "ring/%A.mp4", "keepMegabytes": 0.001 } ] }
            """)
        let first = try run("c.json")
        #expect(first.status == 0, "\(first.error)")
        #expect(
            first.error.contains(
                "1 file has a name of this recorder's pattern, but no mark that this recorder made it there on this machine"
            ), "\(first.error)")
        #expect(workspace.exists("ring/theirs.mp4") && !workspace.exists("ring/ours.mp4"))
        let adopted = try run("recordings", "adopt", "ring", "--yes")
        #expect(adopted.status == 0 && adopted.output.contains("adopted ring/theirs.mp4 ("), "\(adopted.output)")
        let second = try run("c.json")
        #expect(second.status == 0 && !workspace.exists("ring/theirs.mp4"), "\(second.error)")
    }

    /// Readers find nothing odd in a file that begins with a mark, and seek in it.
    @Test(.needs(.ffprobe)) func aMarkDisturbsNoReader() throws {
        let names = ["frag.mp4", "whole.mp4", "q.mov", "r.mkv"]
        let recorders = names.map {
            #"{ "id": "\#($0.prefix(1))", "use": "recorder", "from": "e", "path": "\#($0)", "finalize": "\#($0 == "frag.mp4" ? "never" : "always")" }"#
        }
        try workspace.write(
            "c.json",
            """
            { "stages": [ { "use": "test-source", "size": "160x120", "rate": 25, "frames": 100 },
              { "id": "e", "use": "x264-encoder", "preset": "ultrafast", "keyframeSeconds": 1 },
              \(recorders.joined(separator: ", ")) ] }
            """)
        let outcome = try run("c.json")
        #expect(outcome.status == 0, "\(outcome.error)")
        for name in names {
            let probe = try Tool.ffprobe.run(
                "-v", "warning", "-read_intervals", "2.5%+#1", "-show_entries", "packet=pts_time:format=duration",
                "-of",
                "csv=p=0", workspace.path(name))
            #expect(probe.error.isEmpty, "\(name): \(probe.error)")
            // From the keyframe before.
            #expect(probe.lines.first.flatMap { Double($0) } == 2, "\(name): \(probe.output)")
            #expect(probe.lines.last?.hasPrefix("4.0") == true, "\(name): \(probe.output)")
        }
    }

    /// A file of one chain is refused to the other at the command, not when the first picture comes.
    @Test func aChangeSeesTheFilesOfTheChainsBesideIt() throws {
        try workspace.write(
            "a.json",
            """
            { "stages": [ { "use": "test-source", "size": "160x120", "rate": 25, "live": true },
              { "use": "x264-encoder", "preset": "ultrafast", "keyframeSeconds": 0.2 },
              { "id": "seg", "use": "recorder", "path": "a-{n}.mp4", "segmentSeconds": 0.4, "finalize": "never" },
              { "id": "whole", "use": "recorder", "from": "x264-encoder", "path": "whole.mp4" } ] }
            """)
        try workspace.write(
            "b.json",
            """
            { "stages": [ { "id": "cam", "use": "test-source", "size": "160x120", "rate": 25, "live": true },
              { "id": "enc", "use": "x264-encoder", "preset": "ultrafast", "keyframeSeconds": 0.2 },
              { "use": "null-sink" } ] }
            """)
        let program = try framehost.start(["a.json", "b.json", "--commands"], folder: workspace.folder.path)
        try program.waitForFrames(10, of: "a")
        try program.waitForFrames(10, of: "b")
        for _ in 0..<400 where !workspace.exists("a-3.mp4") { program.listen(seconds: 0.05) }
        #expect(workspace.exists("a-3.mp4"))
        let before = try workspace.data("a-1.mp4")
        func attach(_ stage: String, _ tag: Int, at place: String = "enc") throws {
            try program.write(
                #"{ "chain": "b", "command": "attach", "at": "\#(place)", "tag": \#(tag), "stages": [ { "id": "r\#(tag)", \#(stage) } ] }"#
                    + "\n")
            try program.waitForOutput("\"tag\":\(tag)")
        }
        try attach(#""use": "null-sink", "dump": "whole.mp4""#, 3, at: "cam")
        for (tag, path) in ["whole.mp4", "a-1.mp4", "free.mp4"].enumerated() {
            try attach(#""use": "recorder", "path": "\#(path)", "overwrite": true"#, tag)
        }
        program.send(SIGTERM)
        let outcome = try program.finish()
        let answers = try outcome.lines.map { try JSON(parsing: $0) }
        func answer(_ tag: Int) -> JSON { answers.first { $0["tag"].int == tag } ?? JSON(nil) }
        for (tag, name) in ["whole.mp4", "a-1.mp4"].enumerated() {
            #expect(answer(tag)["ok"].bool == false, "\(answer(tag))")
            #expect(answer(tag)["error"].string?.contains("\(name)'") == true, "\(answer(tag))")
        }
        #expect(
            answer(3)["error"].string?.contains("whole.mp4', which 'whole' of the chain 'a' writes. Name another file.")
                == true, "\(answer(3))")
        #expect(answer(2)["ok"].bool == true, "\(answer(2))")
        #expect(try workspace.data("a-1.mp4") == before)
    }

    /// `overwrite` is meant for the picture before it.
    @Test func aSnapshotReplacesOnlyPictures() throws {
        try workspace.write("stats.jpg", #"{ "stages": [], "links": [], "pools": [], "ledger": {} }"#)
        try workspace.write("segment", "a spool's")
        try FileManager.default.createSymbolicLink(
            atPath: workspace.path("link.png"), withDestinationPath: "segment")
        try workspace.write(
            "c.json",
            #"{ "stages": [ { "id": "cam", "use": "test-source", "size": "64x64", "rate": 25, "live": true }, { "use": "null-sink" } ] }"#
        )
        let program = try framehost.start(["c.json", "--commands"], folder: workspace.folder.path)
        try program.waitForFrames(5)
        for (tag, path) in ["stats.jpg", "link.png", "new.jpg", "new.jpg"].enumerated() {
            try program.write(
                #"{ "stage": "cam", "command": "snapshot", "path": "\#(path)", "overwrite": true, "tag": \#(tag) }"#
                    + "\n")
            try program.waitForOutput("\"tag\":\(tag)")
        }
        program.send(SIGTERM)
        let answers = try program.finish().lines.map { try JSON(parsing: $0) }
        func answer(_ tag: Int) -> JSON { answers.first { $0["tag"].int == tag } ?? JSON(nil) }
        for tag in 0...1 {
            #expect(
                answer(tag)["error"].string?.hasSuffix(
                    "exists and is not a JPEG or PNG picture, so it is kept. Name another file, or remove this one.")
                    == true, "\(answer(tag))")
        }
        #expect(answer(2)["ok"].bool == true && answer(3)["ok"].bool == true)
        #expect(try workspace.data("segment") == Data("a spool's".utf8))
        #expect(try workspace.data("stats.jpg").first == UInt8(ascii: "{"))
    }

    @Test(.needs(.python)) func aStoreKeepsWhatNoBatchMade() throws {
        let outcome = try Tool.python.run(Repository.root.appending(path: "Tests/Engines/store_tests.py").path)
        #expect(outcome.status == 0, "\(outcome.error)")
    }
}
