// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The text of a Gyroflow file (`.gcsv`, version 1.3). Pure.
enum GyroflowText {
    /// The first lines of our files, which tell them from those of other programs.
    static let mark = "GYROFLOW IMU LOG\nversion,1.3\nid,framehost\n"

    /// The lines before the samples.
    ///
    /// Times are in microseconds, rates in rad/s, accelerations in m/s². After Gyroflow has applied `orientation`, it
    /// reads `-second, first, third` as its axes x to the right, y up, z back. For picture axes (x right, y down, z
    /// forward) the orientation is `yxz`, which it also uses for CAMM. Readers look for all of it in the first 500
    /// bytes.
    static func header(_ contents: MotionSample.Contents) -> String {
        mark + "orientation,yxz\ntscale,0.000001\ngscale,1.0\nascale,0.10197162129779283\n"
            + (contents.contains(.acceleration) ? "t,gx,gy,gz,ax,ay,az\n" : "t,gx,gy,gz\n")
    }

    /// Appends the line of a sample.
    ///
    /// - Parameters:
    ///   - acceleration: nil where none is known yet.
    ///   - begin: The time of the file's first picture.
    static func add(
        _ rate: SIMD3<Float>, _ acceleration: SIMD3<Float>?, at time: MediaTime, begin: MediaTime,
        to bytes: inout [UInt8]
    ) {
        let nanoseconds = (time - begin).nanoseconds
        bytes += "\((nanoseconds + (nanoseconds < 0 ? -500 : 500)) / 1000)".utf8
        add(rate, to: &bytes)
        if let acceleration { add(acceleration, to: &bytes) }
        bytes.append(UInt8(ascii: "\n"))
    }

    private static func add(_ values: SIMD3<Float>, to bytes: inout [UInt8]) {
        for axis in 0..<3 {
            bytes.append(UInt8(ascii: ","))
            // The shortest text that gives the same number, which never allocates: it has at most 15 bytes.
            bytes += "\(values[axis])".utf8
        }
    }
}

/// A Gyroflow file beside a recording.
final class GyroflowLog: SidecarLog {
    private let begin: MediaTime
    private let hasAcceleration: Bool
    /// A line has both values of one time. Where a sensor gives them in turn, the line has the latest acceleration.
    private var acceleration: SIMD3<Float>?

    /// - Parameters:
    ///   - file: An empty file.
    ///   - begin: The time of the recording's first picture, which is 0 in the file.
    init(_ file: HeldFile, _ contents: MotionSample.Contents, begin: MediaTime) {
        self.begin = begin
        hasAcceleration = contents.contains(.acceleration)
        super.init(.gyroflow, file, head: GyroflowText.header(contents))
    }

    /// Adds a sample; ``flush()`` writes it.
    func add(_ sample: MotionSample) {
        if hasAcceleration, sample.contents.contains(.acceleration) { acceleration = sample.acceleration }
        guard sample.contents.contains(.rotationRate) else { return }
        GyroflowText.add(sample.rotationRate, acceleration, at: sample.time, begin: begin, to: &lines)
    }
}
