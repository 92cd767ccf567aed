// SPDX-License-Identifier: Apache-2.0

/// Finds where the surroundings of a point of one small picture lie in the next: pyramidal Lucas-Kanade.
///
/// Windows of 7×7 with their mean removed, so that a change of light alone does not move a point. Allocates nothing
/// once made. (B. Lucas, T. Kanade, 1981; J.-Y. Bouguet, Pyramidal Implementation, 2000.)
final class PointFlow {
    private static let radius = 3
    private static let side = 2 * radius + 1
    private static let mostSteps = 8
    /// Pixels of a level; a smaller step ends the search there.
    private static let enough: Float = 0.03
    /// Least contrast of a window, as the smaller eigenvalue of its gradients' matrix per pixel.
    private static let leastTexture: Float = 1.5

    /// The window in the first picture with a margin of one, and its gradients.
    private let patch = UnsafeMutablePointer<Float>.allocate(capacity: (side + 2) * (side + 2))
    private let gradientX = UnsafeMutablePointer<Float>.allocate(capacity: side * side)
    private let gradientY = UnsafeMutablePointer<Float>.allocate(capacity: side * side)
    private let moved = UnsafeMutablePointer<Float>.allocate(capacity: side * side)

    deinit {
        patch.deallocate()
        gradientX.deallocate()
        gradientY.deallocate()
        moved.deallocate()
    }

    /// The point of `next` that shows what `point` of `first` shows, both in pixels of the largest level (centres
    /// at whole numbers); nil where there is too little texture, or the point has left the picture.
    func follow(_ point: FacePoint, from first: GrayPyramid, to next: GrayPyramid) -> FacePoint? {
        var dx: Float = 0
        var dy: Float = 0
        for level in stride(from: GrayPyramid.levelCount - 1, through: 0, by: -1) {
            let scale = 1 / Float(1 << level)
            // A pixel of a smaller level is the mean of two: its centre lies half a pixel further.
            let x = (Float(point.x) + 0.5) * scale - 0.5
            let y = (Float(point.y) + 0.5) * scale - 0.5
            let found = step(first.levels[level], next.levels[level], x, y, &dx, &dy)
            if !found, level == 0 { return nil }
            if level > 0 {
                dx *= 2
                dy *= 2
            }
        }
        let result = FacePoint(x: point.x + Double(dx), y: point.y + Double(dy))
        let plane = next.full
        guard result.x >= 0, result.y >= 0, result.x <= Double(plane.width - 1), result.y <= Double(plane.height - 1)
        else { return nil }
        return result
    }

    /// One level: improves `dx`, `dy`. False where the window has no texture in two directions or lies outside.
    private func step(
        _ first: GrayPlane, _ next: GrayPlane, _ x: Float, _ y: Float, _ dx: inout Float, _ dy: inout Float
    ) -> Bool {
        let side = Self.side
        let wide = side + 2
        let reach = Float(Self.radius)
        guard Self.sample(first, x - reach - 1, y - reach - 1, wide, patch) else { return false }
        var xx: Float = 0
        var yy: Float = 0
        var xy: Float = 0
        var mean: Float = 0
        for row in 0..<side {
            let line = patch + (row + 1) * wide + 1
            for column in 0..<side {
                let gx = (line[column + 1] - line[column - 1]) * 0.5
                let gy = (line[column + wide] - line[column - wide]) * 0.5
                gradientX[row * side + column] = gx
                gradientY[row * side + column] = gy
                xx += gx * gx
                yy += gy * gy
                xy += gx * gy
                mean += line[column]
            }
        }
        let count = Float(side * side)
        mean /= count
        let half = (xx + yy) / 2
        let smaller = half - ((xx - yy) * (xx - yy) / 4 + xy * xy).squareRoot()
        guard smaller >= Self.leastTexture * count else { return false }
        let determinant = xx * yy - xy * xy
        for _ in 0..<Self.mostSteps {
            guard Self.sample(next, x + dx - reach, y + dy - reach, side, moved) else { return false }
            var movedMean: Float = 0
            for index in 0..<(side * side) { movedMean += moved[index] }
            movedMean /= count
            var bx: Float = 0
            var by: Float = 0
            for row in 0..<side {
                let line = patch + (row + 1) * wide + 1
                for column in 0..<side {
                    let index = row * side + column
                    let difference = (line[column] - mean) - (moved[index] - movedMean)
                    bx += difference * gradientX[index]
                    by += difference * gradientY[index]
                }
            }
            let stepX = (yy * bx - xy * by) / determinant
            let stepY = (xx * by - xy * bx) / determinant
            dx += stepX
            dy += stepY
            if abs(stepX) < Self.enough, abs(stepY) < Self.enough { break }
            guard abs(stepX) < 16, abs(stepY) < 16 else { return false }
        }
        return true
    }

    /// A square of `side` samples from (x, y) on, interpolated between pixels in both directions; false when it
    /// reaches outside.
    private static func sample(
        _ plane: GrayPlane, _ x: Float, _ y: Float, _ side: Int, _ target: UnsafeMutablePointer<Float>
    ) -> Bool {
        guard x >= 0, y >= 0, x < Float(plane.width - side), y < Float(plane.height - side) else { return false }
        let column = Int(x)
        let row = Int(y)
        let fx = x - Float(column)
        let fy = y - Float(row)
        let a = (1 - fx) * (1 - fy)
        let b = fx * (1 - fy)
        let c = (1 - fx) * fy
        let d = fx * fy
        for j in 0..<side {
            let line = plane.base + (row + j) * plane.width + column
            let below = line + plane.width
            for i in 0..<side {
                target[j * side + i] =
                    a * Float(line[i]) + b * Float(line[i + 1]) + c * Float(below[i]) + d * Float(below[i + 1])
            }
        }
        return true
    }
}
