// SPDX-License-Identifier: Apache-2.0

import CYUV
import FrameCore
import Shared

/// Turns and mirrors single planes of 1, 2 or 4 bytes a sample, exactly.
///
/// These are the planes of i420, nv12 and bgra: luma and chroma of one byte, interleaved chroma of two, packed
/// colour of four. libyuv's functions return non-zero only for planes without rows or columns. Pointers are used
/// within a call and never kept.
enum PlaneKernels {
    /// Mirrors and turns; allocates nothing.
    ///
    /// A negative height makes libyuv read from the last row on, which flips the picture at no cost.
    static func orient(_ source: Picture.Layer, _ orientation: Orientation, into target: Picture.Layer) {
        let height = Int32(source.rows)
        switch (orientation.isMirrored, orientation.quarterTurns) {
        case (false, 0): copy(source, height, into: target)
        case (true, 2): copy(source, -height, into: target)
        case (true, 0): mirror(source, height, into: target)
        // libyuv's own half turn is not used, since it allocates a row each time.
        case (false, 2): mirror(source, -height, into: target)
        default: turn(source, orientation, into: target)
        }
    }

    private static func copy(_ source: Picture.Layer, _ height: Int32, into target: Picture.Layer) {
        CopyPlane(source.bytes, source.stride, target.bytes, target.stride, Int32(source.rowBytes), height)
    }

    private static func mirror(_ source: Picture.Layer, _ height: Int32, into target: Picture.Layer) {
        let width = Int32(source.samples)
        switch source.unit.bytes {
        case 1: MirrorPlane(source.bytes, source.stride, target.bytes, target.stride, width, height)
        case 2: MirrorUVPlane(source.bytes, source.stride, target.bytes, target.stride, width, height)
        default: ARGBMirror(source.bytes, source.stride, target.bytes, target.stride, width, height)
        }
    }

    /// Writes columns as rows: from the last column on where the picture was flipped left to right before, from the
    /// last row on where it was flipped upside down. Works by strips of rows, whose columns stay in the processor's
    /// cache until all are written.
    private static func turn(_ source: Picture.Layer, _ orientation: Orientation, into target: Picture.Layer) {
        let flips = orientation.flips
        let unit = source.unit.bytes
        let input = source.bytes + (flips.rows ? (source.rows - 1) * source.strideBytes : 0)
        let inputStride = flips.rows ? -source.strideBytes : source.strideBytes
        let output = target.bytes + (flips.columns ? (target.rows - 1) * target.strideBytes : 0)
        let outputStride = flips.columns ? -target.strideBytes : target.strideBytes
        for top in stride(from: 0, to: source.rows, by: 64) {
            fh_transpose(
                output + top * unit, outputStride, input + top * inputStride, inputStride, source.samples,
                min(64, source.rows - top), unit)
        }
    }
}

extension Orientation {
    /// Every orientation consists of: columns in reverse order or not, rows in reverse order or not, and then, where
    /// sides are swapped, columns written as rows.
    var flips: (columns: Bool, rows: Bool) {
        (isMirrored != (quarterTurns == 2 || quarterTurns == 3), quarterTurns == 1 || quarterTurns == 2)
    }
}

extension Picture.Layer {
    var bytes: UnsafeMutablePointer<UInt8> { base.assumingMemoryBound(to: UInt8.self) }
    fileprivate var stride: Int32 { Int32(strideBytes) }
    /// Samples of a row: bytes, pairs of chroma or pixels.
    var samples: Int { rowBytes / unit.bytes }
}
