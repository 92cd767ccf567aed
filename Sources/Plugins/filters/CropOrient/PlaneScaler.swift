// SPDX-License-Identifier: Apache-2.0

import CYUV
import FrameCore
import Shared

/// Scales a plane bilinearly and turns it in the same pass.
///
/// Sample centres map to sample centres; positions and weights are in steps of 1/128. Each output row is first
/// blended from two input rows, then each of its samples from two samples of the blend. Where sides are swapped,
/// rows are gathered into strips, whose columns are written as rows. The input is read once, row after row. Tables
/// and scratch memory are made here, once; a call allocates nothing.
///
/// - Precondition: No side shrinks to less than half, since the filter would skip samples.
final class PlaneScaler {
    /// Samples and rows.
    private let from: Size
    /// Samples and rows of the scaled plane, before its sides are swapped.
    private let to: Size
    private let unit: Int
    private let orientation: Orientation
    private let groups: UnsafeMutableBufferPointer<fh_resample_group>
    /// One blended row; then the rows of a strip.
    private let scratch: UnsafeMutableRawBufferPointer
    private let rowBytes: Int
    private let stripStride: Int
    private static let stripRows = 64
    /// How many rows ahead memory is prefetched.
    private static let rowsAhead = 6

    init(from: Size, to: Size, unit: Int, orientation: Orientation) {
        precondition(
            from.width <= 2 * to.width && from.height <= 2 * to.height, "a step of scaling is to the half at least")
        self.from = from
        self.to = to
        self.unit = unit
        self.orientation = orientation
        groups = Self.groups(from.width, to.width, unit: unit, isReversed: orientation.flips.columns)
        func padded(_ bytes: Int) -> Int { (bytes + 16 + 63) / 64 * 64 }
        rowBytes = padded(from.width * unit)
        stripStride = padded(to.width * unit)
        scratch = .allocate(
            byteCount: rowBytes + (orientation.swapsSides ? stripStride * Self.stripRows : 0),
            alignment: VideoFormat.strideAlignment)
        scratch.initializeMemory(as: UInt8.self, repeating: 0)
    }

    deinit {
        groups.deallocate()
        scratch.deallocate()
    }

    /// Where sample `index` of `count` lies among `sourceCount`, in steps of 1/128, rounded to nearest.
    private static func position(_ index: Int, of count: Int, among sourceCount: Int) -> Int {
        let distance = ((2 * index + 1) * sourceCount - count) * 128
        return min(max((distance + count) / (2 * count), 0), (sourceCount - 1) * 128)
    }

    private static func groups(_ sourceCount: Int, _ count: Int, unit: Int, isReversed: Bool)
        -> UnsafeMutableBufferPointer<fh_resample_group>
    {
        let bytes = count * unit
        let groups = UnsafeMutableBufferPointer<fh_resample_group>.allocate(capacity: (bytes + 15) / 16)
        groups.initialize(repeating: fh_resample_group())
        func place(_ byte: Int) -> Int {
            let index = min(byte / unit, count - 1)
            return position(isReversed ? count - 1 - index : index, of: count, among: sourceCount)
        }
        for half in 0..<2 * groups.count {
            let group = half / 2
            // The least position of the half: its first, or its last.
            let start = min(place(half * 8), place(half * 8 + 7)) / 128
            withUnsafeMutableBytes(of: &groups[group]) { memory in
                let offset = MemoryLayout<fh_resample_group>.offset(of: \.offset)! + 4 * (half % 2)
                memory.storeBytes(of: Int32(start * unit), toByteOffset: offset, as: Int32.self)
                for byte in 0..<8 {
                    let position = place(half * 8 + byte)
                    let weight = position % 128
                    let first = (position / 128 - start) * unit + byte % unit
                    let index = half % 2 * 16 + 2 * byte
                    memory[index] = UInt8(first)
                    // The last sample has no neighbour, and no weight for one.
                    memory[index + 1] = UInt8(weight == 0 ? first : first + unit)
                    memory[32 + index] = UInt8(128 - weight)
                    memory[32 + index + 1] = UInt8(weight)
                }
            }
        }
        return groups
    }

    /// - Parameters:
    ///   - source: A plane of the size `from`.
    ///   - target: A plane of the size `to`, or of that size with its sides swapped.
    func scale(_ source: Picture.Layer, into target: Picture.Layer) {
        let row = scratch.baseAddress!.assumingMemoryBound(to: UInt8.self)
        let strip = row + rowBytes
        let isReversed = orientation.flips.rows
        var asked = 0
        for top in stride(from: 0, to: to.height, by: Self.stripRows) {
            let count = min(Self.stripRows, to.height - top)
            for y in top..<top + count {
                let position = Self.position(y, of: to.height, among: from.height)
                let (first, weight) = (position / 128, position % 128)
                while asked < min(first + 2 + Self.rowsAhead, from.height) {
                    fh_prefetch(source.bytes + asked * source.strideBytes, from.width * unit)
                    asked += 1
                }
                let upper = source.bytes + first * source.strideBytes
                fh_resample_blend(
                    row, upper, weight == 0 ? upper : upper + source.strideBytes, from.width * unit, Int32(weight))
                let out =
                    orientation.swapsSides
                    ? strip + (isReversed ? count - 1 - (y - top) : y - top) * stripStride
                    : target.bytes + (isReversed ? to.height - 1 - y : y) * target.strideBytes
                fh_resample_columns(out, to.width * unit, row, groups.baseAddress!)
            }
            guard orientation.swapsSides else { continue }
            let column = isReversed ? to.height - top - count : top
            fh_transpose(target.bytes + column * unit, target.strideBytes, strip, stripStride, to.width, count, unit)
        }
    }
}
