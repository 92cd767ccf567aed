// SPDX-License-Identifier: Apache-2.0

import FrameCore

struct VideoSnakeOptions: StageOptions {
    @Option(
        help: "Size of the newest picture, as a part of the whole.", range: 0.05...1, live: true) var head = 0.25
    @Option(
        help: "Size of each earlier picture, as a part of the picture after it.", range: 0.1...0.99,
        live: true) var shrink = 0.85
    @Option(
        help: "How far a push moves the earlier pictures: 1 as in Apple's VideoSnake, 0 not at all.", range: 0...20,
        live: true) var bend = 1.0
}
