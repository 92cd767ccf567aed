// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Testing

@testable import FileSource

@Suite(.needsFFmpeg) struct ImageSourceTests {
    let folder: ScratchFolder

    init() throws { folder = try ScratchFolder() }

    /// A picture of one colour.
    private func picture(
        _ name: String, _ color: String = "red", size: String = "64x48", _ options: String...
    ) throws {
        let program = try #require(Tool.ffmpeg, "ffmpeg is not installed: make test-packages")
        try Tool.run(
            program,
            ["-nostdin", "-v", "error", "-y", "-f", "lavfi", "-i", "color=\(color):size=\(size)", "-frames:v", "1"]
                + options + ["-update", "1", folder.file(name)])
    }

    private func open(_ options: String, clock: ChainClock = ManualClock(at: 1_000_000_000)) throws
        -> StageDriver<ImageSource>
    {
        try StageDriver(ImageSource.self, options: options, folder: folder.path, clock: clock)
    }

    /// Luma in the middle of each frame, and its time in frames of 1/25 s.
    private func play(_ driver: StageDriver<ImageSource>, atMost most: Int = 100) throws -> (
        luma: [Int], ticks: [Int64]
    ) {
        var luma: [Int] = []
        var ticks: [Int64] = []
        while luma.count < most {
            let isOver = try driver.produce() == .ended
            while let frame = driver.takeFrame() {
                luma.append(Self.luma(frame))
                ticks.append(TimeBase(1, 25).ticks(of: frame.pts))
            }
            if isOver { break }
        }
        return (luma, ticks)
    }

    private static func luma(_ frame: borrowing Frame) -> Int {
        frame.withPlane(0) { Int($0.row($0.height / 2)[$0.rowBytes / 2]) }
    }

    /// What ffmpeg writes of each kind.
    private static let pixels = ["jpg": "yuvj420p", "webp": "yuv420p", "bmp": "bgr24"]
    /// Luma of BT.601 in video range.
    private static let (red, white, black, blue) = (81, 235, 16, 41)

    @Test(arguments: ["png", "jpg", "webp", "bmp", "tif", "gif", "ppm"])
    func showsAPictureForEver(kind: String) throws {
        // ffmpeg's colours of GIF have no white.
        try picture(
            "a.\(kind)", "white", size: "64x48", "-pix_fmt", kind == "gif" ? "gray" : Self.pixels[kind] ?? "rgb24")
        let driver = try open(#"{ "path": "a.\#(kind)" }"#)
        let format = try #require(driver.outputFormat?.video)
        #expect(format.description == "i420 64x48 25 fps")
        #expect(format.color.range == .video && format.color.matrix == 6)
        let (luma, ticks) = try play(driver, atMost: 30)
        #expect(luma.count == 30 && luma.allSatisfy { abs($0 - Self.white) <= 1 }, "\(luma)")
        #expect(ticks == Array(0..<30))
        #expect(driver.stage.demand.expectedItems == nil)
        #expect(driver.stage.demand.floor == 2)
        #expect(driver.takeEvents().contains { $0.text.contains("is shown until the run is ended") })
        try driver.stop()
    }

    @Test func sharesOneBufferAmongTheFramesOfAPicture() throws {
        try picture("a.png")
        let driver = try open(#"{ "path": "a.png", "seconds": 0.12 }"#)
        #expect(driver.stage.demand.expectedItems == 3)
        for _ in 0..<3 { #expect(try driver.produce() == .more) }
        let first = try driver.nextFrame()
        let second = try driver.nextFrame()
        let third = try driver.nextFrame()
        let bases = [base(first), base(second), base(third)]
        #expect(bases[0] == bases[1] && bases[1] == bases[2])
        #expect(try driver.produce() == .ended)
        try driver.stop()
    }

    private func base(_ frame: borrowing Frame) -> UnsafePointer<UInt8> { frame.withPlane(0) { $0.baseAddress } }

    @Test func takesNumbersByTheirValueOrNamesByteByByte() throws {
        for (name, color) in [("img2.png", "red"), ("img10.png", "white"), ("img1.png", "black")] {
            try picture(name, color)
        }
        #expect(try play(open(#"{ "path": "." }"#)).luma == [Self.black, Self.red, Self.white])
        #expect(try play(open(#"{ "path": "img*.png", "order": "name" }"#)).luma == [Self.black, Self.white, Self.red])
    }

    @Test(arguments: [
        ["img1", "img2", "img10"], ["a1b2", "a1b10", "a2b1"], ["7", "07", "8", "08a"], ["a", "a0", "a00", "b"],
        ["x99999999999999999998", "x99999999999999999999", "x100000000000000000000"],
    ])
    func ordersNamesAsPeopleCount(names: [String]) {
        let sorted = names.shuffled().sorted(by: NaturalOrder.precedes)
        if names[0] == "7" {
            // Those of equal value come byte by byte.
            #expect(Set(sorted.prefix(2)) == ["7", "07"])
        } else {
            #expect(sorted == names)
        }
        for a in names {
            for b in names where a != b { #expect(NaturalOrder.precedes(a, b) != NaturalOrder.precedes(b, a)) }
        }
    }

    @Test func showsEachPictureForItsSecondsWithoutDrift() throws {
        for name in ["1.png", "2.png", "3.png"] { try picture(name, name == "2.png" ? "white" : "black") }
        // 1.6 frames each: 2, 1 and 2 of them.
        let driver = try open(#"{ "path": ".", "seconds": 0.064 }"#)
        #expect(driver.stage.demand.expectedItems == 5)
        let (luma, ticks) = try play(driver)
        #expect(luma == [Self.black, Self.black, Self.white, Self.black, Self.black])
        #expect(ticks == Array(0..<5))
    }

    @Test func scalesOthersIntoTheFirstWithBarsAndSaysSo() throws {
        try picture("1.png", "white", size: "64x48")
        try picture("2.png", "white", size: "48x48")
        try picture("3.png", "white", size: "640x480")
        let driver = try open(#"{ "path": "." }"#)
        #expect(
            driver.takeEvents().map(\.text).contains(
                "3 pictures, 2 of another size and scaled to 64x48, with bars where the shape differs."))
        var corners: [UInt8] = []
        while try driver.produce() == .more {
            while let frame = driver.takeFrame() { corners.append(frame.withPlane(0) { $0.row(24)[0] }) }
        }
        #expect(corners == [235, 16, 235])
        try driver.stop()
    }

    @Test func readsTheFolderAnewAtEachPass() throws {
        try picture("1.png", "white")
        let driver = try open(#"{ "path": ".", "loop": true }"#)
        #expect(try play(driver, atMost: 2).luma == [Self.white, Self.white])
        try picture("2.png", "black")
        let (luma, ticks) = try play(driver, atMost: 4)
        #expect(
            luma == [Self.white, Self.black, Self.white, Self.black]
                || luma == [Self.black, Self.white, Self.black, Self.white])
        #expect(ticks == [2, 3, 4, 5])
    }

    @Test func namesDamagedPicturesLeavesThemOutAndEndsWithAFault() throws {
        try picture("1.png", "white")
        try picture("2.jpg", "red", size: "320x240")
        try picture("3.png", "black")
        try picture("4.png", "black", size: "320x240")
        // Headers are whole: the damage shows when it is decoded.
        for name in ["2.jpg", "4.png"] {
            let data = try Data(contentsOf: URL(fileURLWithPath: folder.file(name)))
            try data.prefix(data.count * 2 / 3).write(to: URL(fileURLWithPath: folder.file(name)))
        }
        try Data("no picture".utf8).write(to: URL(fileURLWithPath: folder.file("5.png")))
        let driver = try open(#"{ "path": "." }"#)
        #expect(try play(driver).luma == [Self.white, Self.black])
        let named = driver.takeEvents().filter { $0.name == "picture-damaged" }.map(\.text)
        #expect(named.count == 3)
        for name in ["2.jpg", "4.png", "5.png"] {
            #expect(
                named.contains { $0.hasPrefix("'\(folder.path)/./\(name)'") || $0.hasPrefix("'\(folder.file(name))'") },
                "\(named)")
        }
        let fault = #expect(throws: FrameHostError.self) { try driver.stop() }
        #expect(fault?.what.hasPrefix("3 pictures could not be shown and were left out: ") == true)
    }

    @Test func namesAPictureThatIsLeftOutOnce() {
        #expect(
            LeftOutPictures.text("a.png", ImageFault.damaged("a.png"))
                == "'a.png' is damaged: not all of the picture can be decoded; the file is left out. Copy or create it again."
        )
        #expect(
            LeftOutPictures.text("a.png", ImageFault.noPicture("a.png", cause: "Invalid data")) == """
                'a.png' is not a picture that libavcodec can read; the file is left out. Check it with 'ffprobe': it may be damaged, or larger than libavcodec reads.
                  Invalid data
                """)
        #expect(
            LeftOutPictures.text("a.png", FrameHostError(.exhausted, what: "not enough memory for a decoder"))
                == "'a.png' is left out: not enough memory for a decoder.")
    }

    @Test func refusesAZeroCharacterInThePath() {
        #expect {
            _ = try open(#"{ "path": "a\u0000.png" }"#)
        } throws: { "\($0)".hasSuffix("'path' must not contain the character U+0000. Remove its \\u0000.") }
    }

    /// As archives and memory cards of others bring them.
    @Test(arguments: [".", "*.png"])
    func namesPicturesWhoseNamesAreNotUTF8LeavesThemOutAndEndsWithAFault(path: String) throws {
        try picture("b.png")
        let latin = Array((folder.path + "/caf").utf8) + [0xE9] + Array(".png".utf8) + [0]
        let isMade = latin.withUnsafeBufferPointer { bytes in
            bytes.withMemoryRebound(to: CChar.self) { link(folder.file("b.png"), $0.baseAddress!) == 0 }
        }
        #expect(isMade)
        let options = #"{ "path": "\#(path)" }"#
        let driver = try open(options)
        #expect(try play(driver).luma == [Self.red])
        let events = driver.takeEvents()
        #expect(
            events.contains {
                $0.text.hasPrefix("the name of a picture is not valid UTF-8: '")
                    && $0.text.hasSuffix(#"caf\xE9.png'; it is left out."#)
            }, "\(events)")
        let named = events.filter { $0.name == "picture-damaged" }.map(\.text)
        #expect(named.count == 1 && named[0].contains(#"caf\xE9.png' is left out: its name is not valid UTF-8."#))
        let fault = #expect(throws: FrameHostError.self) { try driver.stop() }
        #expect(fault?.what.hasPrefix("1 picture could not be shown and was left out: '") == true)
        unlink(folder.file("b.png"))
        let alone = #expect(throws: FrameHostError.self) { _ = try open(options) }
        #expect(alone?.description.hasPrefix("path: the name of a picture is not valid UTF-8: '") == true, "\(alone!)")
    }

    @Test func refusesWhatIsNotThere() throws {
        try FileManager.default.createDirectory(atPath: folder.file("empty"), withIntermediateDirectories: true)
        try Data("text".utf8).write(to: URL(fileURLWithPath: folder.file("empty/readme.txt")))
        try FileManager.default.createDirectory(atPath: folder.file("bad"), withIntermediateDirectories: true)
        try Data("text".utf8).write(to: URL(fileURLWithPath: folder.file("bad/a.png")))
        let cases = [
            (
                "empty",
                "path: the folder '\(folder.file("empty"))' contains no picture. Put pictures there. For names with unusual extensions, write a pattern, such as \"shots/*.img\"."
            ),
            (
                "none*.png",
                "path: no file matches '\(folder.file("none*.png"))'. Correct 'path', and check that this user may read its folders."
            ),
            (
                "img%03d.png",
                "path: '\(folder.file("img%03d.png"))' does not exist. Write a pattern for numbered files: \"\(folder.file("img*.png"))\"."
            ),
            (
                "a.png",
                "path: '\(folder.file("a.png"))' does not exist. Correct 'path'. A relative path starts at the chain file's folder."
            ),
        ]
        for (path, text) in cases {
            let fault = #expect(throws: FrameHostError.self) { _ = try open(#"{ "path": "\#(path)" }"#) }
            #expect(fault?.description == text)
        }
        let fault = #expect(throws: FrameHostError.self) { _ = try open(#"{ "path": "bad" }"#) }
        #expect(fault?.what == "the only picture of '\(folder.file("bad"))' cannot be read")
    }

    /// Half transparent red.
    @Test func composesAlphaOntoAColourOrKeepsIt() throws {
        let path = try TestPNG(width: 16, height: 16) { _, _ in (255, 0, 0, 128) }.write()
        defer { unlink(path) }
        let blue = try open(##"{ "path": "\##(path)", "format": "rgb24", "color": "#0000ff" }"##)
        _ = try blue.produce()
        let mixed = try blue.nextFrame()
        #expect(mixed.withPlane(0) { Array($0.row(8)[0..<3]) } == [128, 0, 127])
        let kept = try open(#"{ "path": "\#(path)", "format": "bgra" }"#)
        _ = try kept.produce()
        let own = try kept.nextFrame()
        #expect(own.withPlane(0) { Array($0.row(8)[0..<4]) } == [0, 0, 255, 128])
    }

    @Test func carriesTheOrientationOfExif() throws {
        try picture("plain.jpg", "white")
        // APP1 with one Exif entry behind SOI: tag 0x0112, value 6 (turned to the right).
        var bytes = try Data(contentsOf: URL(fileURLWithPath: folder.file("plain.jpg")))
        let tiff: [UInt8] = [
            0x4d, 0x4d, 0, 0x2a, 0, 0, 0, 8, 0, 1, 0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, 6, 0, 0, 0, 0, 0, 0,
        ]
        let payload = Array("Exif\0\0".utf8) + tiff
        bytes.insert(contentsOf: [0xff, 0xe1, 0, UInt8(payload.count + 2)] + payload, at: 2)
        try bytes.write(to: URL(fileURLWithPath: folder.file("turned.jpg")))
        let driver = try open(#"{ "path": "turned.jpg" }"#)
        #expect(driver.outputFormat?.video?.orientation == .right)
        _ = try driver.produce()
        #expect(try driver.nextFrame().orientation == .right)
    }

    /// A few hundred bytes that say 60000x4000: nothing of that is taken before the plan has counted it.
    @Test func countsAHostileSizeInsteadOfTakingIt() throws {
        let png = TestPNG(width: 4, height: 4) { _, _ in (1, 2, 3, 255) }
        var bytes = try Data(contentsOf: URL(fileURLWithPath: png.write()))
        bytes.replaceSubrange(16..<24, with: [0, 0, 0xea, 0x60, 0, 0, 0x0f, 0xa0])
        // Its check sum, as zlib has it.
        var crc: UInt32 = 0xffff_ffff
        for byte in bytes[12..<29] {
            crc ^= UInt32(byte)
            for _ in 0..<8 { crc = crc & 1 == 1 ? crc >> 1 ^ 0xedb8_8320 : crc >> 1 }
        }
        crc = ~crc
        bytes.replaceSubrange(29..<33, with: (0..<4).map { UInt8(truncatingIfNeeded: crc >> (24 - 8 * $0)) })
        try bytes.write(to: URL(fileURLWithPath: folder.file("huge.png")))
        let measure = try StillReader().measure(folder.file("huge.png"))
        #expect((measure.width, measure.height) == (60_000, 4_000))
        #expect(measure.byteCount >= 60_000 * 4_000 * 4)
        // Beside a picture of its own size it is left out, and takes nothing.
        #expect(throws: FrameHostError.self) { _ = try StillReader().read(folder.file("huge.png"), mostPixels: 1000) }
        try picture("a.png")
        let measures = ImageMeasures([folder.file("a.png"), folder.file("huge.png")], try StillReader())
        #expect(measures.first?.path == folder.file("a.png"))
        #expect(measures.ownBytes >= 2 * 60_000 * 4_000 * 4)
    }

    @Test func givesLiveFramesWhenTheyAreDue() throws {
        try picture("a.png", "white")
        let clock = ManualClock(at: 5_000_000_000)
        let driver = try open(#"{ "path": "a.png", "live": true, "rate": 10 }"#, clock: clock)
        #expect(driver.stage.demand.isLive)
        var times: [Int64] = []
        for _ in 0..<3 {
            #expect(try driver.produce() == .more)
            times.append(try driver.nextFrame().pts.nanoseconds - 5_000_000_000)
        }
        #expect(times == [0, 100_000_000, 200_000_000])
        clock.advance(to: 5_550_000_000)
        #expect(try driver.produce() == .more)
        let late = try driver.nextFrame()
        #expect(late.isDiscontinuity && late.pts.nanoseconds == 5_550_000_000)
    }

    @Test func givesGreyPicturesTheirFullRange() throws {
        try picture("a.png", "white", size: "64x48", "-pix_fmt", "gray")
        #expect(try play(open(#"{ "path": "a.png", "seconds": 0.04 }"#)).luma == [235])
    }
}
