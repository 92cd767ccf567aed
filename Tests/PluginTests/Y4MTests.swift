// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Glibc
import Testing

@testable import Y4M

@Suite struct Y4MHeaderTests {
    private func header(_ text: String) throws(Y4MHeader.Fault) -> Y4MHeader { try Y4MHeader(Array(text.utf8)) }

    @Test(arguments: ["stdout", "fd/1"]) func takesStandardStreamsByOneNameAlone(name: String) {
        let format = MediaFormat.video(VideoFormat(.i420, width: 16, height: 16, frameRate: Rational(25)))
        #expect {
            _ = try StageDriver(Y4MSink.self, options: #"{ "path": "/dev/\#(name)" }"#, input: format)
        } throws: {
            "\($0)".contains(
                "'/dev/\(name)' is standard output, which must be written as \"-\". Write \"path\": \"-\"")
        }
        #expect(throws: (any Error).self) { _ = try StageDriver(Y4MSource.self, options: #"{ "path": "/dev/stdin" }"#) }
    }

    @Test func refusesAZeroCharacterInThePath() {
        #expect {
            _ = try StageDriver(Y4MSource.self, options: #"{ "path": "a\u0000.y4m" }"#)
        } throws: { "\($0)".hasSuffix("'path' must not contain the character U+0000. Remove its \\u0000.") }
    }

    @Test func readsWhatFFmpegAndMjpegtoolsWrite() throws {
        let ffmpeg = try header("YUV4MPEG2 W322 H242 F30000:1001 Ip A1:1 C420jpeg XYSCSS=420JPEG XCOLORRANGE=FULL")
        #expect((ffmpeg.width, ffmpeg.height) == (322, 242))
        #expect(ffmpeg.rate == Rational(30_000, 1001) && ffmpeg.aspect == Rational(1))
        #expect(ffmpeg.format == .planar420 && ffmpeg.chromaSiting == 2 && ffmpeg.range == .full)
        #expect(!ffmpeg.isInterlaced)
        let old = try header("YUV4MPEG2 H576 W720 It A0:0 F0:0")
        #expect((old.width, old.height) == (720, 576))
        #expect(old.rate.isZero && old.aspect.isZero && old.isInterlaced && old.format == .planar420)
        #expect(try header("YUV4MPEG2 W3 H3 F25:1 C420mpeg2").chromaSiting == 1)
        #expect(try header("YUV4MPEG2 W3 H3 F25:1 C420paldv").chromaSiting == 3)
        #expect(try header("YUV4MPEG2 W3 H3 F25:1 C422").format == .planar422)
        #expect(try header("YUV4MPEG2 W3 H3 F25:1 Cmono").format == .mono)
        #expect(try header("YUV4MPEG2 W3 H3 F25:1 C420p10").format == .planar420Of10)
    }

    @Test(arguments: [
        ("", "must start with YUV4MPEG2"), ("YUV4MPEG W1 H1", "must start with YUV4MPEG2"),
        ("YUV4MPEG2", "must give the size of its pictures (W and H)"),
        ("YUV4MPEG2 W64", "must give the size of its pictures (W and H)"),
        ("YUV4MPEG2 W0 H1", "has the field 'W0', but a width must be a whole number from 1 to 65536"),
        ("YUV4MPEG2 W65537 H1", "has the field 'W65537', but a width must be a whole number from 1 to 65536"),
        ("YUV4MPEG2 W-5 H1", "has the field 'W-5', but a width must be a whole number from 1 to 65536"),
        ("YUV4MPEG2 W+5 H1", "has the field 'W+5', but a width must be a whole number from 1 to 65536"),
        (
            "YUV4MPEG2 W99999999999999999999999 H1",
            "has the field 'W99999999999999999999999', but a width must be a whole number from 1 to 65536"
        ),
        (
            "YUV4MPEG2 W65536 H65536 Cmono",
            "has pictures of 65536x65536, but a picture must have at most 67108864 pixels"
        ),
        (
            "YUV4MPEG2 W1 H1 F1",
            "has the field 'F1', but a frame rate must look like F25:1 and be from 1/1000000 to 1000000"
        ),
        (
            "YUV4MPEG2 W1 H1 F2147483647:1",
            "has the field 'F2147483647:1', but a frame rate must look like F25:1 and be from 1/1000000 to 1000000"
        ),
        (
            "YUV4MPEG2 W1 H1 F1:2147483647",
            "has the field 'F1:2147483647', but a frame rate must look like F25:1 and be from 1/1000000 to 1000000"
        ),
        (
            "YUV4MPEG2 W1 H1 F4294967296:1",
            "has the field 'F4294967296:1', but a frame rate must look like F25:1 and be from 1/1000000 to 1000000"
        ),
        (
            "YUV4MPEG2 W1 H1 A1:99999",
            "has the field 'A1:99999', but a sample aspect ratio must look like A1:1 and be from 1/10000 to 10000"
        ),
        (
            "YUV4MPEG2 W1 H1 C444\u{1b}[2J",
            "has the field 'C444?[2J', which must be one of C420jpeg, C420mpeg2, C420paldv, C420, C420p10, C422, Cmono"
        ),
    ])
    func refusesWhatNoStreamCanMean(line: String, fault: String) {
        let found = #expect(throws: Y4MHeader.Fault.self) { try header(line) }
        #expect(found?.what == fault)
    }

    @Test func readsWhatItWrites() throws {
        for pixels in PixelFormat.allCases {
            var format = VideoFormat(
                pixels, width: 65_536, height: 1, frameRate: Rational(30_000, 1001), sampleAspectRatio: Rational(16, 11)
            )
            format.color.range = .full
            guard let written = Y4MHeader(format) else {
                #expect(pixels.isRGB)
                continue
            }
            let line = Array(written.line.utf8.dropLast())
            let read = try Y4MHeader(line)
            #expect(read.width == 65_536 && read.height == 1 && read.rate == format.frameRate)
            #expect(read.aspect == format.sampleAspectRatio && read.range == .full)
            #expect(read.format == Y4MFormat(pixels))
        }
    }

    /// Bytes from outside, of any kind: a header or a sentence.
    @Test func neverFallsOverARandomLine() {
        var dice = SystemRandomNumberGenerator()
        let pieces = [
            "YUV4MPEG2", " ", "W", "H", "F", "A", "C", "I", "X", ":", "0", "1", "9", "65536", "2147483648", "\0", "é",
            "420", "mono",
        ]
        for _ in 0..<20_000 {
            let line =
                "YUV4MPEG2 "
                + (0..<Int.random(in: 0..<12, using: &dice)).map { _ in pieces.randomElement(using: &dice)! }.joined()
            guard let header = try? Y4MHeader(Array(line.utf8)) else { continue }
            #expect(VideoFormat.sides.contains(header.width) && VideoFormat.sides.contains(header.height))
            let rate = header.rate.isZero ? Rational(25) : header.rate
            #expect(header.videoFormat(rate: rate).impossibility == nil)
        }
    }
}

@Suite struct Y4MSourceTests {
    let folder: ScratchFolder

    init() throws {
        folder = try ScratchFolder()
        signal(SIGPIPE, SIG_IGN)
    }

    private func file(_ bytes: [UInt8]) throws -> String {
        try Data(bytes).write(to: URL(fileURLWithPath: folder.file("a.y4m")))
        return folder.file("a.y4m")
    }

    private func open(_ path: String, _ options: String = "") throws -> StageDriver<Y4MSource> {
        try StageDriver(Y4MSource.self, options: #"{ "path": "\#(path)"\#(options) }"#)
    }

    @Test func givesPicturesWithTheTimesOfTheirRate() throws {
        let path = try file(
            Array("YUV4MPEG2 W3 H3 F3:1 Ip C420jpeg\nFRAME\n".utf8) + Array(1...17) + Array("FRAME Ip\n".utf8)
                + Array(21...37))
        let driver = try open(path)
        #expect(driver.outputFormat?.video?.description == "i420 3x3 3 fps")
        #expect(try driver.produce() == .more)
        let first = try driver.nextFrame()
        #expect(first.planeBytes == [Array(1...9), Array(10...13), Array(14...17)])
        #expect(first.pts == .zero && first.duration.nanoseconds == 333_333_333)
        #expect(try driver.produce() == .more)
        let second = try driver.nextFrame()
        #expect(second.planeBytes[0] == Array(21...29))
        #expect(second.pts.nanoseconds == 333_333_333 && second.duration.nanoseconds == 333_333_334)
        #expect(try driver.produce() == .ended)
        try driver.stop()
    }

    @Test func goesBackToTheRunnerWhileItWaits() throws {
        let path = folder.file("pipe")
        #expect(mkfifo(path, 0o600) == 0)
        let writer = Glibc.open(path, O_RDWR)
        defer { close(writer) }
        func send(_ bytes: [UInt8]) { _ = bytes.withUnsafeBytes { write(writer, $0.baseAddress, $0.count) } }
        send(Array("YUV4MPEG2 W2 H2 F25:1 Cmono\nFRA".utf8))
        let driver = try open(path)
        #expect(try driver.produce() == .more)
        #expect(throws: NoFrame.self) { _ = try driver.nextFrame() }
        send(Array("ME\n".utf8) + [1, 2])
        #expect(try driver.produce() == .more)
        #expect(throws: NoFrame.self) { _ = try driver.nextFrame() }
        send([3, 4])
        #expect(try driver.produce() == .more)
        #expect(try driver.nextFrame().planeBytes == [[1, 2, 3, 4]])
        try driver.stop()
    }

    @Test(arguments: [
        ("FRAME\n12345678", "'P' ended in the middle of picture 0 (counted from 0): only 8 of its 9 bytes arrived"),
        ("FRAME\n123456789FRA", "'P' ended in the middle of picture 1 (counted from 0): none of its 9 bytes arrived"),
        (
            "FRAME\n123456789XFRAME\n",
            "picture 1 (counted from 0) of 'P' must start with FRAME: there are too few or too many bytes before it"
        ),
        ("", "'P' ended before its first picture"),
        (
            "FRAMES\n123456789",
            "picture 0 (counted from 0) of 'P' must start with FRAME: there are too few or too many bytes before it"
        ),
    ])
    func saysWhereAStreamIsCutOrDamaged(rest: String, what: String) throws {
        let path = try file(Array(("YUV4MPEG2 W3 H3 F3:1 Cmono\n" + rest).utf8))
        let driver = try open(path)
        let fault = #expect(throws: FrameHostError.self) { while try driver.produce() == .more {} }
        #expect(fault?.what == what.replacing("'P'", with: "'\(path)'"))
        try driver.stop()
    }

    @Test func refusesAStreamWithoutRateUnlessToldOne() throws {
        let path = try file(Array("YUV4MPEG2 W3 H3 Cmono\nFRAME\n123456789".utf8))
        let fault = #expect(throws: FrameHostError.self) { _ = try open(path) }
        #expect(
            fault?.description
                == "the stream of '\(path)' does not declare its frame rate. Set the option 'rate' of this stage.")
        #expect(try open(path, #", "rate": 5"#).outputFormat?.video?.frameRate == Rational(5))
    }

    /// As many bytes as may be, and one more; a line that is cut would be read as whole.
    @Test func refusesALineThatIsTooLong() throws {
        let start = "YUV4MPEG2 W3 H3 F3:1 Cmono "
        func stream(header: Int, picture: Int) -> [UInt8] {
            Array((start + String(repeating: "X", count: header - start.utf8.count) + "\n").utf8)
                + Array(("FRAME " + String(repeating: "X", count: picture - 6) + "\n123456789").utf8)
        }
        let driver = try open(try file(stream(header: 4096, picture: 1024)))
        #expect(try driver.produce() == .more)
        #expect(try driver.nextFrame().planeBytes == [Array("123456789".utf8)])
        try driver.stop()
        let path = try file(stream(header: 4097, picture: 1024))
        let fault = #expect(throws: FrameHostError.self) { _ = try open(path) }
        #expect(
            fault?.description
                == "'\(path)' cannot be read as a y4m stream: it has a first line of more than 4096 bytes. Let ffmpeg write the stream: '-f yuv4mpegpipe'."
        )
        let other = try open(try file(stream(header: 4096, picture: 1025)))
        let cut = #expect(throws: FrameHostError.self) { _ = try other.produce() }
        #expect(
            cut?.what
                == "picture 0 (counted from 0) of '\(path)' must start with FRAME: there are too few or too many bytes before it"
        )
        try other.stop()
    }

    /// One reader and one writer among the stages of a chain, whatever the pipe's name.
    @Test func claimsTheEndOfItsPipe() throws {
        let path = folder.file("pipe")
        #expect(mkfifo(path, 0o600) == 0)
        #expect(symlink(path, folder.file("link")) == 0)
        let context = StageContext(stageID: "a", folder: folder.path)
        func claim(_ name: String, _ stream: StandardStream) -> StageDemand.Claim? {
            PipePath(name, stream, context).claims(remedy: "").first
        }
        #expect(claim("pipe", .input)?.name == claim("link", .input)?.name)
        #expect(claim("pipe", .input)?.what == "reads the pipe '\(path)', as does")
        #expect(claim("pipe", .output)?.what == "writes to the pipe '\(path)', as does")
        #expect(claim("pipe", .output)?.name != claim("pipe", .input)?.name)
        #expect(claim("a.y4m", .output) == nil)
        #expect(claim("-", .output)?.name == "standard output")
    }

    @Test func refusesWhatIsNoStream() throws {
        let path = try file([UInt8](repeating: 65, count: 100_000))
        let fault = #expect(throws: FrameHostError.self) { _ = try open(path) }
        #expect(
            fault?.description
                == "'\(path)' cannot be read as a y4m stream: it must start with YUV4MPEG2. Let ffmpeg write the stream: '-f yuv4mpegpipe'. If your program already writes y4m, this stage started to read in the middle of the stream: start that program and the chain again, together."
        )
        let missing = #expect(throws: FrameHostError.self) { _ = try open("/nowhere/pipe") }
        #expect(
            missing?.description
                == "path: '/nowhere/pipe' cannot be read: No such file or directory. Create the pipe with 'mkfifo', or correct 'path'."
        )
    }
}

@Suite struct Y4MSinkTests {
    let folder: ScratchFolder

    init() throws {
        folder = try ScratchFolder()
        signal(SIGPIPE, SIG_IGN)
    }

    /// What goes in comes out, whatever the sides: of formats that the stream has as they are.
    @Test(arguments: [PixelFormat.i420, .nv12, .yuyv, .gray8, .i010, .p010], [(6, 4), (7, 5), (130, 3)])
    func writesWhatTheSourceReads(pixels: PixelFormat, size: (Int, Int)) throws {
        let format = VideoFormat(
            pixels, width: size.0, height: size.1, frameRate: Rational(25), color: ColorDescription(chromaSiting: 1))
        let path = folder.file("a.y4m")
        let sink = try StageDriver(Y4MSink.self, options: #"{ "path": "\#(path)" }"#, input: .video(format))
        let isWide = pixels.bitDepth == 10
        func sample(_ plane: Int, _ x: Int, _ y: Int) -> Int { (plane * 71 + x * 7 + y * 13) % (isWide ? 1024 : 256) }
        try sink.send(
            sink.makeFrame { frame in
                for index in 0..<frame.planeCount {
                    frame.withMutablePlane(index) { plane in
                        for y in 0..<plane.height {
                            let row = plane.row(y)
                            for x in 0..<(isWide ? plane.rowBytes / 2 : plane.rowBytes) {
                                let value = sample(index, x, y)
                                guard isWide else {
                                    row[x] = UInt8(value)
                                    continue
                                }
                                let word = pixels == .p010 ? value << 6 : value
                                (row[2 * x], row[2 * x + 1]) = (UInt8(word & 255), UInt8(word >> 8))
                            }
                        }
                    }
                }
            })
        try sink.drain()
        try sink.stop()
        let source = try StageDriver(Y4MSource.self, options: #"{ "path": "\#(path)" }"#)
        #expect(try source.produce() == .more)
        let frame = try source.nextFrame()
        let planes = frame.planeBytes
        func value(_ plane: Int, _ index: Int) -> Int {
            isWide ? Int(planes[plane][2 * index]) | Int(planes[plane][2 * index + 1]) << 8 : Int(planes[plane][index])
        }
        let (width, height) = size
        let (halfWidth, halfHeight) = ((width + 1) / 2, (height + 1) / 2)
        switch pixels {
        case .yuyv:
            for y in 0..<height {
                for x in 0..<(halfWidth * 4) where x / 4 * 2 + (x % 4) / 2 < width || x % 2 == 1 {
                    #expect(planes[0][y * halfWidth * 4 + x] == UInt8(sample(0, x, y)))
                }
            }
        case .nv12, .p010:
            for y in 0..<height { for x in 0..<width { #expect(value(0, y * width + x) == sample(0, x, y)) } }
            for y in 0..<halfHeight {
                for x in 0..<halfWidth {
                    #expect(value(1, y * halfWidth + x) == sample(1, 2 * x, y))
                    #expect(value(2, y * halfWidth + x) == sample(1, 2 * x + 1, y))
                }
            }
        default:
            for index in 0..<frame.planeCount {
                let (across, down) = index == 0 ? (width, height) : (halfWidth, halfHeight)
                for y in 0..<down {
                    for x in 0..<across { #expect(value(index, y * across + x) == sample(index, x, y)) }
                }
            }
        }
        #expect(try source.produce() == .ended)
    }

    @Test func saysThatTheReaderHasGone() throws {
        let path = folder.file("pipe")
        #expect(mkfifo(path, 0o600) == 0)
        let reader = Glibc.open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
        let format = VideoFormat(.gray8, width: 64, height: 64, frameRate: Rational(25))
        let sink = try StageDriver(Y4MSink.self, options: #"{ "path": "\#(path)" }"#, input: .video(format))
        try sink.send(sink.makeFrame())
        close(reader)
        // A program that another test starts just now may hold the reading end a moment longer.
        let fault = #expect(throws: FrameHostError.self) { while true { try sink.send(sink.makeFrame()) } }
        #expect(fault?.what == "the program that reads '\(path)' has closed it")
    }

    /// The pipe has room for all of a short stream: its reader goes after the last picture was written.
    @Test func saysThatTheReaderHasGoneWithoutTheRest() throws {
        var path = ""
        var fault: FrameHostError?
        // A program that another test starts just now may hold the reading end for longer than the sink waits.
        for attempt in 1...5 where fault == nil {
            path = folder.file("pipe\(attempt)")
            #expect(mkfifo(path, 0o600) == 0)
            let reader = Glibc.open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
            let format = VideoFormat(.gray8, width: 64, height: 64, frameRate: Rational(25))
            let sink = try StageDriver(Y4MSink.self, options: #"{ "path": "\#(path)" }"#, input: .video(format))
            try sink.send(sink.makeFrame())
            var some = [UInt8](repeating: 0, count: 100)
            #expect(read(reader, &some, some.count) == 100)
            close(reader)
            do { try sink.drain() } catch { fault = FrameHostError.wrap(error) }
        }
        #expect(fault?.what == "the program that reads '\(path)' has closed it")
    }

    @Test func endsWellWhereTheReaderHasTakenAllAndGoes() throws {
        let path = folder.file("pipe")
        #expect(mkfifo(path, 0o600) == 0)
        let reader = Glibc.open(path, O_RDONLY | O_NONBLOCK)
        let format = VideoFormat(.gray8, width: 16, height: 16, frameRate: Rational(25))
        let sink = try StageDriver(Y4MSink.self, options: #"{ "path": "\#(path)" }"#, input: .video(format))
        try sink.send(sink.makeFrame())
        var all = [UInt8](repeating: 0, count: 4096)
        #expect(read(reader, &all, all.count) > 256)
        close(reader)
        try sink.drain()
        try sink.stop()
    }

    /// A reader that is slow to begin finds the stream in the pipe.
    @Test func leavesTheRestInThePipeForAReaderThatIsThere() throws {
        let path = folder.file("pipe")
        #expect(mkfifo(path, 0o600) == 0)
        let reader = Glibc.open(path, O_RDONLY | O_NONBLOCK)
        defer { close(reader) }
        let writer = try PipeWriter(path: path, RunFiles(), as: "test")
        #expect([1, 2, 3].withUnsafeBytes { writer.write($0) { false } } == .written)
        #expect(writer.finish { false } == .written)
        #expect(writer.finish { true } == .stopped)
    }

    /// A pipe that is full: what waits in it ends when it is told to.
    @Test func stopsWhileItsReaderTakesNothing() throws {
        let path = folder.file("pipe")
        #expect(mkfifo(path, 0o600) == 0)
        let reader = Glibc.open(path, O_RDONLY | O_NONBLOCK)
        defer { close(reader) }
        let writer = try PipeWriter(path: path, RunFiles(), as: "test")
        let bytes = [UInt8](repeating: 1, count: 4 << 20)
        var looks = 0
        let end = bytes.withUnsafeBytes { bytes in
            writer.write(bytes) {
                looks += 1
                return looks > 20
            }
        }
        #expect(end == .stopped)
    }

    @Test func saysOnceThatAPictureLiesOtherwise() throws {
        let format = VideoFormat(.gray8, width: 8, height: 8, frameRate: Rational(25))
        let sink = try StageDriver(
            Y4MSink.self, options: #"{ "path": "\#(folder.file("turned.y4m"))" }"#, input: .video(format))
        for (number, orientation) in [Orientation.up, .right, .right, .up, .left].enumerated() {
            try sink.send(
                sink.makeFrame(pts: MediaTime(seconds: Double(number) / 25)) { $0.orientation = orientation })
        }
        let told = sink.takeEvents().filter { $0.name == "orientation-not-carried" }
        #expect(
            told.map(\.text) == [
                "From frame 1 on the pictures are stored turned 90°, but were declared as upright. y4m cannot store that, so players show them turned wrongly. To have all pictures upright, put a 'crop-orient' with a 'size' before this stage."
            ])
    }

    @Test func saysOnceThatPicturesAreMissing() throws {
        let format = VideoFormat(.gray8, width: 8, height: 8, frameRate: Rational(25))
        let sink = try StageDriver(
            Y4MSink.self, options: #"{ "path": "\#(folder.file("a.y4m"))" }"#, input: .video(format))
        for seconds in [0, 0.04, 0.08, 0.16, 0.20, 0.5] {
            try sink.send(sink.makeFrame(pts: MediaTime(seconds: seconds)))
        }
        let gaps = sink.takeEvents().filter { $0.name == "gap" }
        #expect(
            gaps.map(\.text) == [
                "Pictures are missing: one came 0.08 s after the one before it. y4m stores no times, so the pictures after the gap are too early in the stream. To fill gaps, put a stage 'rate' before this one. Later gaps are not reported."
            ])
    }

    @Test func refusesAVariableRate() throws {
        let format = VideoFormat(.i420, width: 8, height: 8)
        let fault = #expect(throws: FrameHostError.self) {
            _ = try StageDriver(Y4MSink.self, input: .video(format))
        }
        #expect(
            fault?.description
                == "y4m needs a constant frame rate, but the rate of the pictures varies. Put a stage 'rate' before this one."
        )
    }
}
