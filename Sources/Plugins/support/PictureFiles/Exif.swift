// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The description of a picture in its file: Exif 2.32 (CIPA DC-008), as a TIFF in little-endian order.
enum Exif {
    private enum Value {
        case short(Int)
        case long(Int)
        /// With a zero at its end.
        case text(String)
        /// UNDEFINED: bytes as they are.
        case plain([UInt8])
        case ratio(Int, Int)

        var type: Int {
            switch self {
            case .text: 2
            case .short: 3
            case .long: 4
            case .ratio: 5
            case .plain: 7
            }
        }
        var bytes: [UInt8] {
            switch self {
            case .short(let number): Exif.little(number, 2)
            case .long(let number): Exif.little(number, 4)
            case .text(let text): Array(text.utf8) + [0]
            case .plain(let bytes): bytes
            case .ratio(let above, let below): Exif.little(above, 4) + Exif.little(below, 4)
            }
        }
        var count: Int {
            switch self {
            case .short, .long, .ratio: 1
            case .text, .plain: bytes.count
            }
        }
    }

    /// - Parameter takenAt: Nil writes no time.
    static func bytes(of size: PictureSize, takenAt: WallTime?) -> [UInt8] {
        let header = Array("II".utf8) + little(42, 2) + little(8, 4)
        // Orientation (upright), X- and YResolution with their unit (unknown: 72 an inch), Software, YCbCrPositioning.
        let about: [(Int, Value)] = [
            (0x0112, .short(1)), (0x011a, .ratio(72, 1)), (0x011b, .ratio(72, 1)), (0x0128, .short(2)),
            (0x0131, .text("framehost")), (0x0213, .short(1)),
        ]
        // The pointer's entry is as long as any other.
        let second = header.count + directory(about + [(0x8769, .long(0))], at: header.count).count
        return header + directory(about + [(0x8769, .long(second))], at: header.count)
            + directory(picture(size, takenAt), at: second)
    }

    private static func picture(_ size: PictureSize, _ takenAt: WallTime?) -> [(Int, Value)] {
        // In the order of their tags, as TIFF requires.
        var entries: [(Int, Value)] = [(0x9000, .plain(Array("0232".utf8)))]
        // DateTimeOriginal, OffsetTimeOriginal.
        if let takenAt { entries += [(0x9003, .text(takenAt.exifText)), (0x9011, .text("+00:00"))] }
        // ComponentsConfiguration: Y, Cb, Cr.
        entries.append((0x9101, .plain([1, 2, 3, 0])))
        // SubSecTimeOriginal.
        if let takenAt { entries.append((0x9291, .text(digits(takenAt.millisecond, 3)))) }
        // FlashpixVersion, ColorSpace sRGB, PixelXDimension, PixelYDimension.
        return entries + [
            (0xa000, .plain(Array("0100".utf8))), (0xa001, .short(1)), (0xa002, .long(size.width)),
            (0xa003, .long(size.height)),
        ]
    }

    /// One directory at `offset` of the file. Values that do not fit into an entry follow it (TIFF 6.0, section 2).
    private static func directory(_ entries: [(Int, Value)], at offset: Int) -> [UInt8] {
        var table = little(entries.count, 2)
        var behind: [UInt8] = []
        let end = offset + 2 + 12 * entries.count + 4
        for (tag, value) in entries {
            let bytes = value.bytes
            table += little(tag, 2) + little(value.type, 2) + little(value.count, 4)
            if bytes.count <= 4 {
                table += bytes + [UInt8](repeating: 0, count: 4 - bytes.count)
            } else {
                table += little(end + behind.count, 4)
                // Values begin at even offsets.
                behind += bytes + (bytes.count % 2 == 1 ? [0] : [])
            }
        }
        return table + little(0, 4) + behind
    }

    private static func little(_ value: Int, _ count: Int) -> [UInt8] {
        (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
    }

    static func digits(_ value: Int, _ count: Int) -> String {
        let text = String(value)
        return String(repeating: "0", count: max(count - text.count, 0)) + text
    }
}

extension WallTime {
    /// `2026:11:23 01:34:57`
    var exifText: String {
        let date = [Exif.digits(year, 4), Exif.digits(month, 2), Exif.digits(day, 2)].joined(separator: ":")
        return date + " " + [hour, minute, second].map { Exif.digits($0, 2) }.joined(separator: ":")
    }
}
