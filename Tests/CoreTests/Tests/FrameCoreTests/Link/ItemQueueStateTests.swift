// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

@Suite struct ItemQueueStateTests {
    private func full(_ policy: DropPolicy, capacity: Int = 2, mostBytes: Int? = nil, mostTime: Int64? = nil)
        -> ItemQueueState
    {
        var state = ItemQueueState(
            settings: LinkSettings(
                capacity: capacity, policy: policy, mostBytes: mostBytes,
                mostTime: mostTime.map { MediaTime(nanoseconds: $0) }))
        for time in 0..<state.settings.capacity { _ = state.offer(time: Int64(time)) }
        return state
    }

    // MARK: Policies

    @Test func acceptsAsManyAsItHasPlaces() {
        var state = ItemQueueState(settings: LinkSettings(capacity: 3))
        #expect((0..<3).map { _ in state.offer() } == [.accept, .accept, .accept])
        #expect(state.depth == 3)
        #expect(state.counts.offered == 3 && state.counts.accepted == 3 && state.counts.mostDepth == 3)
    }

    @Test func tellsTheProducerOfAFullWaitLinkToWaitAndCountsNothing() {
        var state = full(.wait)
        let before = state.counts
        #expect(state.offer() == .wait)
        #expect(state.counts == before)
        state.take()
        #expect(state.offer() == .accept)
    }

    @Test func rejectsWithNoBufferWhatALiveSourceFindsNoPlaceFor() {
        var state = full(.wait)
        #expect(state.offer(mayWait: false) == .reject(.noBuffer))
        #expect(state.counts.offered == 3)
        #expect(state.counts.dropped[DropReason.noBuffer.rawValue] == 1)
        #expect(state.depth == 2)
    }

    @Test func rejectsTheNewestWhenFull() {
        var state = full(.dropNewest)
        #expect(state.offer() == .reject(.queueFull))
        #expect(state.counts.dropped[DropReason.queueFull.rawValue] == 1)
    }

    @Test func evictsTheOldestWhenFull() {
        var state = full(.dropOldest)
        #expect(state.offer() == .evictThenAccept(1))
        #expect(state.depth == 2)
        #expect(state.counts.accepted == 3)
        #expect(state.counts.evicted[DropReason.evicted.rawValue] == 1)
    }

    /// Sound is limited in bytes and time too.
    @Test func forgetsTheBytesAndTheTimeOfWhatItEvicts() {
        var state = ItemQueueState(
            settings: LinkSettings(
                capacity: 10, policy: .dropOldest, mostBytes: 100, mostTime: MediaTime(nanoseconds: 1000)))
        for time in [0, 10, 20] { #expect(state.offer(bytes: 30, time: Int64(time)) == .accept) }
        #expect(state.offer(bytes: 30, time: 30) == .evictThenAccept(1))
        #expect(state.settleEviction(bytes: 30, oldestTime: 10, newestTime: 30) == false)
        #expect(state.bytes == 90 && state.depth == 3)
        #expect(state.offer(bytes: 5, time: 1009) == .accept)
        #expect(state.offer(bytes: 1, time: 1011) == .evictThenAccept(1), "1001 ns after the oldest")
        #expect(state.settleEviction(bytes: 30, oldestTime: 20, newestTime: 1011) == false)
        #expect(state.offer(bytes: 1, time: 1015) == .accept)
        #expect(state.bytes == 67 && state.depth == 5)
    }

    @Test func evictsAsManyAsALargerItemNeedsBytes() {
        func state() -> ItemQueueState {
            var state = ItemQueueState(settings: LinkSettings(capacity: 10, policy: .dropOldest, mostBytes: 100))
            for time in 0..<5 { #expect(state.offer(bytes: 20, time: Int64(time)) == .accept) }
            return state
        }
        var large = state()
        #expect(large.offer(bytes: 50, time: 5) == .evictThenAccept(1))
        #expect(large.settleEviction(bytes: 20, oldestTime: 1, newestTime: 5) == true)
        #expect(large.settleEviction(bytes: 20, oldestTime: 2, newestTime: 5) == true)
        #expect(large.settleEviction(bytes: 20, oldestTime: 3, newestTime: 5) == false)
        #expect(large.bytes == 90 && large.depth == 3)
        #expect(large.counts.evicted[DropReason.evicted.rawValue] == 3 && large.counts.accepted == 6)
        // It stays itself, whatever its size.
        var huge = state()
        #expect(huge.offer(bytes: 500, time: 5) == .evictThenAccept(1))
        for time in 1..<5 { #expect(huge.settleEviction(bytes: 20, oldestTime: Int64(time), newestTime: 5) == true) }
        #expect(huge.settleEviction(bytes: 20, oldestTime: 5, newestTime: 5) == false)
        #expect(huge.bytes == 500 && huge.depth == 1)
    }

    @Test func evictsAsManyAsALaterItemNeedsTime() {
        func state() -> ItemQueueState {
            var state = ItemQueueState(
                settings: LinkSettings(capacity: 10, policy: .dropOldest, mostTime: MediaTime(nanoseconds: 100)))
            for time in 0..<5 { #expect(state.offer(bytes: 8, time: Int64(time) * 10) == .accept) }
            return state
        }
        var late = state()
        #expect(late.offer(bytes: 8, time: 125) == .evictThenAccept(1))
        #expect(late.settleEviction(bytes: 8, oldestTime: 10, newestTime: 125) == true)
        #expect(late.settleEviction(bytes: 8, oldestTime: 20, newestTime: 125) == true)
        #expect(late.settleEviction(bytes: 8, oldestTime: 30, newestTime: 125) == false)
        #expect(late.bytes == 24 && late.depth == 3)
        #expect(late.counts.evicted[DropReason.evicted.rawValue] == 3 && late.counts.accepted == 6)
        // It stays itself, whatever its time.
        var last = state()
        #expect(last.offer(bytes: 8, time: .max) == .evictThenAccept(1))
        for time in 1..<5 {
            #expect(last.settleEviction(bytes: 8, oldestTime: Int64(time) * 10, newestTime: .max) == true)
        }
        #expect(last.settleEviction(bytes: 8, oldestTime: .max, newestTime: .max) == false)
        #expect(last.bytes == 8 && last.depth == 1)
    }

    @Test func keepsOnePlaceUnderLatestWhateverCapacityWasAskedFor() {
        var state = full(.latest, capacity: 7)
        #expect(state.settings.capacity == 1)
        #expect(state.offer() == .evictThenAccept(1))
        #expect(state.depth == 1)
        #expect(state.counts.evicted[DropReason.replaced.rawValue] == 1)
    }

    // MARK: To the next keyframe

    @Test func skipsToTheNextKeyframeEvenWhenThereIsRoomAgain() {
        var state = full(.dropToKeyframe)
        #expect(state.offer(time: 2) == .reject(.untilKeyframe))
        state.take(nextTime: 1)
        state.take()
        #expect(state.offer(time: 3) == .reject(.untilKeyframe), "it cannot be decoded without the one before")
        #expect(state.offer(time: 4, isKeyframe: true) == .accept)
        #expect(state.offer(time: 5) == .accept)
        #expect(state.counts.dropped[DropReason.untilKeyframe.rawValue] == 2)
    }

    @Test func evictsAllForAKeyframeThatFindsTheQueueFull() {
        var state = full(.dropToKeyframe, capacity: 4)
        #expect(state.offer(time: 4, isKeyframe: true) == .evictThenAccept(4))
        #expect(state.depth == 1)
        #expect(state.counts.evicted[DropReason.untilKeyframe.rawValue] == 4)
        #expect(state.offer(time: 5) == .accept)
    }

    @Test func measuresTheTimeQueuedAnewAfterEvictingAll() {
        var state = full(.dropToKeyframe, capacity: 9, mostTime: 100)
        #expect(state.offer(bytes: 7, time: 200, isKeyframe: true) == .evictThenAccept(9))
        #expect(state.bytes == 7)
        #expect(state.offer(bytes: 5, time: 300) == .accept)
        #expect(state.bytes == 12)
        #expect(state.offer(bytes: 5, time: 301) == .reject(.untilKeyframe))
    }

    // MARK: Bytes and time

    @Test func isFullAtItsMostBytes() {
        var state = ItemQueueState(settings: LinkSettings(capacity: 100, mostBytes: 1000))
        #expect(state.offer(bytes: 600) == .accept)
        #expect(state.offer(bytes: 401) == .wait)
        #expect(state.offer(bytes: 400) == .accept)
        #expect(state.offer(bytes: 0) == .accept)
        #expect(state.offer(bytes: 1) == .wait)
        state.take(bytes: 600)
        #expect(state.offer(bytes: 600) == .accept)
        #expect(state.bytes == 1000)
    }

    @Test func takesOneItemLargerThanItsMostBytesWhenEmpty() {
        var state = ItemQueueState(settings: LinkSettings(capacity: 100, mostBytes: 1000))
        #expect(state.offer(bytes: 5000) == .accept)
        #expect(state.offer(bytes: 0) == .wait, "already over")
    }

    @Test func isFullWhenTheOldestItemLiesTooFarBack() {
        var state = ItemQueueState(settings: LinkSettings(capacity: 100, mostTime: MediaTime(nanoseconds: 50)))
        #expect(state.offer(time: 1000) == .accept)
        #expect(state.offer(time: 1050) == .accept)
        #expect(state.offer(time: 1051) == .wait)
        state.take(nextTime: 1050)
        #expect(state.offer(time: 1100) == .accept)
        #expect(state.offer(time: 1101) == .wait)
    }

    @Test func takesAnyTimeWhenEmpty() {
        var state = ItemQueueState(settings: LinkSettings(capacity: 100, mostTime: MediaTime(nanoseconds: 50)))
        _ = state.offer(time: 0)
        state.take()
        #expect(state.offer(time: 1_000_000) == .accept)
    }

    // MARK: Ends

    @Test func evictsEverythingUnread() {
        var state = full(.wait, capacity: 5)
        #expect(state.evictAll(.stopped) == 5)
        #expect(state.depth == 0 && state.bytes == 0)
        #expect(state.counts.evicted[DropReason.stopped.rawValue] == 5)
        #expect(state.offer() == .accept)
    }

    @Test func countsAnItemTheRunWasStoppedWith() {
        var state = full(.wait)
        state.refuseStopped()
        #expect(state.counts.offered == 3 && state.counts.accepted == 2)
        #expect(state.counts.dropped[DropReason.stopped.rawValue] == 1)
    }

    @Test func stillGivesWhatWasQueuedBeforeTheEnd() {
        var state = full(.wait)
        state.end()
        #expect(state.hasEnded && state.depth == 2)
    }

    // MARK: Ledger

    /// Random offers, takes and clearings beside a plain list; after each, law 1 and the list's own figures.
    @Test(arguments: DropPolicy.allCases, [UInt64(1), 2])
    func obeysTheLedgerWhateverHappens(policy: DropPolicy, seed: UInt64) {
        var dice = SplitMix(state: seed)
        let isBounded = policy == .wait || policy == .dropToKeyframe
        let hasLimits = isBounded || policy == .dropOldest
        let settings = LinkSettings(
            capacity: 1 + dice.next(in: 0...7), policy: policy, mostBytes: hasLimits ? 4000 : nil,
            mostTime: hasLimits ? MediaTime(nanoseconds: 60) : nil)
        var state = ItemQueueState(settings: settings)
        var list: [(bytes: Int, time: Int64)] = []
        var time: Int64 = 0
        var seen: Set<String> = []
        for step in 0..<10_000 {
            switch dice.next(in: 0...99) {
            case 0..<55:
                let bytes = hasLimits ? dice.next(in: 0...1500) : 0
                time += Int64(dice.next(in: 0...20))
                let wasFull = list.count >= settings.capacity
                let action = state.offer(bytes: bytes, time: time, isKeyframe: dice.hits(10), mayWait: dice.hits(80))
                switch action {
                case .accept: list.append((bytes, time))
                case .evictThenAccept(let count):
                    list.append((bytes, time))
                    guard policy == .dropOldest else {
                        list.removeFirst(count)
                        break
                    }
                    while state.settleEviction(
                        bytes: list.removeFirst().bytes, oldestTime: list[0].time, newestTime: time)
                    {}
                case .reject, .wait: break
                }
                if wasFull, action == .accept { Issue.record("step \(step): accepted into a full queue") }
                seen.insert("\(action)".prefix { $0 != "(" }.description)
            case 55..<98:
                guard !list.isEmpty else { continue }
                state.take(bytes: list.removeFirst().bytes, nextTime: list.first?.time)
            case 98: state.refuseStopped()
            default:
                #expect(state.evictAll(.stopped) == list.count)
                list = []
            }
            let counts = state.counts
            let isWithinBytes = state.depth <= 1 || state.bytes <= (settings.mostBytes ?? .max)
            let span = (list.last?.time ?? 0) - (list.first?.time ?? 0)
            let isWithinTime = span <= (settings.mostTime?.nanoseconds ?? .max)
            let holds =
                counts.offered == counts.accepted + counts.dropped.reduce(0, +)
                && counts.accepted == counts.taken + counts.evicted.reduce(0, +) + state.depth
                && state.depth == list.count && state.bytes == list.reduce(0) { $0 + $1.bytes }
                && state.depth <= settings.capacity && state.depth <= counts.mostDepth
                && isWithinBytes && isWithinTime
            guard holds else {
                Issue.record(
                    "step \(step), seed \(seed): \(counts), depth \(state.depth) of \(list.count), \(state.bytes) bytes, \(span) ns"
                )
                return
            }
        }
        let expected: Set<String> =
            switch policy {
            case .wait: ["accept", "reject", "wait"]
            case .dropNewest: ["accept", "reject"]
            case .dropOldest, .latest: ["accept", "evictThenAccept"]
            case .dropToKeyframe: ["accept", "reject", "evictThenAccept"]
            }
        #expect(seen == expected, "the dice did not come to everything")
    }

    /// Decode times come from files and other people's stages.
    @Test func comparesTimesFromEndToEndOfTheirRange() {
        let ends: [Int64] = [.min, .min + 1, -1, 0, 1, .max - 1, .max]
        for first in ends {
            for second in ends {
                var state = ItemQueueState(
                    settings: LinkSettings(capacity: 8, policy: .dropNewest, mostTime: MediaTime(seconds: 8)))
                #expect(state.offer(time: first) == .accept)
                let isFar = Int128(second) - Int128(first) > 8_000_000_000
                #expect(state.offer(time: second) == (isFar ? .reject(.queueFull) : .accept), "\(first), \(second)")
            }
        }
    }
}
