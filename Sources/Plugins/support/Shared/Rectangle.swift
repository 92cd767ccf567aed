// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// A rectangle of whole pixels. `x` and `y` count from the left upper corner of the picture that it is a part of.
package struct Rectangle: Hashable, Sendable {
    package var x: Int
    package var y: Int
    package var width: Int
    package var height: Int

    package init(x: Int = 0, y: Int = 0, width: Int, height: Int) {
        self.x = x
        self.y = y
        self.width = width
        self.height = height
    }

    /// The whole of a picture.
    package init(_ size: PictureSize) { self.init(width: size.width, height: size.height) }

    package var size: PictureSize { PictureSize(width, height) }
    package var isEmpty: Bool { width <= 0 || height <= 0 }

    /// The part within a picture of `size`.
    package func clipped(to size: PictureSize) -> Rectangle {
        let (left, top) = (min(max(x, 0), size.width), min(max(y, 0), size.height))
        return Rectangle(
            x: left, y: top, width: max(min(x + width, size.width) - left, 0),
            height: max(min(y + height, size.height) - top, 0))
    }

    /// A rectangle of `size` in the middle of this one; by half a pixel left of it or above it where it cannot be in
    /// the middle.
    package func middle(_ size: PictureSize) -> Rectangle {
        Rectangle(
            x: x + (width - size.width) / 2, y: y + (height - size.height) / 2, width: size.width, height: size.height)
    }

    /// The same size, but less than `step` pixels further left and up, so that `x` and `y` are multiples of `step`:
    /// where pixels share a chroma sample, a rectangle begins with a whole sample.
    package func aligned(to step: Int) -> Rectangle {
        func multiple(_ value: Int) -> Int { value - (value % step + step) % step }
        return Rectangle(x: multiple(x), y: multiple(y), width: width, height: height)
    }

    /// The largest rectangle of a shape in the middle of this one.
    ///
    /// One side is as long as that of this rectangle. The other is rounded to the nearest multiple of `step`, which is
    /// at least one.
    ///
    /// - Parameters:
    ///   - shape: Width divided by height, both in pixels of this rectangle.
    ///   - tolerance: A shape that differs by less than this share gets all of the rectangle.
    package func largest(shape: Double, step: Int = 1, tolerance: Double = 1e-9) -> Rectangle {
        let (long, high) = (Double(width), Double(height))
        if long > high * shape * (1 + tolerance) {
            return middle(PictureSize(Self.side(high * shape, step: step, most: width), height))
        }
        if long * (1 + tolerance) < high * shape {
            return middle(PictureSize(width, Self.side(long / shape, step: step, most: height)))
        }
        return self
    }

    /// A length as a whole number of pixels: the nearest multiple of `step`, at least one and at most `most`.
    package static func side(_ length: Double, step: Int, most: Int) -> Int {
        let most = most < step ? most : most / step * step
        return min(max(Int((min(length, Double(most)) / Double(step)).rounded()) * step, step), most)
    }
}
