// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Maps places in the picture as it is shown to places in the stored picture, both in pixels of full size.
struct UprightMap: Equatable, Sendable {
    let orientation: Orientation
    /// Sides of the stored picture.
    let storedWidth: Int
    let storedHeight: Int

    init(_ format: VideoFormat) {
        orientation = format.orientation
        storedWidth = format.width
        storedHeight = format.height
    }

    /// Sides of the upright picture.
    var width: Int { orientation.swapsSides ? storedHeight : storedWidth }
    var height: Int { orientation.swapsSides ? storedWidth : storedHeight }

    /// Where a point of the upright picture lies in the stored one.
    func stored(_ point: FacePoint) -> FacePoint {
        let (width, height) = (Double(storedWidth), Double(storedHeight))
        let turnedBack =
            switch orientation.quarterTurns {
            case 1: FacePoint(x: point.y, y: height - point.x)
            case 2: FacePoint(x: width - point.x, y: height - point.y)
            case 3: FacePoint(x: width - point.y, y: point.x)
            default: point
            }
        return orientation.isMirrored ? FacePoint(x: width - turnedBack.x, y: turnedBack.y) : turnedBack
    }

    /// The same for a rectangle; its sides stay parallel to the picture's.
    func stored(_ rect: FaceRect) -> FaceRect {
        let first = stored(FacePoint(x: rect.x, y: rect.y))
        let last = stored(FacePoint(x: rect.right, y: rect.bottom))
        return FaceRect(
            x: min(first.x, last.x), y: min(first.y, last.y), width: abs(last.x - first.x),
            height: abs(last.y - first.y))
    }
}
