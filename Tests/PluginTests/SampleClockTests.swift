// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Testing

@testable import FileSource

/// Times of decoded sound: counted in samples, unless the input goes on elsewhere.
@Suite struct SampleClockTests {
    /// 48 kHz, blocks of 1024 samples, as of AAC: 21.3 ms.
    private static let rate = 48_000
    private static let block = 1024

    private struct Given: Equatable {
        var sample: Int64
        var count: Int
        var isDiscontinuity: Bool
    }

    /// What is given of blocks that begin at these milliseconds.
    private static func play(_ milliseconds: [Double?], before upper: MediaTime? = nil) -> [Given] {
        var clock = SampleClock(sampleRate: rate)
        var given: [Given] = []
        func take() {
            while true {
                switch clock.next(before: upper) {
                case .undecided: return
                case .leftOut: continue
                case .place(let place, _):
                    given.append(
                        Given(
                            sample: TimeBase(1, Int32(rate)).ticks(of: place.pts), count: place.samples.count,
                            isDiscontinuity: place.isDiscontinuity))
                }
            }
        }
        for time in milliseconds {
            clock.add(block, at: time.map { MediaTime(seconds: $0 / 1000) })
            take()
        }
        clock.endInput()
        take()
        return given
    }

    private static func regular(_ count: Int, from begin: Double = 0) -> [Double] {
        (0..<count).map { begin + Double($0 * block) / Double(rate) * 1000 }
    }

    @Test func countsWhereTimesAreRounded() {
        let times = Self.regular(100).map { $0.rounded() }
        let given = Self.play(times)
        #expect(given == (0..<100).map { Given(sample: Int64($0 * 1024), count: 1024, isDiscontinuity: false) })
    }

    /// A clock that jitters by up to 20 ms, as of sound that was stamped when it came.
    @Test(arguments: 0..<8) func countsWhereTimesJitter(seed: Int) {
        var state = UInt64(seed) &* 0x9E37_79B9_7F4A_7C15 | 1
        let times = Self.regular(200).map { time -> Double in
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return max(time + Double(Int(state >> 33) % 41 - 20), 0)
        }
        let given = Self.play([0] + times.dropFirst())
        // Five in a row on one side are rare, and whatever becomes of them, no sample comes twice or out of order.
        #expect(given.reduce(0) { $0 + $1.count } > 190 * 1024)
        #expect(zip(given, given.dropFirst()).allSatisfy { $0.sample + Int64($0.count) <= $1.sample })
    }

    /// Where recordings were joined, sound goes on a little later or earlier than it ended.
    @Test(arguments: [-30.0, -13, -4, 4, 10, 27, 39]) func followsASmallStepAtOnce(step: Double) throws {
        let first = Self.regular(50)
        let begin = Double(50 * 1024) / 48 + step
        let given = Self.play(first + Self.regular(50, from: begin))
        let samples = Int64((step * 48).rounded(.down))
        let behind = given.dropFirst(50)
        #expect(given.prefix(50).allSatisfy { !$0.isDiscontinuity && $0.count == 1024 })
        #expect(behind.first?.isDiscontinuity == true)
        // Each sample of the second part lies where it says, but for what would be heard together with the first.
        let last = try #require(behind.last)
        #expect(abs(last.sample + Int64(last.count) - (Int64(100 * 1024) + samples)) <= 1, "\(behind)")
        let kept = behind.reduce(0) { $0 + $1.count }
        #expect(abs(kept - (50 * 1024 + min(0, Int(samples)))) <= 1)
    }

    @Test func leavesOneWrongTimeAlone() {
        var times = Self.regular(60)
        times[30] += 17
        times[40] -= 17
        #expect(Self.play(times).allSatisfy { !$0.isDiscontinuity && $0.count == 1024 })
    }

    @Test func beginsAtZeroAndEndsWhereItIsTold() {
        let given = Self.play(Self.regular(10, from: -30), before: MediaTime(seconds: 0.1))
        #expect((0...1).contains(given.first?.sample ?? -1))
        #expect(given.last.map { $0.sample + Int64($0.count) } == 4800)
    }

    @Test func needsNoTimes() {
        #expect(
            Self.play([0] + [Double?](repeating: nil, count: 20)).map(\.sample) == (0..<21).map { Int64($0 * 1024) })
    }
}
