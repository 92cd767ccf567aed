// SPDX-License-Identifier: Apache-2.0

import Foundation

/// What can be in a scene. Places and sizes are in heights of the picture, times in seconds.
public enum ScenePart: Sendable {
    /// Somebody who walks from one side to the other, `size` heights tall, the feet at `ground`; stands still in `pause`.
    case walker(from: Double, size: Float, ground: Float, speed: Float, coat: Float, pause: ClosedRange<Double>? = nil)
    /// A car that drives from left to right, `size` heights tall.
    case car(from: Double, size: Float, ground: Float, speed: Float, paint: Float)
    /// Drops that fall as streaks: how many are in each picture.
    case rain(from: Double, until: Double, drops: Int)
    /// Leaves between `left` and `right`, above `bottom`, which sway by `sway` heights, in gusts from `gusts` on.
    case tree(left: Float, right: Float, bottom: Float, sway: Float, gusts: Double)
    /// The light of the whole scene from `time` on, over `fade` seconds.
    case exposure(at: Double, factor: Float, fade: Double)
    /// A lamp at a place, which is on from `time` on and lights what is near; with `flicker`, it trembles from then on.
    case lamp(at: Double, x: Float, y: Float, reach: Float, factor: Float, flicker: Bool)
    /// A shadow with a soft edge that goes over the scene with `speed` heights a second.
    case shadow(from: Double, speed: Float, edge: Float, depth: Float)
    /// Noise of the sensor.
    case noise(sigma: Float)
    /// The camera is away: a slate.
    case slate(from: Double, until: Double)
    /// The camera trembles by so many heights.
    case shake(amount: Float)
}

extension ScenePart {
    /// When it moves through the picture; nil of what is no motion.
    func motion(aspect: Float) -> [ClosedRange<Double>] {
        switch self {
        case .walker(let from, let size, _, let speed, _, let pause):
            let way = Double((aspect + size * 0.4) / abs(speed))
            guard let pause else { return [from...(from + way)] }
            return [from...pause.lowerBound, pause.upperBound...(from + way + pause.upperBound - pause.lowerBound)]
        case .car(let from, let size, _, let speed, _):
            return [from...(from + Double((aspect + size * 2.6) / speed))]
        default: return []
        }
    }

    func draw(on canvas: inout SceneCanvas, time: Double, number: UInt64) {
        switch self {
        case .walker: drawWalker(on: &canvas, time)
        case .car: drawCar(on: &canvas, time)
        case .rain(let from, let until, let drops) where time >= from && time < until:
            Self.drawRain(on: &canvas, drops, number)
        case .tree: drawTree(on: &canvas, Float(time))
        case .exposure(let at, let factor, let fade) where time >= at:
            let share = fade > 0 ? Float(min((time - at) / fade, 1)) : 1
            let gain = 1 + (factor - 1) * share
            canvas.changeAll { _, _, light in light * gain }
        case .lamp(let at, let x, let y, let reach, let factor, let flicker) where time >= at:
            var numbers = SeededNumbers(number / 2 &+ 99)
            let power = flicker ? factor * numbers.value(0.2...1) : factor
            canvas.changeAll { px, py, light in
                let distance = ((px - x) * (px - x) + (py - y) * (py - y)) / (reach * reach)
                return light * (1 + power / (1 + distance * distance))
            }
        case .shadow(let from, let speed, let edge, let depth) where time >= from:
            let front = Float(time - from) * speed - edge
            canvas.changeAll { x, y, light in
                let share = min(max((front - x - 0.2 * y) / edge + 1, 0), 1)
                return light * (1 - depth * share)
            }
        case .noise(let sigma): canvas.addNoise(sigma, seed: number &* 7919 &+ 17)
        case .slate(let from, let until) where time >= from && time < until:
            canvas.changeAll { x, y, _ in
                abs(y - 0.5) < 0.05 && abs(x - 0.66) < 0.4 && Int(x * 40) % 3 != 0 ? 230 : 40
            }
        default: break
        }
    }

    private func drawWalker(on canvas: inout SceneCanvas, _ now: Double) {
        guard case .walker(let from, let size, let ground, let speed, let coat, let pause) = self else { return }
        var time = now
        if let pause, now >= pause.lowerBound {
            time = max(pause.lowerBound, now - (pause.upperBound - pause.lowerBound))
        }
        let width = size * 0.3
        let way = Float(time - from) * abs(speed)
        guard time >= from, way < canvas.aspect + 2 * width else { return }
        let middle = speed > 0 ? way - width / 2 : canvas.aspect - way + width / 2
        let step = sin(Float(time) * 2 * .pi * abs(speed) / size) * size * 0.12
        let top = ground - size
        let bob = abs(sin(Float(time) * 2 * .pi * abs(speed) / size)) * size * 0.015
        // Head, body with a pattern of its own, two legs.
        canvas.change(middle - size * 0.07, top - bob, middle + size * 0.07, top + size * 0.16) { x, y, light in
            let (dx, dy) = ((x - middle) / (size * 0.065), (y - top + bob - size * 0.08) / (size * 0.08))
            return dx * dx + dy * dy < 1 ? 150 + dx * 20 : light
        }
        canvas.change(middle - width / 2, top + size * 0.15, middle + width / 2, top + size * 0.58) { x, y, light in
            let dx = abs(x - middle) / (width / 2)
            let swing = step * 0.5 * (y - top) / size
            guard dx < 0.75 + swing / width else { return light }
            return coat + 12 * SceneCanvas.texture((x - middle) * 14 / size, (y - top) * 14 / size, seed: 5)
        }
        for leg in [step, -step] {
            canvas.change(middle - width, top + size * 0.57, middle + width, ground) { x, y, light in
                let along = (y - top - size * 0.57) / (size * 0.43)
                return abs(x - middle - leg * along) < size * 0.055 ? coat * 0.5 + 15 : light
            }
        }
    }

    private func drawCar(on canvas: inout SceneCanvas, _ time: Double) {
        guard case .car(let from, let size, let ground, let speed, let paint) = self else { return }
        let length = size * 2.6
        let left = Float(time - from) * speed - length
        guard time >= from, left < canvas.aspect else { return }
        let top = ground - size
        canvas.change(left, top + size * 0.4, left + length, ground - size * 0.12) { _, y, _ in
            paint - 40 * (y - top) / size
        }
        canvas.change(left + length * 0.2, top, left + length * 0.8, top + size * 0.42) { x, y, _ in
            let share = (x - left) / length
            return abs(share - 0.5) < 0.02 || y < top + size * 0.08 ? paint : 60
        }
        for wheel in [left + length * 0.2, left + length * 0.8] {
            canvas.change(wheel - size * 0.2, ground - size * 0.4, wheel + size * 0.2, ground) { x, y, light in
                let (dx, dy) = (x - wheel, y - ground + size * 0.2)
                return dx * dx + dy * dy < size * size * 0.04 ? 25 : light
            }
        }
    }

    private static func drawRain(on canvas: inout SceneCanvas, _ drops: Int, _ number: UInt64) {
        var numbers = SeededNumbers(number &* 31 &+ 7)
        for _ in 0..<drops {
            let (x, y) = (numbers.unit() * canvas.aspect, numbers.value(-0.1...1))
            let (length, near) = (numbers.value(0.03...0.12), numbers.unit())
            let wide = 0.0015 + 0.003 * near * near
            canvas.change(x - wide, y, x + wide, y + length) { _, _, light in
                light + (210 - light) * (0.12 + 0.3 * near)
            }
        }
    }

    private func drawTree(on canvas: inout SceneCanvas, _ time: Float) {
        guard case .tree(let left, let right, let bottom, let sway, let gusts) = self else { return }
        let gust: Float = Double(time) < gusts ? 0.08 : 0.35 + 0.65 * abs(sin(time * 0.23) * sin(time * 0.61 + 1))
        let (middle, radius) = ((left + right) / 2, (right - left) / 2)
        canvas.change(left - 0.1, 0, right + 0.1, bottom + 0.1) { x, y, light in
            // Each branch has its own rhythm; high ones sway further.
            let branch = SceneCanvas.texture(x * 5, y * 5, seed: 71, octaves: 1) * 3
            let far = sway * gust * (0.3 + 1.4 * (1 - y / bottom))
            let dx = far * (sin(time * 2.9 + branch) + 0.5 * sin(time * 5.3 + 2 * branch))
            let dy = far * 0.4 * sin(time * 3.7 + branch * 1.5)
            let (sx, sy) = (x + dx, y + dy)
            let (ex, ey) = ((sx - middle) / radius, (sy - bottom / 2) / (bottom / 2))
            let crown = SceneCanvas.texture(sx * 9, sy * 9, seed: 72, octaves: 2)
            guard ex * ex + ey * ey + 0.35 * crown < 0.9, crown > -0.35 else { return light }
            return 75 + 60 * SceneCanvas.texture(sx * 28, sy * 28, seed: 73, octaves: 2)
        }
    }
}
