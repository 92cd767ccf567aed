// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import CSWScale
import FrameCore
import Shared

/// Brings pictures into the chain's format: copies their planes where that is all, else converts them with libswscale.
///
/// It is asked with two full descriptions, a ``PictureShape`` and the chain's format. Size, shape of pixels, pixel format,
/// range, matrix and, where pixels are converted, the place of chroma become the chain's. Primaries and transfer stay. One
/// thread at a time.
final class ScalingConverter {
    private let target: VideoFormat
    private let targetFormat: AVPixelFormat
    /// What is known of the last picture's shape: most pictures have that of the one before.
    private var shape: PictureShape?
    private var isCopied = false
    /// Nil until a picture of this shape is to be converted.
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

    /// [stage thread] Whether the planes of such pictures are the chain's as they are.
    func copies(_ found: PictureShape) -> Bool {
        guard found != shape else { return isCopied }
        sws_freeContext(scaler)
        scaler = nil
        shape = found
        place = Self.place(of: found.geometry, in: target)
        let conversion = PixelConversion(found.pixels)
        isCopied =
            !conversion.isConverted && conversion.target == target.pixelFormat && found.hasSamples(of: target)
            && place.size == found.geometry.size && place.size == PictureSize(target.width, target.height)
        return isCopied
    }

    /// [stage thread] Fills `frame`, with black bars where the picture has another shape.
    func convert(_ picture: DecodedPicture, _ shape: PictureShape, into frame: inout Frame) throws {
        guard !copies(shape) else { return picture.copy(to: &frame) }
        if scaler == nil { scaler = try makeScaler(shape) }
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

    /// Where chroma lies, in 1/256 of a pixel, as libswscale takes it: only in directions in which two pixels share it. What is
    /// not named is left, as in MPEG.
    private static func chromaPlace(_ side: String, _ siting: UInt8, _ format: AVPixelFormat) -> [(String, Int)] {
        guard let layout = av_pix_fmt_desc_get(format)?.pointee else { return [] }
        let across = [2, 4, 6].contains(siting) ? 128 : 0
        let down = [3, 4].contains(siting) ? 0 : [5, 6].contains(siting) ? 256 : 128
        return (layout.log2_chroma_w == 1 ? [("\(side)_h_chr_pos", across)] : [])
            + (layout.log2_chroma_h == 1 ? [("\(side)_v_chr_pos", down)] : [])
    }

    private func makeScaler(_ shape: PictureShape) throws -> OpaquePointer {
        let conversion = PixelConversion(shape.pixels)
        let flags = SWS_BILINEAR | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INP
        let isFull = shape.color.range == .full
        let isFullTarget = target.pixelFormat.isRGB || target.color.range == .full
        // The ranges are set first. Otherwise libswscale would choose to copy planes of equal format and size.
        var settings: [(String, Int)] = [
            ("srcw", shape.width), ("srch", shape.height), ("src_format", Int(conversion.plainSource.rawValue)),
            ("src_range", isFull ? 1 : 0), ("dstw", place.width), ("dsth", place.height),
            ("dst_format", Int(targetFormat.rawValue)), ("dst_range", isFullTarget ? 1 : 0),
            ("sws_flags", Int(flags)),
        ]
        settings += Self.chromaPlace("src", shape.color.chromaSiting, conversion.plainSource)
        settings += Self.chromaPlace("dst", target.color.chromaSiting, targetFormat)
        guard let scaler = sws_alloc_context() else {
            throw FileFault.unconvertible(conversion.name, width: shape.width, height: shape.height)
        }
        for (name, value) in settings { av_opt_set_int(UnsafeMutableRawPointer(scaler), name, Int64(value), 0) }
        guard sws_init_context(scaler, nil, nil) >= 0 else {
            sws_freeContext(scaler)
            throw FileFault.unconvertible(conversion.name, width: shape.width, height: shape.height)
        }
        // Where one side has no matrix, that of the other is used for both.
        let matrix = conversion.hasMatrix ? shape.color.assumedMatrix(height: shape.height) : target.assumedMatrix
        let targetMatrix = target.pixelFormat.isRGB ? matrix : target.assumedMatrix
        _ = sws_setColorspaceDetails(
            scaler, sws_getCoefficients(Int32(matrix)), isFull ? 1 : 0, sws_getCoefficients(Int32(targetMatrix)),
            isFullTarget ? 1 : 0, 0, 1 << 16, 1 << 16)
        return scaler
    }
}
