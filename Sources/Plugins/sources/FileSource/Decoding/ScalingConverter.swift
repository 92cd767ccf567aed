// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import CSWScale
import FrameCore
import Shared

/// Converts pictures of another size or format into the chain's, with libswscale.
///
/// Range and matrix of the samples are respected on both sides. One thread at a time.
final class ScalingConverter {
    /// The setup of libswscale.
    private struct Setup: Equatable {
        var width: Int
        var height: Int
        var format: Int32
        var color: ColorDescription
        var aspect: Rational
    }

    private let target: VideoFormat
    private let targetFormat: AVPixelFormat
    private var setup: Setup?
    private var scaler: OpaquePointer?
    /// Of the picture within the frame.
    private var place: Rectangle

    init(to target: VideoFormat) {
        self.target = target
        targetFormat = PixelConversion.libavFormat(target.pixelFormat)
        place = Rectangle(width: target.width, height: target.height)
    }

    deinit { sws_freeContext(scaler) }

    /// [any thread] Whether this format can be converted.
    static func canConvert(_ format: AVPixelFormat) -> Bool { sws_isSupportedInput(format) > 0 }

    /// The place of a picture within the chain's: in the middle, undistorted, as large as possible. Sides and corner lie on
    /// whole chroma samples of 4:2:0.
    static func place(of picture: PictureGeometry, in target: VideoFormat) -> Rectangle {
        PicturePlacement(
            Rectangle(picture.size), pixelAspect: picture.pixelAspect / PictureGeometry(target).pixelAspect,
            into: Rectangle(width: target.width, height: target.height), .contain, step: 2,
            // Coded sizes are whole blocks, so equal shapes can differ slightly.
            tolerance: 0.02
        ).target
    }

    /// [stage thread] Fills `frame`, with black bars where the picture has another shape.
    ///
    /// - Parameter aspect: The picture's sample aspect ratio; 0 when unknown.
    func convert(_ picture: DecodedPicture, aspect: Rational, into frame: inout Frame) throws {
        try prepare(picture, aspect)
        // Planes of a frame are lent one at a time. They stay at their place as long as this function has the frame.
        var planes = fh_av_no_planes()
        for index in 0..<frame.planeCount {
            frame.withMutablePlane(index) { fh_av_add_plane(&planes, Int32(index), $0.baseAddress, $0.strideBytes) }
        }
        if place.size != PictureSize(target.width, target.height) {
            let range = target.color.range == .full ? AVCOL_RANGE_JPEG : AVCOL_RANGE_MPEG
            fh_av_fill_black(planes, targetFormat, range, Int32(target.width), Int32(target.height))
            var inner = fh_av_no_planes()
            for index in 0..<frame.planeCount {
                frame.withMutablePlane(index) {
                    fh_av_add_plane(&inner, Int32(index), $0.baseAddress + offset($0, index), $0.strideBytes)
                }
            }
            planes = inner
        }
        let rows = fh_sws_convert(scaler, picture.frame, planes)
        guard rows >= 0 else {
            let from = "\(PixelConversion(picture.pixelFormat).name) \(picture.width)x\(picture.height)"
            throw FrameHostError(
                .callFailed,
                what:
                    "a picture cannot be converted from \(from) to \(target.pixelFormat.rawValue) \(target.width)x\(target.height): \(LibavText.of(rows))",
                remedy: "Check the file or stream with 'ffprobe': its pictures may be damaged.")
        }
    }

    /// The offset from a plane's first byte to the picture's first byte in it.
    private func offset(_ plane: MutablePlane, _ index: Int) -> Int {
        // The corner is even, so both divide exactly: a plane's row has `rowBytes` for `width` pixels, rounded up.
        let perTwoPixels = target.pixelFormat.rowBytes(plane: index, width: 2)
        let rows = target.pixelFormat.rows(plane: index, height: place.y)
        return rows * plane.strideBytes + place.x / 2 * perTwoPixels
    }

    private func prepare(_ picture: DecodedPicture, _ aspect: Rational) throws {
        let conversion = PixelConversion(picture.pixelFormat)
        let wanted = Setup(
            width: picture.width, height: picture.height, format: picture.frame.pointee.format, color: picture.color,
            aspect: aspect)
        guard wanted != setup else { return }
        setup = nil
        sws_freeContext(scaler)
        place = Self.place(
            of: PictureGeometry(PictureSize(picture.width, picture.height), sampleAspectRatio: aspect), in: target)
        let flags = SWS_BILINEAR | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INP
        let isFull = conversion.isRGB || conversion.isFullRangeByName || picture.color.range == .full
        let isFullTarget = target.pixelFormat.isRGB || target.color.range == .full
        // The ranges are set first. Otherwise libswscale would choose to copy planes of equal format and size.
        scaler = sws_alloc_context()
        let settings: [(String, Int)] = [
            ("srcw", picture.width), ("srch", picture.height), ("src_format", Int(conversion.plainSource.rawValue)),
            ("src_range", isFull ? 1 : 0), ("dstw", place.width), ("dsth", place.height),
            ("dst_format", Int(targetFormat.rawValue)), ("dst_range", isFullTarget ? 1 : 0),
            ("sws_flags", Int(flags)),
        ]
        for (name, value) in settings {
            av_opt_set_int(UnsafeMutableRawPointer(scaler), name, Int64(value), 0)
        }
        guard scaler != nil, sws_init_context(scaler, nil, nil) >= 0 else {
            sws_freeContext(scaler)
            scaler = nil
            throw FileFault.unconvertible(conversion.name, width: picture.width, height: picture.height)
        }
        // RGB has no matrix, and some pictures do not state theirs. Then the target's matrix is used.
        let isSilent = conversion.isRGB || picture.color.matrix == 2
        let matrix = sws_getCoefficients(Int32(isSilent ? target.color.matrix : picture.color.matrix))
        let targetMatrix = target.pixelFormat.isRGB ? matrix : sws_getCoefficients(Int32(target.color.matrix))
        _ = sws_setColorspaceDetails(
            scaler, matrix, isFull ? 1 : 0, targetMatrix, isFullTarget ? 1 : 0, 0, 1 << 16, 1 << 16)
        setup = wanted
    }
}
