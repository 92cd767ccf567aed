// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

/// A small copy of a frame, as it is stored: faces are followed on one, and searched on another, which is turned upright
/// when it is handed to the detector. All memory is taken at the start.
///
/// Luma as area means. A frame's own orientation decides how it is turned, and only some thousand bytes move for that.
final class SmallPicture {
    let width: Int
    let height: Int
    /// Stored full size over small size.
    let scaleX: Double
    let scaleY: Double
    /// This frame and the one before.
    private(set) var current: GrayPyramid
    private(set) var previous: GrayPyramid

    private let luma: BoxReducer
    private let chroma: BoxReducer
    private let chromaStep: Int
    /// Reduced planes: luma, and both kinds of chroma in half the size.
    private let plane: ScratchPicture
    private let weights: LumaWeights
    private let isFullRange: Bool

    /// - Parameter size: At most the sides of `format`.
    init(_ format: VideoFormat, size: PictureSize) {
        (width, height) = (size.width, size.height)
        scaleX = Double(format.width) / Double(width)
        scaleY = Double(format.height) / Double(height)
        current = GrayPyramid(width: width, height: height)
        previous = GrayPyramid(width: width, height: height)
        luma = BoxReducer(width: format.width, height: format.height, targetWidth: width, targetHeight: height)
        chromaStep = format.pixelFormat == .nv12 ? 2 : 1
        chroma = BoxReducer(
            width: (format.width + 1) / 2, height: (format.height + 1) / 2, step: chromaStep,
            targetWidth: (width + 1) / 2, targetHeight: (height + 1) / 2)
        plane = ScratchPicture(.i420, width: width, height: height)
        weights = LumaWeights(of: format)
        isFullRange = format.color.range == .full
    }

    /// Sides of a copy in square pixels, with a long side of at most `longSide`; as stored, and none longer than stored.
    static func squareSize(_ format: VideoFormat, longSide: Int) -> PictureSize {
        let square = format.squareSides
        return size(
            format,
            factor: min(
                Double(longSide) / max(square.width, square.height), Double(format.width) / square.width,
                Double(format.height) / square.height))
    }

    /// Sides of a copy that keeps what a search on a long side of `longSide` square pixels can use. Where the picture's
    /// pixels are not square, those of the copy are not either.
    static func fineSize(_ format: VideoFormat, longSide: Int) -> PictureSize {
        let square = format.squareSides
        return size(format, factor: min(Double(longSide) / max(square.width, square.height), 1))
    }

    /// Sides of the copy that a detector is handed. Cascades know square pixels alone; YuNet's searches make them square.
    static func copySize(_ sizes: SearchSizes, _ format: VideoFormat, _ input: DetectorInput) -> PictureSize {
        input == .gray
            ? squareSize(format, longSide: sizes.trackingSide) : fineSize(format, longSide: sizes.copySide)
    }

    private static func size(_ format: VideoFormat, factor: Double) -> PictureSize {
        func side(_ square: Double, _ full: Int) -> Int {
            max(min(Int((square * factor).rounded()), full), min(full, 16))
        }
        let square = format.squareSides
        return PictureSize(side(square.width, format.width), side(square.height, format.height))
    }

    /// [stage thread] The frame's luma becomes `current`; what that was becomes `previous`.
    func take(_ picture: Picture) {
        swap(&current, &previous)
        luma.reduce(
            samples(picture, 0), stride: picture[0].strideBytes, into: current.full.base, targetStride: width)
        current.build()
    }

    /// Sides of the copy when it is turned upright.
    func uprightSize(_ orientation: Orientation) -> PictureSize {
        PictureSize(width, height).turned(by: orientation)
    }

    /// Brings a detection from the upright copy to the stored picture in full size.
    func stored(_ face: Detection, _ orientation: Orientation) -> Detection {
        func place(_ point: FacePoint) -> FacePoint {
            let there = orientation.stored(point, width: Double(width), height: Double(height))
            return FacePoint(x: there.x * scaleX, y: there.y * scaleY)
        }
        let box = FaceRect(
            place(FacePoint(x: face.box.x, y: face.box.y)), place(FacePoint(x: face.box.right, y: face.box.bottom)))
        return Detection(box: box, confidence: face.confidence, landmarks: face.landmarks?.mapped(place))
    }

    /// [stage thread] The luma of `current` upright, one byte a pixel: what a cascade reads.
    func writeGray(to target: UnsafeMutablePointer<UInt8>, _ orientation: Orientation) {
        let gray = current.full.base
        guard orientation != .up else { return target.update(from: gray, count: width * height) }
        let size = uprightSize(orientation)
        for y in 0..<size.height {
            for x in 0..<size.width {
                let (storedX, storedY) = stored(x, y, orientation)
                target[y * size.width + x] = gray[storedY * width + storedX]
            }
        }
    }

    /// [stage thread] The same picture in colour, as packed BGR, upright: what YuNet reads. Call after `take` with the
    /// same frame.
    func writeBGR(_ picture: Picture, to target: UnsafeMutablePointer<UInt8>, _ orientation: Orientation) {
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
        let size = uprightSize(orientation)
        for y in 0..<size.height {
            for x in 0..<size.width {
                let (storedX, storedY) = stored(x, y, orientation)
                let luma = (Int32(gray[storedY * width + storedX]) - black) * lumaScale + 128
                let cu = Int32(uBase[storedY / 2 * u.strideBytes + storedX / 2]) - 128
                let cv = Int32(vBase[storedY / 2 * v.strideBytes + storedX / 2]) - 128
                let pixel = target + (y * size.width + x) * 3
                pixel[0] = Self.clamp((luma + uToBlue * cu) >> 8)
                pixel[1] = Self.clamp((luma - uToGreen * cu - vToGreen * cv) >> 8)
                pixel[2] = Self.clamp((luma + vToRed * cv) >> 8)
            }
        }
    }

    @inline(__always)
    private static func clamp(_ value: Int32) -> UInt8 { UInt8(truncatingIfNeeded: min(max(value, 0), 255)) }

    /// Where a sample of the upright small picture lies in the one as stored.
    @inline(__always)
    private func stored(_ x: Int, _ y: Int, _ orientation: Orientation) -> (Int, Int) {
        let (column, row) =
            switch orientation.quarterTurns {
            case 1: (y, height - 1 - x)
            case 2: (width - 1 - x, height - 1 - y)
            case 3: (width - 1 - y, x)
            default: (x, y)
            }
        return (orientation.isMirrored ? width - 1 - column : column, row)
    }

    private func samples(_ picture: Picture, _ plane: Int) -> UnsafePointer<UInt8> {
        UnsafePointer(picture[plane].base.assumingMemoryBound(to: UInt8.self))
    }

    private func bytes(_ base: UnsafeMutableRawPointer) -> UnsafeMutablePointer<UInt8> {
        base.assumingMemoryBound(to: UInt8.self)
    }
}

extension VideoFormat {
    /// Sides of the stored picture in square pixels: where its pixels are not square, one side is longer than stored.
    ///
    /// Aspect ratios beyond 8 and 1/8 count as these: no picture of people has them.
    var squareSides: (width: Double, height: Double) {
        let aspect = sampleAspectRatio.isZero ? 1 : min(max(sampleAspectRatio.value, 0.125), 8)
        return (Double(width) * max(aspect, 1), Double(height) * max(1 / aspect, 1))
    }

    /// The longer of ``squareSides``.
    var squareLong: Int {
        let square = squareSides
        return max(Int(max(square.width, square.height).rounded()), 1)
    }
}
