// SPDX-License-Identifier: Apache-2.0

import CYUV
import Conversion
import FrameCore
import Shared

/// Draws the pictures of one input into a place of the output, upright also where a picture lies otherwise than its format
/// says: an H.264 stream can turn from picture to picture. I420. [one thread]
///
/// Allocates when a picture lies otherwise than the one before, and then nothing for those that lie like it.
struct UprightPlacement {
    /// For pictures that are stored upright.
    let usual: Placement
    private let input: VideoFormat
    private let place: Rectangle
    private let fit: Fit
    private let output: PictureGeometry
    /// Nil where the samples mean the same as those of the output.
    private let colors: YUVToYUV?
    private var turned: (orientation: Orientation, picture: ScratchPicture, placement: Placement)?

    /// - Parameter place: In the output.
    init(of input: VideoFormat, into place: Rectangle, _ fit: Fit, output: VideoFormat) {
        usual = Placement(of: PictureGeometry(input), into: place, fit, output: PictureGeometry(output))
        (self.input, self.place, self.fit, self.output) = (input, place, fit, PictureGeometry(output))
        colors = YUVToYUV(from: input.resized(to: PictureSize(output.width, output.height)), to: output)
    }

    /// Where a picture that lies like this is drawn in the output.
    mutating func area(_ orientation: Orientation) -> Rectangle {
        orientation == .up ? usual.to : turned(orientation).placement.to
    }

    mutating func draw(_ picture: Picture, _ orientation: Orientation, into target: Picture) {
        drawUpright(picture, orientation, into: target)
        let area = area(orientation)
        guard let colors, !area.isEmpty else { return }
        colors.convert(target.part(x: area.x, y: area.y, width: area.width, height: area.height))
    }

    private mutating func drawUpright(_ picture: Picture, _ orientation: Orientation, into target: Picture) {
        guard orientation != .up else { return usual.draw(picture, into: target) }
        let (_, scratch, placement) = turned(orientation)
        for plane in 0..<picture.planeCount {
            let (from, to) = (picture[plane], scratch.picture[plane])
            // A negative height mirrors top to bottom; with half a turn more that is left to right.
            let turns = (orientation.quarterTurns + (orientation.isMirrored ? 2 : 0)) % 4
            let mode = [kRotate0, kRotate90, kRotate180, kRotate270][turns]
            RotatePlane(
                from.base.assumingMemoryBound(to: UInt8.self), Int32(from.strideBytes),
                to.base.assumingMemoryBound(to: UInt8.self), Int32(to.strideBytes), Int32(from.rowBytes),
                Int32(orientation.isMirrored ? -from.rows : from.rows), mode)
        }
        placement.draw(scratch.picture, into: target)
    }

    private mutating func turned(
        _ orientation: Orientation
    ) -> (orientation: Orientation, picture: ScratchPicture, placement: Placement) {
        if let turned, turned.orientation == orientation { return turned }
        let upright = PictureGeometry(input, lying: orientation).upright
        let made = (
            orientation, ScratchPicture(.i420, width: upright.size.width, height: upright.size.height),
            Placement(of: upright, into: place, fit, output: output)
        )
        turned = made
        return made
    }
}
