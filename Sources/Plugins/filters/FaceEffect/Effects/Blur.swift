// SPDX-License-Identifier: Apache-2.0

import Shared

/// Blurs a region: means of small blocks, three box filters over them, and linear interpolation between them.
///
/// Three boxes come close to a Gaussian; working on blocks makes a wide blur as cheap as a narrow one. Beyond the
/// region's edge the last row and column are repeated.
final class Blur {
    private let spare: UnsafeMutablePointer<UInt8>
    private let lines: (UnsafeMutablePointer<UInt8>, UnsafeMutablePointer<UInt8>)

    init(width: Int, height: Int) {
        spare = .allocate(capacity: (width / 2 + 3) * (height / 2 + 3))
        lines = (.allocate(capacity: width + 2), .allocate(capacity: width + 2))
    }

    deinit {
        spare.deallocate()
        lines.0.deallocate()
        lines.1.deallocate()
    }

    /// [stage thread] Fills `layer` for one region.
    ///
    /// - Parameter sigma: Standard deviation in pixels.
    func render(_ picture: Picture, _ region: EffectRegion, sigma: Double, _ means: BlockMeans, into layer: EffectLayer)
    {
        // Blocks a third of sigma wide add little to its square.
        let side = max(Int(sigma / 3) / 2 * 2, 2)
        // Three boxes of 2r + 1 blocks have the variance r (r + 1).
        let spread = sigma / Double(side)
        let radius = max(Int(((spread * spread + 0.25).squareRoot() - 0.5).rounded()), 1)
        for index in 0..<3 {
            let shift = index == 0 ? 0 : 1
            let area = region.area(of: index)
            means.measure(
                Component(picture, index), area, middleX: area.left, middleY: area.top, blockSide: side >> shift)
            for _ in 0..<3 {
                boxRows(means.values, spare, columns: means.columns, rows: means.rows, radius: radius)
                boxColumns(spare, means.values, columns: means.columns, rows: means.rows, radius: radius)
            }
            enlarge(means, area, into: layer[index])
        }
    }

    private func boxRows(
        _ source: UnsafeMutablePointer<UInt8>, _ target: UnsafeMutablePointer<UInt8>, columns: Int, rows: Int,
        radius: Int
    ) {
        for y in 0..<rows {
            box(source + y * columns, target + y * columns, count: columns, step: 1, radius: radius)
        }
    }

    private func boxColumns(
        _ source: UnsafeMutablePointer<UInt8>, _ target: UnsafeMutablePointer<UInt8>, columns: Int, rows: Int,
        radius: Int
    ) {
        for x in 0..<columns { box(source + x, target + x, count: rows, step: columns, radius: radius) }
    }

    /// A running mean of 2 × radius + 1 values.
    private func box(
        _ source: UnsafeMutablePointer<UInt8>, _ target: UnsafeMutablePointer<UInt8>, count: Int, step: Int, radius: Int
    ) {
        let last = count - 1
        var sum: UInt32 = 0
        for offset in -radius...radius { sum &+= UInt32(source[min(max(offset, 0), last) * step]) }
        let width = UInt32(2 * radius + 1)
        for index in 0..<count {
            target[index * step] = UInt8(truncatingIfNeeded: (sum &+ width / 2) / width)
            sum =
                sum &+ UInt32(source[min(index + radius + 1, last) * step])
                &- UInt32(source[max(index - radius, 0) * step])
        }
    }

    /// Interpolates linearly in both directions between the block means, which stand in the middle of their blocks.
    private func enlarge(
        _ means: BlockMeans, _ area: (left: Int, top: Int, columns: Int, rows: Int),
        into target: UnsafeMutablePointer<UInt8>
    ) {
        let side = means.side
        let (upper, lower) = lines
        var have = (-1, -1)
        for y in 0..<area.rows {
            // Counted in half samples, so that the middle of a block is a whole number; the result is in 256ths of
            // a block.
            let place = ((2 * y + 1 - side) * 256) / (2 * side)
            let row = place < 0 ? -1 : place >> 8
            let share = UInt32(place < 0 ? 256 + place : place & 255)
            let wanted = (min(max(row, 0), means.rows - 1), min(max(row + 1, 0), means.rows - 1))
            if wanted != have {
                widen(means, wanted.0, count: area.columns, into: upper)
                widen(means, wanted.1, count: area.columns, into: lower)
                have = wanted
            }
            let line = target + y * area.columns
            for x in 0..<area.columns {
                let sum = UInt32(upper[x]) &* (256 &- share) &+ UInt32(lower[x]) &* share &+ 128
                line[x] = UInt8(truncatingIfNeeded: sum >> 8)
            }
        }
    }

    private func widen(_ means: BlockMeans, _ row: Int, count: Int, into target: UnsafeMutablePointer<UInt8>) {
        let line = means.values + row * means.columns
        let side = means.side
        for x in 0..<count {
            let place = ((2 * x + 1 - side) * 256) / (2 * side)
            let column = place < 0 ? -1 : place >> 8
            let share = UInt32(place < 0 ? 256 + place : place & 255)
            let a = UInt32(line[min(max(column, 0), means.columns - 1)])
            let b = UInt32(line[min(max(column + 1, 0), means.columns - 1)])
            target[x] = UInt8(truncatingIfNeeded: (a &* (256 &- share) &+ b &* share &+ 128) >> 8)
        }
    }
}
