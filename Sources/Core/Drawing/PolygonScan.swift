// SPDX-License-Identifier: Apache-2.0

/// A point of a picture in pixels, counted from its left upper corner: (0, 0) is the corner of the first pixel, and
/// (0.5, 0.5) its middle.
public struct PicturePoint: Sendable, Hashable {
    /// From the left.
    public var x: Double
    /// From the top.
    public var y: Double

    /// Makes a point.
    public init(x: Double, y: Double) { (self.x, self.y) = (x, y) }

    var isFinite: Bool { x.isFinite && y.isFinite }
}

/// The pixels that a polygon touches, row by row.
///
/// A pixel belongs to it if its square and the polygon have an area in common: also a pixel that the polygon only just
/// cuts. Of a polygon that crosses itself, everything is inside that its outline goes around, whatever the number of
/// turns, unless opposite turns cancel (the non-zero rule). That includes all that the even-odd rule calls inside.
public struct PolygonScan: Sendable {
    private let points: [PicturePoint]
    private let width: Int
    /// The rows of the picture that it may touch.
    public let rows: Range<Int>

    /// - Parameters:
    ///   - points: In order around the polygon, at least one; the last is joined to the first. If one is not finite, the
    ///     polygon touches nothing.
    ///   - width: Of the picture, 0 or more. What lies beyond the picture is left out.
    ///   - height: Of the picture, 0 or more.
    public init(_ points: [PicturePoint], width: Int, height: Int) {
        self.points = points
        self.width = width
        rows = points.withUnsafeBufferPointer { Outline(points: $0, contour: $0.count, width: width).rows(of: height) }
    }

    /// Calls `body` with each span of pixels that it touches in a row, from left to right; there is at least one pixel
    /// between two spans.
    ///
    /// - Complexity: O(points). Allocates nothing for up to 85 points.
    public func spans(ofRow y: Int, _ body: (Range<Int>) -> Void) {
        guard rows.contains(y) else { return }
        points.withUnsafeBufferPointer { Outline(points: $0, contour: $0.count, width: width).spans(ofRow: y, body) }
    }
}

/// Polygons of `contour` points each, one after the other. Those that overlap must turn the same way.
struct Outline {
    let points: UnsafeBufferPointer<PicturePoint>
    let contour: Int
    let width: Int

    /// An edge within one row of pixels.
    private struct Step {
        /// The pixels that it touches.
        var start: Int32
        var end: Int32
        /// By how much the winding number changes to the right of it, in the middle of the row.
        var turn: Int32
    }

    /// The rows of a picture of `height` that may be touched.
    func rows(of height: Int) -> Range<Int> {
        guard width > 0, points.allSatisfy(\.isFinite), let first = points.first else { return 0..<0 }
        var (top, bottom) = (first.y, first.y)
        for point in points { (top, bottom) = (min(top, point.y), max(bottom, point.y)) }
        let from = Int(min(max(top.rounded(.down), 0), Double(height)))
        return from..<max(Int(min(max(bottom.rounded(.up), 0), Double(height))), from)
    }

    @inline(__always)
    func spans(ofRow y: Int, _ body: (Range<Int>) -> Void) {
        withUnsafeTemporaryAllocation(of: Step.self, capacity: points.count) { steps in
            let count = collect(steps.baseAddress!, top: Double(y))
            var (start, reach, turns): (Int32, Int32, Int32) = (0, 0, 0)
            for index in 0..<count {
                let step = steps[index]
                if step.start > reach {
                    // Between two edges the number of turns is the same all over each pixel's square.
                    if turns == 0 {
                        if reach > start { body(Int(start)..<Int(reach)) }
                        start = step.start
                    }
                    reach = step.start
                }
                reach = max(reach, step.end)
                turns &+= step.turn
            }
            if reach > start { body(Int(start)..<Int(reach)) }
        }
    }

    /// Collects the edges that touch a row, by where they begin.
    ///
    /// - Returns: How many there are.
    @inline(__always)
    private func collect(_ steps: UnsafeMutablePointer<Step>, top: Double) -> Int {
        var count = 0
        for index in points.indices {
            let isLast = (index + 1) % contour == 0
            let (a, b) = (points[index], points[isLast ? index + 1 - contour : index + 1])
            let (upper, lower) = a.y <= b.y ? (a, b) : (b, a)
            guard upper.y < top + 1, lower.y > top || upper.y == lower.y && upper.y > top else { continue }
            // Of a level edge the whole, of any other what lies within the row.
            var (left, right) = (upper.x, lower.x)
            if upper.y < lower.y {
                let slope = (lower.x - upper.x) / (lower.y - upper.y)
                if upper.y < top { left += slope * (top - upper.y) }
                if lower.y > top + 1 { right = upper.x + slope * (top + 1 - upper.y) }
            }
            if left > right { swap(&left, &right) }
            let crosses = (a.y <= top + 0.5) != (b.y <= top + 0.5)
            let step = Step(
                start: pixel(left.rounded(.down)), end: pixel(right.rounded(.up)),
                turn: crosses ? a.y < b.y ? 1 : -1 : 0)
            var place = count
            while place > 0, steps[place - 1].start > step.start {
                (steps + place).initialize(to: steps[place - 1])
                place -= 1
            }
            (steps + place).initialize(to: step)
            count += 1
        }
        return count
    }

    @inline(__always)
    private func pixel(_ x: Double) -> Int32 { Int32(min(max(x, 0), Double(width))) }
}
