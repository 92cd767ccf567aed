// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

@Suite struct SlabTests {
    private func make(_ stop: StopSignal = StopSignal(), bytes: Int = 1024, units: Int = 4) throws -> Slab {
        try Slab(name: "h264", byteCount: bytes, unitCount: units, stop: stop)
    }

    @Test func refusesAUnitLargerThanAllThatIsReserved() throws {
        let slab = try make(bytes: 1000)
        let error = #expect(throws: FrameHostError.self) { _ = try slab.lease(byteCount: 1025) }
        #expect(
            error?.description
                == "h264: an access unit of 1025 bytes is larger than the 1024 bytes reserved for all access units. "
                + "Lower the bitrate, or raise \"link\": { \"megabytes\": … } of the stage that takes them.")
        #expect(error?.code == .exhausted)
        #expect(try slab.lease(byteCount: 1024).byteCount == 1024)
    }

    @Test func lendsBytesThatDoNotOverlap() throws {
        let slab = try make()
        var first = try slab.lease(byteCount: 100)
        var second = try slab.lease(byteCount: 200)
        first.withMutableBytes { $0.initializeMemory(as: UInt8.self, repeating: 1) }
        second.withMutableBytes { $0.initializeMemory(as: UInt8.self, repeating: 2) }
        let (ones, twos) = (
            first.withBytes { $0.filter { $0 == 1 }.count }, second.withBytes { $0.filter { $0 == 2 }.count }
        )
        #expect(ones == 100 && twos == 200)
        let usage = slab.usage
        #expect(usage.bytes == 128 + 256 && usage.units == 2)
    }

    @Test func sharesTheSameBytesAndTheHeader() throws {
        let slab = try make()
        var unit = try slab.lease(byteCount: 3)
        unit.withMutableBytes { $0.copyBytes(from: [7, 8, 9]) }
        unit.pts = MediaTime(nanoseconds: 5)
        unit.dts = MediaTime(nanoseconds: 4)
        unit.duration = MediaTime(nanoseconds: 3)
        unit.capturedAt = 2
        unit.sequenceNumber = 1
        unit.isKeyframe = true
        unit.isDiscontinuity = true
        unit.orientation = .left
        let other = unit.share()
        _ = consume unit
        #expect(other.withBytes { Array($0) } == [7, 8, 9])
        let header = [
            other.pts.nanoseconds, other.dts.nanoseconds, other.duration.nanoseconds, other.capturedAt,
            Int64(other.sequenceNumber),
        ]
        #expect(header == [5, 4, 3, 2, 1])
        let (isKeyframe, isDiscontinuity, orientation) = (other.isKeyframe, other.isDiscontinuity, other.orientation)
        #expect(isKeyframe && isDiscontinuity && orientation == .left)
        #expect(slab.census() == (free: 3, leased: 1))
        _ = consume other
        #expect(slab.census() == (free: 4, leased: 0))
        #expect(slab.usage.bytes == 0 && slab.usage.mostBytes == 64)
    }

    @Test func beginsEachUnitWithAFreshHeader() throws {
        let slab = try make(units: 1)
        do {
            let unit = try slab.lease(byteCount: 1)
            unit.isKeyframe = true
            unit.pts = MediaTime(nanoseconds: 9)
        }
        let unit = try slab.lease(byteCount: 1)
        let (isKeyframe, pts) = (unit.isKeyframe, unit.pts)
        #expect(!isKeyframe && pts == .zero)
    }

    @Test func waitsForBytesAndForUnits() throws {
        for (bytes, units, size) in [(1024, 8, 1024), (4096, 1, 64)] {
            let slab = try make(bytes: bytes, units: units)
            let first = try slab.lease(byteCount: size)
            let hasLeased = Locked(false)
            let other = try TestThread("encoder") {
                _ = try? slab.lease(byteCount: size)
                hasLeased.set(true)
            }
            pauseTest(ms: 20)
            #expect(!hasLeased.now)
            _ = consume first
            #expect(other.join())
            #expect(slab.usage.bytes == 0)
        }
    }

    @Test func stopEndsAWaitForRoom() throws {
        let stop = StopSignal()
        let slab = try make(stop)
        let first = try slab.lease(byteCount: 1024)
        let text = Locked("")
        let other = try TestThread("encoder") {
            do { _ = try slab.lease(byteCount: 1) } catch { text.withLock { $0 = "\(error)" } }
        }
        pauseTest(ms: 20)
        stop.raise()
        #expect(other.join())
        #expect(text.now == "h264: stopped while waiting for room.")
        _ = consume first
    }

    @Test func outlivesItsOwnerWhileALeaseIsOut() throws {
        var slab: Slab? = try make()
        weak let watched = slab
        var unit: AccessUnit? = try slab!.lease(byteCount: 8)
        slab = nil
        #expect(watched != nil)
        let count = unit!.withBytes { $0.count }
        #expect(count == 8)
        unit = nil
        #expect(watched == nil)
    }
}
