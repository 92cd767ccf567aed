// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// One plane's part of what is laid over a picture: `plane × keep ÷ 255 + add` for every byte of a rectangle of that plane.
///
/// It is set when what is laid over changes, and blended for each frame. `text` and `picture-overlay` share it.
package final class OverlayLayer {
    private var firstByte = 0
    private var firstRow = 0
    private var byteCount = 0
    private var rowCount = 0
    private var keep: [UInt8] = []
    private var add: [UInt8] = []

    package init() {}

    /// Clears the layer.
    package func clear() { rowCount = 0 }

    /// Starts a rectangle of `byteCount` bytes and `rowCount` rows, whose contents are set row by row. Memory grows
    /// to the largest rectangle so far.
    package func reset(firstByte: Int, byteCount: Int, firstRow: Int, rowCount: Int) {
        (self.firstByte, self.byteCount, self.firstRow, self.rowCount) = (firstByte, byteCount, firstRow, rowCount)
        guard keep.count < byteCount * rowCount else { return }
        keep = Array(repeating: 255, count: byteCount * rowCount)
        add = Array(repeating: 0, count: byteCount * rowCount)
    }

    /// Lends one row of the rectangle for setting, `byteCount` bytes of each: how much of the plane's byte stays, in 255ths,
    /// and what is added to it.
    package func withRow(
        _ row: Int, _ body: (_ keep: UnsafeMutablePointer<UInt8>, _ add: UnsafeMutablePointer<UInt8>) -> Void
    ) {
        keep.withUnsafeMutableBufferPointer { keep in
            add.withUnsafeMutableBufferPointer { add in
                body(keep.baseAddress! + row * byteCount, add.baseAddress! + row * byteCount)
            }
        }
    }

    /// [stage thread] Blends the layer onto a plane. Allocates nothing.
    package func blend(onto plane: Picture.Layer) {
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
