// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import RTSPSink

private struct Unit: QueuedUnit, Equatable {
    var number: Int
    var isKeyframe = false
    var byteCount = 10
}

private let second: Int64 = 1_000_000_000

@Suite struct ReaderQueueTests {
    private static let limits = ReaderQueue<Unit>.Limits(
        mostAge: 2 * second, mostBytes: 1000, mostStillness: 10 * second)

    private static func queue(_ units: [(Unit, Int64)], awaitsKeyframe: Bool = false) -> ReaderQueue<Unit> {
        var queue = ReaderQueue<Unit>(limits: limits, awaitsKeyframe: awaitsKeyframe)
        for (unit, time) in units { _ = queue.add(unit, now: time) }
        return queue
    }

    private static func all(_ queue: inout ReaderQueue<Unit>) -> [Int] {
        var numbers: [Int] = []
        while let unit = queue.take(now: 0) { numbers.append(unit.number) }
        return numbers
    }

    @Test func keepsOrderAndBeginsWithAKeyframe() {
        var queue = ReaderQueue<Unit>(limits: Self.limits)
        #expect(queue.add(Unit(number: 0), now: 0) == .dropped)
        #expect(queue.add(Unit(number: 1, isKeyframe: true), now: 0) == .queued)
        #expect(queue.add(Unit(number: 2), now: 0) == .queued)
        #expect(Self.all(&queue) == [1, 2])
        // What came before its first keyframe was not left out for being slow.
        #expect(queue.droppedCount == 0)
    }

    @Test func dropsUpToTheNewestKeyframeWhenTheOldestWaitsTooLong() {
        var queue = Self.queue([
            (Unit(number: 0), 0), (Unit(number: 1, isKeyframe: true), second), (Unit(number: 2), second),
            (Unit(number: 3, isKeyframe: true), 2 * second),
            (Unit(number: 4), 2 * second), (Unit(number: 5), 2 * second + 1),
        ])
        #expect(queue.droppedCount == 3)
        #expect(Self.all(&queue) == [3, 4, 5])
    }

    @Test func dropsAllAndWaitsForAKeyframeWhereNoneIsThere() {
        var queue = Self.queue([
            (Unit(number: 0), 0), (Unit(number: 1), second), (Unit(number: 2), 2 * second + 1),
            (Unit(number: 3), 2 * second + 2),
        ])
        #expect(queue.awaitsKeyframe)
        #expect(queue.isEmpty)
        #expect(queue.droppedCount == 4)
        #expect(queue.add(Unit(number: 4, isKeyframe: true), now: 3 * second) == .queued)
        #expect(Self.all(&queue) == [4])
    }

    /// A keyframe at the front is as late as the rest.
    @Test func dropsALateKeyframeWithItsGroup() {
        let queue = Self.queue([(Unit(number: 0, isKeyframe: true), 0), (Unit(number: 1), 3 * second)])
        #expect(queue.isEmpty && queue.awaitsKeyframe)
    }

    @Test func isBoundedInBytes() {
        var queue = Self.queue([
            (Unit(number: 0, byteCount: 900), 0), (Unit(number: 1, isKeyframe: true, byteCount: 90), 0),
            (Unit(number: 2, byteCount: 20), 0),
        ])
        #expect(queue.byteCount == 110)
        #expect(Self.all(&queue) == [1, 2])
        #expect(queue.byteCount == 0)
    }

    @Test func findsAReaderStuckThoughItsUnitsWereDropped() {
        var queue = Self.queue([(Unit(number: 0), 0)])
        for number in 1...9 {
            _ = queue.add(Unit(number: number, isKeyframe: number % 3 == 0), now: Int64(number) * second)
        }
        #expect(!queue.isStuck(now: 10 * second))
        #expect(queue.isStuck(now: 10 * second + 1))
        // It takes again: no longer stuck, even when nothing is there to take.
        _ = Self.all(&queue)
        #expect(!queue.isStuck(now: 100 * second))
        #expect(queue.age(now: 100 * second) == 0)
    }

    @Test func startsAgainAfterALoss() {
        var queue = Self.queue([(Unit(number: 0), 0), (Unit(number: 1), 0)])
        queue.missed()
        #expect(queue.add(Unit(number: 2), now: 0) == .dropped)
        #expect(queue.add(Unit(number: 3, isKeyframe: true), now: 0) == .queued)
        #expect(Self.all(&queue) == [3])
        #expect(queue.droppedCount == 3)
    }

    @Test func keepsItsBoundsOverAMillionUnits() {
        var queue = ReaderQueue<Unit>(limits: Self.limits)
        for number in 0..<1_000_000 {
            _ = queue.add(Unit(number: number, isKeyframe: number % 60 == 0), now: Int64(number) * 33_000_000)
            if number % 3 == 0 { _ = queue.take(now: Int64(number) * 33_000_000) }
            if queue.byteCount > 1000 || queue.count > 100 { Issue.record("\(queue.count) units at \(number)"); return }
        }
    }
}

@Suite struct KeptUnitsTests {
    private func kept(_ units: [(Unit, Int64)], limits: KeptUnits<Unit>.Limits = KeptUnits<Unit>.Limits()) -> KeptUnits<
        Unit
    > {
        var kept = KeptUnits<Unit>(limits: limits)
        for (unit, time) in units { kept.add(unit, now: time) }
        return kept
    }

    @Test func givesTheGroupFromItsKeyframeOn() {
        let kept = kept([(Unit(number: 0), 0), (Unit(number: 1, isKeyframe: true), 10), (Unit(number: 2), 20)])
        #expect(kept.current(now: 30).map(\.number) == [1, 2])
        #expect(kept.current(now: 250_000_011).isEmpty)
    }

    @Test func givesLongerWhatACrowdAskedFor() {
        var kept = KeptUnits<Unit>()
        kept.add(Unit(number: 1, isKeyframe: true), now: 0, isCrowded: true)
        kept.add(Unit(number: 2), now: 490_000_000)
        #expect(kept.current(now: 500_000_000).map(\.number) == [1, 2])
        #expect(kept.current(now: 500_000_001).isEmpty)
        kept.add(Unit(number: 3, isKeyframe: true), now: 600_000_000)
        #expect(kept.current(now: 850_000_001).isEmpty)
    }

    @Test func keepsNothingPastItsWindowAndBounds() {
        #expect(kept([(Unit(number: 0, isKeyframe: true), 0), (Unit(number: 1), 250_000_001)]).current(now: 0).isEmpty)
        let few = KeptUnits<Unit>.Limits(mostUnits: 2)
        #expect(kept((0..<3).map { (Unit(number: $0, isKeyframe: $0 == 0), 0) }, limits: few).current(now: 0).isEmpty)
        let small = KeptUnits<Unit>.Limits(mostBytes: 25)
        #expect(kept((0..<3).map { (Unit(number: $0, isKeyframe: $0 == 0), 0) }, limits: small).current(now: 0).isEmpty)
        #expect(
            kept([(Unit(number: 0, isKeyframe: true), 0), (Unit(number: 1, isKeyframe: true), 5)]).current(now: 5).map(
                \.number) == [1])
    }
}

@Suite struct KeyframeRequestsTests {
    /// Joins every 20 ms for `duration`, each without kept units, and an encoder that answers after 40 ms: when it was
    /// asked.
    private static func requests(for duration: Int64) -> [Int64] {
        var requests = KeyframeRequests()
        var kept = KeptUnits<Unit>()
        var asked: [Int64] = []
        var pending: Int64?
        for time in stride(from: Int64(0), to: duration, by: 20_000_000) {
            if let due = pending, time >= due {
                let isCrowded = requests.sawKeyframe(now: due)
                kept.add(Unit(number: 0, isKeyframe: true), now: due, isCrowded: isCrowded)
                pending = nil
            }
            if kept.current(now: time).isEmpty, requests.noteNeed(now: time) {
                asked.append(time)
                pending = time + 40_000_000
            }
        }
        return asked
    }

    @Test func fiftyJoinsInASecondAskForThreeKeyframes() {
        #expect(Self.requests(for: second).count == 3)
    }

    /// The first two keep the picture young; a crowd that goes on shares one keyframe for half a second.
    @Test func aCrowdAsksLessThanTwiceASecond() {
        let asked = Self.requests(for: 10 * second)
        #expect(asked.count <= 20)
        #expect(asked[1] - asked[0] < 350_000_000)
        #expect(zip(asked.dropFirst(), asked.dropFirst(2)).allSatisfy { $1 - $0 >= 500_000_000 })
    }

    @Test func onlyKeyframesThatWereAskedForCrowd() {
        var requests = KeyframeRequests()
        #expect(requests.noteNeed(now: 0) == true)
        #expect(requests.sawKeyframe(now: 1) == false)
        // The encoder's own.
        #expect(requests.sawKeyframe(now: 2) == false)
        #expect(requests.noteNeed(now: 3) == true)
        #expect(requests.sawKeyframe(now: 4) == true)
        #expect(requests.noteNeed(now: 5) == true)
        #expect(requests.sawKeyframe(now: 4 + KeyframeRequests.crowding) == false)
    }

    @Test func asksAgainWhereNoKeyframeComes() {
        var requests = KeyframeRequests()
        #expect(requests.noteNeed(now: 0) == true)
        #expect(requests.noteNeed(now: 500_000_000) == false)
        #expect(requests.noteNeed(now: 1_000_000_000) == true)
        #expect(requests.sawKeyframe(now: 1_000_000_000) == false)
        #expect(requests.noteNeed(now: 1_000_000_001) == true)
        #expect(requests.requestCount == 3)
    }

    // MARK: Refusals

    @Test func tellsOfRefusalsEveryTenSecondsAtMost() {
        var refusals = Refusals()
        #expect(refusals.takeNews(now: 0) == nil)
        refusals.add("a")
        #expect(refusals.takeNews(now: second) == Refusals.News(count: 1, reason: "a"))
        refusals.add("b")
        refusals.add("c")
        #expect(refusals.takeNews(now: 10 * second) == nil)
        #expect(refusals.takeNews(now: 11 * second) == Refusals.News(count: 2, reason: "c"))
        #expect(refusals.takeNews(now: 30 * second) == nil)
        #expect(refusals.total == 3)
    }
}
