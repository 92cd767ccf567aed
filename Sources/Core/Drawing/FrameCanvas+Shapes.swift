// SPDX-License-Identifier: Apache-2.0

extension FrameCanvas {
    /// Fills a polygon; ``PolygonScan`` says which pixels belong to it.
    ///
    /// The points are in order around it; the last is joined to the first. Nothing is drawn if there is none, or one that
    /// is not finite. More than 85 allocate memory.
    public func fill(polygon points: [PicturePoint], _ paint: Paint) {
        points.withUnsafeBufferPointer { fill($0, contour: $0.count, paint) }
    }

    // MARK: Not filled

    /// Draws the border of a rectangle, inside of it.
    ///
    /// The thickness is in pixels, 1 or more. A rectangle that is not larger than two borders is filled.
    public func outline(x: Int, y: Int, width: Int, height: Int, thickness: Int, _ paint: Paint) {
        guard width > 0, height > 0, thickness > 0 else { return }
        let far = Int(Int32.max)
        guard [x, y].allSatisfy({ (-far...far).contains($0) }), width <= far, height <= far else { return }
        let inner = height - 2 * thickness
        guard thickness < far, inner > 0, width > 2 * thickness else {
            return fill(x: x, y: y, width: width, height: height, paint)
        }
        fill(x: x, y: y, width: width, height: thickness, paint)
        fill(x: x, y: y + height - thickness, width: width, height: thickness, paint)
        fill(x: x, y: y + thickness, width: thickness, height: inner, paint)
        fill(x: x + width - thickness, y: y + thickness, width: thickness, height: inner, paint)
    }

    /// Draws the border of a polygon, half of it inside and half of it outside.
    ///
    /// The points are as for ``fill(polygon:_:)``, the thickness is in pixels. Paint that is not opaque allocates memory
    /// from 17 points on.
    public func outline(polygon points: [PicturePoint], thickness: Double, _ paint: Paint) {
        guard points.allSatisfy(\.isFinite) else { return }
        if paint.alpha == 255 || points.count < 2 {
            for index in points.indices {
                line(from: points[index], to: points[(index + 1) % points.count], thickness: thickness, paint)
            }
            return
        }
        // As one shape, so that corners are painted only once.
        withUnsafeTemporaryAllocation(of: PicturePoint.self, capacity: 4 * points.count) { quads in
            for index in points.indices {
                Self.quad(points[index], points[(index + 1) % points.count], thickness, quads.baseAddress! + 4 * index)
            }
            fill(UnsafeBufferPointer(quads), contour: 4, paint)
        }
    }

    /// Draws a straight line, which reaches beyond both points by half of its thickness. A line of one point is a square.
    ///
    /// The thickness is in pixels. Every pixel that the line touches is painted, also by a thinner one.
    public func line(from a: PicturePoint, to b: PicturePoint, thickness: Double, _ paint: Paint) {
        guard a.isFinite, b.isFinite else { return }
        withUnsafeTemporaryAllocation(of: PicturePoint.self, capacity: 4) { quad in
            Self.quad(a, b, thickness, quad.baseAddress!)
            fill(UnsafeBufferPointer(quad), contour: 4, paint)
        }
    }

    /// The four corners of a line. All turn the same way.
    private static func quad(
        _ a: PicturePoint, _ b: PicturePoint, _ thickness: Double, _ corners: UnsafeMutablePointer<PicturePoint>
    ) {
        let (dx, dy) = (b.x - a.x, b.y - a.y)
        let length = (dx * dx + dy * dy).squareRoot()
        let half = max(thickness, 0) / 2
        let (x, y) = length > 0 ? (dx / length * half, dy / length * half) : (half, 0)
        (corners + 0).initialize(to: PicturePoint(x: a.x - x - y, y: a.y - y + x))
        (corners + 1).initialize(to: PicturePoint(x: b.x + x - y, y: b.y + y + x))
        (corners + 2).initialize(to: PicturePoint(x: b.x + x + y, y: b.y + y - x))
        (corners + 3).initialize(to: PicturePoint(x: a.x - x + y, y: a.y - y - x))
    }

    // MARK: Rows

    private func fill(_ points: UnsafeBufferPointer<PicturePoint>, contour: Int, _ paint: Paint) {
        guard contour > 0 else { return }
        let outline = Outline(points: points, contour: contour, width: width)
        let rows = outline.rows(of: height)
        guard !rows.isEmpty else { return }
        for y in rows { outline.spans(ofRow: y) { fill(0, row: y, $0, paint) } }
        for plane in 1..<max(planeCount, 1) {
            for row in rows.lowerBound >> 1...(rows.upperBound - 1) >> 1 {
                fill(chroma: plane, row: row, outline, contour, rows, paint)
            }
        }
    }

    /// Fills the chroma of two rows of pixels.
    private func fill(
        chroma plane: Int, row: Int, _ outline: Outline, _ contour: Int, _ rows: Range<Int>, _ paint: Paint
    ) {
        let lines = (2 * row..<2 * row + 2).clamped(to: rows)
        guard paint.alpha < 255 else {
            for y in lines { outline.spans(ofRow: y) { fill(plane, row: row, $0, paint) } }
            return
        }
        // Each sample only once: those of the second row without those of the first.
        outline.spans(ofRow: lines.lowerBound) { fill(plane, row: row, $0, paint) }
        guard lines.count == 2 else { return }
        outline.spans(ofRow: lines.lowerBound + 1) { span in
            var from = span.lowerBound >> 1
            let to = (span.upperBound + 1) >> 1
            outline.spans(ofRow: lines.lowerBound) { done in
                let (start, end) = (done.lowerBound >> 1, (done.upperBound + 1) >> 1)
                guard end > from, start < to else { return }
                if start > from { fill(plane, row: row, 2 * from..<2 * start, paint) }
                from = max(from, end)
            }
            if from < to { fill(plane, row: row, 2 * from..<min(2 * to, width), paint) }
        }
    }
}
