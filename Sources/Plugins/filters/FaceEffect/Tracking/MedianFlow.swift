// SPDX-License-Identifier: Apache-2.0

/// How a face moved from one small picture to the next, in pixels of the small picture.
struct FaceMotion: Equatable {
    var dx: Double
    var dy: Double
    /// New size over old.
    var growth: Double
    /// Clockwise as seen, in radians.
    var turn: Double
    /// Share of the points that were found there and back, 0...1.
    var agreement: Double
}

/// Follows a box by the medians of what the points inside it do.
///
/// Points stand on a grid; each is followed to the next picture and back, and the half that comes back closest to where
/// it began counts. (Z. Kalal, K. Mikolajczyk, J. Matas, Forward-Backward Error, 2010.) Allocates nothing once made.
final class MedianFlow {
    private static let mostPoints = 49
    /// The share of the box, around its middle, that the grid covers: the face without its surroundings.
    private static let inner = 0.8
    /// Pixels of the small picture: a point that comes back further away does not count.
    private static let mostError = 1.0

    private let flow = PointFlow()
    private let before = UnsafeMutablePointer<FacePoint>.allocate(capacity: mostPoints)
    private let after = UnsafeMutablePointer<FacePoint>.allocate(capacity: mostPoints)
    private let errors = UnsafeMutablePointer<Double>.allocate(capacity: mostPoints)
    private let values = UnsafeMutablePointer<Double>.allocate(capacity: mostPoints * (mostPoints - 1) / 2)

    deinit {
        before.deallocate()
        after.deallocate()
        errors.deallocate()
        values.deallocate()
    }

    /// The motion of what is in `box` (pixels of the small picture, edges); nil where too few points agree.
    ///
    /// - Parameter side: Points in a row of the grid, 3...7.
    func follow(_ box: FaceRect, from first: GrayPyramid, to next: GrayPyramid, side: Int) -> FaceMotion? {
        var count = 0
        let inner = box.grown(Self.inner - 1)
        for row in 0..<side {
            for column in 0..<side {
                let point = FacePoint(
                    x: inner.x + inner.width * (Double(column) + 0.5) / Double(side) - 0.5,
                    y: inner.y + inner.height * (Double(row) + 0.5) / Double(side) - 0.5)
                guard let there = flow.follow(point, from: first, to: next),
                    let back = flow.follow(there, from: next, to: first)
                else { continue }
                before[count] = point
                after[count] = there
                errors[count] = ((back.x - point.x) * (back.x - point.x) + (back.y - point.y) * (back.y - point.y))
                    .squareRoot()
                count += 1
            }
        }
        guard count >= 4 else { return nil }
        values.update(from: errors, count: count)
        let limit = min(median(count), Self.mostError)
        var good = 0
        for index in 0..<count where errors[index] <= limit {
            before[good] = before[index]
            after[good] = after[index]
            good += 1
        }
        guard good >= 4 else { return nil }
        return motion(good, of: side * side, box)
    }

    private func motion(_ count: Int, of all: Int, _ box: FaceRect) -> FaceMotion {
        var pairs = 0
        for a in 0..<count {
            for b in (a + 1)..<max(count, a + 1) {
                let old = distance(before, a, b)
                guard old > 2 else { continue }
                values[pairs] = distance(after, a, b) / old
                pairs += 1
            }
        }
        let growth = pairs > 0 ? min(max(median(pairs), 0.8), 1.25) : 1
        pairs = 0
        for a in 0..<count {
            for b in (a + 1)..<max(count, a + 1) {
                let (ox, oy) = (before[b].x - before[a].x, before[b].y - before[a].y)
                let (nx, ny) = (after[b].x - after[a].x, after[b].y - after[a].y)
                let square = ox * ox + oy * oy
                guard square > 4 else { continue }
                // The sine of a small angle is the angle.
                values[pairs] = (ox * ny - oy * nx) / (square.squareRoot() * max((nx * nx + ny * ny).squareRoot(), 0.5))
                pairs += 1
            }
        }
        let turn = pairs > 0 ? min(max(median(pairs), -0.5), 0.5) : 0
        // The shift is that of the box's middle: what growth and turn do to each point is subtracted first.
        let (cx, cy) = (box.centerX - 0.5, box.centerY - 0.5)
        for index in 0..<count {
            values[index] = after[index].x - (cx + growth * (before[index].x - cx - turn * (before[index].y - cy)))
        }
        let dx = median(count)
        for index in 0..<count {
            values[index] = after[index].y - (cy + growth * (before[index].y - cy + turn * (before[index].x - cx)))
        }
        let dy = median(count)
        return FaceMotion(
            dx: dx, dy: dy, growth: growth, turn: turn, agreement: min(Double(2 * count) / Double(all), 1))
    }

    private func distance(_ points: UnsafeMutablePointer<FacePoint>, _ a: Int, _ b: Int) -> Double {
        let dx = points[a].x - points[b].x
        let dy = points[a].y - points[b].y
        return (dx * dx + dy * dy).squareRoot()
    }

    /// The upper median of the first `count` of `values`, whose order changes (Hoare's selection).
    private func median(_ count: Int) -> Double {
        let target = count / 2
        var low = 0
        var high = count - 1
        while low < high {
            let pivot = values[(low + high) / 2]
            var i = low
            var j = high
            while i <= j {
                while values[i] < pivot { i += 1 }
                while values[j] > pivot { j -= 1 }
                if i <= j {
                    let kept = values[i]
                    values[i] = values[j]
                    values[j] = kept
                    i += 1
                    j -= 1
                }
            }
            if target <= j { high = j } else if target >= i { low = i } else { break }
        }
        return values[target]
    }
}
