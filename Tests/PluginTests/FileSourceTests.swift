// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Testing

@testable import FileSource
@testable import X264Encoder

@Suite struct FileSourceTests {
    static let format = VideoFormat(
        .i420, width: 160, height: 120, frameRate: Rational(25), timeBase: TimeBase(1, 12_800))

    /// A clip of `count` pictures in a folder of its own.
    static func clip(_ count: Int, _ name: String = "clip.mp4", format: VideoFormat = format) throws -> (
        folder: ScratchFolder, path: String
    ) {
        let folder = try ScratchFolder()
        try ClipMaker.record(to: folder.file(name), format, ClipMaker.steady(count, format))
        return (folder, folder.file(name))
    }

    @Test func givesAllPicturesWithTheFilesOwnTimes() throws {
        let clip = try Self.clip(50)
        let read = try ClipMaker.read(clip.path)
        #expect(read.pictures == ClipMaker.steady(50, Self.format))
        var expected = Self.format
        expected.color.chromaSiting = 1
        #expect(read.format == expected)
        #expect(read.events.map(\.name) == ["decoded-in-place"])
    }

    /// Pictures that are read straight into the chain's frames are those that libavformat reads from another container, from
    /// each place, again and again, and up to where a file is cut off.
    @Test(.needsFFmpeg, arguments: ["yuv420p", "yuv422p", "yuv444p", "yuv420p10", "gray"])
    func readsRawPicturesAsLibavformatDoes(pixels: String) throws {
        let folder = try ScratchFolder()
        // No size is a multiple of a stride.
        try ClipMaker.ffmpeg(
            arguments: [
                "-f", "lavfi", "-i", ClipMaker.moving("163x121", count: 40), "-pix_fmt", pixels, "-strict", "-1",
                folder.file("a.y4m"),
            ])
        try ClipMaker.ffmpeg("-i", folder.file("a.y4m"), "-c", "copy", folder.file("a.nut"))
        let whole = try Data(contentsOf: URL(fileURLWithPath: folder.file("a.y4m")))
        try whole.dropLast(100).write(to: URL(fileURLWithPath: folder.file("cut.y4m")))
        for options in ["", #", "start": 0.5, "duration": 0.7"#, #", "start": 1.01"#, #", "loop": true"#] {
            let raw = try ClipMaker.play(folder.file("a.y4m"), options: options, atMost: 100)
            let other = try ClipMaker.play(folder.file("a.nut"), options: options, atMost: 100)
            #expect(raw.pictures.map(\.hash) == other.pictures.map(\.hash) && !raw.pictures.isEmpty, "\(options)")
            // From a start between two pictures times are rounded to the ticks of the container.
            if !options.contains("start") { #expect(raw.pictures == other.pictures) }
            #expect(raw.format.pixelFormat == other.format.pixelFormat)
        }
        let cut = try ClipMaker.play(folder.file("cut.y4m"))
        #expect(cut.pictures == Array(try ClipMaker.play(folder.file("a.y4m")).pictures.dropLast()))
    }

    @Test func refusesAZeroCharacterInThePath() {
        #expect {
            _ = try StageDriver(FileSource.self, options: #"{ "path": "a\u0000.mp4" }"#)
        } throws: { "\($0)".hasSuffix("'path' must not contain the character U+0000. Remove its \\u0000.") }
    }

    /// Quality 0 loses nothing, so what comes out is what went in; 162 is no multiple of a stride.
    @Test func givesTheVeryPixels() throws {
        let folder = try ScratchFolder()
        var format = Self.format
        (format.width, format.height) = (162, 122)
        try ClipMaker.record(to: folder.file("a.mp4"), format, ClipMaker.steady(5, format), encoder: #"{ "crf": 0 }"#)
        let source = try StageDriver(FileSource.self, options: #"{ "path": "\#(folder.file("a.mp4"))" }"#)
        // For frames of the same format to paint the originals into.
        let canvas = try StageDriver(X264Encoder.self, input: .video(format))
        let planes = { (frame: borrowing Frame) -> [[UInt8]] in
            (0..<3).map { index in
                frame.withPlane(index) { plane in (0..<plane.height).flatMap { Array(plane.row($0)) } }
            }
        }
        var number = 0
        while try source.produce() == .more {
            guard let frame = source.takeFrame() else { continue }
            let painted = try canvas.makeFrame { ClipMaker.paint(&$0, number) }
            #expect(planes(frame) == planes(painted), "frame \(number)")
            number += 1
        }
        #expect(number == 5)
    }

    @Test(
        .enabled(
            if: Tool.ffmpeg != nil || ProcessInfo.processInfo.environment["CI"] == "true", "ffmpeg is not installed"),
        arguments: [("yuv444p", "ffv1"), ("yuvj444p", "mjpeg"), ("yuv422p10le", "ffv1")])
    func convertsWhatIsNoneOfOurFormatsAndSaysSo(pixels: String, codec: String) throws {
        let folder = try ScratchFolder()
        try Tool.run(
            #require(Tool.ffmpeg, "ffmpeg is not installed: make test-packages"),
            [
                "-v", "error", "-f", "lavfi", "-i", "color=gray:size=64x48:rate=25", "-frames:v", "3", "-pix_fmt",
                pixels, "-c:v", codec,
                folder.file("a.mkv"),
            ])
        let read = try ClipMaker.read(folder.file("a.mkv"))
        // Ten bits are kept.
        let kept = pixels.contains("10") ? PixelFormat.i010 : .i420
        #expect(read.format.pixelFormat == kept)
        #expect(read.format.color.range == (pixels == "yuvj444p" ? .full : .video))
        #expect(read.pictures.count == 3)
        #expect(read.events.map(\.text).contains("The pictures are \(pixels) and are converted to \(kept.rawValue)."))
    }

    @Test(
        .enabled(
            if: Tool.ffmpeg != nil || ProcessInfo.processInfo.environment["CI"] == "true", "ffmpeg is not installed"),
        arguments: [
            ("yuv420p", 15, PixelFormat.i420), ("nv12", 15, .nv12), ("yuyv422", 16, .yuyv), ("gray", 15, .gray8),
            ("bgra", 15, .bgra),
            ("rgb24", 15, .rgb24), ("yuv420p10le", 15, .i010),
        ])
    func givesTheDecodersOwnFormatWhereItIsOneOfOurs(pixels: String, width: Int, expected: PixelFormat) throws {
        let folder = try ScratchFolder()
        // Odd sides where they are possible, and rows that end inside a stride.
        try Tool.run(
            #require(Tool.ffmpeg, "ffmpeg is not installed: make test-packages"),
            [
                "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=\(width)x9:rate=5", "-frames:v", "2", "-pix_fmt",
                pixels, "-c:v",
                "rawvideo",
                folder.file("a.nut"), "-frames:v", "1", "-pix_fmt", pixels, "-f", "rawvideo", folder.file("a.raw"),
            ])
        let source = try StageDriver(FileSource.self, options: #"{ "path": "\#(folder.file("a.nut"))" }"#)
        #expect(source.outputFormat?.video?.pixelFormat == expected)
        var first: [UInt8] = []
        while try source.produce() == .more {
            guard let frame = source.takeFrame(), first.isEmpty else { continue }
            for index in 0..<frame.planeCount {
                frame.withPlane(index) { plane in for y in 0..<plane.height { first += plane.row(y) } }
            }
        }
        let raw = Array(try Data(contentsOf: URL(fileURLWithPath: folder.file("a.raw"))))
        #expect(first == raw)
    }

    @Test func playsARangeThatBeginsAtItsOwnZero() throws {
        let clip = try Self.clip(100)
        let read = try ClipMaker.read(clip.path, options: #", "start": 1, "duration": 0.4"#)
        #expect(read.pictures == ClipMaker.steady(10, Self.format))
    }

    @Test func playsAgainAndAgainWithoutAGap() throws {
        let clip = try Self.clip(10)
        let source = try StageDriver(FileSource.self, options: #"{ "path": "\#(clip.path)", "loop": true }"#)
        var times: [MediaTime] = []
        while times.count < 35 {
            #expect(try source.produce() == .more)
            while let frame = source.takeFrame() { times.append(frame.pts) }
        }
        #expect(times == ClipMaker.steady(times.count, Self.format).map(\.pts))
    }

    @Test func waitsForEachPicturesTimeInRealTime() throws {
        let clip = try Self.clip(25)
        let clock = ManualClock(at: 5_000_000_000)
        let source = try StageDriver(
            FileSource.self, options: #"{ "path": "\#(clip.path)", "pace": "realtime" }"#, clock: clock)
        #expect(FileSource.info.realTime?.description == #""pace": "realtime""#)
        while try source.produce() == .more {
            while let frame = source.takeFrame() { #expect(clock.now() == 5_000_000_000 + frame.pts.nanoseconds) }
        }
        #expect(clock.now() == 5_960_000_000)
    }

    @Test func playsWhatIsLeftOfADamagedFileAndSaysSo() throws {
        let clip = try Self.clip(50, "clip.mkv")
        var bytes = try Data(contentsOf: URL(fileURLWithPath: clip.path))
        for index in stride(from: bytes.count / 3, to: bytes.count / 2, by: 97) { bytes[index] ^= 0xff }
        try bytes.write(to: URL(fileURLWithPath: clip.path))
        let read = try ClipMaker.read(clip.path)
        #expect(read.pictures.count > 10)
        #expect(read.events.map(\.name).contains("file-damaged"))
    }

    @Test func saysWhyAFileCannotBePlayed() throws {
        let folder = try ScratchFolder()
        func text(_ name: String) -> String? {
            #expect(throws: FrameHostError.self) { try ClipMaker.read(folder.file(name)) }?.description
        }
        #expect(text("none.mp4") == "'\(folder.file("none.mp4"))' does not exist. Correct 'path'.")
        #expect(
            FileFault.ofPath("none.mp4", isRelative: true)?.description
                == "'none.mp4' does not exist. Correct 'path'. A relative path starts at the chain file's folder.")
        #expect(text("") == "'\(folder.path)/' is a folder. Name a file in it.")
        try FileManager.default.createSymbolicLink(
            atPath: folder.file("link.mp4"), withDestinationPath: folder.file("none.mp4"))
        #expect(
            text("link.mp4")
                == "'\(folder.file("link.mp4"))' is a link to a file that does not exist. Correct the link.")
        try Data().write(to: URL(fileURLWithPath: folder.file("empty.mp4")))
        #expect(text("empty.mp4") == "'\(folder.file("empty.mp4"))' is empty. Copy or record it again.")
        try Data("only words".utf8).write(to: URL(fileURLWithPath: folder.file("text.mp4")))
        #expect(
            text("text.mp4")?.hasPrefix(
                "'\(folder.file("text.mp4"))' is not a media file that libavformat can read."
                    + " Name a media file. If this is an MP4 whose recording was interrupted, record it again, or repair it with a tool such as untrunc."
            ) == true)
    }

    @Test(arguments: [
        ("rtsp", "Use it."), ("ftp", "Copy what is there to this machine first, and name the copy."),
        ("FILE", "Write only the path, without file://."),
    ])
    func saysWhatToDoWithAnAddress(scheme: String, remedy: String) {
        #expect(FileFault.ofAddress("\(scheme)://host/a", kind: "a file", remedy: "Use it.")?.remedy == remedy)
    }

    @Test func saysTheLimitOfAnAccessUnitInMebibytes() {
        #expect(
            FileFault.packetTooLarge("a.mp4", bytes: (256 << 20) + 1).what.hasSuffix(
                "must be at most 256 MiB, but 'a.mp4' has one of 257 MiB"))
    }

    @Test func saysWhatToDoAboutAPartThatCannotBeRead() throws {
        let folder = try ScratchFolder()
        func text(_ name: String) -> String? {
            #expect(throws: FrameHostError.self) { try PartReader(folder.file(name), as: "parts") }?.description
        }
        let remedy = "Remove it if it is there, and start the batch again with --retry."
        #expect(text("1.part") == "\(folder.file("1.part")): cannot be read: No such file or directory. \(remedy)")
        try FileManager.default.createDirectory(atPath: folder.file("2.part"), withIntermediateDirectories: false)
        #expect(text("2.part") == "\(folder.file("2.part")): must be a regular file. \(remedy)")
    }

    @Test func wantsAPath() {
        let error = #expect(throws: FrameHostErrors.self) { try StageDriver(FileSource.self) }
        #expect(
            error?.description.hasSuffix("'path' is missing or empty. Name the file to play: \"path\": \"clip.mp4\".")
                == true)
    }
}

@Suite struct FileTimelineTests {
    static let base = TimeBase(1, 1000)

    @Test func leavesTimesAndGapsAsTheyAre() {
        var timeline = FileTimeline(timeBase: Self.base, origin: 33)
        for tick: Int64 in [33, 66, 100, 2100] {
            #expect(timeline.place(tick, duration: 33) == .show(tick))
        }
    }

    @Test func putsASmallStepBackOneTickOn() {
        var timeline = FileTimeline(timeBase: Self.base, origin: 0)
        let placed = [0, 40, 30, 120].map { timeline.place($0, duration: 40) }
        #expect(placed == [0, 40, 41, 120].map { .show($0) })
    }

    @Test func countsOnWhereTheFileHasNoTimes() {
        var timeline = FileTimeline(timeBase: Self.base, origin: 0)
        #expect(
            (0..<3).map { _ in timeline.place(nil, duration: 40) }
                == [0, 40, 80].map { .show($0) })
    }

    @Test func cutsToTheRange() {
        var timeline = FileTimeline(timeBase: Self.base, origin: 500, start: 1, duration: 0.1)
        #expect(
            [1460, 1500, 1560, 1600].map { timeline.place($0, duration: 40) } == [
                .skip, .show(500), .show(560), .end,
            ])
    }
}

@Suite struct DisplayMatrixTests {
    @Test(arguments: [
        ([1, 0, 0, 1], Orientation.up), ([0, 1, -1, 0], .right), ([-1, 0, 0, -1], .down), ([0, -1, 1, 0], .left),
        ([-1, 0, 0, 1], .upMirrored), ([1, 0, 0, -1], .downMirrored), ([0, 1, 1, 0], .leftMirrored),
        ([0, -1, -1, 0], .rightMirrored),
    ]) func readsAllEightOrientations(matrix: [Int32], expected: Orientation) {
        let (a, b, c, d) = (matrix[0] << 16, matrix[1] << 16, matrix[2] << 16, matrix[3] << 16)
        let read = Orientation.fromDisplayMatrix([a, b, 0, c, d, 0, 0, 0, 1 << 30])
        #expect(read?.orientation == expected)
        #expect(read?.isExact == true)
    }

    @Test func takesTheNearestQuarterAndSaysSo() {
        let read = Orientation.fromDisplayMatrix([60_000, 20_000, 0, -20_000, 60_000, 0, 0, 0, 1 << 30])
        #expect(read?.orientation == .up)
        #expect(read?.isExact == false)
        #expect(Orientation.fromDisplayMatrix([0, 0, 0, 0, 0, 0, 0, 0, 0]) == nil)
    }
}
