// SPDX-License-Identifier: Apache-2.0

import CYUV
import FrameCore
import Shared

/// A plane of bytes, or of the packed samples that a call expects.
struct PixelPlane {
    var base: UnsafeMutablePointer<UInt8>
    var strideBytes: Int
    /// Samples of a row.
    var width: Int
    var height: Int

    fileprivate var stride: Int32 { Int32(strideBytes) }
}

extension PixelPlane {
    init(_ layer: Picture.Layer, _ width: Int, _ height: Int) {
        self.init(
            base: layer.base.assumingMemoryBound(to: UInt8.self), strideBytes: layer.strideBytes, width: width,
            height: height)
    }
}

/// libyuv's calls for whole pictures; with ``PlaneReducer`` the only place of this module that calls libyuv.
///
/// Its names for packed RGB are by the order within a little-endian word: our bgra is its "ARGB", our rgb24 its
/// "RAW". Calls fail only for arguments that are not pictures, which plans exclude. Pointers are used within a call
/// and never kept.
enum PixelCalls {
    /// Fills all of a packed picture with a grey.
    static func fill(_ picture: Picture, grey: UInt32) {
        let plane = PixelPlane(picture[0], picture.width, picture.height)
        ARGBRect(
            plane.base, plane.stride, 0, 0, Int32(picture.width), Int32(picture.height),
            0xff00_0000 | grey << 16 | grey << 8 | grey)
    }

    /// Copies a packed picture into one of equal size.
    static func copy(_ picture: Picture, into target: Picture) {
        let (from, to) = (plane(picture), plane(target))
        CopyPlane(from.base, from.stride, to.base, to.stride, Int32(picture.width * 4), Int32(picture.height))
    }

    /// Mirrors a packed picture left to right where `orientation` says so, then turns it clockwise. `target` must
    /// have the turned size.
    static func turn(_ picture: Picture, _ orientation: Orientation, into target: Picture) {
        let (from, to) = (plane(picture), plane(target))
        // A negative height exchanges top and bottom first; half a turn more makes left and right of it.
        let turns = (orientation.quarterTurns + (orientation.isMirrored ? 2 : 0)) % 4
        let height = Int32(orientation.isMirrored ? -picture.height : picture.height)
        ARGBRotate(
            from.base, from.stride, to.base, to.stride, Int32(picture.width), height,
            [kRotate0, kRotate90, kRotate180, kRotate270][turns])
    }

    /// Pairs of chroma into two planes.
    static func splitChroma(_ pairs: PixelPlane, into planes: [PixelPlane]) {
        SplitUVPlane(
            pairs.base, pairs.stride, planes[0].base, planes[0].stride, planes[1].base, planes[1].stride,
            Int32(pairs.width), Int32(pairs.height))
    }

    /// yuyv into luma and two planes of chroma with all rows.
    static func split422(_ groups: PixelPlane, into planes: [PixelPlane]) {
        YUY2ToI422(
            groups.base, groups.stride, planes[0].base, planes[0].stride, planes[1].base, planes[1].stride,
            planes[2].base, planes[2].stride, Int32(groups.width), Int32(groups.height))
    }

    /// bgra or rgb24 into red, green and blue.
    static func splitRGB(_ picture: Picture, into planes: [PixelPlane]) {
        let from = plane(picture)
        let (width, height) = (Int32(picture.width), Int32(picture.height))
        if picture.pixelFormat == .bgra {
            SplitARGBPlane(
                from.base, from.stride, planes[0].base, planes[0].stride, planes[1].base, planes[1].stride,
                planes[2].base, planes[2].stride, nil, 0, width, height)
        } else {
            SplitRGBPlane(
                from.base, from.stride, planes[0].base, planes[0].stride, planes[1].base, planes[1].stride,
                planes[2].base, planes[2].stride, width, height)
        }
    }

    /// Red, green and blue into bgra; alpha is opaque.
    static func mergeRGB(_ planes: [PixelPlane], into target: Picture) {
        let to = plane(target)
        MergeARGBPlane(
            planes[0].base, planes[0].stride, planes[1].base, planes[1].stride, planes[2].base, planes[2].stride, nil,
            0, to.base, to.stride, Int32(target.width), Int32(target.height))
    }

    /// bgra into luma and chroma as JPEG has them: full range, BT.601, 4:2:0.
    static func toJPEGPlanes(_ picture: Picture, _ planes: [PixelPlane]) {
        let from = plane(picture)
        ARGBToJ420(
            from.base, from.stride, planes[0].base, planes[0].stride, planes[1].base, planes[1].stride, planes[2].base,
            planes[2].stride, Int32(picture.width), Int32(picture.height))
    }

    /// Scales one plane, within the limits of ``PlaneReducer``.
    static func scale(_ plane: PixelPlane, into target: PixelPlane) {
        ScalePlane(
            plane.base, plane.stride, Int32(plane.width), Int32(plane.height), target.base, target.stride,
            Int32(target.width), Int32(target.height), kFilterBox)
    }

    private static func plane(_ picture: Picture) -> PixelPlane {
        PixelPlane(picture[0], picture.width, picture.height)
    }
}
