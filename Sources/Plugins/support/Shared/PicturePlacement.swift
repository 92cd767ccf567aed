// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// How a picture gets into a place of another shape.
package enum Fit: String, OptionChoice {
    /// It fills the place. What stands over is cropped evenly on both sides.
    case fill
    /// All of it is shown, with bars beside it.
    case contain
    /// It is distorted.
    case stretch
}

/// Where a picture is drawn: the part of it that is read, and the part of its place that it fills.
///
/// docs/design/037-geometry.md.
package struct PicturePlacement: Hashable, Sendable {
    /// In the picture. Where pixels share a chroma sample it may begin within one: ``Rectangle/aligned(to:)``.
    package var source: Rectangle
    /// In the picture that is drawn on. Its corner is a multiple of the step.
    package var target: Rectangle

    /// - Parameters:
    ///   - source: The part of the picture that would best be shown.
    ///   - pixelAspect: The shape of the picture's pixels divided by that of the target's, both
    ///     ``PictureGeometry/pixelAspect``.
    ///   - place: In the picture that is drawn on.
    ///   - step: Sides that the fit shortens are multiples of it: 2 where two pixels share a chroma sample, else 1.
    ///   - tolerance: A shape that differs by less than this share is stretched.
    package init(
        _ source: Rectangle, pixelAspect: Double, into place: Rectangle, _ fit: Fit, step: Int = 1,
        tolerance: Double = 1e-9
    ) {
        (self.source, target) = (source, place)
        switch fit {
        case .fill where !place.isEmpty:
            let shape = Double(place.width) / Double(place.height) / pixelAspect
            self.source = source.largest(shape: shape, step: step, tolerance: tolerance)
        case .contain where !source.isEmpty:
            let shape = Double(source.width) / Double(source.height) * pixelAspect
            target = place.largest(shape: shape, step: step, tolerance: tolerance)
        default: break
        }
        target = target.aligned(to: step)
    }
}
