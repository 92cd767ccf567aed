// SPDX-License-Identifier: Apache-2.0

/// Makes text from outside safe for a terminal, and measures how wide it is drawn.
enum TerminalText {
    /// The text without what a terminal would obey: control characters, and marks that change the direction of text
    /// (Unicode Technical Report 36, §2.10.4). Each becomes `?`.
    static func clean(_ text: String) -> String {
        guard text.unicodeScalars.contains(where: isControl) else { return text }
        var clean = ""
        for scalar in text.unicodeScalars { clean.unicodeScalars.append(isControl(scalar) ? "?" : scalar) }
        return clean
    }

    private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0..<0x20, 0x7f..<0xa0, 0x200e, 0x200f, 0x2028...0x202e, 0x2066...0x2069: true
        default: false
        }
    }

    /// Columns of a terminal (Unicode Standard Annex 11): wide characters take two.
    static func width(_ text: String) -> Int {
        if text.utf8.allSatisfy({ $0 < 0x80 }) { return text.utf8.count }
        return text.reduce(0) { $0 + width($1) }
    }

    private static func width(_ character: Character) -> Int {
        guard let first = character.unicodeScalars.first else { return 0 }
        switch first.value {
        case 0x300...0x36f, 0x200b...0x200d, 0xfe00...0xfe0f: return 0
        case 0x1100...0x115f, 0x2e80...0x303e, 0x3041...0xa4cf, 0xac00...0xd7a3, 0xf900...0xfaff, 0xfe30...0xfe6f,
            0xff00...0xff60, 0xffe0...0xffe6, 0x1f300...0x1faff, 0x20000...0x3fffd:
            return 2
        default: return 1
        }
    }

    /// The start of the text that fits into `columns`. Where something was cut, the last column is `…`.
    static func cut(_ text: String, to columns: Int) -> String {
        guard width(text) > columns else { return text }
        guard columns > 0 else { return "" }
        var (cut, used) = ("", 0)
        for character in text {
            let next = width(character)
            guard used + next <= columns - 1 else { break }
            cut.append(character)
            used += next
        }
        return cut + "…"
    }

    /// The text, filled with spaces to `columns`.
    static func padded(_ text: String, to columns: Int, isRight: Bool) -> String {
        let space = String(repeating: " ", count: max(columns - width(text), 0))
        return isRight ? space + text : text + space
    }
}
