// SPDX-License-Identifier: Apache-2.0

/// Coverage of a glyph, or of the line around it: 0 none, 255 full.
struct GlyphBitmap {
    /// From the pen to the left column.
    var left: Int
    /// From the base line up to the top row.
    var top: Int
    var width: Int
    var height: Int
    /// Rows of `width` bytes.
    var coverage: [UInt8]

    /// The box for a character that the font does not have; `em` is the font's size in pixels.
    static func missing(em: Int) -> GlyphBitmap {
        let (width, height, line) = (max(em / 2, 1), max(em * 7 / 10, 1), max(em / 16, 1))
        let coverage = (0..<height).flatMap { y in
            (0..<width).map { x in
                (line..<max(height - line, line)).contains(y) && (line..<max(width - line, line)).contains(x)
                    ? UInt8(0) : 255
            }
        }
        return GlyphBitmap(left: max(em / 16, 1), top: height, width: width, height: height, coverage: coverage)
    }

    /// A full rectangle that reaches `distance` pixels further on every side.
    func surrounded(by distance: Int) -> GlyphBitmap {
        let (width, height) = (self.width + 2 * distance, self.height + 2 * distance)
        return GlyphBitmap(
            left: left - distance, top: top + distance, width: width, height: height,
            coverage: Array(repeating: 255, count: width * height))
    }
}

/// One character as it is drawn.
final class Glyph {
    /// The index in the font; 0 when the font has no such character.
    let index: UInt32
    /// Nil for a space.
    let ink: GlyphBitmap?
    /// With an outline: the line around the character, and the area within it.
    let edge: GlyphBitmap?
    /// To the next pen position, in 64ths of a pixel.
    let advance: Int

    init(index: UInt32, ink: GlyphBitmap?, edge: GlyphBitmap?, advance: Int) {
        self.index = index
        self.ink = ink
        self.edge = edge
        self.advance = advance
    }
}
