// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Reads Camera Motion Metadata: what an MP4 sample of a track `camm` holds. Pure.
///
/// Little-endian: u16 0, u16 kind, then the values of that kind. Axes are those of ``MotionSample``.
/// [Specification](https://developers.google.com/streetview/publish/camm-spec).
enum CAMM {
    /// Bytes of each kind of packet, by its number.
    private static let sizes = [16, 12, 16, 16, 16, 28, 60, 16]

    /// The sample of one packet; nil for a kind that is not motion: exposure, position, magnetic field, and those
    /// that later versions may add.
    static func sample(in bytes: Span<UInt8>, at time: MediaTime) throws(MotionFault) -> MotionSample? {
        guard bytes.count >= 4 else {
            throw MotionFault("must have packets of at least 4 bytes, but has one of \(bytes.count)")
        }
        let kind = Int(bytes[2]) | Int(bytes[3]) << 8
        guard sizes.indices.contains(kind) else { return nil }
        guard bytes.count >= sizes[kind] else {
            throw MotionFault("must have \(sizes[kind]) bytes in a packet of kind \(kind), but has \(bytes.count)")
        }
        var sample = MotionSample(time: time)
        switch kind {
        case 0:
            sample.contents = .attitude
            sample.attitude = attitude(vector(bytes))
        case 2:
            sample.contents = .rotationRate
            sample.rotationRate = vector(bytes)
        case 3:
            sample.contents = .acceleration
            sample.acceleration = vector(bytes)
        default: return nil
        }
        return sample
    }

    /// What packets of this kind contain; empty for one that is not motion.
    static func contents(ofKind kind: Int) -> MotionSample.Contents {
        switch kind {
        case 0: .attitude
        case 2: .rotationRate
        case 3: .acceleration
        default: []
        }
    }

    /// A rotation about a vector by its length. One that is not finite, or implausibly large, becomes a quaternion
    /// without a direction, which ``SampleGate`` refuses.
    private static func attitude(_ rotation: SIMD3<Float>) -> Quaternion {
        guard abs(rotation.x) <= 1000, abs(rotation.y) <= 1000, abs(rotation.z) <= 1000 else {
            return Quaternion(x: 0, y: 0, z: 0, w: 0)
        }
        return Quaternion(rotation: rotation)
    }

    /// The three floats after the header.
    private static func vector(_ bytes: Span<UInt8>) -> SIMD3<Float> {
        var vector = SIMD3<Float>.zero
        for axis in 0..<3 {
            let bits = (0..<4).reduce(UInt32(0)) { $0 | UInt32(bytes[4 + 4 * axis + $1]) << UInt32(8 * $1) }
            vector[axis] = Float(bitPattern: bits)
        }
        return vector
    }
}
