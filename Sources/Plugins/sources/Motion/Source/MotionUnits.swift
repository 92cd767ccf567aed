// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The unit of a rotation rate.
enum RotationUnit: String, OptionChoice {
    case radians = "rad/s"
    case degrees = "deg/s"

    /// How many rad/s one unit is.
    var factor: Double { self == .radians ? 1 : .pi / 180 }
}

/// The unit of an acceleration.
enum AccelerationUnit: String, OptionChoice {
    case metres = "m/s2"
    case gravities = "g"

    /// How many m/s² one unit is.
    var factor: Double { self == .metres ? 1 : Double(MotionSample.standardGravity) }
}

/// What the numbers of a sensor mean, where its format does not say.
struct MotionUnits: Sendable, Equatable {
    /// Nil where it was not set: rad/s, or what the format means.
    var rotation: RotationUnit?
    /// Nil where it was not set: m/s², or what the format means.
    var acceleration: AccelerationUnit?
}

/// Converts numbers from outside into those of a sample.
enum MotionNumbers {
    /// A time in seconds. One that is not finite becomes ``MediaTime/max``, which ``SampleGate`` refuses.
    static func time(seconds: Double) -> MediaTime { seconds.isFinite ? MediaTime(seconds: seconds) : .max }

    static func vector(_ values: some Sequence<Double>, _ factor: Double) -> SIMD3<Float> {
        var vector = SIMD3<Float>.zero
        for (index, value) in values.prefix(3).enumerated() { vector[index] = Float(value * factor) }
        return vector
    }
}
