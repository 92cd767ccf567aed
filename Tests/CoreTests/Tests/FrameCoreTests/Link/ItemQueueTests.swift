// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

@Suite struct ItemQueueTests {
    /// A queue with a pool before it, and the producer's way of waiting as an output has it.
    private final class Line: @unchecked Sendable {
        let stop = StopSignal()
        let room: RoomGate
        let queue: ItemQueue
        let pool: FramePool

        init(_ settings: LinkSettings, buffers: Int) throws {
            room = RoomGate(stop: stop)
            queue = ItemQueue(name: "a → b", settings: settings, room: room, stop: stop, consumerNumber: 3)
            pool = try FramePool(
                name: "pool", format: VideoFormat(.gray8, width: 16, height: 4), bufferCount: buffers, stop: stop,
                clock: ChainClock())
        }

        /// [producer's thread] False when the run was stopped.
        func push(_ number: Int) -> Bool {
            guard let frame = try? pool.lease() else { return false }
            frame.sequenceNumber = UInt64(number)
            frame.pts = MediaTime(nanoseconds: Int64(number))
            var version = room.version
            guard let first = queue.offer(frame.release(), mayWait: true) else { return true }
            var waiting = first.release()
            while room.wait(after: version) {
                version = room.version
                guard let back = queue.offer(Lease(waiting), mayWait: true) else { return true }
                waiting = back.release()
            }
            queue.refuseStopped(Lease(waiting))
            return false
        }

        /// [consumer's thread] The next item's number; nil at anything else.
        func takeNumber() -> Int? {
            guard case .item(let lease) = queue.take() else { return nil }
            return Int(Frame(lease).sequenceNumber)
        }

        var depth: Int { queue.snapshot().depth }
    }

    private func name(of taken: consuming ItemQueue.Taken) -> String {
        switch consume taken {
        case .item(let lease): "item \(Frame(lease).sequenceNumber)"
        case .nothing(let pts): "nothing up to \(pts)"
        case .interrupted: "interrupted"
        case .ended: "ended"
        case .stopped: "stopped"
        }
    }

    // MARK: One thread

    @Test func givesItemsInOrderAndThenSaysThatItHasEnded() throws {
        let line = try Line(LinkSettings(capacity: 3), buffers: 4)
        for number in 0..<3 { #expect(line.push(number)) }
        line.queue.end()
        #expect((0..<4).map { _ in name(of: line.queue.take()) } == ["item 0", "item 1", "item 2", "ended"])
        #expect(line.pool.freeCount == 4)
    }

    @Test func saysOfAQueuedItemBeforeWhichStageItWaits() throws {
        let line = try Line(LinkSettings(capacity: 3), buffers: 4)
        #expect(line.push(0))
        #expect(line.pool.holders().map(\.holder) == [7], "twice the consumer's index, and one")
    }

    @Test func letsGoOfWhatItEvicts() throws {
        let line = try Line(LinkSettings(capacity: 2, policy: .dropOldest), buffers: 3)
        for number in 0..<10 { #expect(line.push(number)) }
        #expect(line.pool.freeCount == 1)
        #expect([line.takeNumber(), line.takeNumber()] == [8, 9])
        #expect(line.queue.snapshot().counts.evicted[DropReason.evicted.rawValue] == 8)
    }

    /// Which of ten items, offered to a queue of three that gives one after every fourth, say that they follow a gap.
    @Test(arguments: [
        (DropPolicy.dropNewest, [0, 1, 2, 4, 8], [4, 8]), (.dropOldest, [1, 5, 7, 8, 9], [1, 5, 7]),
        (.wait, [0, 1, 2], []),
    ]) func marksWhatFollowsAGap(policy: DropPolicy, taken: [Int], marked: [Int]) throws {
        let line = try Line(LinkSettings(capacity: 3, policy: policy), buffers: 5)
        var found: [(number: Int, isMarked: Bool)] = []
        func take() {
            guard line.depth > 0, case .item(let lease) = line.queue.take() else { return }
            let frame = Frame(lease)
            found.append((Int(frame.sequenceNumber), frame.isDiscontinuity))
        }
        for number in 0..<(policy == .wait ? 3 : 10) {
            #expect(line.push(number))
            if number % 4 == 3 { take() }
        }
        for _ in 0..<3 { take() }
        #expect(found.map(\.number) == taken)
        #expect(found.filter(\.isMarked).map(\.number) == marked)
    }

    @Test func letsGoOfAWholeGroupForAKeyframe() throws {
        let stop = StopSignal()
        let room = RoomGate(stop: stop)
        let queue = ItemQueue(
            name: "a → b", settings: LinkSettings(capacity: 4, policy: .dropToKeyframe), room: room, stop: stop)
        let slab = try Slab(name: "slab", byteCount: 4096, unitCount: 16, stop: stop)
        for number in 0..<8 {
            let unit = try slab.lease(byteCount: 100)
            unit.sequenceNumber = UInt64(number)
            unit.isKeyframe = number == 0 || number == 6
            let isBack = queue.offer(unit.release(), mayWait: true) != nil
            #expect(!isBack)
        }
        let snapshot = queue.snapshot()
        #expect(snapshot.depth == 2 && snapshot.bytes == 200)
        #expect(snapshot.counts.dropped[DropReason.untilKeyframe.rawValue] == 2)
        #expect(snapshot.counts.evicted[DropReason.untilKeyframe.rawValue] == 4)
        #expect(slab.census().leased == 2)
        // The gap is before the keyframe, and there alone.
        for (number, followsGap) in [(UInt64(6), true), (7, false)] {
            guard case .item(let lease) = queue.take() else {
                Issue.record("no item")
                return
            }
            let unit = AccessUnit(lease)
            let (sequence, isMarked) = (unit.sequenceNumber, unit.isDiscontinuity)
            #expect(sequence == number && isMarked == followsGap, "\(sequence)")
        }
        #expect(slab.usage.bytes == 0)
    }

    @Test func letsGoOfAsManyAsALargerItemNeedsBytes() throws {
        let stop = StopSignal()
        let queue = ItemQueue(
            name: "a → b", settings: LinkSettings(capacity: 4, policy: .dropOldest, mostBytes: 400),
            room: RoomGate(stop: stop), stop: stop)
        let slab = try Slab(name: "slab", byteCount: 4096, unitCount: 16, stop: stop)
        for number in 0..<6 {
            let unit = try slab.lease(byteCount: number == 5 ? 300 : 100)
            unit.sequenceNumber = UInt64(number)
            let isBack = queue.offer(unit.release(), mayWait: true) != nil
            #expect(!isBack)
        }
        let snapshot = queue.snapshot()
        #expect(snapshot.depth == 2 && snapshot.bytes == 400)
        #expect(snapshot.counts.evicted[DropReason.evicted.rawValue] == 4)
        #expect(slab.census().leased == 2)
        for (number, followsGap) in [(UInt64(4), true), (5, false)] {
            guard case .item(let lease) = queue.take() else {
                Issue.record("no item")
                return
            }
            let unit = AccessUnit(lease)
            let (sequence, isMarked) = (unit.sequenceNumber, unit.isDiscontinuity)
            #expect(sequence == number && isMarked == followsGap)
        }
        #expect(slab.usage.bytes == 0)
    }

    @Test func letsGoOfAsManyAsALaterItemNeedsTime() throws {
        let stop = StopSignal()
        let queue = ItemQueue(
            name: "a → b",
            settings: LinkSettings(capacity: 8, policy: .dropOldest, mostTime: MediaTime(nanoseconds: 100)),
            room: RoomGate(stop: stop), stop: stop)
        let slab = try Slab(name: "slab", byteCount: 4096, unitCount: 16, stop: stop)
        for (number, time) in [0, 10, 20, 30, 40, 125].enumerated() {
            let unit = try slab.lease(byteCount: 100)
            unit.sequenceNumber = UInt64(number)
            unit.dts = MediaTime(nanoseconds: Int64(time))
            let isBack = queue.offer(unit.release(), mayWait: true) != nil
            #expect(!isBack)
        }
        let snapshot = queue.snapshot()
        #expect(snapshot.depth == 3 && snapshot.counts.evicted[DropReason.evicted.rawValue] == 3)
        #expect(slab.census().leased == 3)
        for (number, followsGap) in [(UInt64(3), true), (4, false), (5, false)] {
            guard case .item(let lease) = queue.take() else {
                Issue.record("no item")
                return
            }
            let unit = AccessUnit(lease)
            let (sequence, isMarked) = (unit.sequenceNumber, unit.isDiscontinuity)
            #expect(sequence == number && isMarked == followsGap, "\(sequence)")
        }
        #expect(slab.usage.bytes == 0)
    }

    /// While sound is paused, or its microphone is away, nothing comes that could fill the queue.
    @Test(arguments: [true, false]) func countsNoGapAmongTheSecondsOfAQueue(isMarked: Bool) throws {
        let stop = StopSignal()
        let queue = ItemQueue(
            name: "mic → rec",
            settings: LinkSettings(capacity: 4000, policy: .dropOldest, mostTime: MediaTime(seconds: 8)),
            room: RoomGate(stop: stop), stop: stop)
        let slab = try Slab(name: "slab", byteCount: 1 << 20, unitCount: 4000, stop: stop)
        var (time, pauses) = (MediaTime.zero, false)
        func give(_ count: Int) throws {
            for _ in 0..<count {
                let unit = try slab.lease(byteCount: 8)
                (unit.pts, unit.dts, unit.duration) = (time, time, MediaTime(nanoseconds: 20_000_000))
                unit.isDiscontinuity = isMarked && pauses
                pauses = false
                time = time + unit.duration
                let isBack = queue.offer(unit.release(), mayWait: true) != nil
                #expect(!isBack)
            }
        }
        try give(100)
        for away in [60.0, 3600] {
            (time, pauses) = (time + MediaTime(seconds: away), true)
            try give(100)
        }
        #expect(queue.snapshot().depth == 300 && queue.lastBound == nil, "6 s of sound, an hour apart")
        for _ in 0..<150 { _ = queue.take() }
        try give(300)
        #expect(queue.snapshot().counts.lost(.evicted) > 0 && queue.lastBound == .time)
        #expect((400...402).contains(queue.snapshot().depth), "8 s of sound: \(queue.snapshot().depth)")
    }

    @Test func tellsWhichLimitMadeItFull() throws {
        for (settings, bound): (LinkSettings, QueueBound) in [
            (LinkSettings(capacity: 2, policy: .dropNewest), .items),
            (LinkSettings(capacity: 9, policy: .dropNewest, mostBytes: 250), .bytes),
            (LinkSettings(capacity: 9, policy: .dropOldest, mostTime: MediaTime(nanoseconds: 15)), .time),
        ] {
            let stop = StopSignal()
            let queue = ItemQueue(name: "a → b", settings: settings, room: RoomGate(stop: stop), stop: stop)
            let slab = try Slab(name: "slab", byteCount: 4096, unitCount: 16, stop: stop)
            for number in 0..<3 {
                #expect(queue.lastBound == nil)
                let unit = try slab.lease(byteCount: 100)
                unit.dts = MediaTime(nanoseconds: Int64(number) * 10)
                let isBack = queue.offer(unit.release(), mayWait: true) != nil
                #expect(!isBack)
            }
            #expect(queue.lastBound == bound)
            queue.discardAll(.stopped)
        }
    }

    @Test func wrapsAroundItsRing() throws {
        let line = try Line(LinkSettings(capacity: 3), buffers: 4)
        var next = 0
        for round in 0..<100 {
            let count = round % 3 + 1
            for _ in 0..<count {
                #expect(line.push(next))
                next += 1
            }
            for number in (next - count)..<next { #expect(line.takeNumber() == number) }
        }
    }

    @Test func saysOnceUpToWhichTimeNothingComesAfterWhatIsQueued() throws {
        let line = try Line(LinkSettings(capacity: 3), buffers: 4)
        #expect(line.push(0))
        line.queue.announceNothing(upTo: 50)
        line.queue.announceNothing(upTo: 40)
        line.queue.end()
        #expect((0..<3).map { _ in name(of: line.queue.take()) } == ["item 0", "nothing up to 50", "ended"])
    }

    @Test func saysThatNothingComesForAnItemItRejected() throws {
        let line = try Line(LinkSettings(capacity: 1, policy: .dropNewest), buffers: 3)
        for number in 0..<3 { #expect(line.push(number)) }
        #expect((0..<2).map { _ in name(of: line.queue.take()) } == ["item 0", "nothing up to 2"])
    }

    /// Somebody who interrupts without an end holds up neither the items nor the end.
    @Test func isInterruptedOnceAndOnlyWhereItWouldWait() throws {
        let line = try Line(LinkSettings(capacity: 3), buffers: 4)
        for number in 0..<2 { #expect(line.push(number)) }
        line.queue.interrupt()
        #expect(name(of: line.queue.take()) == "item 0")
        line.queue.interrupt()
        #expect((0..<2).map { _ in name(of: line.queue.take()) } == ["item 1", "interrupted"])
        #expect(line.push(2))
        line.queue.announceNothing(upTo: 7)
        line.queue.interrupt()
        line.queue.end()
        #expect((0..<3).map { _ in name(of: line.queue.take()) } == ["item 2", "nothing up to 7", "ended"])
    }

    @Test func isInterruptedBeforeAnItemWhereThatIsUrgent() throws {
        let line = try Line(LinkSettings(capacity: 3), buffers: 4)
        for number in 0..<2 { #expect(line.push(number)) }
        line.queue.interrupt()
        line.queue.interrupt(isUrgent: true)
        line.queue.interrupt()
        line.queue.end()
        #expect(
            (0..<4).map { _ in name(of: line.queue.take()) } == ["interrupted", "item 0", "item 1", "ended"])
    }

    @Test func letsGoOfEverythingWhenItGoes() throws {
        var line: Line? = try Line(LinkSettings(capacity: 3), buffers: 4)
        for number in 0..<3 { #expect(line!.push(number)) }
        let pool = line!.pool
        line = nil
        #expect(pool.freeCount == 4)
    }

    // MARK: Two threads

    @Test(arguments: [1, 2, 3, 8, 64])
    func losesNothingAndKeepsTheOrderBetweenTwoThreads(capacity: Int) throws {
        let count = 30_000
        let line = try Line(LinkSettings(capacity: capacity), buffers: capacity + 2)
        let producer = try TestThread("producer") {
            for number in 0..<count where !line.push(number) {
                Issue.record("stopped at \(number)")
                return
            }
            line.queue.end()
        }
        var next = 0
        var dice = SplitMix(state: UInt64(capacity))
        while let number = line.takeNumber() {
            if number != next { Issue.record("\(number) after \(next - 1)") }
            next = number + 1
            // Slow now and then, so that each side sleeps for the other.
            if dice.next(in: 0...9999) == 0 { pauseTest(ms: 1) }
        }
        #expect(producer.join())
        #expect(next == count)
        let counts = line.queue.snapshot().counts
        #expect(counts.offered == count && counts.accepted == count && counts.taken == count)
        #expect(line.pool.freeCount == capacity + 2)
    }

    @Test func wakesAConsumerThatSleeps() throws {
        let line = try Line(LinkSettings(capacity: 2), buffers: 3)
        let taken = Locked(-1)
        let consumer = try TestThread("consumer") { taken.set(line.takeNumber() ?? -2) }
        pauseTest(ms: 20)
        #expect(line.push(5))
        #expect(consumer.join())
        #expect(taken.now == 5)
    }

    @Test func interruptsAConsumerThatSleeps() throws {
        let line = try Line(LinkSettings(capacity: 2), buffers: 3)
        let found = Locked("")
        let consumer = try TestThread("consumer") { [self] in found.set(name(of: line.queue.take())) }
        pauseTest(ms: 20)
        line.queue.interrupt()
        #expect(consumer.join())
        #expect(found.now == "interrupted")
    }

    @Test func stopWakesProducerAndConsumerAlike() throws {
        let full = try Line(LinkSettings(capacity: 2), buffers: 4)
        let empty = try Line(LinkSettings(capacity: 2), buffers: 4)
        let pushed = Locked(0)
        let found = Locked("")
        let producer = try TestThread("producer") { while full.push(0) { pushed.withLock { $0 += 1 } } }
        let consumer = try TestThread("consumer") { [self] in found.set(name(of: empty.queue.take())) }
        // Two items lie in the queue, and the producer has the third in hand.
        #expect(eventually { pushed.now == 2 && full.pool.freeCount == 1 })
        pauseTest(ms: 20)
        full.stop.raise()
        empty.stop.raise()
        #expect(producer.join() && consumer.join())
        #expect(pushed.now == 2)
        #expect(found.now == "stopped")
        #expect(full.queue.snapshot().counts.dropped[DropReason.stopped.rawValue] == 1)
        full.queue.discardAll(.stopped)
        #expect(full.pool.freeCount == 4)
    }

    // MARK: The late wake

    @Test func leavesAProducerAsleepWhileThereIsPlentyAndWakesItBeforeWaiting() throws {
        let line = try Line(LinkSettings(capacity: 8), buffers: 16)
        let producer = try TestThread("producer") {
            var number = 0
            while line.push(number) { number += 1 }
        }
        #expect(eventually { line.depth == 8 && line.room.isAsleep })
        #expect(line.takeNumber() == 0)
        pauseTest(ms: 20)
        #expect(line.depth == 7, "seven are plenty: the producer sleeps on")
        line.queue.settleWake()
        // Without being told to settle it wakes the producer once it has taken half.
        #expect(eventually { line.depth == 8 && line.room.isAsleep })
        for number in 1...4 { #expect(line.takeNumber() == number) }
        #expect(eventually { line.depth == 8 })
        line.stop.raise()
        #expect(producer.join())
    }

    /// The consumer, before it waits for the producer by other means than the queue, settles; then the producer must
    /// come.
    @Test(arguments: [2, 3, 5, 8])
    func neverLosesAWakeUpThatItSettled(capacity: Int) throws {
        let line = try Line(LinkSettings(capacity: capacity), buffers: capacity + 2)
        let offered = Locked(0)
        let producer = try TestThread("producer") {
            var number = 0
            while line.push(number) {
                number += 1
                offered.set(number)
            }
        }
        var dice = SplitMix(state: 7)
        var taken = 0
        for round in 0..<3_000 {
            for _ in 0...dice.next(in: 0...capacity) {
                guard line.takeNumber() == taken else {
                    Issue.record("round \(round): not \(taken)")
                    return
                }
                taken += 1
            }
            line.queue.settleWake()
            let wanted = taken + (dice.hits(50) ? capacity : 1)
            guard eventually({ offered.now >= wanted }) else {
                Issue.record("round \(round): the producer sleeps at \(offered.now), taken \(taken)")
                break
            }
            if dice.hits(1) { pauseTest(ms: 1) }
        }
        line.stop.raise()
        #expect(producer.join())
    }
}
