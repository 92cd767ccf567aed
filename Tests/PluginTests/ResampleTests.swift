// SPDX-License-Identifier: Apache-2.0

import CYUV
import Testing

/// Vector code against plain C, bit for bit, at all remainders.
@Suite struct ResampleTests {
    private static let widths = Array(1...70) + [127, 128, 1080]

    private func noise(_ count: Int, _ seed: UInt32) -> [UInt8] {
        var state = seed
        return (0..<count).map { _ in
            state = state &* 1_664_525 &+ 1_013_904_223
            return UInt8(truncatingIfNeeded: state >> 24)
        }
    }

    @Test(arguments: [0, 1, 63, 64, 127]) func blendsAsThePlainCode(weight: Int32) {
        for width in Self.widths {
            let (a, b) = (noise(width, 1), noise(width, 2))
            // One more, which must stay.
            var (fast, plain) = ([UInt8](repeating: 77, count: width + 1), [UInt8](repeating: 77, count: width + 1))
            fh_resample_blend(&fast, a, b, width, weight)
            fh_resample_blend_plain(&plain, a, b, width, weight)
            #expect(fast == plain)
            #expect(fast[width] == 77)
            for x in 0..<width {
                let exact = (Double(a[x]) * Double(128 - weight) + Double(b[x]) * Double(weight)) / 128
                #expect(Double(Int8(bitPattern: fast[x])) == (exact + 0.5).rounded(.down) - 128)
            }
        }
    }

    @Test func mixesColumnsAsThePlainCode() {
        for width in Self.widths {
            let row = noise(width + 16, 3)
            var choice = noise((width + 15) / 16 * 64, 4)[...]
            var groups = [fh_resample_group](repeating: fh_resample_group(), count: (width + 15) / 16)
            for index in groups.indices {
                withUnsafeMutableBytes(of: &groups[index]) { memory in
                    for byte in 0..<32 { memory[byte] = choice.removeFirst() % 16 }
                    for byte in stride(from: 32, to: 64, by: 2) {
                        memory[byte] = choice.removeFirst() % 129
                        memory[byte + 1] = 128 - memory[byte]
                    }
                }
                groups[index].offset = (Int32(index * 16 % width), Int32(width))
            }
            var (fast, plain) = ([UInt8](repeating: 77, count: width + 1), [UInt8](repeating: 77, count: width + 1))
            fh_resample_columns(&fast, width, row, groups)
            fh_resample_columns_plain(&plain, width, row, groups)
            #expect(fast == plain)
            #expect(fast[width] == 77)
        }
    }

    @Test(arguments: [1, 2, 4]) func turnsAsThePlainCode(unit: Int) {
        for columns in [1, 3, 4, 7, 8, 9, 15, 16, 17, 31, 33, 64, 65] {
            for rows in [1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 20, 63, 64] {
                let input = noise(columns * rows * unit, 5)
                let stride = rows * unit + 3
                var fast = [UInt8](repeating: 77, count: stride * columns)
                var plain = fast
                fh_transpose(&fast, stride, input, columns * unit, columns, rows, unit)
                fh_transpose_plain(&plain, stride, input, columns * unit, columns, rows, unit)
                #expect(fast == plain, "\(columns)x\(rows)")
                for (x, y) in [(0, 0), (columns - 1, 0), (0, rows - 1), (columns - 1, rows - 1)] {
                    #expect(fast[x * stride + y * unit] == input[(y * columns + x) * unit])
                }
            }
        }
    }
}
