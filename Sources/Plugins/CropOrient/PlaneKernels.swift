import CYUV
import FrameCore

/// libyuv on single planes of 1, 2 or 4 bytes a sample: the only file of this plugin that imports it.
///
/// Planes are the whole of i420, nv12 and bgra: luma and chroma of one byte, interleaved chroma of two, packed colour of four. libyuv's
/// functions return non-zero only for planes without rows or columns. Pointers are used within a call and never kept.
enum PlaneKernels {
    /// Scales bilinearly; to exactly half, by means of four. Other than to half, libyuv allocates a row and frees it again, each time.
    static func scale(_ source: Picture.Layer, into target: Picture.Layer) {
        let (width, height) = (Int32(source.samples), Int32(source.rows))
        let (targetWidth, targetHeight) = (Int32(target.samples), Int32(target.rows))
        switch source.unit.bytes {
        case 1:
            ScalePlane(
                source.bytes, source.stride, width, height, target.bytes, target.stride, targetWidth, targetHeight, kFilterBox)
        case 2: UVScale(source.bytes, source.stride, width, height, target.bytes, target.stride, targetWidth, targetHeight, kFilterBox)
        default: ARGBScale(source.bytes, source.stride, width, height, target.bytes, target.stride, targetWidth, targetHeight, kFilterBox)
        }
    }

    /// Mirrors and turns; allocates nothing. `apart` has room for two planes of `target`'s chroma, one after the other.
    ///
    /// A negative height tells libyuv to read from the last row on: upside down for nothing.
    static func orient(_ source: Picture.Layer, _ orientation: Orientation, into target: Picture.Layer, apart: Picture?) {
        let height = Int32(source.rows)
        switch (orientation.isMirrored, orientation.quarterTurns) {
        case (false, 0): copy(source, height, into: target)
        case (true, 2): copy(source, -height, into: target)
        case (true, 0): mirror(source, height, into: target)
        // Not libyuv's own half turn, which allocates a row each time.
        case (false, 2): mirror(source, -height, into: target)
        // Mirrored left to right is upside down and half a turn further.
        case (false, let turns): turn(source, height, turns, into: target, apart: apart)
        case (true, let turns): turn(source, -height, turns + 2, into: target, apart: apart)
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

    private static func turn(_ source: Picture.Layer, _ height: Int32, _ turns: Int, into target: Picture.Layer, apart: Picture?) {
        let mode = RotationMode(rawValue: UInt32(turns % 4 * 90))
        let width = Int32(source.samples)
        switch source.unit.bytes {
        case 1: RotatePlane(source.bytes, source.stride, target.bytes, target.stride, width, height, mode)
        case 2: turnInterleaved(source, height, mode, into: target, apart: apart!)
        default: ARGBRotate(source.bytes, source.stride, target.bytes, target.stride, width, height, mode)
        }
    }

    /// libyuv r1857 turns interleaved chroma only into planes: those are interleaved again.
    private static func turnInterleaved(
        _ source: Picture.Layer, _ height: Int32, _ mode: RotationMode, into target: Picture.Layer, apart: Picture
    ) {
        let u = apart[0].bytes
        let v = u + target.rows * apart[0].strideBytes
        let stride = apart[0].stride
        SplitRotateUV(source.bytes, source.stride, u, stride, v, stride, Int32(source.samples), height, mode)
        MergeUVPlane(u, stride, v, stride, target.bytes, target.stride, Int32(target.samples), Int32(target.rows))
    }
}

extension Picture.Layer {
    fileprivate var bytes: UnsafeMutablePointer<UInt8> { base.assumingMemoryBound(to: UInt8.self) }
    fileprivate var stride: Int32 { Int32(strideBytes) }
    /// Samples of a row: bytes, pairs of chroma or pixels.
    fileprivate var samples: Int { rowBytes / unit.bytes }
}
