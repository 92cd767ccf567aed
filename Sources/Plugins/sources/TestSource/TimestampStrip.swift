// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

/// The moment a frame left, burnt into its top rows: 64 cells of black and white that survive encoding.
///
/// One word a frame, most significant bit on the left: marker 0xB2, 48 bits of `CLOCK_MONOTONIC` in microseconds, CRC-8
/// of those six bytes (polynomial 0x07). Bit `63 - k` fills columns `k*W/64 ..< (k+1)*W/64` of rows `0 ..< H/24`
/// (rounded down to even).
struct TimestampStrip {
    static let formats: [PixelFormat] = [.i420, .nv12, .i010, .p010]
    static let leastWidth = 320
    static let leastHeight = 240
    static let cells = 64

    private let one: Paint
    private let zero: Paint
    private let width: Int
    private let rows: Int

    init(_ format: VideoFormat) {
        let scale = 1 << (format.pixelFormat.bitDepth - 8)
        one = Paint(luma: 235 * scale, u: 128 * scale, v: 128 * scale, in: format.pixelFormat)
        zero = Paint(luma: 16 * scale, u: 128 * scale, v: 128 * scale, in: format.pixelFormat)
        width = format.width
        rows = Self.rows(height: format.height)
    }

    static func rows(height: Int) -> Int { height / 24 / 2 * 2 }

    /// The word of a moment, in microseconds.
    static func word(microseconds: Int64) -> UInt64 {
        let time = UInt64(bitPattern: microseconds) & 0xFFFF_FFFF_FFFF
        var check: UInt8 = 0
        for shift in stride(from: UInt64(40), through: 0, by: -8) {
            check ^= UInt8(truncatingIfNeeded: time >> shift)
            for _ in 0..<8 { check = check & 0x80 != 0 ? check << 1 ^ 0x07 : check << 1 }
        }
        return 0xB2 << 56 | time << 8 | UInt64(check)
    }

    /// Cell borders need not be even: both paints have the same chroma, so a shared sample is right either way.
    func draw(_ word: UInt64, on picture: Picture) {
        for cell in 0..<Self.cells {
            let left = cell * width / Self.cells
            let right = (cell + 1) * width / Self.cells
            let bit = word >> UInt64(63 - cell) & 1
            picture.fill(x: left, y: 0, width: right - left, height: rows, bit == 1 ? one : zero)
        }
    }
}
