// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// What the markers before a JPEG picture's data say (ITU-T T.81, annex B), as far as it takes to choose its decoder.
package struct JPEGOutline: Equatable {
    package var size = PictureSize(0, 0)
    /// By JFIF; 0 where it is not given.
    package var sampleAspect = Rational(0)
    /// Whether it is as cameras make them, 8 bits in 4:2:0 or 4:2:2 without further statements. Others have a colour space,
    /// an orientation or a field order that libavcodec knows: 12 bits, lossless, arithmetic, grey, RGB, CMYK, Exif, Avid.
    package var isUsual = false

    /// nil where the bytes are no JPEG, or the markers are cut short.
    package init?(_ bytes: UnsafeRawBufferPointer) {
        guard bytes.count > 4, bytes[0] == 0xFF, bytes[1] == 0xD8 else { return nil }
        var (place, isOdd) = (2, false)
        while true {
            guard place + 4 <= bytes.count, bytes[place] == 0xFF else { return nil }
            let marker = bytes[place + 1]
            if marker == 0xFF {
                place += 1
                continue
            }
            let length = Int(bytes[place + 2]) << 8 | Int(bytes[place + 3])
            guard length >= 2, place + 2 + length <= bytes.count, marker != 0xD9 else { return nil }
            let body = UnsafeRawBufferPointer(rebasing: bytes[place + 4..<place + 2 + length])
            switch marker {
            case 0xDA:  // SOS
                isUsual = size.width > 0 && size.height > 0 && !isOdd
                return
            case 0xC0...0xC2:  // SOF0...2, Huffman; others are lossless, hierarchical or arithmetic
                isOdd = isOdd || !readFrame(body)
            case 0xC3, 0xC5...0xCF: isOdd = true
            case 0xE0: isOdd = isOdd || !readAPP0(body)
            case 0xE1: isOdd = isOdd || Self.begins(body, with: ["Exif", "mjpg"])
            case 0xE3: isOdd = isOdd || Self.begins(body, with: ["_JPS"])
            case 0xEE: isOdd = true
            case 0xFE:
                isOdd = isOdd || Self.begins(body, with: ["CS=ITU601", "AVID", "Intel(R) JPEG", "Metasoft"])
            default: break
            }
            place += 2 + length
        }
    }

    private mutating func readFrame(_ body: UnsafeRawBufferPointer) -> Bool {
        guard body.count >= 15, size.width == 0 else { return false }
        size = PictureSize(Int(body[3]) << 8 | Int(body[4]), Int(body[1]) << 8 | Int(body[2]))
        // Precision, and the identifiers and sampling factors of three components: "RGB" names colours.
        let isLuma = body[6] == 1 && body[9] == 2 && body[12] == 3 || body[6] == 0 && body[9] == 1 && body[12] == 2
        let isHalved = (body[7], body[10]) == (0x22, 0x11) || (body[7], body[10]) == (0x21, 0x11)
        // 4:2:2 as ffmpeg writes it.
        let isHalvedOtherwise = (body[7], body[10]) == (0x22, 0x12)
        return body[0] == 8 && body[5] == 3 && isLuma && (isHalved || isHalvedOtherwise) && body[10] == body[13]
    }

    private mutating func readAPP0(_ body: UnsafeRawBufferPointer) -> Bool {
        if Self.begins(body, with: ["JFIF"]), body.count >= 12 {
            let (across, down) = (Int32(body[8]) << 8 | Int32(body[9]), Int32(body[10]) << 8 | Int32(body[11]))
            if across > 0, down > 0 { sampleAspect = Rational(across, down) }
            return true
        }
        // Its fifth byte says which field it is; 0 for a whole picture.
        if Self.begins(body, with: ["AVI1"]), body.count >= 5 { return body[4] == 0 }
        return Self.begins(body, with: ["JFXX"])
    }

    private static func begins(_ body: UnsafeRawBufferPointer, with words: [StaticString]) -> Bool {
        words.contains { word in
            body.count >= word.utf8CodeUnitCount
                && word.withUTF8Buffer { $0.elementsEqual(body.prefix(word.utf8CodeUnitCount)) }
        }
    }
}
