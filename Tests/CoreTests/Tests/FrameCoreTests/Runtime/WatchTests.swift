// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import FrameCore

/// Stages that do not come back, chains that cannot go on, times that do not rise: who is named, when, and how the run
/// ends.
@Suite struct WatchTests {
    /// Runs to the end, or fails the test after two minutes; `tick` is handed all events so far.
    private static func run(_ chain: Chain, tick: (Chain, [Event]) -> Void) -> (result: Chain.Result, events: [Event]) {
        var events: [Event] = []
        let subscription = chain.subscribe()
        let begin = ChainClock().now()
        let result = chain.run {
            events += subscription.take().events
            tick(chain, events)
            if ChainClock().now() - begin > 120_000_000_000 {
                Issue.record("the chain did not end in two minutes")
                chain.cancel()
            }
        }
        return (result, events)
    }

    // MARK: A call that does not return

    @Test(arguments: [
        ("process", "slow (hanging-filter): its call 'process' of frame 3"),
        ("start", "slow (hanging-filter): its call 'start'"),
        ("stop", "slow (hanging-filter): its call 'stop'"), ("command", "slow (hanging-filter): its call 'command'"),
        ("set", "slow (hanging-filter): its call 'optionsChanged'"),
    ])
    func namesTheStageAndItsCallWhileItHangs(call: String, subject: String) throws {
        let gate = "hang-\(call)"
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 20}"#)
        try sketch.add(HangingFilter.self, "slow", options: #"{"call": "\#(call)", "gate": "\#(gate)"}"#)
        try sketch.add(RecordingSink.self, "sink", options: #"{"log": "\#(gate)", "sleepUs": 20000}"#)
        let chain = try Chain(sketch.request)
        if call == "command" { chain.send(stage: "slow", command: "wait") { _ in } }
        if call == "set" {
            chain.set(stage: "slow", options: [JSONNode.Member(key: "level", value: 2)]) { _ in }
        }
        // A busy machine may make other calls long as well.
        func isMeant(_ event: Event) -> Bool {
            event.name == "stage-hangs" && event.stage == "slow" && event.text.hasPrefix(subject + " has ")
        }
        let (result, all) = Self.run(chain) { _, seen in
            // Let go only once it has been named: the warning comes while the stage hangs.
            if seen.contains(where: isMeant) { HangingFilter.open(gate) }
        }
        let warning = try #require(all.first(where: isMeant))
        #expect(warning.level == .warning)
        let pattern =
            /.+ has not returned for (\d+\.\d) s\. framehost keeps waiting for it\. Check the disk, the network or the device that the stage uses; if they work, tell its author\./
        let match = try #require(try pattern.wholeMatch(in: warning.text), "\(warning.text)")
        #expect(try #require(Double(match.1)) >= 0.2)
        #expect(all.contains { $0.name == "stage-returned" && $0.text.hasPrefix(subject + " took ") })
        // Nothing was lost: no source is live.
        #expect(result.isSuccess, "\(result)")
        let returned = all.count { $0.name == "stage-returned" && $0.stage == "slow" }
        #expect(chain.callFigures.withLock { $0[1]?.slowCalls } == returned)
    }

    /// Of a stage that hangs in a chain: what a watch says that looks at it every 50 ms of simulated time, and how old
    /// the call was then.
    private func said<S: Filter>(of type: S.Type, for seconds: Int64) throws -> [String] {
        let gate = "watched-\(S.info.id)"
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 20}"#)
        try sketch.add(type, "slow", options: #"{"call": "process", "gate": "\#(gate)"}"#)
        try sketch.add(RecordingSink.self, "sink", options: #"{"log": "\#(gate)"}"#)
        var texts: [String]?
        let (result, _) = Self.run(try Chain(sketch.request)) { chain, _ in
            guard texts == nil, chain.runners[1].shownFrame == 3 else { return }
            let (hub, threads) = (EventHub(), [chain.runners[1].thread!])
            let told = hub.subscribe()
            var watch = CallWatch()
            for look in 0...seconds * 20 { watch.look(at: chain, threads, hub, now: look * 50_000_000) }
            texts = told.take().events.map(\.text)
            HangingFilter.open(gate)
        }
        #expect(result.isSuccess, "\(result)")
        return try #require(texts)
    }

    @Test func namesItAgainAtTenSecondsAndEachMinute() throws {
        #expect(
            try said(of: HangingFilter.self, for: 190)
                == ["0.2", "10.0", "60.0", "120.0", "180.0"].map {
                    "slow (hanging-filter): its call 'process' of frame 3 has not returned for \($0) s. framehost keeps waiting for it. Check the disk, the network or the device that the stage uses; if they work, tell its author."
                })
    }

    @Test func waitsAsLongAsAStageDeclares() throws {
        #expect(
            try said(of: PatientFilter.self, for: 9)
                == [
                    "slow (patient-filter): its call 'process' of frame 3 has not returned for 5.0 s. framehost keeps waiting for it. Check the disk, the network or the device that the stage uses; if they work, tell its author."
                ])
    }

    @Test func saysWhoseFaultTheLostFramesOfALiveChainAre() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 100000, "live": true, "everyMs": 1}"#)
        try sketch.add(HangingFilter.self, "slow", options: #"{"call": "process", "gate": "hang-live"}"#)
        try sketch.add(RecordingSink.self, "sink", options: #"{"log": "hang-live"}"#)
        let chain = try Chain(sketch.request)
        // The call at the gate, not one before it that a busy machine made long.
        func isAtGate(_ event: Event) -> Bool {
            event.stage == "slow" && event.details["call"]?.asString == "process"
                && event.details["frame"]?.asInt ?? 0 >= 3
        }
        var lostBefore: Int?
        let (result, _) = Self.run(chain) { chain, events in
            guard events.contains(where: { $0.name == "stage-hangs" && isAtGate($0) }) else { return }
            let lost = LiveLosses(chain.graph).total
            if lost >= (lostBefore ?? lost) + 11 { HangingFilter.open("hang-live") }
            lostBefore = lostBefore ?? lost
            if events.contains(where: { $0.name == "stage-returned" && isAtGate($0) }) { chain.drain() }
        }
        #expect(result.failures.isEmpty)
        let pattern =
            /slow \(hanging-filter\): its call 'process' of frame \d+ took \d+\.\d s; the live chain lost (\d+) frames meanwhile/
        let lost = try result.losses.compactMap { try pattern.wholeMatch(in: $0).flatMap { Int($0.1) } }
        #expect(lost.contains { $0 > 10 }, "\(result.losses)")
        #expect(!result.isSuccess, "frames were lost, and the run calls itself a success")
    }

    @Test func aStartThatHangsEndsWithTheDrain() throws {
        var sketch = ChainSketch()
        sketch.request.drainSeconds = 0.2
        try sketch.add(CountingSource.self, "src")
        try sketch.add(HangingFilter.self, "slow", options: #"{"call": "start", "gate": "never-1"}"#)
        try sketch.add(RecordingSink.self, "sink", options: #"{"log": "never-1"}"#)
        let (result, _) = Self.run(try Chain(sketch.request)) { chain, events in
            if events.contains(where: { $0.name == "stage-hangs" && $0.stage == "slow" }) { chain.drain() }
        }
        HangingFilter.open("never-1")
        #expect(result.abandoned == ["slow (hanging-filter)"])
        #expect(
            result.failures.first?.description
                == "the drain did not finish in 0.200 s: slow (hanging-filter) is still at work. Raise \"drainSeconds\" in the chain file if this stage needs longer."
        )
    }

    // MARK: A chain that can never go on

    @Test func endsAChainWhoseOnlyBufferIsKept() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src")
        try sketch.add(ProbeFilter.self, "miser", options: #"{"keep": 1, "declared": 0}"#)
        try sketch.add(RecordingSink.self, "sink", options: #"{"log": "miser"}"#)
        let (result, _) = ChainTests.run(try Chain(sketch.request))
        let fault = try #require(result.failures.first?.description)
        let pattern =
            /miser \(probe\): the chain is deadlocked: its only thread waits; the pool 'src' has been empty for \d+ ms \(1 of 1 buffers held\): miser 1\. Report this to the author of probe: it must release its buffers, or declare a 'hold' of 1 in its StageInfo\./
        #expect(try pattern.wholeMatch(in: fault) != nil, "\(fault)")
        #expect(result.failures.count == 1)
        #expect(result.abandoned.isEmpty)
    }

    @Test func endsAChainWhoseJoinWaitsForWhatWasSwallowed() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src")
        try sketch.add(CopyTransform.self, "thief", options: #"{"swallow": 20}"#, from: ["src"])
        try sketch.add(PairJoin.self, "pair", from: ["src", "thief"])
        try sketch.add(RecordingSink.self, "sink", options: #"{"log": "thief"}"#)
        let (result, _) = ChainTests.run(try Chain(sketch.request))
        // Later items of the same input tell a join that the one it waits for does not come: such a chain ends by
        // itself, with the ledger's fault.
        #expect(result.failures.isEmpty == result.ledgerFaults.contains { $0.contains("the stage lost 1") })
        #expect(!result.isSuccess)
    }

    @Test func aSourceThatWaitsForTheClockHasNotStoodStill() throws {
        var watch = StandstillWatch()
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 3, "everyMs": 1000}"#)
        try sketch.add(RecordingSink.self, "sink", options: #"{"log": "clock"}"#)
        let chain = try Chain(sketch.request)
        let thread = ThreadState(name: "src:src")
        _ = thread.enterWait(ThreadState.Place.outsideWait, for: .time)
        func looks(_ count: Int) -> Int { (0..<count).count { _ in watch.look(at: chain, [thread]) != nil } }
        #expect(looks(3 * StandstillWatch.looksNeeded) == 0)
        thread.leaveWait(ThreadState.Place.chainWait)
        #expect(looks(StandstillWatch.looksNeeded) == 1)
    }

    // MARK: Times that do not rise

    @Test func blamesTheTransformThatForgetsToCopyProperties() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 60}"#)
        try sketch.add(ForgetfulTransform.self, "blur")
        try sketch.add(RecordingSink.self, "sink", options: #"{"log": "forgetful"}"#)
        let (result, events) = ChainTests.run(try Chain(sketch.request))
        #expect(
            result.failures.map(\.description) == [
                "blur (forgetful): 59 of 60 frames had a time that was not later than that of the frame before. In the plugin, call copyProperties(from:) on each new frame before emitting it, or set its pts; if the plugin is not yours, tell its author."
            ])
        let warnings = events.filter { $0.name == "time-not-rising" }
        #expect(
            warnings.map(\.text) == [
                "blur (forgetful) gave frame 0 the time 0.000 s, which is not later than that of the frame before. Later stages may skip such frames. In the plugin, call copyProperties(from:) on each new frame before emitting it, or set its pts; if the plugin is not yours, tell its author."
            ])
    }

    @Test func blamesNoTransformForTheTimesThatCameIn() throws {
        var check = TimeCheck()
        for time: Int64 in [0, 1, 1, 1, 1, 1, 1] {
            check.came(MediaTime(nanoseconds: time))
            let isReported = check.gave(MediaTime(nanoseconds: time))
            #expect(!isReported)
        }
        #expect(!check.isMostlyWrong)
    }

    @Test func forgivesAFewTimesThatDoNotRise() throws {
        var check = TimeCheck()
        var reports = 0
        for time: Int64 in [0, 1, 1, 2, 3, 4, 5, 5] where check.gave(MediaTime(nanoseconds: time)) { reports += 1 }
        #expect(reports == 1)
        #expect(check.wrong == 2)
        #expect(!check.isMostlyWrong)
    }
}

/// Does not come back from one of its calls until a gate is opened.
private final class HangingFilter: Filter {
    static let info = StageInfo(
        id: "hanging-filter", summary: "Hangs.", input: .anyVideo, output: .sameAsInput,
        longestCall: MediaTime(seconds: 0.2),
        commands: [CommandInfo("wait", "Waits.")])

    struct Options: StageOptions {
        @Option(help: "In which call.") var call = "process"
        @Option(help: "Until this gate is open.") var gate = ""
        @Option(help: "A live value.", live: true) var level = 0
    }

    private static let openGates = Locked<Set<String>>([])
    static func isOpen(_ gate: String) -> Bool { openGates.withLock { $0.contains(gate) } }
    static func open(_ gate: String) { openGates.withLock { _ = $0.insert(gate) } }

    var options: Options
    init(options: Options, context: StageContext) { self.options = options }

    private func hang(in call: String) {
        guard options.call == call else { return }
        while !Self.isOpen(options.gate) { usleep(1000) }
    }

    func start() { hang(in: "start") }
    func stop() { hang(in: "stop") }
    func optionsChanged() { hang(in: "set") }
    func command(_ name: String, arguments: JSONNode) { hang(in: "command") }

    func process(_ frame: inout Frame) -> Verdict {
        if frame.sequenceNumber >= 3 { hang(in: "process") }
        return .forward
    }
}

/// The same of a stage that declares five seconds.
private final class PatientFilter: Filter {
    static let info = StageInfo(
        id: "patient-filter", summary: "Takes its time.", input: .anyVideo, output: .sameAsInput,
        longestCall: MediaTime(seconds: 5))

    var options: HangingFilter.Options
    init(options: HangingFilter.Options, context: StageContext) { self.options = options }

    func process(_ frame: inout Frame) -> Verdict {
        while frame.sequenceNumber >= 3, !HangingFilter.isOpen(options.gate) { usleep(1000) }
        return .forward
    }
}

/// Emits new frames without time.
private final class ForgetfulTransform: Transform {
    static let info = StageInfo(id: "forgetful", summary: "Forgets.", input: .video(.gray8), output: .video(.gray8))
    typealias Options = NoOptions
    var options: NoOptions
    init(options: NoOptions, context: StageContext) { self.options = options }

    func negotiate(_ input: MediaFormat) -> MediaFormat { input }

    func process(_ input: consuming Sample, _ output: Output) throws {
        guard case .frame = consume input, let frame = try output.makeFrame() else { return }
        try output.emit(frame)
    }
}
