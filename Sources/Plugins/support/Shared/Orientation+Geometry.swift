// SPDX-License-Identifier: Apache-2.0

import FrameCore

extension Orientation {
    /// What one gets who brings a picture upright by this orientation, and then mirrors and turns the result as `next`
    /// says.
    package func then(_ next: Orientation) -> Orientation {
        // Mirroring after a turn equals mirroring before the opposite turn.
        Orientation(
            quarterTurns: next.quarterTurns + (next.isMirrored ? -quarterTurns : quarterTurns),
            mirrored: isMirrored != next.isMirrored)
    }

    /// Where `rectangle` of the shown picture of `size` lies in the stored one.
    package func stored(_ rectangle: Rectangle, shown size: PictureSize) -> Rectangle {
        var result = rectangle
        var (width, height) = (size.width, size.height)
        // One quarter turn clockwise takes the stored (x, y) to (storedHeight - 1 - y, x).
        for _ in 0..<quarterTurns {
            result = Rectangle(
                x: result.y, y: width - result.x - result.width, width: result.height, height: result.width)
            swap(&width, &height)
        }
        if isMirrored { result.x = width - result.x - result.width }
        return result
    }
}

extension Orientation {
    /// Where a point of an upright picture lies in the stored one, whose sides are `width` and `height`.
    package func stored(_ point: PicturePoint, width: Double, height: Double) -> PicturePoint {
        let turnedBack =
            switch quarterTurns {
            case 1: PicturePoint(x: point.y, y: height - point.x)
            case 2: PicturePoint(x: width - point.x, y: height - point.y)
            case 3: PicturePoint(x: width - point.y, y: point.x)
            default: point
            }
        return isMirrored ? PicturePoint(x: width - turnedBack.x, y: turnedBack.y) : turnedBack
    }
}

extension Orientation {
    /// Where the row `y` of a shown picture of `size` lies in the stored one, whose rows follow each other without gaps:
    /// its first pixel, and how far it is from one pixel to the next. Neighbours in a row stay neighbours.
    package func storedRow(_ y: Int, shown size: PictureSize) -> (first: Int, step: Int) {
        let width = size.turned(by: self).width
        func index(_ x: Int) -> Int {
            let place = stored(Rectangle(x: x, y: y, width: 1, height: 1), shown: size)
            return place.y * width + place.x
        }
        return (index(0), index(1) - index(0))
    }
}

extension PictureSize {
    /// From the size of a stored picture to that of the shown one, and back.
    package func turned(by orientation: Orientation) -> PictureSize {
        orientation.swapsSides ? PictureSize(height, width) : self
    }
}
