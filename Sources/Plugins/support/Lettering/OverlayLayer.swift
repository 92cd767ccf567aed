// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

/// One plane's part of an overlay: `plane × keep ÷ 255 + add` for every byte of a rectangle of that plane.
final class OverlayLayer {
    private var firstByte = 0
    private var firstRow = 0
    private var byteCount = 0
    private var rowCount = 0
    private var keep: [UInt8] = []
    private var add: [UInt8] = []

    /// Clears the layer.
    func clear() { rowCount = 0 }

    /// Starts a rectangle of `byteCount` bytes and `rowCount` rows, whose contents are set row by row. Memory grows
    /// to the largest rectangle so far.
    func reset(firstByte: Int, byteCount: Int, firstRow: Int, rowCount: Int) {
        (self.firstByte, self.byteCount, self.firstRow, self.rowCount) = (firstByte, byteCount, firstRow, rowCount)
        guard keep.count < byteCount * rowCount else { return }
        keep = Array(repeating: 255, count: byteCount * rowCount)
        add = Array(repeating: 0, count: byteCount * rowCount)
    }

    /// Sets one byte of each unit of a row.
    ///
    /// - Parameters:
    ///   - byte: Which of the unit's `step` bytes.
    ///   - box: The value of that byte in the colour of the layer; `edge` and `ink` likewise.
    func set(row: Int, byte: Int, step: Int, _ weights: LayerWeights, box: UInt32, edge: UInt32, ink: UInt32) {
        let start = row * byteCount + byte
        keep.withUnsafeMutableBufferPointer { keepBytes in
            add.withUnsafeMutableBufferPointer { addBytes in
                let keep = keepBytes.baseAddress! + start
                let add = addBytes.baseAddress! + start
                for unit in 0..<weights.count {
                    let (b, e, i) = (weights.box[unit], weights.edge[unit], weights.ink[unit])
                    keep[unit &* step] = 255 &- UInt8(truncatingIfNeeded: ((b &+ e &+ i) &* 255 &+ 32768) &>> 16)
                    add[unit &* step] = UInt8(truncatingIfNeeded: (b &* box &+ e &* edge &+ i &* ink &+ 32768) &>> 16)
                }
            }
        }
    }

    /// [stage thread] Blends the layer onto a plane. Allocates nothing.
    func blend(onto plane: Picture.Layer) {
        keep.withUnsafeBufferPointer { keep in
            add.withUnsafeBufferPointer { add in
                for row in 0..<rowCount {
                    let line = plane.base + (firstRow + row) * plane.strideBytes + firstByte
                    Self.blend(
                        line.assumingMemoryBound(to: UInt8.self), keep: keep.baseAddress! + row * byteCount,
                        add: add.baseAddress! + row * byteCount, count: byteCount)
                }
            }
        }
    }

    /// Division by 255 is exact: (t + 128 + (t + 128 >> 8)) >> 8 for every t up to 255². The loop becomes vector
    /// instructions.
    @inline(__always)
    private static func blend(
        _ line: UnsafeMutablePointer<UInt8>, keep: UnsafePointer<UInt8>, add: UnsafePointer<UInt8>, count: Int
    ) {
        for index in 0..<count {
            let product = UInt16(line[index]) &* UInt16(keep[index]) &+ 128
            let sum = (product &+ product &>> 8) &>> 8 &+ UInt16(add[index])
            line[index] = UInt8(truncatingIfNeeded: min(sum, 255))
        }
    }
}
