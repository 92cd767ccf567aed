// SPDX-License-Identifier: Apache-2.0

/// A rotation in space as a unit quaternion.
public struct Quaternion: Sendable, Hashable, Codable {
    /// The imaginary parts, i, j and k.
    public var x: Float
    /// See ``x``.
    public var y: Float
    /// See ``x``.
    public var z: Float
    /// The real part.
    public var w: Float

    /// No rotation.
    public static let identity = Quaternion(x: 0, y: 0, z: 0, w: 1)

    /// A rotation of these parts, which the caller knows to have the length 1; see ``normalized``.
    public init(x: Float, y: Float, z: Float, w: Float) { (self.x, self.y, self.z, self.w) = (x, y, z, w) }

    /// A rotation about the direction of `rotation` by its length, in radians.
    public init(rotation: SIMD3<Float>) {
        let angle = (rotation * rotation).sum().squareRoot()
        guard angle > 1e-9 else {
            self = Quaternion(x: rotation.x / 2, y: rotation.y / 2, z: rotation.z / 2, w: 1).normalized ?? .identity
            return
        }
        let (sine, cosine) = Trigonometry.sineAndCosine(angle / 2)
        let axis = rotation * (sine / angle)
        self.init(x: axis.x, y: axis.y, z: axis.z, w: cosine)
    }

    /// The axis times the angle in radians, which is at most half a turn.
    public var rotation: SIMD3<Float> {
        let positive = w < 0 ? opposite : self
        let axis = SIMD3(positive.x, positive.y, positive.z)
        let sine = (axis * axis).sum().squareRoot()
        guard sine > 1e-9 else { return axis * 2 }
        return axis * (2 * Trigonometry.arcTangent(sine, positive.w) / sine)
    }

    /// The same with length 1; nil where it has no direction, or a part is not a number.
    public var normalized: Quaternion? {
        let square = x * x + y * y + z * z + w * w
        guard square.isFinite, square > 1e-12 else { return nil }
        let scale = 1 / square.squareRoot()
        return Quaternion(x: x * scale, y: y * scale, z: z * scale, w: w * scale)
    }

    /// The opposite rotation.
    public var inverse: Quaternion { Quaternion(x: -x, y: -y, z: -z, w: w) }

    /// The rotation `first`, followed by the rotation `later`.
    public static func * (later: Quaternion, first: Quaternion) -> Quaternion {
        let (a, b) = (later, first)
        return Quaternion(
            x: a.w * b.x + a.x * b.w + a.y * b.z - a.z * b.y, y: a.w * b.y - a.x * b.z + a.y * b.w + a.z * b.x,
            z: a.w * b.z + a.x * b.y - a.y * b.x + a.z * b.w, w: a.w * b.w - a.x * b.x - a.y * b.y - a.z * b.z)
    }

    /// The other quaternion of the same rotation.
    private var opposite: Quaternion { Quaternion(x: -x, y: -y, z: -z, w: -w) }

    /// Turns a vector.
    public func turned(_ vector: SIMD3<Float>) -> SIMD3<Float> {
        let axis = SIMD3(x, y, z)
        let twice = 2 * Self.cross(axis, vector)
        return vector + w * twice + Self.cross(axis, twice)
    }

    private static func cross(_ a: SIMD3<Float>, _ b: SIMD3<Float>) -> SIMD3<Float> {
        SIMD3(a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x)
    }

    /// The rotation between this one and `other` on the shorter way, at constant angular rate: this one at `fraction` 0,
    /// `other` at 1.
    public func interpolated(to other: Quaternion, _ fraction: Float) -> Quaternion {
        var end = other
        var cosine = x * end.x + y * end.y + z * end.z + w * end.w
        if cosine < 0 { (end, cosine) = (end.opposite, -cosine) }
        var (near, far) = (1 - fraction, fraction)
        // Below 2 degrees a straight line is the same to six digits, and the sine too small to divide by.
        if cosine < 0.9995 {
            let angle = Trigonometry.arcTangent((1 - cosine * cosine).squareRoot(), cosine)
            let sine = Trigonometry.sineAndCosine(angle).sine
            near = Trigonometry.sineAndCosine(near * angle).sine / sine
            far = Trigonometry.sineAndCosine(far * angle).sine / sine
        }
        let mixed = Quaternion(
            x: near * x + far * end.x, y: near * y + far * end.y, z: near * z + far * end.z, w: near * w + far * end.w)
        return mixed.normalized ?? self
    }

    /// The angle of the rotation from this one to `other`, in radians.
    public func angle(to other: Quaternion) -> Float {
        let turn = (other * inverse).rotation
        return (turn * turn).sum().squareRoot()
    }
}
