// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Shared
import Testing

@testable import Lettering
@testable import Text

@Suite struct TextTests {
    /// Noise that is the same each time; or one value.
    static func fill(_ frame: inout Frame, value: UInt8? = nil, seed: UInt64 = 7) {
        var state = seed
        for plane in 0..<frame.planeCount {
            frame.withMutablePlane(plane) { plane in
                for y in 0..<plane.height {
                    for index in plane.row(y).indices {
                        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                        plane.row(y)[index] = value ?? UInt8(truncatingIfNeeded: state >> 56)
                    }
                }
            }
        }
    }

    /// What the stage makes of a picture.
    static func draw(_ options: String, _ format: VideoFormat, value: UInt8? = nil) throws -> (
        before: [[UInt8]], after: [[UInt8]]
    ) {
        let driver = try StageDriver(TextOverlay.self, options: options, input: .video(format))
        var before: [[UInt8]] = []
        try driver.send(
            driver.makeFrame {
                fill(&$0, value: value)
                before = $0.planeBytes
            })
        return (before, try driver.nextFrame().planeBytes)
    }

    /// How much letters, and the line around them where they do not cover it, cover each pixel, 0...1: white on black
    /// in gray.
    static func coverage(_ options: String, _ size: (width: Int, height: Int)) throws -> (ink: [Double], edge: [Double])
    {
        let format = VideoFormat(
            .gray8, width: size.width, height: size.height, color: ColorDescription(range: .full))
        let white = ##""#ffffff""##
        let black = ##""#000000""##
        let ink = try draw("{ \(options), \"color\": \(white), \"outlineColor\": \(black) }", format, value: 0).after[0]
        let edge = try draw("{ \(options), \"color\": \(black), \"outlineColor\": \(white) }", format, value: 0).after[
            0]
        return (ink.map { Double($0) / 255 }, edge.map { Double($0) / 255 })
    }

    /// Y, U and V of a colour, ISO/IEC 23091-2 equations 4 to 6 and 29 to 31, in the samples of 8 bits.
    static func yuv(_ red: Double, _ green: Double, _ blue: Double, kr: Double, kb: Double, isVideo: Bool) -> [Double] {
        let y = kr * red + (1 - kr - kb) * green + kb * blue
        let (u, v) = ((blue - y) / (2 * (1 - kb)), (red - y) / (2 * (1 - kr)))
        return isVideo ? [16 + 219 * y, 128 + 224 * u, 128 + 224 * v] : [255 * y, 128 + 255 * u, 128 + 255 * v]
    }

    @Test(
        arguments: [PixelFormat.i420, .nv12, .bgra, .gray8], [(160, 90), (161, 91), (7, 5), (2, 1), (1, 1)])
    func blendsAsAFloatComputationDoes(pixelFormat: PixelFormat, size: (Int, Int)) throws {
        let (width, height) = size
        let place = #""text": "Äg{frame}", "size": 40, "outline": 2.5, "position": "center""#
        let (ink, edge) = try Self.coverage(place, (width, height))
        for (matrix, kr, kb, isVideo) in [(1, 0.2126, 0.0722, true), (6, 0.299, 0.114, false)]
            as [(UInt8, Double, Double, Bool)]
        {
            let format = VideoFormat(
                pixelFormat, width: width, height: height,
                color: ColorDescription(range: isVideo ? .video : .full, matrix: matrix))
            let style = ##""color": "#ff8020", "outlineColor": "#102080", "opacity": 0.8"##
            let (before, after) = try Self.draw("{ \(place), \(style) }", format)
            // Components of the two colours and the picture's plane, offset and step of each.
            let inkRGB = [255.0, 128, 32].map { $0 / 255 }
            let edgeRGB = [16.0, 32, 128].map { $0 / 255 }
            let isRGB = pixelFormat == .bgra
            let inkColor =
                isRGB
                ? inkRGB.reversed().map { $0 * 255 }
                : Self.yuv(inkRGB[0], inkRGB[1], inkRGB[2], kr: kr, kb: kb, isVideo: isVideo)
            let edgeColor =
                isRGB
                ? edgeRGB.reversed().map { $0 * 255 }
                : Self.yuv(edgeRGB[0], edgeRGB[1], edgeRGB[2], kr: kr, kb: kb, isVideo: isVideo)
            for component in 0..<(pixelFormat == .gray8 ? 1 : 3) {
                let isShared = component > 0 && !isRGB
                let (columns, rows) = isShared ? ((width + 1) / 2, (height + 1) / 2) : (width, height)
                let side = isShared ? 2 : 1
                let plane = pixelFormat == .i420 ? component : pixelFormat == .nv12 ? min(component, 1) : 0
                let step = isRGB ? 4 : pixelFormat == .nv12 && component > 0 ? 2 : 1
                let offset = isRGB ? component : pixelFormat == .nv12 && component > 0 ? component - 1 : 0
                for row in 0..<rows {
                    for column in 0..<columns {
                        var (i, e, count) = (0.0, 0.0, 0.0)
                        for y in row * side..<min((row + 1) * side, height) {
                            for x in column * side..<min((column + 1) * side, width) {
                                i += ink[y * width + x] * 0.8
                                e += edge[y * width + x] * 0.8
                                count += 1
                            }
                        }
                        (i, e) = (i / count, e / count)
                        let index = (row * columns + column) * step + offset
                        let wanted =
                            Double(before[plane][index]) * (1 - i - e) + inkColor[component] * i + edgeColor[component]
                            * e
                        #expect(
                            abs(Double(after[plane][index]) - wanted) <= 2, "component \(component) at \(column),\(row)"
                        )
                        if i + e == 0 { #expect(after[plane][index] == before[plane][index]) }
                    }
                }
            }
        }
    }

    @Test func laysABoxBehindAndLeavesAllElse() throws {
        let format = VideoFormat(.i420, width: 320, height: 180, color: ColorDescription(matrix: 1))
        let (before, after) = try Self.draw(
            ##"{ "text": ".", "size": 20, "position": "topLeft", "margin": [10, 20], "box": true, "boxColor": "#ff0000", "boxOpacity": 1,"##
                + ##" "boxPadding": 8, "opacity": 0 }"##, format)
        // Red in BT.709, video range: 63, 102, 240.
        // What noise has of that value is single pixels: the box is where two neighbours have it.
        let inside = (0..<320 * 179).filter { after[0][$0] == 63 && after[0][$0 + 1] == 63 && after[0][$0 + 320] == 63 }
        let (columns, rows) = (inside.map { $0 % 320 }, inside.map { $0 / 320 })
        let (right, bottom) = (columns.max()! + 2, rows.max()! + 2)
        #expect(columns.min() == 10 && rows.min() == 20)
        #expect(right > 26 && right < 40 && bottom > 56 && bottom < 64)
        for y in 0..<180 {
            for x in 0..<320 {
                let isInside = (10..<right).contains(x) && (20..<bottom).contains(y)
                #expect(after[0][y * 320 + x] == (isInside ? 63 : before[0][y * 320 + x]))
                let chroma = y / 2 * 160 + x / 2
                #expect(after[1][chroma] == (isInside ? 102 : before[1][chroma]))
                #expect(after[2][chroma] == (isInside ? 240 : before[2][chroma]))
            }
        }
    }

    @Test(arguments: [#"[-30, 40]"#, #"["-5%", "-20%"]"#, "-400", "[400, 10]", "[10, -17]"])
    func isCutAtThePictureEdge(margin: String) throws {
        let large = VideoFormat(.gray8, width: 1100, height: 1060, color: ColorDescription(range: .full))
        let small = VideoFormat(.gray8, width: 300, height: 260, color: ColorDescription(range: .full))
        func options(_ margin: String) -> String {
            #"{ "text": "wide text\ntwo", "size": 40, "position": "topLeft", "margin": \#(margin), "outline": 1, "box": true }"#
        }
        let cut = try Self.draw(options(margin), small, value: 90).after[0]
        let node = try JSONReader.read(Array(margin.utf8), file: "")
        let (x, y) = { ($0.x.pixels(of: 300), $0.y.pixels(of: 260)) }(try Margin.decodeOption(node))
        let whole = try Self.draw(options("[\(Int(x) + 400), \(Int(y) + 400)]"), large, value: 90).after[0]
        for row in 0..<260 {
            #expect(
                Array(cut[row * 300..<(row + 1) * 300])
                    == Array(whole[(row + 400) * 1100 + 400..<(row + 400) * 1100 + 700]))
        }
    }

    @Test(arguments: Orientation.allCases) func standsUprightInATurnedPicture(orientation: Orientation) throws {
        let options = #"{ "text": "F7", "size": 30, "position": "topLeft", "margin": [12, 4] }"#
        let upright = try Self.draw(options, VideoFormat(.gray8, width: 120, height: 80), value: 16).after[0]
        let (width, height) = orientation.swapsSides ? (80, 120) : (120, 80)
        let driver = try StageDriver(
            TextOverlay.self, options: options,
            input: .video(VideoFormat(.gray8, width: width, height: height, orientation: orientation)))
        let frame = try driver.makeFrame { Self.fill(&$0, value: 16) }
        frame.orientation = orientation
        try driver.send(frame)
        let stored = try driver.nextFrame().planeBytes[0]
        for y in 0..<height {
            for x in 0..<width {
                // As a player shows it: mirrored first, then turned clockwise.
                let column = orientation.isMirrored ? width - 1 - x : x
                let shown =
                    switch orientation.quarterTurns {
                    case 0: (x: column, y: y)
                    case 1: (x: height - 1 - y, y: column)
                    case 2: (x: width - 1 - column, y: height - 1 - y)
                    default: (x: y, y: width - 1 - column)
                    }
                #expect(stored[y * width + x] == upright[shown.y * 120 + shown.x])
            }
        }
    }

    @Test(arguments: [
        ("topLeft", 0, 0), ("top", 1, 0), ("right", 2, 1), ("center", 1, 1), ("bottomLeft", 0, 2),
        ("bottomRight", 2, 2),
    ])
    func standsWhereItIsTold(position: String, column: Int, row: Int) throws {
        let options = #""text": "Hxp", "size": 20, "margin": 0, "position": "\#(position)""#
        let ink = try Self.coverage(options, (301, 201)).ink
        let columns = (0..<301).filter { x in (0..<201).contains { ink[$0 * 301 + x] > 0 } }
        let rows = (0..<201).filter { y in ink[y * 301..<(y + 1) * 301].contains { $0 > 0 } }
        let (middle, center) = ((columns.first! + columns.last!) / 2, (rows.first! + rows.last!) / 2)
        #expect(
            abs(middle - [24, 150, 277][column]) <= 6 && abs(center - [13, 100, 187][row]) <= 6, "\(middle), \(center)")
    }

    @Test func movesPairsOfLettersCloser() throws {
        let layout = TextLayout(try FontFace(path: FontFile.path(nil))) { _ in }
        try layout.set(size: 48, outline: 0)
        func width(_ text: String) throws -> Int {
            try layout.lay(Array(text.utf8), align: .left)
            return layout.width
        }
        // As HarfBuzz lays them out: 33 + 33 - 3.
        #expect(try (width("A"), width("V"), width("AV")) == (33, 33, 63))
        #expect(try width("HH") == 2 * width("H"))
    }

    /// Letters with marks of their own look as those the font has in one: at the same place, the mark higher by at most
    /// a tenth of the em, the same ink.
    @Test(arguments: [
        ("é", "e\u{301}"), ("Ä", "A\u{308}"), ("ñ", "n\u{303}"), ("ç", "c\u{327}"), ("Ů", "U\u{30A}"),
        ("ệ", "e\u{323}\u{302}"),
    ])
    func putsMarksOntoTheirLetters(whole: String, parts: String) throws {
        func drawn(_ text: String) throws -> (box: [Int], ink: Double) {
            let ink = try Self.coverage(
                #""text": "n\#(text)n", "size": 64, "position": "topLeft", "margin": 20"#, (200, 140)
            ).ink
            let columns = (0..<200).filter { x in (0..<140).contains { ink[$0 * 200 + x] > 0.2 } }
            let rows = (0..<140).filter { y in ink[y * 200..<(y + 1) * 200].contains { $0 > 0.2 } }
            return ([columns.first!, columns.last!, rows.first!, rows.last!], ink.reduce(0, +))
        }
        let (one, two) = (try drawn(whole), try drawn(parts))
        // The text's box begins with the highest mark: seen from there all rows may move together.
        #expect(one.box[0] == two.box[0] && one.box[1] == two.box[1])
        #expect(abs((one.box[3] - one.box[2]) - (two.box[3] - two.box[2])) <= 6, "\(one.box), \(two.box)")
        #expect(abs(two.ink / one.ink - 1) < 0.02, "\(one.ink), \(two.ink)")
    }

    @Test func tellsOfEachMissingLetterOnce() throws {
        let driver = try StageDriver(
            TextOverlay.self, options: #"{ "text": "漢{frame}漢\u0001" }"#,
            input: .video(VideoFormat(.i420, width: 320, height: 180)))
        for _ in 0..<5 { try driver.send(driver.makeFrame()) }
        let warnings = driver.takeEvents().filter { $0.level == .warning }.map(\.text)
        let path = try FontFile.path(nil)
        #expect(
            warnings == [
                "text: \(path) has no character '漢' (U+6F22); a box is shown instead. Set 'font' to a font file that has this character."
            ]
        )
        let ink = try Self.coverage(#""text": "漢", "size": 40, "position": "topLeft", "margin": 0"#, (60, 60)).ink
        // A frame of 20x28 with lines two wide.
        #expect(ink.filter { $0 == 1 }.count == 20 * 28 - 16 * 24)
        #expect(ink.filter { $0 > 0 && $0 < 1 }.isEmpty)
    }

    @Test func changesWhileRunning() throws {
        let driver = try StageDriver(
            TextOverlay.self, options: #"{ "text": "a", "size": 40 }"#,
            input: .video(VideoFormat(.gray8, width: 320, height: 180)))
        func draw() throws -> [UInt8] {
            try driver.send(driver.makeFrame { Self.fill(&$0, value: 16) })
            return try driver.nextFrame().planeBytes[0]
        }
        let first = try draw()
        #expect(try draw() == first)
        try driver.set(#"{ "text": "b" }"#)
        let second = try draw()
        #expect(second != first)
        #expect(throws: FrameHostErrors.self) { try driver.set(#"{ "text": "{nope}" }"#) }
        #expect(throws: FrameHostErrors.self) { try driver.set(#"{ "font": "x.ttf" }"#) }
        #expect(try draw() == second)
        try driver.set(#"{ "text": "a", "position": "topRight" }"#)
        let moved = try draw()
        #expect(moved != first && moved.max() == first.max())
        try driver.set(#"{ "text": "" }"#)
        #expect(try draw().allSatisfy { $0 == 16 })
    }

    /// A clock of seconds over four seconds of pictures, then a frame number: one drawing for each text there is to
    /// see.
    @Test func drawsOnlyWhenTheTextChanges() throws {
        let clock = ManualClock(at: 1_000_000_000)
        let driver = try StageDriver(
            TextOverlay.self, options: #"{ "text": "{time} {chain}" }"#,
            input: .video(VideoFormat(.i420, width: 320, height: 180)),
            chainName: "yard", clock: clock)
        func send(_ count: Int) throws -> [[UInt8]] {
            try (0..<count).map { _ in
                try driver.send(driver.makeFrame { Self.fill(&$0, value: 16) })
                clock.advance(to: clock.now() + 40_000_000)
                return try driver.nextFrame().planeBytes[0]
            }
        }
        let pictures = try send(100)
        let changes = (1..<100).filter { pictures[$0] != pictures[$0 - 1] }.count
        #expect(driver.stage.drawCount == 4 && changes == 3)
        let before = driver.stage.drawCount
        try driver.set(#"{ "text": "{frame}" }"#)
        _ = try send(10)
        #expect(driver.stage.drawCount == before + 10)
    }

    @Test func saysWhatIsWrongWithAFont() throws {
        func fault(_ font: String) -> String? {
            let options = #"{ "font": "\#(font)" }"#
            return #expect(throws: FrameHostError.self) {
                _ = try StageDriver(
                    TextOverlay.self, options: options, input: .video(VideoFormat(.i420, width: 64, height: 64)),
                    folder: "/nowhere")
            }?.description
        }
        #expect(
            fault("x.ttf")
                == "font: /nowhere/x.ttf cannot be read: No such file or directory. Check the path, or leave 'font' out for the default font."
        )
        #expect(
            fault("/etc/hostname")
                == "font: '/etc/hostname' must be a font that FreeType can read. Name a TrueType, OpenType or Type 1 font file."
        )
        let error = #expect(throws: FrameHostError.self) { _ = try FontFile.path(nil, usual: ["/a/b.ttf", "/c.ttf"]) }
        #expect(
            error?.description
                == "font: no font was found. Install fonts-dejavu-core, or name a font file with 'font'.\n  Looked for /a/b.ttf, /c.ttf"
        )
    }
}
