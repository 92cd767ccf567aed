// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import FrameCore

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

@Suite struct FrameCanvasTests {
    private static let sizes = [(1, 1), (2, 3), (7, 5), (16, 16), (33, 21)]
    /// The sanitizers look for stray memory and not for wrong pixels, and need no more than a few rounds of each test.
    private static let rounds = getenv("FRAMEHOST_SANITIZED") == nil ? 30 : 3
    private static let color = RGBColor(red: 20, green: 200, blue: 90)

    /// Draws with the canvas and with the oracle, and compares every sample and the padding.
    private func expectSame(
        _ format: VideoFormat, alpha: UInt8 = 255, _ name: String, _ draw: (FrameCanvas, Paint) -> Void,
        where covered: (Int, Int) -> Bool, at location: SourceLocation = #_sourceLocation
    ) {
        let paint = Paint(Self.color, for: format, alpha: alpha)
        let before = DrawnPicture(format)
        var (found, meant) = (before, before)
        found.draw { draw($0, paint) }
        meant.paint(paint, where: covered)
        #expect(found.samples == meant.samples, "\(format) \(name)", sourceLocation: location)
        #expect(found.padding == before.padding, "\(format) \(name)", sourceLocation: location)
    }

    @Test(arguments: PixelFormat.allCases)
    func fillsTheRectanglesPixelsAndNoOthers(pixelFormat: PixelFormat) {
        var dice = Dice(state: 5)
        for (width, height) in Self.sizes {
            let format = VideoFormat(pixelFormat, width: width, height: height)
            for alpha in [255, 90, 0] as [UInt8] {
                for _ in 0..<(Self.rounds + 2) / 3 {
                    let x = Int.random(in: -4...width, using: &dice)
                    let y = Int.random(in: -4...height, using: &dice)
                    let (w, h) = (Int.random(in: 0...12, using: &dice), Int.random(in: 0...12, using: &dice))
                    expectSame(
                        format, alpha: alpha, "\(x) \(y) \(w) \(h)",
                        { $0.fill(x: x, y: y, width: w, height: h, $1) },
                        where: { (x..<x + w).contains($0) && (y..<y + h).contains($1) })
                }
            }
        }
    }

    @Test(arguments: PixelFormat.allCases)
    func fillsEveryPixelThatAPolygonTouches(pixelFormat: PixelFormat) {
        var dice = Dice(state: 11)
        for (width, height) in Self.sizes {
            let format = VideoFormat(pixelFormat, width: width, height: height)
            for round in 0..<Self.rounds {
                // Whole, half and other numbers; crossing itself; beyond the picture.
                let grid = [1.0, 2, 64][round % 3]
                let points = (0..<Int.random(in: 1...9, using: &dice)).map { _ in
                    PicturePoint(
                        x: (Double.random(in: -3...Double(width) + 3, using: &dice) * grid).rounded() / grid,
                        y: (Double.random(in: -3...Double(height) + 3, using: &dice) * grid).rounded() / grid)
                }
                expectSame(
                    format, alpha: round % 2 == 0 ? 255 : 77, "\(points)", { $0.fill(polygon: points, $1) },
                    where: { touches(points, $0, $1) })
            }
        }
    }

    /// Also of two rings that overlap, and of a star.
    @Test func fillsAllThatTheEvenOddRuleCallsInside() {
        let star = (0..<5).map { corner -> PicturePoint in
            let places = [(50.0, 2.0), (80, 96), (3, 38), (97, 38), (20, 96)]
            return PicturePoint(x: places[corner].0, y: places[corner].1)
        }
        let scan = PolygonScan(star, width: 100, height: 100)
        var count = 0
        for y in scan.rows {
            scan.spans(ofRow: y) { count += $0.count }
        }
        // The middle pentagon too, which the even-odd rule alone leaves out.
        #expect(touches(star, 50, 50))
        #expect(count == (0..<100).reduce(0) { sum, y in sum + (0..<100).count { touches(star, $0, y) } })
    }

    @Test func takesAnyNumber() {
        let format = VideoFormat(.i420, width: 9, height: 7)
        for points in [
            [PicturePoint(x: .nan, y: 0), PicturePoint(x: 9, y: 0), PicturePoint(x: 9, y: 9)],
            [PicturePoint(x: .infinity, y: 0), PicturePoint(x: 9, y: 0), PicturePoint(x: 9, y: 9)], [],
        ] {
            expectSame(format, "\(points)", { $0.fill(polygon: points, $1) }, where: { _, _ in false })
            expectSame(
                format, "\(points)", { $0.outline(polygon: points, thickness: 2, $1) }, where: { _, _ in false })
        }
        let far = 1e300
        let huge = [
            PicturePoint(x: -far, y: -far), PicturePoint(x: far, y: -far), PicturePoint(x: far, y: far),
        ]
        expectSame(format, "huge", { $0.fill(polygon: huge, $1) }, where: { touches(huge, $0, $1) })
        for place in [Int.min, Int.max] {
            expectSame(
                format, "\(place)",
                {
                    $0.fill(x: place, y: 0, width: Int.max, height: 3, $1)
                    $0.fill(x: 0, y: 0, width: place == .max ? 0 : place, height: 3, $1)
                    $0.outline(x: place, y: place, width: 4, height: 4, thickness: 1, $1)
                }, where: { _, _ in false })
        }
    }

    @Test(arguments: PixelFormat.allCases)
    func drawsBordersInsideOfRectangles(pixelFormat: PixelFormat) {
        let format = VideoFormat(pixelFormat, width: 33, height: 21)
        for thickness in [1, 2, 3, 40] {
            expectSame(
                format, "\(thickness)", { $0.outline(x: 4, y: -2, width: 20, height: 15, thickness: thickness, $1) },
                where: { x, y in
                    guard (4..<24).contains(x), (-2..<13).contains(y) else { return false }
                    return x < 4 + thickness || x >= 24 - thickness || y < -2 + thickness || y >= 13 - thickness
                })
        }
    }

    @Test(arguments: [255, 100] as [UInt8]) func drawsLinesAndOutlinesOnce(alpha: UInt8) {
        var dice = Dice(state: 3)
        for pixelFormat in PixelFormat.allCases {
            let format = VideoFormat(pixelFormat, width: 33, height: 21)
            for _ in 0..<(Self.rounds + 2) / 3 {
                let points = (0..<4).map { _ in
                    PicturePoint(
                        x: Double.random(in: -5...38, using: &dice), y: Double.random(in: -5...26, using: &dice))
                }
                let thickness = Double.random(in: 0...5, using: &dice)
                expectSame(
                    format, alpha: alpha, "line", { $0.line(from: points[0], to: points[1], thickness: thickness, $1) },
                    where: { touches(Self.quad(points[0], points[1], thickness), $0, $1) })
                expectSame(
                    format, alpha: alpha, "outline", { $0.outline(polygon: points, thickness: thickness, $1) },
                    where: { x, y in
                        points.indices.contains {
                            touches(Self.quad(points[$0], points[($0 + 1) % 4], thickness), x, y)
                        }
                    })
            }
        }
    }

    private static func quad(_ a: PicturePoint, _ b: PicturePoint, _ thickness: Double) -> [PicturePoint] {
        let (dx, dy) = (b.x - a.x, b.y - a.y)
        let length = (dx * dx + dy * dy).squareRoot()
        let (x, y) = (dx / length * thickness / 2, dy / length * thickness / 2)
        return [
            PicturePoint(x: a.x - x - y, y: a.y - y + x), PicturePoint(x: b.x + x - y, y: b.y + y + x),
            PicturePoint(x: b.x + x + y, y: b.y + y - x), PicturePoint(x: a.x - x + y, y: a.y - y - x),
        ]
    }

    @Test func drawsOnFrames() throws {
        let test = try TestPool(1, VideoFormat(.gray8, width: 8, height: 4))
        var frame = try test.pool.lease()
        frame.withCanvas { canvas in
            canvas.fill(x: 0, y: 0, width: 8, height: 4, Paint(luma: 0, u: 0, v: 0, in: .gray8))
            canvas.fill(row: 2, 3..<5, Paint(luma: 9, u: 0, v: 0, in: .gray8))
        }
        let row = frame.withPlane(0) { Array($0.row(2)) }
        #expect(row == [0, 0, 0, 9, 9, 0, 0, 0])
    }
}
