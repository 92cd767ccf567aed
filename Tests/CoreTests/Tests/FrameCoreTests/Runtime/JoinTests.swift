// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import FrameCore

/// Gives frames at `startUs`, `startUs + stepUs` …, rounded down to `roundUs`; endless with `count` 0.
final class TimedSource: Source {
    static let info = StageInfo(id: "timed-source", summary: "Gives at times.", output: .video(.gray8))

    struct Options: StageOptions {
        @Option(help: "Frames.") var count = 0
        @Option(help: "First PTS.") var startUs = 0
        @Option(help: "From frame to frame.") var stepUs = 33_333
        @Option(help: "What times are rounded down to.", range: 1...1_000_000) var roundUs = 1
        @Option(help: "Live.") var live = false
    }

    var options: Options
    let context: StageContext
    private var next = 0
    private var origin: Int64 = 0

    init(options: Options, context: StageContext) {
        self.options = options
        self.context = context
    }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.isLive = options.live
        return demand
    }

    func negotiate() throws -> MediaFormat {
        .video(
            VideoFormat(.gray8, width: 16, height: 16, frameRate: Rational(1_000_000, Int32(options.stepUs))))
    }

    func produce(_ output: Output) throws -> SourceProgress {
        if options.count > 0, next >= options.count { return .ended }
        var time = Int64((options.startUs + next * options.stepUs) / options.roundUs * options.roundUs) * 1000
        if options.live {
            // Two of the same step keep their phase, whichever begins first.
            let step = Int64(options.stepUs) * 1000
            if next == 0 { origin = (context.clock.now() / step + 2) * step }
            time += origin
            if !context.sleep(until: time) { return .ended }
        }
        defer { next += 1 }
        guard let frame = try output.makeFrame() else { return .more }
        frame.pts = MediaTime(nanoseconds: time)
        try output.emit(frame)
        return .more
    }
}

/// Writes down which frames it was given together, `3+3` or `4+-`, and gives a frame of its own for each.
final class NotingJoin: Join {
    static let info = StageInfo(id: "noting-join", summary: "Notes.", input: .video(.gray8), output: .video(.gray8))

    struct Options: StageOptions { @Option(help: "Name under which the notes are found.") var log = "" }

    private static let logs = Locked<[String: [String]]>([:])
    static func notes(_ name: String) -> [String] { logs.withLock { $0[name] ?? [] } }

    var options: Options
    init(options: Options, context: StageContext) { self.options = options }
    func negotiate(_ inputs: [MediaFormat]) throws -> MediaFormat { inputs[0] }

    func merge(_ inputs: JoinInputs, _ output: Output) throws {
        var parts: [String] = []
        for index in 0..<inputs.count {
            if case .frame(let frame)? = inputs.take(index) {
                parts.append("\(frame.sequenceNumber)")
            } else {
                parts.append("-")
            }
        }
        let note = parts.joined(separator: "+")
        Self.logs.withLock { $0[options.log, default: []].append(note) }
        guard let made = try output.makeFrame() else { return }
        made.pts = inputs.time
        try output.emit(made)
    }
}

/// Gives its pictures 0.6 ms later, every tenth one. Once a ``WaitingJoin`` waits it leaves out a hundred, and then gives
/// all.
final class LateFilter: Filter {
    static let info = StageInfo(id: "late-filter", summary: "Is late.", input: .video(.gray8), output: .sameAsInput)
    typealias Options = NoOptions
    var options: NoOptions
    private var leavesOut = 100
    init(options: NoOptions, context: StageContext) { self.options = options }

    func process(_ frame: inout Frame) throws -> Verdict {
        if WaitingJoin.isWaiting.now {
            leavesOut -= 1
            if leavesOut > 0 { return .drop(.byStage) }
        } else if frame.sequenceNumber % 10 != 0 {
            return .drop(.byStage)
        }
        frame.pts = MediaTime(nanoseconds: frame.pts.nanoseconds + 600_000)
        return .forward
    }
}

/// Waits in its first call with two pictures until it may go on. Gives the first picture.
final class WaitingJoin: Join {
    static let info = StageInfo(id: "waiting-join", summary: "Waits.", input: .video(.gray8), output: .sameAsInput)
    static let isWaiting = Locked(false)
    static let mayGoOn = Locked(false)

    typealias Options = NoOptions
    var options: NoOptions
    init(options: NoOptions, context: StageContext) { self.options = options }
    func negotiate(_ inputs: [MediaFormat]) throws -> MediaFormat { inputs[0] }

    func merge(_ inputs: JoinInputs, _ output: Output) throws {
        let first = inputs.take(0)
        if case .frame(let second)? = inputs.take(1) {
            Self.isWaiting.set(true)
            while !Self.mayGoOn.now { usleep(500) }
            _ = consume second
        }
        if case .frame(let frame)? = first { try output.emit(frame) }
    }
}

/// Joins on the real runner.
@Suite struct JoinTests {
    private struct Ran {
        var chain: Chain
        var result: Chain.Result
        var events: [Event]
        var notes: [String]
    }

    private static func run(
        _ log: String, _ a: String, _ b: String, _ join: JoinRequest? = nil, clock: ChainClock = ChainClock(),
        tick: (Chain) -> Void = { _ in }
    ) throws -> Ran {
        var sketch = ChainSketch()
        try sketch.add(TimedSource.self, "a", options: a)
        try sketch.add(TimedSource.self, "b", options: b)
        try sketch.add(NotingJoin.self, "pair", options: #"{"log": "\#(log)"}"#, from: ["a", "b"])
        sketch.request.stages[2].join = join
        try sketch.add(CountSink.self, "sink")
        let chain = try Chain(sketch.request, clock: clock)
        let (result, events) = ChainTests.run(chain, tick: tick)
        #expect(result.keepsItsPromises, "\(result)")
        #expect(chain.ledger.isBalanced, "\(chain.ledger)")
        #expect(chain.pools.allSatisfy { $0.freeCount == $0.bufferCount }, "a buffer did not come back")
        #expect(!events.contains { $0.name == "leases-grew" })
        return Ran(chain: chain, result: result, events: events, notes: NotingJoin.notes(log))
    }

    private static func figures(_ chain: Chain, _ input: Int) -> JSONNode? {
        chain.figures["stages"]?.asArray?[2]["inputs"]?.asArray?[input]
    }

    /// What warns of something else than a thread that is held up: a busy machine may do that.
    private static func warnings(_ events: [Event]) -> [String] {
        let held: Set = ["stage-hangs", "stage-returned", "link-stalled", "out-of-buffers"]
        return events.filter { $0.level >= .warning && !held.contains($0.name) }.map(\.text)
    }

    /// The numbers of the second input's frames, of the notes that have one.
    private static func partners(_ notes: some Sequence<String>) -> [Int] {
        notes.compactMap { Int($0.drop { $0 != "+" }.dropFirst()) }
    }

    /// Frames that an input's source gave and that the join was not given.
    private static func lost(_ chain: Chain, _ input: Int) -> Int {
        let counts = chain.queues.first { $0.link.from == input }!.queue.snapshot().counts
        return counts.dropped.reduce(0, +) + counts.evicted.reduce(0, +)
    }

    @Test func pairsTimesThatWereRounded() throws {
        let ran = try Self.run("rounded", #"{"count": 89}"#, #"{"count": 89, "roundUs": 1000}"#)
        #expect(ran.notes == (0..<89).map { "\($0)+\($0)" })
        #expect(Self.warnings(ran.events) == [])
        #expect(ran.chain.ledger.delivered == 89)
    }

    @Test func takesEqualTimesAloneUnderExactAndSaysWhatThatCost() throws {
        let ran = try Self.run(
            "exact", #"{"count": 90}"#, #"{"count": 90, "roundUs": 1000}"#, JoinRequest(match: .exact))
        #expect(ran.notes.count { !$0.contains("-") } == 1)
        let event = try #require(ran.events.first { $0.name == "input-mostly-unmatched" })
        #expect(
            event.text
                == "pair (noting-join): 88 of 90 items of 'a' found no match in another input."
                + " Use \"join\": { \"match\": \"nearest\" }, and a stage 'rate' where the rates differ; for live sources \"newest\". If the rates are the same, check the times at which the inputs begin."
        )
    }

    @Test func countsAndReportsWhatMatchesNothing() throws {
        let ran = try Self.run("faster", #"{"count": 20, "stepUs": 40000}"#, #"{"count": 80, "stepUs": 10000}"#)
        #expect(ran.notes == (0..<20).map { "\($0)+\($0 * 4)" })
        let unmatched = ran.chain.runners[2].dropCount(.unmatched)
        #expect((57...60).contains(unmatched), "what came after the last leading frame lies in the queue")
        #expect(Self.figures(ran.chain, 1)?["unmatched"]?.asInt == unmatched)
        #expect(Self.figures(ran.chain, 1)?["given"]?.asInt == 20)
        #expect(ran.events.filter { $0.name == "items-unmatched" }.count == 1)
        let end = try #require(ran.events.last { $0.name == "input-mostly-unmatched" })
        #expect(end.stage == "pair" && end.level == .warning)
        #expect(
            end.text
                == "pair (noting-join): \(unmatched) of \(unmatched + 20) items of 'b' matched no item of the leading input."
                + " Put a stage 'rate' before the join so that 'b' and the leading input have one rate, or name another input as \"lead\". If their rates are the same, check the times at which they begin."
        )
    }

    /// The second source has no end of its own: the run ends because the join ends it.
    @Test func endsWithTheLeadingInputAndEndsTheSourcesThatOnlyFedIt() throws {
        let ran = try Self.run("lead", #"{"count": 30}"#, "{}")
        #expect(ran.notes == (0..<30).map { "\($0)+\($0)" })
        let dropped = ran.chain.ledger.dropped
        #expect(dropped == ran.chain.runners[1].counters.made.value - 30, "all unmatched: the join had ended")
    }

    @Test func endsWithTheFirstInputThatEnds() throws {
        let ran = try Self.run("first", "{}", #"{"count": 12}"#, JoinRequest(whenEnded: .first))
        #expect(ran.notes == (0..<12).map { "\($0)+\($0)" })
    }

    @Test func endsWithTheLastAndLetsTheNextInputLead() throws {
        let ran = try Self.run("last", #"{"count": 3}"#, #"{"count": 6}"#, JoinRequest(whenEnded: .last))
        #expect(ran.notes == ["0+0", "1+1", "2+2", "-+3", "-+4", "-+5"])
    }

    @Test func holdsTheLastPictureOfAnInputThatHasEnded() throws {
        let ran = try Self.run("held", #"{"count": 40}"#, #"{"count": 10}"#, JoinRequest(hold: true))
        #expect(ran.notes == (0..<40).map { "\($0)+\(min($0, 9))" })
        #expect(Self.figures(ran.chain, 1)?["repeated"]?.asInt == 30)
        let pools = ran.chain.plan.budget.pools
        #expect(pools[1].need == pools[0].need + 1)
        #expect(pools[1].shares.contains { $0.what == "last picture for pair" && $0.count == 1 })
        #expect(Self.warnings(ran.events) == [])
    }

    @Test func holdsAnInputThatLedToo() throws {
        let ran = try Self.run(
            "held-lead", #"{"count": 2}"#, #"{"count": 5}"#, JoinRequest(whenEnded: .last, hold: true))
        #expect(ran.notes == ["0+0", "1+1", "1+2", "1+3", "1+4"])
    }

    @Test func saysThatAnInputEndedEarly() throws {
        let ran = try Self.run("early", #"{"count": 40}"#, #"{"count": 10}"#)
        #expect(ran.notes.suffix(30) == (10..<40).map { "\($0)+-" }[...])
        let event = try #require(ran.events.last { $0.name == "input-mostly-unmatched" })
        #expect(
            event.text
                == "pair (noting-join): 'b' ended early: 30 of 40 times it had no item."
                + " Use \"join\": { \"hold\": true } to keep its last picture, or \"whenEnded\": \"first\" to end with it."
        )
    }

    /// Two cameras with different phases and rates: every frame of the leading one, with the newest of the other.
    @Test func givesEveryFrameOfTheLeadingCameraUnderNewest() throws {
        // Before the end, at which either camera may be the first.
        var seen: [String] = []
        let ran = try Self.run(
            "cameras", #"{"stepUs": 2000, "live": true}"#, #"{"stepUs": 3100, "startUs": 700, "live": true}"#,
            JoinRequest(match: .newest)
        ) { chain in
            let notes = NotingJoin.notes("cameras")
            let partners = Self.partners(notes)
            guard seen.isEmpty, partners.count >= 30, Set(partners).count >= 10 else { return }
            seen = notes
            chain.drain()
        }
        #expect(ran.notes.count == ran.chain.runners[0].counters.emitted.value - Self.lost(ran.chain, 0))
        // The other camera may begin later.
        let complete = seen.drop { $0.hasSuffix("-") }
        let newest = Self.partners(complete)
        #expect(newest.count == complete.count && newest == newest.sorted(), "\(seen)")
        let link = ran.chain.plan.links[1]
        #expect(link.settings == LinkSettings(capacity: 1, policy: .latest))
    }

    /// The same with two cameras of one rate and the default: whatever the phase, each leading frame has a partner.
    @Test func pairsCamerasOfDifferentPhases() throws {
        // Before the end, at which either camera may be the first.
        var seen: [String] = []
        let ran = try Self.run(
            "phases", #"{"stepUs": 3000, "live": true}"#, #"{"stepUs": 3000, "startUs": 1100, "live": true}"#
        ) { chain in
            let notes = NotingJoin.notes("phases")
            guard seen.isEmpty, Self.partners(notes).count >= 30 else { return }
            seen = notes
            chain.drain()
        }
        #expect(ran.notes.count == ran.chain.runners[0].counters.emitted.value - Self.lost(ran.chain, 0))
        let steps = seen.compactMap { note -> Int? in
            let numbers = note.split(separator: "+").compactMap { Int($0) }
            return numbers.count == 2 ? numbers[1] - numbers[0] : nil
        }
        #expect(steps.count >= 30 && Set(steps).count == 1, "\(seen)")
        // A machine under load may lose frames at the cameras; all others have partners, but where one began later.
        let alone = seen.drop { $0.hasSuffix("-") }.count { $0.hasSuffix("-") }
        #expect(alone <= Self.lost(ran.chain, 1) + ran.chain.runners[1].dropCount(.noBuffer), "\(seen)")
        #expect(
            ran.chain.plan.notes == [
                "join pair: waits up to one frame for the picture of 'b' that is nearest in time to the picture of 'a'; \"match\": \"newest\" never waits"
            ])
    }

    /// A branch that loses frames, joined with one that does not, with as few buffers as the plan allows.
    @Test(arguments: [JoinMatch.nearest, .exact, .newest]) func goesOnWithAsFewBuffersAsThePlanAllows(match: JoinMatch)
        throws
    {
        for lead in 0...1 {
            var sketch = ChainSketch()
            try sketch.add(CountingSource.self, "src", options: #"{"count": 400}"#)
            try sketch.add(ProbeFilter.self, "lossy", options: #"{"dropEvery": 3}"#, from: ["src"])
            try sketch.add(
                NotingJoin.self, "pair", options: #"{"log": "tight-\#(match)-\#(lead)"}"#, from: ["src", "lossy"])
            sketch.request.stages[2].join = JoinRequest(match: match, lead: lead, hold: match != .exact)
            try sketch.add(CountSink.self, "sink")
            let plan = try Chain.plan(sketch.request)
            sketch.request.buffers = [0: plan.budget.pools[0].min]
            let chain = try Chain(sketch.request)
            let (result, _) = ChainTests.run(chain)
            #expect(result.isSuccess, "\(match), \(lead): \(result)")
            #expect(chain.ledger.isBalanced)
            if match == .nearest {
                #expect(chain.runners[2].counters.emitted.value == (lead == 0 ? 400 : 266))
            }
        }
    }

    /// A stage between the fork and the join gives its pictures other times. So the join has two pictures of one pool in
    /// hand. All else that `need` counts is out too, and the source still finds a buffer.
    @Test func countsAPictureForEachInputThatMatchesTheNearest() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 1000000, "everyMs": 1}"#)
        let full = LinkRequest(queue: 1, whenFull: .dropNewest)
        try sketch.add(ProbeFilter.self, "plain", from: ["src"], link: full)
        try sketch.add(LateFilter.self, "late", from: ["src"], link: full)
        try sketch.add(WaitingJoin.self, "pair", from: ["plain", "late"])
        try sketch.add(CountSink.self, "sink")
        WaitingJoin.isWaiting.set(false)
        WaitingJoin.mayGoOn.set(false)
        defer { WaitingJoin.mayGoOn.set(true) }
        let driver = try RunningChainDriver(sketch)
        let (pool, plan) = (driver.chain.pools[0], driver.chain.plan)
        let share = plan.budget.pools[0].shares.first { $0.what == "further inputs of pair" }
        #expect(share?.count == 1 && pool.bufferCount == plan.budget.pools[0].need)
        #expect(eventually { WaitingJoin.isWaiting.now })
        let frames = driver.chain.progress.captured
        // The last one is that of the source, which it has only for a moment.
        #expect(eventually { pool.freeCount <= 1 })
        #expect(eventually { driver.chain.progress.captured > frames + 300 })
        #expect(pool.starvedMs == 0)
        WaitingJoin.mayGoOn.set(true)
        let result = driver.finish()
        #expect(result.isSuccess, "\(result)")
    }
}
