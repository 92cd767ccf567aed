// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// A rectangle in whole pixels.
package struct Rectangle: Equatable {
    package var x: Int
    package var y: Int
    package var width: Int
    package var height: Int

    package init(x: Int, y: Int, width: Int, height: Int) {
        self.x = x
        self.y = y
        self.width = width
        self.height = height
    }

    package var isEmpty: Bool { width <= 0 || height <= 0 }

    /// The part within a picture of `size`.
    package func clipped(to size: PictureSize) -> Rectangle {
        let (left, top) = (min(max(x, 0), size.width), min(max(y, 0), size.height))
        return Rectangle(
            x: left, y: top, width: max(min(x + width, size.width) - left, 0),
            height: max(min(y + height, size.height) - top, 0))
    }
}

extension Orientation {
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
