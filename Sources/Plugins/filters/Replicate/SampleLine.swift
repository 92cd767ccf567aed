// SPDX-License-Identifier: Apache-2.0

/// Places along one row of the output, in a component: at x they are (u + x·du, v + x·dv), (0, 0) being the middle of
/// its first sample.
struct SampleLine {
    var u: Double
    var v: Double
    var du: Double
    var dv: Double

    /// The x of `range` at which u lies in `us` and v in `vs`.
    func span(_ range: Range<Int>, us: ClosedRange<Double>, vs: ClosedRange<Double>) -> Range<Int> {
        var (low, high) = (Double(range.lowerBound), Double(range.upperBound - 1))
        /// False when no x is right.
        func narrow(_ start: Double, _ step: Double, _ bounds: ClosedRange<Double>) -> Bool {
            guard abs(step) >= 1e-12 else { return bounds.contains(start) }
            let (one, other) = ((bounds.lowerBound - start) / step, (bounds.upperBound - start) / step)
            low = max(low, min(one, other))
            high = min(high, max(one, other))
            return true
        }
        guard narrow(u, du, us), narrow(v, dv, vs) else { return range.lowerBound..<range.lowerBound }
        guard low <= high else { return range.lowerBound..<range.lowerBound }
        // The tiny tolerance absorbs rounding errors.
        let (first, last) = (Int((low - 1e-9).rounded(.up)), Int((high + 1e-9).rounded(.down)))
        return first <= last ? first..<last + 1 : range.lowerBound..<range.lowerBound
    }
}
