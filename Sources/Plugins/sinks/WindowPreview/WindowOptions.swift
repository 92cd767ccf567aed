// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

struct WindowOptions: StageOptions {
    @Option(help: "Title of the window. Default: the stage's id.") var title: String? = nil
    @Option(help: "Initial size of the window. Default: the picture's size, limited to the screen.", unit: "px")
    var size: PictureSize? = nil
    @Option(
        help: "How the picture fits the window: contain shows all of it on grey, fill crops it to its middle.",
        live: true)
    var fit = WindowFit.contain
    @Option(help: "Rotates the picture clockwise.", unit: "degrees", live: true) var rotate = Rotation.none
    @Option(
        help: "Mirrors the picture left to right: on, off, or auto, which follows the camera's 'facing' and 'mirror'.",
        live: true)
    var mirror = WindowMirror.auto
    @Option(help: "Fills the screen.", live: true) var fullscreen = false
    @Option(
        help: "Most pictures to draw per second; 0 draws every picture.", range: 0...240, unit: "per second", live: true
    )
    var rate = 0.0

    func validate() throws(OptionFault) {
        if title?.utf8.contains(0) == true {
            throw OptionFault(
                "'title' must not contain the character U+0000", remedy: "Remove its \\u0000.", options: ["title"])
        }
    }

    /// How the window shows the next picture.
    var view: WindowView {
        WindowView(fit: fit, quarterTurns: rotate.quarterTurns, mirror: mirror, isFullscreen: fullscreen, rate: rate)
    }
}

enum WindowFit: String, OptionChoice { case contain, fill }
enum WindowMirror: String, OptionChoice { case auto, on, off }

/// How pictures are shown; what live options change.
struct WindowView: Sendable, Equatable {
    var fit = WindowFit.contain
    var quarterTurns = 0
    var mirror = WindowMirror.auto
    var isFullscreen = false
    /// The most pictures in a second; 0 for every picture.
    var rate = 0.0
}
