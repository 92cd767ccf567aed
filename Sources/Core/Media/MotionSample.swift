// SPDX-License-Identifier: Apache-2.0

/// What the sensors of a camera say about its motion at one moment.
///
/// The axes are those of the camera's picture: x to the right, y down, z forward into the scene (those of OpenCV and of
/// CAMM). Those of the world are right-handed too, with z up. A value that ``contents`` does not name is zero.
public struct MotionSample: Sendable, Equatable, Codable {
    /// Which values were measured.
    public struct Contents: OptionSet, Sendable, Hashable, Codable {
        public var rawValue: UInt8
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        /// ``MotionSample/rotationRate``.
        public static let rotationRate = Contents(rawValue: 1)
        /// ``MotionSample/acceleration``.
        public static let acceleration = Contents(rawValue: 2)
        /// ``MotionSample/attitude``.
        public static let attitude = Contents(rawValue: 4)
    }

    /// When it was measured, on the chain's timeline.
    public var time: MediaTime
    /// Which values were measured.
    public var contents: Contents = []
    /// How fast the camera turns about its axes, in radians per second, right-handed.
    public var rotationRate = SIMD3<Float>.zero
    /// What an accelerometer measures along the camera's axes, in m/s²: 9.81 upward at rest.
    public var acceleration = SIMD3<Float>.zero
    /// The rotation from the camera's axes to those of the world.
    public var attitude = Quaternion.identity

    /// Nothing measured yet.
    public init(time: MediaTime) { self.time = time }

    /// The acceleration of gravity at which ``acceleration`` is 1 g, in m/s².
    public static let standardGravity: Float = 9.80665

    /// The direction up in the camera's axes, of length 1; nil where it is not known, and in free fall.
    ///
    /// It comes from ``attitude``, or else from ``acceleration``, which shows it only while the camera is not
    /// pushed.
    public var up: SIMD3<Float>? {
        if contents.contains(.attitude) { return attitude.inverse.turned(SIMD3(0, 0, 1)) }
        let length = (acceleration * acceleration).sum().squareRoot()
        guard contents.contains(.acceleration), length > 0.1 else { return nil }
        return acceleration / length
    }

    /// The values between this sample and a later one, in proportion to the time: rates and accelerations on a
    /// straight line, attitudes at constant angular rate. The result has only the values that both have.
    public func interpolated(to later: MotionSample, at time: MediaTime) -> MotionSample {
        let (all, _) = later.time.nanoseconds.subtractingReportingOverflow(self.time.nanoseconds)
        let (part, _) = time.nanoseconds.subtractingReportingOverflow(self.time.nanoseconds)
        let fraction = all > 0 ? Float(min(max(Double(part) / Double(all), 0), 1)) : 0
        var sample = MotionSample(time: time)
        sample.contents = contents.intersection(later.contents)
        if sample.contents.contains(.rotationRate) {
            sample.rotationRate = rotationRate + (later.rotationRate - rotationRate) * fraction
        }
        if sample.contents.contains(.acceleration) {
            sample.acceleration = acceleration + (later.acceleration - acceleration) * fraction
        }
        if sample.contents.contains(.attitude) {
            sample.attitude = attitude.interpolated(to: later.attitude, fraction)
        }
        return sample
    }
}

/// What all blocks of motion of a link have in common.
public struct MotionFormat: Sendable, Hashable, CustomStringConvertible {
    /// What samples can contain.
    public var contents: MotionSample.Contents
    /// About how many samples there are per second; 0 where that is unknown.
    public var sampleRate: Double

    /// A format of motion.
    public init(contents: MotionSample.Contents, sampleRate: Double = 0) {
        self.contents = contents
        self.sampleRate = sampleRate
    }

    /// The highest ``sampleRate``.
    public static let highestRate = 100_000.0

    public var description: String {
        let names = [
            contents.contains(.rotationRate) ? "rotation rate" : nil,
            contents.contains(.acceleration) ? "acceleration" : nil, contents.contains(.attitude) ? "attitude" : nil,
        ].compactMap { $0 }
        let rate = sampleRate > 0 ? " \(Int(sampleRate.rounded())) Hz" : ""
        return "motion\(rate)\(names.isEmpty ? "" : " (\(names.joined(separator: ", ")))")"
    }

    /// As ``VideoFormat/impossibility``.
    var impossibility: String? {
        (0...Self.highestRate).contains(sampleRate)
            ? nil : "\(sampleRate) samples of motion per second, which must be from 0 to 100000"
    }
}

/// How the camera moved when a picture was taken: what ``MotionSample`` says at the picture's time.
///
/// A stage that matches motion to pictures sets it, and every stage behind may read it.
public struct Motion: FrameMetadata, Equatable {
    /// The name in listings.
    public static let metadataName = "motion"

    /// The values at the picture's time.
    public var sample: MotionSample
    /// How far the nearest measured sample was away, in nanoseconds.
    public var age: Int64
    /// Whether no sample after the picture's time had come: the values are those of the last one before.
    public var isExtrapolated: Bool

    /// What was matched to a picture.
    public init(sample: MotionSample, age: Int64, isExtrapolated: Bool) {
        self.sample = sample
        self.age = age
        self.isExtrapolated = isExtrapolated
    }

    /// By how much the camera is turned clockwise about its line of sight, in radians, −π...π. The picture has to
    /// be turned clockwise by the same angle for the horizon to be level. Nil where that is unknown, as with a
    /// camera that looks straight up or down.
    public var roll: Double? {
        guard let up = sample.up, up.x * up.x + up.y * up.y > 0.01 else { return nil }
        return Double(Trigonometry.arcTangent(-up.x, -up.y))
    }

    /// How far the camera looks up, in radians, −π/2...π/2; nil where that is unknown.
    public var pitch: Double? {
        guard let up = sample.up else { return nil }
        return Double(Trigonometry.arcTangent(up.z, (up.x * up.x + up.y * up.y).squareRoot()))
    }
}
