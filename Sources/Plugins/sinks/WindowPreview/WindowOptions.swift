// SPDX-License-Identifier: Apache-2.0

import FrameCore

struct WindowOptions: StageOptions {
    @Option(help: "Title of the window. Default: the stage's id.") var title: String? = nil
    @Option(help: "Initial size of the window. Default: the picture's size, limited to the screen.", unit: "px")
    var size: PictureSize? = nil
    @Option(
        help: "How the picture fits the window: contain shows all of it on grey, fill crops it to its middle.",
        live: true)
    var fit = WindowFit.contain
    @Option(help: "Rotates the picture clockwise.", unit: "degrees", live: true) var rotate = WindowRotation.none
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
            throw OptionFault("'title' must not contain the character U+0000", remedy: "Remove its \\u0000.")
        }
    }

    /// How the window shows the next picture.
    var view: WindowView {
        WindowView(fit: fit, quarterTurns: rotate.quarterTurns, mirror: mirror, isFullscreen: fullscreen, rate: rate)
    }
}

enum WindowFit: String, OptionChoice { case contain, fill }
enum WindowMirror: String, OptionChoice { case auto, on, off }

/// Quarter turns clockwise, written in degrees.
enum WindowRotation: Int, OptionValue, CaseIterable {
    case none = 0
    case right = 90
    case around = 180
    case left = 270

    var quarterTurns: Int { rawValue / 90 }

    static func decodeOption(_ node: JSONNode) throws(OptionFault) -> WindowRotation {
        guard let degrees = node.asInt, let rotation = WindowRotation(rawValue: degrees) else {
            throw OptionFault(
                "\(node.text()) must be 0, 90, 180 or 270", remedy: "Write the number of degrees to rotate clockwise")
        }
        return rotation
    }
    var optionJSON: JSONNode { .number(rawValue) }
    static var optionTypeName: String { "0, 90, 180, 270" }
    static var optionSchema: JSONNode { ["enum": [0, 90, 180, 270]] }
}

/// How pictures are shown; what live options change.
struct WindowView: Sendable, Equatable {
    var fit = WindowFit.contain
    var quarterTurns = 0
    var mirror = WindowMirror.auto
    var isFullscreen = false
    /// The most pictures in a second; 0 for every picture.
    var rate = 0.0
}
