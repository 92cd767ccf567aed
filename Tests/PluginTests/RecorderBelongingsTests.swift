// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Testing

@testable import FileSource
@testable import Recorder
@testable import Recordings

/// What a recorder does with files that are not its own to remove or replace.
@Suite struct RecorderBelongingsTests {
    private func frames(in folder: ScratchFolder, _ names: [String]? = nil) throws -> Int {
        try (names ?? RecorderStreams.names(in: folder)).reduce(0) {
            try $0 + RecorderStreams.packets(of: folder.file($1)).packets.count
        }
    }

    private func clip(_ path: String, frames: Int = 50) throws {
        let recorder = try StageDriver(
            recording: #"{ "path": "\#(path)", "finalize": "never" }"#, RecorderStreams.format())
        for unit in RecorderStreams.steady(frames, isKey: { $0 % 25 == 0 }) { try recorder.send(unit) }
        try recorder.finish()
    }

    /// A year holds many seconds: all segments of a run have one name, and none of them goes for the next.
    @Test func neverReplacesItsOwnSegments() throws {
        let folder = try ScratchFolder()
        try clip(folder.file("cam-2026.mp4"))
        // The driver's clock stands at 1 s; that year in this machine's time zone.
        let year = try FileNamePattern("%Y.mp4").path(at: 1_000_000_000, number: 0).dropLast(4)
        for name in ["cam-\(year).mp4", "cam-\(year)~3.mp4"] { try clip(folder.file(name), frames: 3) }
        let recorder = try StageDriver(
            recording: #"{ "path": "\#(folder.file("cam-%Y.mp4"))", "overwrite": true, "segmentSeconds": 1 }"#,
            RecorderStreams.format())
        for unit in RecorderStreams.steady(150, isKey: { $0 % 25 == 0 }) { try recorder.send(unit) }
        try recorder.finish()
        // Of an earlier run two were replaced; the other year's is as it was.
        let names = (1...6).map { $0 == 1 ? "cam-\(year).mp4" : "cam-\(year)~\($0).mp4" }
        #expect(RecorderStreams.names(in: folder) == (names + ["cam-2026.mp4"]).sorted())
        #expect(try frames(in: folder, names) == 150)
        #expect(try frames(in: folder, ["cam-2026.mp4"]) == 50)
    }

    @Test func leavesTheFileThatIsPlayed() throws {
        let folder = try ScratchFolder()
        let source = folder.file("cam-0001.mp4")
        try clip(source)
        let before = try Data(contentsOf: URL(fileURLWithPath: source))
        var file: MediaFile? = try MediaFile(path: source)
        for options in [#""overwrite": true"#, #""keepMegabytes": 0.001"#, #""overwrite": true, "keepSeconds": 0.1"#] {
            let recorder = try StageDriver(
                recording:
                    #"{ "path": "\#(folder.file("cam-{nnnn}.mp4"))", "segmentSeconds": 1, "finalize": "never", \#(options) }"#,
                RecorderStreams.format(), isLive: false)
            for unit in RecorderStreams.steady(75, isKey: { $0 % 25 == 0 }) { try recorder.send(unit) }
            try recorder.finish()
            #expect(try Data(contentsOf: URL(fileURLWithPath: source)) == before, "\(options)")
        }
        #expect(file != nil)
        file = nil
        let last = try StageDriver(
            recording: #"{ "path": "\#(folder.file("cam-{nnnn}.mp4"))", "overwrite": true, "finalize": "never" }"#,
            RecorderStreams.format())
        for unit in RecorderStreams.steady(3, isKey: { $0 == 0 }) { try last.send(unit) }
        try last.finish()
        #expect(try frames(in: folder, ["cam-0001.mp4"]) == 3)
    }

    /// One name, written by the user: what plays behind it is refused with the reason.
    @Test(arguments: ["a.mp4", "link.mp4", "hard.mp4"]) func saysThatItsFileIsPlayed(name: String) throws {
        let folder = try ScratchFolder()
        try clip(folder.file("a.mp4"))
        symlink("a.mp4", folder.file("link.mp4"))
        link(folder.file("a.mp4"), folder.file("hard.mp4"))
        let file = try MediaFile(path: folder.file("a.mp4"))
        let recorder = try StageDriver(
            recording: #"{ "path": "\#(folder.file(name))", "overwrite": true }"#, RecorderStreams.format())
        let error = #expect(throws: FrameHostError.self) {
            try recorder.send(RecorderStreams.steady(1) { _ in true }[0])
        }
        #expect(
            error?.description.contains("' is being read by 'file-source' of this run. Name another file.") == true,
            "\(String(describing: error))")
        #expect(try frames(in: folder, ["a.mp4"]) == 50 && file.trackCount == 1)
        try recorder.stop()
    }

    @Test func followsALinkToTheFileItReplaces() throws {
        let folder = try ScratchFolder()
        try clip(folder.file("real.mp4"))
        chmod(folder.file("real.mp4"), 0o640)
        symlink("real.mp4", folder.file("link.mp4"))
        symlink("later.mp4", folder.file("empty.mp4"))
        for name in ["link.mp4", "empty.mp4"] {
            let recorder = try StageDriver(
                recording: #"{ "path": "\#(folder.file(name))", "overwrite": true }"#, RecorderStreams.format())
            for unit in RecorderStreams.steady(30, isKey: { $0 == 0 }) { try recorder.send(unit) }
            try recorder.finish()
            #expect(recorder.takeEvents().last?.name == "recording-finalised")
        }
        #expect(RecorderStreams.names(in: folder) == ["empty.mp4", "later.mp4", "link.mp4", "real.mp4"])
        #expect(try frames(in: folder) == 120)
        var status = stat()
        #expect(stat(folder.file("real.mp4"), &status) == 0 && status.st_mode & 0o777 == 0o640)
        #expect(lstat(folder.file("link.mp4"), &status) == 0 && status.st_mode & S_IFMT == S_IFLNK)
    }

    /// Relative to the current folder `cam-0002.mp4` and `./cam-0002.mp4` are one file.
    @Test func countsTheFileBeingWrittenOnce() async {
        await #expect(processExitsWith: .success) {
            let folder = try ScratchFolder()
            #expect(chdir(folder.path) == 0)
            for number in 1...3 {
                try Data(count: 20_000).write(to: URL(fileURLWithPath: folder.file("cam-000\(number).mp4")))
            }
            let clock = ManualClock(at: 1_000_000_000)
            let recorder = try StageDriver(
                Recorder.self, options: #"{ "path": "cam-{nnnn}.mp4", "keepMegabytes": 0.1, "finalize": "never" }"#,
                input: .encoded(RecorderStreams.format()), clock: clock)
            for (number, unit) in RecorderStreams.steady(60, bytes: 600, isKey: { $0 % 25 == 0 }).enumerated() {
                if number == 55 { clock.advance(to: 12_000_000_000) }
                try recorder.send(unit)
            }
            // 60 kB and 31 kB: nothing has to go.
            #expect(RecorderStreams.names(in: folder).count == 4)
            try recorder.finish()
        }
    }

    @Test func cutsOnlyItsOwnFileAway() throws {
        let folder = try ScratchFolder()
        let files = RunFiles()
        let file = try OutputFile.create(folder.file("a.mp4"), overwrite: false, isNamed: false, files)
        rename(folder.file("a.mp4"), folder.file("moved.mp4"))
        try Data("somebody's".utf8).write(to: URL(fileURLWithPath: folder.file("a.mp4")))
        file.cut(to: 0)
        #expect(RecorderStreams.names(in: folder) == ["a.mp4", "moved.mp4"])
        #expect(try Data(contentsOf: URL(fileURLWithPath: folder.file("a.mp4"))) == Data("somebody's".utf8))
    }

    /// The finished file was moved away and another has its name when the job begins.
    @Test func finalisesOnlyWhatItRecorded() throws {
        let folder = try ScratchFolder()
        let recorder = try StageDriver(recording: #"{ "path": "\#(folder.file("a.mp4"))" }"#, RecorderStreams.format())
        for unit in RecorderStreams.steady(30, isKey: { $0 == 0 }) { try recorder.send(unit) }
        try recorder.drain()
        rename(folder.file("a.mp4"), folder.file("moved.mp4"))
        try clip(folder.file("a.mp4"), frames: 7)
        try recorder.stop()
        recorder.finishJobs()
        #expect(!recorder.takeEvents().contains { $0.name == "recording-finalised" })
        #expect(try RecorderFinaliseTests.boxes(folder.file("a.mp4")).contains("moof"))
        #expect(RecorderStreams.names(in: folder) == ["a.mp4", "moved.mp4"])
    }

    /// A time of the year 2286, a number near Int.max, a size of exabytes: neighbours like any other.
    @Test(arguments: [
        "cam-9223372036854775807.mp4", "cam-999999999999999999.mp4", "cam-1000000000000.mp4",
        "cam-92233720368547758070.mp4", "cam-0001.mp4",
    ]) func livesBesideOddNeighbours(name: String) throws {
        let folder = try ScratchFolder()
        try Data(count: 10).write(to: URL(fileURLWithPath: folder.file(name)))
        var times = [timespec(tv_sec: 9_999_999_999, tv_nsec: 0), timespec(tv_sec: 9_999_999_999, tv_nsec: 0)]
        #expect(utimensat(AT_FDCWD, folder.file(name), &times, 0) == 0)
        for options in [#""keepSeconds": 0.1"#, #""keepMegabytes": 100"#, #""overwrite": true"#] {
            let recorder = try StageDriver(
                recording:
                    #"{ "path": "\#(folder.file("cam-{nnnn}.mp4"))", "segmentSeconds": 1, "finalize": "never", \#(options) }"#,
                RecorderStreams.format(), isLive: true)
            for unit in RecorderStreams.steady(75, isKey: { $0 % 25 == 0 }) { try recorder.send(unit) }
            try recorder.finish()
            #expect(
                recorder.takeEvents().last { $0.name == "recording-did-stop" }?.details["files"]?.asInt == 3,
                "\(options)")
        }
    }

    @Test func keepsWhatIsWriteProtected() throws {
        let folder = try ScratchFolder()
        let earlier = try StageDriver(
            recording: #"{ "path": "\#(folder.file("cam-{nnnn}.mp4"))", "segmentSeconds": 1, "finalize": "never" }"#,
            RecorderStreams.format())
        for unit in RecorderStreams.steady(75, bytes: 800, isKey: { $0 % 25 == 0 }) { try earlier.send(unit) }
        try earlier.finish()
        chmod(folder.file("cam-0002.mp4"), 0o444)
        let recorder = try StageDriver(
            recording: #"{ "path": "\#(folder.file("cam-{nnnn}.mp4"))", "keepMegabytes": 0.01, "finalize": "never" }"#,
            RecorderStreams.format())
        for unit in RecorderStreams.steady(30, isKey: { $0 == 0 }) { try recorder.send(unit) }
        try recorder.finish()
        #expect(RecorderStreams.names(in: folder) == ["cam-0002.mp4", "cam-0004.mp4"])
    }

    /// People read a failure once; programs have the event beside it.
    @Test func failsInOneLine() throws {
        let folder = try ScratchFolder()
        let recorder = try StageDriver(recording: #"{ "path": "\#(folder.file("a.mp4"))" }"#, RecorderStreams.format())
        let units = RecorderStreams.steady(60) { $0 % 25 == 0 }
        try recorder.send(units[0])
        try FileManager.default.removeItem(atPath: folder.path)
        #expect(throws: FrameHostError.self) { for unit in units.dropFirst() { try recorder.send(unit) } }
        #expect(recorder.takeEvents().last.map { [$0.name, $0.level.rawValue] } == ["recording-did-fail", "debug"])
        try recorder.stop()
    }

    @Test func tellsOfALackOfRoomOnce() {
        let report = RoomReport()
        #expect(
            [true, true, false, true, true].map { report.isFirst(lacks: $0) } == [true, false, false, true, false])
    }
}
