// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Testing

@testable import RTSPSink

@Suite struct GroupStoreTests {
    private static let limits = GroupStore.Limits(mostBytes: 1000, mostTicks: 90_000)

    /// A store that has been given these units: index, ticks, bytes, keyframe.
    private func store(_ units: [(Int, UInt32, Int, Bool)], limits: GroupStore.Limits = limits) throws -> (
        GroupStore, [GroupStore.Bound?]
    ) {
        let store = try GroupStore(limits: limits)
        return (store, units.map { Self.add(store, $0.0, $0.1, $0.2, $0.3) })
    }

    private static func add(_ store: GroupStore, _ index: Int, _ ticks: UInt32, _ count: Int, _ isKeyframe: Bool)
        -> GroupStore.Bound?
    {
        let unit = GroupStore.Unit(
            index: UInt64(index), offset: 0, byteCount: 0, timestamp: ticks,
            firstSequenceNumber: UInt16(truncatingIfNeeded: 3 * index), isKeyframe: isKeyframe)
        return [UInt8](repeating: UInt8(truncatingIfNeeded: index), count: count).withUnsafeBytes {
            store.add(unit, $0)
        }
    }

    private func bytes(_ store: GroupStore, _ index: Int) -> [UInt8]? {
        store.unit(from: UInt64(index)).map { Array(store.bytes(of: $0)) }
    }

    @Test func givesTheGroupFromItsKeyframeOn() throws {
        let (store, bounds) = try store([(4, 0, 10, false), (5, 100, 20, true), (6, 200, 30, false)])
        #expect(bounds == [nil, nil, nil])
        #expect(store.backlog?.keyframe.index == 5)
        #expect(store.backlog?.keyframe.firstSequenceNumber == 15)
        #expect(bytes(store, 5) == [UInt8](repeating: 5, count: 20))
        #expect(bytes(store, 6) == [UInt8](repeating: 6, count: 30))
        #expect(store.unit(from: 7) == nil)
        // Who is behind the keyframe goes on with it.
        #expect(store.unit(from: 2)?.index == 5)
        #expect(store.byteCount == 50 && store.ticks == 100)
    }

    @Test func aKeyframeBeginsAnew() throws {
        let (store, _) = try store([(0, 0, 900, true), (1, 1, 90, false), (2, 2, 900, true)])
        #expect(store.backlog?.keyframe.index == 2 && store.byteCount == 900 && store.count == 1)
        #expect(bytes(store, 1) == [UInt8](repeating: 2, count: 900))
    }

    @Test func saysOnceWhichBoundAGroupMeetsAndKeepsTheNextOne() throws {
        let (byBytes, first) = try store([(0, 0, 600, true), (1, 1, 401, false), (2, 2, 1, false), (3, 3, 1000, true)])
        #expect(first == [nil, .bytes, nil, nil])
        #expect(byBytes.backlog?.keyframe.index == 3)
        let (bySeconds, second) = try store([(0, .max, 6, true), (1, 89_999, 4, false), (2, 90_000, 1, false)])
        #expect(second == [nil, nil, .seconds])
        #expect(bySeconds.backlog == nil)
        // Who has begun may go on to where it ends.
        #expect(bySeconds.unit(from: 1)?.index == 1 && bySeconds.unit(from: 2) == nil)
        let (_, third) = try store([(0, 0, 1001, true), (1, 1, 1, false)])
        #expect(third == [.bytes, nil])
        let (_, many) = try store((0...1024).map { ($0, 0, 0, $0 == 0) })
        #expect(many.dropLast() == ArraySlice([GroupStore.Bound?](repeating: nil, count: 1024)))
        #expect(many.last == .units)
    }

    /// Times that step back, as of a file that is joined of several, or a clock that is wrong.
    @Test func isBoundedWhateverTheTimes() throws {
        let (_, bounds) = try store([(0, 200_000, 1, true), (1, 100_000, 1, false)])
        #expect(bounds == [nil, .seconds])
    }

    @Test func itsMemoryIsWhatItCounts() {
        let limits = GroupStore.Limits(seconds: 12, megabytes: 32)
        #expect(limits.mostUnits == 3000)
        #expect(limits.byteCount == 32_000_000 + 3000 * MemoryLayout<GroupStore.Unit>.stride)
        // The largest that options allow.
        #expect(GroupStore.Limits(seconds: 600, megabytes: 2048).byteCount < 2_060_000_000)
    }
}

/// Readers that catch up in what ``StreamHub`` keeps: each gets a run without gap, begun anew by keyframes alone.
@Suite struct CatchUpTests {
    private static func group(mostBytes: Int = 1 << 20) throws -> GroupStore {
        try GroupStore(limits: .init(mostBytes: mostBytes, mostTicks: 90_000 * 60))
    }

    private static func hub(_ group: GroupStore) -> StreamHub {
        StreamHub(
            path: "/a", ssrc: 1, clock: RTPClock(start: .max - 90_000), canonicalName: "a",
            queueLimits: .init(mostAge: 1 << 40, mostBytes: 1 << 20, mostStillness: 1 << 40),
            group: group, requestKeyframe: { Issue.record("nobody is to be asked") }, now: { 0 }, unixTime: { $0 })
    }

    /// Packs and publishes units as the stage does.
    private struct Publisher {
        let hub: StreamHub
        var packetizer = NALPacketizer(
            NALPacketizer.Sets(sps: H264PacketizerTests.sps, pps: H264PacketizerTests.pps), mostPacketBytes: 256,
            payloadType: 96, ssrc: 1,
            firstSequenceNumber: .max - 50)
        var ring = BlockRing(count: 4)
        var index: UInt64 = 0

        @discardableResult
        mutating func publish(isKeyframe: Bool, byteCount: Int = 600, report: [UInt8]? = nil) -> GroupStore.Bound? {
            let unit = H264PacketizerTests.annexB([
                [isKeyframe ? 0x65 : 0x41, UInt8(index & 0x7f) | 0x80] + H264PacketizerTests.unit(1, byteCount)
            ])
            let block = ring.next()
            unit.withUnsafeBytes { bytes in
                let plan = packetizer.plan(bytes, isKeyframe: isKeyframe)
                block.fill(
                    index: index, isKeyframe: isKeyframe, unit: bytes, plannedBytes: plan.byteCount,
                    timestamp: hub.clock.timestamp(ofPTS: Int64(index) * 33_366_667), report: report,
                    packetizer: &packetizer)
            }
            index += 1
            return hub.publish(block)
        }
    }

    /// A reader as both transports have it.
    private struct Reader {
        var next: UInt64
        var got: [UInt64] = []
        var sequence: UInt16?
        let block = MediaBlock()

        /// True when it has caught up.
        mutating func step(_ hub: StreamHub) -> Bool {
            switch hub.catchUp(next, into: block) {
            case .unit(let leftOut, _):
                #expect(block.index == next + UInt64(leftOut))
                // Nothing is left out but what stands before a keyframe.
                #expect(leftOut == 0 || block.isKeyframe)
                #expect(!block.packets.isEmpty && block.runs.reduce(0) { $0 + $1.packetCount } == block.packets.count)
                if let sequence, leftOut == 0 { #expect(block.firstSequenceNumber == sequence) }
                sequence = block.firstSequenceNumber &+ UInt16(block.packets.count)
                got.append(block.index)
                next = block.index + 1
                return false
            case .done(let index):
                #expect(index == next)
                return true
            case .lost:
                Issue.record("lost")
                return true
            }
        }
    }

    @Test func givesTheVeryPacketsWithoutTheSenderReport() throws {
        let group = try Self.group()
        let hub = Self.hub(group)
        var publisher = Publisher(hub: hub)
        publisher.publish(isKeyframe: true, report: hub.senderReport())
        publisher.publish(isKeyframe: false)
        let keyframe = try #require(group.backlog).keyframe
        #expect(keyframe.firstSequenceNumber == UInt16.max - 50)
        var reader = Reader(next: keyframe.index)
        let isFirstTheEnd = reader.step(hub)
        #expect(!isFirstTheEnd)
        // Each packet behind its interleaved frame, marker on the last.
        for (place, packet) in reader.block.packets.enumerated() {
            let header = reader.block.buffer.withUnsafeReadableBytes {
                RTPHeader(Array($0[packet.offset..<packet.offset + packet.byteCount]))
            }
            #expect(header?.sequenceNumber == (UInt16.max - 50) &+ UInt16(place))
            #expect(header?.timestamp == reader.block.timestamp)
            #expect(header?.marker == (place == reader.block.packets.count - 1))
        }
        #expect(reader.block.reports.pictures == nil && reader.block.byteCount == reader.block.mediaByteCount)
        let rest = [reader.step(hub), reader.step(hub)]
        #expect(rest == [false, true])
    }

    /// Readers that begin anywhere and take anything between nothing and all of it.
    @Test(arguments: 0..<20) func everyReaderHasARunFromAKeyframeOn(seed: UInt64) throws {
        var random = SplitMix(state: seed)
        let group = try Self.group()
        let hub = Self.hub(group)
        var publisher = Publisher(hub: hub)
        var readers: [(reader: Reader, slowness: UInt64, isDone: Bool)] = []
        for number in 0..<400 {
            publisher.publish(
                isKeyframe: number % 40 == 3 || random.next() % 50 == 0, byteCount: 20 + Int(random.next() % 3000))
            if random.next() % 5 == 0, let backlog = group.backlog {
                readers.append((Reader(next: backlog.keyframe.index), 1 + random.next() % 4, false))
            }
            for place in readers.indices where !readers[place].isDone {
                for _ in 0..<(random.next() % 4) where random.next() % readers[place].slowness == 0 {
                    if readers[place].reader.step(hub) {
                        readers[place].isDone = true
                        break
                    }
                }
            }
        }
        #expect(readers.count > 40 && readers.count { $0.isDone } > 10)
        for place in readers.indices where !readers[place].isDone { while !readers[place].reader.step(hub) {} }
        #expect(readers.allSatisfy { $0.reader.next == $0.reader.got.last! + 1 })
    }

    @Test func whoIsInAGroupThatGrowsTooLargeWaitsForTheNextKeyframe() throws {
        let group = try Self.group(mostBytes: 3000)
        let hub = Self.hub(group)
        var publisher = Publisher(hub: hub)
        publisher.publish(isKeyframe: true)
        let backlog = try #require(group.backlog)
        var met: [GroupStore.Bound?] = []
        for _ in 0..<10 { met.append(publisher.publish(isKeyframe: false)) }
        #expect(met.filter { $0 == .bytes }.count == 1)
        #expect(group.backlog == nil)
        var index = backlog.keyframe.index
        let block = MediaBlock()
        while case .unit = hub.catchUp(index, into: block) { index = block.index + 1 }
        #expect(index >= 2)
        #expect(hub.catchUp(index, into: block) == .lost(leftOut: Int(11 - index), nextIndex: 11))
        publisher.publish(isKeyframe: true)
        #expect(group.backlog?.keyframe.index == 11)
        #expect(hub.groupFigures?["tooLarge"]?.asInt == 1)
    }
}

/// Numbers by chance, the same in each run.
private struct SplitMix {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var word = state
        word = (word ^ word >> 30) &* 0xbf58_476d_1ce4_e5b9
        word = (word ^ word >> 27) &* 0x94d0_49bb_1331_11eb
        return word ^ word >> 31
    }
}
