// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Testing

@testable import FileSource
@testable import Recorder

@Suite struct RecorderTests {
    static let format = VideoFormat(
        .i420, width: 160, height: 120, frameRate: Rational(25), timeBase: TimeBase(1, 12_800))

    @Test(arguments: ["mp4", "mov", "mkv"], [0, 64_000]) func givesTimesBackFromTheFirstOn(ending: String, start: Int64)
        throws
    {
        let folder = try ScratchFolder()
        let pictures = ClipMaker.steady(40, Self.format, from: start)
        try ClipMaker.record(to: folder.file("a.\(ending)"), Self.format, pictures, encoder: #"{ "bframes": 3 }"#)
        // 40 ms are whole ticks of all three.
        #expect(try ClipMaker.read(folder.file("a.\(ending)")).pictures.map(\.pts) == pictures.map(\.pts))
    }

    @Test func keepsUnevenTimesAndGaps() throws {
        let folder = try ScratchFolder()
        var format = Self.format
        format.frameRate = Rational(0)
        format.timeBase = TimeBase(1, 90_000)
        let ticks = (0..<50).map { (number: Int) -> Int64 in
            let gap = number >= 20 ? 200_000 : 0
            return Int64(number * 3003 + (number % 4) * 500 + gap)
        }
        let times = ticks.map { format.timeBase.time(ofTicks: $0) }
        let pictures = times.enumerated().map { index, time in
            ClipPicture(
                pts: time, duration: index + 1 < times.count ? times[index + 1] - time : MediaTime(seconds: 0.1))
        }
        try ClipMaker.record(to: folder.file("a.mp4"), format, pictures)
        let read = try ClipMaker.read(folder.file("a.mp4"))
        #expect(read.pictures.map(\.pts) == times)
        #expect(read.format.frameRate.isZero)
        #expect(read.format.timeBase == format.timeBase)
    }

    /// A camera's times are nanoseconds, and a container's ticks are longer. Where the first one lay in the middle
    /// between two ticks, it came to be -1, which players read as the end of time.
    @Test(arguments: ["mp4", "mov", "mkv"]) func beginsAtZeroWhereverTheFirstTimeLies(ending: String) throws {
        var format = RecorderStreams.format()
        format.video?.frameRate = Rational(0)
        format.video?.timeBase = TimeBase(1, 1_000_000)
        // Matroska's tick is 1,000,000 ns.
        for offset: Int64 in [0, 1, 499, 500, 501, 999, 499_999, 500_000, 500_001, 5_000_000_500, -500] {
            let folder = try ScratchFolder()
            let recorder = try StageDriver(
                recording: #"{ "path": "\#(folder.file("a.\(ending)"))", "finalize": "never" }"#, format,
                isLive: true)
            for number in 0..<12 {
                let time = MediaTime(nanoseconds: offset + Int64(number) * 8_333_333)
                try recorder.send(
                    RecorderStreams.Unit(
                        pts: time, dts: time, duration: .zero, isKeyframe: number % 4 == 0,
                        bytes: RecorderStreams.payload(number, bytes: 10, isKeyframe: number % 4 == 0)))
            }
            try recorder.finish()
            let first = try #require(RecorderStreams.packets(of: folder.file("a.\(ending)")).packets.first)
            #expect(first.pts == 0, "\(offset) ns")
            // Matroska has no decode times.
            if ending != "mkv" { #expect(first.dts == 0, "\(offset) ns") }
        }
    }

    @Test(arguments: Orientation.allCases) func saysHowThePictureLies(orientation: Orientation) throws {
        let folder = try ScratchFolder()
        var format = Self.format
        format.orientation = orientation
        try ClipMaker.record(to: folder.file("a.mp4"), format, ClipMaker.steady(3, format))
        #expect(try ClipMaker.read(folder.file("a.mp4")).format.orientation == orientation)
        let mirroredTwice = Orientation.fromDisplayMatrix(orientation.displayMatrix(width: 160, height: 120))
        #expect(mirroredTwice?.orientation == orientation)
    }

    @Test(arguments: ["mp4", "mov", "mkv"]) func carriesColourAndSampleAspectRatio(ending: String) throws {
        let folder = try ScratchFolder()
        var format = Self.format
        format.color = ColorDescription(range: .full, matrix: 9, primaries: 9, transfer: 16, chromaSiting: 3)
        format.sampleAspectRatio = Rational(4, 3)
        try ClipMaker.record(to: folder.file("a.\(ending)"), format, ClipMaker.steady(3, format))
        let read = try ClipMaker.read(folder.file("a.\(ending)")).format
        #expect(read.color == format.color)
        #expect(read.sampleAspectRatio == format.sampleAspectRatio)
    }

    /// What a killed program leaves: the first bytes of the file.
    @Test func playsHoweverEarlyWritingEnds() throws {
        let folder = try ScratchFolder()
        let pictures = ClipMaker.steady(150, Self.format)
        let encoder = #"{ "bframes": 2, "keyframeSeconds": 3, "bitrateKbps": 500 }"#
        // The file as it lies on the disk while it is written, before it is finished.
        var lengths: [Int] = []
        let units = try Self.encode(pictures, encoder)
        try Self.record(units, folder.file("a.mp4")) { lengths.append($0) }
        // At first there is the recorder's mark alone.
        let mark = lengths[0]
        #expect(mark > 0 && mark < 1024 && lengths.last! > mark)
        let whole = try Data(contentsOf: URL(fileURLWithPath: folder.file("a.mp4")))
        for length in Set(lengths) where length > mark {
            try whole.prefix(length).write(to: URL(fileURLWithPath: folder.file("cut.mp4")))
            let read = try ClipMaker.read(folder.file("cut.mp4")).pictures.map(\.pts)
            let handedOver = lengths.lastIndex(of: length)! + 1
            // At most the last second is missing, and what is there came first in the order of decoding.
            #expect(read.count >= handedOver - 25)
            #expect(read == units.units.prefix(read.count).map(\.pts).sorted())
        }
    }

    /// Records these units and stops without a drain, as at a `stop`; calls `watch` with the file's size after each.
    private static func record(
        _ units: (format: EncodedFormat, units: [X264EncoderTests.Unit]), _ path: String, _ watch: (Int) -> Void
    ) throws {
        let recorder = try StageDriver(
            Recorder.self, options: #"{ "path": "\#(path)", "finalize": "never" }"#, input: .encoded(units.format))
        for unit in units.units {
            try recorder.send(
                recorder.makeAccessUnit(unit.bytes, pts: unit.pts, dts: unit.dts, isKeyframe: unit.isKeyframe))
            watch((try? FileManager.default.attributesOfItem(atPath: path)[.size] as? Int) ?? 0)
        }
        try recorder.stop()
    }

    private static func encode(_ pictures: [ClipPicture], _ options: String) throws -> (
        format: EncodedFormat, units: [X264EncoderTests.Unit]
    ) {
        let encoder = try StageDriver(X264EncoderTests.Encoder.self, options: options, input: .video(format))
        var units: [X264EncoderTests.Unit] = []
        for (number, picture) in pictures.enumerated() {
            try encoder.send(encoder.makeFrame(pts: picture.pts) { ClipMaker.paint(&$0, number) })
            units += X264EncoderTests.take(encoder)
        }
        try encoder.drain()
        units += X264EncoderTests.take(encoder)
        return (encoder.outputFormat!.encoded!, units)
    }

    @Test func beginsWithAKeyframeAndSaysWhatItDoes() throws {
        let folder = try ScratchFolder()
        let path = folder.file("a.mp4")
        let units = try Self.encode(ClipMaker.steady(5, Self.format), #"{ "bframes": 0 }"#)
        let recorder = try StageDriver(
            Recorder.self, options: #"{ "path": "\#(path)", "finalize": "never" }"#, input: .encoded(units.format))
        #expect(!FileManager.default.fileExists(atPath: path))
        try recorder.send(recorder.makeAccessUnit(units.units[1].bytes, pts: .zero))
        #expect(recorder.dropCount(.untilKeyframe) == 1)
        #expect(!FileManager.default.fileExists(atPath: path))
        for unit in units.units {
            try recorder.send(
                recorder.makeAccessUnit(unit.bytes, pts: unit.pts, dts: unit.dts, isKeyframe: unit.isKeyframe))
        }
        try recorder.drain()
        try recorder.stop()
        try recorder.stop()
        let events = recorder.takeEvents()
        #expect(events.map(\.name) == ["recording-did-start", "recording-will-stop", "recording-did-stop"])
        #expect(events.last?.details["frames"]?.asInt == 5)
        #expect(
            events.last?.details["bytes"]?.asInt
                == (try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int))
    }

    @Test func refusesAFileThatExistsUnlessTold() throws {
        let folder = try ScratchFolder()
        let path = folder.file("a.mp4")
        try Data("mine".utf8).write(to: URL(fileURLWithPath: path))
        let error = #expect(throws: FrameHostError.self) {
            try ClipMaker.record(to: path, Self.format, ClipMaker.steady(2, Self.format))
        }
        #expect(
            error?.description
                == "'\(path)' exists already. Name another file, or set \"overwrite\": true to replace it.")
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data("mine".utf8))

        // A file that comes to exist between check and start is not replaced either.
        let units = try Self.encode(ClipMaker.steady(2, Self.format), "{}")
        try FileManager.default.removeItem(atPath: path)
        let late = try StageDriver(Recorder.self, options: #"{ "path": "\#(path)" }"#, input: .encoded(units.format))
        try Data("mine".utf8).write(to: URL(fileURLWithPath: path))
        #expect(throws: FrameHostError.self) {
            try late.send(late.makeAccessUnit(units.units[0].bytes, pts: .zero, isKeyframe: true))
        }
        #expect(try Data(contentsOf: URL(fileURLWithPath: path)) == Data("mine".utf8))
    }

    @Test func saysThatTheFolderIsMissing() throws {
        let folder = try ScratchFolder()
        let error = #expect(throws: FrameHostError.self) {
            try ClipMaker.record(to: folder.file("no/a.mp4"), Self.format, ClipMaker.steady(2, Self.format))
        }
        #expect(error?.description == "the folder '\(folder.file("no"))' does not exist. Create it, or correct 'path'.")
    }

    @Test func saysThatTheDiskIsFull() throws {
        let folder = try ScratchFolder()
        let path = folder.file("full.mp4")
        try FileManager.default.createSymbolicLink(atPath: path, withDestinationPath: "/dev/full")
        let units = try Self.encode(ClipMaker.steady(60, Self.format), "{}")
        let recorder = try StageDriver(
            Recorder.self, options: #"{ "path": "\#(path)", "overwrite": true }"#, input: .encoded(units.format))
        let error = #expect(throws: FrameHostError.self) {
            for unit in units.units {
                try recorder.send(
                    recorder.makeAccessUnit(unit.bytes, pts: unit.pts, dts: unit.dts, isKeyframe: unit.isKeyframe))
            }
        }
        let text =
            "writing '\(path)' failed: No space left on device. Free some space, or record to another disk. Nothing of the file was saved."
        #expect(error?.description.hasSuffix(text) == true, "\(String(describing: error))")
        #expect(recorder.takeEvents().map(\.name) == ["recording-did-start", "recording-did-fail"])
        try recorder.stop()
    }

    @Test func refusesAPipe() throws {
        let folder = try ScratchFolder()
        let path = folder.file("pipe.mp4")
        #expect(mkfifo(path, 0o644) == 0)
        let error = #expect(throws: FrameHostError.self) {
            try ClipMaker.record(to: path, Self.format, ClipMaker.steady(2, Self.format))
        }
        #expect(
            error?.description
                == "'\(path)' must be a regular file, but is a pipe. Name a file.",
            "\(String(describing: error))")
    }

    @Test func refusesRotationInMatroska() throws {
        let folder = try ScratchFolder()
        var format = Self.format
        format.orientation = .right
        let error = #expect(throws: FrameHostError.self) {
            try ClipMaker.record(to: folder.file("a.mkv"), format, ClipMaker.steady(2, format))
        }
        #expect(
            error?.description
                == "path: a Matroska file cannot store the orientation 'turned 90°'."
                + " Record to .mp4 or .mov, or put a 'crop-orient' before the encoder to turn the pictures.")
    }

    @Test func refusesAnUnknownContainer() {
        let error = #expect(throws: FrameHostErrors.self) {
            try ClipMaker.record(to: "a.avi", Self.format, ClipMaker.steady(2, Self.format))
        }
        #expect(
            error?.description.hasSuffix(
                "'a.avi' must end in .mp4, .mov or .mkv, or of sound alone in .m4a or .mka. Use one of these endings: the ending chooses the container."
            )
                == true)
    }
}
