// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// In what a rotation rate is given.
enum RotationUnit: String, OptionChoice {
    case radians = "rad/s"
    case degrees = "deg/s"

    /// rad/s in one of it.
    var factor: Double { self == .radians ? 1 : .pi / 180 }
}

/// In what an acceleration is given.
enum AccelerationUnit: String, OptionChoice {
    case metres = "m/s2"
    case gravities = "g"

    /// m/s² in one of it.
    var factor: Double { self == .metres ? 1 : Double(MotionSample.standardGravity) }
}

/// What the numbers of a sensor mean, where its format does not say.
struct MotionUnits: Sendable, Equatable {
    /// Nil where nobody has said: rad/s, or what the format means.
    var rotation: RotationUnit?
    /// Nil where nobody has said: m/s², or what the format means.
    var acceleration: AccelerationUnit?
}

/// Numbers from outside as the numbers of a sample.
enum MotionNumbers {
    /// A time of so many seconds. One that is not finite becomes ``MediaTime/max``, which ``SampleGate`` refuses.
    static func time(seconds: Double) -> MediaTime { seconds.isFinite ? MediaTime(seconds: seconds) : .max }

    static func vector(_ values: some Sequence<Double>, _ factor: Double) -> SIMD3<Float> {
        var vector = SIMD3<Float>.zero
        for (index, value) in values.prefix(3).enumerated() { vector[index] = Float(value * factor) }
        return vector
    }
}
