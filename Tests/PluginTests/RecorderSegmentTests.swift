// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Testing

@testable import Recorder

@Suite struct RecorderSegmentTests {
    /// Whatever the settings: the files one after the other have every access unit once, each file begins with a
    /// keyframe at 0.
    @Test func splitsLoseAndDoubleNothing() throws {
        let reordered = try Self.encoded(frames: 60)
        // As a container has them: with sizes in place of start codes.
        let payloads = reordered.units.map {
            RecorderStreams.nalUnits(annexB: $0.bytes).flatMap { RecorderStreams.size($0.count) + $0 }
        }
        var random = SplitRandom(state: 20_261_121)
        for round in 0..<1000 {
            let folder = try ScratchFolder()
            let gap = Int.random(in: 1...20, using: &random)
            let keyChance = Int.random(in: 2...12, using: &random)
            var keys: [Bool] = []
            for number in 0..<60 {
                keys.append(
                    number == 0
                        || (round % 2 == 0 ? number % gap == 0 : .random(in: 0..<keyChance, using: &random) == 0))
            }
            let bytes = Int.random(in: 0...3000, using: &random)
            let units = round % 10 == 9 ? reordered.units : RecorderStreams.steady(60, bytes: bytes) { keys[$0] }
            let format = round % 10 == 9 ? reordered.format : RecorderStreams.format()
            let seconds = round % 3 == 1 ? nil : Double.random(in: 0.01...1.5, using: &random)
            let megabytes = round % 3 == 0 ? nil : Double.random(in: 0.001...0.06, using: &random)
            let ending = ["mp4", "mov", "mkv"][round % 7 == 0 ? 2 : round % 2]
            let finalize = round % 25 == 0 ? "auto" : "never"
            let options =
                #"{ "path": "\#(folder.file("s-{n}.\(ending)"))", "finalize": "\#(finalize)""#
                + (seconds.map { ", \"segmentSeconds\": \($0)" } ?? "")
                + (megabytes.map { ", \"segmentMegabytes\": \($0)" } ?? "") + " }"
            let recorder = try StageDriver(recording: options, format)
            for unit in units { try recorder.send(unit) }
            try recorder.finish()
            let events = recorder.takeEvents()
            let names = events.map(\.name)
            #expect(
                !names.contains("job-failed"),
                "round \(round): \(events.filter { $0.name == "job-failed" }.map(\.text))")
            #expect(
                names.filter { $0 == "recording-finalised" }.count
                    == (finalize == "auto" && ending != "mkv" ? RecorderStreams.names(in: folder).count : 0))
            let payloads =
                round % 10 == 9
                ? payloads : units.map { RecorderStreams.size($0.bytes.count - 4) + $0.bytes.dropFirst(4) }
            try Self.compare(units, payloads, in: folder, ending, "round \(round): \(options)")
        }
    }

    private static func compare(
        _ units: [RecorderStreams.Unit], _ payloads: [[UInt8]], in folder: ScratchFolder, _ ending: String,
        _ what: String
    ) throws {
        let count = RecorderStreams.names(in: folder).count
        var rest = zip(units, payloads).map { (unit: $0, payload: $1) }[...]
        for number in 1...count {
            let (packets, ticks) = try RecorderStreams.packets(of: folder.file("s-\(number).\(ending)"))
            let mine = rest.prefix(packets.count)
            rest = rest.dropFirst(packets.count)
            guard let first = mine.first?.unit, first.isKeyframe else {
                Issue.record("\(what): file \(number) of \(count) does not begin with a keyframe")
                return
            }
            let begin = number == 1 ? .zero : first.pts
            let tolerance: Int64 = ending == "mkv" ? 1_000_000 : 0
            let isEqual = zip(mine, packets).allSatisfy { given, packet in
                given.unit.isKeyframe == packet.isKeyframe
                    && abs((ticks[0].time(ofTicks: packet.pts) - (given.unit.pts - begin)).nanoseconds) <= tolerance
                    && given.payload == packet.bytes
            }
            #expect(isEqual, "\(what): file \(number) of \(count)")
        }
        #expect(rest.isEmpty, "\(what): \(rest.count) units are in no file")
    }

    /// A stream with B-frames and scene changes.
    static func encoded(
        frames: Int, _ options: String = #"{ "bframes": 3, "keyframeSeconds": 0.4, "preset": "medium" }"#
    ) throws -> (
        format: EncodedFormat, units: [RecorderStreams.Unit]
    ) {
        let encoder = try StageDriver(
            X264EncoderTests.Encoder.self, options: options, input: .video(RecorderStreams.video))
        var units: [RecorderStreams.Unit] = []
        func pass() {
            while let unit = encoder.takeAccessUnit() {
                units.append(
                    RecorderStreams.Unit(
                        pts: unit.pts, dts: unit.dts, duration: unit.duration, isKeyframe: unit.isKeyframe,
                        bytes: unit.withBytes { Array($0) }))
            }
        }
        for (number, picture) in ClipMaker.steady(frames, RecorderStreams.video).enumerated() {
            try encoder.send(
                encoder.makeFrame(pts: picture.pts) {
                    $0.duration = picture.duration
                    ClipMaker.paint(&$0, number)
                })
            pass()
        }
        try encoder.drain()
        pass()
        return (encoder.outputFormat!.encoded!, units)
    }

    @Test func saysWhichFilesThereAre() throws {
        let folder = try ScratchFolder()
        let recorder = try StageDriver(
            recording: #"{ "path": "\#(folder.file("a.mp4"))", "segmentSeconds": 1, "finalize": "never" }"#,
            RecorderStreams.format())
        for unit in RecorderStreams.steady(75, from: 5, isKey: { $0 % 25 == 0 }) { try recorder.send(unit) }
        try recorder.finish()
        let events = recorder.takeEvents()
        #expect(
            events.map(\.name) == [
                "recording-did-start", "segment-did-start", "segment-did-stop", "segment-did-start", "segment-did-stop",
                "segment-did-start",
                "recording-will-stop", "segment-did-stop", "recording-did-stop",
            ])
        #expect(events[1].details["path"]?.asString == folder.file("a-0001.mp4"))
        #expect(events[1].text == "File 1 is '\(folder.file("a-0001.mp4"))'.")
        #expect(events[3].details["startSeconds"]?.asDouble == 6)
        #expect(events[4].details["frames"]?.asInt == 25)
        #expect(events.last!.details["files"]?.asInt == 3)
        #expect(events.last!.details["frames"]?.asInt == 75)
        #expect(events.last!.details["seconds"]?.asDouble == 3)
        // The first file keeps the chain's time, those after it begin at 0.
        let begins = try (1...3).map { try RecorderStreams.packets(of: folder.file("a-000\($0).mp4")).packets[0].pts }
        #expect(begins == [5 * 12_800, 0, 0])
    }

    /// A monotonic clock counts from the machine's start; nobody wants to wait that long for the first picture.
    @Test func beginsLiveRecordingsAtZeroAndSaysWhen() throws {
        let folder = try ScratchFolder()
        let recorder = try StageDriver(
            recording: #"{ "path": "\#(folder.file("a.mp4"))", "finalize": "never" }"#, RecorderStreams.format(),
            isLive: true)
        for unit in RecorderStreams.steady(10, from: 90_000, isKey: { $0 == 0 }) { try recorder.send(unit) }
        try recorder.finish()
        #expect(try RecorderStreams.packets(of: folder.file("a.mp4")).packets[0].pts == 0)
        let start = recorder.takeEvents()[0]
        // The driver's clock stands at 1 s and says that is 1970.
        #expect(start.details["startTime"]?.asString == "1970-01-01T00:00:01.000000Z")
        #expect(start.details["startSeconds"]?.asDouble == 90_000)
        #expect(try RecordingReader(folder.file("a.mp4")).text("creation_time") == "1970-01-01T00:00:01.000000Z")
    }

    @Test func keepsToItsQuota() throws {
        let folder = try ScratchFolder()
        try Data(count: 500_000).write(to: URL(filePath: folder.file("mine.mp4")))
        let recorder = try StageDriver(
            recording:
                #"{ "path": "\#(folder.file("a-{nn}.mp4"))", "segmentSeconds": 1, "keepMegabytes": 0.1, "finalize": "never" }"#,
            RecorderStreams.format())
        for unit in RecorderStreams.steady(250, bytes: 1000, isKey: { $0 % 25 == 0 }) { try recorder.send(unit) }
        try recorder.finish()
        // 26 kB each: three fit.
        #expect(RecorderStreams.names(in: folder) == ["a-08.mp4", "a-09.mp4", "a-10.mp4", "mine.mp4"])
        let removed = recorder.takeEvents().filter { $0.name == "recording-removed" }
        #expect(removed.map { $0.details["path"]?.asString } == (1...7).map { folder.file("a-0\($0).mp4") })
    }
}

/// Random numbers that a failure can be repeated with.
struct SplitRandom: RandomNumberGenerator {
    var state: UInt64

    /// splitmix64 (Steele, Lea, Flood 2014).
    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }
}
