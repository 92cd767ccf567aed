// SPDX-License-Identifier: Apache-2.0

@testable import FrameCore

/// A picture of noise in memory of its own, with what an oracle says must become of it.
struct DrawnPicture {
    let format: VideoFormat
    /// Plane after plane, with the padding of each row.
    var planes: [[UInt8]]

    init(_ format: VideoFormat, seed: UInt64 = 7) {
        self.format = format
        var state = seed
        planes = (0..<format.pixelFormat.planeCount).map { plane in
            let count = format.strideBytes(plane: plane) * format.pixelFormat.rows(plane: plane, height: format.height)
            return (0..<count).map { index in
                state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                let byte = UInt8(truncatingIfNeeded: state >> 56)
                switch format.pixelFormat {
                // Ten bits in each sixteen.
                case .i010: return index % 2 == 1 ? byte & 3 : byte
                case .p010: return index % 2 == 0 ? byte & 0xC0 : byte
                default: return byte
                }
            }
        }
    }

    /// Lets FrameCanvas draw on it.
    mutating func draw(_ body: (FrameCanvas) -> Void) {
        let memory = planes.map { plane in
            let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: plane.count, alignment: 64)
            copy.copyBytes(from: plane)
            return copy
        }
        defer { for copy in memory { copy.deallocate() } }
        body(
            FrameCanvas(format.pixelFormat, width: format.width, height: format.height) {
                (memory[$0].baseAddress!, format.strideBytes(plane: $0))
            })
        planes = memory.map { Array($0) }
    }

    /// Paints every pixel that is `covered`, and each chroma sample of which any pixel is, one byte after the other.
    mutating func paint(_ paint: Paint, where isCovered: (_ x: Int, _ y: Int) -> Bool) {
        let format = format
        // Once for each pixel, and not for each of its samples.
        let covered = (0..<format.height).map { y in (0..<format.width).map { isCovered($0, y) } }
        for plane in planes.indices {
            let unit = PlaneUnit.of(format.pixelFormat, plane: plane)
            let stride = format.strideBytes(plane: plane)
            let rows = format.pixelFormat.rows(plane: plane, height: format.height)
            for row in 0..<rows {
                for index in 0..<(format.width + (1 << unit.xShift) - 1) >> unit.xShift {
                    let xs = (index << unit.xShift..<(index + 1) << unit.xShift).filter { $0 < format.width }
                    let ys = (row << unit.yShift..<(row + 1) << unit.yShift).filter { $0 < format.height }
                    let hits = xs.map { x in ys.contains { covered[$0][x] } }
                    guard hits.contains(true) else { continue }
                    let at = row * stride + index * unit.bytes
                    for byte in 0..<unit.bytes {
                        // Of a pair of yuyv each luma is for itself.
                        if format.pixelFormat == .yuyv, byte % 2 == 0, byte / 2 < hits.count, !hits[byte / 2] {
                            continue
                        }
                        // The second luma at an odd width belongs to no pixel.
                        if format.pixelFormat == .yuyv, byte == 2, hits.count == 1 {
                            planes[plane][at + byte] = 0
                            continue
                        }
                        if format.pixelFormat.bitDepth == 10 {
                            if byte % 2 == 0 { blendWide(plane, at + byte, paint, byte) }
                        } else {
                            planes[plane][at + byte] = Self.blend(
                                UInt32(planes[plane][at + byte]), paint.unit(plane: plane) >> UInt32(8 * byte) & 255,
                                paint.alpha)
                        }
                    }
                }
            }
        }
    }

    private mutating func blendWide(_ plane: Int, _ at: Int, _ paint: Paint, _ byte: Int) {
        let shift: UInt32 = format.pixelFormat == .p010 ? 6 : 0
        let sample = (UInt32(planes[plane][at]) | UInt32(planes[plane][at + 1]) << 8) >> shift
        let value = (paint.unit(plane: plane) >> UInt32(8 * byte) & 0xFFFF) >> shift
        let exact = (Double(value) * Double(paint.alpha) + Double(sample) * Double(255 - paint.alpha)) / 255
        let mixed = UInt32(exact.rounded()) << shift
        planes[plane][at] = UInt8(truncatingIfNeeded: mixed)
        planes[plane][at + 1] = UInt8(truncatingIfNeeded: mixed >> 8)
    }

    private static func blend(_ sample: UInt32, _ value: UInt32, _ alpha: UInt8) -> UInt8 {
        UInt8(((Double(value) * Double(alpha) + Double(sample) * Double(255 - alpha)) / 255).rounded())
    }

    /// The samples of all rows without padding; what belongs to no pixel is 0.
    var samples: [[UInt8]] {
        planes.indices.map { plane in
            let stride = format.strideBytes(plane: plane)
            let count = format.pixelFormat.rowBytes(plane: plane, width: format.width)
            return (0..<format.pixelFormat.rows(plane: plane, height: format.height)).flatMap { row in
                var bytes = Array(planes[plane][row * stride..<row * stride + count])
                if format.pixelFormat == .yuyv, format.width % 2 == 1 { bytes[count - 2] = 0 }
                return bytes
            }
        }
    }

    /// The padding of all rows.
    var padding: [[UInt8]] {
        planes.indices.map { plane in
            let stride = format.strideBytes(plane: plane)
            let count = format.pixelFormat.rowBytes(plane: plane, width: format.width)
            return (0..<format.pixelFormat.rows(plane: plane, height: format.height)).flatMap { row in
                Array(planes[plane][row * stride + count..<(row + 1) * stride])
            }
        }
    }
}

/// Whether a pixel's open square has an area in common with a polygon, by its definition: an edge cuts the square, or the
/// outline goes around its middle.
func touches(_ points: [PicturePoint], _ x: Int, _ y: Int) -> Bool {
    let (left, top) = (Double(x), Double(y))
    var turns = 0
    for index in points.indices {
        let (a, b) = (points[index], points[(index + 1) % points.count])
        if cuts(a, b, left, top) { return true }
        let middle = top + 0.5
        guard (a.y <= middle) != (b.y <= middle) else { continue }
        if a.x + (b.x - a.x) * (middle - a.y) / (b.y - a.y) < left + 0.5 { turns += a.y < b.y ? 1 : -1 }
    }
    return turns != 0
}

/// Whether a segment has a point within the open square at `left`, `top`: Liang and Barsky's clipping.
private func cuts(_ a: PicturePoint, _ b: PicturePoint, _ left: Double, _ top: Double) -> Bool {
    var (from, to) = (0.0, 1.0)
    guard clip(a.x, b.x - a.x, left, &from, &to), clip(a.y, b.y - a.y, top, &from, &to) else { return false }
    // A single point counts where it lies inside, as the end of a segment does; on the border it does not.
    return from < to || a == b
}

/// Clips a segment to the strip from `low` to `low + 1` in one direction.
private func clip(_ start: Double, _ step: Double, _ low: Double, _ from: inout Double, _ to: inout Double) -> Bool {
    if step == 0 { return start > low && start < low + 1 }
    let (first, second) = ((low - start) / step, (low + 1 - start) / step)
    from = max(from, min(first, second))
    to = min(to, max(first, second))
    return true
}
