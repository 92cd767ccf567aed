// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

/// Makes a small picture of luma from a picture of any format: each sample is the mean of the pixels that fall on it.
/// Allocates nothing once made.
struct LumaReducer: ~Copyable {
    private let width: Int
    private let height: Int
    private let grid: CellGrid
    /// Bytes from pixel to pixel in the first plane.
    private let step: Int
    /// How much each of these bytes counts.
    private let weights: SIMD4<Float>
    /// Whether the first byte alone counts.
    private let isPlain: Bool
    /// Sums of each byte of a row over the rows of one band.
    private let sums: UnsafeMutablePointer<UInt16>
    /// The first pixel of each sample of the result, and the end.
    private let columns: UnsafeMutablePointer<Int32>

    init(_ format: VideoFormat, _ grid: CellGrid) {
        (width, height) = (format.width, format.height)
        self.grid = grid
        (step, weights) = Self.layout(format)
        isPlain = weights == SIMD4(1, 0, 0, 0)
        sums = .allocate(capacity: (format.width + 1) * step)
        sums.initialize(repeating: 0, count: (format.width + 1) * step)
        columns = .allocate(capacity: grid.width + 1)
        for column in 0...grid.width {
            (columns + column).initialize(to: Int32(column * format.width / grid.width))
        }
    }

    deinit {
        sums.deallocate()
        columns.deallocate()
    }

    /// Luma in 8 bits from the bytes of a pixel.
    private static func layout(_ format: VideoFormat) -> (step: Int, weights: SIMD4<Float>) {
        switch format.pixelFormat {
        case .i420, .nv12, .gray8: return (1, SIMD4(1, 0, 0, 0))
        case .yuyv: return (2, SIMD4(1, 0, 0, 0))
        case .i010: return (2, SIMD4(0.25, 64, 0, 0))
        case .p010: return (2, SIMD4(0, 1, 0, 0))
        case .bgra, .rgb24:
            let luma = LumaWeights(of: format)
            let (red, green, blue) = (Float(luma.red), Float(luma.green), Float(luma.blue))
            return format.pixelFormat == .bgra ? (4, SIMD4(blue, green, red, 0)) : (3, SIMD4(red, green, blue, 0))
        }
    }

    /// Reduces a picture of the format to the grid's, without padding. Of formats with three or four bytes for each pixel
    /// every second row is enough, if there are four for each sample: reading them is what costs.
    func reduce(_ picture: Picture, into target: UnsafeMutablePointer<UInt8>) {
        let base = UnsafePointer(picture[0].base.assumingMemoryBound(to: UInt8.self))
        let count = width * step
        let rowStep = step >= 3 && height >= 4 * grid.height ? 2 : 1
        for row in 0..<grid.height {
            let top = row * height / grid.height
            // More rows than a sum of 16 bits takes are not looked at.
            let bottom = min(max((row + 1) * height / grid.height, top + 1), top + 257)
            let first = base + top * picture[0].strideBytes
            for x in 0..<count { sums[x] = UInt16(first[x]) }
            var rows = 1
            for y in stride(from: top + rowStep, to: bottom, by: rowStep) {
                let line = base + y * picture[0].strideBytes
                for x in 0..<count { sums[x] &+= UInt16(line[x]) }
                rows += 1
            }
            if isPlain {
                writePlain(rows, target + row * grid.width)
            } else {
                writeWeighed(rows, target + row * grid.width)
            }
        }
    }

    private func writePlain(_ rows: Int, _ target: UnsafeMutablePointer<UInt8>) {
        for column in 0..<grid.width {
            let (begin, end) = (Int(columns[column]), Int(columns[column + 1]))
            var sum: UInt32 = 0
            for x in begin..<end { sum &+= UInt32(sums[x &* step]) }
            let samples = UInt32((end - begin) * rows)
            target[column] = UInt8(truncatingIfNeeded: (sum &+ samples / 2) / samples)
        }
    }

    private func writeWeighed(_ rows: Int, _ target: UnsafeMutablePointer<UInt8>) {
        for column in 0..<grid.width {
            let (begin, end) = (Int(columns[column]), Int(columns[column + 1]))
            var sum = SIMD4<UInt32>.zero
            for x in begin..<end {
                // What belongs to the next pixel has no weight.
                let bytes = UnsafeRawPointer(sums + x &* step).loadUnaligned(as: SIMD4<UInt16>.self)
                sum &+= SIMD4<UInt32>(truncatingIfNeeded: bytes)
            }
            let mean = (SIMD4<Float>(sum) * weights).sum() / Float((end - begin) * rows)
            target[column] = UInt8(min(max(mean + 0.5, 0), 255))
        }
    }
}
