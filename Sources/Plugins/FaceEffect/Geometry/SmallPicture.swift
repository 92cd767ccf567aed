// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

/// The small upright copy of a frame on which faces are searched and followed. All memory is taken at the start.
///
/// Luma as area means, with a long side of at most `longSide`. A picture that lies on its side is turned here,
/// where that moves only some thousand bytes.
final class SmallPicture {
    let width: Int
    let height: Int
    /// Upright full size over small size.
    let scaleX: Double
    let scaleY: Double
    /// This frame and the one before.
    private(set) var current: GrayPyramid
    private(set) var previous: GrayPyramid

    private let map: UprightMap
    private let reducedWidth: Int
    private let reducedHeight: Int
    private let luma: BoxReducer
    private let chroma: BoxReducer
    private let chromaStep: Int
    /// Reduced planes as stored: luma, and both kinds of chroma in half the size.
    private let plane: ScratchPicture
    private let weights: LumaWeights
    private let isFullRange: Bool

    init(_ format: VideoFormat, longSide: Int) {
        map = UprightMap(format)
        let size = Self.size(format, longSide: longSide)
        reducedWidth = size.width
        reducedHeight = size.height
        width = map.orientation.swapsSides ? reducedHeight : reducedWidth
        height = map.orientation.swapsSides ? reducedWidth : reducedHeight
        scaleX = Double(map.width) / Double(width)
        scaleY = Double(map.height) / Double(height)
        current = GrayPyramid(width: width, height: height)
        previous = GrayPyramid(width: width, height: height)
        luma = BoxReducer(
            width: format.width, height: format.height, targetWidth: reducedWidth, targetHeight: reducedHeight)
        chromaStep = format.pixelFormat == .nv12 ? 2 : 1
        chroma = BoxReducer(
            width: (format.width + 1) / 2, height: (format.height + 1) / 2, step: chromaStep,
            targetWidth: (reducedWidth + 1) / 2,
            targetHeight: (reducedHeight + 1) / 2)
        plane = ScratchPicture(.i420, width: reducedWidth, height: reducedHeight)
        weights = LumaWeights(of: format)
        isFullRange = format.color.range == .full
    }

    /// Sides of the small copy as stored.
    static func size(_ format: VideoFormat, longSide: Int) -> PictureSize {
        let long = max(format.width, format.height)
        guard long > longSide else { return PictureSize(format.width, format.height) }
        func side(_ full: Int) -> Int { max(min((full * longSide + long / 2) / long, full), min(full, 16)) }
        return PictureSize(side(format.width), side(format.height))
    }

    /// [stage thread] The frame's luma becomes `current`; what that was becomes `previous`.
    func take(_ picture: Picture) {
        swap(&current, &previous)
        let target = current.full
        if map.orientation == .up {
            luma.reduce(samples(picture, 0), stride: picture[0].strideBytes, into: target.base, targetStride: width)
        } else {
            let reduced = plane.picture[0]
            luma.reduce(
                samples(picture, 0), stride: picture[0].strideBytes, into: bytes(reduced.base),
                targetStride: reduced.strideBytes)
            turn(
                bytes(reduced.base), stride: reduced.strideBytes, width: reducedWidth, height: reducedHeight,
                into: target.base)
        }
        current.build()
    }

    /// [stage thread] The same picture in colour, as packed BGR, upright: what YuNet reads. Call after `take` with the
    /// same frame.
    func writeBGR(_ picture: Picture, to target: UnsafeMutablePointer<UInt8>) {
        let (u, v) = (plane.picture[1], plane.picture[2])
        if chromaStep == 1 {
            chroma.reduce(
                samples(picture, 1), stride: picture[1].strideBytes, into: bytes(u.base), targetStride: u.strideBytes)
            chroma.reduce(
                samples(picture, 2), stride: picture[2].strideBytes, into: bytes(v.base), targetStride: v.strideBytes)
        } else {
            chroma.reduce(
                samples(picture, 1), stride: picture[1].strideBytes, into: bytes(u.base), targetStride: u.strideBytes)
            chroma.reduce(
                samples(picture, 1) + 1, stride: picture[1].strideBytes, into: bytes(v.base),
                targetStride: v.strideBytes)
        }
        let uBase = bytes(u.base)
        let vBase = bytes(v.base)
        // 8.8 fixed point is finer than the detector can tell.
        let lumaScale = Int32((isFullRange ? 1 : 255.0 / 219) * 256)
        let chromaScale = (isFullRange ? 1 : 255.0 / 224) * 256
        let vToRed = Int32(2 * (1 - weights.red) * chromaScale)
        let uToBlue = Int32(2 * (1 - weights.blue) * chromaScale)
        let uToGreen = Int32(2 * (1 - weights.blue) * weights.blue / weights.green * chromaScale)
        let vToGreen = Int32(2 * (1 - weights.red) * weights.red / weights.green * chromaScale)
        let black: Int32 = isFullRange ? 0 : 16
        let gray = current.full.base
        for y in 0..<height {
            for x in 0..<width {
                let (storedX, storedY) = stored(x, y)
                let luma = (Int32(gray[y * width + x]) - black) * lumaScale + 128
                let cu = Int32(uBase[storedY / 2 * u.strideBytes + storedX / 2]) - 128
                let cv = Int32(vBase[storedY / 2 * v.strideBytes + storedX / 2]) - 128
                let pixel = target + (y * width + x) * 3
                pixel[0] = Self.clamp((luma + uToBlue * cu) >> 8)
                pixel[1] = Self.clamp((luma - uToGreen * cu - vToGreen * cv) >> 8)
                pixel[2] = Self.clamp((luma + vToRed * cv) >> 8)
            }
        }
    }

    /// Forgets the picture before: `previous` becomes the same as `current`.
    func forgetPrevious() { previous.copy(from: current) }

    @inline(__always)
    private static func clamp(_ value: Int32) -> UInt8 { UInt8(truncatingIfNeeded: min(max(value, 0), 255)) }

    /// Where a sample of the upright small picture lies in the reduced one as stored.
    @inline(__always)
    private func stored(_ x: Int, _ y: Int) -> (Int, Int) {
        let (column, row) =
            switch map.orientation.quarterTurns {
            case 1: (y, reducedHeight - 1 - x)
            case 2: (reducedWidth - 1 - x, reducedHeight - 1 - y)
            case 3: (reducedWidth - 1 - y, x)
            default: (x, y)
            }
        return (map.orientation.isMirrored ? reducedWidth - 1 - column : column, row)
    }

    private func turn(
        _ source: UnsafePointer<UInt8>, stride: Int, width: Int, height: Int, into target: UnsafeMutablePointer<UInt8>
    ) {
        for y in 0..<self.height {
            for x in 0..<self.width {
                let (storedX, storedY) = stored(x, y)
                target[y * self.width + x] = source[storedY * stride + storedX]
            }
        }
    }

    private func samples(_ picture: Picture, _ plane: Int) -> UnsafePointer<UInt8> {
        UnsafePointer(picture[plane].base.assumingMemoryBound(to: UInt8.self))
    }

    private func bytes(_ base: UnsafeMutableRawPointer) -> UnsafeMutablePointer<UInt8> {
        base.assumingMemoryBound(to: UInt8.self)
    }
}
