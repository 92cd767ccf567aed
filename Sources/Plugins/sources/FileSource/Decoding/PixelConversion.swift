// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import FrameCore

/// The chain's format for a decoder's pixels: the same where it is one of ours, otherwise I420, of more than 8 bits I010.
struct PixelConversion {
    let source: AVPixelFormat
    let target: PixelFormat
    /// Whether pixels are converted; otherwise the planes are copied as they are.
    let isConverted: Bool

    private static let same: [(AVPixelFormat, PixelFormat)] = [
        (AV_PIX_FMT_YUV420P, .i420), (AV_PIX_FMT_YUVJ420P, .i420), (AV_PIX_FMT_NV12, .nv12),
        (AV_PIX_FMT_YUYV422, .yuyv),
        (AV_PIX_FMT_GRAY8, .gray8), (AV_PIX_FMT_YUV420P10LE, .i010), (AV_PIX_FMT_P010LE, .p010),
        (AV_PIX_FMT_BGRA, .bgra),
        (AV_PIX_FMT_RGB24, .rgb24),
    ]

    /// Formats whose name says full range, which libswscale expects in another way.
    private static let full: [(AVPixelFormat, AVPixelFormat)] = [
        (AV_PIX_FMT_YUVJ411P, AV_PIX_FMT_YUV411P), (AV_PIX_FMT_YUVJ420P, AV_PIX_FMT_YUV420P),
        (AV_PIX_FMT_YUVJ422P, AV_PIX_FMT_YUV422P),
        (AV_PIX_FMT_YUVJ440P, AV_PIX_FMT_YUV440P), (AV_PIX_FMT_YUVJ444P, AV_PIX_FMT_YUV444P),
    ]

    init(_ source: AVPixelFormat) {
        self.source = source
        let direct = Self.same.first { $0.0 == source }?.1
        let depth = av_pix_fmt_desc_get(source)?.pointee.comp.0.depth ?? 8
        target = direct ?? (depth > 8 ? .i010 : .i420)
        isConverted = direct == nil
    }

    var name: String { av_get_pix_fmt_name(source).map { String(cString: $0) } ?? "format \(source.rawValue)" }

    /// libav's name of one of our formats.
    static func libavFormat(_ format: PixelFormat) -> AVPixelFormat {
        same.first { $0.1 == format }?.0 ?? AV_PIX_FMT_YUV420P
    }

    /// Whether the format's name already says that samples use the full range.
    var isFullRangeByName: Bool { Self.full.contains { $0.0 == source } }

    /// The same format under the name without the range.
    var plainSource: AVPixelFormat { Self.full.first { $0.0 == source }?.1 ?? source }

    var isRGB: Bool { hasFlag(AV_PIX_FMT_FLAG_RGB) }

    /// Whether pixels have luma, and perhaps transparency, but no chroma.
    var isGray: Bool {
        av_pix_fmt_desc_get(source).map { $0.pointee.nb_components <= 2 } ?? false
            && !hasFlag(AV_PIX_FMT_FLAG_RGB | AV_PIX_FMT_FLAG_PAL)
    }

    /// Whether a matrix leads from the samples to RGB; grey, RGB and palettes have none.
    var hasMatrix: Bool { !isGray && !hasFlag(AV_PIX_FMT_FLAG_RGB | AV_PIX_FMT_FLAG_PAL) }

    private func hasFlag(_ flags: Int32) -> Bool {
        av_pix_fmt_desc_get(source).map { $0.pointee.flags & UInt64(flags) != 0 } ?? false
    }

    /// The colour of the frames, from that of the file.
    func color(_ color: ColorDescription) -> ColorDescription {
        var color = color
        if isRGB, isConverted {
            // BT.601, video range: the result of ``ScalingConverter`` for RGB.
            color.matrix = 6
            color.range = .video
        }
        return color
    }
}
