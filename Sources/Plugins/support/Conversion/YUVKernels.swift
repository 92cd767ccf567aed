// SPDX-License-Identifier: Apache-2.0

import CYUV
import FrameCore
import Shared

/// One conversion between two pictures of equal size: libyuv's where it is exact enough, otherwise ours. The only file
/// of this module that imports libyuv.
///
/// libyuv names packed RGB by the order within a little-endian word: our bgra is its "ARGB", our rgb24 its "RAW".
/// Its functions return non-zero only for arguments that are not pictures (null, no rows), which the pool's formats
/// exclude. Pointers are used within a call and never kept.
final class YUVKernels {
    private let toRGB: YUVToRGB?
    private let fromRGB: RGBToYUV?

    /// - Parameters:
    ///   - source: What comes in; its matrix and range lead to RGB.
    ///   - target: What goes out; its matrix and range lead from RGB.
    init(from source: VideoFormat, to target: VideoFormat) {
        toRGB = !source.pixelFormat.isRGB && target.pixelFormat.isRGB ? YUVToRGB(source, to: target.pixelFormat) : nil
        fromRGB = source.pixelFormat.isRGB && !target.pixelFormat.isRGB ? RGBToYUV(source.pixelFormat, to: target) : nil
    }

    /// Pairs of formats that have no kernel here go through ``PictureConverter/between(_:_:)``.
    func convert(_ a: Picture, into b: Picture) {
        let width = Int32(a.width)
        let height = Int32(a.height)
        if let toRGB { return toRGB.convert(a, into: b) }
        if let fromRGB { return fromRGB.convert(a, into: b) }
        switch (a.pixelFormat, b.pixelFormat) {
        // Luma and chroma, 8 bit.
        case (.i420, .nv12):
            I420ToNV12(
                a[0].bytes, a[0].stride, a[1].bytes, a[1].stride, a[2].bytes, a[2].stride, b[0].bytes, b[0].stride,
                b[1].bytes,
                b[1].stride, width, height)
        case (.i420, .yuyv):
            I420ToYUY2(
                a[0].bytes, a[0].stride, a[1].bytes, a[1].stride, a[2].bytes, a[2].stride, b[0].bytes, b[0].stride,
                width, height)
        case (.nv12, .i420):
            NV12ToI420(
                a[0].bytes, a[0].stride, a[1].bytes, a[1].stride, b[0].bytes, b[0].stride, b[1].bytes, b[1].stride,
                b[2].bytes,
                b[2].stride, width, height)
        case (.yuyv, .i420):
            YUY2ToI420(
                a[0].bytes, a[0].stride, b[0].bytes, b[0].stride, b[1].bytes, b[1].stride, b[2].bytes, b[2].stride,
                width, height)
        case (.yuyv, .nv12):
            YUY2ToNV12(a[0].bytes, a[0].stride, b[0].bytes, b[0].stride, b[1].bytes, b[1].stride, width, height)
        case (.yuyv, .gray8): YUY2ToY(a[0].bytes, a[0].stride, b[0].bytes, b[0].stride, width, height)
        case (.i420, .gray8), (.nv12, .gray8):
            CopyPlane(a[0].bytes, a[0].stride, b[0].bytes, b[0].stride, width, height)
        case (.gray8, .i420), (.gray8, .nv12):
            CopyPlane(a[0].bytes, a[0].stride, b[0].bytes, b[0].stride, width, height)
            for plane in 1..<b.planeCount {
                SetPlane(b[plane].bytes, b[plane].stride, Int32(b[plane].rowBytes), Int32(b[plane].rows), 128)
            }
        case (.i010, .i420), (.i010, .gray8), (.p010, .nv12), (.p010, .gray8):
            for plane in 0..<b.planeCount {
                TenBits.round(a[plane], shift: a.pixelFormat == .p010 ? 6 : 0, into: b[plane])
            }
        // Between the RGBs.
        case (.bgra, .rgb24): ARGBToRAW(a[0].bytes, a[0].stride, b[0].bytes, b[0].stride, width, height)
        case (.rgb24, .bgra): RAWToARGB(a[0].bytes, a[0].stride, b[0].bytes, b[0].stride, width, height)
        default: preconditionFailure("no kernel from \(a.pixelFormat) to \(b.pixelFormat)")
        }
    }
}

/// Single rows, with red, green and blue apart.
extension YUVKernels {
    /// Splits one packed row; each of the three has room for `count` samples.
    static func split(
        _ row: UnsafePointer<UInt8>, _ format: PixelFormat, count: Int, red: UnsafeMutablePointer<UInt8>,
        green: UnsafeMutablePointer<UInt8>,
        blue: UnsafeMutablePointer<UInt8>
    ) {
        if format == .bgra {
            SplitARGBPlane(row, 0, red, 0, green, 0, blue, 0, nil, 0, Int32(count), 1)
        } else {
            SplitRGBPlane(row, 0, red, 0, green, 0, blue, 0, Int32(count), 1)
        }
    }

    /// Packs one row; alpha is opaque.
    static func merge(
        red: UnsafePointer<UInt8>, green: UnsafePointer<UInt8>, blue: UnsafePointer<UInt8>,
        into row: UnsafeMutablePointer<UInt8>,
        _ format: PixelFormat, count: Int
    ) {
        if format == .bgra {
            MergeARGBPlane(red, 0, green, 0, blue, 0, nil, 0, row, 0, Int32(count), 1)
        } else {
            MergeRGBPlane(red, 0, green, 0, blue, 0, row, 0, Int32(count), 1)
        }
    }

    /// Interleaves one row of chroma.
    static func mergeChroma(
        _ u: UnsafePointer<UInt8>, _ v: UnsafePointer<UInt8>, into row: UnsafeMutablePointer<UInt8>, count: Int
    ) { MergeUVPlane(u, 0, v, 0, row, 0, Int32(count), 1) }

    /// Packs one row of 4:2:2.
    static func pack422(
        _ y: UnsafePointer<UInt8>, _ u: UnsafePointer<UInt8>, _ v: UnsafePointer<UInt8>,
        into row: UnsafeMutablePointer<UInt8>, width: Int
    ) { I422ToYUY2(y, 0, u, 0, v, 0, row, 0, Int32(width), 1) }
}

extension Picture.Layer {
    /// As libyuv takes planes.
    fileprivate var stride: Int32 { Int32(strideBytes) }
    var bytes: UnsafeMutablePointer<UInt8> { base.assumingMemoryBound(to: UInt8.self) }
}
