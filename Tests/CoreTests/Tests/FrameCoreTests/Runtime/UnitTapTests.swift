// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

/// Access units that are copied out of a running chain.
@Suite struct UnitTapTests {
    private func sketch(_ log: String, gop: Int = 1000, everyMs: Int = 1) throws -> ChainSketch {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 100000000, "everyMs": \#(everyMs)}"#)
        try sketch.add(UnitEncoder.self, "enc", options: #"{"gop": \#(gop), "bytes": 3000}"#)
        try sketch.add(UnitSink.self, "sink", options: #"{"log": "\#(log)"}"#)
        return sketch
    }

    /// The next units of the stage; fewer where they do not come.
    private func take(_ count: Int, from inbox: UnitInbox) -> [StageUnit] {
        var units: [StageUnit] = []
        while units.count < count, case .unit(_, let unit)? = inbox.take(within: 120) { units.append(unit) }
        return units
    }

    @Test func givesEachUnitFromTheNextOn() throws {
        // So slowly that the inbox does not fill while this thread is kept from taking.
        let driver = try RunningChainDriver(sketch("units-each", everyMs: 20))
        let inbox = try UnitInbox()
        let format = try driver.chain.watchUnits(of: "enc", for: inbox)
        #expect(format.codec == .h264)
        let units = take(60, from: inbox)
        try #require(units.count == 60)
        let first = units[0].header.sequenceNumber
        for (index, unit) in units.enumerated() {
            let number = first + UInt64(index)
            #expect(unit.header.sequenceNumber == number)
            #expect(unit.bytes.count == 3000 && unit.bytes[0] == UInt8(truncatingIfNeeded: number))
            #expect(unit.header.pts.nanoseconds == Int64(number) * 1_000_000 && unit.header.capturedAt > 0)
            #expect(unit.followsGap == (index == 0))
        }
        // Asking again leaves no gap.
        _ = try driver.chain.watchUnits(of: "enc", for: inbox)
        let more = take(20, from: inbox)
        #expect(more.map(\.header.sequenceNumber) == (0..<20).map { first + 60 + $0 })
        #expect(!more.contains { $0.followsGap })
        #expect(driver.finish().isSuccess)
    }

    @Test func asksTheEncoderForAKeyframe() throws {
        let driver = try RunningChainDriver(sketch("units-key"))
        let inbox = try UnitInbox()
        _ = try driver.chain.watchUnits(of: "enc", for: inbox)
        _ = take(3, from: inbox)
        // Older units may fill the inbox, so that the one that was asked for is lost.
        let deadline = ChainClock.system.now() + 60_000_000_000
        var hasCome = false
        while !hasCome, ChainClock.system.now() < deadline {
            #expect(driver.chain.requestKeyframe(of: "enc"))
            hasCome = take(100, from: inbox).contains { $0.header.isKeyframe && $0.header.sequenceNumber % 1000 != 0 }
        }
        #expect(hasCome)
        #expect(!driver.chain.requestKeyframe(of: "src"), "a source of pictures")
        #expect(!driver.chain.requestKeyframe(of: "nobody"))
        #expect(driver.finish().isSuccess)
    }

    @Test func refusesStagesWithoutUnits() throws {
        let driver = try RunningChainDriver(sketch("units-none"))
        let inbox = try UnitInbox()
        for stage in ["src", "sink"] {
            let error = #expect(throws: FrameHostError.self) { try driver.chain.watchUnits(of: stage, for: inbox) }
            #expect(error?.what == "gives no encoded video")
        }
        #expect(throws: FrameHostError.self) { try driver.chain.watchUnits(of: "nobody", for: inbox) }
        #expect(driver.finish().isSuccess)
    }

    /// Whoever takes too late loses the newest, and is told; the chain goes on.
    @Test func aSlowWatcherIsToldOfItsLoss() throws {
        let driver = try RunningChainDriver(sketch("units-slow"))
        let inbox = try UnitInbox(byteCount: 10_000)
        _ = try driver.chain.watchUnits(of: "enc", for: inbox)
        driver.waitForFrames(driver.chain.progress.captured + 100)
        let units = take(10, from: inbox)
        try #require(units.count == 10)
        for (before, unit) in zip(units, units.dropFirst()) {
            let isNext = unit.header.sequenceNumber == before.header.sequenceNumber + 1
            #expect(unit.followsGap == !isNext)
        }
        #expect(units.dropFirst().contains { $0.followsGap })
        #expect(driver.finish().isSuccess)
        #expect(driver.chain.ledger.isBalanced)
    }

    @Test func aUnitThatIsLargerThanAllRoomIsLost() throws {
        let driver = try RunningChainDriver(sketch("units-large"))
        let inbox = try UnitInbox(byteCount: 2999)
        _ = try driver.chain.watchUnits(of: "enc", for: inbox)
        driver.waitForFrames(20)
        if case .unit? = inbox.take(within: 0.05) { Issue.record("a unit of 3000 bytes in 2999") }
        #expect(driver.finish().isSuccess)
    }

    @Test func givesNothingAfterThat() throws {
        let driver = try RunningChainDriver(sketch("units-end"))
        let inbox = try UnitInbox()
        _ = try driver.chain.watchUnits(of: "enc", for: inbox)
        #expect(take(5, from: inbox).count == 5)
        driver.chain.unwatchUnits(of: "enc", for: inbox)
        while case .unit? = inbox.take(within: 0) {}
        if case .unit? = inbox.take(within: 0.1) { Issue.record("a unit after the end") }
        // Letting the inbox go does as well.
        do {
            let other = try UnitInbox()
            _ = try driver.chain.watchUnits(of: "enc", for: other)
            #expect(take(2, from: other).count == 2)
        }
        driver.waitForFrames(3)
        _ = try driver.chain.watchUnits(of: "enc", for: inbox)
        #expect(driver.finish().isSuccess)
        // The run's end is told behind the last unit.
        while true {
            guard let arrival = inbox.take(within: 120) else {
                Issue.record("no end")
                return
            }
            if case .ended(let stage) = arrival {
                #expect(stage == "enc")
                return
            }
        }
    }

    /// The ring's memory is used to its end and from its beginning again: every byte arrives, in order.
    @Test func keepsBytesInOrderThroughManyRounds() throws {
        let inbox = try UnitInbox(byteCount: 1000)
        var header = StageUnit.Header()
        var (next, taken): (UInt64, UInt64) = (0, 0)
        var seed: UInt64 = 7
        func size(_ number: UInt64) -> Int { Int(number &* 2_654_435_761 % 400) }
        for _ in 0..<20_000 {
            seed = seed &* 6_364_136_223_846_793_005 &+ 1
            if seed >> 33 & 1 == 0 {
                header.sequenceNumber = next
                let bytes = [UInt8](repeating: UInt8(truncatingIfNeeded: next), count: size(next))
                if bytes.withUnsafeBytes({ inbox.put("s", header, $0, followsGap: false) }) { next += 1 }
            } else if case .unit(_, let unit)? = inbox.take(within: 0) {
                #expect(unit.header.sequenceNumber == taken)
                #expect(unit.bytes.count == size(taken))
                #expect(unit.bytes.allSatisfy { $0 == UInt8(truncatingIfNeeded: taken) })
                taken += 1
            }
        }
        #expect(taken > 1000)
    }
}
