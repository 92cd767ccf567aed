// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// One copy as it is painted: its place, its delay and its colours.
struct CopyPlan {
    /// From the input's pixels to the output's.
    let placement: Affine
    /// Frames.
    let delay: Int
    /// Nil where colours stay.
    let color: ColorMatrix?
    /// 0...256.
    let opacity: Int
    /// How often the input is halved before it is scaled, so that no pixel covers more than two samples in each
    /// direction.
    let level: Int

    /// All copies, lowest first.
    static func all(_ options: ReplicateOptions, from input: VideoFormat, to output: VideoFormat) -> [CopyPlan] {
        (0..<options.copyCount).map { CopyPlan($0, options, input, output) }
    }

    private init(_ index: Int, _ options: ReplicateOptions, _ input: VideoFormat, _ output: VideoFormat) {
        let own = index < options.each.count ? options.each[index].over(options.first) : options.first
        let step = options.step
        let grid = options.grid
        let cell = (
            width: Double(output.width) / Double(grid.columns), height: Double(output.height) / Double(grid.rows)
        )
        let size = (width: Double(input.width), height: Double(input.height))
        let place = index % (grid.columns * grid.rows)
        let middle = Affine.moved(
            (Double(place % grid.columns) + 0.5) * cell.width, (Double(place / grid.columns) + 0.5) * cell.height)
        let fit = min(cell.width / size.width, cell.height / size.height)

        func transform(_ change: CopyChange, scale: Double) -> Affine {
            let scale = (change.scale ?? 1) * scale
            let x = change.x?.pixels(of: cell.width) ?? 0
            let y = change.y?.pixels(of: cell.height) ?? 0
            return .moved(x, y) * .turned(degrees: change.rotate ?? 0)
                * .scaled(change.mirror == true ? -scale : scale, scale)
        }
        var placement = transform(own, scale: fit) * .moved(-size.width / 2, -size.height / 2)
        let stride = transform(step, scale: 1)
        for _ in 0..<index { placement = stride * placement }
        self.placement = middle * placement

        var halvings = 0
        var scale = abs(self.placement.determinant).squareRoot()
        while scale <= 0.5001, halvings < PictureLevels.most, min(input.width, input.height) >> halvings > 2 {
            scale *= 2
            halvings += 1
        }
        level = halvings
        delay = options.delay(of: index)
        let count = Double(index)
        opacity = Int(((own.opacity ?? 1) * pow(step.opacity ?? 1, count) * 256).rounded())
        func tint(_ component: (RGBColor) -> UInt8) -> Double {
            Double(own.tint.map(component) ?? 255) / 255 * pow(Double(step.tint.map(component) ?? 255) / 255, count)
        }
        let color = ColorMatrix(
            gain: (own.gain ?? 1) * min(pow(step.gain ?? 1, count), 8),
            tint: (tint(\.red), tint(\.green), tint(\.blue)),
            hue: (own.hue ?? 0) + count * (step.hue ?? 0), for: input)
        self.color = color.isIdentity ? nil : color
    }

    /// The rows of an output `height` high that a copy of a picture of this size touches; nil for none.
    func rows(of size: PictureSize, in height: Int) -> Range<Int>? {
        let (down, right) = (placement.d * Double(size.height), placement.c * Double(size.width))
        let top = placement.y0 + min(down, 0) + min(right, 0) - 1
        let bottom = placement.y0 + max(down, 0) + max(right, 0) + 1
        guard bottom > 0, top < Double(height) else { return nil }
        return Int(max(top, 0))..<Int(min(bottom.rounded(.up), Double(height)))
    }

    /// Whether the copy can be seen: neither too small nor transparent.
    var isVisible: Bool { opacity > 0 && abs(placement.determinant) > 1e-6 }
}
