// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Maps places to places in a plane: (x, y) → (a·x + b·y + x0, c·x + d·y + y0). Pixels are squares: the middle of the
/// first is at (0.5, 0.5).
struct Affine: Equatable {
    var a = 1.0
    var b = 0.0
    var x0 = 0.0
    var c = 0.0
    var d = 1.0
    var y0 = 0.0

    static func moved(_ x: Double, _ y: Double) -> Affine { Affine(x0: x, y0: y) }
    static func scaled(_ x: Double, _ y: Double) -> Affine { Affine(a: x, d: y) }

    /// Clockwise, as y points down. Quarter turns are exact.
    static func turned(degrees: Double) -> Affine {
        let rest = degrees.truncatingRemainder(dividingBy: 360)
        let (sine, cosine) =
            switch rest < 0 ? rest + 360 : rest {
            case 0: (0.0, 1.0)
            case 90: (1.0, 0.0)
            case 180: (0.0, -1.0)
            case 270: (-1.0, 0.0)
            default: (sin(rest * .pi / 180), cos(rest * .pi / 180))
            }
        return Affine(a: cosine, b: -sine, c: sine, d: cosine)
    }

    /// Applies `second` first, then `first`.
    static func * (first: Affine, second: Affine) -> Affine {
        Affine(
            a: first.a * second.a + first.b * second.c, b: first.a * second.b + first.b * second.d,
            x0: first.a * second.x0 + first.b * second.y0 + first.x0, c: first.c * second.a + first.d * second.c,
            d: first.c * second.b + first.d * second.d, y0: first.c * second.x0 + first.d * second.y0 + first.y0)
    }

    var determinant: Double { a * d - b * c }

    /// - Precondition: the determinant is not 0.
    var inverse: Affine {
        let factor = 1 / determinant
        return Affine(
            a: d * factor, b: -b * factor, x0: (b * y0 - d * x0) * factor, c: -c * factor, d: a * factor,
            y0: (c * x0 - a * y0) * factor)
    }

    func callAsFunction(_ x: Double, _ y: Double) -> (x: Double, y: Double) { (a * x + b * y + x0, c * x + d * y + y0) }
}
