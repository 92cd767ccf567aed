// SPDX-License-Identifier: Apache-2.0

/// A colour in the samples of one format: for each plane the bytes of one ``PlaneUnit``, first byte lowest.
public struct Paint: Sendable, Equatable {
    /// The unit of plane 0, of full opacity.
    public var first: UInt32
    /// The unit of plane 1; 0 where the format has none.
    public var second: UInt32 = 0
    /// The unit of plane 2; 0 where the format has none.
    public var third: UInt32 = 0
    /// How much of what is below it covers: 255 is all of it.
    ///
    /// A `bgra` picture has premultiplied alpha, and keeps it: where paint of alpha `a` is laid over a pixel, its four
    /// samples become `paint × a + sample × (1 − a)`, with 255 for the paint's own alpha.
    public var alpha: UInt8 = 255

    /// Converts `color` by the format's matrix and range; its sRGB primaries and transfer are taken as the format's
    /// own.
    public init(_ color: RGBColor, for format: VideoFormat, alpha: UInt8 = 255) {
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
        self.alpha = alpha
    }

    /// Takes code values as they are, in the format's own bit depth. In an RGB format all three components get
    /// `luma`.
    public init(luma: Int, u: Int, v: Int, in format: PixelFormat) {
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

    /// The unit of a plane.
    public func unit(plane: Int) -> UInt32 { plane == 0 ? first : plane == 1 ? second : third }
}
