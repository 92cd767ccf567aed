// SPDX-License-Identifier: Apache-2.0

extension Component {
    /// Samples bilinearly for each x of `range`; outside, the nearest sample counts.
    ///
    /// - Parameter row: A row of the output; the sample for x is at the index x · `targetStep`.
    func sample(_ line: SampleLine, _ range: Range<Int>, into row: UnsafeMutablePointer<UInt8>, targetStep: Int) {
        guard !range.isEmpty else { return }
        if line.dv == 0, line.du == 1, step == 1, targetStep == 1, copyRow(line, range, into: row) { return }
        let none = range.lowerBound..<range.lowerBound
        let inside =
            width < 2 || height < 2
            ? none : line.span(range, us: 0...Double(width) - 1.001, vs: 0...Double(height) - 1.001)
        let middle = inside.isEmpty ? none : inside
        for x in range.lowerBound..<middle.lowerBound { row[x * targetStep] = clamped(line, x) }
        for x in middle.upperBound..<range.upperBound { row[x * targetStep] = clamped(line, x) }
        if step == 1, targetStep == 1 {
            interpolate(line, middle, into: row, step: 1, targetStep: 1)
        } else {
            interpolate(line, middle, into: row, step: step, targetStep: targetStep)
        }
    }

    /// Copies whole pixels that lie side by side; false when they do not, or when they reach outside.
    private func copyRow(_ line: SampleLine, _ range: Range<Int>, into row: UnsafeMutablePointer<UInt8>) -> Bool {
        let (u, v) = (line.u.rounded(), line.v.rounded())
        guard abs(line.u - u) < 1.0 / 512, abs(line.v - v) < 1.0 / 512 else { return false }
        let (first, y) = (Int(u) + range.lowerBound, Int(v))
        guard first >= 0, first + range.count <= width, y >= 0, y < height else { return false }
        (row + range.lowerBound).update(from: base + y * strideBytes + first, count: range.count)
        return true
    }

    /// Interpolates where all four samples exist. Places have 32 fractional bits, weights 8.
    @inline(__always)
    private func interpolate(
        _ line: SampleLine, _ range: Range<Int>, into row: UnsafeMutablePointer<UInt8>, step: Int, targetStep: Int
    ) {
        guard !range.isEmpty else { return }
        let (du, dv) = (Self.fixed(line.du), Self.fixed(line.dv))
        var u = Self.start(line.u, line.du, range, step: du, most: (width - 1) << 32 - 1)
        var v = Self.start(line.v, line.dv, range, step: dv, most: (height - 1) << 32 - 1)
        if dv == 0 {
            // A row of the output lies between two rows of the source.
            let first = base + (v &>> 32) &* strideBytes
            let second = first + strideBytes
            let weightY: Int = (v &>> 24) & 255
            for x in range {
                let at: Int = (u &>> 32) &* step
                let left: Int = Int(first[at]) &* (256 &- weightY) &+ Int(second[at]) &* weightY
                let right: Int = Int(first[at &+ step]) &* (256 &- weightY) &+ Int(second[at &+ step]) &* weightY
                let sum: Int = (left &<< 8) &+ (right &- left) &* ((u &>> 24) & 255)
                row[x &* targetStep] = UInt8(truncatingIfNeeded: (sum &+ 32768) &>> 16)
                u = u &+ du
            }
            return
        }
        for x in range {
            let at: Int = (v &>> 32) &* strideBytes &+ (u &>> 32) &* step
            let first = base + at
            let weightX: Int = (u &>> 24) & 255
            let (p, q) = (Int(first[0]), Int(first[step]))
            let (r, s) = (Int(first[strideBytes]), Int(first[strideBytes &+ step]))
            let top: Int = (p &<< 8) &+ (q &- p) &* weightX
            let bottom: Int = (r &<< 8) &+ (s &- r) &* weightX
            let sum: Int = (top &<< 8) &+ (bottom &- top) &* ((v &>> 24) & 255)
            row[x &* targetStep] = UInt8(truncatingIfNeeded: (sum &+ 32768) &>> 16)
            u = u &+ du
            v = v &+ dv
        }
    }

    private static func fixed(_ place: Double) -> Int { Int((place * 4_294_967_296).rounded()) }

    /// The first place of `range`. It is moved by half a weight, so that weights are rounded and not cut off, and
    /// limited so that every place of the range lies from 0 to `most`.
    private static func start(_ place: Double, _ exactStep: Double, _ range: Range<Int>, step: Int, most: Int) -> Int {
        let first = fixed(place + Double(range.lowerBound) * exactStep) + 1 << 23
        let way = (range.count - 1) * step
        return min(max(first, max(0, -way)), min(most, most - way))
    }

    /// One sample at any place; outside, the nearest sample counts.
    private func clamped(_ line: SampleLine, _ x: Int) -> UInt8 {
        let u = min(max(line.u + Double(x) * line.du, 0), Double(width - 1))
        let v = min(max(line.v + Double(x) * line.dv, 0), Double(height - 1))
        let (column, row) = (Int(u), Int(v))
        let (right, below) = (min(column + 1, width - 1), min(row + 1, height - 1))
        func at(_ x: Int, _ y: Int) -> Double { Double(base[y * strideBytes + x * step]) }
        let (fractionX, fractionY) = (u - Double(column), v - Double(row))
        let top = at(column, row) * (1 - fractionX) + at(right, row) * fractionX
        let bottom = at(column, below) * (1 - fractionX) + at(right, below) * fractionX
        return UInt8(top * (1 - fractionY) + bottom * fractionY + 0.5)
    }
}
