// SPDX-License-Identifier: Apache-2.0

/// How a JPEG or PNG file carries the mark of the stage that made it (``RecordingMark``).
///
/// - JPEG (ITU-T T.81, B.2.4.6): an application segment `APP10` behind those at the file's start, which decoders skip.
/// - PNG (PNG specification, 5.3 and 5.4): an ancillary, private chunk `fhMK` behind `IHDR`. It is not safe to copy: an
///   editor that changes the picture drops it, and so the changed file is nobody's.
///
/// Pure.
public enum MarkedPicture {
    /// The bytes of a file with a mark in it; nil where they are neither JPEG nor PNG, or where the mark is too long.
    ///
    /// - Parameters:
    ///   - mark: The mark.
    ///   - file: All bytes of a JPEG or PNG file without a mark.
    public static func file(_ file: [UInt8], with mark: RecordingMark) -> [UInt8]? {
        guard let payload = mark.payload else { return nil }
        if file.starts(with: png), file.count >= headerEnd {
            let chunk = chunkName + payload
            return file[..<headerEnd] + big(UInt32(payload.count)) + chunk + big(crc(chunk)) + file[headerEnd...]
        }
        guard let place = segments(of: file)?.end else { return nil }
        let count = payload.count + 2
        return file[..<place] + [0xFF, segment, UInt8(count >> 8), UInt8(count & 255)] + payload + file[place...]
    }

    /// The mark in a file, of which these are the first bytes; nil where there is none.
    static func mark(atStartOf bytes: [UInt8]) -> RecordingMark? {
        if bytes.starts(with: png) {
            let chunk = bytes.dropFirst(headerEnd)
            let count = chunk.prefix(4).reduce(0) { $0 << 8 | Int($1) }
            guard chunk.dropFirst(4).starts(with: chunkName), count <= chunk.count - 8 else { return nil }
            return RecordingMark(payload: chunk.dropFirst(8).prefix(count))
        }
        return segments(of: bytes)?.payload.flatMap { RecordingMark(payload: bytes[$0]) }
    }

    private static let png: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
    /// Where the chunk `IHDR` ends, which every file begins with.
    private static let headerEnd = 8 + 25
    private static let chunkName = Array("fhMK".utf8)
    /// APP10.
    private static let segment: UInt8 = 0xEA

    /// The application segments at the start of a JPEG file: where they end, and the mark's content; nil for any other
    /// file.
    private static func segments(of bytes: [UInt8]) -> (end: Int, payload: Range<Int>?)? {
        guard bytes.starts(with: [0xFF, 0xD8, 0xFF]) else { return nil }
        var place = 2
        var payload: Range<Int>?
        while place + 4 <= bytes.count, bytes[place] == 0xFF, (0xE0...0xEF).contains(bytes[place + 1]) {
            let count = Int(bytes[place + 2]) << 8 | Int(bytes[place + 3])
            guard count >= 2, place + 2 + count <= bytes.count else { break }
            let content = place + 4..<place + 2 + count
            if bytes[place + 1] == segment, bytes[content].starts(with: RecordingMark.identifier) { payload = content }
            place = content.upperBound
        }
        return (place, payload)
    }

    private static func big(_ value: UInt32) -> [UInt8] {
        stride(from: UInt32(24), through: 0, by: -8).map { UInt8(truncatingIfNeeded: value >> $0) }
    }

    /// The checksum of a chunk (PNG specification, annex D).
    private static func crc(_ bytes: [UInt8]) -> UInt32 {
        ~bytes.reduce(UInt32.max) { crc, byte in
            (0..<8).reduce(crc ^ UInt32(byte)) { crc, _ in crc & 1 == 1 ? crc >> 1 ^ 0xEDB8_8320 : crc >> 1 }
        }
    }
}
