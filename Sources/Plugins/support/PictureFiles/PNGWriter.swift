// SPDX-License-Identifier: Apache-2.0

import CPNG
import FrameCore
import Glibc
import Shared

/// Writes PNG files of red, green and blue, 8 bits each; the only file of this module that imports libpng.
final class PNGWriter {
    /// zlib's level: half the time of its usual 6, a few per cent larger.
    private static let level: Int32 = 4
    /// For each row, the filter of "none", "sub" and "up" that seems to give the smallest row.
    private static let filters = Int32(PNG_FILTER_NONE | PNG_FILTER_SUB | PNG_FILTER_UP)

    private var file = fh_png_bytes()

    deinit { free(file.bytes) }

    var byteCount: Int { file.capacity }

    func trim() {
        guard file.capacity > GrowingMemory.mostKept else { return }
        free(file.bytes)
        file = fh_png_bytes()
    }

    /// - Parameter exif: For the chunk eXIf.
    /// - Throws: ``FrameHostError`` `.callFailed` with libpng's words.
    func write(_ picture: Picture, exif: [UInt8], takenAt: WallTime?) throws -> [UInt8] {
        let rows = picture[0]
        let date = takenAt.map {
            fh_png_date(
                year: UInt16($0.year), month: UInt8($0.month), day: UInt8($0.day), hour: UInt8($0.hour),
                minute: UInt8($0.minute), second: UInt8($0.second))
        }
        try withUnsafeTemporaryAllocation(of: CChar.self, capacity: 200) { words in
            guard
                fh_png_write_bgrx(
                    &file, rows.base.assumingMemoryBound(to: UInt8.self), rows.strideBytes, UInt32(picture.width),
                    UInt32(picture.height), Self.level, Self.filters, exif, UInt32(exif.count), date ?? fh_png_date(),
                    words.baseAddress, words.count) == 0
            else {
                throw FrameHostError(
                    .callFailed, what: "a picture of \(picture.width)x\(picture.height) cannot be written as PNG",
                    remedy: "Ask for a smaller picture, or for JPEG.",
                    cause: String(cString: words.baseAddress!))
            }
        }
        return Array(UnsafeBufferPointer(start: file.bytes, count: file.count))
    }
}
