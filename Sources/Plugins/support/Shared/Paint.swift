// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// A colour in the samples of one format: for each plane the bytes of one ``PlaneUnit``, first byte lowest.
package struct Paint: Sendable, Equatable {
    package var first: UInt32
    package var second: UInt32 = 0
    package var third: UInt32 = 0

    /// Converts `color` by the format's matrix and range; its sRGB primaries and transfer are taken as the format's
    /// own.
    package init(_ color: RGBColor, for format: VideoFormat) {
        let red = Double(color.red) / 255
        let green = Double(color.green) / 255
        let blue = Double(color.blue) / 255
        let weights = LumaWeights(of: format)
        let luma = weights.red * red + weights.green * green + weights.blue * blue
        let isVideo = format.color.range == .video
        let depth = format.pixelFormat.bitDepth
        let scale = isVideo ? Double(1 << (depth - 8)) : Double(1 << depth - 1) / 255
        func code(_ value: Double) -> UInt32 { UInt32(min(max(value.rounded(), 0), Double(1 << depth - 1))) }
        func chroma(_ difference: Double) -> UInt32 {
            code(Double(1 << (depth - 1)) + difference * (isVideo ? 224 : 255) * scale)
        }
        self.init(
            luma: code(isVideo ? (16 + 219 * luma) * scale : 255 * luma * scale),
            u: chroma((blue - luma) / (2 * (1 - weights.blue))), v: chroma((red - luma) / (2 * (1 - weights.red))),
            color: color, in: format.pixelFormat)
    }

    /// Takes code values as they are, in the format's own bit depth. In an RGB format all three components get
    /// `luma`.
    package init(luma: Int, u: Int, v: Int, in format: PixelFormat) {
        let gray = UInt8(truncatingIfNeeded: luma)
        self.init(
            luma: UInt32(luma), u: UInt32(u), v: UInt32(v), color: RGBColor(red: gray, green: gray, blue: gray),
            in: format)
    }

    private init(luma: UInt32, u: UInt32, v: UInt32, color: RGBColor, in format: PixelFormat) {
        switch format {
        case .i420, .i010:
            first = luma
            second = u
            third = v
        case .nv12:
            first = luma
            second = u | v << 8
        case .p010:
            // The ten bits are at the top of each sixteen.
            first = luma << 6
            second = u << 6 | v << 22
        case .yuyv: first = luma | u << 8 | luma << 16 | v << 24
        case .bgra: first = UInt32(color.blue) | UInt32(color.green) << 8 | UInt32(color.red) << 16 | 255 << 24
        case .rgb24: first = UInt32(color.red) | UInt32(color.green) << 8 | UInt32(color.blue) << 16
        case .gray8: first = luma
        }
    }

    package func unit(plane: Int) -> UInt32 { plane == 0 ? first : plane == 1 ? second : third }
}
