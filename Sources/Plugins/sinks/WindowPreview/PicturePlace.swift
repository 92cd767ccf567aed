// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

/// The place of a picture in a window: which part of it is drawn where, and how it is turned and mirrored.
///
/// As SDL_RenderCopyEx takes it: `target` is the place before the turn, which is around its centre; mirroring comes
/// before the turn.
struct PicturePlace: Equatable {
    struct Area: Equatable {
        var x: Double
        var y: Double
        var width: Double
        var height: Double
    }

    /// Pixels of the picture as stored.
    var source: Area
    /// Pixels of the window.
    var target: Area
    var quarterTurns: Int
    var isMirrored: Bool

    /// - Parameters:
    ///   - format: Size and sample aspect ratio; each side at least 1.
    ///   - orientation: How the stored picture is to be turned to stand upright.
    ///   - isMirrored: Mirror the upright picture.
    ///   - window: Size of what is drawn on, pixels; each side at least 1.
    init(
        _ format: VideoFormat, orientation: Orientation, view: WindowView, isMirrored: Bool,
        window: (width: Double, height: Double)
    ) {
        let lying = orientation.then(isMirrored ? .upMirrored : .up)
            .then(Orientation(quarterTurns: view.quarterTurns, mirrored: false))
        let (width, height) = (Double(format.width), Double(format.height))
        let shown = PictureGeometry(format, lying: lying).shownSides
        let scales = (window.width / shown.width, window.height / shown.height)
        let scale = view.fit == .contain ? min(scales.0, scales.1) : max(scales.0, scales.1)
        // The picture as it lies in the window. With `fill` the parts outside are cropped from the source.
        var size = (width: shown.width * scale, height: shown.height * scale)
        var part = (width: 1.0, height: 1.0)
        if view.fit == .fill {
            part = (min(1, window.width / size.width), min(1, window.height / size.height))
            size = (min(size.width, window.width), min(size.height, window.height))
        }
        if lying.swapsSides {
            size = (size.height, size.width)
            part = (part.height, part.width)
        }
        source = Area(
            x: width * (1 - part.width) / 2, y: height * (1 - part.height) / 2, width: width * part.width,
            height: height * part.height)
        target = Area(
            x: (window.width - size.width) / 2, y: (window.height - size.height) / 2, width: size.width,
            height: size.height)
        quarterTurns = lying.quarterTurns
        self.isMirrored = lying.isMirrored
    }
}
