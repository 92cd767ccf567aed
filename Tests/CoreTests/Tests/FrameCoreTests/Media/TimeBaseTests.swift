// SPDX-License-Identifier: Apache-2.0

import Foundation
import Testing

@testable import FrameCore

@Suite struct TimeBaseTests {
    private static let bases = [
        TimeBase(1, 90_000), TimeBase(1, 1000), TimeBase(1001, 30_000), TimeBase(1, 12_288), TimeBase(1, 48_000),
        TimeBase(1, 44_100),
        TimeBase(1, 600), TimeBase(1, 1), TimeBase(1, 1_000_000), .nanoseconds, TimeBase(Int32.max, 1),
        TimeBase(1, 999_999_937),
    ]

    @Test(arguments: bases)
    func restoresTicksExactly(base: TimeBase) throws {
        var dice = SplitMix(state: 11)
        // All ticks whose time lies on the timeline.
        let most = MediaTime.range.upperBound / 1_000_000_000 / Int64(base.numerator) * Int64(base.denominator) - 1
        try #require(most > 0 || base.numerator == Int32.max)
        for _ in 0..<2000 {
            let magnitude = Int64(dice.next() >> 1) >> Int64(dice.next(in: 0...62))
            for ticks in [magnitude % max(most, 1), -(magnitude % max(most, 1))] {
                let back = base.ticks(of: base.time(ofTicks: ticks))
                if back != ticks {
                    Issue.record("\(ticks) ticks of \(base) came back as \(back)")
                    return
                }
            }
        }
    }

    @Test(arguments: bases)
    func roundsToTheNearestNanosecond(base: TimeBase) {
        var dice = SplitMix(state: 12)
        for _ in 0..<2000 {
            let ticks = Int64(bitPattern: dice.next()) >> Int64(dice.next(in: 0...63))
            let exact = Int128(ticks) * Int128(base.numerator) * 1_000_000_000
            let divisor = Int128(base.denominator)
            let half = exact < 0 ? -(divisor / 2) : divisor / 2
            let rounded = (exact + half) / divisor
            let clamped = Int64(min(max(rounded, -(1 << 61)), 1 << 61))
            let time = base.time(ofTicks: ticks).nanoseconds
            if time != clamped {
                Issue.record("\(ticks) ticks of \(base) are \(time) ns, not \(clamped)")
                return
            }
            let isPossible = rounded.magnitude <= 1 << 61 && ticks.magnitude <= 1 << 61
            if base.possibleTime(ofTicks: ticks)?.nanoseconds != (isPossible ? clamped : nil) {
                Issue.record("\(ticks) ticks of \(base) can be meant: \(isPossible)")
                return
            }
        }
    }

    @Test func roundsHalvesAwayFromZero() {
        #expect(TimeBase(1, 2_000_000_000).time(ofTicks: 1).nanoseconds == 1)
        #expect(TimeBase(1, 2_000_000_000).time(ofTicks: -1).nanoseconds == -1)
        #expect(TimeBase(1, 500).ticks(of: MediaTime(nanoseconds: 1_000_000)) == 1)
        #expect(TimeBase(1, 500).ticks(of: MediaTime(nanoseconds: -1_000_000)) == -1)
        #expect(TimeBase(1, 500).ticks(of: MediaTime(nanoseconds: 999_999)) == 0)
    }

    @Test func clampsWhatDoesNotFit() {
        let most: Int64 = 1 << 61
        #expect(TimeBase(1, 1).time(ofTicks: .max).nanoseconds == most)
        #expect(TimeBase(1, 1).time(ofTicks: .min).nanoseconds == -most)
        #expect(TimeBase(Int32.max, 1).time(ofTicks: .min).nanoseconds == -most)
        #expect(TimeBase(1, Int32.max).ticks(of: .max) == most)
        #expect(TimeBase.nanoseconds.time(ofTicks: .max).nanoseconds == most)
    }

    @Test func knowsTheTimesThatFilesUse() {
        #expect(TimeBase(1, 90_000).time(ofTicks: 3003).nanoseconds == 33_366_667)
        #expect(TimeBase(1001, 30_000).time(ofTicks: 30_000).nanoseconds == 1_001_000_000_000)
        #expect(TimeBase(1, 12_288).time(ofTicks: 512).nanoseconds == 41_666_667)
        #expect(TimeBase(1, 90_000).description == "1/90000")
    }
}

@Suite struct MediaTimeTests {
    @Test func isMadeFromSecondsAndShownInSeconds() {
        #expect(MediaTime(seconds: 61.366).nanoseconds == 61_366_000_000)
        #expect(MediaTime(seconds: -0.25).nanoseconds == -250_000_000)
        #expect(MediaTime(nanoseconds: 1_500_000_000).seconds == 1.5)
        #expect(
            MediaTime(nanoseconds: 3) + MediaTime(nanoseconds: 4) - MediaTime(nanoseconds: 2)
                == MediaTime(nanoseconds: 5))
        #expect(MediaTime(nanoseconds: 3) < MediaTime(nanoseconds: 4))
    }

    /// Whatever it is made from: no sum of three overflows.
    @Test func liesWithinSeventyThreeYears() throws {
        let most: Int64 = 1 << 61
        for given in [Int64.max, .min, most, -most, most + 1, -most - 1, 0] {
            let time = MediaTime(nanoseconds: given)
            #expect(time.nanoseconds == min(max(given, -most), most))
            for other in [MediaTime.min, .zero, .max] {
                #expect(
                    MediaTime.range.contains((time + other).nanoseconds)
                        && MediaTime.range.contains((time - other).nanoseconds))
            }
        }
        #expect(
            [1e300, -1e300, .infinity, -.infinity, .nan].map { MediaTime(seconds: $0).nanoseconds } == [
                most, -most, most, -most, 0,
            ])
        #expect(MediaTime.max + .max == .max && MediaTime.min - .max == .min && MediaTime.max - .max == .zero)
    }

    @Test func writesSecondsWithThreePlaces() {
        #expect(
            [0, 61.366, -0.0004, -0.25, 9.9996, 3600].map(text(seconds:)) == [
                "0.000", "61.366", "0.000", "-0.250", "10.000", "3600.000",
            ])
    }

    @Test func writesFractionsShort() {
        #expect(Rational(30).description == "30")
        #expect(Rational(30_000, 1001).description == "30000/1001")
        #expect(Rational(0).isZero && Rational(1, 4).value == 0.25)
    }

    @Test func readsNoFractionThatCannotBe() throws {
        let read = { (text: String) in try JSONDecoder().decode(TimeBase.self, from: Data(text.utf8)) }
        #expect(try read(#"{"numerator":1001,"denominator":30000}"#) == TimeBase(1001, 30_000))
        for text in [#"{"numerator":1,"denominator":0}"#, #"{"numerator":0,"denominator":1}"#] {
            #expect(throws: DecodingError.self) { try read(text) }
        }
        let fraction = { (text: String) in try JSONDecoder().decode(Rational.self, from: Data(text.utf8)) }
        #expect(try fraction(#"{"numerator":0,"denominator":1}"#) == Rational(0))
        #expect(throws: DecodingError.self) { try fraction(#"{"numerator":1,"denominator":-1}"#) }
    }
}
