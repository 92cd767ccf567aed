// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

@Suite struct BufferLenderTests {
    private let format = VideoFormat(.i420, width: 33, height: 17)

    @Test func lendsNoMoreThanItsCountAndLeavesTheRest() throws {
        let pool = try TestPool(3, format)
        let lender = BufferLender(pool: pool.pool, count: 2, holderCode: 0)
        let loans = [lender.lend(), lender.lend()].compactMap { $0 }
        #expect(loans.count == 2 && lender.count == 2)
        #expect(lender.lend() == nil, "two are out")
        #expect(pool.pool.freeCount == 1)
        lender.takeBack(loans[0])
        let frame = pool.pool.tryLease()
        let other = pool.pool.tryLease()
        let isLent = frame != nil && other != nil
        #expect(isLent && pool.pool.freeCount == 0)
        #expect(lender.lend() == nil, "no buffer is free")
        #expect(pool.pool.starvedSinceTime == nil, "finding none is no starvation")
        lender.takeBack(loans[1])
        #expect(lender.lend() != nil)
    }

    @Test func sharesTheBufferAndKeepsItUntilBothLetGo() throws {
        let pool = try TestPool(1, format)
        let lender = BufferLender(pool: pool.pool, count: 1, holderCode: 0)
        let loan = try #require(lender.lend())
        lender.plane(0, of: loan).row(16)[32] = 77
        do {
            let frame = lender.share(loan)
            let isShared = !frame.isUnique
            #expect(isShared)
            let pixel = frame.withPlane(0) { $0.row(16)[32] }
            #expect(pixel == 77)
            lender.takeBack(loan)
            let isUnique = frame.isUnique
            #expect(isUnique && pool.pool.freeCount == 0)
        }
        #expect(pool.pool.freeCount == 1)
    }

    @Test func takesBackWhatIsStillOutWhenItGoes() throws {
        let pool = try TestPool(2, format)
        var lender: BufferLender? = BufferLender(pool: pool.pool, count: 2, holderCode: 0)
        #expect(lender?.lend() != nil && lender?.lend() != nil)
        #expect(pool.pool.freeCount == 0)
        lender = nil
        #expect(pool.pool.freeCount == 2)
    }

    @Test func laysPlanesOutWithTheRoomALibraryAsksFor() throws {
        let padding = BufferPadding(widthAlignment: 32, heightAlignment: 16, extraBytes: 100)
        let layout = BufferLayout(format, padding: padding)
        // 33 wide is 64 with padding: 64 and 32 bytes a row, in strides of 64; 17 rows are 32, and 16 of chroma.
        #expect(layout.strides == [64, 64, 64])
        let luma = (64 * 32 + 100 + 63) / 64 * 64
        let chroma = (64 * 16 + 100 + 63) / 64 * 64
        #expect(layout.offsets == [0, luma, luma + chroma])
        #expect(layout.byteCount == 8192 && layout.byteCount >= luma + 2 * chroma)
        #expect(BufferLayout(format).offsets == [0, 64 * 17, 64 * (17 + 9)])
        let stop = StopSignal()
        let pool = try FramePool(
            name: "padded", format: format, padding: padding, bufferCount: 2, stop: stop, clock: ManualClock(at: 0))
        guard var frame = pool.tryLease() else { throw FrameHostError(.broken, what: "the pool is empty") }
        for index in 0..<3 {
            frame.withMutablePlane(index) { plane in
                #expect(
                    plane.strideBytes == 64 && plane.rowBytes == (index == 0 ? 33 : 17)
                        && plane.height == (index == 0 ? 17 : 9))
                for y in 0..<plane.height { plane.row(y).update(repeating: UInt8(index + 1)) }
            }
        }
        let last = frame.withPlane(1) { $0.row(8)[16] }
        #expect(last == 2)
    }
}
