// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// A sample of motion as a line that `motion-source` reads again: the time in seconds, then three numbers of the rotation
/// rate, three of the acceleration and four of the attitude, in the units of ``MotionSample``. What was not measured is
/// left empty.
enum MotionLine {
    static let heading = "t,gx,gy,gz,ax,ay,az,qx,qy,qz,qw\n"

    private static func seconds(_ time: MediaTime) -> String {
        let nanoseconds = time.nanoseconds
        let fraction = String(nanoseconds.magnitude % 1_000_000_000)
        return
            "\(nanoseconds < 0 ? "-" : "")\(nanoseconds.magnitude / 1_000_000_000).\(String(repeating: "0", count: 9 - fraction.count))\(fraction)"
    }

    static func text(_ sample: MotionSample) -> String {
        func three(_ value: SIMD3<Float>, _ isKnown: Bool) -> String {
            isKnown ? "\(value.x),\(value.y),\(value.z)" : ",,"
        }
        let attitude = sample.attitude
        return [
            seconds(sample.time),
            three(sample.rotationRate, sample.contents.contains(.rotationRate)),
            three(sample.acceleration, sample.contents.contains(.acceleration)),
            sample.contents.contains(.attitude) ? "\(attitude.x),\(attitude.y),\(attitude.z),\(attitude.w)" : ",,,",
        ].joined(separator: ",") + "\n"
    }
}
