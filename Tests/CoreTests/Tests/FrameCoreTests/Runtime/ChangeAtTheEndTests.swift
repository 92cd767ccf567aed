// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import FrameCore

/// Changes, failures and ends of a run that meet.
@Suite struct ChangeAtTheEndTests {
    private func isDraining(_ event: Event) -> Bool {
        event.name == "state" && event.details["state"]?.asString == "draining"
    }

    private func eventually(_ isSo: () -> Bool) -> Bool {
        let deadline = ChainClock.system.now() + 60_000_000_000
        while !isSo(), ChainClock.system.now() < deadline { usleep(1000) }
        return isSo()
    }

    // MARK: Drains

    @Test func aSourceThatStartsWhileTheChainDrainsEndsWithIt() throws {
        let door = "end-late-source"
        var before = ChainSketch()
        before.request.spare = 4
        try before.add(CountingSource.self, "src", options: #"{"count": 1000000, "everyMs": 1}"#)
        try before.add(CountSink.self, "sink")
        var after = before
        try after.add(SlowlyStartingSource.self, "late", options: #"{"door": "\#(door)"}"#)
        try after.add(CountSink.self, "late-sink")
        Door.shut(door)
        let driver = try RunningChainDriver(before)
        driver.waitForFrames(10)
        driver.chain.change(stage: nil, to: { [after] _ in after.request }, reply: { _ in })
        Door.waitForSomebody(door)
        try #require(Door.hasSomebody(door))
        driver.chain.drain()
        driver.waitForEvent(isDraining)
        Door.open(door)
        let result = driver.finish()
        #expect(result.isSuccess, "\(result)")
    }

    /// The chain drains while the change that would remove it is refused.
    @Test func aSourceThatWouldHaveLeftEndsWithTheChain() throws {
        let doors = ("end-back-one", "end-back-two")
        let plain = try LiveOptionTests.twoBranches(doors.0, doors.1)
        var before = plain
        try before.add(CountingSource.self, "other", options: #"{"count": 1000000, "everyMs": 1}"#)
        try before.add(CountSink.self, "other-sink")
        let after = try plain.setting("one", #"{"level": 9}"#)
        let driver = try RunningChainDriver(before)
        driver.waitForFrames(10)
        Door.shut(doors.0)
        Door.waitForSomebody(doors.0)
        let answers = CommandAnswers()
        driver.chain.change(stage: nil, to: { _ in after.request }, reply: answers.reply(1))
        #expect(eventually { driver.chain.judgements.withLock { $0.isOpen } || answers[1] != nil })
        driver.chain.drain()
        _ = try #require(answers.wait(for: 1))
        Door.open(doors.0)
        let result = driver.finish()
        #expect(result.isSuccess, "\(result)")
    }

    /// Nobody has asked to give them up.
    @Test func aDrainThatKeepsJobsGivesUpNone() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 3}"#)
        try sketch.add(JobSink.self, "sink")
        let chain = try Chain(sketch.request)
        var drains = 0
        let (result, events) = ChainTests.run(chain) { chain in
            guard chain.currentState == .finishing, chain.currentJob != nil else { return }
            drains += 1
            chain.drain(keepingJobs: true)
        }
        #expect(result.isSuccess && drains > 0)
        #expect(!events.contains { $0.name == "job-failed" }, "\(events.map(\.text))")
    }

    @Test func aSourceWhoseJoinHasEndedEndsWithItsLastReader() throws {
        var plain = ChainSketch()
        plain.request.spare = 4
        try plain.add(CountingSource.self, "short", options: #"{"count": 30}"#)
        try plain.add(CountingSource.self, "long", options: #"{"count": 1000000, "everyMs": 1}"#)
        try plain.add(PairJoin.self, "pair", from: ["short", "long"], link: LinkRequest(queue: 2))
        try plain.add(CountSink.self, "sink")
        var before = plain
        try before.add(CountSink.self, "other", from: ["long"], link: LinkRequest(queue: 2))
        let driver = try RunningChainDriver(before)
        #expect(eventually { driver.chain.endedJoins.withLock { !$0.isEmpty } })
        driver.waitForFrames(driver.chain.progress.captured + 20)
        #expect(driver.chain.currentState == .streaming)
        #expect(driver.change(to: plain).isOK)
        driver.waitForEvent { $0.name == "state" && $0.details["state"]?.asString == "stopped" }
        #expect(driver.finish().isSuccess)
    }

    // MARK: Failures

    /// It has no thread before the change is certain.
    @Test func aNewStageThatWouldFailEndsNoRunWhoseChangeIsRefused() throws {
        let doors = ("end-new-one", "end-new-two")
        let before = try LiveOptionTests.twoBranches(doors.0, doors.1)
        var after = try before.setting("one", #"{"level": 9}"#).setting("two", #"{"level": 9}"#)
        try after.add(FailingSource.self, "new")
        try after.add(CountSink.self, "new-sink")
        let driver = try RunningChainDriver(before)
        driver.waitForFrames(10)
        for door in [doors.0, doors.1] {
            Door.shut(door)
            Door.waitForSomebody(door)
        }
        let answers = CommandAnswers()
        driver.chain.change(stage: nil, to: { [after] _ in after.request }, reply: answers.reply(1))
        // One thread answers, the other one does not.
        Door.open(doors.0)
        #expect(try #require(answers.wait(for: 1)).isDone == false)
        Door.open(doors.1)
        driver.waitForFrames(driver.chain.progress.captured + 20)
        #expect(driver.chain.currentState == .streaming && !driver.allEvents.contains(where: isDraining))
        #expect(!driver.allEvents.contains { $0.name == "stage-failed" })
        #expect(driver.finish().isSuccess)
    }

    /// What a stage that was not needed says at its end is told, and fails nothing.
    @Test func aNewStageThatStopsBadlyFailsNoRunWhoseChangeIsRefused() throws {
        let (door, log) = ("end-unneeded", "end-unneeded-log")
        let before = try LiveOptionTests.twoBranches("end-unneeded-none", door)
        var after = try before.setting("one", #"{"level": 9}"#).setting("two", #"{"level": 9}"#)
        try after.add(BadlyStoppingSink.self, "new", options: #"{"log": "\#(log)"}"#, from: ["src"])
        let driver = try RunningChainDriver(before)
        driver.waitForFrames(10)
        Door.shut(door)
        Door.waitForSomebody(door)
        #expect(!driver.change(to: after, isRepeating: false).isOK)
        driver.waitForEvent { $0.name == "stage-end-failed" && $0.stage == "new" && $0.level == .warning }
        Door.open(door)
        #expect(driver.finish().isSuccess)
        #expect(BadlyStoppingSink.stops(log) == [1])
    }

    /// The last one that fails need not be the one that ends the run.
    @Test func theRunEndsWhereNoSinkIsLeft() throws {
        var sketch = ChainSketch()
        sketch.request.spare = 4
        try sketch.add(CountingSource.self, "src", options: #"{"count": 1000000, "everyMs": 1}"#)
        for (id, policy) in [("first", nil), ("second", OnError.continue)] {
            let at = id == "first" ? 20 : 60
            try sketch.add(
                RecordingSink.self, id, options: #"{"log": "end-no-sink-\#(id)", "failAt": \#(at)}"#, from: ["src"],
                link: LinkRequest(queue: 2), onError: policy)
        }
        let driver = try RunningChainDriver(sketch)
        driver.waitForEvent(isDraining)
        #expect(driver.finish().failures.count == 2)
    }

    @Test func theRunEndsWhereTheLastHealthySinkHasEnded() throws {
        var sketch = ChainSketch()
        sketch.request.spare = 4
        try sketch.add(CountingSource.self, "long", options: #"{"count": 1000000, "everyMs": 1}"#)
        try sketch.add(
            RecordingSink.self, "odd", options: #"{"log": "end-last-healthy", "failAt": 20}"#,
            link: LinkRequest(queue: 2))
        try sketch.add(CountingSource.self, "short", options: #"{"count": 300, "everyMs": 1}"#)
        try sketch.add(CountSink.self, "good", link: LinkRequest(queue: 2))
        let driver = try RunningChainDriver(sketch)
        driver.waitForEvent(isDraining)
        #expect(driver.finish().failures.count == 1)
    }

    /// An instance is stopped once, and what a failed one says at its end fails no run that goes on without it.
    @Test func aFailedInstanceIsStoppedOnce() throws {
        let log = "end-stopped-once"
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 1000000, "everyMs": 1}"#)
        try sketch.add(CountSink.self, "good", link: LinkRequest(queue: 2))
        try sketch.add(
            BadlyStoppingSink.self, "odd", options: #"{"log": "\#(log)"}"#, from: ["src"], link: LinkRequest(queue: 2),
            onError: .restart)
        let driver = try RunningChainDriver(sketch)
        driver.waitForEvent { $0.name == "stage-restarted" && $0.stage == "odd" }
        let result = driver.finish()
        #expect(result.isSuccess, "\(result)")
        // On a busy machine instances are made that never come into their place.
        let stops = BadlyStoppingSink.stops(log)
        #expect(stops.count >= 2 && stops.allSatisfy { $0 == 1 }, "\(stops)")
    }

    /// It would get nothing more.
    @Test func aStageWhoseInputHasEndedIsNotRestarted() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 1000000, "everyMs": 1}"#)
        try sketch.add(CountSink.self, "good")
        try sketch.add(CountingSource.self, "short", options: #"{"count": 30}"#)
        try sketch.add(FailingAtDrainFilter.self, "odd", onError: .restart)
        try sketch.add(CountSink.self, "side")
        let driver = try RunningChainDriver(sketch)
        let odd = try #require(driver.chain.graph.runner(id: "odd"))
        #expect(eventually { driver.chain.restarts.isOut(odd) })
        driver.waitForFrames(driver.chain.progress.captured + 20)
        #expect(driver.chain.currentState == .streaming)
        #expect(!driver.allEvents.contains { $0.name == "restart-failed" }, "\(driver.allEvents.map(\.text))")
        let result = driver.finish()
        #expect(result.failures.map(\.what) == ["the last frames could not be given"], "\(result)")
    }

    @Test func aStageThatFailsInItsLastAnswerStaysPaused() throws {
        func sketch(_ isOther: Bool) throws -> ChainSketch {
            var sketch = ChainSketch()
            try sketch.add(CountingSource.self, "src", options: #"{"count": 1000000, "everyMs": 1}"#)
            try sketch.add(CountSink.self, "good", link: LinkRequest(queue: 2))
            try sketch.add(
                BadlyEndingSink.self, "odd", options: isOther ? #"{"other": true}"# : "{}", from: ["src"],
                link: LinkRequest(queue: 2), onError: .restart)
            return sketch
        }
        let driver = try RunningChainDriver(try sketch(false))
        driver.waitForFrames(10)
        #expect(driver.answer { driver.chain.pause(stage: "odd", reply: $0) }.isOK)
        #expect(driver.change(to: try sketch(true)).isOK)
        driver.waitForEvent { $0.name == "stage-replaced" && $0.stage == "odd" }
        let odd = try #require(driver.chain.graph.runner(id: "odd"))
        #expect(driver.allEvents.contains { $0.name == "stage-failed" && $0.stage == "odd" })
        #expect(odd.isPaused && !odd.isDown)
        #expect(driver.answer { driver.chain.resume(stage: "odd", reply: $0) }.isOK)
        // It failed once, whatever it says when it is stopped: only the last instance counts, at the end.
        #expect(driver.finish().failures.map(\.what) == ["the file could not be finished"])
    }

    /// The time for which it waits, and tries to start, is not time for which it has run.
    @Test func aStageThatStartsSlowlyAndFailsIsGivenUp() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src")
        try sketch.add(CountSink.self, "sink", onError: .restart)
        let chain = try Chain(sketch.request)
        let runner = try #require(chain.graph.runner(id: "sink"))
        let fault = FrameHostError(.callFailed, what: "the device is busy")
        var now: Int64 = 0
        func failsAfter(_ seconds: Int64) -> Bool {
            now += seconds * 1_000_000_000
            return chain.restarts.judge(runner, fault, now: now).isOut
        }
        for _ in 0..<Restarts.mostInARow { #expect(!failsAfter(100)) }
        #expect(failsAfter(100))
        // Another instance ran for long enough.
        chain.restarts.began(runner.number, now: now)
        #expect(!failsAfter(61))
    }

    // MARK: Losses

    /// A change that would have removed it is refused meanwhile.
    @Test func aHangingStageThatWouldHaveLeftIsWatched() throws {
        let doors = ("end-watched-one", "end-watched-two")
        var before = try LiveOptionTests.twoBranches(doors.0, doors.1)
        before.request.stages[0].options.append(JSONNode.Member(key: "live", value: true))
        var after = try before.setting("one", #"{"level": 9}"#)
        after.request.stages.removeLast(2)
        let driver = try RunningChainDriver(before)
        driver.waitForFrames(10)
        Door.shut(doors.1)
        driver.waitForEvent { $0.name == "stage-hangs" && $0.stage == "sink-two" }
        Door.shut(doors.0)
        Door.waitForSomebody(doors.0)
        let answers = CommandAnswers()
        driver.chain.change(stage: nil, to: { [after] _ in after.request }, reply: answers.reply(1))
        #expect(try #require(answers.wait(for: 1)).isDone == false)
        Door.open(doors.0)
        Door.open(doors.1)
        let returned = driver.waitForEvent { $0.name == "stage-returned" && $0.stage == "sink-two" }
        #expect(returned?.text.contains("the live chain lost") == true, "\(returned?.text ?? "")")
        #expect(!driver.finish().losses.isEmpty)
    }

    @Test func onlyLossesOfPlacesThatWereThereCount() throws {
        var sketch = ChainSketch()
        for (source, sink) in [("one", "sink-one"), ("two", "sink-two")] {
            try sketch.add(CountingSource.self, source, options: #"{"live": true}"#)
            try sketch.add(CountSink.self, sink)
        }
        let graph = try Chain(sketch.request).graph
        // A graph as it is after a change that has removed the other source.
        var without = graph
        without.runners.removeAll { $0.id == "two" }
        let (one, two) = (try #require(graph.runner(id: "one")), try #require(graph.runner(id: "two")))
        for _ in 0..<5 { two.countDrop(.noBuffer) }
        let (all, some) = (LiveLosses(graph), LiveLosses(without))
        for _ in 0..<3 { one.countDrop(.noBuffer) }
        #expect(all.total == 5 && some.total == 0)
        #expect(LiveLosses(graph).since(all) == 3 && LiveLosses(graph).since(some) == 3)
        #expect(LiveLosses(without).since(all) == 3)
    }
}

/// Waits at a door when it starts.
private final class SlowlyStartingSource: Source {
    static let info = StageInfo(id: "slowly-starting-source", summary: "Starts slowly.", output: .video(.gray8))

    struct Options: StageOptions { @Option(help: "A door before the start.") var door = "" }

    var options: Options
    private let context: StageContext
    private var count: Int64 = 0

    init(options: Options, context: StageContext) {
        self.options = options
        self.context = context
    }

    func start() throws { Door.pass(options.door) }

    func negotiate() throws -> MediaFormat {
        .video(VideoFormat(.gray8, width: 16, height: 16, frameRate: Rational(1000)))
    }

    func produce(_ output: Output) throws -> SourceProgress {
        guard context.sleep(until: context.clock.now() + 1_000_000) else { return .ended }
        guard let frame = try output.makeFrame() else { return .more }
        frame.pts = MediaTime(nanoseconds: count * 1_000_000)
        count += 1
        try output.emit(frame)
        return .more
    }
}

/// Leaves a job that takes a while.
private final class JobSink: Sink {
    static let info = StageInfo(id: "job-sink", summary: "Leaves a job.", input: .anyVideo)
    typealias Options = NoOptions
    var options: NoOptions
    private let context: StageContext

    init(options: NoOptions, context: StageContext) {
        self.options = options
        self.context = context
    }

    func consume(_ input: consuming Sample) -> SinkVerdict { .delivered }

    func stop() {
        context.addJob("tidying") { progress in
            for _ in 0..<200 {
                guard !progress.isCancelled else { throw FrameHostError(.stopped, what: "given up") }
                usleep(1000)
            }
        }
    }
}

/// The first instance fails at once, and complains when it is stopped.
private final class BadlyStoppingSink: Sink {
    static let info = StageInfo(id: "badly-stopping", summary: "Stops badly.", input: .video(.gray8))

    struct Options: StageOptions { @Option(help: "Name of the count.") var log = "" }

    /// How often each instance was stopped.
    private static let counts = Locked<[String: [Int]]>([:])
    static func stops(_ log: String) -> [Int] { counts.withLock { $0[log] ?? [] } }

    var options: Options
    private let number: Int
    private var isFirst: Bool { number == 0 }

    init(options: Options, context: StageContext) {
        self.options = options
        number = Self.counts.withLock {
            $0[options.log, default: []].append(0)
            return $0[options.log]!.count - 1
        }
    }

    func consume(_ input: consuming Sample) throws -> SinkVerdict {
        guard !isFirst else { throw FrameHostError(.callFailed, what: "the first one fails") }
        return .delivered
    }

    func stop() throws {
        Self.counts.withLock { $0[options.log]![number] += 1 }
        guard !isFirst else { throw FrameHostError(.callFailed, what: "cannot be closed") }
    }
}

/// Fails when it is to finish.
private final class FailingAtDrainFilter: Transform {
    static let info = StageInfo(
        id: "failing-at-drain-filter", summary: "Fails at its end.", input: .video(.gray8), output: .video(.gray8))
    typealias Options = NoOptions
    var options: NoOptions
    init(options: NoOptions, context: StageContext) { self.options = options }
    func negotiate(_ input: MediaFormat) throws -> MediaFormat { input }

    func process(_ input: consuming Sample, _ output: Output) throws {
        guard case .frame(let frame) = consume input, let copy = try output.makeFrame() else { return }
        copy.copyPixels(from: frame)
        copy.copyProperties(from: frame)
        try output.emit(copy)
    }

    func drain(_ output: Output) throws {
        throw FrameHostError(.callFailed, what: "the last frames could not be given")
    }
}

/// Takes everything, and fails when it is to finish.
private final class BadlyEndingSink: Sink {
    static let info = StageInfo(id: "badly-ending", summary: "Fails at its end.", input: .video(.gray8))
    struct Options: StageOptions { @Option(help: "Makes another stage of it.") var other = false }
    var options: Options
    init(options: Options, context: StageContext) { self.options = options }
    func consume(_ input: consuming Sample) throws -> SinkVerdict { .delivered }
    func drain() throws { throw FrameHostError(.callFailed, what: "the file could not be finished") }
    func stop() throws { throw FrameHostError(.callFailed, what: "the file could not be closed") }
}
