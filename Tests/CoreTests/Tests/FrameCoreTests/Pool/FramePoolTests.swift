// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import FrameCore

@Suite struct FramePoolTests {
    @Test func lendsEachBufferOnceAndTakesThemBack() throws {
        let test = try TestPool(3)
        var frames = FrameRing(capacity: 4)
        for _ in 0..<3 { frames.push(try test.pool.lease(), keeping: 4) }
        let isEmpty = test.pool.tryLease() == nil
        #expect(isEmpty)
        #expect(test.pool.census() == (free: 0, leased: 3))
        #expect(Set(test.pool.holders().map(\.buffer)).count == 3)
        _ = frames.pop()
        #expect(test.pool.freeCount == 1)
        while frames.pop() != nil {}
        #expect(test.pool.census() == (free: 3, leased: 0))
    }

    @Test func keepsABufferOutUntilItsLastLeaseGoes() throws {
        let test = try TestPool(1)
        let frame = try test.pool.lease()
        let other = frame.share()
        let shared = [frame.isUnique, other.isUnique]
        #expect(shared == [false, false])
        #expect(test.pool.census() == (free: 0, leased: 1))
        _ = consume frame
        #expect(test.pool.freeCount == 0)
        let isUnique = other.isUnique
        #expect(isUnique)
        _ = consume other
        #expect(test.pool.freeCount == 1)
    }

    @Test func waitsForABufferAndIsWokenByItsReturnOnAnotherThread() throws {
        let test = try TestPool(1)
        let frame = try test.pool.lease()
        let hasLeased = Locked(false)
        let allocator = try TestThread("allocator") {
            _ = try? test.pool.lease()
            hasLeased.set(true)
        }
        #expect(eventually { test.pool.starvedSinceTime != nil })
        #expect(!hasLeased.now)
        test.clock.advance(to: test.clock.now() + 5_000_000)
        #expect(test.pool.starvedMs == 5)
        #expect(test.pool.starvedSinceTime == 1_000_000_000)
        _ = consume frame
        #expect(allocator.join())
        #expect(test.pool.starvedSinceTime == nil && test.pool.starvedMs == 5)
        #expect(test.pool.freeCount == 1)
    }

    @Test func stopEndsAWaitForABuffer() throws {
        let test = try TestPool(1)
        let frame = try test.pool.lease()
        let text = Locked("")
        let allocator = try TestThread("allocator") {
            do { _ = try test.pool.lease() } catch { text.withLock { $0 = "\(error)" } }
        }
        pauseTest(ms: 20)
        test.stop.raise()
        #expect(allocator.join())
        #expect(text.now == "pool: stopped while waiting for a buffer.")
        _ = consume frame
    }

    // MARK: Memory

    /// 225 pages of 4096 bytes, so that the large pages of the system do not end where a buffer does.
    private static let picture = VideoFormat(.gray8, width: 1280, height: 720)

    /// For each buffer how many pages have memory.
    private func pages(_ pool: FramePool, from first: UnsafeMutableRawPointer) throws -> [Int] {
        var isThere = [UInt8](repeating: 0, count: pool.byteCount / 4096)
        try #require(mincore(first, pool.byteCount, &isThere) == 0)
        let each = isThere.count / pool.bufferCount
        return (0..<pool.bufferCount).map { buffer in isThere[buffer * each..<(buffer + 1) * each].count { $0 & 1 == 1 }
        }
    }

    @Test func givesOnlyTheBuffersThatAreNeededTheirMemory() throws {
        let test = try TestPool(6, Self.picture, touching: 3)
        var frames = FrameRing(capacity: 4)
        frames.push(try test.pool.lease(), keeping: 4)
        let first = frames.pop()!.record.pointee.base!
        #expect(try pages(test.pool, from: first) == [225, 225, 225, 0, 0, 0])
        // Those that came back are lent first, in whatever order they come.
        for round in 0..<60 {
            while frames.count < 1 + round % 3 {
                var frame = try test.pool.lease()
                frame.withMutablePlane(0) { $0.row(719)[0] = 1 }
                frames.push(frame, keeping: 4)
            }
            _ = frames.pop()
        }
        #expect(try pages(test.pool, from: first) == [225, 225, 225, 0, 0, 0])
        #expect(test.pool.touchedCount == 3)
    }

    @Test func givesFurtherBuffersTheirMemoryAndLeavesWhatTheyHold() throws {
        let test = try TestPool(6, Self.picture, touching: 1)
        var frames = FrameRing(capacity: 8)
        var bases: [UnsafeMutableRawPointer] = []
        for value in 0..<6 {
            var frame = try test.pool.lease()
            bases.append(frame.record.pointee.base!)
            if value < 3 { frame.withMutablePlane(0) { $0.row(0)[7] = UInt8(40 + value) } }
            frames.push(frame, keeping: 8)
        }
        #expect(try pages(test.pool, from: bases[0]) == [225, 1, 1, 0, 0, 0])
        try test.pool.touch(4)
        #expect(try pages(test.pool, from: bases[0]) == [225, 225, 225, 225, 0, 0])
        try test.pool.touch(2)
        #expect(test.pool.touchedCount == 4)
        try test.pool.touch(99)
        #expect(try pages(test.pool, from: bases[0]) == [Int](repeating: 225, count: 6))
        #expect(test.pool.touchedCount == 6)
        #expect(bases.map { $0.load(fromByteOffset: 7, as: UInt8.self) } == [40, 41, 42, 0, 0, 0])
        while frames.pop() != nil {}
    }

    // MARK: Copies for a writer

    @Test func givesACopyWhenTheOriginalIsShared() throws {
        let origin = try TestPool(2)
        let copies = try TestPool(1)
        let frame = try origin.pool.lease()
        let other = frame.share()
        let copy = try copies.pool.leaseCopy(unlessUnique: frame)
        let isThere = copy != nil
        #expect(isThere)
        #expect(copies.pool.freeCount == 0)
        _ = consume copy
        _ = consume other
        let second = try copies.pool.leaseCopy(unlessUnique: frame)
        let isNone = second == nil
        #expect(isNone, "nobody else holds it now")
        #expect(copies.pool.freeCount == 1)
    }

    /// The copy pool is empty; the writer waits for a copy or for the others to let go, and either must wake it.
    @Test(arguments: [false, true])
    func wakesAWriterThatWaits(byReturnOfACopy: Bool) throws {
        let origin = try TestPool(2)
        let copies = try TestPool(1)
        origin.pool.addUniquenessListener(copies.pool)
        for round in 0..<100 {
            let frame = try origin.pool.lease()
            var other: Frame? = frame.share()
            var taken: Frame? = try copies.pool.lease()
            let outcome = Locked("")
            let lent = Locked<UnsafeMutablePointer<LeaseRecord>?>(frame.release().release())
            let writer = try TestThread("writer") {
                let frame = Frame(Lease(lent.withLock { $0! }))
                let copy = try? copies.pool.leaseCopy(unlessUnique: frame)
                let isCopy = copy != nil
                outcome.withLock { $0 = isCopy ? "copy" : "unique" }
            }
            if round < 3 { pauseTest(ms: 5) }
            if byReturnOfACopy { _ = taken.take() } else { _ = other.take() }
            guard writer.join(within: 120) else { break }
            let found = outcome.now
            #expect(found == (byReturnOfACopy ? "copy" : "unique"), "round \(round)")
            _ = taken.take()
            _ = other.take()
        }
        #expect(origin.pool.freeCount == 2 && copies.pool.freeCount == 1)
    }

    @Test func stopEndsAWriterWait() throws {
        let origin = try TestPool(2)
        let copies = try TestPool(0)
        copies.stop.raise()
        let frame = try origin.pool.lease()
        let other = frame.share()
        let error = #expect(throws: FrameHostError.self) { _ = try copies.pool.leaseCopy(unlessUnique: frame) }
        #expect(error?.code == .stopped)
        _ = consume other
    }

    // MARK: Leases

    @Test func countsLeasesBeyondWhatWasReserved() throws {
        let test = try TestPool(2, leasesPerBuffer: 2)
        let frame = try test.pool.lease()
        var shares = FrameRing(capacity: 16)
        for _ in 0..<3 { shares.push(frame.share(), keeping: 16) }
        #expect(test.pool.leaseGrowths == 0)
        for _ in 0..<6 { shares.push(frame.share(), keeping: 16) }
        #expect(test.pool.leaseGrowths == 2, "4, then 8, then 16")
        #expect(test.pool.holders().count == 10)
        while shares.pop() != nil {}
        for _ in 0..<9 { shares.push(frame.share(), keeping: 16) }
        #expect(test.pool.leaseGrowths == 2, "what has grown stays")
    }

    @Test func outlivesItsOwnerWhileALeaseIsOut() throws {
        var test: TestPool? = try TestPool(2)
        weak let watched = test!.pool
        var frame: Frame? = try test!.pool.lease()
        frame!.withMutablePlane(0) { $0.row(3)[5] = 42 }
        test = nil
        #expect(watched != nil)
        let pixel = frame!.withPlane(0) { $0.row(3)[5] }
        #expect(pixel == 42)
        frame = nil
        #expect(watched == nil)
    }

    /// Several threads let go of the last leases of a pool that nobody owns any more.
    @Test func goesOnceAfterItsLastLeaseOnWhateverThread() throws {
        for _ in 0..<100 {
            var test: TestPool? = try TestPool(4)
            weak let watched = test!.pool
            let gate = Locked(0)
            var threads: [TestThread] = []
            for _ in 0..<4 {
                let record = try test!.pool.lease().release().release()
                let lent = Locked<UnsafeMutablePointer<LeaseRecord>?>(record)
                threads.append(
                    try TestThread("holder") {
                        let record = lent.withLock { $0! }
                        gate.withLock { $0 += 1 }
                        while gate.now < 4 { sched_yield() }
                        _ = Lease(record)
                    })
            }
            test = nil
            for thread in threads { thread.join() }
            #expect(watched == nil)
        }
    }

    /// One thread lends, three share and return at random: nothing is lent twice, and all comes back.
    @Test func lendsNoBufferTwiceAmongManyThreads() throws {
        let test = try TestPool(6, leasesPerBuffer: 8)
        let boxes = (0..<3).map { _ in Locked<[UnsafeMutablePointer<LeaseRecord>]>([]) }
        let isOver = Locked(false)
        let threads = try boxes.map { box in
            try TestThread("holder") {
                while true {
                    let ending = isOver.now
                    let record = box.withLock { $0.popLast() }
                    guard let record else {
                        if ending { return }
                        usleep(20)
                        continue
                    }
                    let frame = Frame(Lease(record))
                    let stamp = UInt8(truncatingIfNeeded: frame.sequenceNumber)
                    let other = frame.share()
                    let found = other.withPlane(0) { $0.row(2)[1] }
                    if found != stamp { Issue.record("\(found) instead of \(stamp)") }
                }
            }
        }
        for number in 0..<5_000 {
            var frame = try test.pool.lease()
            frame.sequenceNumber = UInt64(number)
            frame.withMutablePlane(0) { $0.row(2)[1] = UInt8(truncatingIfNeeded: number) }
            for box in boxes.dropFirst() {
                let record = frame.share().release().release()
                box.withLock { $0.append(record) }
            }
            let record = frame.release().release()
            boxes[0].withLock { $0.append(record) }
        }
        isOver.set(true)
        for thread in threads { thread.join() }
        #expect(test.pool.census() == (free: 6, leased: 0))
        #expect(test.pool.leaseGrowths == 0)
    }

    @Test func saysWhenThereIsNoMemory() {
        let error = #expect(throws: FrameHostError.self) {
            _ = try AnonymousMemory().allocate(byteCount: 1 << 60, touching: false)
        }
        #expect(
            error?.description
                == "1152921504606846976 bytes of memory cannot be allocated: Cannot allocate memory. Use smaller pictures, shorter queues or fewer stages that hold frames."
        )
    }
}
