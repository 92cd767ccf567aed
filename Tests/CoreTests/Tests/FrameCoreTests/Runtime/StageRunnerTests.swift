// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

@Suite struct StageRunnerTests {
    @Test func countsAnItemOnceWhenItsStageAnswersAndThenFails() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 30}"#)
        try sketch.add(UnitEncoder.self, "h264", options: #"{"failAfter": 10}"#)
        try sketch.add(UnitSink.self, "file")
        let (result, _) = ChainTests.run(try Chain(sketch.request))
        #expect(
            result.failures.map(\.description) == [
                "h264 (unit-encoder): frame 10, PTS 0.010 s: the encoder was told to fail."
            ])
        #expect(result.ledgerFaults == [])
    }

    @Test func balancesWhenADrainIsStoppedThatHasGivenTheHeldFrame() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 1}"#)
        try sketch.add(EndlessFiller.self, "fill")
        try sketch.add(CountSink.self, "sink", link: LinkRequest(queue: 2))
        let chain = try Chain(sketch.request)
        let (result, _) = ChainTests.run(chain) { if $0.ledger.delivered > 0 { $0.cancel() } }
        #expect(result.ledgerFaults == [])
        #expect(chain.ledger.isBalanced, "\(chain.ledger)")
        #expect(chain.ledger.inFlight == 0)
    }

    /// No frame comes between the commands, so the mark is still owed.
    @Test(arguments: [
        [StageRunner.Mode.drops, .passes], [.drops, .runs, .passes], [.drops, .passes, .drops, .passes],
    ])
    func marksAFrameThatPassesAfterAPauseThatDrops(modes: [StageRunner.Mode]) throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src")
        try sketch.add(ProbeFilter.self, "mark")
        try sketch.add(CountSink.self, "sink")
        let chain = try Chain(sketch.request)
        let runner = try #require(chain.graph.runner(id: "mark"))
        let pool = try FramePool(
            name: "pool", format: VideoFormat(.gray8, width: 16, height: 16), bufferCount: 1, stop: StopSignal(),
            clock: ChainClock())
        func isMarked() throws -> Bool {
            var frame = try pool.lease()
            let outcome = runner.filter(&frame)
            let isMarked = frame.isDiscontinuity
            #expect(outcome == .forward)
            return isMarked
        }
        for mode in modes { #expect(runner.setMode(mode) == .done) }
        #expect(runner.mode == .passes)
        #expect(try isMarked())
        #expect(try !isMarked(), "once is enough")
        #expect(runner.setMode(.runs) == .done)
        #expect(runner.mode == .runs, "frames that passed leave no gap")
        // Where none passed, the stage itself gets the mark.
        for mode in modes + [.runs] { #expect(runner.setMode(mode) == .done) }
        #expect(runner.mode == .followsGap)
        withExtendedLifetime(chain) {}
    }

    /// A filter on a live source's thread hands on through a queue that is full: the thread must not wait there either.
    @Test func neverWaitsOnALiveSourcesThreadWhicheverStageHandsOn() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "cam", options: #"{"count": 1000000, "live": true, "everyMs": 1}"#)
        try sketch.add(ProbeFilter.self, "inline", link: LinkRequest(queue: 0))
        try sketch.add(
            RecordingSink.self, "slow", options: #"{"log": "live-inline", "sleepUs": 10000}"#,
            link: LinkRequest(queue: 2))
        let chain = try Chain(sketch.request)
        let (result, _) = ChainTests.run(chain) { chain in
            let counts = chain.queues[0].queue.snapshot().counts
            if counts.dropped[DropReason.noBuffer.rawValue] > 0 { chain.drain() }
        }
        #expect(result.keepsItsPromises, "\(result)")
        let counts = chain.queues[0].queue.snapshot().counts
        #expect(counts.offered == chain.runners[0].counters.emitted.value)
        #expect(counts.dropped[DropReason.noBuffer.rawValue] > 0, "the camera's thread waited")
        #expect(chain.ledger.isBalanced)
    }

    @Test func neverWaitsAtAForkBehindALiveSourceEither() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "cam", options: #"{"count": 1000000, "live": true, "everyMs": 1}"#)
        try sketch.add(ProbeFilter.self, "inline", link: LinkRequest(queue: 0))
        try sketch.add(
            RecordingSink.self, "slow", options: #"{"log": "live-fork-a", "sleepUs": 10000}"#, from: ["inline"])
        try sketch.add(RecordingSink.self, "fast", options: #"{"log": "live-fork-b"}"#, from: ["inline"])
        let chain = try Chain(sketch.request)
        let queue = chain.queues.first { $0.link.to == 2 }!.queue
        let (result, _) = ChainTests.run(chain) { chain in
            guard queue.snapshot().counts.dropped[DropReason.noBuffer.rawValue] > 0 else { return }
            let (slow, fast) = (RecordingSink.log("live-fork-a"), RecordingSink.log("live-fork-b"))
            // More than what still waits for the slow one.
            if fast.entries.count > slow.entries.count + 20 { chain.drain() }
        }
        #expect(result.keepsItsPromises, "\(result)")
        let slow = queue.snapshot().counts
        #expect(slow.offered == chain.runners[0].counters.emitted.value)
        #expect(slow.dropped[DropReason.noBuffer.rawValue] > 0, "the camera's thread waited")
        #expect(RecordingSink.log("live-fork-b").entries.count > RecordingSink.log("live-fork-a").entries.count)
    }

    /// An hour of a camera under a clock that sleeping moves.
    @Test func runsAnHourOfALiveSourceInAMoment() throws {
        let clock = ManualClock(at: 5_000_000_000)
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "cam", options: #"{"count": 90000, "live": true, "everyMs": 40}"#)
        try sketch.add(ProbeFilter.self, "probe", link: LinkRequest(queue: 0))
        try sketch.add(CountSink.self, "sink", link: LinkRequest(queue: 0))
        let chain = try Chain(sketch.request, clock: clock)
        let begin = ChainClock().now()
        let (result, _) = ChainTests.run(chain)
        #expect(result.isSuccess, "\(result)")
        #expect(chain.ledger == Ledger(captured: 90_000, delivered: 90_000))
        #expect(
            clock.now() - 5_000_000_000 == 3_600_000_000_000, "each frame 40 ms after the one before, to the nanosecond"
        )
        #expect(
            ChainClock().now() - begin < 1_800_000_000_000,
            "a second on an idle machine; sanitizers and neighbours take their part")
        let sink = chain.runners[2].instance.stage as! CountSink
        #expect(sink.lastCapture == clock.now())
    }

    @Test func answersACommandWhateverTheMomentItIsSentAt() throws {
        for round in 0..<30 {
            var sketch = ChainSketch()
            try sketch.add(CountingSource.self, "src", options: #"{"count": 60}"#)
            try sketch.add(ProbeFilter.self, "probe", link: LinkRequest(queue: 1))
            try sketch.add(CountSink.self, "sink")
            let chain = try Chain(sketch.request)
            let sent = Locked(0)
            let answers = CommandAnswers()
            let isOver = Locked(false)
            let sender = try TestThread("sender") {
                while !isOver.now {
                    let level = JSONNode.Member(key: "level", value: 3)
                    chain.set(stage: "probe", options: [level], reply: answers.reply(sent.now))
                    sent.withLock { $0 += 1 }
                    pauseTest(ms: 1)
                }
            }
            let (result, _) = ChainTests.run(chain)
            isOver.set(true)
            sender.join()
            #expect(result.isSuccess)
            #expect(answers.count == sent.now && answers.repeated == 0, "round \(round)")
        }
    }

    @Test func namesTheStageInAFaultThatConcernsSeveralOptions() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 1000000000, "live": true, "everyMs": 1}"#)
        try sketch.add(PickyFilter.self, "picky")
        try sketch.add(CountSink.self, "sink")
        let chain = try Chain(sketch.request)
        let answers = CommandAnswers()
        chain.set(stage: "picky", options: [JSONNode.Member(key: "low", value: 9)], reply: answers.reply(1))
        _ = ChainTests.run(chain) { chain in
            if answers[1] != nil { chain.cancel() }
        }
        #expect(answers[1]?.text == "picky.low: 'low' is above 'high'. Lower it.")
    }
}

/// Counts and keeps nothing.
final class CountSink: Sink {
    static let info = StageInfo(id: "count-sink", summary: "Counts.", input: .any)
    typealias Options = NoOptions
    var options: NoOptions
    var lastCapture: Int64 = 0
    init(options: NoOptions, context: StageContext) { self.options = options }
    func consume(_ input: consuming Sample) throws -> SinkVerdict {
        if case .frame(let frame) = consume input { lastCapture = frame.capturedAt }
        return .delivered
    }
}

/// Two options that depend on each other.
private final class PickyFilter: Filter {
    static let info = StageInfo(id: "picky", summary: "Picks.", input: .anyVideo, output: .sameAsInput)
    struct Options: StageOptions {
        @Option(help: "Low.", live: true) var low = 0
        @Option(help: "High.", live: true) var high = 5
        func validate() throws(OptionFault) {
            if low > high { throw OptionFault("'low' is above 'high'", remedy: "Lower it.", options: ["low", "high"]) }
        }
    }
    var options: Options
    init(options: Options, context: StageContext) { self.options = options }
    func process(_ frame: inout Frame) throws -> Verdict { .forward }
}

/// Keeps the newest frame, and at its end gives it for ever, as a filler of gaps does for a long one.
private final class EndlessFiller: Transform {
    static let info = StageInfo(
        id: "filler", summary: "Fills.", input: .anyVideo, output: .sameAsInput, hold: 1, delay: 1)

    var options: NoOptions
    private var kept: Frame?
    var held: Int { kept == nil ? 0 : 1 }

    init(options: NoOptions, context: StageContext) { self.options = options }

    func negotiate(_ input: MediaFormat) throws -> MediaFormat { input }

    func process(_ input: consuming Sample, _ output: Output) throws {
        guard case .frame(let frame) = consume input else { return }
        kept = consume frame
    }

    func drain(_ output: Output) throws {
        guard let frame = kept.take() else { return }
        try output.emit(frame.share())
        while true { try output.emit(frame.share(), as: .made) }
    }

    func stop() { kept = nil }
}
