// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared
import Stills

/// Where an image lies in the stored picture: its middle, and the vectors from there to the middles of its right and
/// lower edges, in pixels.
struct ImagePlacement: Equatable {
    var center: FacePoint
    var right: FacePoint
    var down: FacePoint
}

/// A part of a component that is painted on: of a frame, or of an effect's layer.
struct Canvas {
    let component: Component
    /// Samples of the component's own grid at which `component.base` stands, and how many there are.
    let left: Int
    let top: Int
    let columns: Int
    let rows: Int
}

/// Paints a PNG, moved, scaled, turned and mirrored at will, over a picture in the picture's own colours.
///
/// Samples are mixed in premultiplied form, so that what is transparent has no colour; smaller copies are made at the
/// start, so that a large picture stays clean when it is painted small.
final class ImagePainter {
    /// Y, U, V as 0...255 times alpha, and alpha 0...1.
    private struct Level {
        let samples: UnsafeMutablePointer<SIMD4<Float>>
        let width: Int
        let height: Int
    }
    private let levels: [Level]

    /// Height over width.
    let aspect: Double

    init(_ file: PNGFile, for format: VideoFormat) {
        let samples = RGBSamples(of: format).yuv
        let base = UnsafeMutablePointer<SIMD4<Float>>.allocate(capacity: file.width * file.height)
        for index in 0..<(file.width * file.height) {
            func channel(_ offset: Int) -> Float { Float(file.pixels[index * 4 + offset]) / 255 }
            let alpha = channel(3)
            let color = SIMD4(channel(0) * alpha, channel(1) * alpha, channel(2) * alpha, alpha)
            (base + index).initialize(
                to: SIMD4(
                    (samples.0 * color).sum(), (samples.1 * color).sum(), (samples.2 * color).sum(), alpha))
        }
        var levels = [Level(samples: base, width: file.width, height: file.height)]
        while let last = levels.last, last.width > 2, last.height > 2 { levels.append(Self.half(last)) }
        self.levels = levels
        aspect = Double(file.height) / Double(file.width)
    }

    deinit { for level in levels { level.samples.deallocate() } }

    private static func half(_ level: Level) -> Level {
        let (width, height) = (level.width / 2, level.height / 2)
        let samples = UnsafeMutablePointer<SIMD4<Float>>.allocate(capacity: width * height)
        for y in 0..<height {
            for x in 0..<width {
                let first = level.samples + 2 * y * level.width + 2 * x
                let sum = first[0] + first[1] + first[level.width] + first[level.width + 1]
                (samples + y * width + x).initialize(to: sum * 0.25)
            }
        }
        return Level(samples: samples, width: width, height: height)
    }

    /// [stage thread] Paints one component. `index`: 0 Y, 1 U, 2 V, the latter on a grid of half the size.
    func paint(_ placement: ImagePlacement, on canvas: Canvas, component index: Int) {
        let grid = index == 0 ? 1.0 : 2.0
        let determinant = placement.right.x * placement.down.y - placement.right.y * placement.down.x
        guard abs(determinant) > 1e-6 else { return }
        // How many samples of the canvas the image is wide.
        let across =
            (placement.right.x * placement.right.x + placement.right.y * placement.right.y).squareRoot() * 2 / grid
        var chosen = 0
        while chosen + 1 < levels.count, Double(levels[chosen + 1].width) >= across { chosen += 1 }
        let level = levels[chosen]
        // From canvas samples to image samples of this level.
        let (w, h) = (Double(level.width) / 2, Double(level.height) / 2)
        let stepX = FacePoint(
            x: placement.down.y / determinant * w * grid, y: -placement.right.y / determinant * h * grid)
        let stepY = FacePoint(
            x: -placement.down.x / determinant * w * grid, y: placement.right.x / determinant * h * grid)
        let reachX = abs(placement.right.x) + abs(placement.down.x)
        let reachY = abs(placement.right.y) + abs(placement.down.y)
        func sample(_ place: Double, _ limit: Int) -> Int {
            Int(min(max((place / grid).rounded(.down), Double(-1)), Double(limit)))
        }
        let columns =
            max(
                sample(placement.center.x - reachX, canvas.left + canvas.columns) - 1, canvas.left)..<max(
                min(
                    sample(placement.center.x + reachX, canvas.left + canvas.columns) + 2, canvas.left + canvas.columns),
                canvas.left)
        let rows =
            max(
                sample(placement.center.y - reachY, canvas.top + canvas.rows) - 1, canvas.top)..<max(
                min(sample(placement.center.y + reachY, canvas.top + canvas.rows) + 2, canvas.top + canvas.rows),
                canvas.top)
        guard !columns.isEmpty, !rows.isEmpty, columns.lowerBound < columns.upperBound else { return }
        for y in rows {
            let line = canvas.component.row(y - canvas.top)
            let dy = (Double(y) + 0.5) - placement.center.y / grid
            for x in columns {
                let dx = (Double(x) + 0.5) - placement.center.x / grid
                let px = Float(w + dx * stepX.x + dy * stepY.x - 0.5)
                let py = Float(h + dx * stepX.y + dy * stepY.y - 0.5)
                guard px > -1, py > -1, px < Float(level.width), py < Float(level.height) else { continue }
                let value = Self.sample(level, px, py)
                guard value.w > 0 else { continue }
                let target = line + (x - canvas.left) * canvas.component.step
                target.pointee = UInt8(min(max(Float(target.pointee) * (1 - value.w) + value[index] + 0.5, 0), 255))
            }
        }
    }

    /// Interpolates between samples in both directions; everything outside the image is transparent.
    @inline(__always)
    private static func sample(_ level: Level, _ x: Float, _ y: Float) -> SIMD4<Float> {
        let column = Int(x.rounded(.down))
        let row = Int(y.rounded(.down))
        let fx = x - Float(column)
        let fy = y - Float(row)
        func at(_ column: Int, _ row: Int) -> SIMD4<Float> {
            column >= 0 && row >= 0 && column < level.width && row < level.height
                ? level.samples[row * level.width + column] : .zero
        }
        let upper = at(column, row) * (1 - fx) + at(column + 1, row) * fx
        let lower = at(column, row + 1) * (1 - fx) + at(column + 1, row + 1) * fx
        return upper * (1 - fy) + lower * fy
    }
}
