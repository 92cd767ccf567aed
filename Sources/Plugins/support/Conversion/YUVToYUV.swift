// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

/// From luma and chroma to luma and chroma of another matrix or range, in place; 8 bit.
///
/// Every matrix leaves grey alone: new luma is luma and shares of chroma, and new chroma depends on chroma only. So pixels
/// that share their chroma need nothing of their neighbours, and the result stays within 2 of the exact value. The scratch
/// row is made here, once.
package final class YUVToYUV {
    private let format: PixelFormat
    private let weights: Weights
    /// What chroma adds to the luma of each pixel of a row.
    private let shares: ScratchPicture

    /// Nil where the samples of both mean the same, or where a format has no luma and chroma.
    ///
    /// - Parameters:
    ///   - source: i420, nv12, yuyv or gray8.
    ///   - target: Its matrix and range are made; size and pixel format are those of `source`.
    package init?(from source: VideoFormat, to target: VideoFormat) {
        let formats: [PixelFormat] = [.i420, .nv12, .yuyv, .gray8]
        guard formats.contains(source.pixelFormat), !target.pixelFormat.isRGB else { return nil }
        let isSame = source.pixelFormat == .gray8 || source.assumedMatrix == target.assumedMatrix
        guard source.color.range != target.color.range || !isSame else { return nil }
        format = source.pixelFormat
        weights = Weights(source, target)
        // 32 bits for each pixel, and for the partner of the last one of an odd width.
        shares = ScratchPicture(.gray8, width: 4 * (source.width + 1), height: 1)
    }

    /// Converts a picture that is at most as wide as the format. Allocates nothing.
    package func convert(_ picture: Picture) {
        let rowsOfChroma = format == .yuyv || format == .gray8 ? 1 : 2
        let lumaStep = format == .yuyv ? 2 : 1
        for top in stride(from: 0, to: picture.height, by: rowsOfChroma) {
            switch format {
            case .i420: convertChroma(line(picture, 1, top / 2), line(picture, 2, top / 2), step: 1, picture.width)
            case .nv12: convertChroma(line(picture, 1, top / 2), line(picture, 1, top / 2) + 1, step: 2, picture.width)
            case .yuyv: convertChroma(line(picture, 0, top) + 1, line(picture, 0, top) + 3, step: 4, picture.width)
            default: clearShares(picture.width)
            }
            for y in top..<min(top + rowsOfChroma, picture.height) {
                convertLuma(line(picture, 0, y), step: lumaStep, picture.width)
            }
        }
    }

    private func line(_ picture: Picture, _ plane: Int, _ y: Int) -> UnsafeMutablePointer<UInt8> {
        picture[plane].bytes + y * picture[plane].strideBytes
    }

    private var row: UnsafeMutablePointer<Int32> { shares.picture[0].base.assumingMemoryBound(to: Int32.self) }

    private func clearShares(_ width: Int) { row.update(repeating: weights.lumaBias, count: width) }

    @inline(__always)
    private func convertChroma(
        _ u: UnsafeMutablePointer<UInt8>, _ v: UnsafeMutablePointer<UInt8>, step: Int, _ width: Int
    ) {
        let (row, weights) = (row, weights)
        for x in 0..<(width + 1) / 2 {
            let (a, b) = (Int32(u[x &* step]) &- 128, Int32(v[x &* step]) &- 128)
            let share = weights.lumaOfU &* a &+ weights.lumaOfV &* b &+ weights.lumaBias
            row[2 &* x] = share
            row[2 &* x &+ 1] = share
            u[x &* step] = Weights.sample(weights.uOfU &* a &+ weights.uOfV &* b &+ Weights.chromaBias)
            v[x &* step] = Weights.sample(weights.vOfU &* a &+ weights.vOfV &* b &+ Weights.chromaBias)
        }
    }

    @inline(__always)
    private func convertLuma(_ luma: UnsafeMutablePointer<UInt8>, step: Int, _ width: Int) {
        let (row, weight) = (row, weights.luma)
        for x in 0..<width { luma[x &* step] = Weights.sample(Int32(luma[x &* step]) &* weight &+ row[x]) }
    }

    /// In steps of 8-bit samples, with 14 bits of fraction.
    private struct Weights {
        static let bits: Int32 = 14
        static let half: Int32 = 1 << (bits - 1)
        static let chromaBias: Int32 = 128 << bits + half
        let luma, lumaOfU, lumaOfV, lumaBias, uOfU, uOfV, vOfU, vOfV: Int32

        /// - SeeAlso: ISO/IEC 23091-2, equations for MatrixCoefficients and VideoFullRangeFlag.
        init(_ source: VideoFormat, _ target: VideoFormat) {
            let (from, to) = (LumaWeights(of: source), LumaWeights(of: target))
            // How far blue and red are from luma for each unit of chroma, and what that makes of green.
            let (blue, red) = (2 * (1 - from.blue), 2 * (1 - from.red))
            let u = to.blue * blue - to.green * blue * from.blue / from.green
            let v = to.red * red - to.green * red * from.red / from.green
            let (newBlue, newRed) = (2 * (1 - to.blue), 2 * (1 - to.red))
            func spans(_ format: VideoFormat) -> (black: Double, luma: Double, chroma: Double) {
                format.color.range == .video ? (16, 219, 224) : (0, 255, 255)
            }
            let (old, new) = (spans(source), spans(target))
            func scaled(_ value: Double) -> Int32 { Int32((value * Double(1 << Self.bits)).rounded()) }
            let chroma = new.chroma / old.chroma
            luma = scaled(new.luma / old.luma)
            lumaOfU = scaled(u * new.luma / old.chroma)
            lumaOfV = scaled(v * new.luma / old.chroma)
            lumaBias = scaled(new.black - old.black * new.luma / old.luma) + Self.half
            uOfU = scaled((blue - u) / newBlue * chroma)
            uOfV = scaled(-v / newBlue * chroma)
            vOfU = scaled(-u / newRed * chroma)
            vOfV = scaled((red - v) / newRed * chroma)
        }

        @inline(__always)
        static func sample(_ value: Int32) -> UInt8 {
            UInt8(truncatingIfNeeded: min(max(value &>> bits, 0), 255))
        }
    }
}
