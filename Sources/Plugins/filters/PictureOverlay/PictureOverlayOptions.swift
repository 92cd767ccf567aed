// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

struct PictureOverlayOptions: StageOptions {
    @Option(
        help:
            "The picture: a PNG file, where it is transparent the pictures of the chain show through; or a JPEG file. While the chain runs, a new one is shown once it has been read.",
        live: true)
    var path = ""
    @Option(help: "Position in the upright picture.", live: true) var position = OverlayPosition.topRight
    @Option(
        help:
            "Distance from the edges that 'position' names, in pixels or as a share of width and height (\"3%\"). [x, y] sets two distances.",
        live: true)
    var margin = Margin(x: .share(3), y: .share(3))
    @Option(
        help:
            "Height on the picture, in pixels or as a share of the picture's height (\"10%\"); the width follows. Default: the file's own pixels.",
        live: true)
    var size: Extent? = nil
    @Option(help: "Opacity of the whole picture, beside its own.", range: 0...1, live: true) var opacity = 1.0

    func validate() throws(OptionFault) {
        if path.isEmpty {
            throw OptionFault(
                "'path' is missing or empty", remedy: "Name a PNG or JPEG file: \"path\": \"logo.png\".",
                options: ["path"])
        }
        if path.utf8.contains(0) {
            throw OptionFault(
                "'path' must not contain the character U+0000", remedy: "Remove its \\u0000.", options: ["path"])
        }
        switch size {
        case .pixels(let pixels) where pixels < 1:
            let share =
                pixels > 0
                ? " For \(Extent.share(pixels * 100)) of the picture's height write \"\(Extent.share(pixels * 100))\"."
                : ""
            throw OptionFault(
                "'size' must be at least 1 pixel or a percentage, but is \(pixels.optionJSON.text())",
                remedy: "Write a number of pixels, such as 24, or a percentage, such as \"10%\".\(share)",
                options: ["size"])
        case .share(let share) where share < 0:
            throw OptionFault(
                "'size' must be 0 or more, but is \(share.optionJSON.text())%", remedy: "Use 0 or more.",
                options: ["size"])
        default: break
        }
    }
}
