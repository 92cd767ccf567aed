// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

/// Maps places between the stored picture, in whose pixels the stage works, and the picture as it is shown; both in pixels
/// of full size.
///
/// The orientation is that of a frame, which may differ from its format's: an H.264 stream can turn from picture to
/// picture.
struct UprightMap: Equatable, Sendable {
    let orientation: Orientation
    /// Sides of the stored picture.
    let storedWidth: Int
    let storedHeight: Int

    init(_ format: VideoFormat, _ orientation: Orientation) {
        self.orientation = orientation
        storedWidth = format.width
        storedHeight = format.height
    }

    /// Sides of the upright picture.
    var width: Int { orientation.swapsSides ? storedHeight : storedWidth }
    var height: Int { orientation.swapsSides ? storedWidth : storedHeight }

    /// Where a point of the upright picture lies in the stored one.
    func stored(_ point: FacePoint) -> FacePoint {
        orientation.stored(point, width: Double(storedWidth), height: Double(storedHeight))
    }

    /// The same for a rectangle; its sides stay parallel to the picture's.
    func stored(_ rect: FaceRect) -> FaceRect { Self.rect(rect, stored) }

    /// Where a point of the stored picture lies in the upright one.
    func upright(_ point: FacePoint) -> FacePoint {
        let (width, height) = (Double(storedWidth), Double(storedHeight))
        let x = orientation.isMirrored ? width - point.x : point.x
        return switch orientation.quarterTurns {
        case 1: FacePoint(x: height - point.y, y: x)
        case 2: FacePoint(x: width - x, y: height - point.y)
        case 3: FacePoint(x: point.y, y: width - x)
        default: FacePoint(x: x, y: point.y)
        }
    }

    /// The same for a rectangle; its sides stay parallel to the picture's.
    func upright(_ rect: FaceRect) -> FaceRect { orientation == .up ? rect : Self.rect(rect, upright) }

    private static func rect(_ rect: FaceRect, _ place: (FacePoint) -> FacePoint) -> FaceRect {
        FaceRect(place(FacePoint(x: rect.x, y: rect.y)), place(FacePoint(x: rect.right, y: rect.bottom)))
    }
}

extension Orientation {
    /// Where a point of an upright picture lies in the stored one, whose sides are `width` and `height`.
    func stored(_ point: FacePoint, width: Double, height: Double) -> FacePoint {
        let stored = stored(PicturePoint(x: point.x, y: point.y), width: width, height: height)
        return FacePoint(x: stored.x, y: stored.y)
    }
}
