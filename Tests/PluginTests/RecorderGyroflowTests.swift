// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Testing

@testable import Recorder

/// The Gyroflow files that a recorder writes beside its recordings.
@Suite struct RecorderGyroflowTests {
    private let folder: ScratchFolder
    init() throws { folder = try ScratchFolder() }

    /// A Gyroflow file as its description has it.
    struct Log {
        var fields: [String: String] = [:]
        var columns: [String] = []
        var rows: [[Double]] = []
        /// Bytes before the first row.
        var headerBytes = 0

        init(_ path: String) throws {
            let text = try String(contentsOfFile: path, encoding: .utf8)
            try #require(text.hasPrefix("GYROFLOW IMU LOG\n") && text.hasSuffix("\n"))
            for line in text.split(separator: "\n") {
                let cells = line.split(separator: ",").map(String.init)
                if !columns.isEmpty {
                    rows.append(cells.map { Double($0) ?? .nan })
                    continue
                }
                headerBytes += line.utf8.count + 1
                if cells[0] == "t" { columns = cells } else if cells.count == 2 { fields[cells[0]] = cells[1] }
            }
        }

        private func scale(_ name: String) -> Double { fields[name].flatMap(Double.init) ?? .nan }

        /// Seconds, rad/s, m/s².
        var samples: [(seconds: Double, rate: [Double], acceleration: [Double])] {
            rows.map { row in
                (
                    row[0] * scale("tscale"), row[1...3].map { $0 * scale("gscale") },
                    row.dropFirst(4).map { $0 * scale("ascale") * 9.80665 }
                )
            }
        }
    }

    private func expect(_ log: Log, _ samples: [MotionSample], begin: Double = 0, _ what: String = "") {
        let isEqual =
            log.rows.count == samples.count
            && zip(log.samples, samples).allSatisfy { found, sample in
                abs(found.seconds - (sample.time.seconds - begin)) < 1e-6
                    && (0..<3).allSatisfy { abs(found.rate[$0] - Double(sample.rotationRate[$0])) < 1e-6 }
                    && (0..<3).allSatisfy { abs(found.acceleration[$0] - Double(sample.acceleration[$0])) < 1e-4 }
            }
        #expect(isEqual, "\(log.rows.count) rows for \(samples.count) samples \(what)")
    }

    private func record(
        _ options: String, path: String, _ samples: [MotionSample], seconds: Int = 2,
        contents: MotionSample.Contents = RecorderMotionTests.all, start: Double = 0
    ) throws -> [Event] {
        let recorder = try RecorderMotionTests.driver(
            #"{ "path": "\#(folder.file(path))", "gcsv": true\#(options) }"#,
            [
                .encoded(RecorderStreams.format()), .motion(MotionFormat(contents: contents, sampleRate: 200)),
            ])
        try RecorderMotionTests.send(
            RecorderStreams.steady(25 * seconds, from: start) { $0 % 25 == 0 }, samples, to: recorder)
        try recorder.finish()
        return recorder.takeEvents()
    }

    @Test(arguments: ["mp4", "mov", "mkv"]) func writesTheSamplesOfThePictures(ending: String) throws {
        let samples = RecorderMotionTests.samples(from: 4, to: 9)
        let events = try record("", path: "a.b.\(ending)", samples, start: 5)
        #expect(!events.contains { $0.level >= .warning }, "\(events.map(\.text))")
        #expect(RecorderStreams.names(in: folder) == ["a.b.gcsv", "a.b.\(ending)"])
        let log = try Log(folder.file("a.b.gcsv"))
        #expect(log.fields["version"] == "1.3" && log.fields["id"] == "framehost" && log.fields["orientation"] == "yxz")
        #expect(log.columns == ["t", "gx", "gy", "gz", "ax", "ay", "az"] && log.headerBytes < 500)
        // 0 is the first picture, whatever time the file gives it.
        expect(log, samples.filter { (5..<7).contains($0.time.seconds) }, begin: 5)
        let tracks = try RecorderStreams.packets(of: folder.file("a.b.\(ending)")).ticks.count
        #expect(tracks == (ending == "mkv" ? 1 : 2))
    }

    @Test func givesEachSegmentItsFile() throws {
        let samples = RecorderMotionTests.samples(from: 0, to: 6)
        _ = try record(#", "segmentSeconds": 2"#, path: "a.mp4", samples, seconds: 6)
        #expect(
            RecorderStreams.names(in: folder) == (1...3).flatMap { ["a-000\($0).gcsv", "a-000\($0).mp4"] })
        for number in 0..<3 {
            let begin = Double(number) * 2
            let wanted = samples.filter { $0.time.seconds >= begin && $0.time.seconds < begin + 2 }
            expect(try Log(folder.file("a-000\(number + 1).gcsv")), wanted, begin: begin, "file \(number)")
        }
    }

    /// A sensor that gives its values in turn, or only one of them.
    @Test func givesEachRowTheLatestAcceleration() throws {
        var samples = RecorderMotionTests.samples(from: 0, to: 1)
        for index in samples.indices { samples[index].contents = index % 2 == 0 ? .rotationRate : .acceleration }
        _ = try record("", path: "a.mp4", samples, seconds: 1)
        let log = try Log(folder.file("a.gcsv"))
        #expect(log.rows.count == 100)
        #expect(log.rows[0].count == 4)
        #expect(log.rows.dropFirst().allSatisfy { $0.count == 7 })
        #expect(log.rows[1][6] == Double(samples[1].acceleration.z))
        _ = try record(
            "", path: "b.mp4", RecorderMotionTests.samples(from: 0, to: 1, .rotationRate), seconds: 1,
            contents: .rotationRate)
        let only = try Log(folder.file("b.gcsv"))
        #expect(only.columns == ["t", "gx", "gy", "gz"] && only.rows.allSatisfy { $0.count == 4 })
    }

    /// What was written is there while the recording goes on.
    @Test func isWrittenWhileRecording() throws {
        let recorder = try RecorderMotionTests.driver(#"{ "path": "\#(folder.file("a.mp4"))", "gcsv": true }"#)
        try RecorderMotionTests.send(
            RecorderStreams.steady(25) { $0 == 0 }, RecorderMotionTests.samples(from: 0, to: 1), to: recorder)
        #expect(try Log(folder.file("a.gcsv")).rows.count == 192)
        try recorder.finish()
        #expect(try Log(folder.file("a.gcsv")).rows.count == 200)
    }

    // MARK: Names

    private func put(_ name: String, _ text: String = "mine\n") throws {
        try text.write(toFile: folder.file(name), atomically: false, encoding: .utf8)
    }

    private func text(_ name: String) -> String? { try? String(contentsOfFile: folder.file(name), encoding: .utf8) }

    @Test func takesNoNameOfAnotherFile() throws {
        let samples = RecorderMotionTests.samples(from: 0, to: 1)
        try put("a.gcsv")
        let error = #expect(throws: FrameHostError.self) { _ = try record("", path: "a.mp4", samples) }
        #expect(
            error?.description
                == "'\(folder.file("a.gcsv"))' exists already. Move it away, or record under another name."
        )
        #expect(RecorderStreams.names(in: folder) == ["a.gcsv"] && text("a.gcsv") == "mine\n")
        // Of a pattern, the name is skipped.
        try put("b-0001.gcsv")
        _ = try record("", path: "b-{nnnn}.mp4", samples, seconds: 1)
        #expect(RecorderStreams.names(in: folder) == ["a.gcsv", "b-0001.gcsv", "b-0002.gcsv", "b-0002.mp4"])
        #expect(text("b-0001.gcsv") == "mine\n")
    }

    @Test func replacesWhereAsked() throws {
        let samples = RecorderMotionTests.samples(from: 0, to: 1)
        _ = try record(#", "overwrite": true"#, path: "a.mp4", samples, seconds: 1)
        #expect(try Log(folder.file("a.gcsv")).rows.count == 200)
        _ = try record(#", "overwrite": true"#, path: "a.mp4", Array(samples.prefix(100)), seconds: 1)
        #expect(try Log(folder.file("a.gcsv")).rows.count == 100)
        #expect(RecorderStreams.names(in: folder) == ["a.gcsv", "a.mp4"])
    }

    /// Neither the file nor the recording beside it is touched where the file must not be replaced.
    @Test func leavesWhatItMustNotReplace() throws {
        let samples = RecorderMotionTests.samples(from: 0, to: 1)
        try put("a.gcsv")
        try put("a.mp4", "old recording")
        chmod(folder.file("a.gcsv"), 0o444)
        let error = #expect(throws: FrameHostError.self) {
            _ = try record(#", "overwrite": true"#, path: "a.mp4", samples)
        }
        #expect(error?.description.contains("a.gcsv' ") == true, "\(error?.description ?? "")")
        #expect(text("a.gcsv") == "mine\n" && text("a.mp4") == "old recording")
        // One that somebody else has written.
        chmod(folder.file("a.gcsv"), 0o644)
        let other = #expect(throws: FrameHostError.self) {
            _ = try record(#", "overwrite": true"#, path: "a.mp4", samples)
        }
        #expect(
            other?.description.contains("a.gcsv' was not made by a recorder, so it is not replaced.") == true,
            "\(other?.description ?? "")")
        #expect(text("a.gcsv") == "mine\n" && text("a.mp4") == "old recording")
        // A link, whose file is somebody's.
        try put("other")
        symlink("other", folder.file("b-0001.gcsv"))
        _ = try record(#", "overwrite": true"#, path: "b-{nnnn}.mp4", samples, seconds: 1)
        #expect(text("other") == "mine\n")
        #expect(RecorderStreams.names(in: folder).contains("b-0002.gcsv"))
        #expect(!RecorderStreams.names(in: folder).contains("b-0001.mp4"))
    }

    @Test func removesItWithItsRecording() throws {
        try put("a-01.gcsv")
        _ = try record(
            #", "segmentSeconds": 1, "keepMegabytes": 0.05, "finalize": "never""#, path: "a-{nn}.mp4",
            RecorderMotionTests.samples(from: 0, to: 8), seconds: 8)
        let names = RecorderStreams.names(in: folder)
        let recordings = names.filter { $0.hasSuffix(".mp4") }
        // 12 kB of pictures and motion, 10 kB of lines: two fit.
        #expect(recordings.count < 4 && recordings.last == "a-09.mp4", "\(names)")
        #expect(
            names == (["a-01.gcsv"] + recordings.flatMap { [$0.replacingOccurrences(of: "mp4", with: "gcsv"), $0] }))
        #expect(text("a-01.gcsv") == "mine\n")
        // Another program's file beside an old recording stays.
        try put("a-09.gcsv")
        _ = try record(
            #", "segmentSeconds": 1, "keepMegabytes": 0.05, "finalize": "never""#, path: "a-{nn}.mp4",
            RecorderMotionTests.samples(from: 0, to: 8), seconds: 8)
        #expect(!RecorderStreams.names(in: folder).contains("a-09.mp4"))
        #expect(text("a-09.gcsv") == "mine\n")
    }

    /// What only has the name of a file that was to replace another may be anybody's.
    @Test func leavesWhatHasTheNameOfATemporaryFile() throws {
        let names = [".a.gcsv.4711.new", ".b-0007.gcsv.4711.new", ".c.gcsv.4711.new"]
        for name in names { try put(name, "") }
        for name in ["b-0007.gcsv", ".b-0008.gcsv.4711.new"] { try put(name) }
        let samples = RecorderMotionTests.samples(from: 0, to: 1)
        for path in ["a.mp4", "b-{nnnn}.mp4"] { _ = try record("", path: path, samples, seconds: 1) }
        #expect(
            RecorderStreams.names(in: folder)
                == (names + [
                    ".b-0008.gcsv.4711.new", "a.gcsv", "a.mp4", "b-0001.gcsv", "b-0001.mp4", "b-0007.gcsv",
                ]).sorted())
    }

    /// A recording of which nothing is left leaves no lines either.
    @Test func goesWithARecordingThatFails() throws {
        let recorder = try RecorderMotionTests.driver(#"{ "path": "\#(folder.file("a.mp4"))", "gcsv": true }"#)
        try RecorderMotionTests.send(
            RecorderStreams.steady(10) { $0 == 0 }, RecorderMotionTests.samples(from: 0, to: 0.4), to: recorder)
        #expect(RecorderStreams.names(in: folder) == ["a.gcsv", "a.mp4"])
        try FileManager.default.removeItem(atPath: folder.file("a.mp4"))
        #expect(throws: FrameHostError.self) { try recorder.finish() }
        #expect(RecorderStreams.names(in: folder).isEmpty)
    }

    /// A disk that takes no more lines ends the file, not the recording.
    @Test func endsWithAWholeLine() throws {
        let path = folder.file("a.gcsv")
        let held = try RunFiles().create(path, as: "recorder")
        let log = GyroflowLog(held, RecorderMotionTests.all, begin: .zero)
        let samples = RecorderMotionTests.samples(from: 0, to: 1)
        for sample in samples.prefix(50) { log.add(sample) }
        log.flush()
        #expect(try Log(path).rows.count == 50)
        log.finish(syncs: false)
        for sample in samples.suffix(50) { log.add(sample) }
        log.flush()
        #expect(log.failure == EBADF)
        #expect(try Log(path).rows.count == 50)
    }

    @Test func namesItAfterTheRecording() {
        #expect(Sidecar.gyroflow.path(beside: "/a.b/c.d.mp4") == "/a.b/c.d.gcsv")
        #expect(Sidecar.gyroflow.path(beside: "a~2.MOV") == "a~2.gcsv")
        #expect(Sidecar.gyroflow.path(beside: "/a.b/c") == "/a.b/c.gcsv")
    }
}
