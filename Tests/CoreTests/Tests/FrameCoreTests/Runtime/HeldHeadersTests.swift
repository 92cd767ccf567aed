// SPDX-License-Identifier: Apache-2.0

import Synchronization
import Testing

@testable import FrameCore

/// Counts how many of it are alive.
private final class Witness: Codable, Sendable {
    static let count = Atomic<Int>(0)
    init() { Self.count.add(1, ordering: .relaxed) }
    init(from decoder: any Decoder) throws { Self.count.add(1, ordering: .relaxed) }
    func encode(to encoder: any Encoder) throws {}
    deinit { Self.count.subtract(1, ordering: .relaxed) }
    static var alive: Int { count.load(ordering: .relaxed) }
}

private struct Seen: FrameMetadata {
    static let metadataName = "seen"
    var number: Int
    var witness = Witness()
}

/// What frames say, through a stage that holds and reorders, to the units of the same pictures.
@Suite(.serialized) struct HeldHeadersTests {
    private let layout = MetadataLayout([Seen.self, Mark.self])

    /// A frame of number and PTS `number`, as the table gets it.
    private func note(_ number: Int, in held: HeldHeaders, _ pool: FramePool, gap: Bool = false) throws {
        let frame = try pool.lease()
        frame.pts = MediaTime(nanoseconds: Int64(number))
        frame.sequenceNumber = UInt64(number)
        frame.isDiscontinuity = gap
        frame[layout.slot(for: Seen.self)!] = Seen(number: number)
        held.note(frame.record.pointee.header)
    }

    /// The number that the unit of this PTS is told of; nil for none.
    private func answer(
        _ pts: Int, dts: Int, from held: HeldHeaders, _ slab: Slab, followsGap: Bool = false
    ) throws -> Int? {
        let unit = try slab.lease(byteCount: 1)
        unit.pts = MediaTime(nanoseconds: Int64(pts))
        unit.dts = MediaTime(nanoseconds: Int64(dts))
        _ = held.answer(&unit.record.pointee.header)
        #expect(unit.isDiscontinuity == followsGap, "unit \(pts)")
        let seen = unit[layout.slot(for: Seen.self)!]
        #expect(seen == nil || unit.sequenceNumber == UInt64(pts))
        return seen?.number
    }

    private func made() throws -> (pool: FramePool, slab: Slab) {
        let slab = try Slab(name: "units", byteCount: 1 << 16, unitCount: 8, metadata: layout, stop: StopSignal())
        return (try TestPool(2, metadata: layout).pool, slab)
    }

    @Test func givesEachAnswerWhatItsItemSaidInAnyOrder() throws {
        let (pool, slab) = try made()
        let held = HeldHeaders(capacity: 5, layout)
        for number in 1...4 { try note(number, in: held, pool) }
        #expect(try answer(4, dts: 0, from: held, slab) == 4)
        #expect(try answer(1, dts: 1, from: held, slab) == 1)
        #expect(try answer(2, dts: 2, from: held, slab) == 2)
        #expect(try answer(3, dts: 3, from: held, slab) == 3)
        #expect(held.count == 0)
        #expect(Witness.alive == 0)
    }

    @Test func givesOfEqualTimesTheFirst() throws {
        let (pool, slab) = try made()
        let held = HeldHeaders(capacity: 5, layout)
        try note(7, in: held, pool)
        let twin = try pool.lease()
        twin.pts = MediaTime(nanoseconds: 7)
        held.note(twin.record.pointee.header)
        #expect(try answer(7, dts: 7, from: held, slab) == 7)
        #expect(held.count == 0, "the other can have no answer any more")
    }

    @Test func forgetsWhatCanHaveNoAnswerAndHandsItsGapOn() throws {
        let (pool, slab) = try made()
        let held = HeldHeaders(capacity: 5, layout)
        try note(1, in: held, pool, gap: true)
        try note(2, in: held, pool)
        try note(3, in: held, pool)
        #expect(try answer(3, dts: 0, from: held, slab) == 3)
        #expect(held.count == 2)
        #expect(try answer(2, dts: 1, from: held, slab, followsGap: true) == 2)
        #expect(held.count == 0)
        try note(4, in: held, pool)
        #expect(try answer(4, dts: 4, from: held, slab) == 4, "the gap is told once")
        #expect(Witness.alive == 0)
    }

    @Test func forgetsTheFirstWhereThereIsNoRoom() throws {
        let (pool, slab) = try made()
        let held = HeldHeaders(capacity: 2, layout)
        try note(1, in: held, pool, gap: true)
        for number in 2...3 { try note(number, in: held, pool) }
        #expect(Witness.alive == 2)
        #expect(try answer(3, dts: 0, from: held, slab, followsGap: true) == 3)
        #expect(try answer(2, dts: 1, from: held, slab) == 2)
    }

    @Test func forgetsWhatWasDroppedBeforeWhatIsHeld() throws {
        let (pool, slab) = try made()
        let held = HeldHeaders(capacity: 3, layout)
        try note(1, in: held, pool)
        for number in 2...9 {
            try note(number, in: held, pool)
            held.doubt()
        }
        try note(10, in: held, pool)
        #expect(try answer(10, dts: 0, from: held, slab) == 10)
        #expect(try answer(1, dts: 1, from: held, slab) == 1)
    }

    @Test func letsGoOfEveryValueAtItsEnd() throws {
        let (pool, _) = try made()
        do {
            let held = HeldHeaders(capacity: 9, layout)
            for number in 1...20 { try note(number, in: held, pool) }
            #expect(Witness.alive == 9)
        }
        #expect(Witness.alive == 0)
    }

    @Test func staysRightThroughAThousandRandomPictures() throws {
        let (pool, slab) = try made()
        var random = SystemRandomNumberGenerator()
        for delay in [0, 1, 4, 16] {
            let held = HeldHeaders(capacity: delay + 2, layout)
            var inside: [Int] = []
            for number in 1...1000 {
                try note(number, in: held, pool)
                if Int.random(in: 0..<4, using: &random) == 0 {
                    held.doubt()
                    continue
                }
                inside.append(number)
                guard inside.count > delay else { continue }
                let picture = inside.remove(at: Int.random(in: 0..<inside.count, using: &random))
                let dts = min(picture, inside.min() ?? picture) - 1
                #expect(try answer(picture, dts: dts, from: held, slab) == picture)
            }
            #expect(held.count <= delay + 2)
        }
        #expect(Witness.alive == 0)
    }

    // MARK: In a chain

    private func chain(_ log: String, encoder: String, queue: Int? = nil) throws -> ChainSketch {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 400}"#)
        try sketch.add(MarkFilter.self, "mark")
        try sketch.add(ReorderingEncoder.self, "h264", options: encoder, link: LinkRequest(queue: queue))
        try sketch.add(MarkSink.self, "file", options: #"{"log": "\#(log)"}"#)
        try sketch.add(MarkSink.self, "net", options: #"{"log": "\#(log)-net"}"#, from: ["h264"])
        return sketch
    }

    @Test(arguments: [0, 1, 3, 8]) func carriesMetadataThroughAnEncoderThatReorders(bframes: Int) throws {
        let log = "carry-\(bframes)"
        let result = try Chain(
            chain(log, encoder: #"{"bframes": \#(bframes)}"#, queue: bframes == 3 ? 2 : nil).request
        ).run()
        #expect(result.isSuccess, "\(result)")
        for entries in [MarkSink.log(log), MarkSink.log("\(log)-net")] {
            #expect(entries.count == 400)
            let broken = entries.filter { !$0.isWhole }
            #expect(broken.isEmpty, "\(broken.first.map { "\($0)" } ?? "")")
            #expect(Set(entries.map(\.picture)).count == 400)
        }
        let isReordered = MarkSink.log(log).map(\.picture) != (0..<400).map { UInt64($0) }
        #expect(isReordered == (bframes > 0))
    }

    @Test func keepsMetadataApartFromPicturesThatTheEncoderDrops() throws {
        let result = try Chain(chain("carry-drop", encoder: #"{"bframes": 3, "dropEvery": 7}"#).request).run()
        #expect(result.isSuccess, "\(result)")
        let entries = MarkSink.log("carry-drop")
        #expect(entries.count == 400 - 58)
        #expect(entries.allSatisfy { $0.mark?.number == $0.picture && $0.number == $0.picture })
        // 0, 70, 140 … were dropped and followed a gap: their followers in decoding order say so.
        #expect(entries.filter(\.isDiscontinuity).count == 40)
    }

    @Test func carriesMetadataThroughADecoderToo() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 300}"#)
        try sketch.add(MarkFilter.self, "mark")
        try sketch.add(ReorderingEncoder.self, "h264", options: #"{"bframes": 3}"#)
        try sketch.add(SortingDecoder.self, "back")
        try sketch.add(MarkSink.self, "show", options: #"{"log": "decoded"}"#)
        let result = try Chain(sketch.request).run()
        #expect(result.isSuccess, "\(result)")
        let entries = MarkSink.log("decoded")
        #expect(entries.map(\.picture) == (0..<300).map { UInt64($0) })
        #expect(entries.allSatisfy { $0.mark?.number == $0.picture && $0.number == $0.picture })
        #expect(entries.allSatisfy { $0.isDiscontinuity == ($0.picture % 10 == 0) })
    }

    /// An encoder that takes another's place begins with a table of its own; what the old one holds it still answers.
    @Test func losesNothingWhereAnEncoderIsReplaced() throws {
        func sketch(_ bframes: Int) throws -> ChainSketch {
            var sketch = ChainSketch()
            try sketch.add(CountingSource.self, "src", options: #"{"count": 1000000, "everyMs": 1}"#)
            try sketch.add(MarkFilter.self, "mark")
            try sketch.add(ReorderingEncoder.self, "h264", options: #"{"bframes": \#(bframes)}"#)
            try sketch.add(MarkSink.self, "file", options: #"{"log": "carry-replace"}"#)
            return sketch
        }
        let driver = try RunningChainDriver(try sketch(3))
        for bframes in [1, 3, 2] {
            driver.waitForFrames(driver.chain.progress.captured + 10)
            let answer = driver.change(to: try sketch(bframes))
            #expect(answer.isOK, "\(answer.error)")
        }
        driver.waitForFrames(driver.chain.progress.captured + 10)
        let result = driver.finish()
        #expect(result.isSuccess, "\(result)")
        let entries = MarkSink.log("carry-replace")
        #expect(entries.count > 30)
        #expect(entries.map(\.picture).sorted() == (0..<entries.count).map { UInt64($0) })
        #expect(entries.allSatisfy { $0.mark?.number == $0.picture && $0.number == $0.picture })
    }

    // MARK: Faults

    @Test func saysOnceThatAnAnswerHasATimeThatNoItemHad() throws {
        let driver = try StageDriver(
            ReorderingEncoder.self, options: #"{"bframes": 0, "off": 5}"#,
            input: .video(VideoFormat(.gray8, width: 16, height: 16, frameRate: Rational(1000))),
            metadata: [Mark.self])
        let slot = try #require(driver.context.slot(for: Mark.self))
        for _ in 0..<4 { try driver.send(driver.makeFrame { $0[slot] = Mark(number: $0.sequenceNumber, text: "") }) }
        let events = driver.takeEvents().filter { $0.name == "metadata-lost" }
        #expect(
            events.map(\.text) == [
                "reordering-encoder (reordering-encoder) gave an output the PTS 0.000 s (5 ns), but holds no input with this PTS: the metadata of the picture is lost."
                    + " In the plugin, give each output the PTS of its input; if the plugin is not yours, tell its author."
            ])
    }

    @Test func saysNothingOfOtherTimesWhereThereIsNoMetadata() throws {
        let driver = try StageDriver(
            ReorderingEncoder.self, options: #"{"bframes": 0, "off": 5}"#,
            input: .video(VideoFormat(.gray8, width: 16, height: 16, frameRate: Rational(1000))))
        for _ in 0..<4 { try driver.send(driver.makeFrame()) }
        #expect(driver.takeEvents().isEmpty)
    }
}
