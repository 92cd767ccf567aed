// SPDX-License-Identifier: Apache-2.0

import FrameCore

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
        let (turns, mirrored) = Self.compose(orientation, quarterTurns: view.quarterTurns, isMirrored: isMirrored)
        let (width, height) = (Double(format.width), Double(format.height))
        let shown = Self.shownSize(format, swapsSides: turns % 2 == 1)
        let scales = (window.width / shown.width, window.height / shown.height)
        let scale = view.fit == .contain ? min(scales.0, scales.1) : max(scales.0, scales.1)
        // The picture as it lies in the window. With `fill` the parts outside are cropped from the source.
        var size = (width: shown.width * scale, height: shown.height * scale)
        var part = (width: 1.0, height: 1.0)
        if view.fit == .fill {
            part = (min(1, window.width / size.width), min(1, window.height / size.height))
            size = (min(size.width, window.width), min(size.height, window.height))
        }
        if turns % 2 == 1 {
            size = (size.height, size.width)
            part = (part.height, part.width)
        }
        source = Area(
            x: width * (1 - part.width) / 2, y: height * (1 - part.height) / 2, width: width * part.width,
            height: height * part.height)
        target = Area(
            x: (window.width - size.width) / 2, y: (window.height - size.height) / 2, width: size.width,
            height: size.height)
        quarterTurns = turns
        self.isMirrored = mirrored
    }

    /// The picture upright, then mirrored, then turned, as one mirroring and the turn after it.
    static func compose(_ orientation: Orientation, quarterTurns: Int, isMirrored: Bool) -> (turns: Int, mirrored: Bool)
    {
        // Mirroring after a turn equals mirroring before the opposite turn.
        let upright = isMirrored ? -orientation.quarterTurns : orientation.quarterTurns
        return (((upright + quarterTurns) % 4 + 4) % 4, orientation.isMirrored != isMirrored)
    }

    /// The size with square samples.
    static func shownSize(_ format: VideoFormat, swapsSides: Bool) -> (width: Double, height: Double) {
        let aspect = format.sampleAspectRatio.isZero ? 1 : format.sampleAspectRatio.value
        let (width, height) = (Double(format.width) * aspect, Double(format.height))
        return swapsSides ? (height, width) : (width, height)
    }
}
