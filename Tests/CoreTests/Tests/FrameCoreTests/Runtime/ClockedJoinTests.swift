// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

/// Joins that give pictures by the clock, on the real runner.
@Suite struct ClockedJoinTests {
    private func chain(
        _ log: String, live: Bool = true, everyMs: [Int] = [4, 7], join: JoinRequest? = nil
    ) throws -> ChainSketch {
        var sketch = ChainSketch()
        for (index, step) in everyMs.enumerated() {
            try sketch.add(
                CountingSource.self, "src\(index)",
                options: #"{"count": 1000000, "everyMs": \#(step), "live": \#(live)}"#, from: [])
        }
        try sketch.add(
            TickJoin.self, "tick", options: #"{"rate": 100}"#, from: everyMs.indices.map { "src\($0)" })
        sketch.request.stages[everyMs.count].join = join
        try sketch.add(RecordingSink.self, "file", options: #"{"log": "\#(log)"}"#)
        return sketch
    }

    @Test func goesOnWhateverItsInputsDo() throws {
        let driver = try RunningChainDriver(try chain("clocked"))
        let join = try #require(driver.chain.graph.runner(id: "tick"))
        func waitForEmitted(_ count: Int) {
            #expect(eventually { join.counters.emitted.value >= count }, "\(join.counters.emitted.value) of \(count)")
        }
        waitForEmitted(30)
        for source in ["src0", "src1"] {
            #expect(driver.answer { driver.chain.pause(stage: source, isDropping: true, reply: $0) }.isOK)
        }
        waitForEmitted(join.counters.emitted.value + 30)
        for source in ["src0", "src1"] {
            #expect(driver.answer { driver.chain.resume(stage: source, reply: $0) }.isOK)
        }
        waitForEmitted(join.counters.emitted.value + 10)
        let result = driver.finish()
        #expect(result.keepsItsPromises, "\(result)")
        let entries = RecordingSink.log("clocked").entries
        #expect(entries.count > 60)
        #expect(entries.map(\.sequence) == (0..<entries.count).map(UInt64.init), "its own numbers, none missing")
        let times = RecordingSink.log("clocked").milliseconds
        #expect(zip(times.dropFirst(), times).allSatisfy { $0 - $1 >= 9 }, "times rise by a tick")
        #expect(join.counters.made.value >= 25, "pictures of no new item: \(join.counters.made.value)")
        #expect(driver.chain.ledger.isBalanced, "\(driver.chain.ledger)")
        for pool in driver.chain.pools { #expect(pool.freeCount == pool.bufferCount, "\(pool.name)") }
    }

    /// Nothing waits for the clock, so what the join cannot give at a tick is lost, and said as a live source's loss is.
    @Test func whatItCannotGiveInTimeIsLostAndSaid() throws {
        var sketch = ChainSketch()
        for id in ["src0", "src1"] {
            try sketch.add(
                CountingSource.self, id, options: #"{"count": 100000000, "everyMs": 5, "live": true}"#, from: [])
        }
        try sketch.add(TickJoin.self, "late", options: #"{"rate": 100}"#, from: ["src0", "src1"])
        try sketch.add(RecordingSink.self, "slow", options: #"{"log": "clocked-late", "sleepUs": 100000}"#)
        let driver = try RunningChainDriver(sketch)
        let join = try #require(driver.chain.graph.runner(id: "late"))
        let event = try #require(
            driver.waitForEvent {
                $0.name == "frames-dropped" && $0.stage == "late" && $0.details["tooSlow"]?.asString == "slow"
            })
        #expect(event.level == .warning && event.details["reason"]?.asString == "missed", "\(event)")
        #expect(event.text.contains(" dropped at late (not made in time), "), "\(event.text)")
        let stages = driver.chain.metrics["stages"]?.asArray ?? []
        let shown = stages.first { $0["id"]?.asString == "late" }?["dropped"]?["missed"]?.asInt
        #expect((shown ?? 0) > 0)
        let result = driver.finish()
        #expect(result.keepsItsPromises, "\(result)")
        #expect(join.dropCount(.missed) == TickJoin.missed("late"))
        #expect(driver.chain.ledger.isBalanced && driver.chain.ledger.dropped >= join.dropCount(.missed))
        #expect(
            result.drops.contains { $0.contains(" lost at late: slow (recording-sink) was too slow") },
            "\(result.drops)")
    }

    /// Of each input one in hand and the last one, which it gives again, and one that it makes.
    @Test func figuresCountThePicturesThatItKeeps() throws {
        let driver = try RunningChainDriver(try chain("clocked-held"))
        #expect(eventually { driver.chain.runners.prefix(2).allSatisfy { $0.counters.emitted.value > 0 } })
        for source in ["src0", "src1"] {
            #expect(driver.answer { driver.chain.pause(stage: source, isDropping: true, reply: $0) }.isOK)
        }
        func figure(_ id: String, _ key: String) -> Int? {
            driver.chain.metrics["stages"]?.asArray?.first { $0["id"]?.asString == id }?[key]?.asInt
        }
        #expect(figure("tick", "heldLimit") == 5)
        #expect(eventually { figure("tick", "held") == 2 }, "the last one of each input")
        #expect(figure("src0", "heldLimit") == 1 && figure("file", "heldLimit") == 1)
        #expect(driver.finish().keepsItsPromises)
    }

    @Test func refusesWhatKeepsNoTimeBesideALiveInputAndWhatLeads() throws {
        #expect {
            var mixed = ChainSketch()
            for (id, live) in [("src0", false), ("src1", true)] {
                try mixed.add(
                    CountingSource.self, id, options: #"{"everyMs": 5, "live": \#(live)}"#, from: [])
            }
            try mixed.add(TickJoin.self, "tick", options: #"{"rate": 100}"#, from: ["src0", "src1"])
            try mixed.add(RecordingSink.self, "file", options: #"{"log": "refused"}"#)
            _ = try Chain.plan(mixed.request)
        } throws: {
            "\($0)".contains(
                "'src0' gives pictures as fast as it can, not in real time, and 'tick' takes only the newest one at each tick of its clock: most would be lost"
            )
        }
        #expect {
            _ = try Chain.plan(try chain("refused", join: JoinRequest(match: .exact, lead: 1)).request)
        } throws: {
            "\($0)".contains("join.match") && "\($0)".contains("join.lead")
                && "\($0)".contains("each from the newest pictures of its inputs, so 'match' has no effect")
        }
    }

    /// 700 and 400 pictures of a millisecond, of which every tenth is shown: no clock is waited for, and what is given does not
    /// depend on which source is faster.
    @Test(arguments: [JoinEnd.first, .last]) func followsTheTimesOfInputsThatAreNotLive(end: JoinEnd) throws {
        for round in 0..<6 {
            let log = "by-times-\(end)-\(round)"
            var sketch = ChainSketch()
            for (id, count) in [("src0", 700), ("src1", 400)] {
                try sketch.add(CountingSource.self, id, options: #"{"count": \#(count)}"#, from: [])
            }
            try sketch.add(TickJoin.self, "tick", options: #"{"rate": 100}"#, from: ["src0", "src1"])
            sketch.request.stages[2].join = JoinRequest(whenEnded: end)
            try sketch.add(RecordingSink.self, "file", options: #"{"log": "\#(log)", "sleepUs": \#(round * 20)}"#)
            let chain = try Chain(sketch.request)
            let (result, _) = ChainTests.run(chain)
            #expect(result.keepsItsPromises, "\(result)")
            #expect(chain.ledger.isBalanced, "\(chain.ledger)")
            for pool in chain.pools { #expect(pool.freeCount == pool.bufferCount, "\(pool.name)") }
            let given = RecordingSink.log(log)
            let count = end == .last ? 70 : 40
            #expect(given.milliseconds == (0..<count).map { Int64($0) * 10 })
            // The one of the tick's time, or a millisecond later, as containers round them.
            #expect(given.entries.map(\.pixel) == (0..<count).map { UInt8(truncatingIfNeeded: min($0 * 10 + 1, 699)) })
        }
    }

    /// Two branches of one source of which one is behind: neither waits for the other for ever.
    @Test func waitsForBranchesOfOneSource() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 500}"#, from: [])
        try sketch.add(AddOne.self, "slow", from: ["src"])
        try sketch.add(TickJoin.self, "tick", options: #"{"rate": 250}"#, from: ["src", "slow"])
        try sketch.add(RecordingSink.self, "file", options: #"{"log": "by-times-branches"}"#)
        let chain = try Chain(sketch.request)
        let (result, _) = ChainTests.run(chain)
        #expect(result.keepsItsPromises, "\(result)")
        #expect(RecordingSink.log("by-times-branches").entries.count == 125)
        #expect(chain.ledger.isBalanced, "\(chain.ledger)")
    }

    @Test(arguments: [JoinEnd.first, .last]) func endsWithItsInputs(end: JoinEnd) throws {
        var sketch = ChainSketch()
        // Far more than can come while the short one ends, or else few enough to wait for.
        let longCount = end == .first ? 1_000_000 : 60
        for (id, count) in [("short", 20), ("long", longCount)] {
            try sketch.add(
                CountingSource.self, id, options: #"{"count": \#(count), "everyMs": 5, "live": true}"#, from: [])
        }
        try sketch.add(
            TickJoin.self, "tick", options: #"{"rate": 100}"#, from: ["short", "long"])
        sketch.request.stages[2].join = JoinRequest(whenEnded: end)
        try sketch.add(RecordingSink.self, "file", options: #"{"log": "clocked-\#(end)"}"#)
        let chain = try Chain(sketch.request)
        let (result, _) = ChainTests.run(chain)
        #expect(result.keepsItsPromises, "\(result)")
        #expect(chain.ledger.isBalanced)
        let long = try #require(chain.graph.runner(id: "long"))
        #expect((long.counters.made.value == longCount) == (end == .last), "\(long.counters.made.value)")
    }

    /// A switch would take an input that ends before it knows of the run's end for a lost one.
    @Test func knowsOfTheEndBeforeItsInputsEnd() throws {
        for round in 0..<20 {
            let driver = try RunningChainDriver(
                try chain("clocked-end-\(round)", everyMs: [Int](repeating: 5, count: 16)))
            driver.waitForFrames(20)
            let contexts = driver.chain.runners.filter { $0.kind == .source }.map(\.shown.context)
            let join = try #require(driver.chain.graph.runner(id: "tick")).shown.context
            let isAhead = Locked(false)
            let watch = try TestThread("ends") {
                while !join.isEnded {
                    if contexts.contains(where: \.isEnded), !join.isEnded { isAhead.withLock { $0 = true } }
                }
            }
            let result = driver.finish()
            watch.join()
            #expect(result.keepsItsPromises, "\(result)")
            #expect(!isAhead.now, "round \(round): a source was told before the join")
        }
    }

    /// It waits for no input and no link before it blocks: nothing may stand still, with as few buffers as planned.
    @Test func aSlowReaderBehindItKeepsNoSource() throws {
        var sketch = try chain("clocked-slow")
        sketch.request.stages.removeLast()
        try sketch.add(
            RecordingSink.self, "file", options: #"{"log": "clocked-slow", "sleepUs": 30000}"#, from: ["tick"],
            link: LinkRequest(queue: 1, whenFull: .wait))
        let driver = try RunningChainDriver(sketch)
        driver.waitForFrames(300)
        let result = driver.finish()
        #expect(result.keepsItsPromises, "\(result)")
        let join = try #require(driver.chain.graph.runner(id: "tick"))
        #expect(TickJoin.missed("tick") > 10, "ticks it was kept from are left out")
        #expect(driver.chain.graph.runner(id: "src0").map { $0.dropCount(.noBuffer) } == 0)
        #expect(join.counters.emitted.value == RecordingSink.log("clocked-slow").entries.count)
        #expect(driver.chain.ledger.isBalanced)
    }
}

/// Gives a frame each tick, with the first pixel of its first input.
final class TickJoin: Join {
    static let info = StageInfo(id: "tick-join", summary: "Ticks.", input: .video(.gray8), output: .video(.gray8))

    struct Options: StageOptions { @Option(help: "Rate.", range: 1...1000) var rate = 100 }

    private static let missedByID = Locked<[String: Int]>([:])
    static func missed(_ id: String) -> Int { missedByID.withLock { $0[id] ?? 0 } }

    var options: Options
    private let context: StageContext

    init(options: Options, context: StageContext) {
        self.options = options
        self.context = context
    }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.outputRate = Rational(Int32(options.rate))
        return demand
    }

    var activeInput: Int? { 0 }

    func negotiate(_ inputs: [MediaFormat]) throws -> MediaFormat { inputs[0] }

    func merge(_ inputs: JoinInputs, _ output: Output) throws {
        let (id, missed) = (context.stageID, inputs.missed)
        Self.missedByID.withLock { $0[id, default: 0] += missed }
        guard var frame = try output.makeFrame() else { return }
        frame.pts = inputs.time
        if case .frame(let first)? = inputs.take(0) {
            let value = first.withPlane(0) { $0.row(0)[0] }
            frame.withMutablePlane(0) { plane in for y in 0..<plane.height { plane.row(y).update(repeating: value) } }
        }
        try output.emit(frame)
    }
}
