// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

@Suite struct HistogramTests {
    @Test func knowsNothingWithoutSamples() { #expect(Histogram().percentile(0.5) == nil) }

    @Test func isExactForTheSmallestValues() {
        let histogram = Histogram()
        for value in 1...10 { histogram.add(nanoseconds: Int64(value)) }
        #expect(histogram.percentile(0.5) == 5)
        #expect(histogram.percentile(1) == 10)
        #expect(histogram.percentile(0) == 1)
    }

    @Test func staysWithinASixteenthAboveTheRealValue() {
        var dice = SplitMix(state: 3)
        for shift in stride(from: 0, through: 42, by: 3) {
            let histogram = Histogram()
            var values: [Int64] = []
            for _ in 0..<999 {
                let value = Int64(dice.next() >> (63 - UInt64(shift)))
                values.append(value)
                histogram.add(nanoseconds: value)
            }
            values.sort()
            for (fraction, rank) in [(0.5, 499), (0.99, 989), (1.0, 998)] {
                let found = histogram.percentile(fraction)!
                let real = Double(values[rank])
                #expect(
                    found >= real && found <= real * (1 + 1.0 / 16) + 1,
                    "\(fraction) of values below 2^\(shift): \(found), \(real)")
            }
        }
    }

    @Test func takesAnyDuration() {
        let histogram = Histogram()
        for value in [Int64.min, -1, 0, .max] { histogram.add(nanoseconds: value) }
        #expect(histogram.percentile(0.75) == 0)
        #expect(histogram.percentile(1)! >= Double(Int64.max))
    }

    @Test func sumsUpAndCountsBelowBounds() {
        let histogram = Histogram()
        #expect(histogram.summary(upTo: [1, 2]) == (0, 0, [0, 0]))
        var dice = SplitMix(state: 9)
        let values = (0..<1000).map { _ in Int64(dice.next() >> 40) }
        for value in values { histogram.add(nanoseconds: value) }
        let bounds = [1e3, 1e5, 1e6, 8e6, 1e9]
        let summary = histogram.summary(upTo: bounds)
        #expect(summary.count == 1000)
        let sum = Double(values.reduce(0, +))
        #expect(summary.sum >= sum && summary.sum <= sum * (1 + 1.0 / 16) + 1000)
        for (bound, below) in zip(bounds, summary.below) {
            // A sample may count as up to a sixteenth longer than it was.
            #expect(below <= values.filter { Double($0) <= bound }.count)
            #expect(below >= values.filter { Double($0) * (1 + 1.0 / 16) + 1 <= bound }.count)
        }
    }

    @Test func isReadWhileAnotherThreadAdds() throws {
        let histogram = Histogram()
        let writer = try TestThread("writer") { for value in 0..<100_000 { histogram.add(nanoseconds: Int64(value)) } }
        while !writer.isOver { if let median = histogram.percentile(0.5) { #expect(median < 110_000) } }
        writer.join()
        #expect(abs(histogram.percentile(0.5)! - 50_000) < 3200)
    }
}
