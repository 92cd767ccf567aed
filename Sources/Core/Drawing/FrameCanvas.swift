// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Draws into a picture's own memory, in any format: rectangles, polygons and lines, filled or not.
///
/// ```swift
/// let red = Paint(RGBColor(red: 255, green: 0, blue: 0), for: frame.format)
/// frame.withCanvas { canvas in
///     canvas.outline(x: 40, y: 40, width: 200, height: 120, thickness: 4, red)
/// }
/// ```
/// What lies beyond the picture is left out. A chroma sample belongs to a shape as soon as one of its pixels does.
/// Coordinates are pixels of the stored picture, from its left upper corner. Nothing is allocated, unless a method says
/// otherwise. It is valid as long as the memory is: inside the closure that got it.
public struct FrameCanvas {
    /// The memory of one plane.
    struct Layer {
        var base: UnsafeMutableRawPointer
        var strideBytes: Int
        var rows: Int
        var unit: PlaneUnit
    }

    /// How the samples lie.
    public let pixelFormat: PixelFormat
    /// Pixels in a row.
    public let width: Int
    /// Rows.
    public let height: Int
    let planeCount: Int
    private let first: Layer
    private let second: Layer
    private let third: Layer

    /// Takes a picture's memory, which `layer` says of each plane: where it begins, and bytes from row to row.
    @inline(__always)
    public init(
        _ pixelFormat: PixelFormat, width: Int, height: Int,
        layer: (_ plane: Int) -> (base: UnsafeMutableRawPointer, strideBytes: Int)
    ) {
        self.pixelFormat = pixelFormat
        (self.width, self.height) = (width, height)
        planeCount = pixelFormat.planeCount
        func make(_ plane: Int) -> Layer {
            let memory = layer(plane)
            return Layer(
                base: memory.base, strideBytes: memory.strideBytes,
                rows: pixelFormat.rows(plane: plane, height: height), unit: .of(pixelFormat, plane: plane))
        }
        first = make(0)
        second = planeCount > 1 ? make(1) : first
        third = planeCount > 2 ? make(2) : first
    }

    @inline(__always)
    subscript(plane: Int) -> Layer { plane == 0 ? first : plane == 1 ? second : third }

    /// The memory of a plane that the format has: where it begins, and bytes from row to row.
    public func memory(ofPlane plane: Int) -> (base: UnsafeMutableRawPointer, strideBytes: Int) {
        precondition(plane >= 0 && plane < planeCount, "\(pixelFormat) has no plane \(plane)")
        return (self[plane].base, self[plane].strideBytes)
    }

    // MARK: Filled

    /// Fills the part of a rectangle that lies in the picture.
    public func fill(x: Int, y: Int, width: Int, height: Int, _ paint: Paint) {
        let (columns, rows) = (Self.span(x, width, within: self.width), Self.span(y, height, within: self.height))
        guard !columns.isEmpty, !rows.isEmpty else { return }
        for plane in 0..<planeCount {
            let layer = self[plane]
            let unit = layer.unit
            let start = rows.lowerBound >> unit.yShift
            let end = (rows.upperBound + (1 << unit.yShift) - 1) >> unit.yShift
            for row in start..<end { fill(plane, row: row, columns, paint) }
        }
    }

    /// Fills a span of pixels of one row of the picture, and the chroma samples that they share with others. What lies
    /// beyond the picture is left out.
    public func fill(row: Int, _ columns: Range<Int>, _ paint: Paint) {
        fill(x: columns.lowerBound, y: row, width: columns.count, height: 1, paint)
    }

    /// Fills a span of pixels in one row of one plane: the units that belong to these pixels.
    ///
    /// The row is one of the plane, counted from 0; the columns are pixels of the picture, not of the plane.
    ///
    /// - Precondition: The format has the plane, and all lies within the picture.
    public func fill(_ plane: Int, row: Int, _ columns: Range<Int>, _ paint: Paint) {
        guard !columns.isEmpty else { return }
        let layer = self[plane]
        precondition(
            row >= 0 && row < layer.rows && columns.lowerBound >= 0 && columns.upperBound <= width,
            "a span lies within the picture")
        let line = layer.base + row * layer.strideBytes
        let value = paint.unit(plane: plane)
        if pixelFormat == .yuyv { return fillPairs(line, columns, paint) }
        let from = columns.lowerBound >> layer.unit.xShift
        let count = (columns.upperBound + (1 << layer.unit.xShift) - 1) >> layer.unit.xShift - from
        let bytes = layer.unit.bytes
        if paint.alpha == 255 {
            Self.repeatUnit(value, bytes: bytes, count: count, at: line + from * bytes)
        } else {
            Blend(value, paint.alpha, bytes: bytes, pixelFormat).mix(into: line + from * bytes, count: count)
        }
    }

    /// yuyv: of a pair of which one pixel is painted, the other keeps its luma.
    private func fillPairs(_ line: UnsafeMutableRawPointer, _ columns: Range<Int>, _ paint: Paint) {
        var (from, to) = (columns.lowerBound, columns.upperBound)
        let bytes = line.assumingMemoryBound(to: UInt8.self)
        let blend = Blend(paint.first, paint.alpha, bytes: 4, .yuyv)
        if from % 2 == 1 {
            blend.mixBytes(into: bytes + from / 2 * 4, 1, 2, 3)
            from += 1
        }
        // The second luma of a last pair of odd width belongs to no pixel.
        if from < to, to % 2 == 1 {
            if to < width {
                to -= 1
                blend.mixBytes(into: bytes + to / 2 * 4, 0, 1, 3)
            } else {
                to += 1
            }
        }
        guard from < to else { return }
        let start = line + from / 2 * 4
        if paint.alpha == 255 {
            Self.repeatUnit(paint.first, bytes: 4, count: (to - from) / 2, at: start)
        } else {
            blend.mix(into: start, count: (to - from) / 2)
        }
    }

    /// The part of `start..<start + length` within `0..<limit`.
    private static func span(_ start: Int, _ length: Int, within limit: Int) -> Range<Int> {
        let (sum, isTooFar) = start.addingReportingOverflow(length)
        let end = isTooFar ? length < 0 ? 0 : limit : min(max(sum, 0), limit)
        let from = min(max(start, 0), limit)
        return from..<max(from, end)
    }

    @inline(__always)
    private static func repeatUnit(_ value: UInt32, bytes: Int, count: Int, at row: UnsafeMutableRawPointer) {
        switch bytes {
        case 1: memset(row, Int32(value), count)
        case 2:
            row.assumingMemoryBound(to: UInt16.self).update(repeating: UInt16(truncatingIfNeeded: value), count: count)
        case 3:
            // The first unit, then twice as many bytes with each copy.
            let byte = row.assumingMemoryBound(to: UInt8.self)
            for index in 0..<3 { byte[index] = UInt8(truncatingIfNeeded: value >> UInt32(8 * index)) }
            var done = 3
            while done < count * 3 {
                let next = min(done, count * 3 - done)
                memcpy(row + done, row, next)
                done += next
            }
        default: row.assumingMemoryBound(to: UInt32.self).update(repeating: value, count: count)
        }
    }
}

extension Frame {
    /// Lends the frame's planes to `body` to draw on.
    ///
    /// - Precondition: As ``withMutablePlane(_:_:)``.
    public mutating func withCanvas<Result>(_ body: (FrameCanvas) throws -> Result) rethrows -> Result {
        let format = format
        let canvas = FrameCanvas(format.pixelFormat, width: format.width, height: format.height) { index in
            // The address leaves this closure, but not the caller's, which has the frame for itself.
            withMutablePlane(index) { (UnsafeMutableRawPointer($0.baseAddress), $0.strideBytes) }
        }
        return try body(canvas)
    }
}
