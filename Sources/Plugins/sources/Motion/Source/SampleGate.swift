// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The last check of every sample: turns it to the axes of the picture, and leaves out one that is impossible, or whose
/// time does not rise. Pure.
struct SampleGate {
    /// Where the sensor's axes lie in the picture.
    var axes: AxisMap {
        didSet { toSensor = axes.toSensor }
    }
    private var toSensor: Quaternion
    private(set) var last: MediaTime?
    /// Samples that were left out because a number was not finite or beyond what a sensor measures.
    private(set) var invalid = 0
    /// Samples that were left out because their time was not later than that of the one before.
    private(set) var late = 0
    /// Samples that passed.
    private(set) var given = 0

    /// The fastest rotation, in rad/s.
    static let fastest: Float = 2000
    /// The greatest acceleration, in m/s².
    static let greatest: Float = 10_000

    init(axes: AxisMap) {
        self.axes = axes
        toSensor = axes.toSensor
    }

    /// The sample in the axes of the picture; nil for one that is left out.
    mutating func pass(_ sample: MotionSample) -> MotionSample? {
        guard !sample.contents.isEmpty, sample.time > .min, sample.time < .max, var checked = Self.checked(sample)
        else {
            invalid += 1
            return nil
        }
        if let last, sample.time <= last {
            late += 1
            return nil
        }
        last = sample.time
        given += 1
        checked.rotationRate = axes.picture(checked.rotationRate)
        checked.acceleration = axes.picture(checked.acceleration)
        if checked.contents.contains(.attitude) {
            checked.attitude = (checked.attitude * toSensor).normalized ?? .identity
        }
        return checked
    }

    private static func checked(_ sample: MotionSample) -> MotionSample? {
        var checked = MotionSample(time: sample.time)
        checked.contents = sample.contents
        if sample.contents.contains(.rotationRate) {
            guard isWithin(sample.rotationRate, fastest) else { return nil }
            checked.rotationRate = sample.rotationRate
        }
        if sample.contents.contains(.acceleration) {
            guard isWithin(sample.acceleration, greatest) else { return nil }
            checked.acceleration = sample.acceleration
        }
        if sample.contents.contains(.attitude) {
            guard let attitude = sample.attitude.normalized else { return nil }
            checked.attitude = attitude
        }
        return checked
    }

    /// False also for a part that is not a number.
    private static func isWithin(_ vector: SIMD3<Float>, _ most: Float) -> Bool {
        abs(vector.x) <= most && abs(vector.y) <= most && abs(vector.z) <= most
    }

    /// Starts counting anew, after the counts were reported.
    mutating func forgetCounts() { (invalid, late) = (0, 0) }
}
