// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

/// Converts packed RGB in full range to luma and chroma in video range, by any matrix. Chroma is the mean of the
/// pixels it stands for.
///
/// Rows are taken apart into planes of red, green and blue, then weighted in 16-bit fixed point with 8 bits of
/// fraction, which the compiler turns into vector code and which stays within 1 of the exact value. Scratch rows are
/// made here, once.
final class RGBToYUV {
    private let format: PixelFormat
    private let target: PixelFormat
    private let width: Int
    private let weights: Weights
    /// Red, green, blue of two rows; luma, U and V of one.
    private let rows: ScratchPicture
    private let rowStride: Int

    init(_ format: PixelFormat, to target: VideoFormat) {
        self.format = format
        self.target = target.pixelFormat
        width = target.width
        weights = Weights(LumaWeights(of: target))
        // One sample more, for the partner of the last column of an odd width.
        rows = ScratchPicture(.gray8, width: target.width + 1, height: 9)
        rowStride = rows.picture[0].strideBytes
    }

    private func row(_ index: Int) -> UnsafeMutablePointer<UInt8> { rows.picture[0].bytes + index * rowStride }

    func convert(_ source: Picture, into picture: Picture) {
        for top in stride(from: 0, to: source.height, by: 2) {
            split(source, top, into: 0)
            // The last row of an odd height is its own partner.
            let hasSecond = top + 1 < source.height
            if hasSecond { split(source, top + 1, into: 3) }
            switch target {
            case .gray8:
                luma(0, into: line(picture, 0, top))
                if hasSecond { luma(3, into: line(picture, 0, top + 1)) }
            case .yuyv:
                pack(0, into: line(picture, 0, top))
                if hasSecond { pack(3, into: line(picture, 0, top + 1)) }
            case .i420:
                luma(0, into: line(picture, 0, top))
                if hasSecond { luma(3, into: line(picture, 0, top + 1)) }
                chroma(0, hasSecond ? 3 : 0, u: line(picture, 1, top / 2), v: line(picture, 2, top / 2))
            default:
                luma(0, into: line(picture, 0, top))
                if hasSecond { luma(3, into: line(picture, 0, top + 1)) }
                chroma(0, hasSecond ? 3 : 0, u: row(7), v: row(8))
                YUVKernels.mergeChroma(row(7), row(8), into: line(picture, 1, top / 2), count: (width + 1) / 2)
            }
        }
    }

    private func line(_ picture: Picture, _ plane: Int, _ y: Int) -> UnsafeMutablePointer<UInt8> {
        picture[plane].bytes + y * picture[plane].strideBytes
    }

    /// Splits row `y` into red, green and blue in the scratch rows from `first` on.
    private func split(_ source: Picture, _ y: Int, into first: Int) {
        YUVKernels.split(
            line(source, 0, y), format, count: width, red: row(first), green: row(first + 1), blue: row(first + 2))
        for index in first..<first + 3 { row(index)[width] = row(index)[width - 1] }
    }

    private func luma(_ first: Int, into target: UnsafeMutablePointer<UInt8>) {
        let (red, green, blue) = (row(first), row(first + 1), row(first + 2))
        let (r, g, b) = weights.luma
        for x in 0..<width {
            let sum = UInt16(red[x]) &* r &+ UInt16(green[x]) &* g &+ UInt16(blue[x]) &* b &+ Weights.lumaBias
            target[x] = UInt8(truncatingIfNeeded: sum >> 8)
        }
    }

    private func chroma(_ upper: Int, _ lower: Int, u: UnsafeMutablePointer<UInt8>, v: UnsafeMutablePointer<UInt8>) {
        let (red, green, blue) = (row(upper), row(upper + 1), row(upper + 2))
        let (red2, green2, blue2) = (row(lower), row(lower + 1), row(lower + 2))
        let weights = weights
        for x in 0..<(width + 1) / 2 {
            @inline(__always) func mean(_ a: UnsafeMutablePointer<UInt8>, _ b: UnsafeMutablePointer<UInt8>) -> UInt16 {
                (UInt16(a[2 * x]) &+ UInt16(a[2 * x + 1]) &+ UInt16(b[2 * x]) &+ UInt16(b[2 * x + 1]) &+ 2) >> 2
            }
            let (r, g, b) = (mean(red, red2), mean(green, green2), mean(blue, blue2))
            u[x] = weights.u(r, g, b)
            v[x] = weights.v(r, g, b)
        }
    }

    /// Writes one row of yuyv: chroma of two pixels side by side.
    private func pack(_ first: Int, into target: UnsafeMutablePointer<UInt8>) {
        luma(first, into: row(6))
        row(6)[width] = row(6)[width - 1]
        chroma(first, first, u: row(7), v: row(8))
        YUVKernels.pack422(row(6), row(7), row(8), into: target, width: (width + 1) / 2 * 2)
    }

    /// Weights times 256, as parts of the video range: those of luma add up to 220, so that white is 235; those of
    /// chroma to 0, so that grey is 128. Negative ones are kept modulo 65536, as is the sum, which never leaves
    /// 0...65535.
    struct Weights {
        static let lumaBias: UInt16 = 16 * 256 + 128
        static let chromaBias: UInt16 = 128 * 256 + 128

        let luma: (red: UInt16, green: UInt16, blue: UInt16)
        private let toU: (red: UInt16, green: UInt16, blue: UInt16)
        private let toV: (red: UInt16, green: UInt16, blue: UInt16)

        init(_ weights: LumaWeights) {
            func scaled(_ value: Double, _ span: Double) -> Int { Int((value * span / 255 * 256).rounded()) }
            let (red, blue) = (scaled(weights.red, 219), scaled(weights.blue, 219))
            luma = (UInt16(red), UInt16(220 - red - blue), UInt16(blue))
            func chroma(own: Int, other: Int) -> (own: UInt16, green: UInt16, other: UInt16) {
                (UInt16(own), UInt16(truncatingIfNeeded: -own - other), UInt16(truncatingIfNeeded: other))
            }
            let half = scaled(0.5, 224)
            let u = chroma(own: half, other: scaled(-weights.red / (2 * (1 - weights.blue)), 224))
            let v = chroma(own: half, other: scaled(-weights.blue / (2 * (1 - weights.red)), 224))
            toU = (u.other, u.green, u.own)
            toV = (v.own, v.green, v.other)
        }

        @inline(__always)
        func u(_ red: UInt16, _ green: UInt16, _ blue: UInt16) -> UInt8 {
            UInt8(
                truncatingIfNeeded: (red &* toU.red &+ green &* toU.green &+ blue &* toU.blue &+ Self.chromaBias) >> 8)
        }

        @inline(__always)
        func v(_ red: UInt16, _ green: UInt16, _ blue: UInt16) -> UInt8 {
            UInt8(
                truncatingIfNeeded: (red &* toV.red &+ green &* toV.green &+ blue &* toV.blue &+ Self.chromaBias) >> 8)
        }
    }
}
