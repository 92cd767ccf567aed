// SPDX-License-Identifier: Apache-2.0

import Foundation
import FrameCore
import Shared
import Testing

@testable import Mask

/// Numbers that are the same each time.
private struct Dice: RandomNumberGenerator {
    var state: UInt64
    mutating func next() -> UInt64 {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        return state
    }
}

@Suite struct MaskTests {
    private static let sizes = [(1, 1), (5, 3), (33, 21), (64, 48)]

    /// What the stage makes of a picture of noise.
    private static func draw(
        _ options: String, _ format: VideoFormat, lying: Orientation = .up, seed: UInt64 = 7,
        changing change: (_ plane: Int, _ bytes: inout [UInt8]) -> Void = { _, _ in }
    ) throws -> (before: [[UInt8]], after: [[UInt8]]) {
        let driver = try StageDriver(Mask.self, options: "{ \(options) }", input: .video(format))
        var before: [[UInt8]] = []
        let frame = try driver.makeFrame { frame in
            TextTests.fill(&frame, seed: seed)
            for plane in 0..<frame.planeCount {
                frame.withMutablePlane(plane) { memory in
                    var bytes = (0..<memory.height).flatMap { Array(memory.row($0)) }
                    // Ten bits in each sixteen.
                    for index in bytes.indices where format.pixelFormat.bitDepth == 10 {
                        if format.pixelFormat == .i010, index % 2 == 1 { bytes[index] &= 3 }
                        if format.pixelFormat == .p010, index % 2 == 0 { bytes[index] &= 0xC0 }
                    }
                    change(plane, &bytes)
                    for y in 0..<memory.height {
                        for x in 0..<memory.rowBytes { memory.row(y)[x] = bytes[y * memory.rowBytes + x] }
                    }
                }
            }
            before = frame.planeBytes
        }
        frame.orientation = lying
        try driver.send(frame)
        return (before, try driver.nextFrame().planeBytes)
    }

    private static func text(_ points: [PicturePoint]) -> String {
        "[" + points.map { "[\($0.x), \($0.y)]" }.joined(separator: ", ") + "]"
    }

    /// Which pixels of the stored picture an area covers, by its definition and in the upright picture.
    private static func covered(
        _ points: [PicturePoint], _ format: VideoFormat, lying orientation: Orientation
    ) -> [Bool] {
        let shown = PictureSize(format.width, format.height).turned(by: orientation)
        let corners = points.map { PicturePoint(x: $0.x * Double(shown.width), y: $0.y * Double(shown.height)) }
        var covered = [Bool](repeating: false, count: format.width * format.height)
        for y in 0..<shown.height {
            for x in 0..<shown.width where Self.touches(corners, x, y) {
                let place = orientation.stored(Rectangle(x: x, y: y, width: 1, height: 1), shown: shown)
                covered[place.y * format.width + place.x] = true
            }
        }
        return covered
    }

    /// Whether a pixel's open square has an area in common with a polygon: an edge cuts it, or the outline goes around its
    /// middle.
    private static func touches(_ points: [PicturePoint], _ x: Int, _ y: Int) -> Bool {
        var turns = 0
        for index in points.indices {
            let (a, b) = (points[index], points[(index + 1) % points.count])
            var (from, to) = (0.0, 1.0)
            var misses = false
            for (start, step, low) in [(a.x, b.x - a.x, Double(x)), (a.y, b.y - a.y, Double(y))] {
                if step == 0 {
                    misses = misses || start <= low || start >= low + 1
                } else {
                    let (first, second) = ((low - start) / step, (low + 1 - start) / step)
                    (from, to) = (max(from, min(first, second)), min(to, max(first, second)))
                }
            }
            if !misses, from < to { return true }
            let middle = Double(y) + 0.5
            guard (a.y <= middle) != (b.y <= middle) else { continue }
            if a.x + (b.x - a.x) * (middle - a.y) / (b.y - a.y) < Double(x) + 0.5 { turns += a.y < b.y ? 1 : -1 }
        }
        return turns != 0
    }

    /// Which bytes of each plane belong to a covered pixel; nil for those that belong to no pixel.
    private static func bytes(_ covered: [Bool], _ format: VideoFormat) -> [[Bool?]] {
        (0..<format.pixelFormat.planeCount).map { plane in
            let unit = PlaneUnit.of(format.pixelFormat, plane: plane)
            return (0..<format.pixelFormat.rows(plane: plane, height: format.height)).flatMap { row in
                (0..<format.pixelFormat.rowBytes(plane: plane, width: format.width)).map { byte -> Bool? in
                    let index = byte / unit.bytes
                    var xs = Array(index << unit.xShift..<(index + 1) << unit.xShift)
                    // Of a pair of yuyv each luma is for itself.
                    if format.pixelFormat == .yuyv, byte % 2 == 0 { xs = [xs[byte % 4 / 2]] }
                    xs = xs.filter { $0 < format.width }
                    guard !xs.isEmpty else { return nil }
                    let ys = (row << unit.yShift..<(row + 1) << unit.yShift).filter { $0 < format.height }
                    return ys.contains { y in xs.contains { covered[y * format.width + $0] } }
                }
            }
        }
    }

    // MARK: Which pixels

    @Test(arguments: PixelFormat.allCases, Orientation.allCases)
    func coversEveryPixelThatAnAreaTouchesAndNoOther(pixelFormat: PixelFormat, orientation: Orientation) throws {
        var dice = Dice(state: 77)
        for (width, height) in Self.sizes {
            let format = VideoFormat(pixelFormat, width: width, height: height)
            for round in 0..<6 {
                let points = (0..<[3, 4, 7][round % 3]).map { _ in
                    let (x, y) = (Double.random(in: 0...1, using: &dice), Double.random(in: 0...1, using: &dice))
                    return round < 3
                        ? PicturePoint(x: x, y: y)
                        : PicturePoint(x: (x * 64).rounded() / 64, y: (y * 64).rounded() / 64)
                }
                let (before, after) = try Self.draw(
                    ##""areas": [{ "polygon": \##(Self.text(points)), "with": "#14c85a" }]"##, format,
                    lying: orientation)
                let paint = Paint(RGBColor(red: 0x14, green: 0xC8, blue: 0x5A), for: format)
                let covered = Self.bytes(Self.covered(points, format, lying: orientation), format)
                for plane in before.indices {
                    let unit = PlaneUnit.of(pixelFormat, plane: plane).bytes
                    let wrong = before[plane].indices.filter { index in
                        guard let isCovered = covered[plane][index] else { return false }
                        let shift = UInt32(8 * (index % unit))
                        let painted = UInt8(truncatingIfNeeded: paint.unit(plane: plane) >> shift)
                        return after[plane][index] != (isCovered ? painted : before[plane][index])
                    }
                    #expect(wrong.isEmpty, "\(format), \(orientation), \(points), plane \(plane)")
                }
            }
        }
    }

    @Test func coversAllOfThePicture() throws {
        let whole = "[[0, 0], [1, 0], [1, 1], [0, 1]]"
        for pixelFormat in PixelFormat.allCases {
            let format = VideoFormat(pixelFormat, width: 33, height: 21)
            let (_, after) = try Self.draw(##""areas": [{ "polygon": \##(whole), "with": "#fff" }]"##, format)
            let paint = Paint(RGBColor(red: 255, green: 255, blue: 255), for: format)
            for plane in after.indices {
                let unit = PlaneUnit.of(pixelFormat, plane: plane).bytes
                let isWhite = after[plane].indices.allSatisfy {
                    after[plane][$0] == UInt8(truncatingIfNeeded: paint.unit(plane: plane) >> UInt32(8 * ($0 % unit)))
                }
                #expect(isWhite, "\(pixelFormat)")
            }
        }
    }

    /// Not even one that only a straight line of an area cuts.
    @Test func coversWhatANarrowAreaTouches() throws {
        let format = VideoFormat(.gray8, width: 8, height: 8)
        let (before, after) = try Self.draw(
            #""areas": [{ "polygon": [[0.3, 0.3], [0.3, 0.3], [0.3, 0.3]] }]"#, format)
        #expect(before[0].indices.filter { before[0][$0] != after[0][$0] } == [2 * 8 + 2])
    }

    /// A line between two columns or rows, or along the picture's border: without an inside, and nearer to no pixel than to another.
    @Test(arguments: [
        ("[[0.5, 0], [0.5, 1], [0.5, 0.5]]", 3...4, 0...7),
        ("[[0, 0.25], [1, 0.25], [1, 0.25]]", 0...7, 1...2),
        ("[[1, 0], [1, 1], [1, 0]]", 7...7, 0...7),
        ("[[0, 0], [0, 0], [0, 0]]", 0...0, 0...0),
    ])
    func coversBothSidesOfALineBetweenPixels(
        polygon: String, columns: ClosedRange<Int>, rows: ClosedRange<Int>
    ) throws {
        let format = VideoFormat(.gray8, width: 8, height: 8)
        let options = #""areas": [{ "polygon": \#(polygon) }, { "polygon": [[0.3, 0.8], [0.35, 0.8], [0.3, 0.85]] }]"#
        let (_, after) = try Self.draw(options, format)
        for place in 0..<64 where columns.contains(place % 8) && rows.contains(place / 8) {
            // Black.
            #expect(after[0][place] == 16, "(\(place % 8), \(place / 8))")
        }
    }

    // MARK: Blur and mosaic

    @Test(arguments: PixelFormat.allCases, ["blur", "pixelate"])
    func readsAndWritesOnlyCoveredSamples(pixelFormat: PixelFormat, cover: String) throws {
        let format = VideoFormat(pixelFormat, width: 65, height: 49)
        let points = [(0.11, 0.13), (0.9, 0.05), (0.71, 0.93), (0.35, 0.5)].map { PicturePoint(x: $0.0, y: $0.1) }
        let options = #""areas": [{ "polygon": \#(Self.text(points)), "with": "\#(cover)" }]"#
        for orientation in [Orientation.up, .right, .downMirrored] {
            let covered = Self.bytes(Self.covered(points, format, lying: orientation), format)
            let (before, after) = try Self.draw(options, format, lying: orientation)
            // The same area in another picture.
            let (_, other) = try Self.draw(options, format, lying: orientation) { plane, bytes in
                for index in bytes.indices where covered[plane][index] == false { bytes[index] ^= 0x40 }
            }
            for plane in before.indices {
                let inside = before[plane].indices.filter { covered[plane][$0] == true }
                let outside = before[plane].indices.filter { covered[plane][$0] == false }
                #expect(outside.allSatisfy { after[plane][$0] == before[plane][$0] }, "\(pixelFormat), \(plane)")
                #expect(inside.allSatisfy { after[plane][$0] == other[plane][$0] }, "\(pixelFormat), \(plane)")
                // Noise becomes nearly even.
                let changed = inside.count { after[plane][$0] != before[plane][$0] }
                #expect(changed * 4 > inside.count * 3 || pixelFormat.bitDepth == 10, "\(pixelFormat), \(plane)")
            }
            if pixelFormat == .p010 {
                let low = after.flatMap { plane in plane.indices.filter { $0 % 2 == 0 && plane[$0] & 0x3F != 0 } }
                #expect(low.isEmpty)
            }
        }
    }

    @Test(arguments: PixelFormat.allCases, ["blur", "pixelate"])
    func keepsAnEvenPictureAsItIs(pixelFormat: PixelFormat, cover: String) throws {
        let format = VideoFormat(pixelFormat, width: 65, height: 49)
        let options = #""areas": [{ "polygon": [[0.1, 0], [1, 0.3], [0.5, 1]], "with": "\#(cover)" }]"#
        let (before, after) = try Self.draw(options, format) { _, bytes in
            for index in bytes.indices {
                bytes[index] =
                    pixelFormat == .i010
                    ? [0x55, 0x01][index % 2] : pixelFormat == .p010 ? [0x40, 0x55][index % 2] : 0x55
            }
        }
        #expect(before == after)
    }

    @Test func givesAMosaicOfEvenBlocks() throws {
        let format = VideoFormat(.gray8, width: 64, height: 48)
        let (_, after) = try Self.draw(
            #""areas": [{ "polygon": [[0, 0], [1, 0], [1, 1], [0, 1]], "with": "pixelate" }]"#, format)
        let side = BlockCover.blockSide(format)
        #expect(side == 8)
        for y in 0..<48 {
            for x in 0..<64 { #expect(after[0][y * 64 + x] == after[0][y / side * side * 64 + x / side * side]) }
        }
    }

    @Test func goesSmoothlyFromSampleToSampleInABlur() throws {
        let format = VideoFormat(.gray8, width: 300, height: 240)
        let (before, after) = try Self.draw(
            #""areas": [{ "polygon": [[0, 0], [1, 0], [1, 1], [0, 1]], "with": "blur" }]"#, format)
        func steps(_ bytes: [UInt8]) -> Int {
            var most = 0
            for index in bytes.indices.dropFirst() where index % 300 > 0 {
                most = max(most, abs(Int(bytes[index]) - Int(bytes[index - 1])))
            }
            return most
        }
        #expect(steps(before[0]) > 200 && steps(after[0]) <= 12)
    }

    @Test func laysAreasOverEachOtherInTheirOrder() throws {
        let whole = "[[0, 0], [1, 0], [1, 1], [0, 1]]"
        let format = VideoFormat(.gray8, width: 16, height: 16)
        let (_, after) = try Self.draw(
            ##""areas": [{ "polygon": \##(whole), "with": "blur" }, { "polygon": \##(whole) }]"##, format)
        #expect(after[0].allSatisfy { $0 == 16 })
    }

    // MARK: Changes

    @Test func coversTheRightPixelsFromTheFrameOnThatLiesOtherwise() throws {
        let format = VideoFormat(.gray8, width: 8, height: 4)
        let left = ##""areas": [{ "polygon": [[0, 0], [0.25, 0], [0.25, 1], [0, 1]], "with": "#fff" }]"##
        let driver = try StageDriver(Mask.self, options: "{ \(left) }", input: .video(format))
        func send(_ orientation: Orientation) throws -> [Int] {
            let frame = try driver.makeFrame { TextTests.fill(&$0, value: 0) }
            frame.orientation = orientation
            try driver.send(frame)
            let bytes = try driver.nextFrame().planeBytes[0]
            return bytes.indices.filter { bytes[$0] > 0 }
        }
        let (leftColumns, rightColumns) = ([0, 1, 8, 9, 16, 17, 24, 25], [6, 7, 14, 15, 22, 23, 30, 31])
        #expect(try send(.up) == leftColumns)
        #expect(try send(.up) == leftColumns)
        #expect(try send(.upMirrored) == rightColumns)
        // The left of the upright picture is the lower row of the stored one.
        #expect(try send(.right) == Array(24..<32))
        #expect(try send(.down) == rightColumns)
        #expect(driver.stage.planCount == 4)
    }

    @Test func takesNewAreasWithTheNextFrame() throws {
        let format = VideoFormat(.gray8, width: 8, height: 4)
        let driver = try StageDriver(Mask.self, input: .video(format))
        func send() throws -> Int {
            try driver.send(driver.makeFrame { TextTests.fill(&$0, value: 0) })
            return try driver.nextFrame().planeBytes[0].count { $0 > 0 }
        }
        #expect(try send() == 0)
        try driver.set(##"{ "areas": [{ "polygon": [[0, 0], [0.5, 0], [0.5, 1], [0, 1]], "with": "#fff" }] }"##)
        #expect(try send() == 16)
        try driver.set(#"{ "areas": [] }"#)
        #expect(try send() == 0)
        let error = #expect(throws: FrameHostErrors.self) {
            try driver.set(#"{ "areas": [{ "polygon": [[0, 0], [0.5, 0], [0.5, 1.5]] }] }"#)
        }
        #expect(
            error?.description
                == "areas[0].polygon[2]: [0.5,1.5] must be a point [x, y] of two numbers from 0 to 1. Write fractions of the picture's width and height, such as [0.25, 0.5]."
        )
    }
}
