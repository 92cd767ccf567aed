// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Corners, middles of the sides and the middle of the upright picture: where `text` and `picture-overlay` lay theirs.
package enum OverlayPosition: String, OptionChoice {
    case topLeft, top, topRight, left, center, right, bottomLeft, bottom, bottomRight

    /// 0 at the left, 1 in the middle, 2 at the right.
    private var column: Int {
        switch self {
        case .topLeft, .left, .bottomLeft: 0
        case .top, .center, .bottom: 1
        case .topRight, .right, .bottomRight: 2
        }
    }

    /// 0 at the top, 1 in the middle, 2 at the bottom.
    private var row: Int {
        switch self {
        case .topLeft, .top, .topRight: 0
        case .left, .center, .right: 1
        case .bottomLeft, .bottom, .bottomRight: 2
        }
    }

    /// Where something of `size` lies in an upright picture.
    ///
    /// - Parameters:
    ///   - margin: From the edges that the position names. Below 0 it reaches out of the picture.
    ///   - step: The corner is a multiple of it, further left and up where it would not be.
    package func place(_ size: PictureSize, margin: Margin, in whole: PictureSize, step: Int = 1) -> Rectangle {
        func start(_ side: Int, _ margin: Extent, _ length: Int, of whole: Int) -> Int {
            guard side != 1 else { return (whole - length) / 2 }
            let margin = Int(margin.pixels(of: whole).rounded())
            return side == 0 ? margin : whole - length - margin
        }
        return Rectangle(
            x: start(column, margin.x, size.width, of: whole.width),
            y: start(row, margin.y, size.height, of: whole.height), width: size.width, height: size.height
        ).aligned(to: step)
    }
}
