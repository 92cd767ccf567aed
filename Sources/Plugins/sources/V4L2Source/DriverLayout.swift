// SPDX-License-Identifier: Apache-2.0

import CV4L2
import FrameCore

/// A driver's description of its pictures, checked, once a format is agreed. No other part of this plugin reads
/// `v4l2_pix_format`.
struct DriverLayout: Equatable {
    /// The layout of a plane, from the first byte of the picture.
    struct Plane: Equatable {
        let offset: Int
        let strideBytes: Int
        let rowBytes: Int
        let rows: Int
    }

    let pixels: CameraPixels
    let size: PictureSize
    let color: ColorDescription
    /// None for compressed pictures.
    let planes: [Plane]
    /// Bytes that a buffer must have room for.
    let imageBytes: Int
    /// The least bytes of a raw picture.
    var leastBytes: Int { planes.map { $0.offset + $0.strideBytes * ($0.rows - 1) + $0.rowBytes }.max() ?? 1 }

    /// The largest stride, and the largest picture, in bytes: no camera comes near.
    private static let longestRow = 1 << 20
    private static let largestImage = 1 << 30

    /// - Parameter mode: What was asked for.
    /// - Throws: ``FrameHostError`` where the answer is not what was asked for, or is inconsistent.
    init(_ answer: v4l2_pix_format, of mode: CameraMode) throws {
        guard answer.pixelformat == mode.code.code else {
            throw CameraFault.answered(
                "the format \(FourCC(code: answer.pixelformat)), but \(mode.code) was requested")
        }
        guard let size = PictureSize(driver: answer.width, answer.height) else {
            let range = PictureSize.range
            throw CameraFault.answered(
                "pictures of \(answer.width)x\(answer.height), but sides must be from \(range.lowerBound) to \(range.upperBound)"
            )
        }
        guard size == mode.size else { throw CameraFault.answered("\(size), but \(mode.size) was requested") }
        let fields = [
            V4L2_FIELD_NONE, V4L2_FIELD_ANY, V4L2_FIELD_INTERLACED, V4L2_FIELD_INTERLACED_TB,
            V4L2_FIELD_INTERLACED_BT,
        ]
        guard fields.contains(where: { $0.rawValue == answer.field }) else {
            throw CameraFault.answered("single fields instead of whole pictures (field \(answer.field))")
        }
        let format = mode.pixels.pixelFormat
        let stride = Int(answer.bytesperline)
        guard stride <= Self.longestRow, Int(answer.sizeimage) <= Self.largestImage else {
            throw CameraFault.answered(
                "rows of \(answer.bytesperline) bytes and pictures of \(answer.sizeimage) bytes, but at most \(Self.longestRow) and \(Self.largestImage) are possible"
            )
        }
        pixels = mode.pixels
        self.size = size
        color = Self.color(answer, isCompressed: mode.pixels == .mjpeg)
        guard mode.pixels != .h264 else {
            planes = []
            imageBytes = max(Int(answer.sizeimage), 1)
            return
        }
        guard mode.pixels != .mjpeg else {
            guard size.width % 2 == 0, size.height % 2 == 0 else {
                throw CameraFault.answered("JPEG pictures of \(size), but only even sides can be decoded")
            }
            planes = []
            imageBytes = max(Int(answer.sizeimage), 1)
            return
        }
        let rows = format.rowBytes(plane: 0, width: size.width)
        guard stride >= rows else {
            throw CameraFault.answered("rows of \(stride) bytes, but \(size) needs \(rows)")
        }
        let (planes, offset) = try Self.planes(of: format, size, stride)
        guard Int(answer.sizeimage) >= offset else {
            throw CameraFault.answered("pictures of \(answer.sizeimage) bytes, but \(offset) are needed")
        }
        self.planes = planes
        imageBytes = Int(answer.sizeimage)
    }

    /// The planes of a raw picture, and where the last one ends.
    private static func planes(
        of format: PixelFormat, _ size: PictureSize, _ stride: Int
    ) throws -> (planes: [Plane], end: Int) {
        var planes: [Plane] = []
        var offset = 0
        for plane in 0..<format.planeCount {
            // V4L2, "YU12" and "NV12": chroma rows of planar pictures have half of the padding, those of interleaved
            // ones all of it.
            let own = plane > 0 && format == .i420 ? stride / 2 : stride
            let bytes = format.rowBytes(plane: plane, width: size.width)
            let height = format.rows(plane: plane, height: size.height)
            guard own >= bytes else {
                throw CameraFault.answered("rows of \(own) bytes in plane \(plane), but \(size) needs \(bytes)")
            }
            planes.append(Plane(offset: offset, strideBytes: own, rowBytes: bytes, rows: height))
            offset += own * height
        }
        return (planes, offset)
    }

    /// The frame format in the chain.
    func videoFormat(rate: Rational) -> VideoFormat {
        VideoFormat(
            pixels.pixelFormat, width: size.width, height: size.height, frameRate: rate, color: color,
            sampleAspectRatio: Rational(1))
    }

    /// Whether the driver's layout is that of the chain's buffers.
    func fits(_ format: VideoFormat) -> Bool {
        guard !planes.isEmpty, format.pixelFormat == pixels.pixelFormat else { return false }
        var offset = 0
        for (index, plane) in planes.enumerated() {
            guard plane.offset == offset, plane.strideBytes == format.strideBytes(plane: index) else { return false }
            offset += plane.strideBytes * plane.rows
        }
        // Buffers are whole pages.
        return imageBytes <= (offset + 4095) / 4096 * 4096
    }

    /// Linux's V4L2_MAP_*_DEFAULT in videodev2.h, as code points of ISO/IEC 23091-2.
    private static func color(_ answer: v4l2_pix_format, isCompressed: Bool) -> ColorDescription {
        let space = answer.colorspace
        let isJPEG = space == V4L2_COLORSPACE_JPEG.rawValue || isCompressed
        let primaries: UInt8 =
            switch space {
            case V4L2_COLORSPACE_SMPTE170M.rawValue: 6
            case V4L2_COLORSPACE_SMPTE240M.rawValue: 7
            case V4L2_COLORSPACE_470_SYSTEM_BG.rawValue: 5
            case V4L2_COLORSPACE_REC709.rawValue, V4L2_COLORSPACE_SRGB.rawValue, V4L2_COLORSPACE_JPEG.rawValue: 1
            case V4L2_COLORSPACE_BT2020.rawValue: 9
            default: 2
            }
        let matrix: UInt8 =
            switch answer.ycbcr_enc {
            case UInt32(V4L2_YCBCR_ENC_601.rawValue): 6
            case UInt32(V4L2_YCBCR_ENC_709.rawValue): 1
            case UInt32(V4L2_YCBCR_ENC_SMPTE240M.rawValue): 7
            case UInt32(V4L2_YCBCR_ENC_BT2020.rawValue): 9
            default:
                switch space {
                case V4L2_COLORSPACE_REC709.rawValue: 1
                case V4L2_COLORSPACE_SMPTE240M.rawValue: 7
                case V4L2_COLORSPACE_BT2020.rawValue: 9
                default: 6
                }
            }
        let isFull =
            answer.quantization == V4L2_QUANTIZATION_FULL_RANGE.rawValue
            || (answer.quantization == V4L2_QUANTIZATION_DEFAULT.rawValue && isJPEG)
        let transfer: UInt8 =
            space == V4L2_COLORSPACE_SRGB.rawValue || isJPEG ? 13 : primaries == 2 ? 2 : primaries == 9 ? 14 : 1
        return ColorDescription(
            range: isFull ? .full : .video, matrix: matrix, primaries: primaries, transfer: transfer,
            chromaSiting: isJPEG ? 2 : 1)
    }
}
