// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Shared
import Testing

@testable import FileSource

/// Files whose pictures change in the middle, and files with several tracks.
@Suite struct FileSourceChangeTests {
    /// Two clips one after the other in one MPEG-TS, 5 s from begin to begin.
    ///
    /// - Parameter second: The pictures, and what ffmpeg is told besides.
    static func joined(_ first: String, _ second: [String], in folder: ScratchFolder) throws -> String {
        try joined([first], second, in: folder)
    }

    static func joined(_ first: [String], _ second: [String], in folder: ScratchFolder) throws -> String {
        let program = try #require(Tool.ffmpeg, "ffmpeg is not installed: make test-packages")
        for (name, source, begin) in [("1.ts", first, "0"), ("2.ts", second, "5")] {
            try Tool.run(
                program,
                [
                    "-nostdin", "-v", "error", "-y", "-f", "lavfi", "-i", source[0], "-pix_fmt", "yuv420p", "-c:v",
                    "libx264", "-preset",
                ]
                    + ["ultrafast", "-g", "10", "-output_ts_offset", begin] + source.dropFirst() + [folder.file(name)])
        }
        let bytes = try ["1.ts", "2.ts"].reduce(into: Data()) {
            try $0.append(Data(contentsOf: URL(fileURLWithPath: folder.file($1))))
        }
        try bytes.write(to: URL(fileURLWithPath: folder.file("joined.ts")))
        return folder.file("joined.ts")
    }

    @Test(.needsFFmpeg) func scalesPicturesOfAnotherSizeAndSaysSo() throws {
        let folder = try ScratchFolder()
        let path = try Self.joined(
            ClipMaker.moving("160x120", count: 10), [ClipMaker.moving("320x240", count: 10), "-pix_fmt", "yuv444p"],
            in: folder)
        let read = try ClipMaker.play(path)
        #expect(read.pictures.count == 20)
        #expect(read.format.width == 160 && read.format.height == 120)
        let scaled = read.events.filter { $0.name == "pictures-scaled" }
        #expect(scaled.map(\.text) == ["The pictures change to yuv444p 320x240 and are scaled to i420 160x120."])
    }

    /// A wide white picture in a chain that began with a higher one: black above and below, white between.
    @Test(.needsFFmpeg) func keepsTheShapeOfAPictureWithAnotherOne() throws {
        let folder = try ScratchFolder()
        let white = "color=white:size=320x120:rate=25,trim=end_frame=5,format=yuv420p"
        let path = try Self.joined(ClipMaker.moving("160x120", count: 5) + ",format=yuv420p", [white], in: folder)
        let source = try StageDriver(FileSource.self, options: #"{ "path": "\#(path)" }"#)
        var column: [UInt8] = []
        while try source.produce() == .more {
            guard let frame = source.takeFrame(), frame.sequenceNumber == 8 else { continue }
            column = frame.withPlane(0) { plane in (0..<plane.height).map { plane.row($0)[80] } }
        }
        // 320x120 in a width of 160 is 60 rows high, 30 from the top.
        #expect(column[..<29].allSatisfy { abs(Int($0) - 16) < 3 }, "\(column)")
        #expect(column[32..<88].allSatisfy { abs(Int($0) - 235) < 3 }, "\(column)")
        #expect(column[91...].allSatisfy { abs(Int($0) - 16) < 3 }, "\(column)")
    }

    @Test(.needsFFmpeg) func saysThatSamplesChangeTheirShape() throws {
        let folder = try ScratchFolder()
        let path = try Self.joined(
            ClipMaker.moving("160x120", count: 5) + ",setsar=1",
            [ClipMaker.moving("160x120", count: 5) + ",setsar=4/3"], in: folder)
        let read = try ClipMaker.play(path)
        #expect(read.pictures.count == 10)
        #expect(
            read.events.filter { $0.name == "aspect-changed" }.map(\.text) == [
                "The sample aspect ratio changes from 1:1 to 4:3. The pictures are scaled to keep their shape."
            ])
        // 160x120 of 4:3 is as wide as before and 90 rows high.
        let white = try Self.joined(
            ClipMaker.moving("160x120", count: 5) + ",setsar=1",
            ["color=white:size=160x120:rate=25,trim=end_frame=5,setsar=4/3"], in: folder)
        let columns = try Self.frames(white).map { planes in (0..<120).map { planes[0][$0 * 160 + 80] } }
        let column = try #require(columns.last)
        #expect(column[..<14].allSatisfy { $0 < 20 } && column[16..<104].allSatisfy { $0 > 230 }, "\(column)")
        #expect(column[106...].allSatisfy { $0 < 20 }, "\(column)")
    }

    /// The planes of all pictures of a file.
    static func frames(_ path: String) throws -> [[[UInt8]]] {
        let source = try StageDriver(FileSource.self, options: #"{ "path": "\#(path)" }"#)
        var frames: [[[UInt8]]] = []
        while try source.produce() == .more {
            while let frame = source.takeFrame() { frames.append(frame.planeBytes) }
        }
        return frames
    }

    /// Pictures of one colour, whose range and matrix ffmpeg converts to and declares; an empty matrix: none declared.
    private static func red(_ size: String, range: String, matrix: String) -> [String] {
        let declared =
            matrix.isEmpty ? [] : ["-colorspace", matrix, "-color_primaries", "bt709", "-color_trc", "bt709"]
        let made = matrix.isEmpty ? "smpte170m" : matrix
        return [
            "color=red:size=\(size):rate=25,trim=end_frame=5,format=gbrp,scale=out_color_matrix=\(made):out_range=\(range)"
                + ",format=yuv420p", "-color_range", range, "-qp", "2",
        ] + declared
    }

    /// Range and matrix change in the middle, at the same size: the samples become those of the first pictures.
    @Test(
        .needsFFmpeg,
        arguments: [
            ("160x120", "pc", "bt709"), ("160x120", "tv", "smpte170m"), ("160x120", "pc", "smpte240m"),
            ("160x120", "tv", "bt2020nc"), ("320x240", "tv", "smpte170m"),
        ])
    func convertsRangeAndMatrixThatChange(size: String, range: String, matrix: String) throws {
        let folder = try ScratchFolder()
        let first = Self.red("160x120", range: "tv", matrix: "bt709")
        let path = try Self.joined(first, Self.red(size, range: range, matrix: matrix), in: folder)
        let frames = try Self.frames(path)
        #expect(frames.count == 10)
        for frame in frames {
            // Red by BT.709 in video range: 63, 102, 240.
            let found = (0..<3).map { Int(frame[$0][$0 == 0 ? 160 * 60 + 80 : 80 * 30 + 40]) }
            #expect(zip(found, [63, 102, 240]).allSatisfy { abs($0 - $1) <= 3 }, "\(found)")
        }
        let events = try ClipMaker.play(path).events
        #expect(size != "160x120" || events.contains { $0.name == "color-changed" && $0.text.contains("converted") })
    }

    /// A small picture without a matrix is BT.601, also among large ones without a matrix, which are BT.709.
    @Test(.needsFFmpeg) func assumesTheMatrixOfEachPictureByItsOwnHeight() throws {
        let folder = try ScratchFolder()
        let large = ["color=black:size=1280x720:rate=25,trim=end_frame=5,format=yuv420p"]
        let path = try Self.joined(large, Self.red("640x360", range: "tv", matrix: ""), in: folder)
        let last = try #require(try Self.frames(path).last)
        #expect(abs(Int(last[0][1280 * 360 + 640]) - 63) <= 3, "\(last[0][1280 * 360 + 640])")
    }

    /// Red up to column 32, then blue. Chroma of columns 32 and 33 lies left, at 32: three quarters of it are red.
    @Test(.needsFFmpeg) func putsChromaWhereTheChainHasIt() throws {
        let folder = try ScratchFolder()
        try ClipMaker.ffmpeg(
            "-f", "lavfi", "-i",
            "color=red:size=64x48:rate=25,format=yuv444p,drawbox=x=33:w=31:h=48:color=blue:t=fill", "-frames:v", "1",
            "-c:v", "ffv1", folder.file("edge.mkv"))
        let planes = try #require(try Self.frames(folder.file("edge.mkv")).first)
        let (red, blue, between) = (Double(planes[1][0]), Double(planes[1][31]), Double(planes[1][16]))
        #expect(abs(between - (3 * red + blue) / 4) < 8, "\(red), \(between), \(blue)")
    }

    /// Machine vision gives grey without a declared range.
    @Test(.needsFFmpeg, arguments: [("gray", ""), ("gray", "tv"), ("gray10le", ""), ("gray16le", ""), ("ya8", "")])
    func takesGrayForFullRangeWhereNoneIsDeclared(pixels: String, range: String) throws {
        let folder = try ScratchFolder()
        let ramp = (0..<256).map { UInt8($0) }
        try Data((0..<64).flatMap { _ in ramp }).write(to: URL(fileURLWithPath: folder.file("ramp.raw")))
        let program = try #require(Tool.ffmpeg, "ffmpeg is not installed: make test-packages")
        try Tool.run(
            program,
            [
                "-nostdin", "-v", "error", "-f", "rawvideo", "-pix_fmt", "gray", "-s", "256x64", "-i",
                folder.file("ramp.raw"),
            ]
                + ["-frames:v", "1", "-pix_fmt", pixels] + (range.isEmpty ? [] : ["-color_range", range])
                + ["-c:v", pixels == "ya8" ? "png" : "ffv1", folder.file("ramp.mkv")])
        let format = try ClipMaker.play(folder.file("ramp.mkv")).format
        #expect(format.color.range == (range == "tv" ? .video : .full))
        let bytes = try #require(try Self.frames(folder.file("ramp.mkv")).first)[0]
        // Of ten bits the upper eight.
        let row = (0..<256).map { index -> UInt8 in
            if format.pixelFormat.bitDepth == 8 { return bytes[index] }
            let sample = UInt16(bytes[2 * index]) | UInt16(bytes[2 * index + 1]) << 8
            return UInt8(sample >> 2)
        }
        #expect(range == "tv" || zip(row, ramp).allSatisfy { abs(Int($0) - Int($1)) <= 1 }, "\(row)")
    }

    @Test(.needsFFmpeg) func playsTheTrackThatIsNamed() throws {
        let folder = try ScratchFolder()
        try ClipMaker.ffmpeg(
            "-f", "lavfi", "-i", ClipMaker.moving("160x120", count: 5), "-f", "lavfi", "-i",
            ClipMaker.moving("64x48", count: 8), "-map",
            "0", "-map", "1", "-c:v", "libx264", folder.file("two.mkv"))
        #expect(try ClipMaker.play(folder.file("two.mkv")).pictures.count == 5)
        let second = try ClipMaker.play(folder.file("two.mkv"), options: #", "track": 2"#)
        #expect(second.pictures.count == 8)
        #expect(second.format.width == 64)
        #expect(second.events.first?.text == "The video track 1 (h264) is dropped.")
        let error = #expect(throws: FrameHostError.self) {
            try ClipMaker.play(folder.file("two.mkv"), options: #", "track": 3"#)
        }
        #expect(error?.code == .invalidConfiguration)
        #expect(
            error?.description
                == "'track' is 3, but the video tracks of '\(folder.file("two.mkv"))' are 1 (h264 160x120), 2 (h264 64x48)."
                + " Use one of these, or leave 'track' out for the first track that can be played.")
    }

    @Test func refusesListsOfOtherFiles() throws {
        let clip = try FileSourceTests.clip(3, "clip.ts.mp4")
        let playlist = "#EXTM3U\n#EXT-X-VERSION:3\n#EXT-X-TARGETDURATION:1\n#EXTINF:1,\n\(clip.path)\n"
        let list = clip.folder.file("live.m3u8")
        try Data(playlist.utf8).write(to: URL(fileURLWithPath: list))
        let error = #expect(throws: FrameHostError.self) { try ClipMaker.play(list) }
        #expect(
            error?.description
                == "'\(list)' contains no pictures: it is a list of other files (hls). Name one of the files in it."
        )
    }
}

@Suite struct ScalingConverterPlaceTests {
    static let format = VideoFormat(.i420, width: 640, height: 480)

    @Test(arguments: [
        // The same shape, larger, smaller, nearly the same.
        (320, 240, Rational(0), Rectangle(x: 0, y: 0, width: 640, height: 480)),
        (1280, 960, Rational(1), Rectangle(x: 0, y: 0, width: 640, height: 480)),
        (648, 480, Rational(0), Rectangle(x: 0, y: 0, width: 640, height: 480)),
        // Wider: bars above and below. Higher: at the sides.
        (1280, 720, Rational(1), Rectangle(x: 0, y: 60, width: 640, height: 360)),
        (480, 640, Rational(0), Rectangle(x: 140, y: 0, width: 360, height: 480)),
        // Samples that are not square.
        (720, 576, Rational(64, 45), Rectangle(x: 0, y: 60, width: 640, height: 360)),
        (10_000, 2, Rational(0), Rectangle(x: 0, y: 238, width: 640, height: 2)),
    ]) func putsThePictureInTheMiddle(width: Int, height: Int, aspect: Rational, expected: Rectangle) {
        let picture = PictureGeometry(PictureSize(width, height), sampleAspectRatio: aspect)
        #expect(ScalingConverter.place(of: picture, in: Self.format) == expected)
    }
}
