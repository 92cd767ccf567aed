import CAVFormat
import CSWScale
import FrameCore

/// How the pictures of a decoder become frames: as they are, or converted to I420 by libswscale.
struct PixelConversion {
    let source: AVPixelFormat
    let target: PixelFormat
    /// False: the planes are copied row by row.
    let isConverted: Bool

    private static let same: [(AVPixelFormat, PixelFormat)] = [
        (AV_PIX_FMT_YUV420P, .i420), (AV_PIX_FMT_YUVJ420P, .i420), (AV_PIX_FMT_NV12, .nv12), (AV_PIX_FMT_YUYV422, .yuyv),
        (AV_PIX_FMT_GRAY8, .gray8), (AV_PIX_FMT_YUV420P10LE, .i010), (AV_PIX_FMT_P010LE, .p010), (AV_PIX_FMT_BGRA, .bgra),
        (AV_PIX_FMT_RGB24, .rgb24),
    ]

    /// Formats whose name says full range; libswscale wants it said otherwise.
    private static let full: [(AVPixelFormat, AVPixelFormat)] = [
        (AV_PIX_FMT_YUVJ411P, AV_PIX_FMT_YUV411P), (AV_PIX_FMT_YUVJ420P, AV_PIX_FMT_YUV420P), (AV_PIX_FMT_YUVJ422P, AV_PIX_FMT_YUV422P),
        (AV_PIX_FMT_YUVJ440P, AV_PIX_FMT_YUV440P), (AV_PIX_FMT_YUVJ444P, AV_PIX_FMT_YUV444P),
    ]

    init(_ source: AVPixelFormat) {
        self.source = source
        let direct = Self.same.first { $0.0 == source }?.1
        target = direct ?? .i420
        isConverted = direct == nil
    }

    var name: String { av_get_pix_fmt_name(source).map { String(cString: $0) } ?? "format \(source.rawValue)" }

    /// True when the name of the format alone says that samples use the full range.
    var isFullRangeByName: Bool { Self.full.contains { $0.0 == source } }

    var isRGB: Bool { av_pix_fmt_desc_get(source).map { $0.pointee.flags & UInt64(AV_PIX_FMT_FLAG_RGB) != 0 } ?? false }

    /// The colour of the frames, from that of the file.
    func color(_ color: ColorDescription) -> ColorDescription {
        var color = color
        if isFullRangeByName { color.range = .full }
        guard isRGB else { return color }
        if isConverted {
            // BT.601, video range: what libswscale makes of RGB below.
            color.matrix = 6
            color.range = .video
        } else {
            color.matrix = 0
            color.range = .full
        }
        return color
    }

    /// A converter for pictures of this size; nil when libswscale has none.
    func makeScaler(width: Int, height: Int, color: ColorDescription) -> OpaquePointer? {
        let plain = Self.full.first { $0.0 == source }?.1 ?? source
        let flags = SWS_BILINEAR | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INP
        guard
            let scaler = sws_getContext(
                Int32(width), Int32(height), plain, Int32(width), Int32(height), AV_PIX_FMT_YUV420P, flags, nil, nil, nil)
        else { return nil }
        // Range and matrix stay what they are; RGB becomes BT.601 in video range.
        let range: Int32 = color.range == .full ? 1 : 0
        let coefficients = sws_getCoefficients(isRGB ? SWS_CS_ITU601 : Int32(color.matrix))
        _ = sws_setColorspaceDetails(scaler, coefficients, isRGB ? 1 : range, coefficients, isRGB ? 0 : range, 0, 1 << 16, 1 << 16)
        return scaler
    }
}
