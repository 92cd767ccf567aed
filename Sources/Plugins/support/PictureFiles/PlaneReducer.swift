// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Scales planes of bytes to any size: smaller ones are means of all the samples they stand for, larger ones bilinear.
///
/// libyuv's box filter does that in one call up to a limit. It divides by the reciprocal of the box's area in 16
/// bits, which at 30 x 30 samples makes white 1 % darker. It adds up a column in 16 bits, which from 258 rows on is
/// too much. And it uses boxes only where both sides become less than half; where only one does, it skips samples.
/// So a larger reduction is made in several steps.
final class PlaneReducer {
    /// The most samples of a side: positions are 16.16 in 32 bits.
    static let most = 32_767
    /// The largest reduction in one step, for both sides, and for one.
    private static let (boxStep, lineStep) = (8, 2)

    private let between = [GrowingMemory(), GrowingMemory()]

    var byteCount: Int { between.reduce(0) { $0 + $1.byteCount } }
    func trim() { for memory in between { memory.trim() } }

    /// - Precondition: no side has more than ``most`` samples.
    /// - Throws: ``FrameHostError`` `.exhausted`.
    func scale(_ plane: PixelPlane, into target: PixelPlane) throws {
        var plane = plane
        var turn = 0
        while true {
            let size = Self.step(
                from: PictureSize(plane.width, plane.height), to: PictureSize(target.width, target.height))
            guard size.width != target.width || size.height != target.height else { break }
            let stride = (size.width + 63) / 64 * 64
            let next = PixelPlane(
                base: try between[turn].bytes(stride * size.height), strideBytes: stride, width: size.width,
                height: size.height)
            PixelCalls.scale(plane, into: next)
            plane = next
            turn = 1 - turn
        }
        PixelCalls.scale(plane, into: target)
    }

    /// The size of the next step; `to` for the last step.
    static func step(from: PictureSize, to: PictureSize) -> PictureSize {
        let isWide = from.width > 2 * to.width
        let isTall = from.height > 2 * to.height
        guard isWide || isTall else { return to }
        let most = isWide && isTall ? boxStep : lineStep
        func next(_ from: Int, _ to: Int) -> Int { max(to, (from + most - 1) / most) }
        return PictureSize(
            isWide ? next(from.width, to.width) : isTall ? from.width : to.width,
            isTall ? next(from.height, to.height) : isWide ? from.height : to.height)
    }
}
