// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A PNG with alpha, made by hand: eight bits a channel, rows unfiltered, stored without compression (PNG
/// specification, 5 and 10; RFC 1950, 1951).
struct TestPNG: Sendable {
    let width: Int
    let height: Int
    private let bytes: [UInt8]

    init(width: Int, height: Int, _ color: (_ x: Int, _ y: Int) -> (UInt8, UInt8, UInt8, UInt8)) {
        self.width = width
        self.height = height
        var bytes: [UInt8] = []
        for y in 0..<height {
            for x in 0..<width {
                let c = color(x, y)
                bytes += [c.0, c.1, c.2, c.3]
            }
        }
        self.bytes = bytes
    }

    /// Red, green, blue, alpha.
    func pixel(_ x: Int, _ y: Int) -> (UInt8, UInt8, UInt8, UInt8) {
        let at = (y * width + x) * 4
        return (bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3])
    }

    /// Writes a file of its own; its path.
    func write() throws -> String {
        var rows: [UInt8] = []
        for y in 0..<height { rows += [0] + bytes[(y * width * 4)..<((y + 1) * width * 4)] }
        precondition(rows.count < 65536, "one stored block")
        var adler: (UInt32, UInt32) = (1, 0)
        for byte in rows {
            adler.0 = (adler.0 + UInt32(byte)) % 65521
            adler.1 = (adler.1 + adler.0) % 65521
        }
        let count = UInt16(rows.count)
        let data: [UInt8] =
            [0x78, 0x01, 1, UInt8(count & 255), UInt8(count >> 8), UInt8(~count & 255), UInt8(~count >> 8)] + rows
            + Self.big(adler.1 << 16 | adler.0)
        var file: [UInt8] = [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]
        file += Self.chunk("IHDR", Self.big(UInt32(width)) + Self.big(UInt32(height)) + [8, 6, 0, 0, 0])
        file += Self.chunk("IDAT", data) + Self.chunk("IEND", [])
        let url = FileManager.default.temporaryDirectory.appending(path: "framehost-\(UUID().uuidString).png")
        try Data(file).write(to: url)
        return url.path
    }

    private static func big(_ value: UInt32) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) }
    }

    private static func chunk(_ name: String, _ data: [UInt8]) -> [UInt8] {
        let body = Array(name.utf8) + data
        var crc: UInt32 = 0xffff_ffff
        for byte in body {
            crc ^= UInt32(byte)
            for _ in 0..<8 { crc = crc & 1 == 1 ? crc >> 1 ^ 0xedb8_8320 : crc >> 1 }
        }
        return big(UInt32(data.count)) + body + big(~crc)
    }
}
