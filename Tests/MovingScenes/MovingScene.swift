// SPDX-License-Identifier: Apache-2.0

import Foundation

/// A made-up view of a camera: what happens in it, and when something moves that a person would call motion.
public struct MovingScene: Sendable {
    public let name: String
    public let seconds: Double
    /// In the order in which they are drawn.
    public let parts: [ScenePart]
    /// Light of the whole scene: 1 by day.
    public let daylight: Float

    public init(_ name: String, seconds: Double, daylight: Float = 1, _ parts: [ScenePart]) {
        self.name = name
        self.seconds = seconds
        self.parts = parts
        self.daylight = daylight
    }

    /// When something moves, in the order of time; overlapping times are one.
    public func truth(aspect: Float) -> [ClosedRange<Double>] {
        let all = parts.flatMap { $0.motion(aspect: aspect) }.sorted { $0.lowerBound < $1.lowerBound }
        return all.reduce(into: []) { joined, next in
            if let last = joined.last, next.lowerBound <= last.upperBound + 1 {
                joined[joined.count - 1] = last.lowerBound...max(last.upperBound, next.upperBound)
            } else {
                joined.append(next)
            }
        }
    }
}

/// Draws the pictures of a scene one after the other.
public struct ScenePainter {
    public let scene: MovingScene
    private let still: [Float]
    private var canvas: SceneCanvas

    public init(_ scene: MovingScene, width: Int, height: Int) {
        self.scene = scene
        canvas = SceneCanvas(width: width, height: height)
        Self.drawYard(on: &canvas)
        canvas.changeAll { _, _, light in light * scene.daylight }
        still = canvas.light
    }

    /// Draws the picture of `time` as 8-bit luma.
    public mutating func draw(_ time: Double, to luma: UnsafeMutablePointer<UInt8>, strideBytes: Int) {
        draw(time)
        canvas.write(to: luma, strideBytes: strideBytes)
    }

    private mutating func draw(_ time: Double) {
        let number = UInt64(max(time, 0) * 1000)
        canvas.light.withUnsafeMutableBufferPointer { light in
            still.withUnsafeBufferPointer { still in
                for index in light.indices { light[index] = still[index] }
            }
        }
        for part in scene.parts { part.draw(on: &canvas, time: time, number: number) }
        for case .shake(let amount) in scene.parts {
            var numbers = SeededNumbers(number &+ 5)
            let (dx, dy) = (numbers.value(-amount...amount), numbers.value(-amount...amount))
            move(Int((dx * Float(canvas.height)).rounded()), Int((dy * Float(canvas.height)).rounded()))
        }
    }

    private mutating func move(_ dx: Int, _ dy: Int) {
        let before = canvas.light
        for row in 0..<canvas.height {
            let from = min(max(row + dy, 0), canvas.height - 1) * canvas.width
            for column in 0..<canvas.width {
                canvas.light[row * canvas.width + column] = before[from + min(max(column + dx, 0), canvas.width - 1)]
            }
        }
    }

    /// A wall with windows and a door, a street before it.
    private static func drawYard(on canvas: inout SceneCanvas) {
        canvas.changeAll { x, y, _ in
            if y < 0.18 { return 205 + 12 * SceneCanvas.texture(x * 2, y * 4, seed: 1) }
            if y < 0.62 {
                let brick = (y * 40 - (y * 40).rounded(.down)) < 0.15 || (x * 20 - (x * 20).rounded(.down)) < 0.08
                return (brick ? 105 : 130) + 10 * SceneCanvas.texture(x * 25, y * 25, seed: 2)
            }
            return (y < 0.7 ? 160 : 95) + 14 * SceneCanvas.texture(x * 30, y * 60, seed: 3)
        }
        for window in [Float(0.15), 0.45, 1.05] {
            canvas.change(window, 0.26, window + 0.14, 0.45) { x, y, _ in
                abs(x - window - 0.07) < 0.006 || abs(y - 0.35) < 0.006 ? 220 : 50
            }
        }
        canvas.change(0.76, 0.34, 0.9, 0.62) { x, _, _ in 70 + 8 * sin(x * 200) }
    }
}
