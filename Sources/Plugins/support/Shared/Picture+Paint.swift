// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Painting: rectangles, rows, text. It clips parts outside the picture, and never allocates.
///
/// Coordinates are pixels from the top left. Where pixels share a chroma sample or a group, pass even numbers: a unit
/// is always painted whole.
extension Picture {
    /// Fills a rectangle.
    package func fill(x: Int, y: Int, width: Int, height: Int, _ paint: Paint) {
        let left = min(max(x, 0), self.width)
        let right = min(max(x + width, 0), self.width)
        let top = min(max(y, 0), self.height)
        let bottom = min(max(y + height, 0), self.height)
        guard left < right, top < bottom else { return }
        for plane in 0..<planeCount {
            let layer = self[plane]
            let unit = layer.unit
            let from = left >> unit.xShift
            let units = (right + (1 << unit.xShift) - 1) >> unit.xShift - from
            let start = top >> unit.yShift
            let end = (bottom + (1 << unit.yShift) - 1) >> unit.yShift
            let row = layer.base + start * layer.strideBytes + from * unit.bytes
            Self.repeatUnit(paint.unit(plane: plane), bytes: unit.bytes, count: units, at: row)
            for other in 1..<max(end - start, 1) { memcpy(row + other * layer.strideBytes, row, units * unit.bytes) }
        }
    }

    /// Copies a picture of the same format and size.
    package func copy(_ picture: Picture) {
        for plane in 0..<planeCount {
            let (from, to) = (picture[plane], self[plane])
            for y in 0..<to.rows { memcpy(to.base + y * to.strideBytes, from.base + y * from.strideBytes, to.rowBytes) }
        }
    }

    /// Fills the rows `top..<bottom` with copies of the first row of `model`, which has the same format and width.
    package func copyRows(top: Int, bottom: Int, of model: Picture) {
        for plane in 0..<planeCount {
            let layer = self[plane]
            let source = model[plane].base
            let shift = layer.unit.yShift
            for row in (top >> shift)..<min((bottom + (1 << shift) - 1) >> shift, layer.rows) {
                memcpy(layer.base + row * layer.strideBytes, source, layer.rowBytes)
            }
        }
    }

    private static func repeatUnit(_ value: UInt32, bytes: Int, count: Int, at row: UnsafeMutableRawPointer) {
        switch bytes {
        case 1: memset(row, Int32(value), count)
        case 2:
            row.assumingMemoryBound(to: UInt16.self).update(repeating: UInt16(truncatingIfNeeded: value), count: count)
        case 3:
            let byte = row.assumingMemoryBound(to: UInt8.self)
            for index in 0..<count {
                byte[index * 3] = UInt8(truncatingIfNeeded: value)
                byte[index * 3 + 1] = UInt8(truncatingIfNeeded: value >> 8)
                byte[index * 3 + 2] = UInt8(truncatingIfNeeded: value >> 16)
            }
        default: row.assumingMemoryBound(to: UInt32.self).update(repeating: value, count: count)
        }
    }

    /// Draws ASCII text, `scale` pixels a dot, with a margin of one dot in `ground` around it; see ``BitmapFont``.
    ///
    /// - Returns: False when it does not fit the picture, which is left as it was.
    @discardableResult
    package func draw(_ text: UnsafeBufferPointer<UInt8>, x: Int, y: Int, scale: Int, ink: Paint, ground: Paint) -> Bool
    {
        let box = BitmapFont.box(characters: text.count, scale: scale)
        guard x >= 0, y >= 0, x + box.width <= width, y + box.height <= height else { return false }
        fill(x: x, y: y, width: box.width, height: box.height, ground)
        for (index, character) in text.enumerated() {
            let left = x + scale + index * (BitmapFont.width + 1) * scale
            for row in 0..<BitmapFont.height {
                var dots = BitmapFont.row(row, of: character)
                var column = 0
                // Dots side by side are painted as one rectangle.
                while dots != 0 {
                    let gap = dots.leadingZeroBitCount
                    let run = (~(dots << UInt8(gap))).leadingZeroBitCount
                    fill(
                        x: left + (column + gap) * scale, y: y + (row + 1) * scale, width: run * scale, height: scale,
                        ink)
                    column += gap + run
                    dots = gap + run >= 8 ? 0 : dots << UInt8(gap + run)
                }
            }
        }
        return true
    }
}
