// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

/// From luma and chroma (8 or 10 bit, any subsampling) to packed RGB in full range, by any matrix and range. Chroma is
/// repeated, not interpolated.
///
/// libyuv's own conversions limit the weight of U in blue to 128/64 on x86, which BT.709 and BT.2020 in video range
/// exceed: a saturated blue comes out 12 to 16 too dark. Here weights have 13 bits and more, in vectors of eight;
/// the result stays within 1 of the exact value. Scratch rows are made here, once.
final class YUVToRGB {
    private let source: PixelFormat
    private let target: PixelFormat
    private let width: Int
    private let black: Int16
    private let scratch: ScratchPicture

    init(_ source: VideoFormat, to target: PixelFormat) {
        self.source = source.pixelFormat
        self.target = target
        width = source.width
        let weights = Weights(LumaWeights(of: source), range: source.color.range)
        black = weights.black
        // Three rows of 16-bit samples, up to a whole eight (and an odd width's last pair); three of 8-bit ones; one
        // of weights.
        scratch = ScratchPicture(.gray8, width: max(2 * (source.width + 8), 5 * 16), height: 7)
        for (index, weight) in [weights.luma, weights.redOfV, weights.greenOfU, weights.greenOfV, weights.blueOfU]
            .enumerated()
        {
            eights(words(6))[index] = SIMD8(repeating: weight)
        }
    }

    private func words(_ index: Int) -> UnsafeMutablePointer<Int16> {
        (scratch.picture[0].base + index * scratch.picture[0].strideBytes).assumingMemoryBound(to: Int16.self)
    }
    private func bytes(_ index: Int) -> UnsafeMutablePointer<UInt8> {
        scratch.picture[0].bytes + (3 + index) * scratch.picture[0].strideBytes
    }

    func convert(_ picture: Picture, into target: Picture) {
        for y in 0..<picture.height {
            load(picture, y)
            weigh()
            YUVKernels.merge(
                red: bytes(0), green: bytes(1), blue: bytes(2), into: target[0].bytes + y * target[0].strideBytes,
                self.target,
                count: width)
        }
    }

    // MARK: Loading: samples about zero, as large as 16 bits allow

    /// Row `y` as luma less black times 128 and chroma less 128 times 256 (of 8-bit samples), one of each for every
    /// pixel.
    private func load(_ picture: Picture, _ y: Int) {
        let black = black
        let line = { (plane: Int, row: Int) in picture[plane].base + row * picture[plane].strideBytes }
        switch source {
        case .gray8: loadLuma(line(0, y).assumingMemoryBound(to: UInt8.self), step: 1, black)
        case .i420, .nv12:
            loadLuma(line(0, y).assumingMemoryBound(to: UInt8.self), step: 1, black)
            // Chroma rows serve two rows of luma.
            guard y % 2 == 0 else { return }
            if source == .i420 {
                loadChroma(line(1, y / 2).assumingMemoryBound(to: UInt8.self), step: 1, into: words(1))
                loadChroma(line(2, y / 2).assumingMemoryBound(to: UInt8.self), step: 1, into: words(2))
            } else {
                loadChroma(line(1, y / 2).assumingMemoryBound(to: UInt8.self), step: 2, into: words(1))
                loadChroma(line(1, y / 2).assumingMemoryBound(to: UInt8.self) + 1, step: 2, into: words(2))
            }
        case .yuyv:
            let row = line(0, y).assumingMemoryBound(to: UInt8.self)
            loadLuma(row, step: 2, black)
            loadChroma(row + 1, step: 4, into: words(1))
            loadChroma(row + 3, step: 4, into: words(2))
        case .i010, .p010:
            // p010 has its ten bits on top: the same value times 64.
            let shift: UInt16 = source == .p010 ? 6 : 0
            loadLuma(line(0, y).assumingMemoryBound(to: UInt16.self), shift, black)
            guard y % 2 == 0 else { return }
            let first = line(1, y / 2).assumingMemoryBound(to: UInt16.self)
            if source == .i010 {
                loadChroma(first, step: 1, shift, into: words(1))
                loadChroma(line(2, y / 2).assumingMemoryBound(to: UInt16.self), step: 1, shift, into: words(2))
            } else {
                loadChroma(first, step: 2, shift, into: words(1))
                loadChroma(first + 1, step: 2, shift, into: words(2))
            }
        case .bgra, .rgb24: preconditionFailure("\(source) has no luma")
        }
    }

    @inline(__always)
    private func loadLuma(_ row: UnsafePointer<UInt8>, step: Int, _ black: Int16) {
        let luma = words(0)
        for x in 0..<width { luma[x] = (Int16(row[x &* step]) &- black) &<< 7 }
    }

    @inline(__always)
    private func loadChroma(_ row: UnsafePointer<UInt8>, step: Int, into chroma: UnsafeMutablePointer<Int16>) {
        for x in 0..<(width + 1) / 2 {
            let value = (Int16(row[x &* step]) &- 128) &<< 8
            chroma[2 &* x] = value
            chroma[2 &* x &+ 1] = value
        }
    }

    @inline(__always)
    private func loadLuma(_ row: UnsafePointer<UInt16>, _ shift: UInt16, _ black: Int16) {
        let luma = words(0)
        for x in 0..<width { luma[x] = (Int16(truncatingIfNeeded: (row[x] &>> shift) & 1023) &- black &* 4) &<< 5 }
    }

    @inline(__always)
    private func loadChroma(
        _ row: UnsafePointer<UInt16>, step: Int, _ shift: UInt16, into chroma: UnsafeMutablePointer<Int16>
    ) {
        for x in 0..<(width + 1) / 2 {
            let value = (Int16(truncatingIfNeeded: (row[x &* step] &>> shift) & 1023) &- 512) &<< 6
            chroma[2 &* x] = value
            chroma[2 &* x &+ 1] = value
        }
    }

    // MARK: Weighing

    /// Converts eight pixels at a time. Rows have room for a last, partial eight.
    ///
    /// Weights are read from memory in the loop on purpose: kept in registers, they are widened before it, and the
    /// compiler no longer sees that the upper halves of eight products are one instruction (measured: 3 times slower).
    private func weigh() {
        let (luma, u, v, weights) = (eights(words(0)), eights(words(1)), eights(words(2)), eights(words(6)))
        let (red, green, blue) = (eights(bytes(0)), eights(bytes(1)), eights(bytes(2)))
        for x in 0..<(width + 7) / 8 {
            let y = Self.product(luma[x], weights[0]) &+ SIMD8(repeating: Weights.rounding)
            red[x] = Self.samples(y &+ Self.product(v[x], weights[1]))
            green[x] = Self.samples(y &- Self.product(u[x], weights[2]) &- Self.product(v[x], weights[3]))
            blue[x] = Self.samples(y &+ Self.product(u[x], weights[4]))
        }
    }

    private func eights<Sample>(_ row: UnsafeMutablePointer<Sample>) -> UnsafeMutablePointer<SIMD8<Sample>> {
        UnsafeMutableRawPointer(row).assumingMemoryBound(to: SIMD8<Sample>.self)
    }

    /// The upper halves of the products.
    @inline(__always)
    private static func product(_ a: SIMD8<Int16>, _ b: SIMD8<Int16>) -> SIMD8<Int16> {
        let whole = SIMD8<Int32>(truncatingIfNeeded: a) &* SIMD8<Int32>(truncatingIfNeeded: b)
        return SIMD8(truncatingIfNeeded: whole &>> 16)
    }

    @inline(__always)
    private static func samples(_ values: SIMD8<Int16>) -> SIMD8<UInt8> {
        SIMD8(truncatingIfNeeded: pointwiseMin(pointwiseMax(values &>> 5, SIMD8(repeating: 0)), SIMD8(repeating: 255)))
    }

    /// What 8-bit steps of luma and chroma are worth in steps of RGB, scaled so that the upper half of each product has
    /// 5 bits of fraction. The largest sum, white with saturated blue, is below 18,000.
    struct Weights {
        /// Half a step; and half of the last bit for each of two products, which round down.
        static let rounding: Int16 = 16 + 1
        let black: Int16
        let luma: Int16
        let redOfV: Int16
        let greenOfU: Int16
        let greenOfV: Int16
        let blueOfU: Int16

        init(_ weights: LumaWeights, range: ColorRange) {
            let isVideo = range == .video
            black = isVideo ? 16 : 0
            func scaled(_ value: Double, span: Double, shift: Int) -> Int16 {
                Int16((value * 255 / (isVideo ? span : 255) * 32 * Double(1 << (16 - shift))).rounded())
            }
            luma = scaled(1, span: 219, shift: 7)
            let v = 2 * (1 - weights.red)
            let u = 2 * (1 - weights.blue)
            redOfV = scaled(v, span: 224, shift: 8)
            blueOfU = scaled(u, span: 224, shift: 8)
            greenOfU = scaled(u * weights.blue / weights.green, span: 224, shift: 8)
            greenOfV = scaled(v * weights.red / weights.green, span: 224, shift: 8)
        }
    }
}
