// SPDX-License-Identifier: Apache-2.0

import Foundation
import FrameCore
import Glibc
import Testing

@testable import PictureOverlay

@Suite struct PictureOverlayTests {
    /// Noise with all sorts of alpha, none and full among them.
    static func noise(_ width: Int, _ height: Int, seed: UInt64 = 3) -> TestPNG {
        var state = seed
        func next() -> UInt8 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return UInt8(truncatingIfNeeded: state >> 56)
        }
        return TestPNG(width: width, height: height) { _, _ in
            let alpha = next()
            return (next(), next(), next(), alpha < 60 ? 0 : alpha > 200 ? 255 : alpha)
        }
    }

    /// One colour everywhere.
    static func plain(_ width: Int, _ height: Int, _ color: (UInt8, UInt8, UInt8, UInt8)) -> TestPNG {
        TestPNG(width: width, height: height) { _, _ in color }
    }

    /// What the stage makes of a picture.
    static func draw(
        _ options: String, _ format: VideoFormat, value: UInt8? = nil, lying: Orientation? = nil
    ) throws -> (before: [[UInt8]], after: [[UInt8]]) {
        let driver = try StageDriver(PictureOverlay.self, options: "{ \(options) }", input: .video(format))
        var before: [[UInt8]] = []
        let frame = try driver.makeFrame {
            TextTests.fill(&$0, value: value)
            before = $0.planeBytes
        }
        frame.orientation = lying ?? format.orientation
        try driver.send(frame)
        return (before, try driver.nextFrame().planeBytes)
    }

    /// The picture at a place of an upright frame by its definition: for each pixel of the frame red, green and blue, each
    /// times alpha, and alpha, 0...1. All pixels of the file are asked for each, by a triangle around its middle.
    static func scaled(
        _ png: TestPNG, to size: (width: Int, height: Int), at corner: (x: Int, y: Int), in frame: (Int, Int)
    ) -> [[Double]] {
        func weights(_ place: Int, _ source: Int, _ target: Int) -> [Double] {
            let scale = Double(source) / Double(target)
            let middle = (Double(place) + 0.5) * scale
            let parts = (0..<source).map { max(1 - abs(Double($0) + 0.5 - middle) / max(scale, 1), 0) }
            return parts.map { $0 / parts.reduce(0, +) }
        }
        var result = [[Double]](repeating: [0, 0, 0, 0], count: frame.0 * frame.1)
        for y in max(corner.y, 0)..<min(corner.y + size.height, frame.1) {
            let rows = weights(y - corner.y, png.height, size.height)
            for x in max(corner.x, 0)..<min(corner.x + size.width, frame.0) {
                let columns = weights(x - corner.x, png.width, size.width)
                for row in rows.indices where rows[row] > 0 {
                    for column in columns.indices where columns[column] > 0 {
                        let color = png.pixel(column, row)
                        let alpha = Double(color.3) / 255 * rows[row] * columns[column]
                        for (channel, value) in [
                            Double(color.0) / 255, Double(color.1) / 255, Double(color.2) / 255, 1,
                        ]
                        .enumerated() {
                            result[y * frame.0 + x][channel] += value * alpha
                        }
                    }
                }
            }
        }
        return result
    }

    /// Size of the file; size on the frame, and its place there.
    struct Case: Sendable, CustomTestStringConvertible {
        var png: (Int, Int)
        var frame: (Int, Int)
        var options: String
        var size: (Int, Int)
        var corner: (Int, Int)
        var testDescription: String { "\(png) on \(frame): \(options)" }
    }
    static let cases = [
        // In its own size, at odd places, in odd frames.
        Case(png: (21, 17), frame: (64, 48), options: #""margin": [5, 7]"#, size: (21, 17), corner: (5, 7)),
        Case(png: (21, 17), frame: (65, 49), options: #""margin": [45, 33]"#, size: (21, 17), corner: (45, 33)),
        // Smaller, larger, and reaching out.
        Case(png: (60, 40), frame: (64, 48), options: #""size": 10, "margin": [3, 2]"#, size: (15, 10), corner: (3, 2)),
        Case(
            png: (8, 6), frame: (65, 49), options: #""size": "50%", "margin": [11, 5]"#, size: (33, 25), corner: (11, 5)
        ),
        Case(
            png: (9, 9), frame: (40, 30), options: #""size": "200%", "margin": -13"#, size: (60, 60), corner: (-13, -13)
        ),
        Case(png: (9, 9), frame: (3, 1), options: #""margin": [-2, -4]"#, size: (9, 9), corner: (-2, -4)),
    ]

    @Test(arguments: [PixelFormat.i420, .nv12, .bgra, .rgb24, .gray8], cases)
    func blendsAsAFloatComputationDoes(pixelFormat: PixelFormat, of test: Case) throws {
        let png = Self.noise(test.png.0, test.png.1)
        let path = try png.write()
        defer { unlink(path) }
        let (width, height) = test.frame
        let wanted = Self.scaled(png, to: test.size, at: test.corner, in: test.frame)
        for (matrix, kr, kb, isVideo) in [(1, 0.2126, 0.0722, true), (6, 0.299, 0.114, false)]
            as [(UInt8, Double, Double, Bool)]
        {
            let format = VideoFormat(
                pixelFormat, width: width, height: height,
                color: ColorDescription(range: isVideo ? .video : .full, matrix: matrix))
            let (before, after) = try Self.draw(
                #""path": "\#(path)", "position": "topLeft", "opacity": 0.8, \#(test.options)"#, format)
            let isRGB = pixelFormat == .bgra || pixelFormat == .rgb24
            var most = 0.0
            for component in 0..<(pixelFormat == .gray8 ? 1 : 3) {
                let isShared = component > 0 && !isRGB
                let side = isShared ? 2 : 1
                let (columns, rows) = ((width + side - 1) / side, (height + side - 1) / side)
                let plane = pixelFormat == .i420 ? component : pixelFormat == .nv12 ? min(component, 1) : 0
                let step = pixelFormat == .bgra ? 4 : isRGB ? 3 : pixelFormat == .nv12 && component > 0 ? 2 : 1
                let offset = isRGB || pixelFormat == .nv12 && component > 0 ? component - (isRGB ? 0 : 1) : 0
                for row in 0..<rows {
                    for column in 0..<columns {
                        var (red, green, blue, alpha, count) = (0.0, 0.0, 0.0, 0.0, 0.0)
                        for y in row * side..<min((row + 1) * side, height) {
                            for x in column * side..<min((column + 1) * side, width) {
                                let pixel = wanted[y * width + x]
                                (red, green, blue, alpha) = (
                                    red + pixel[0], green + pixel[1], blue + pixel[2], alpha + pixel[3]
                                )
                                count += 1
                            }
                        }
                        (red, green, blue, alpha) = (red / count, green / count, blue / count, alpha / count)
                        // Straight colours have the samples of equations; what is transparent adds none.
                        var sample = 0.0
                        if alpha > 0 {
                            sample =
                                isRGB
                                ? [red, green, blue][pixelFormat == .bgra ? 2 - component : component] / alpha * 255
                                : TextTests.yuv(
                                    red / alpha, green / alpha, blue / alpha, kr: kr, kb: kb, isVideo: isVideo)[
                                        component]
                        }
                        let index = (row * columns + column) * step + offset
                        let old = Double(before[plane][index])
                        let new = Double(after[plane][index])
                        most = max(most, abs(new - (old * (1 - 0.8 * alpha) + sample * 0.8 * alpha)))
                        if alpha == 0 { #expect(new == old) }
                    }
                }
            }
            #expect(most <= 2)
        }
    }

    @Test(arguments: Orientation.allCases, [PixelFormat.gray8, .bgra])
    func liesAsTheFramesDo(orientation: Orientation, pixelFormat: PixelFormat) throws {
        let path = try Self.noise(31, 22).write()
        defer { unlink(path) }
        let options = #""path": "\#(path)", "position": "topLeft", "margin": [9, 50], "size": 40"#
        let upright = try Self.draw(options, VideoFormat(pixelFormat, width: 101, height: 80), value: 16).after[0]
        let (width, height) = orientation.swapsSides ? (80, 101) : (101, 80)
        let bytes = pixelFormat == .bgra ? 4 : 1
        // The format says it, or only the frame.
        for planned in [orientation, .up] {
            let stored = try Self.draw(
                options, VideoFormat(pixelFormat, width: width, height: height, orientation: planned), value: 16,
                lying: orientation
            ).after[0]
            var wrong = 0
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
                    for byte in 0..<bytes
                    where stored[(y * width + x) * bytes + byte] != upright[(shown.y * 101 + shown.x) * bytes + byte] {
                        wrong += 1
                    }
                }
            }
            #expect(wrong == 0)
        }
    }

    /// Columns and rows of a white picture on black.
    static func extent(_ options: String, _ format: VideoFormat) throws -> (
        columns: ClosedRange<Int>, rows: ClosedRange<Int>
    ) {
        let luma = try draw(options, format, value: 0).after[0]
        let columns = (0..<format.width).filter { x in
            (0..<format.height).contains { luma[$0 * format.width + x] > 128 }
        }
        let rows = (0..<format.height).filter { y in
            luma[y * format.width..<(y + 1) * format.width].contains { $0 > 128 }
        }
        return (try #require(columns.first)...columns.last!, try #require(rows.first)...rows.last!)
    }

    @Test func keepsItsShapeWherePixelsAreNotSquare() throws {
        let path = try Self.plain(20, 10, (255, 255, 255, 255)).write()
        defer { unlink(path) }
        let options = #""path": "\#(path)", "position": "topLeft", "margin": 0, "size": 40"#
        // 40 rows of square height, 80 columns of half of it. Turned, the shown pixels are twice as high as wide.
        for (orientation, columns) in [(Orientation.up, 40), (Orientation(quarterTurns: 1, mirrored: false), 160)] {
            let found = try Self.extent(
                options,
                VideoFormat(
                    .gray8, width: 200, height: 200, color: ColorDescription(range: .full),
                    sampleAspectRatio: Rational(2), orientation: orientation))
            let isTurned = orientation.swapsSides
            #expect((isTurned ? found.rows : found.columns).count == columns, "\(orientation)")
            #expect((isTurned ? found.columns : found.rows).count == 40, "\(orientation)")
        }
    }

    @Test(arguments: [
        ("topLeft", 5, 4), ("top", 95, 4), ("right", 185, 95), ("center", 95, 95), ("bottomLeft", 5, 186),
        ("bottomRight", 185, 186),
    ]) func liesWhereItIsTold(position: String, x: Int, y: Int) throws {
        let path = try Self.plain(10, 10, (255, 255, 255, 255)).write()
        defer { unlink(path) }
        let found = try Self.extent(
            #""path": "\#(path)", "position": "\#(position)", "margin": [5, "2%"]"#,
            VideoFormat(.gray8, width: 200, height: 200, color: ColorDescription(range: .full)))
        #expect(found.columns == x...x + 9 && found.rows == y...y + 9)
    }

    @Test func isScaledOnlyWhenItsPlaceChanges() throws {
        let path = try Self.noise(20, 10).write()
        defer { unlink(path) }
        let driver = try StageDriver(
            PictureOverlay.self, options: #"{ "path": "\#(path)" }"#,
            input: .video(VideoFormat(.i420, width: 160, height: 90)))
        func send() throws -> [[UInt8]] {
            try driver.send(driver.makeFrame { TextTests.fill(&$0, value: 99) })
            return try driver.nextFrame().planeBytes
        }
        let first = try send()
        for _ in 0..<20 { #expect(try send() == first) }
        // Opacity is no question of size.
        try driver.set(#"{ "opacity": 0.5 }"#)
        let faint = try send()
        #expect(driver.stage.scaleCount == 1 && faint != first)
        try driver.set(#"{ "opacity": 0 }"#)
        #expect(try send().allSatisfy { $0.allSatisfy { $0 == 99 } })
        try driver.set(#"{ "opacity": 1, "position": "left" }"#)
        let moved = try send()
        #expect(driver.stage.scaleCount == 2 && moved != first)
        try driver.set(#"{ "margin": [-400, 0] }"#)
        #expect(try send().allSatisfy { $0.allSatisfy { $0 == 99 } })
    }

    @Test func showsAnotherPictureOnceItIsRead() throws {
        let white = try Self.plain(20, 10, (255, 255, 255, 255)).write()
        let gray = try Self.plain(30, 30, (100, 100, 100, 255)).write()
        let pipe = white + ".pipe"
        let text = white + ".txt"
        #expect(mkfifo(pipe, 0o600) == 0)
        try "no picture".write(toFile: text, atomically: true, encoding: .utf8)
        defer { for path in [white, gray, pipe, text] { unlink(path) } }
        let driver = try StageDriver(
            PictureOverlay.self, options: #"{ "path": "\#(white)", "position": "center" }"#,
            input: .video(VideoFormat(.gray8, width: 64, height: 64, color: ColorDescription(range: .full))))
        func middle() throws -> UInt8 {
            try driver.send(driver.makeFrame { TextTests.fill(&$0, value: 7) })
            return try driver.nextFrame().planeBytes[0][32 * 64 + 32]
        }
        /// The event that comes within five seconds, while frames flow.
        func answer() throws -> (event: String, text: String, before: Set<UInt8>) {
            var seen: Set<UInt8> = []
            for _ in 0..<500 {
                let value = try middle()
                if let event = driver.takeEvents().first(where: { $0.name.hasPrefix("picture-") }) {
                    return (event.name, event.text, seen)
                }
                seen.insert(value)
                usleep(10_000)
            }
            throw NoFrame()
        }
        #expect(try middle() == 255)
        try driver.set(#"{ "path": "\#(gray)" }"#)
        let changed = try answer()
        #expect(changed.event == "picture-changed" && changed.before.isSubset(of: [255]))
        #expect(try middle() == 100)
        #expect(
            changed.text == "picture-overlay: Shows the picture \(gray)."
                || changed.text == "Shows the picture \(gray).")
        for (path, words) in [
            (text, "cannot be read as PNG"), (pipe, "must be a regular file"),
            ("/nowhere/x.png", "cannot be read: No such file or directory"),
        ] {
            try driver.set(#"{ "path": "\#(path)" }"#)
            let refused = try answer()
            #expect(refused.event == "picture-refused" && refused.before.isSubset(of: [100]))
            #expect(refused.text.contains("Goes on showing \(gray), because \(path) \(words)"), "\(refused.text)")
            #expect(try middle() == 100)
            #expect(driver.stage.options.path == gray)
        }
        // The last one counts, and where it is what is shown, nothing is read.
        try driver.set(#"{ "path": "\#(white)" }"#)
        try driver.set(#"{ "path": "\#(gray)", "size": 4 }"#)
        for _ in 0..<20 {
            #expect(try middle() == 100)
            usleep(5000)
        }
        try driver.set(#"{ "path": "\#(text)" }"#)
        try driver.set(#"{ "path": "\#(white)" }"#)
        let last = try answer()
        #expect(last.event == "picture-changed")
        #expect(try middle() == 255)
    }

    @Test func saysAtCheckWhatIsWrong() throws {
        func fault(_ options: String) -> String? {
            #expect(throws: (any Error).self) {
                _ = try StageDriver(
                    PictureOverlay.self, options: options, input: .video(VideoFormat(.i420, width: 64, height: 64)),
                    folder: "/nowhere")
            }.map { "\($0)" }
        }
        #expect(
            fault("{}")?.contains(#"'path' is missing or empty. Name a PNG or JPEG file: "path": "logo.png"."#) == true)
        #expect(
            fault(#"{ "path": "x.png" }"#)
                == "path: /nowhere/x.png cannot be read: No such file or directory. Check that the path is right and that framehost may read the file."
        )
        #expect(fault(#"{ "path": "/etc/hostname" }"#)?.contains("cannot be read as PNG") == true)
        #expect(fault(#"{ "path": "x.png", "size": "-4%" }"#)?.contains("'size' must be 0 or more, but is -4%") == true)
        #expect(
            fault(#"{ "path": "x.png", "size": 0.3 }"#)?.contains(
                "'size' must be at least 1 pixel or a percentage, but is 0.3. Write a number of pixels, such as 24, or a percentage, such as \"10%\". For 30% of the picture's height write \"30%\"."
            ) == true)
        #expect(fault(#"{ "path": "x.png", "size": 0 }"#)?.contains("but is 0. Write") == true)
        #expect(fault(#"{ "path": "x.png", "opacity": 2 }"#)?.contains("opacity") == true)
    }
}
