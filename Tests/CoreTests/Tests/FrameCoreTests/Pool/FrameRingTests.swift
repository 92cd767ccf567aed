// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

@Suite struct FrameRingTests {
    private func numbered(_ test: TestPool, _ number: UInt64) throws -> Frame {
        let frame = try test.pool.lease()
        frame.sequenceNumber = number
        return frame
    }

    private func numbers(_ ring: borrowing FrameRing) -> [UInt64] {
        (0..<ring.count).compactMap { age in ring.withFrame(age: age) { $0.sequenceNumber } }
    }

    @Test(arguments: [1, 2, 3, 5]) func keepsTheNewestAndLetsTheOldestGo(capacity: Int) throws {
        let test = try TestPool(capacity + 1)
        var ring = FrameRing(capacity: capacity)
        for number in 0..<20 {
            ring.append(try numbered(test, UInt64(number)))
            let kept = numbers(ring)
            #expect(kept == (0..<min(number + 1, capacity)).map { UInt64(number - $0) })
            #expect(test.pool.freeCount == capacity + 1 - kept.count)
        }
        let isFull = ring.isFull
        #expect(isFull)
    }

    @Test func givesTheOldestFirstAndThenNothing() throws {
        let test = try TestPool(4)
        var ring = FrameRing(capacity: 3)
        for number in 0..<5 { ring.append(try numbered(test, UInt64(number))) }
        var taken: [UInt64] = []
        while let frame = ring.takeOldest() { taken.append(frame.sequenceNumber) }
        #expect(taken == [2, 3, 4])
        #expect(test.pool.freeCount == 4)
        let isEmpty = ring.isEmpty
        #expect(isEmpty)
        ring.append(try numbered(test, 9))
        #expect(numbers(ring) == [9])
    }

    @Test func hasNoFrameOfAnAgeBeyondItsCount() throws {
        let test = try TestPool(2)
        var ring = FrameRing(capacity: 2)
        ring.append(try numbered(test, 0))
        let missing = [-1, 1, 2, 100].compactMap { age in ring.withFrame(age: age) { $0.sequenceNumber } }
        #expect(missing.isEmpty)
    }

    @Test func returnsAllBuffersAtItsEndAndWhenAsked() throws {
        let test = try TestPool(3)
        do {
            var ring = FrameRing(capacity: 3)
            for number in 0..<3 { ring.append(try numbered(test, UInt64(number))) }
            ring.removeAll()
            #expect(test.pool.freeCount == 3)
            ring.append(try numbered(test, 7))
            #expect(test.pool.freeCount == 2)
        }
        #expect(test.pool.freeCount == 3)
        #expect(test.pool.census() == (free: 3, leased: 0))
    }

    @Test func keepsNothingWithoutRoom() throws {
        let test = try TestPool(1)
        var ring = FrameRing(capacity: 0)
        ring.append(try numbered(test, 0))
        #expect(test.pool.freeCount == 1)
        let taken = ring.takeOldest()?.sequenceNumber
        #expect(taken == nil)
    }
}
