// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Shared

/// What moves in a pattern: a function of the frame's number alone, so that any frame can be made again.
struct MovingParts {
    private struct Ball {
        let paint: Paint
        /// Pixels per frame, and the position at frame 0.
        let speedX: Int
        let speedY: Int
        let startX: Int
        let startY: Int
    }

    private let pattern: TestPattern
    private let format: VideoFormat
    private let white: Paint
    private let framesPerCrossing: Int
    private var balls: [Ball] = []
    /// Half the width of a ball's row, by the row's distance from its centre.
    private var halfWidths: [Int] = []

    init(_ pattern: TestPattern, format: VideoFormat) {
        self.pattern = pattern
        self.format = format
        white = Paint(RGBColor(red: 255, green: 255, blue: 255), for: format)
        framesPerCrossing = max(Int(format.frameRate.value * 4), 2)
        guard pattern == .balls else { return }
        let radius = max(min(format.width, format.height) / 12, 2)
        halfWidths = (0..<radius).map { Int(Double(radius * radius - $0 * $0).squareRoot()) }
        let colors: [UInt32] = [0xE04030, 0xE0C020, 0x30B050, 0x3070E0, 0xB050D0]
        balls = colors.enumerated().map { index, color in
            Ball(
                paint: Paint(RGBColor(hex: color), for: format), speedX: max(format.width / 240, 1) * (index + 1),
                speedY: max(format.height / 180, 1) * (5 - index), startX: format.width * index / 5,
                startY: format.height * ((index * 2) % 5) / 5)
        }
    }

    func paint(frame: Int, on picture: Picture) {
        switch pattern {
        case .bars:
            let side = max(format.height / 12 / 2 * 2, 2)
            let way = max(format.width - side, 1)
            let x = way * (frame % framesPerCrossing) / framesPerCrossing / 2 * 2
            picture.fill(x: x, y: (format.height * 7 / 8 - side / 2) / 2 * 2, width: side, height: side, white)
        case .balls: for ball in balls { paint(ball, frame: frame, on: picture) }
        case .gradient, .checker, .solid, .flash, .none: break
        }
    }

    private func paint(_ ball: Ball, frame: Int, on picture: Picture) {
        let radius = halfWidths.count
        let x = radius + Self.bounce(ball.startX + frame * ball.speedX, within: format.width - 2 * radius)
        let y = (radius + Self.bounce(ball.startY + frame * ball.speedY, within: format.height - 2 * radius)) / 2 * 2
        for distance in stride(from: 0, to: radius, by: 2) {
            let half = halfWidths[distance]
            let left = (x - half) / 2 * 2
            picture.fill(x: left, y: y + distance, width: half * 2, height: 2, ball.paint)
            picture.fill(x: left, y: y - distance - 2, width: half * 2, height: 2, ball.paint)
        }
    }

    /// `way` steps from 0 on a line of `length`, turning round at both ends.
    static func bounce(_ way: Int, within length: Int) -> Int {
        guard length > 0 else { return 0 }
        let place = way % (2 * length)
        return place <= length ? place : 2 * length - place
    }
}
