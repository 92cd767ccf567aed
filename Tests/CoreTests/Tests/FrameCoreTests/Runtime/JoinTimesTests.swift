// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import FrameCore

/// When a join gives its pictures by the times of its inputs: the same, whichever input is faster.
@Suite struct JoinTimesTests {
    private struct Item: Equatable {
        var pts: Int64
        var duration: Int64
    }

    private struct Given: Equatable {
        var time: Int64
        /// For each input the number of its newest item; nil before its first.
        var newest: [Int?]
        var ended: [Bool]
    }

    /// Plays inputs through queues of a few places each; `choose` says which input comes next, or ends.
    private static func play(
        _ inputs: [[Item]], rate: Rational, whenEnded: JoinEnd, places: Int, choose: (Int) -> Int
    ) -> [Given] {
        var times = JoinTimes(rate: rate, inputs: inputs.count, whenEnded: whenEnded)
        var queues = inputs.map { _ in [Int]() }
        var next = inputs.map { _ in 0 }
        var hasEnded = inputs.map { _ in false }
        var newest = inputs.map { _ in Int?.none }
        // What came before, a link may have dropped, and has said so.
        var nothingUpTo = inputs.map { _ in Int64.min }
        var given: [Given] = []
        func pts(_ input: Int) -> (Int) -> Int64 { { inputs[input][$0].pts } }
        while true {
            let heads = inputs.indices.map {
                QueueHead(
                    head: queues[$0].first.map(pts($0)), nothingUpTo: nothingUpTo[$0], hasEnded: hasEnded[$0])
            }
            switch times.next(heads) {
            case .end: return given
            case .take(let index):
                let item = queues[index].removeFirst()
                times.took(index, at: inputs[index][item].pts, duration: inputs[index][item].duration)
                newest[index] = item
            case .tick(let time):
                given.append(
                    Given(
                        time: time, newest: newest,
                        ended: inputs.indices.map { times.hasEnded($0, heads[$0], at: time) }))
            case .wait:
                let able = inputs.indices.filter { !hasEnded[$0] && queues[$0].count < places }
                guard !able.isEmpty else {
                    Issue.record("it waits though every queue is full or has ended")
                    return given
                }
                let index = able[choose(able.count)]
                if next[index] < inputs[index].count {
                    let before = pts(index)(next[index]) - 1
                    if nothingUpTo[index] < before, choose(2) == 0 {
                        nothingUpTo[index] = before
                        continue
                    }
                    queues[index].append(next[index])
                    next[index] += 1
                } else {
                    hasEnded[index] = true
                }
            }
        }
    }

    /// What must come of it, from all items at once.
    private static func oracle(_ inputs: [[Item]], rate: Rational, whenEnded: JoinEnd) -> [Given] {
        let tolerance = min(JoinTimes.mostTolerance, rate.period / 4)
        guard let first = inputs.compactMap(\.first?.pts).min() else { return [] }
        let ends = inputs.map { $0.last.map { $0.pts + max($0.duration, tolerance + 1) } ?? .min }
        let end =
            switch whenEnded {
            case .last: ends.max()!
            case .first: ends.min()!
            case .lead: ends[0]
            }
        var given: [Given] = []
        while true {
            let number = Int64(given.count)
            let time = first + number * 1_000_000_000 * Int64(rate.denominator) / Int64(rate.numerator)
            guard time + tolerance < end else { return given }
            given.append(
                Given(
                    time: time, newest: inputs.map { $0.lastIndex { $0.pts <= time + tolerance } },
                    ended: ends.map { time + tolerance >= $0 }))
        }
    }

    @Test func givesWhatTheTimesSayWhicheverInputIsFaster() {
        var random = SplitMix(state: 7)
        let rates = [
            Rational(25), Rational(30_000, 1001), Rational(10), Rational(60), Rational(24_000, 1001), Rational(1, 2),
        ]
        // Arithmetic on one thread.
        for round in 0..<(getenv("FRAMEHOST_SANITIZED") == nil ? 3000 : 100) {
            let inputs: [[Item]] = (0..<Int.random(in: 2...4, using: &random)).map { _ in
                let rate = rates.randomElement(using: &random)!
                let start = Int64.random(in: 0...3_000_000_000, using: &random)
                let isRough = Bool.random(using: &random)
                var items: [Item] = []
                for number in 0..<Int64.random(in: 0...40, using: &random) {
                    var pts = start + number * 1_000_000_000 * Int64(rate.denominator) / Int64(rate.numerator)
                    // As in Matroska, or with pictures left out.
                    if isRough { pts = (pts + 500_000) / 1_000_000 * 1_000_000 }
                    if Int.random(in: 0..<8, using: &random) == 0 { continue }
                    items.append(Item(pts: pts, duration: Bool.random(using: &random) ? rate.period : 0))
                }
                return items
            }
            let rate = rates.randomElement(using: &random)!
            let whenEnded = [JoinEnd.last, .first, .lead].randomElement(using: &random)!
            let expected = Self.oracle(inputs, rate: rate, whenEnded: whenEnded)
            for places in [1, 3] {
                let given = Self.play(inputs, rate: rate, whenEnded: whenEnded, places: places) {
                    Int.random(in: 0..<$0, using: &random)
                }
                #expect(given == expected, "round \(round)")
            }
        }
    }

    /// Inputs of the output's rate are given picture by picture, though their container rounds times.
    @Test(arguments: [Rational(30), Rational(30_000, 1001), Rational(60)]) func takesEachPictureOfItsRateOnce(
        rate: Rational
    ) {
        let items = (0..<2000).map { number -> Item in
            let exact = Int64(number) * 1_000_000_000 * Int64(rate.denominator) / Int64(rate.numerator)
            return Item(pts: (exact + 500_000) / 1_000_000 * 1_000_000, duration: rate.period)
        }
        let given = Self.play([items, items], rate: rate, whenEnded: .last, places: 2) { $0 - 1 }
        #expect(given.map(\.newest) == (0..<2000).map { [$0, $0] })
    }

    @Test func anotherRateHoldsFromTheNextTickOn() {
        var times = JoinTimes(rate: Rational(10), inputs: 1, whenEnded: .last)
        let far = [QueueHead(head: 10_000_000_000)]
        let first = times.next([QueueHead(head: 0)])
        #expect(first == .take(0))
        times.took(0, at: 0, duration: 0)
        #expect(times.due == 0)
        var ticks: [JoinTimes.Action] = []
        for _ in 0..<3 { ticks.append(times.next(far)) }
        times.set(rate: Rational(20))
        for _ in 0..<2 { ticks.append(times.next(far)) }
        #expect(ticks == [0, 100, 200, 300, 350].map { .tick(at: $0 * 1_000_000) })
    }

    @Test func knowsThatNothingComesFromNews() {
        var times = JoinTimes(rate: Rational(10), inputs: 2, whenEnded: .last)
        let begin = times.next([QueueHead(head: 0), QueueHead()])
        #expect(begin == .wait)
        let take = times.next([QueueHead(head: 0), QueueHead(nothingUpTo: 0)])
        #expect(take == .take(0))
        let waits = times.next([QueueHead(head: 90_000_000), QueueHead(nothingUpTo: 0)])
        #expect(waits == .wait)
        let gives = times.next([QueueHead(head: 90_000_000), QueueHead(nothingUpTo: 5_000_000)])
        #expect(gives == .tick(at: 0))
    }
}
