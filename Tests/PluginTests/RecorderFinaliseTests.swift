// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Testing

@testable import Recorder

@Suite struct RecorderFinaliseTests {
    private static var patient: Finaliser.Watch { Finaliser.Watch(isCancelled: { false }, report: { _ in }) }

    /// The order of the boxes of a file, `moof` once.
    static func boxes(_ path: String) throws -> [String] {
        let data = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
        var names: [String] = []
        var offset = 0
        while offset + 8 <= data.count {
            var size = data[offset..<(offset + 4)].reduce(0) { $0 << 8 | Int($1) }
            if size == 1 { size = data[(offset + 8)..<(offset + 16)].reduce(0) { $0 << 8 | Int($1) } }
            let name = String(decoding: data[(offset + 4)..<(offset + 8)], as: UTF8.self)
            if !names.contains(name) { names.append(name) }
            offset += max(size, 8)
        }
        return names
    }

    @Test(arguments: ["mp4", "mov"], [0.0, 5.0]) func keepsEverything(ending: String, start: Double) throws {
        let folder = try ScratchFolder()
        let stream = try RecorderSegmentTests.encoded(frames: 100)
        var format = stream.format
        format.video?.orientation = .right
        format.video?.sampleAspectRatio = Rational(4, 3)
        for name in ["never", "always"] {
            let recorder = try StageDriver(
                recording: #"{ "path": "\#(folder.file("\(name).\(ending)"))", "finalize": "\#(name)" }"#, format)
            for unit in stream.units {
                let made = try recorder.makeAccessUnit(
                    unit.bytes, pts: unit.pts + MediaTime(seconds: start), dts: unit.dts + MediaTime(seconds: start),
                    isKeyframe: unit.isKeyframe)
                made.duration = unit.duration
                made.orientation = .right
                try recorder.send(made)
            }
            try recorder.finish()
            let last = recorder.takeEvents().last!
            #expect(last.name == (name == "never" ? "recording-did-stop" : "recording-finalised"), "\(last.text)")
        }
        let (fragmented, whole) = (folder.file("never.\(ending)"), folder.file("always.\(ending)"))
        #expect(try Self.boxes(fragmented).contains("moof"))
        let order = try Self.boxes(whole)
        #expect(!order.contains("moof") && order.firstIndex(of: "moov")! < order.firstIndex(of: "mdat")!, "\(order)")
        #expect(try RecorderStreams.packets(of: whole).packets == RecorderStreams.packets(of: fragmented).packets)
        #expect(try RecorderStreams.packets(of: whole).packets.first?.pts == Int64(start * 12_800))
        #expect(RecorderStreams.names(in: folder) == ["always.\(ending)", "never.\(ending)"])
        let read = try ClipMaker.read(whole)
        #expect(read.format.orientation == .right && read.format.sampleAspectRatio == Rational(4, 3))
        #expect(read.pictures == (try ClipMaker.read(fragmented)).pictures)
    }

    /// Uneven times with B-frames, a long gap, a last picture that is shown long: each frame's time and the whole
    /// length stay.
    @Test func keepsUnevenDurations() throws {
        let folder = try ScratchFolder()
        var format = RecorderStreams.video
        format.frameRate = Rational(0)
        format.timeBase = TimeBase(1, 90_000)
        let ticks = (0..<60).map { (number: Int64) -> Int64 in
            number * 3003 + number % 4 * 500 + (number >= 20 ? 200_000 : 0)
        }
        let pictures = ticks.indices.map { index in
            let end = index + 1 < ticks.count ? ticks[index + 1] : ticks[index] + 77_777
            return ClipPicture(
                pts: format.timeBase.time(ofTicks: ticks[index]),
                duration: format.timeBase.time(ofTicks: end - ticks[index]))
        }
        try ClipMaker.record(to: folder.file("a.mp4"), format, pictures, encoder: #"{ "bframes": 3 }"#)
        #expect(try !Self.boxes(folder.file("a.mp4")).contains("moof"))
        let file = try RecordingReader(folder.file("a.mp4"))
        #expect(file.stream(0).pointee.duration == ticks.last! + 77_777)
        #expect(try ClipMaker.read(folder.file("a.mp4")).pictures.map(\.pts) == pictures.map(\.pts))
    }

    private func fragmented(_ path: String, frames: Int = 60) throws {
        let recorder = try StageDriver(
            recording: #"{ "path": "\#(path)", "finalize": "never" }"#, RecorderStreams.format())
        for unit in RecorderStreams.steady(frames, isKey: { $0 % 25 == 0 }) { try recorder.send(unit) }
        try recorder.finish()
    }

    private func finaliser(_ path: String, room: Int = 100_000) -> Finaliser {
        // As `fragmented` makes them: 60 pictures of 512 ticks.
        var end = TrackEnd()
        for number in 0..<Int64(60) { end.add(pts: number * 512, dts: number * 512, duration: 512) }
        return Finaliser(path: path, container: .mp4, when: .always, indexBytes: room, ends: [end])
    }

    /// Where the index does not fit into the room left for it, everything is moved back.
    @Test func findsRoomForALongerIndex() throws {
        let folder = try ScratchFolder()
        try fragmented(folder.file("a.mp4"))
        let before = try RecorderStreams.packets(of: folder.file("a.mp4")).packets.map(\.bytes)
        try finaliser(folder.file("a.mp4"), room: 300).run(StageContext(stageID: "rec"), Self.patient)
        let order = try Self.boxes(folder.file("a.mp4"))
        #expect(order.firstIndex(of: "moov")! < order.firstIndex(of: "mdat")!)
        let after = try RecorderStreams.packets(of: folder.file("a.mp4")).packets
        #expect(after.map(\.bytes) == before)
        #expect(after.map(\.pts) == (0..<60).map { $0 * 512 } && after.allSatisfy { $0.duration == 512 })
    }

    @Test func keepsRightsAndTimeOfTheFile() throws {
        let folder = try ScratchFolder()
        let path = folder.file("a.mp4")
        try fragmented(path)
        chmod(path, 0o640)
        try FileManager.default.setAttributes(
            [.modificationDate: Date(timeIntervalSince1970: 1_000_000)], ofItemAtPath: path)
        try finaliser(path).run(StageContext(stageID: "rec"), Self.patient)
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        #expect(attributes[.posixPermissions] as? Int == 0o640)
        #expect(attributes[.modificationDate] as? Date == Date(timeIntervalSince1970: 1_000_000))
    }

    /// Asked to give up at any of its steps, it leaves the original and nothing else.
    @Test func givesUpCleanly() throws {
        let folder = try ScratchFolder()
        try fragmented(folder.file("a.mp4"))
        let before = try Data(contentsOf: URL(fileURLWithPath: folder.file("a.mp4")))
        var steps = 0
        try finaliser(folder.file("a.mp4")).run(
            StageContext(stageID: "rec"),
            Finaliser.Watch(
                isCancelled: {
                    steps += 1
                    return false
                }, report: { #expect((0...1).contains($0)) }))
        #expect(steps == 120)
        try before.write(to: URL(fileURLWithPath: folder.file("a.mp4")))
        for last in stride(from: 1, through: 120, by: 7) {
            var left = last
            let error = #expect(throws: FrameHostError.self) {
                try finaliser(folder.file("a.mp4")).run(
                    StageContext(stageID: "rec"),
                    Finaliser.Watch(
                        isCancelled: {
                            left -= 1
                            return left <= 0
                        }, report: { _ in }))
            }
            #expect(
                error?.description
                    == "not finished, because the run was stopped. The file stays in fragments and can be played.")
            #expect(RecorderStreams.names(in: folder) == ["a.mp4"])
            #expect(try Data(contentsOf: URL(fileURLWithPath: folder.file("a.mp4"))) == before)
        }
    }

    /// A file that is damaged, or changes while it is read, is left alone.
    @Test func leavesWhatItCannotRead() throws {
        let folder = try ScratchFolder()
        try Data("no film".utf8).write(to: URL(fileURLWithPath: folder.file("a.mp4")))
        let error = #expect(throws: FrameHostError.self) {
            try finaliser(folder.file("a.mp4")).run(StageContext(stageID: "rec"), Self.patient)
        }
        #expect(
            error?.description
                == "the recording cannot be read back: Invalid data found when processing input. Check the file with 'ffprobe', and the disk that it is on."
        )
        #expect(RecorderStreams.names(in: folder) == ["a.mp4"])
        // One that is gone is nobody's concern.
        try finaliser(folder.file("b.mp4")).run(StageContext(stageID: "rec"), Self.patient)
    }

    @Test func seesADifference() throws {
        let folder = try ScratchFolder()
        try fragmented(folder.file("a.mp4"))
        try fragmented(folder.file("b.mp4"), frames: 59)
        let a = try RecordingReader.summary(of: folder.file("a.mp4")) { _ in }
        #expect(a == (try RecordingReader.summary(of: folder.file("a.mp4")) { _ in }))
        let b = try RecordingReader.summary(of: folder.file("b.mp4")) { _ in }
        #expect(b.difference(from: a) == "track 1: 59 packets instead of 60")
        // One byte of one picture.
        var bytes = try Data(contentsOf: URL(fileURLWithPath: folder.file("a.mp4")))
        bytes[bytes.lastIndex(of: 0xAB)!] = 0xAC
        try bytes.write(to: URL(fileURLWithPath: folder.file("c.mp4")))
        let c = try RecordingReader.summary(of: folder.file("c.mp4")) { _ in }
        #expect(c.difference(from: a) == "track 1: other packet times or bytes")
    }

    @Test func removesWhatAKilledRunLeft() throws {
        let folder = try ScratchFolder()
        for name in [
            ".a-0001.mp4.finalising", ".a-x.mp4.finalising", ".b.mp4.finalising", ".a.mp4.finalising", "a-0001.mp4",
            ".a-0003.mp4.finalising", ".a-0004.mp4.finalising", ".a-0005.mp4.finalising",
        ] {
            let original = Finaliser.original(ofTemporary: name) ?? name
            // One was copied from another folder, one from another machine.
            let mark = RecordingMark(
                recorder: "r", run: 1, number: 1, file: original,
                folder: name.contains("a-0004") ? 1 : RecordingMark.fingerprint(ofFolder: folder.path),
                unixMilliseconds: 0,
                clock: 0, boot: 0, machine: name.contains("a-0005") ? 1 : RecordingMark.thisMachine)
            FileManager.default.createFile(
                atPath: folder.file(name), contents: Data(RecordingForm.mp4.head(mark) + Array("x".utf8)))
        }
        // An empty one, which may be anybody's, and one that no recorder has made.
        FileManager.default.createFile(atPath: folder.file(".a-0002.mp4.finalising"), contents: nil)
        try Data("somebody's".utf8).write(to: URL(fileURLWithPath: folder.file(".a-0003.mp4.finalising")))
        _ = try StageDriver(recording: #"{ "path": "\#(folder.file("a.mp4"))" }"#, RecorderStreams.format())
        #expect(
            RecorderStreams.names(in: folder) == [
                ".a-0002.mp4.finalising", ".a-0003.mp4.finalising", ".a-0004.mp4.finalising",
                ".a-0005.mp4.finalising", ".a-x.mp4.finalising", ".b.mp4.finalising", "a-0001.mp4",
            ])
    }

    /// Files that only look like a recorder's temporary ones are nobody's leftovers.
    @Test func leavesEmptyFilesOfOthers() throws {
        let folder = try ScratchFolder()
        let names = [".a.mp4.4711.new", ".a.mp4.finalising", ".a-0001.mp4.4711.new", ".a.vtt.4711.new"]
        for name in names { FileManager.default.createFile(atPath: folder.file(name), contents: nil) }
        let recorder = try StageDriver(
            recording: #"{ "path": "\#(folder.file("a.mp4"))", "vtt": true, "overwrite": true }"#,
            RecorderStreams.format())
        for unit in RecorderStreams.steady(30, isKey: { $0 == 0 }) { try recorder.send(unit) }
        try recorder.finish()
        #expect(RecorderStreams.names(in: folder) == (names + ["a.mp4", "a.vtt"]).sorted())
        let said = recorder.takeEvents().first { $0.name == "job-failed" }
        #expect(
            said?.text.contains(
                "/.a.mp4.finalising' is in the way, and no mark in it says that a recorder made it: remove it") == true,
            "\(String(describing: said?.text))")
    }

    @Test func namesItsTemporaryFile() {
        #expect(Finaliser.temporary(for: "/x/a.mp4") == "/x/.a.mp4.finalising")
        #expect(Finaliser.temporary(for: "a.mp4") == ".a.mp4.finalising")
        #expect(Finaliser.original(ofTemporary: ".a.mp4.finalising") == "a.mp4")
        #expect(Finaliser.original(ofTemporary: "a.mp4.finalising") == nil)
        #expect(Finaliser.original(ofTemporary: ".finalising") == nil)
    }
}
