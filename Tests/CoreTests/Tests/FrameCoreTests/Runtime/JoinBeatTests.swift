// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

/// When a join by the clock gives its next picture, over made-up arrivals.
@Suite struct JoinBeatTests {
    private struct Given: Equatable {
        var now: Int64
        var tick: Int64
        /// Number of the item that each input shows for the first time; nil where it is an old one.
        var new: [Int?]
        var missed = 0
    }

    /// Plays arrivals of each input (in ms, by a queue of one that keeps the newest) for `length` ms.
    private static func play(
        _ arrivals: [[Double]], period: Double, length: Double, whenEnded: JoinEnd = .last,
        active: (Int64) -> Int? = { _ in nil }
    ) -> [Given] {
        func ns(_ ms: Double) -> Int64 { Int64((ms * 1e6).rounded()) }
        var beat = JoinBeat(period: ns(period), whenEnded: whenEnded)
        var next = arrivals.map { _ in 0 }
        var heads = [Int?](repeating: nil, count: arrivals.count)
        var now: Int64 = 0
        var given: [Given] = []
        while now < ns(length) {
            for input in arrivals.indices {
                while next[input] < arrivals[input].count, ns(arrivals[input][next[input]]) <= now {
                    heads[input] = next[input]
                    next[input] += 1
                }
            }
            let inputs = arrivals.indices.map {
                QueueHead(
                    head: heads[$0].map(Int64.init), nothingUpTo: .min, hasEnded: next[$0] == arrivals[$0].count)
            }
            switch beat.next(now: now, inputs: inputs, active: active(now)) {
            case .end: return given
            case .tick(let at, let missed):
                given.append(Given(now: now, tick: at, new: heads, missed: missed))
                heads = heads.map { _ in nil }
            case .wait(let until):
                var instant = until ?? .max
                for input in arrivals.indices where next[input] < arrivals[input].count {
                    instant = min(instant, max(ns(arrivals[input][next[input]]), now + 1))
                }
                #expect(instant > now, "it would turn for ever at \(now)")
                now = instant
            }
        }
        return given
    }

    private static func every(_ ms: Double, from start: Double = 0, count: Int) -> [Double] {
        (0..<count).map { start + Double($0) * ms }
    }

    private func steps(_ given: [Given]) -> [Int64] { zip(given.dropFirst(), given).map { $0.tick - $1.tick } }

    @Test func givesEachPictureOfTheActiveInputWhenItComes() {
        let given = Self.play(
            [Self.every(40, from: 7, count: 1000), Self.every(40, from: 21, count: 1000)], period: 40, length: 39_000,
            active: { _ in 0 })
        #expect(given.compactMap { $0.new[0] } == Array(0..<given.count), "each one once, none repeated")
        #expect(given.enumerated().allSatisfy { $1.now == (7 + Int64($0) * 40) * 1_000_000 }, "at once")
        #expect(steps(given).allSatisfy { $0 == 40_000_000 })
        #expect(given.count > 970)
    }

    /// Ten minutes of a camera whose clock is off by half a percent, either way.
    @Test(arguments: [39.8, 40.2]) func followsACameraThatDrifts(step: Double) {
        let count = Int(600_000 / step)
        let given = Self.play(
            [Self.every(step, from: 3, count: count)], period: 40, length: 599_000, active: { _ in 0 })
        #expect(given.compactMap { $0.new[0] } == Array(0..<given.count))
        #expect(given.count > count - 30)
        #expect(steps(given).allSatisfy { abs($0 - 40_000_000) <= 2_500_000 })
        #expect(abs(given.last!.tick - given.last!.now) < 5_000_000, "its times are those of the clock")
    }

    @Test func repeatsWhereTheActiveInputIsSlower() {
        let given = Self.play(
            [Self.every(40, count: 500), Self.every(10, count: 2000)], period: 1000.0 / 30, length: 19_900,
            active: { _ in 0 })
        #expect(abs(given.count - 597) <= 2)
        #expect(given.filter { $0.new[0] == nil }.count > 90, "five of thirty are given again")
        #expect(given.compactMap { $0.new[0] }.count > 490, "and none is lost")
        #expect(steps(given).allSatisfy { (31_000_000...35_500_000).contains($0) })
    }

    /// Rates that are no beat of 25 a second.
    @Test(arguments: [8.0, 20, 33.37]) func keepsItsRateWhereTheActiveInputIsFaster(step: Double) {
        let given = Self.play(
            [Self.every(step, from: 3, count: Int(60_000 / step))], period: 40, length: 59_000, active: { _ in 0 })
        #expect((1470...1480).contains(given.count), "\(given.count) in 59 s")
        #expect(steps(given).dropFirst(20).allSatisfy { abs($0 - 40_000_000) <= 2_500_000 })
        #expect(given.dropFirst(20).allSatisfy { $0.new[0] != nil })
        #expect(abs(given.last!.tick - given.last!.now) <= 20_000_000, "its times are those of the clock")
    }

    @Test func givesTheLastPictureAtOnceWhereEveryInputHasEnded() {
        var beat = JoinBeat(period: 1_000_000_000_000, whenEnded: .last)
        let there = QueueHead(head: 0, nothingUpTo: .min, hasEnded: false)
        let last = QueueHead(head: 1, nothingUpTo: .min, hasEnded: true)
        let over = QueueHead(head: nil, nothingUpTo: .min, hasEnded: true)
        #expect(beat.next(now: 0, inputs: [there], active: nil) == .tick(at: 0, missed: 0))
        #expect(beat.next(now: 5, inputs: [last, there], active: nil) == .wait(until: 1_000_000_000_000))
        #expect(beat.next(now: 5, inputs: [last, over], active: nil) == .tick(at: 1_000_000_000_000, missed: 0))
        #expect(beat.next(now: 5, inputs: [over, over], active: nil) == .end)
    }

    @Test func goesOnWhereTheActiveInputFreezesAndComesBack() {
        let frozen = Self.every(40, count: 50) + Self.every(40, from: 6013, count: 100)
        let given = Self.play([frozen], period: 40, length: 9_000, active: { _ in 0 })
        #expect(steps(given).allSatisfy { (37_500_000...42_500_000).contains($0) })
        #expect(zip(given.dropFirst(), given).allSatisfy { $0.now - $1.now <= 60_000_000 }, "never later than T/2")
        #expect(given.allSatisfy { $0.missed == 0 })
        #expect(given.filter { $0.new[0] == nil }.count > 90)
        #expect(given.last?.new[0] != nil)
    }

    /// A thousand times, at inputs of other phase and rate.
    @Test func hasNoGapWhereAnotherInputBecomesActive() {
        let given = Self.play(
            [Self.every(40, count: 5000), Self.every(33.37, from: 11, count: 6000)], period: 40, length: 199_000,
            active: { Int($0 / 199_000_000) % 2 })
        #expect(given.count > 4900)
        #expect(steps(given).allSatisfy { (37_500_000...42_500_000).contains($0) }, "rising by a tick each")
        #expect(zip(given.dropFirst(), given).allSatisfy { $0.now - $1.now <= 80_000_000 })
    }

    @Test func givesByTheClockAloneWithoutAnActiveInput() {
        let given = Self.play(
            [Self.every(40, from: 5, count: 300), Self.every(66, from: 9, count: 10)], period: 33, length: 11_000)
        #expect(given.enumerated().allSatisfy { $1.now == (5 + Int64($0) * 33) * 1_000_000 && $1.tick == $1.now })
    }

    @Test func leavesOutTicksThatItWasKeptFrom() {
        var beat = JoinBeat(period: 10, whenEnded: .last)
        let there = [QueueHead(head: 0, nothingUpTo: .min, hasEnded: false)]
        #expect(beat.next(now: 100, inputs: there, active: nil) == .tick(at: 100, missed: 0))
        #expect(beat.next(now: 109, inputs: there, active: nil) == .wait(until: 110))
        #expect(beat.next(now: 175, inputs: there, active: nil) == .tick(at: 170, missed: 6))
        #expect(beat.next(now: 175, inputs: there, active: nil) == .wait(until: 180))
    }

    @Test(arguments: JoinEnd.allCases) func endsAsTheFileSays(end: JoinEnd) {
        func head(_ isOver: Bool) -> QueueHead { QueueHead(head: nil, nothingUpTo: .min, hasEnded: isOver) }
        var beat = JoinBeat(period: 10, whenEnded: end)
        #expect(
            beat.next(now: 0, inputs: [head(false), head(true)], active: nil)
                == (end == .first ? .end : .wait(until: nil)))
        #expect(
            beat.next(now: 0, inputs: [head(true), head(false)], active: nil)
                == (end == .last ? .wait(until: nil) : .end))
        #expect(beat.next(now: 0, inputs: [head(true), head(true)], active: nil) == .end)
    }

    @Test func boundsWhatClocksAndRatesCanBe() {
        let there = [QueueHead(head: 0, nothingUpTo: .min, hasEnded: false)]
        for period in [Int64.min, 0, 1, .max] {
            var beat = JoinBeat(period: period, whenEnded: .last)
            for now in [Int64.min, -1, 0, .max - 1, .max] { _ = beat.next(now: now, inputs: there, active: 0) }
        }
        #expect(Rational(.max, 1).period == 0 && Rational(1, .max).period > 0 && Rational(0).period == 0)
        #expect(Rational(30_000, 1001).period == 33_366_666)
    }
}
