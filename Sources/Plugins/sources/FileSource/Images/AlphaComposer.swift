// SPDX-License-Identifier: Apache-2.0

import CAVFormat
import CSWScale
import FrameCore

/// Draws a picture with transparent parts onto one colour. One thread at a time.
final class AlphaComposer {
    private var frame = av_frame_alloc()
    private let color: RGBColor

    /// How many bytes it takes for a picture.
    static func bytes(pixels: Int) -> Int { pixels * 4 }

    init(onto color: RGBColor) throws {
        self.color = color
        guard frame != nil else {
            throw FrameHostError(
                .exhausted, what: "not enough memory for a picture",
                remedy: "Free some memory, and start the chain again.")
        }
    }

    deinit { av_frame_free(&frame) }

    /// The picture without transparent parts, in BGRA; valid until the next call.
    func compose(_ picture: DecodedPicture) throws -> DecodedPicture {
        let target = frame!
        av_frame_unref(target)
        target.pointee.width = Int32(picture.width)
        target.pointee.height = Int32(picture.height)
        target.pointee.format = AV_PIX_FMT_BGRA.rawValue
        guard av_frame_get_buffer(target, 0) >= 0 else {
            throw FrameHostError(
                .exhausted, what: "not enough memory for a picture of \(picture.width)x\(picture.height)",
                remedy: "Free some memory, and start the chain again.")
        }
        let (width, height) = (Int32(picture.width), Int32(picture.height))
        let scaler = sws_getContext(
            width, height, picture.pixelFormat, width, height, AV_PIX_FMT_BGRA,
            SWS_BILINEAR | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INP, nil, nil, nil)
        guard scaler != nil else {
            throw FileFault.unconvertible(
                PixelConversion(picture.pixelFormat).name, width: picture.width, height: picture.height)
        }
        defer { sws_freeContext(scaler) }
        let (base, stride) = (target.pointee.data.0!, Int(target.pointee.linesize.0))
        var planes = fh_av_no_planes()
        fh_av_add_plane(&planes, 0, base, stride)
        let rows = fh_sws_convert(scaler, picture.frame, planes)
        guard rows >= 0 else {
            throw FrameHostError(
                .callFailed,
                what:
                    "its transparent parts cannot be drawn over the background colour ('color'): \(LibavText.of(rows))",
                remedy: "Save it without transparency.", option: "color")
        }
        for y in 0..<picture.height { blend(base + y * stride, count: picture.width) }
        return DecodedPicture(frame: target)
    }

    /// Straight alpha, rounded to the nearest.
    private func blend(_ row: UnsafeMutablePointer<UInt8>, count: Int) {
        let (blue, green, red) = (UInt32(color.blue), UInt32(color.green), UInt32(color.red))
        var pixel = row
        for _ in 0..<count {
            let alpha = UInt32(pixel[3])
            if alpha != 255 {
                let rest = 255 - alpha
                pixel[0] = UInt8((UInt32(pixel[0]) * alpha + blue * rest + 127) / 255)
                pixel[1] = UInt8((UInt32(pixel[1]) * alpha + green * rest + 127) / 255)
                pixel[2] = UInt8((UInt32(pixel[2]) * alpha + red * rest + 127) / 255)
                pixel[3] = 255
            }
            pixel += 4
        }
    }
}
