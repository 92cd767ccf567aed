// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

/// Carries out a geometry: steps of scaling, the last of which also turns. Where nothing is scaled, it only turns.
/// Scratch memory is made here, once.
final class PictureOrienter {
    private let geometry: Geometry
    private let bars: Paint
    /// A step's scalers, one per plane.
    private let steps: [[PlaneScaler]]
    /// The picture after each step but the last, which writes the output.
    private let between: [ScratchPicture]

    init(_ geometry: Geometry, from source: VideoFormat, to target: VideoFormat, bars color: RGBColor) {
        self.geometry = geometry
        bars = Paint(color, for: target)
        let pixels = source.pixelFormat
        let end = Size(width: geometry.target.width, height: geometry.target.height)
        let last = geometry.orientation.swapsSides ? end.turned : end
        var sizes = [Size(width: geometry.source.width, height: geometry.source.height)]
        while let size = sizes.last, size != last { sizes.append(size.step(towards: last)) }
        steps = zip(sizes, sizes.dropFirst()).enumerated().map { index, pair in
            (0..<pixels.planeCount).map { plane in
                PlaneScaler(
                    from: pair.0.plane(plane, of: pixels), to: pair.1.plane(plane, of: pixels),
                    unit: PlaneUnit.of(pixels, plane: plane).bytes,
                    orientation: index == sizes.count - 2 ? geometry.orientation : .up)
            }
        }
        between = sizes.dropFirst().dropLast().map { ScratchPicture(pixels, width: $0.width, height: $0.height) }
    }

    func orient(_ picture: Picture, into output: Picture) {
        paintBars(output)
        let target = part(output, geometry.target)
        var source = part(picture, geometry.source)
        if steps.isEmpty {
            for plane in 0..<source.planeCount {
                PlaneKernels.orient(source[plane], geometry.orientation, into: target[plane])
            }
        }
        for (index, step) in steps.enumerated() {
            let result = index < between.count ? between[index].picture : target
            for plane in 0..<source.planeCount { step[plane].scale(source[plane], into: result[plane]) }
            source = result
        }
    }

    private func part(_ picture: Picture, _ place: Rectangle) -> Picture {
        picture.part(x: place.x, y: place.y, width: place.width, height: place.height)
    }

    /// Paints the bars in every frame, since its buffer may hold anything. They are painted before the picture:
    /// where sizes are odd, both share chroma samples, which then become the picture's.
    private func paintBars(_ output: Picture) {
        let target = geometry.target
        let (right, bottom) = (target.x + target.width, target.y + target.height)
        output.fill(x: 0, y: 0, width: output.width, height: target.y, bars)
        output.fill(x: 0, y: bottom, width: output.width, height: output.height - bottom, bars)
        output.fill(x: 0, y: target.y, width: target.x, height: target.height, bars)
        output.fill(x: right, y: target.y, width: output.width - right, height: target.height, bars)
    }
}

/// A size in pixels, or in samples and rows.
struct Size: Equatable {
    var width: Int
    var height: Int

    var turned: Size { Size(width: height, height: width) }

    /// The next size on the way down or up. One step goes down to half at most, since bilinear filtering reads two
    /// by two samples and would skip others. A half is the mean of all its pixels.
    func step(towards end: Size) -> Size {
        func step(_ from: Int, _ to: Int) -> Int { from > 2 * to ? (from + 1) / 2 : to }
        return Size(width: step(width, end.width), height: step(height, end.height))
    }

    /// Samples and rows of a plane of a picture of this size.
    func plane(_ plane: Int, of format: PixelFormat) -> Size {
        Size(
            width: format.rowBytes(plane: plane, width: width) / PlaneUnit.of(format, plane: plane).bytes,
            height: format.rows(plane: plane, height: height))
    }
}
