// SPDX-License-Identifier: Apache-2.0

/// Digits, capitals and a few signs, 5 dots wide and 7 high: enough for figures in a picture.
package enum BitmapFont {
    package static let width = 5
    package static let height = 7

    /// The size of a line of text, including its margin of one dot.
    package static func box(characters: Int, scale: Int) -> (width: Int, height: Int) {
        ((characters * (width + 1) + 1) * scale, (height + 2) * scale)
    }

    /// Row `row` of a character: five dots from the top bit on. A character that the font lacks is a full block.
    package static func row(_ row: Int, of character: UInt8) -> UInt8 {
        UInt8(truncatingIfNeeded: (glyph(character) >> UInt64((height - 1 - row) * width) & 0b11111) << 3)
    }

    // swift-format-ignore
    private static func glyph(_ character: UInt8) -> UInt64 {
        switch character {
        case UInt8(ascii: " "): 0
        case UInt8(ascii: "0"): 0b01110_10001_10011_10101_11001_10001_01110
        case UInt8(ascii: "1"): 0b00100_01100_00100_00100_00100_00100_01110
        case UInt8(ascii: "2"): 0b01110_10001_00001_00110_01000_10000_11111
        case UInt8(ascii: "3"): 0b01110_10001_00001_00110_00001_10001_01110
        case UInt8(ascii: "4"): 0b00010_00110_01010_10010_11111_00010_00010
        case UInt8(ascii: "5"): 0b11111_10000_11110_00001_00001_10001_01110
        case UInt8(ascii: "6"): 0b00110_01000_10000_11110_10001_10001_01110
        case UInt8(ascii: "7"): 0b11111_00001_00010_00100_01000_01000_01000
        case UInt8(ascii: "8"): 0b01110_10001_10001_01110_10001_10001_01110
        case UInt8(ascii: "9"): 0b01110_10001_10001_01111_00001_00010_01100
        case UInt8(ascii: "."): 0b00000_00000_00000_00000_00000_01100_01100
        case UInt8(ascii: ":"): 0b00000_01100_01100_00000_01100_01100_00000
        case UInt8(ascii: "-"): 0b00000_00000_00000_01110_00000_00000_00000
        case UInt8(ascii: "+"): 0b00000_00100_00100_11111_00100_00100_00000
        case UInt8(ascii: "/"): 0b00001_00001_00010_00100_01000_10000_10000
        case UInt8(ascii: "%"): 0b11001_11001_00010_00100_01000_10011_10011
        case UInt8(ascii: "A"): 0b01110_10001_10001_11111_10001_10001_10001
        case UInt8(ascii: "B"): 0b11110_10001_10001_11110_10001_10001_11110
        case UInt8(ascii: "C"): 0b01110_10001_10000_10000_10000_10001_01110
        case UInt8(ascii: "D"): 0b11110_10001_10001_10001_10001_10001_11110
        case UInt8(ascii: "E"): 0b11111_10000_10000_11110_10000_10000_11111
        case UInt8(ascii: "F"): 0b11111_10000_10000_11110_10000_10000_10000
        case UInt8(ascii: "G"): 0b01110_10001_10000_10111_10001_10001_01111
        case UInt8(ascii: "H"): 0b10001_10001_10001_11111_10001_10001_10001
        case UInt8(ascii: "I"): 0b01110_00100_00100_00100_00100_00100_01110
        case UInt8(ascii: "J"): 0b00111_00010_00010_00010_00010_10010_01100
        case UInt8(ascii: "K"): 0b10001_10010_10100_11000_10100_10010_10001
        case UInt8(ascii: "L"): 0b10000_10000_10000_10000_10000_10000_11111
        case UInt8(ascii: "M"): 0b10001_11011_10101_10101_10001_10001_10001
        case UInt8(ascii: "N"): 0b10001_11001_10101_10101_10011_10001_10001
        case UInt8(ascii: "O"): 0b01110_10001_10001_10001_10001_10001_01110
        case UInt8(ascii: "P"): 0b11110_10001_10001_11110_10000_10000_10000
        case UInt8(ascii: "Q"): 0b01110_10001_10001_10001_10101_10010_01101
        case UInt8(ascii: "R"): 0b11110_10001_10001_11110_10100_10010_10001
        case UInt8(ascii: "S"): 0b01111_10000_10000_01110_00001_00001_11110
        case UInt8(ascii: "T"): 0b11111_00100_00100_00100_00100_00100_00100
        case UInt8(ascii: "U"): 0b10001_10001_10001_10001_10001_10001_01110
        case UInt8(ascii: "V"): 0b10001_10001_10001_10001_10001_01010_00100
        case UInt8(ascii: "W"): 0b10001_10001_10001_10101_10101_11011_10001
        case UInt8(ascii: "X"): 0b10001_10001_01010_00100_01010_10001_10001
        case UInt8(ascii: "Y"): 0b10001_10001_01010_00100_00100_00100_00100
        case UInt8(ascii: "Z"): 0b11111_00001_00010_00100_01000_10000_11111
        default: 0b11111_11111_11111_11111_11111_11111_11111
        }
    }
}
