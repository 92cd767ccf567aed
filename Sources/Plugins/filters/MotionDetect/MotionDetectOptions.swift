// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

/// Options of `motion-detect`.
struct MotionDetectOptions: StageOptions {
    @Option(
        help: "Areas of the picture in which nothing counts: a street, a tree, a clock.",
        count: 0...IgnoredArea.most, live: true) var ignore: [IgnoredArea] = []
    @Option(
        help:
            "How little something must differ from what is behind it: more finds fainter things, and more that is none.",
        range: 0...1, live: true) var sensitivity = 0.5
    @Option(
        help: "The smallest thing that counts, as a share of the picture.", range: 0.02...100, unit: "%", live: true)
    var minSize = 0.2
    @Option(help: "How long something must move before it counts.", range: 0...60, unit: "s", live: true)
    var minSeconds = 0.4
    @Option(help: "How long nothing must move before the motion has ended.", range: 0.2...3600, unit: "s", live: true)
    var endSeconds = 3.0
    @Option(
        help: "How long the stage only learns at first, so that nothing counts.", range: 0.5...60, unit: "s")
    var learnSeconds = 2.0
    @Option(
        help:
            "Draws a box around what moves. This changes the picture, so it is copied first if other stages use it.")
    var draw = false

    /// What the detector is told.
    var settings: MotionDetector.Settings {
        MotionDetector.Settings(
            sensitivity: Float(sensitivity), leastShare: Float(minSize / 100), leastSeconds: Float(minSeconds),
            learnSeconds: Float(learnSeconds))
    }
}

/// An area of the upright picture that is not looked at.
struct IgnoredArea: OptionObject {
    /// How many corners a polygon may have.
    static let corners = 3...64
    /// The most areas.
    static let most = 64

    @Option(
        help:
            "The area's corners in order around it, as [x, y] in fractions of the upright picture's width and height: [0, 0] is its left upper corner, [1, 1] its right lower one.",
        count: corners, required: true) var polygon: [AreaPoint] = []

    /// An outline without an inside would leave out nothing.
    func validate() throws {
        guard polygon.isFlat else { return }
        throw OptionFault(
            "all corners of 'polygon' lie on one line, so that the area leaves out nothing",
            remedy: "Move a corner away from the line.", options: ["polygon"])
    }
}
