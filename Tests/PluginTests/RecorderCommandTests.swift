// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Testing

@testable import Recorder
@testable import Recordings

@Suite struct RecorderCommandTests {
    private let folder: ScratchFolder
    init() throws { folder = try ScratchFolder() }

    private func recorder(_ more: String = "", _ format: EncodedFormat = RecorderStreams.format()) throws
        -> StageDriver<Recorder>
    {
        try StageDriver(
            recording: #"{ "path": "\#(folder.file("a.mp4"))", "record": "onCommand", "finalize": "never"\#(more) }"#,
            format)
    }

    private func numbers(_ name: String) throws -> [Int] {
        try RecorderStreams.packets(of: folder.file(name)).packets.map { packet in
            let text = String(decoding: packet.bytes.dropFirst(10).prefix { $0 != 0x20 }, as: UTF8.self)
            return Int(text) ?? -1
        }
    }

    @Test func recordsFromStartToStop() throws {
        let recorder = try recorder()
        let units = RecorderStreams.steady(100) { $0 % 10 == 0 }
        for (number, unit) in units.enumerated() {
            if number == 13 || number == 63 { try recorder.command("start") }
            if number == 45 || number == 72 { try recorder.command("stop") }
            try recorder.send(unit)
        }
        try recorder.finish()
        #expect(try numbers("a-0001.mp4") == Array(20..<45))
        #expect(try numbers("a-0002.mp4") == Array(70..<72))
        #expect(try RecorderStreams.packets(of: folder.file("a-0002.mp4")).packets[0].pts == 0)
        let names = recorder.takeEvents().map(\.name)
        #expect(
            names == [
                "recording-did-start", "recording-will-stop", "recording-did-stop", "recording-did-start",
                "recording-will-stop",
                "recording-did-stop",
            ])
        // What was not recorded was not lost.
        #expect(DropReason.allCases.allSatisfy { recorder.dropCount($0) == 0 })
    }

    @Test func stopsARecordingFromTheBeginToo() throws {
        let recorder = try StageDriver(
            recording: #"{ "path": "\#(folder.file("a.mp4"))", "finalize": "never" }"#, RecorderStreams.format())
        for (number, unit) in RecorderStreams.steady(40, isKey: { $0 % 10 == 0 }).enumerated() {
            if number == 15 { try recorder.command("stop") }
            if number == 25 { try recorder.command("start") }
            try recorder.send(unit)
        }
        try recorder.finish()
        #expect(try numbers("a.mp4") == Array(0..<15))
        #expect(try numbers("a-0002.mp4") == Array(30..<40))
    }

    @Test func leavesNoFileOfAStartThatWasTakenBack() throws {
        let recorder = try recorder()
        try recorder.command("start")
        try recorder.command("stop")
        for unit in RecorderStreams.steady(5, isKey: { $0 == 0 }) { try recorder.send(unit) }
        try recorder.finish()
        #expect(RecorderStreams.names(in: folder) == [])
        #expect(recorder.takeEvents().isEmpty)
    }

    @Test func answersWithWhatIsWrong() throws {
        let recorder = try recorder()
        let stop = #expect(throws: FrameHostError.self) { try recorder.command("stop") }
        #expect(stop?.description == "the recorder 'recorder' is not recording, so there is nothing to stop.")
        try recorder.command("start")
        let start = #expect(throws: FrameHostError.self) { try recorder.command("start") }
        #expect(
            start?.description
                == "the recorder 'recorder' is already starting a recording. Wait for the event 'recording-did-start'.")
        for unit in RecorderStreams.steady(5, isKey: { $0 == 0 }) { try recorder.send(unit) }
        try recorder.finish()
        #expect(try numbers("a-0001.mp4") == Array(0..<5))
    }

    /// A stop between a picture and the B-frames shown before it waits for them: no hole in the order of showing.
    @Test func endsWithAllPicturesShownBefore() throws {
        let stream = try RecorderSegmentTests.encoded(frames: 60)
        let reorders = stream.units.indices.dropFirst(20).first { stream.units[$0].pts > stream.units[$0 + 1].pts }!
        let recorder = try recorder("", stream.format)
        try recorder.command("start")
        for (number, unit) in stream.units.enumerated() {
            try recorder.send(unit)
            if number == reorders { try recorder.command("stop") }
        }
        try recorder.finish()
        let packets = try RecorderStreams.packets(of: folder.file("a-0001.mp4"))
        let pts = packets.packets.map(\.pts).sorted()
        #expect(pts.count > reorders + 1)
        #expect(pts == pts.indices.map { Int64($0) * 512 })
    }

    // MARK: The past

    @Test func beginsWithThePast() throws {
        let recorder = try recorder(#", "preEventSeconds": 1, "preEventMegabytes": 1"#)
        for (number, unit) in RecorderStreams.steady(100, isKey: { $0 % 20 == 0 }).enumerated() {
            // Between 58 and 59: one second before is 33.x, and the keyframe before that is 20.
            if number == 59 { try recorder.command("start") }
            if number == 65 { try recorder.command("stop") }
            try recorder.send(unit)
        }
        try recorder.finish()
        #expect(try numbers("a-0001.mp4") == Array(20..<65))
        #expect(recorder.takeEvents().first?.details["startSeconds"]?.asDouble == 0.8)
    }

    /// Asked for with nothing after it: the past alone is recorded.
    @Test func recordsThePastAtTheEnd() throws {
        let recorder = try recorder(#", "preEventSeconds": 0.5"#)
        for unit in RecorderStreams.steady(30, isKey: { $0 % 10 == 0 }) { try recorder.send(unit) }
        try recorder.command("start")
        try recorder.finish()
        #expect(try numbers("a-0001.mp4") == Array(10..<30))
    }

    @Test func cutsThePastIntoSegmentsToo() throws {
        let recorder = try recorder(#", "preEventSeconds": 2, "segmentSeconds": 0.8"#)
        for (number, unit) in RecorderStreams.steady(80, isKey: { $0 % 10 == 0 }).enumerated() {
            if number == 65 { try recorder.command("start") }
            try recorder.send(unit)
        }
        try recorder.finish()
        #expect(try numbers("a-0001.mp4") == Array(10..<30))
        #expect(try (1...4).flatMap { try numbers("a-000\($0).mp4") } == Array(10..<80))
    }

    @Test func saysOnceThatThePastIsTooLarge() throws {
        let recorder = try recorder(#", "preEventSeconds": 60, "preEventMegabytes": 0.02"#)
        for (number, unit) in RecorderStreams.steady(100, bytes: 500, isKey: { $0 % 10 == 0 }).enumerated() {
            if number == 99 { try recorder.command("start") }
            try recorder.send(unit)
        }
        try recorder.finish()
        #expect(try numbers("a-0001.mp4").first == 70)
        let events = recorder.takeEvents()
        #expect(events.filter { $0.name == "pre-event-too-small" }.count == 1)
        #expect(
            events[0].text
                == "The memory for the past (0.02 MB) holds less than 60.0 s, so recordings start less far back. Raise 'preEventMegabytes', or lower the bitrate or the time between keyframes."
        )
    }

    /// The first lack counts: of bytes or of places, of the whole past or of what comes between two keyframes.
    @Test func saysWhichLimitThePastHasMet() throws {
        let group = try recorder(#", "preEventSeconds": 1, "preEventMegabytes": 0.02"#)
        for unit in RecorderStreams.steady(100, bytes: 500, isKey: { $0 == 0 }) { try group.send(unit) }
        #expect(
            group.takeEvents().map(\.text) == [
                "The memory for the past (0.02 MB) is full before the next keyframe comes, so recordings may start without any of the past. Raise 'preEventMegabytes', or lower the bitrate or the time between keyframes."
            ])
        // 1024 pictures, and those of ten seconds at 30 a second.
        let places = try recorder(#", "preEventSeconds": 1"#)
        for unit in RecorderStreams.steady(1400, bytes: 10, isKey: { $0 == 0 }) { try places.send(unit) }
        #expect(
            places.takeEvents().map(\.text) == [
                "The memory for the past (1324 pictures) is full before the next keyframe comes, so recordings may start without any of the past. Lower the time between keyframes."
            ])
        for driver in [group, places] { try driver.finish() }
        let ring = PreEventRing(seconds: 60, byteCapacity: 500_000, unitCapacity: 1024)
        var options = RecorderOptions()
        options.preEventSeconds = 60
        #expect(
            RecordingFault.ofPast(PreEventRing.Lack(isOfBytes: false, isOfOneGroup: false), ring, options)
                == "The memory for the past (1024 pictures) holds less than 60.0 s, so recordings start less far back. Lower 'preEventSeconds' or the frame rate."
        )
        #expect(
            RecordingFault.ofPast(PreEventRing.Lack(isOfBytes: true, isOfOneGroup: false), ring, options)
                == "The memory for the past (0.5 MB) holds less than 60.0 s, so recordings start less far back. Set 'preEventMegabytes' to more than 0.5, or lower the bitrate or the time between keyframes."
        )
    }
}
