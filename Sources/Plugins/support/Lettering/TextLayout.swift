// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Places the glyphs of a text: lines of UTF-8 from left to right, one glyph a character, with kerning; marks over and
/// under their letter.
///
/// Scripts that are written from right to left, or that join their letters, need shaping, which this does not do. A tab
/// counts as a space. Invisible characters (variation selectors, joiners) are left out.
package final class TextLayout {
    /// A glyph and the position of its pen, in pixels from the top left of the text.
    package struct Placed {
        var glyph: Glyph
        var x: Int
        var y: Int
        /// How many pixels a mark is raised over a high letter or another mark.
        var rise = 0
    }

    private let face: FontFace
    /// Called once for each character that the font does not have.
    private let onMissing: (UInt32) -> Void
    private var glyphs: [UInt32: Glyph] = [:]
    private var missing: Set<UInt32> = []
    /// The cache is emptied when it has this many glyphs.
    private static let mostGlyphs = 2048
    package private(set) var placed: [Placed] = []
    private var lineWidths: [Int] = []
    /// The index in `placed` of the letter that marks belong to.
    private var base = 0
    /// The width of the whole text, including parts that extend beyond its lines, in pixels.
    package private(set) var width = 0
    package private(set) var height = 0

    package init(_ face: FontFace, onMissing: @escaping (UInt32) -> Void) {
        self.face = face
        self.onMissing = onMissing
        placed.reserveCapacity(256)
        lineWidths.reserveCapacity(16)
    }

    package func set(size: Int, outline: Double) throws {
        guard size != face.size || outline != face.outline else { return }
        glyphs.removeAll(keepingCapacity: true)
        try face.set(size: size, outline: outline)
    }

    private func glyph(_ character: UInt32) throws -> Glyph {
        if let known = glyphs[character] { return known }
        let glyph = try face.glyph(character)
        if glyphs.count >= Self.mostGlyphs { glyphs.removeAll(keepingCapacity: true) }
        glyphs[character] = glyph
        if glyph.index == 0, missing.insert(character).inserted { onMissing(character) }
        return glyph
    }

    /// Lays out `text` (UTF-8, lines end with a line feed). Allocates only for new glyphs, and for texts longer
    /// than any before.
    package func lay(_ text: [UInt8], align: TextAlignment) throws {
        placed.removeAll(keepingCapacity: true)
        lineWidths.removeAll(keepingCapacity: true)
        var pen = 0
        var left: Glyph?
        base = 0
        var bytes = text.makeIterator()
        var decoder = UTF8()
        decoding: while true {
            let character: Unicode.Scalar
            switch decoder.decode(&bytes) {
            case .scalarValue(let scalar): character = scalar
            case .error: character = "\u{FFFD}"
            case .emptyInput: break decoding
            }
            if character == "\n" {
                lineWidths.append((pen + 32) >> 6)
                pen = 0
                left = nil
                continue
            }
            let isSpace = character == "\t"
            guard isSpace || (character.value >= 32 && !character.properties.isDefaultIgnorableCodePoint) else {
                continue
            }
            let glyph = try glyph(isSpace ? 32 : character.value)
            if character.properties.generalCategory == .nonspacingMark, left != nil {
                placeMark(glyph, isAbove: character.properties.canonicalCombiningClass == .above)
                continue
            }
            base = placed.count
            if let left { pen += face.kerning(left, glyph) }
            placed.append(Placed(glyph: glyph, x: (pen + 32) >> 6, y: lineWidths.count))
            pen += glyph.advance
            left = glyph
        }
        lineWidths.append((pen + 32) >> 6)
        place(align)
    }

    /// Puts a mark over the middle of its letter. A mark above stands a little higher than what is there; any other
    /// mark stays at the height at which the font draws it.
    private func placeMark(_ mark: Glyph, isAbove: Bool) {
        let letter = placed[base]
        guard let ink = mark.ink, let under = letter.glyph.ink else {
            return placed.append(Placed(glyph: mark, x: letter.x, y: letter.y))
        }
        var rise = 0
        if isAbove {
            // Measured from the top of the letter and its present marks.
            let top = placed[base...].reduce(under.top) { max($0, $1.rise + ($1.glyph.ink?.top ?? 0)) }
            rise = max(top + max(face.size / 64, 1) - (ink.top - ink.height), 0)
        }
        let x = letter.x + under.left + (under.width - ink.width) / 2 - ink.left
        placed.append(Placed(glyph: mark, x: x, y: letter.y, rise: rise))
    }

    /// Turns line numbers into base lines, aligns lines, and moves everything so that nothing extends to the left or
    /// above.
    private func place(_ align: TextAlignment) {
        let widest = lineWidths.max() ?? 0
        let border = Int(face.outline.rounded(.up))
        var (minX, minY) = (-border, -border)
        var (maxX, maxY) = (
            widest + border, face.ascender + (lineWidths.count - 1) * face.lineHeight + face.descender + border
        )
        for index in placed.indices {
            let line = placed[index].y
            let gap = widest - lineWidths[line]
            placed[index].x += align == .left ? 0 : align == .right ? gap : gap / 2
            placed[index].y = face.ascender + line * face.lineHeight - placed[index].rise
            guard let bitmap = placed[index].glyph.edge ?? placed[index].glyph.ink else { continue }
            let (x, y) = (placed[index].x + bitmap.left, placed[index].y - bitmap.top)
            (minX, minY) = (min(minX, x), min(minY, y))
            (maxX, maxY) = (max(maxX, x + bitmap.width), max(maxY, y + bitmap.height))
        }
        for index in placed.indices {
            placed[index].x -= minX
            placed[index].y -= minY
        }
        (width, height) = (maxX - minX, maxY - minY)
    }
}

/// On which side lines of different length begin or end together.
package enum TextAlignment: String, OptionChoice { case left, center, right }
