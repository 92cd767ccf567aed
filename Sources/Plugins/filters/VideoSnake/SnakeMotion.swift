// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// How a push moves the tail: a velocity to which the motion of each picture adds, and which fades.
///
/// velocity = (velocity + user acceleration · Δt) · 0.75, in g·s, with Δt between the pictures' samples. User
/// acceleration is acceleration without gravity.
struct SnakeMotion {
    private static let fading: Float = 0.75
    /// The cut-off of the low-pass that finds gravity where the attitude is unknown, in hertz.
    private static let gravityHertz: Float = 0.3

    /// To the right and down, in g·s.
    private(set) var velocity = SIMD2<Float>.zero
    private var last: MediaTime?
    private var gravity: SIMD3<Float>?

    /// Advances by one picture.
    ///
    /// - Parameter motion: That of the picture; nil where it has none, which counts as rest.
    mutating func advance(_ motion: Motion?) {
        defer { velocity *= Self.fading }
        guard let sample = motion?.sample, sample.contents.contains(.acceleration) else { return }
        let step = last.map { Float((sample.time - $0).nanoseconds) / 1e9 } ?? 0
        last = sample.time
        let push = userAcceleration(sample, step)
        // A picture after a pause says nothing of the time between.
        guard step > 0, step < 1 else { return }
        velocity += SIMD2(push.x, push.y) / MotionSample.standardGravity * step
    }

    private mutating func userAcceleration(_ sample: MotionSample, _ step: Float) -> SIMD3<Float> {
        if sample.contents.contains(.attitude), let up = sample.up {
            return sample.acceleration - up * MotionSample.standardGravity
        }
        guard let before = gravity, step > 0 else {
            gravity = gravity ?? sample.acceleration
            return .zero
        }
        let slowness = 1 / (2 * Float.pi * Self.gravityHertz)
        let now = before + (sample.acceleration - before) * (step / (slowness + step))
        gravity = now
        return sample.acceleration - now
    }

    /// How far the earlier pictures lag behind, in pixels of a picture of this size: 0.01 · width · velocity in clip
    /// units, of which the picture is two wide and two high.
    func shift(width: Int, height: Int, bend: Double) -> (x: Int, y: Int) {
        let units = velocity * Float(width) * 0.01 * Float(bend)
        func pixels(_ units: Float, _ size: Int) -> Int {
            // Whole pairs of pixels, which share a colour.
            Int((min(max(-units, -4), 4) * Float(size) / 4).rounded()) * 2
        }
        return (pixels(units.x, width), pixels(units.y, height))
    }
}
