// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// What each byte of a format of eight bits is of red, green and blue.
///
/// A byte is the scalar product with (red, green, blue, 1), each 0...1. In premultiplied form, with (red·α, green·α,
/// blue·α, α), it is the byte times α: colours can be averaged before.
package struct RGBSamples: Sendable {
    /// Luma, and both differences of chroma.
    package let yuv: (SIMD4<Float>, SIMD4<Float>, SIMD4<Float>)
    private let pixelFormat: PixelFormat

    /// Of the format's matrix and range.
    package init(of format: VideoFormat) {
        pixelFormat = format.pixelFormat
        let weights = LumaWeights(of: format)
        let luma = SIMD3(weights.red, weights.green, weights.blue)
        let isVideo = format.color.range == .video
        func weight(_ color: SIMD3<Double>, _ scale: Double, from zero: Double) -> SIMD4<Float> {
            SIMD4(SIMD4(color * scale, zero))
        }
        func chroma(_ color: SIMD3<Double>, _ part: Double) -> SIMD4<Float> {
            weight((color - luma) / (2 * (1 - part)), isVideo ? 224 : 255, from: 128)
        }
        yuv = (
            weight(luma, isVideo ? 219 : 255, from: isVideo ? 16 : 0), chroma(SIMD3(0, 0, 1), weights.blue),
            chroma(SIMD3(1, 0, 0), weights.red)
        )
    }

    /// The weights of one byte of a ``PlaneUnit``; of bgra's fourth byte those of full opacity.
    ///
    /// - Precondition: a format of eight bits with one pixel in a unit: not yuyv.
    package func weights(plane: Int, byte: Int) -> SIMD4<Float> {
        switch pixelFormat {
        case .i420, .gray8: return plane == 0 ? yuv.0 : plane == 1 ? yuv.1 : yuv.2
        case .nv12: return plane == 0 ? yuv.0 : byte == 0 ? yuv.1 : yuv.2
        case .bgra, .rgb24:
            var weights = SIMD4<Float>.zero
            weights[byte == 3 ? 3 : pixelFormat == .bgra ? 2 - byte : byte] = 255
            return weights
        case .i010, .p010, .yuyv: preconditionFailure("no format of single bytes")
        }
    }
}
