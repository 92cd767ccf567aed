// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Where the pixels of a row of the output lie in the input, in its pixels.
struct Place {
    let u: Double
    let v: Double
    let du: Double
    let dv: Double

    /// - Parameters:
    ///   - x: Middle of the row's first sample in the output; `y` likewise.
    ///   - step: Pixels from one sample to the next.
    init(_ inverse: Affine, x: Double, y: Double, step: Double) {
        (u, v) = inverse(x, y)
        (du, dv) = (inverse.a * step, inverse.c * step)
    }

    /// The line in samples of a component that shows all of `size`.
    func line(of component: Component, _ size: PictureSize) -> SampleLine {
        let (x, y) = (Double(component.width) / Double(size.width), Double(component.height) / Double(size.height))
        return SampleLine(u: u * x - 0.5, v: v * y - 0.5, du: du * x, dv: dv * y)
    }

    /// Input pixels from sample `x` to the nearest edge of the input; less than 0 outside.
    func distance(_ x: Int, _ input: PictureSize) -> Double {
        let (atU, atV) = (u + Double(x) * du, v + Double(x) * dv)
        return min(min(atU, Double(input.width) - atU), min(atV, Double(input.height) - atV))
    }
}

/// The samples of a row that a copy covers, wholly or in part.
struct CoveredSpan {
    /// Covered at least in part.
    let outer: Range<Int>
    /// Covered wholly: a part of `outer`.
    let inner: Range<Int>

    /// Whether no sample is covered in part.
    var isSharp: Bool { inner == outer }

    private init(outer: Range<Int>, inner: Range<Int>) { (self.outer, self.inner) = (outer, inner) }

    /// The part within `range`.
    func clamped(to range: Range<Int>) -> CoveredSpan {
        CoveredSpan(outer: outer.clamped(to: range), inner: inner.clamped(to: range))
    }

    /// - Parameter reach: Half a sample of the output, in pixels of the input.
    init(_ place: Place, _ input: PictureSize, reach: Double, within range: Range<Int>) {
        let line = SampleLine(u: place.u, v: place.v, du: place.du, dv: place.dv)
        let (width, height) = (Double(input.width), Double(input.height))
        // A sample that is covered by a thousandth does not count.
        let edge = reach * 0.998
        outer = line.span(range, us: -edge...width + edge, vs: -edge...height + edge)
        guard !outer.isEmpty, width > 2 * edge, height > 2 * edge else {
            inner = outer.lowerBound..<outer.lowerBound
            return
        }
        let whole = line.span(outer, us: edge...width - edge, vs: edge...height - edge)
        inner = whole.isEmpty ? outer.lowerBound..<outer.lowerBound : whole
    }
}
