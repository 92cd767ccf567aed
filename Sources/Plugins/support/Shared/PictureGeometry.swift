// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The shape of a picture: how many pixels it has, of which shape these are, and how the picture lies.
package struct PictureGeometry: Hashable, Sendable {
    /// As stored, in pixels.
    package var size: PictureSize
    /// The width of a stored pixel divided by its height; 0 when unknown.
    package var sampleAspectRatio: Rational
    package var orientation: Orientation

    package init(
        _ size: PictureSize, sampleAspectRatio: Rational = Rational(0), orientation: Orientation = .up
    ) {
        self.size = size
        self.sampleAspectRatio = sampleAspectRatio
        self.orientation = orientation
    }

    package init(_ format: VideoFormat) { self.init(format, lying: format.orientation) }

    /// A picture that lies otherwise than its format says.
    package init(_ format: VideoFormat, lying orientation: Orientation) {
        self.init(
            PictureSize(format.width, format.height), sampleAspectRatio: format.sampleAspectRatio,
            orientation: orientation)
    }

    /// The width of a stored pixel divided by its height, 1 when unknown.
    package var pixelAspect: Double {
        VideoFormat.aspectRatios.contains(sampleAspectRatio.value) ? sampleAspectRatio.value : 1
    }

    /// Sides of the shown picture in square pixels, which are as high as the stored ones.
    package var shownSides: (width: Double, height: Double) {
        let (width, height) = (Double(size.width) * pixelAspect, Double(size.height))
        return orientation.swapsSides ? (height, width) : (width, height)
    }

    /// The same picture after it was brought upright: its pixels have been turned with it.
    package var upright: PictureGeometry {
        let (aspect, isTurned) = (sampleAspectRatio, orientation.swapsSides && sampleAspectRatio.numerator > 0)
        return PictureGeometry(
            size.turned(by: orientation),
            sampleAspectRatio: isTurned ? Rational(aspect.denominator, aspect.numerator) : aspect)
    }
}
