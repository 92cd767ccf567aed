// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Painting: rectangles, rows, text. It clips parts outside the picture, and never allocates.
///
/// Coordinates are pixels from the top left. Where pixels share a chroma sample or a group, pass even numbers: a chroma
/// sample is always painted whole.
extension Picture {
    /// The picture as FrameCore draws on it.
    package var canvas: FrameCanvas {
        FrameCanvas(pixelFormat, width: width, height: height) { (self[$0].base, self[$0].strideBytes) }
    }

    /// Fills a rectangle.
    package func fill(x: Int, y: Int, width: Int, height: Int, _ paint: Paint) {
        canvas.fill(x: x, y: y, width: width, height: height, paint)
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
