// SPDX-License-Identifier: Apache-2.0

import CYUV
import FrameCore
import Shared

/// Draws the pictures of one input into a place of the output: copied where no pixel is scaled, otherwise scaled by
/// libyuv's box filter. I420. Allocates nothing per picture. [one thread]
struct Placement {
    let from: Rectangle
    let to: Rectangle
    /// Whether the picture is copied as it is, and fills the output.
    let isWhole: Bool

    /// - Parameters:
    ///   - input: Upright.
    ///   - place: In the output. Even, as all rectangles here: two pixels of 4:2:0 share chroma in each direction.
    init(of input: PictureGeometry, into place: Rectangle, _ fit: Fit, output: PictureGeometry) {
        let even = Rectangle(width: input.size.width & ~1, height: input.size.height & ~1)
        let placement = PicturePlacement(
            even, pixelAspect: input.pixelAspect / output.pixelAspect, into: place, fit, step: 2)
        (from, to) = (placement.source.aligned(to: 2), placement.target)
        isWhole = from == to && to == Rectangle(output.size) && input.size == output.size
    }

    func draw(_ picture: Picture, into target: Picture) {
        guard !from.isEmpty, !to.isEmpty else { return }
        let source = picture.part(x: from.x, y: from.y, width: from.width, height: from.height)
        let part = target.part(x: to.x, y: to.y, width: to.width, height: to.height)
        for plane in 0..<source.planeCount {
            let (from, to) = (source[plane], part[plane])
            let bytes = from.base.assumingMemoryBound(to: UInt8.self)
            let result = to.base.assumingMemoryBound(to: UInt8.self)
            if from.rowBytes == to.rowBytes, from.rows == to.rows {
                CopyPlane(
                    bytes, Int32(from.strideBytes), result, Int32(to.strideBytes), Int32(from.rowBytes),
                    Int32(from.rows))
            } else {
                ScalePlane(
                    bytes, Int32(from.strideBytes), Int32(from.rowBytes), Int32(from.rows), result,
                    Int32(to.strideBytes), Int32(to.rowBytes), Int32(to.rows), kFilterBox)
            }
        }
    }
}

extension Picture {
    /// Sets each sample `share`/256 of the way from that of `first` to that of `second`. All three have the same size.
    ///
    /// - Parameter share: 0...255.
    func blend(_ first: Picture, _ second: Picture, share: Int) {
        for plane in 0..<planeCount {
            let (a, b, to) = (first[plane], second[plane], self[plane])
            InterpolatePlane(
                a.base.assumingMemoryBound(to: UInt8.self), Int32(a.strideBytes),
                b.base.assumingMemoryBound(to: UInt8.self), Int32(b.strideBytes),
                to.base.assumingMemoryBound(to: UInt8.self), Int32(to.strideBytes), Int32(to.rowBytes),
                Int32(to.rows), Int32(min(max(share, 0), 255)))
        }
    }
}
