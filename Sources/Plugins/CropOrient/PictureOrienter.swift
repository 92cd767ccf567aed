import FrameCore

/// Carries a geometry out: a chain of scaling steps and one of turning, in the order that leaves the fewest pixels to work on. Scratch
/// memory is made here, once.
final class PictureOrienter {
    private enum Step { case scale, orient }

    private let geometry: Geometry
    private let bars: Paint
    private let steps: [Step]
    /// The picture after each step but the last, which writes the output.
    private let between: [ScratchPicture]
    /// Two planes of chroma for turning nv12.
    private let apart: ScratchPicture?

    init(_ geometry: Geometry, from source: VideoFormat, to target: VideoFormat, bars color: RGBColor) {
        self.geometry = geometry
        bars = Paint(color, for: target)
        let swapsSides = geometry.orientation.swapsSides
        let start = Size(width: geometry.source.width, height: geometry.source.height)
        let end = Size(width: geometry.target.width, height: geometry.target.height)
        let turnsLast = end.width * end.height <= start.width * start.height
        var steps: [Step] = []
        var sizes: [Size] = []
        var size = start
        func orient() {
            guard geometry.orientation != .up else { return }
            steps.append(.orient)
            if swapsSides { size = size.turned }
            sizes.append(size)
        }
        func scale(to end: Size) {
            while size != end {
                steps.append(.scale)
                size = size.step(towards: end)
                sizes.append(size)
            }
        }
        if !turnsLast { orient() }
        scale(to: turnsLast && swapsSides ? end.turned : end)
        if turnsLast { orient() }
        // A plain cut is a copy: turned by nothing.
        if steps.isEmpty { steps = [.orient] }
        self.steps = steps
        between = sizes.dropLast().map { ScratchPicture(source.pixelFormat, width: $0.width, height: $0.height) }
        let turned = zip(steps, sizes).first { $0.0 == .orient }?.1
        apart =
            source.pixelFormat != .nv12 || !swapsSides
            ? nil : turned.map { ScratchPicture(.gray8, width: ($0.width + 1) / 2, height: ($0.height + 1) / 2 * 2) }
    }

    func orient(_ picture: Picture, into output: Picture) {
        let target = part(output, geometry.target)
        var source = part(picture, geometry.source)
        for (index, step) in steps.enumerated() {
            let result = index < between.count ? between[index].picture : target
            for plane in 0..<source.planeCount {
                switch step {
                case .scale: PlaneKernels.scale(source[plane], into: result[plane])
                case .orient: PlaneKernels.orient(source[plane], geometry.orientation, into: result[plane], apart: apart?.picture)
                }
            }
            source = result
        }
        paintBars(output)
    }

    private func part(_ picture: Picture, _ place: Rectangle) -> Picture {
        picture.part(x: place.x, y: place.y, width: place.width, height: place.height)
    }

    /// Each frame anew: its buffer may come from anywhere. After the picture, whose last chroma samples bars may share with it where sizes
    /// are odd; those stay the picture's.
    private func paintBars(_ output: Picture) {
        let target = geometry.target
        let isSubsampled = output.planeCount > 1
        func even(_ value: Int) -> Int { isSubsampled ? (value + 1) / 2 * 2 : value }
        let (right, bottom) = (even(target.x + target.width), even(target.y + target.height))
        output.fill(x: 0, y: 0, width: output.width, height: target.y, bars)
        output.fill(x: 0, y: bottom, width: output.width, height: output.height - bottom, bars)
        output.fill(x: 0, y: target.y, width: target.x, height: target.height, bars)
        output.fill(x: right, y: target.y, width: output.width - right, height: target.height, bars)
    }
}

/// A size in pixels.
private struct Size: Equatable {
    var width: Int
    var height: Int

    var turned: Size { Size(width: height, height: width) }

    /// The next size on the way down or up: never less than half at once, since bilinear filtering looks at two pixels by two and
    /// would pass others over. Halves are quick, and each is the mean of all pixels before it.
    func step(towards end: Size) -> Size {
        func step(_ from: Int, _ to: Int) -> Int { from > 2 * to ? (from + 1) / 2 : to }
        return Size(width: step(width, end.width), height: step(height, end.height))
    }
}
