// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

/// How much letters and the line around them cover each pixel of a rectangle: two planes, made anew when the text
/// changes.
///
/// Memory grows to the largest rectangle so far, at most the picture, and is kept.
package final class CoverageMask {
    package private(set) var width = 0
    package private(set) var height = 0
    /// Rows of `width` bytes.
    private(set) var ink: [UInt8] = []
    private(set) var edge: [UInt8] = []
    private(set) var hasEdge = false

    package init() {}

    /// Empties the mask and sets its size.
    package func reset(width: Int, height: Int) {
        (self.width, self.height) = (width, height)
        hasEdge = false
        Self.clear(&ink, count: width * height)
        Self.clear(&edge, count: width * height)
    }

    private static func clear(_ plane: inout [UInt8], count: Int) {
        if plane.count < count {
            plane = Array(repeating: 0, count: count)
        } else {
            plane.withUnsafeMutableBufferPointer { $0[..<count].update(repeating: 0) }
        }
    }

    /// Draws glyphs with their origin at `x`, `y`; what lies outside is left out. Where glyphs overlap the larger
    /// coverage stays.
    package func draw(_ glyphs: [TextLayout.Placed], x: Int, y: Int) {
        for placed in glyphs {
            if let bitmap = placed.glyph.edge {
                hasEdge = true
                draw(bitmap, x: x + placed.x, y: y + placed.y, into: &edge)
            }
            if let bitmap = placed.glyph.ink { draw(bitmap, x: x + placed.x, y: y + placed.y, into: &ink) }
        }
    }

    private func draw(_ bitmap: GlyphBitmap, x: Int, y: Int, into plane: inout [UInt8]) {
        let (left, top) = (x + bitmap.left, y - bitmap.top)
        let columns = max(-left, 0)..<max(min(bitmap.width, width - left), max(-left, 0))
        let rows = max(-top, 0)..<max(min(bitmap.height, height - top), max(-top, 0))
        guard !columns.isEmpty else { return }
        plane.withUnsafeMutableBufferPointer { plane in
            bitmap.coverage.withUnsafeBufferPointer { source in
                for row in rows {
                    let (from, to) = (row * bitmap.width, (top + row) * width + left)
                    for column in columns where source[from + column] > plane[to + column] {
                        plane[to + column] = source[from + column]
                    }
                }
            }
        }
    }

    /// One row of both planes, valid only within `body`.
    func withRow(_ row: Int, _ body: (_ ink: UnsafePointer<UInt8>, _ edge: UnsafePointer<UInt8>) -> Void) {
        ink.withUnsafeBufferPointer { ink in
            edge.withUnsafeBufferPointer { body(ink.baseAddress! + row * width, $0.baseAddress! + row * width) }
        }
    }

    /// Turns the mask as it must lie in a stored picture that `orientation` brings upright.
    package func turn(to orientation: Orientation, scratch: CoverageMask) {
        guard orientation != .up else { return }
        let swaps = orientation.swapsSides
        scratch.reset(width: swaps ? height : width, height: swaps ? width : height)
        scratch.hasEdge = hasEdge
        for y in 0..<height {
            let (first, step) = orientation.storedRow(y, shown: PictureSize(width, height))
            var to = first
            for from in y * width..<(y + 1) * width {
                scratch.ink[to] = ink[from]
                if hasEdge { scratch.edge[to] = edge[from] }
                to += step
            }
        }
        swap(&ink, &scratch.ink)
        swap(&edge, &scratch.edge)
        (width, height) = (scratch.width, scratch.height)
    }
}
