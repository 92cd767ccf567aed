// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

/// The figures in the lower left corner, white on black; left out where the picture is too small.
struct FigureLabel {
    private let ink: Paint
    private let ground: Paint
    private let size: PictureSize
    private let scale: Int
    private var lines = [Array("-.-- FPS".utf8)]

    init(_ format: VideoFormat) {
        ink = Paint(RGBColor(red: 255, green: 255, blue: 255), for: format)
        ground = Paint(RGBColor(red: 0, green: 0, blue: 0), for: format)
        size = PictureSize(format.width, format.height)
        // A third of the smaller side for the longest usual line, "LATENCY 123.4 MS".
        scale = max(min(format.width, format.height * 16 / 9) / (3 * 16 * (BitmapFont.width + 1)) / 2 * 2, 2)
    }

    /// Makes the lines, once a second.
    mutating func set(_ figures: Figures) { lines = figures.lines }

    /// All coordinates are even, so that chroma is sharp.
    func draw(on picture: Picture) {
        let step = BitmapFont.box(characters: 0, scale: scale).height
        let top = (size.height - size.height / 24) / 2 * 2 - step * lines.count
        for (index, line) in lines.enumerated() {
            line.withUnsafeBufferPointer {
                _ = picture.draw(
                    $0, x: size.width / 32 / 2 * 2, y: top + index * step, scale: scale, ink: ink, ground: ground)
            }
        }
    }
}
