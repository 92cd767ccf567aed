// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

/// Branches that get copies in buffers of their own.
@Suite struct CopyTapTests {
    private static let copies = LinkRequest(copies: true)

    /// A paced chain of a source that waits, a filter and a sink, with nothing to spare.
    private func base(_ log: String) throws -> ChainSketch {
        var sketch = ChainSketch()
        sketch.request.spare = 0
        try sketch.add(CountingSource.self, "src", options: #"{"count": 1000000, "everyMs": 1}"#)
        try sketch.add(TapMarker.self, "mark")
        try sketch.add(RecordingSink.self, "file", options: #"{"log": "\#(log)"}"#)
        return sketch
    }

    private func isGapless(_ log: String) -> Bool {
        let numbers = RecordingSink.log(log).entries.map(\.sequence)
        return numbers.count > 10 && numbers.indices.dropFirst().allSatisfy { numbers[$0] == numbers[$0 - 1] + 1 }
    }

    @Test(arguments: ["src", "mark"]) func attachesABranchWhereNothingIsToSpare(at: String) throws {
        let log = "tap-\(at)"
        let plain = try base(log)
        let driver = try RunningChainDriver(plain)
        driver.waitForFrames(20)
        var longer = plain
        try longer.add(RecordingSink.self, "late", options: #"{"log": "\#(log)-late"}"#, from: [at])
        let refused = driver.change(to: longer)
        #expect(
            refused.error.contains(
                "'late' needs 3 buffers more than pool 'src' has to spare. Give 'late' copies, which use no buffer of 'src' (\"link\": { \"copy\": true }, or `--copy` of `framehost ctl`);"
            ), "\(refused.error)")
        var tapped = plain
        try tapped.add(
            RecordingSink.self, "late", options: #"{"log": "\#(log)-late"}"#, from: [at], link: Self.copies)
        let attached = driver.change(to: tapped)
        #expect(attached.isOK, "\(attached.error)")
        #expect(attached.details["attached"] == ["late"])
        #expect(driver.chain.plan.notes.contains { $0.hasPrefix("1 copy of each item at late-copy") })
        let tap = try #require(driver.chain.graph.runner(id: "late-copy"))
        weak let pool = driver.chain.pools.first { $0.name == "late-copy" }
        #expect(pool != nil)
        driver.waitForFrames(Int(attached.frame) + 50)
        let detached = driver.change(to: plain)
        #expect(detached.isOK, "\(detached.error)")
        #expect(detached.details["detached"] == ["late"])
        driver.waitForEvent { $0.name == "branch-ended" }
        driver.waitForFrames(Int(detached.frame) + 20)
        #expect(!driver.chain.pools.contains { $0.name == "late-copy" })
        let result = driver.finish()
        #expect(result.isSuccess, "\(result)")
        #expect(isGapless(log) && isGapless("\(log)-late"))
        let late = RecordingSink.log("\(log)-late").entries
        #expect(late.first?.sequence == attached.frame)
        #expect(late.allSatisfy { $0.pixel == UInt8(truncatingIfNeeded: $0.sequence) }, "the pixels are the same")
        #expect(
            tap.counters.pixelCopies.value == tap.counters.emitted.value && tap.counters.emitted.value >= late.count)
        #expect(driver.chain.ledger.isBalanced && driver.chain.ledger.dropped <= 3, "\(driver.chain.ledger)")
    }

    /// The thread of the filter before the tap goes with the branch: it hands on what it has, and ends what lies behind.
    @Test func endsABranchThatHasATapOfItsOwn() throws {
        let plain = try base("tap-inner")
        let driver = try RunningChainDriver(plain)
        var longer = plain
        try longer.add(ProbeFilter.self, "part", from: ["src"], link: LinkRequest(queue: 2, copies: true))
        try longer.add(
            RecordingSink.self, "late", options: #"{"log": "tap-inner-late", "sleepUs": 3000}"#,
            link: LinkRequest(queue: 2, whenFull: .wait, copies: true))
        #expect(driver.change(to: longer).isOK)
        let tap = try #require(driver.chain.graph.runner(id: "late-copy"))
        driver.waitForFrames(driver.chain.progress.captured + 50)
        let detached = driver.change(to: plain)
        #expect(detached.isOK, "\(detached.error)")
        driver.waitForEvent { $0.name == "branch-ended" }
        let result = driver.finish()
        #expect(result.isSuccess, "\(result)")
        #expect(isGapless("tap-inner"))
        #expect(RecordingSink.log("tap-inner-late").entries.count == tap.counters.taken.value)
        // An attachment that was refused first has stopped a sink of its own.
        #expect(RecordingSink.log("tap-inner-late").stops >= 1)
        #expect(driver.chain.ledger.isBalanced)
    }

    /// A filter whose only reader gets copies runs on with another reader in its place.
    @Test(arguments: [0, 2]) func goesOnWhereItsOnlyReaderGotCopies(queue: Int) throws {
        let log = "tap-only-\(queue)"
        func chain(_ reader: String, link: LinkRequest) throws -> ChainSketch {
            var sketch = ChainSketch()
            sketch.request.spare = 8
            try sketch.add(CountingSource.self, "src", options: #"{"count": 1000000, "everyMs": 1}"#)
            try sketch.add(ProbeFilter.self, "part", link: LinkRequest(queue: queue))
            try sketch.add(
                RecordingSink.self, reader,
                options: #"{"log": "\#(log)-\#(reader)", "sleepUs": \#(reader == "slow" ? 5000 : 0)}"#, link: link)
            return sketch
        }
        let driver = try RunningChainDriver(
            try chain("slow", link: LinkRequest(queue: 2, whenFull: .wait, copies: true)))
        driver.waitForFrames(20)
        let changed = driver.change(to: try chain("quick", link: LinkRequest(queue: 0)))
        #expect(changed.isOK, "\(changed.error)")
        driver.waitForEvent { $0.name == "branch-ended" }
        driver.waitForFrames(driver.chain.progress.captured + 50)
        let result = driver.finish()
        #expect(result.isSuccess, "\(result)")
        #expect(isGapless("\(log)-quick"))
        #expect(RecordingSink.log("\(log)-slow").stops == 1)
        #expect(driver.chain.ledger.isBalanced)
        #expect(driver.chain.ledger.dropped <= 1, "what the tap had in hand: \(driver.chain.ledger)")
    }

    @Test func freesItsPoolWhenTheBranchHasGone() throws {
        let plain = try base("tap-freed")
        let driver = try RunningChainDriver(plain)
        var tapped = plain
        try tapped.add(
            RecordingSink.self, "late", options: #"{"log": "tap-freed-late"}"#, from: ["src"], link: Self.copies)
        #expect(driver.change(to: tapped).isOK)
        weak let pool = driver.chain.pools.first { $0.name == "late-copy" }
        #expect(pool != nil)
        #expect(driver.change(to: plain).isOK)
        driver.waitForEvent { $0.name == "branch-ended" }
        // The graph that runs knows nothing of it any more; the next change lets go of the one before.
        #expect(driver.change(to: plain).isOK)
        #expect(eventually { pool == nil })
        #expect(driver.finish().isSuccess)
    }

    @Test func copiesAllThatTheFrameSaysOfItself() throws {
        var sketch = ChainSketch()
        sketch.request.spare = 0
        try sketch.add(CountingSource.self, "src", options: #"{"count": 200}"#)
        try sketch.add(TapMarker.self, "mark")
        try sketch.add(TapMarkSink.self, "one", options: #"{"log": "tap-one"}"#, from: ["mark"])
        try sketch.add(TapMarkSink.self, "two", options: #"{"log": "tap-two"}"#, from: ["mark"], link: Self.copies)
        let chain = try Chain(sketch.request)
        #expect(chain.run().isSuccess)
        let (one, two) = (TapMarkSink.log("tap-one"), TapMarkSink.log("tap-two"))
        #expect(one.count == 200 && one == two)
        #expect(one.allSatisfy { $0.mark == $0.sequence * 3 && $0.orientation == .right })
    }

    @Test func aStuckBranchGoesAtOnceAndKeepsNothingOfTheOthers() throws {
        let log = "tap-stuck"
        var plain = try base(log)
        plain.request.drainSeconds = 5
        let driver = try RunningChainDriver(plain)
        var tapped = plain
        try tapped.add(
            RecordingSink.self, "late", options: #"{"log": "\#(log)-late", "pauseAt": 60}"#, from: ["src"],
            link: Self.copies)
        #expect(driver.change(to: tapped).isOK)
        // By then the source waits for a place before it.
        driver.waitForEvent { $0.name == "stage-hangs" && $0.stage == "late" }
        let begin = driver.chain.clock.now()
        let detached = driver.change(to: plain)
        #expect(detached.isOK, "\(detached.error)")
        let before = driver.chain.progress.captured
        let pool = try #require(driver.chain.pools.first { $0.name == "src" })
        let abandoned = try #require(driver.waitForEvent { $0.name == "stage-abandoned" })
        #expect(driver.chain.progress.captured >= before + 20, "the others go on meanwhile")
        #expect(abandoned.time - begin >= 5_000_000_000, "it is given its time")
        #expect(driver.chain.buffersLost(in: pool) == 0)
        let result = driver.finish()
        #expect(result.abandoned == ["late (recording-sink)"])
        #expect(result.failures.map(\.place.stage) == ["late"], "\(result)")
        #expect(result.ledgerFaults.isEmpty, "\(result)")
        #expect(isGapless(log))
    }

    @Test func aLiveSourceDropsAtATapInsteadOfWaiting() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 1000000, "live": true, "everyMs": 1}"#)
        try sketch.add(RecordingSink.self, "file", options: #"{"log": "tap-live"}"#)
        try sketch.add(
            RecordingSink.self, "slow", options: #"{"log": "tap-live-slow", "sleepUs": 300000}"#, from: ["src"],
            link: Self.copies)
        let driver = try RunningChainDriver(sketch)
        driver.waitForFrames(200)
        let result = driver.finish()
        #expect(result.keepsItsPromises, "\(result)")
        #expect(RecordingSink.log("tap-live-slow").entries.count < 100)
        #expect(driver.chain.pools.first { $0.name == "slow-copy" }?.starvedMs == 0)
        #expect(driver.chain.ledger.isBalanced)
    }

    @Test func copiesAccessUnitsIntoASlabOfTheBranch() throws {
        var plain = ChainSketch()
        plain.request.spare = 0
        try plain.add(CountingSource.self, "src", options: #"{"count": 1000000, "everyMs": 1}"#)
        try plain.add(UnitEncoder.self, "enc", options: #"{"gop": 1000000}"#)
        try plain.add(UnitSink.self, "file", options: #"{"log": "tap-units"}"#)
        let driver = try RunningChainDriver(plain)
        driver.waitForFrames(20)
        var longer = plain
        try longer.add(UnitSink.self, "late", options: #"{"log": "tap-units-late"}"#, from: ["enc"])
        let refused = driver.change(to: longer)
        #expect(refused.error.contains("more memory for access units than 'enc' has to spare"), "\(refused.error)")
        var tapped = plain
        try tapped.add(
            UnitSink.self, "late", options: #"{"log": "tap-units-late"}"#, from: ["enc"], link: Self.copies)
        let attached = driver.change(to: tapped)
        #expect(attached.isOK, "\(attached.error)")
        driver.waitForFrames(Int(attached.frame) + 100)
        // No other keyframe comes: the wish for one goes through the tap to the encoder.
        #expect(eventually { !UnitSink.keyframes("tap-units-late").isEmpty })
        #expect(driver.change(to: plain).isOK)
        driver.waitForEvent { $0.name == "branch-ended" }
        #expect(driver.finish().isSuccess)
        let first = try #require(UnitSink.keyframes("tap-units-late").first)
        #expect(first >= attached.frame)
        #expect(driver.chain.ledger.isBalanced)
    }

    // MARK: The plan

    @Test func takesNothingOfTheBuffersBeforeIt() throws {
        var draft = ChainDraft()
        draft.spare = 0
        try draft.add("plain-camera", "cam")
        try draft.add("add-one", "write", from: ["cam"])
        try draft.add("anything", "show", from: ["write"])
        let alone = try draft.plan()
        var tapped = draft
        try tapped.add("anything", "second", from: ["cam"], link: Self.copies)
        let changed = try tapped.plan(against: alone)
        #expect(changed.changes == .init(kept: ["cam", "write", "show"], made: ["second-copy", "second"]))
        #expect(changed.pool("cam")?.need == alone.pool("cam")?.need)
        // Nor does the writer beside it have to copy.
        #expect(changed.pool("write", copies: true) == nil)
        #expect(changed.link("cam", "second-copy")?.settings.capacity == 0)
        #expect(changed.link("second-copy", "second")?.settings.capacity == 2)
        #expect(changed.pool("second-copy")?.size == changed.pool("second-copy")?.need)
        // What runs stays, in the next plan too.
        #expect(try tapped.plan(against: changed).changes.made == [])
    }

    @Test func convertsBehindTheTap() throws {
        var draft = ChainDraft()
        try draft.add("plain-camera", "cam", #"{"format": "i420"}"#)
        try draft.add("anything", "show", from: ["cam"])
        try draft.add("add-one", "write", from: ["cam"], link: Self.copies)
        try draft.add("anything", "other", from: ["write"])
        let plan = try draft.plan()
        #expect(plan.stage("write-copy").inputIDs == ["cam"])
        #expect(plan.stage("write-convert").inputIDs == ["write-copy"])
        #expect(plan.stage("write").inputIDs == ["write-convert"])
        #expect(plan.link("write-copy", "write-convert")?.settings.capacity == 2)
        #expect(try draft.plan(against: plan).changes.made == [])
    }

    @Test func refusesWhatCannotBe() throws {
        var draft = ChainDraft()
        try draft.add("plain-camera", "cam", #"{"live": false}"#)
        try draft.add("probe", "mark", from: ["cam"])
        try draft.add("probe", "other", from: ["cam"], link: Self.copies)
        try draft.add("pair", "pair", from: ["mark", "other"])
        try draft.add("anything", "show", from: ["pair"])
        #expect(
            draft.faults() == [
                "test.json: stages[2].link.copy: 'copy' is not possible before a join: 'cam' makes the copy before its other branches get the item, so the join could wait forever. Leave 'copy' out."
            ])
        draft = ChainDraft()
        try draft.add("plain-camera", "cam", #"{"live": false}"#)
        try draft.add("anything", "show", from: ["cam"])
        try draft.add("anything", "other", from: ["cam"], link: LinkRequest(queue: 0, copies: true))
        #expect(
            draft.faults() == [
                "test.json: stages[2].link.queue: \"queue\": 0 runs 'other' on the thread of 'cam', which the copies are meant to relieve. Use 1 or more, or leave it out."
            ])
        draft.stages[2].link = LinkRequest()
        let running = try draft.plan()
        draft.stages[2].link = Self.copies
        #expect(
            draft.faults(against: running) == [
                "test.json: stages[2].link.copy: needs a restart: 'other' is running without copies and would get them. Restart the chain to make this change (if it came from a command, first write it into the chain file), or leave it out."
            ])
    }

    @Test func countsInTheMemoryThatThereIs() throws {
        var draft = ChainDraft()
        draft.spare = 0
        try draft.add("plain-camera", "cam")
        try draft.add("anything", "show", from: ["cam"])
        let alone = try draft.plan()
        try draft.add("anything", "second", from: ["cam"], link: Self.copies)
        var request = draft.request
        request.memory = AvailableMemory(bytes: 1000)
        do {
            _ = try ChainPlanner(request, clock: ManualClock(), running: RunningChain(alone)).plan()
            #expect(Bool(false), "the pool of the tap was not counted")
        } catch let faults as FrameHostErrors {
            #expect(faults.errors.first?.what.contains("buffers of 64x64 gray8 at 'second-copy'") == true, "\(faults)")
        }
    }
}

/// Says of each frame what no source says: how it is to be turned, and three times its number.
final class TapMarker: Filter {
    struct Mark: FrameMetadata {
        static let metadataName = "tap-mark"
        var number: UInt64
    }
    static let info = StageInfo(
        id: "tap-marker", summary: "Marks.", input: .anyVideo, output: .sameAsInput, metadata: [Mark.self])
    typealias Options = NoOptions
    var options: NoOptions
    private let context: StageContext
    private var slot: MetadataSlot<Mark>!
    init(options: NoOptions, context: StageContext) {
        self.options = options
        self.context = context
    }
    func start() throws { slot = context.slot(for: Mark.self) }
    func process(_ frame: inout Frame) throws -> Verdict {
        frame[slot] = Mark(number: frame.sequenceNumber * 3)
        frame.orientation = .right
        frame.duration = MediaTime(nanoseconds: 1_000_000)
        return .forward
    }
}

/// Remembers what frames say of themselves.
final class TapMarkSink: Sink {
    static let info = StageInfo(
        id: "tap-mark-sink", summary: "Reads marks.", input: .anyVideo, metadata: [TapMarker.Mark.self])
    struct Options: StageOptions { @Option(help: "Name under which marks are found.") var log = "" }
    struct Entry: Sendable, Equatable {
        var sequence: UInt64
        var pts: MediaTime
        var duration: MediaTime
        var capturedAt: Int64
        var orientation: Orientation
        var mark: UInt64?
        var format: VideoFormat
    }
    private static let logs = Locked<[String: [Entry]]>([:])
    static func log(_ name: String) -> [Entry] { logs.withLock { $0[name] ?? [] } }

    var options: Options
    private let context: StageContext
    private var slot: MetadataSlot<TapMarker.Mark>!
    init(options: Options, context: StageContext) {
        self.options = options
        self.context = context
    }
    func start() throws { slot = context.slot(for: TapMarker.Mark.self) }
    func consume(_ input: consuming Sample) throws -> SinkVerdict {
        guard case .frame(let frame) = consume input else { return .dropped(.byStage) }
        let entry = Entry(
            sequence: frame.sequenceNumber, pts: frame.pts, duration: frame.duration, capturedAt: frame.capturedAt,
            orientation: frame.orientation, mark: frame[slot]?.number, format: frame.format)
        let name = options.log
        Self.logs.withLock { $0[name, default: []].append(entry) }
        return .delivered
    }
}
