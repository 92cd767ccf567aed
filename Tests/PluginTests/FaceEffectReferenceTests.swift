// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Testing

@testable import FaceEffect

/// The wide effects against computations in floating point, written down here anew and in the plainest way.
@Suite struct FaceEffectReferenceTests {
    private static let box = FaceRect(x: 31, y: 22, width: 36, height: 44)
    private static let detection = Detection.at(31, 22, 36, 44)
    private static let margin = 0.2

    /// One component as a grid: 0 Y, 1 U, 2 V.
    private struct Grid {
        var values: [Double]
        let width: Int
        let height: Int

        init(_ planes: [[UInt8]], _ component: Int, _ format: VideoFormat) {
            width = component == 0 ? format.width : (format.width + 1) / 2
            height = component == 0 ? format.height : (format.height + 1) / 2
            let isPair = format.pixelFormat == .nv12 && component > 0
            let plane = planes[isPair ? 1 : component]
            values = (0..<(width * height)).map { Double(isPair ? plane[2 * $0 + component - 1] : plane[$0]) }
        }

        subscript(x: Int, y: Int) -> Double { values[min(max(y, 0), height - 1) * width + min(max(x, 0), width - 1)] }
    }

    /// Middle of a sample in pixels of the picture.
    private static func middle(_ x: Int, _ y: Int, _ component: Int) -> (Double, Double) {
        component == 0 ? (Double(x) + 0.5, Double(y) + 0.5) : (Double(2 * x + 1), Double(2 * y + 1))
    }

    /// Each sample within 2 of `wanted`, and untouched where that is nil. At least `least` luma samples have changed.
    private func compare(
        _ run: (before: [[UInt8]], after: [[UInt8]]), _ format: VideoFormat, least: Int,
        _ wanted: (_ component: Int, _ x: Int, _ y: Int, _ old: Double) -> Double?
    ) {
        var changed = 0
        var worst = 0.0
        for component in 0..<3 {
            let before = Grid(run.before, component, format)
            let after = Grid(run.after, component, format)
            for y in 0..<before.height {
                for x in 0..<before.width {
                    let old = before[x, y]
                    if let value = wanted(component, x, y, old) {
                        worst = max(worst, abs(after[x, y] - min(max(value, 0), 255)))
                    } else if after[x, y] != old {
                        Issue.record("component \(component) changed at \(x), \(y), outside of the effect")
                    }
                    if component == 0, after[x, y] != old { changed += 1 }
                }
            }
        }
        #expect(worst <= 2, "\(worst)")
        #expect(changed >= least, "\(changed)")
    }

    // MARK: Blur

    /// The documented formula: means of blocks a third of sigma wide, from the region's corner on; three boxes each
    /// way; straight lines between.
    private static func blurred(_ grid: Grid, left: Int, top: Int, columns: Int, rows: Int, side: Int, radius: Int)
        -> [Double]
    {
        let (wide, high) = ((columns + side - 1) / side, (rows + side - 1) / side)
        var means = (0..<(wide * high)).map { index -> Double in
            var sum = 0.0
            var count = 0.0
            for y in (index / wide * side)..<min((index / wide + 1) * side, rows) {
                for x in (index % wide * side)..<min((index % wide + 1) * side, columns) {
                    sum += grid[left + x, top + y]
                    count += 1
                }
            }
            return sum / count
        }
        func at(_ values: [Double], _ x: Int, _ y: Int) -> Double {
            values[min(max(y, 0), high - 1) * wide + min(max(x, 0), wide - 1)]
        }
        for _ in 0..<3 {
            for (dx, dy) in [(1, 0), (0, 1)] {
                let old = means
                for index in means.indices {
                    var sum = 0.0
                    for step in -radius...radius { sum += at(old, index % wide + step * dx, index / wide + step * dy) }
                    means[index] = sum / Double(2 * radius + 1)
                }
            }
        }
        return (0..<(columns * rows)).map { index in
            let u = (Double(index % columns) + 0.5) / Double(side) - 0.5
            let v = (Double(index / columns) + 0.5) / Double(side) - 0.5
            let (x, y) = (Int(u.rounded(.down)), Int(v.rounded(.down)))
            let (fx, fy) = (u - u.rounded(.down), v - v.rounded(.down))
            let upper = at(means, x, y) * (1 - fx) + at(means, x + 1, y) * fx
            let lower = at(means, x, y + 1) * (1 - fx) + at(means, x + 1, y + 1) * fx
            return upper * (1 - fy) + lower * fy
        }
    }

    @Test(arguments: [PixelFormat.i420, .nv12], [(160, 120), (161, 121)])
    func blurIsThreeBoxesOverBlocks(pixelFormat: PixelFormat, size: (Int, Int)) throws {
        let format = VideoFormat(pixelFormat, width: size.0, height: size.1)
        let run = try EffectRun.frames(
            #"{ "effect": "blur", "strength": 0.6, "margin": 0.2, "feather": 0.3 }"#, format, faces: [Self.detection])
        let sigma = 0.3 * 0.6 * (36.0 * 44).squareRoot()
        let side = max(Int(sigma / 3) / 2 * 2, 2)
        let spread = sigma / Double(side)
        let radius = Int(((spread * spread + 0.25).squareRoot() - 0.5).rounded())
        // The region's edges at even pixels: 49 ± 21.6, 44 ± 26.4.
        let (left, top, right, bottom) = (26, 16, 72, 72)
        let layers = (0..<3).map { component -> [Double] in
            let half = component == 0 ? 1 : 2
            return Self.blurred(
                Grid(run.before, component, format), left: left / half, top: top / half, columns: (right - left) / half,
                rows: (bottom - top) / half, side: side / half, radius: radius)
        }
        compare(run, format, least: 1500) { component, x, y, old in
            let (px, py) = Self.middle(x, y, component)
            let alpha = EffectRun.alpha(px, py, Self.box, margin: Self.margin, feather: 0.3)
            guard alpha > 0 else { return nil }
            let half = component == 0 ? 1 : 2
            let value = layers[component][(y - top / half) * ((right - left) / half) + x - left / half]
            return old * (1 - alpha) + value * alpha
        }
    }

    // MARK: Pictures

    /// 40 by 30 pixels: colours and transparency that change from pixel to pixel.
    private static let image = TestPNG(width: 40, height: 30) { x, y in
        (UInt8(20 + x * 5), UInt8(240 - y * 7), UInt8((x * y) % 200), y < 3 ? 0 : UInt8(min(60 + x * 4 + y * 2, 255)))
    }

    /// The picture's Y, U or V times alpha, and alpha, in shares: BT.601, video range.
    private static func texel(_ x: Int, _ y: Int, _ component: Int) -> (Double, Double) {
        let p = image.pixel(x, y)
        let (r, g, b, a) = (Double(p.0) / 255, Double(p.1) / 255, Double(p.2) / 255, Double(p.3) / 255)
        let luma = 0.299 * r + 0.587 * g + 0.114 * b
        let value =
            component == 0 ? 16 + 219 * luma : 128 + 224 * (component == 1 ? (b - luma) / 1.772 : (r - luma) / 1.402)
        return (value * a, a)
    }

    /// The picture at a share of its width and height, between pixels by straight lines, nothing around it. `scale`: 2
    /// from its half-size copy.
    private static func sample(_ u: Double, _ v: Double, _ component: Int, scale: Int) -> (value: Double, alpha: Double)
    {
        let (width, height) = (image.width / scale, image.height / scale)
        let (x, y) = (u * Double(width) - 0.5, v * Double(height) - 0.5)
        let (column, row) = (Int(x.rounded(.down)), Int(y.rounded(.down)))
        var result = (value: 0.0, alpha: 0.0)
        for (i, j) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
            guard (0..<width).contains(column + i), (0..<height).contains(row + j) else { continue }
            let weight =
                (i == 0 ? 1 - (x - Double(column)) : x - Double(column))
                * (j == 0 ? 1 - (y - Double(row)) : y - Double(row))
            for part in 0..<(scale * scale) {
                let (value, alpha) = texel(
                    (column + i) * scale + part % scale, (row + j) * scale + part / scale, component)
                result.value += weight * value / Double(scale * scale)
                result.alpha += weight * alpha / Double(scale * scale)
            }
        }
        return result
    }

    @Test(arguments: [PixelFormat.i420, .nv12], [(160, 120), (161, 121)])
    func stickerLiesOverTheFaceByItsAlpha(pixelFormat: PixelFormat, size: (Int, Int)) throws {
        let file = try Self.image.write()
        defer { try? FileManager.default.removeItem(atPath: file) }
        let format = VideoFormat(pixelFormat, width: size.0, height: size.1)
        let run = try EffectRun.frames(
            #"{ "effect": "sticker", "image": "\#(file)", "scale": 1, "anchor": "face" }"#, format,
            faces: [Self.detection])
        // As wide as the face, about the middle between eyes and mouth.
        let (width, height) = (36.0, 36.0 * 30 / 40)
        let (centerX, centerY) = (49.0, 22 + 44 * 0.59)
        compare(run, format, least: 700) { component, x, y, old in
            let (px, py) = Self.middle(x, y, component)
            let at = Self.sample(
                (px - centerX) / width + 0.5, (py - centerY) / height + 0.5, component, scale: component == 0 ? 1 : 2)
            return at.alpha == 0 ? nil : old * (1 - at.alpha) + at.value
        }
    }

    @Test(arguments: [PixelFormat.i420, .nv12])
    func replacePutsAPictureOverItsColour(pixelFormat: PixelFormat) throws {
        let file = try Self.image.write()
        defer { try? FileManager.default.removeItem(atPath: file) }
        let format = VideoFormat(pixelFormat, width: 160, height: 120)
        let run = try EffectRun.frames(
            ##"{ "effect": "replace", "image": "\##(file)", "color": "#ff0000", "margin": 0.2, "feather": 0.4 }"##,
            format,
            faces: [Self.detection])
        let (width, height) = (36 * 1.2, 44 * 1.2)
        let red = [81.0, 90, 240]
        compare(run, format, least: 1500) { component, x, y, old in
            let (px, py) = Self.middle(x, y, component)
            let alpha = EffectRun.alpha(px, py, Self.box, margin: 0.2, feather: 0.4)
            guard alpha > 0 else { return nil }
            let at = Self.sample(
                (px - 49) / width + 0.5, (py - 44) / height + 0.5, component, scale: component == 0 ? 1 : 1)
            return old * (1 - alpha) + (red[component] * (1 - at.alpha) + at.value) * alpha
        }
    }

    @Test(arguments: [PixelFormat.i420, .nv12])
    func boxIsAFrameOfTwoPixels(pixelFormat: PixelFormat) throws {
        let format = VideoFormat(pixelFormat, width: 161, height: 121)
        let run = try EffectRun.frames(
            ##"{ "effect": "box", "color": "#ff0000" }"##, format, faces: [.at(31.2, 21.9, 36, 44)])
        let red = [81.0, 90, 240]
        compare(run, format, least: 250) { component, x, y, _ in
            let half = component == 0 ? 1 : 2
            let (px, py) = (x * half, y * half)
            let isIn = (32..<68).contains(px) && (22..<66).contains(py)
            return isIn && !((34..<66).contains(px) && (24..<64).contains(py)) ? red[component] : nil
        }
    }

    @Test func aLiveChangeIsThereInTheNextFrame() throws {
        let format = VideoFormat(.i420, width: 160, height: 120)
        let wanted = try EffectRun.frames(
            ##"{ "effect": "replace", "color": "#ff0000", "feather": 0.5, "margin": 0.1 }"##, format,
            faces: [Self.detection]
        ).after
        let driver = try HarnessedFaceEffect.driver(
            #"{ "effect": "blur" }"#, format, FakeDetector { _, _, _ in [Self.detection] })
        var outputs: [[[UInt8]]] = []
        for number in 0..<3 {
            if number == 2 {
                try driver.set(##"{ "effect": "replace", "color": "#ff0000", "feather": 0.5, "margin": 0.1 }"##)
            }
            var noise = Noise(11)
            try driver.send(driver.makeFrame { noise.fill(&$0) })
            outputs.append(try driver.nextFrame().planeBytes)
        }
        #expect(outputs[1] != wanted && outputs[2] == wanted)
        try driver.stop()
    }
}
