// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The C library's functions of angles, in radians.
enum Trigonometry {
    static func sineAndCosine(_ angle: Float) -> (sine: Float, cosine: Float) { (sinf(angle), cosf(angle)) }
    static func arcTangent(_ y: Float, _ x: Float) -> Float { atan2f(y, x) }
}
