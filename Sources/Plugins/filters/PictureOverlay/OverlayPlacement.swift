// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

/// Where the options put a picture on frames that lie in one way.
struct OverlayPlacement: Equatable, Sendable {
    /// How the frames lie.
    let orientation: Orientation
    /// Sides of the upright frame.
    let shown: PictureSize
    /// All of the scaled picture, in the upright frame, beyond which it may reach.
    let whole: Rectangle

    /// What of it lies in the frame.
    var visible: Rectangle { whole.clipped(to: shown) }
    /// The same in the stored frame.
    var stored: Rectangle { orientation.stored(visible, shown: shown) }

    /// - Parameter picture: The sides of the picture's file, in square pixels.
    init(_ options: PictureOverlayOptions, picture: PictureSize, on format: VideoFormat, lying orientation: Orientation)
    {
        let upright = PictureGeometry(format, lying: orientation).upright
        self.orientation = orientation
        shown = upright.size
        let height = options.size?.pixels(of: shown.height) ?? Double(picture.height)
        let width = height * Double(picture.width) / Double(picture.height) / upright.pixelAspect
        let size = PictureSize(max(Int(width.rounded()), 1), max(Int(height.rounded()), 1))
        whole = options.position.place(size, margin: options.margin, in: shown)
    }
}
