// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import FrameCore

/// Stages with `onError: "restart"`: when they are given up, and what becomes of their faults when they leave.
@Suite struct RestartTests {
    /// Each instance of `odd` fails once, at the 20th frame or the next that comes.
    private func base(_ log: String, onError: OnError? = .restart) throws -> ChainSketch {
        var sketch = ChainSketch()
        sketch.request.spare = 4
        try sketch.add(CountingSource.self, "src", options: #"{"count": 1000000, "everyMs": 1}"#)
        try sketch.add(ProbeFilter.self, "mark")
        try sketch.add(RecordingSink.self, "file", options: #"{"log": "\#(log)"}"#)
        try sketch.add(
            ProbeFilter.self, "odd", options: #"{"failFrom": 20}"#, from: ["src"], link: LinkRequest(queue: 2),
            onError: onError)
        try sketch.add(RecordingSink.self, "side", options: #"{"log": "\#(log)-side"}"#)
        return sketch
    }

    private func failed(_ log: String, onError: OnError? = .restart) throws -> RunningChainDriver {
        let driver = try RunningChainDriver(try base(log, onError: onError))
        driver.waitForEvent { $0.name == "stage-failed" && $0.stage == "odd" }
        return driver
    }

    private func withoutOdd(_ log: String) throws -> ChainSketch {
        var sketch = try base(log)
        sketch.request.stages.removeLast(2)
        return sketch
    }

    /// Without an end, the chain would go on for ever without what the stage gave.
    @Test func endsTheRunOnceAStageIsGivenUp() throws {
        let chain = try Chain(try base("restart-given-up").request)
        let runner = try #require(chain.graph.runner(id: "odd"))
        for _ in 0..<Restarts.mostInARow {
            let now = ChainClock.system.now()
            #expect(!chain.restarts.judge(runner, FrameHostError(.callFailed, what: "earlier"), now: now).isOut)
        }
        // Made anew meanwhile, so to speak.
        _ = chain.restarts.due(now: .max)
        let deadline = ChainClock.system.now() + 60_000_000_000
        var isLate = false
        let result = chain.run {
            guard !isLate, ChainClock.system.now() >= deadline else { return }
            isLate = true
            chain.cancel()
        }
        #expect(!isLate)
        #expect(result.failures.count == 1 && !result.isSuccess, "\(result)")
        #expect(chain.restarts.awaited(runner) == nil)
    }

    @Test func aFailedStageThatIsDetachedFailsTheRun() throws {
        let driver = try failed("restart-detached")
        let answer = driver.change(to: try withoutOdd("restart-detached"))
        #expect(answer.isOK, "\(answer)")
        driver.waitForFrames(driver.chain.progress.captured + 20)
        let result = driver.finish()
        #expect(result.failures.count == 1 && result.ledgerFaults.isEmpty, "\(result)")
    }

    /// It is no part of the chain any more, so nothing starts it anew.
    @Test func aStageThatFailsWhileItLeavesFailsTheRun() throws {
        var sketch = try withoutOdd("restart-leaving")
        try sketch.add(
            FailingAtDrainSink.self, "odd", from: ["src"], link: LinkRequest(queue: 2), onError: .restart)
        let driver = try RunningChainDriver(sketch)
        driver.waitForFrames(20)
        #expect(driver.change(to: try withoutOdd("restart-leaving")).isOK)
        driver.waitForEvent { $0.name == "stage-failed" && $0.stage == "odd" }
        let before = driver.chain.progress.captured
        driver.waitForFrames(before + 20)
        #expect(driver.chain.currentState == .streaming, "a stage that leaves ends no run")
        let result = driver.finish()
        #expect(result.failures.count == 1 && result.ledgerFaults.isEmpty, "\(result)")
    }

    @Test(arguments: [OnError.continue, .stop, nil]) func aFailedStageWithAnotherPolicyIsNotRestarted(policy: OnError?)
        throws
    {
        let log = "restart-policy-\(policy?.rawValue ?? "none")"
        let driver = try failed(log)
        let runner = try #require(driver.chain.graph.runner(id: "odd"))
        #expect(driver.chain.restarts.awaited(runner) != nil || !runner.hasFailed)
        let answer = driver.change(to: try base(log, onError: policy))
        // Where the stage was restarted before, the next failure is judged by the new policy.
        driver.waitForEvent { $0.name == "stage-failed" && $0.stage == "odd" }
        #expect(answer.isOK || policy != .continue, "\(answer)")
        if policy == .continue {
            let deadline = ChainClock.system.now() + 60_000_000_000
            while !runner.hasFailed, ChainClock.system.now() < deadline { driver.waitForFrames(1) }
            #expect(driver.chain.restarts.awaited(runner) == nil)
            #expect(driver.chain.currentState == .streaming)
        } else {
            driver.waitForEvent { $0.name == "state" && $0.details["state"]?.asString == "draining" }
        }
        let result = driver.finish()
        #expect(result.failures.count == 1 && result.ledgerFaults.isEmpty, "\(result)")
    }

    /// It would rest for ever otherwise, and its sink with it.
    @Test func aFailedSourceThatIsNoLongerRestartedEnds() throws {
        func sketch(_ policy: OnError) throws -> ChainSketch {
            var sketch = ChainSketch()
            try sketch.add(CountingSource.self, "src", options: #"{"count": 1000000, "everyMs": 1}"#)
            try sketch.add(CountSink.self, "file")
            try sketch.add(FailingSource.self, "odd", onError: policy)
            try sketch.add(CountSink.self, "side")
            return sketch
        }
        let driver = try RunningChainDriver(try sketch(.restart))
        driver.waitForEvent { $0.name == "stage-failed" && $0.stage == "odd" }
        #expect(driver.change(to: try sketch(.continue)).isOK)
        let runners = try ["odd", "side"].map { try #require(driver.chain.graph.runner(id: $0)) }
        let deadline = ChainClock.system.now() + 60_000_000_000
        while !runners.allSatisfy({ $0.thread.isClosed }), ChainClock.system.now() < deadline {
            driver.waitForFrames(1)
        }
        #expect(runners.allSatisfy { $0.thread.isClosed })
        #expect(driver.chain.currentState == .streaming)
        let result = driver.finish()
        #expect(result.failures.count == 1 && result.ledgerFaults.isEmpty, "\(result)")
    }

    @Test func framesPassAFailedFilterThatIsBypassedNow() throws {
        let driver = try failed("restart-bypass")
        #expect(driver.change(to: try base("restart-bypass", onError: .bypass)).isOK)
        let before = RecordingSink.log("restart-bypass-side").entries.count
        let deadline = ChainClock.system.now() + 60_000_000_000
        while RecordingSink.log("restart-bypass-side").entries.count < before + 20,
            ChainClock.system.now() < deadline
        { driver.waitForFrames(1) }
        #expect(RecordingSink.log("restart-bypass-side").entries.count >= before + 20)
        let result = driver.finish()
        #expect(result.failures.count == 1 && result.ledgerFaults.isEmpty, "\(result)")
    }

    /// The first sink that fails waits for the second, which is awaited: without either, nothing is left to do.
    @Test func theRunEndsWhereTheLastSinkIsNoLongerAwaited() throws {
        let driver = try RunningChainDriver(try twoSinks("restart-last", .restart))
        for id in ["one", "two"] { driver.waitForEvent { $0.name == "stage-failed" && $0.stage == id } }
        #expect(driver.chain.currentState == .streaming)
        let answer = driver.change(to: try twoSinks("restart-last", nil))
        #expect(answer.isOK, "\(answer)")
        driver.waitForEvent { $0.name == "state" && $0.details["state"]?.asString == "draining" }
        let result = driver.finish()
        #expect(result.failures.count == 2 && result.ledgerFaults.isEmpty, "\(result)")
    }

    /// Two sinks that fail, of which the second stays without a word of the chain file.
    private func twoSinks(_ log: String, _ policy: OnError?) throws -> ChainSketch {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 1000000, "everyMs": 1}"#)
        for (id, policy) in [("one", policy), ("two", nil)] {
            try sketch.add(
                RecordingSink.self, id, options: #"{"log": "\#(log)", "failAt": 20}"#, from: ["src"],
                link: LinkRequest(queue: 2), onError: policy)
        }
        return sketch
    }

    /// A failure is judged when it happens, and when the stage has another `onError`; not at each change.
    @Test(arguments: [OnError.restart, .stop]) func aFailureIsJudgedAgainByAnotherPolicyAlone(policy: OnError) throws {
        let log = "restart-again-\(policy)"
        let driver = try failed(log, onError: .continue)
        let refused = try base(log, onError: .continue).setting("mark", #"{"nonsense": 1}"#)
        #expect(!driver.change(to: refused).isOK)
        driver.waitForFrames(driver.chain.progress.captured + 20)
        #expect(driver.chain.currentState == .streaming)
        #expect(driver.change(to: try base(log, onError: policy)).isOK)
        if policy == .restart {
            driver.waitForEvent { $0.name == "stage-restarted" && $0.stage == "odd" }
        } else {
            driver.waitForEvent { $0.name == "state" && $0.details["state"]?.asString == "draining" }
        }
        let result = driver.finish()
        #expect(result.failures.count >= 1 && result.ledgerFaults.isEmpty, "\(result)")
    }

    /// A bypassed filter has failed too.
    @Test(arguments: [OnError.restart, .stop, .continue]) func aBypassedFilterIsJudgedByAnotherPolicy(policy: OnError)
        throws
    {
        let log = "restart-bypassed-\(policy)"
        let driver = try failed(log, onError: .bypass)
        #expect(driver.change(to: try base(log, onError: policy)).isOK)
        switch policy {
        case .restart: driver.waitForEvent { $0.name == "stage-restarted" && $0.stage == "odd" }
        case .stop: driver.waitForEvent { $0.name == "state" && $0.details["state"]?.asString == "draining" }
        default:
            let runner = try #require(driver.chain.graph.runner(id: "odd"))
            let deadline = ChainClock.system.now() + 60_000_000_000
            while !runner.hasFailed, ChainClock.system.now() < deadline { driver.waitForFrames(1) }
            #expect(runner.hasFailed && driver.chain.currentState == .streaming)
        }
        let result = driver.finish()
        #expect(result.failures.count >= 1 && result.ledgerFaults.isEmpty, "\(result)")
    }

    /// Only failures are counted, not how often the chain file changes.
    @Test func anotherPolicyIsNoAttempt() throws {
        let chain = try Chain(try base("restart-no-attempt").request)
        let runner = try #require(chain.graph.runner(id: "odd"))
        let fault = FrameHostError(.callFailed, what: "earlier")
        #expect(!chain.restarts.judge(runner, fault, now: 0).isOut)
        for _ in 0..<2 * Restarts.mostInARow { #expect(!chain.restarts.judge(runner, nil, now: 0).isOut) }
        #expect(chain.restarts.due(now: 2_000_000_000) == [runner.number])
    }

    /// Without its healthy neighbour, the failed sink is the only one.
    @Test func theRunEndsWhereOnlyAFailedSinkIsLeft() throws {
        let log = "restart-only"
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 1000000, "everyMs": 1}"#)
        try sketch.add(
            RecordingSink.self, "odd", options: #"{"log": "\#(log)", "failAt": 20}"#, from: ["src"],
            link: LinkRequest(queue: 2))
        let alone = sketch
        try sketch.add(CountSink.self, "good", from: ["src"], link: LinkRequest(queue: 2))
        let driver = try RunningChainDriver(sketch)
        driver.waitForEvent { $0.name == "stage-failed" && $0.stage == "odd" }
        driver.waitForFrames(driver.chain.progress.captured + 20)
        #expect(driver.chain.currentState == .streaming)
        #expect(driver.change(to: alone).isOK)
        driver.waitForEvent { $0.name == "state" && $0.details["state"]?.asString == "draining" }
        #expect(driver.finish().failures.count == 1)
    }

    // MARK: During a change

    /// A chain with a source of its own, and a change of it that attaches a sink which starts when a door opens.
    private func startingLate(_ door: String, _ policies: (before: OnError?, after: OnError?))
        throws -> (ChainSketch, ChainSketch)
    {
        func sketch(_ policy: OnError?) throws -> ChainSketch {
            var sketch = ChainSketch()
            sketch.request.spare = 4
            try sketch.add(CountingSource.self, "src", options: #"{"count": 1000000, "everyMs": 1}"#)
            try sketch.add(CountSink.self, "file")
            try sketch.add(FailingSource.self, "odd", options: #"{"door": "\#(door)"}"#, onError: policy)
            try sketch.add(CountSink.self, "side")
            return sketch
        }
        return (try sketch(policies.before), try attachingLate(to: sketch(policies.after), door))
    }

    private func attachingLate(to sketch: ChainSketch, _ door: String) throws -> ChainSketch {
        var after = sketch
        try after.add(
            SlowlyStartingSink.self, "late", options: #"{"door": "\#(door)"}"#, from: ["src"],
            link: LinkRequest(queue: 2, whenFull: .dropNewest))
        return after
    }

    /// What never returns from a change must not keep a failed run going.
    @Test func aFailureIsJudgedWhereTheChangeTakesTooLong() throws {
        let door = "restart-hung"
        let (before, after) = try startingLate(door, (nil, nil))
        Door.shut(door)
        let driver = try RunningChainDriver(before)
        driver.waitForFrames(10)
        let answers = CommandAnswers()
        driver.chain.change(stage: nil, to: { _ in after.request }, reply: answers.reply(1))
        driver.waitForEvent { $0.name == "stage-failed" && $0.stage == "odd" }
        driver.waitForEvent { $0.name == "state" && $0.details["state"]?.asString == "draining" }
        #expect(answers[1] == nil)
        Door.open(door)
        #expect(driver.finish().failures.count >= 1)
    }

    /// A stage that is being started is in no graph yet.
    @Test func aStageThatDoesNotReturnFromAChangeIsAbandonedByName() throws {
        let door = "restart-abandoned"
        var before = ChainSketch()
        before.request.spare = 4
        try before.add(CountingSource.self, "src", options: #"{"count": 1000000, "everyMs": 1}"#)
        try before.add(CountSink.self, "file")
        let after = try attachingLate(to: before, door)
        Door.shut(door)
        let driver = try RunningChainDriver(before)
        driver.waitForFrames(10)
        driver.chain.change(stage: nil, to: { [after] _ in after.request }, reply: { _ in })
        Door.waitForSomebody(door)
        driver.waitForEvent { $0.name == "stage-hangs" && $0.stage == "late" }
        driver.chain.cancel()
        let result = driver.finish()
        #expect(result.abandoned.contains("late (slowly-starting)") && !result.isSuccess, "\(result)")
        Door.open(door)
    }

    /// The thread of changes ends with the change, before another look may see it. What is lost meanwhile is not the
    /// start's doing.
    @Test func aStageThatStartsSlowlyIsSaidToHaveStarted() throws {
        let (door, shut) = ("restart-slow", "restart-slow-sink")
        var before = ChainSketch()
        before.request.spare = 4
        try before.add(CountingSource.self, "src", options: #"{"count": 1000000, "everyMs": 1, "live": true}"#)
        try before.add(
            DoorSink.self, "file", options: #"{"door": "\#(shut)"}"#, link: LinkRequest(queue: 2, whenFull: .dropOldest)
        )
        let after = try attachingLate(to: before, door)
        Door.shut(door)
        let driver = try RunningChainDriver(before)
        driver.waitForFrames(10)
        let answers = CommandAnswers()
        driver.chain.change(stage: nil, to: { [after] _ in after.request }, reply: answers.reply(1))
        driver.waitForEvent { $0.name == "stage-hangs" && $0.stage == "late" }
        // For less than a call may take.
        Door.shut(shut)
        usleep(200_000)
        Door.open(shut)
        Door.open(door)
        #expect(try #require(answers.wait(for: 1)).isDone)
        let returned = try #require(driver.waitForEvent { $0.name == "stage-returned" && $0.stage == "late" })
        #expect(!returned.text.contains("lost"), "\(returned.text)")
        driver.waitForFrames(driver.chain.progress.captured + 20)
        #expect(driver.finish().failures.isEmpty)
    }

    /// The change that is being made says that it is started anew.
    @Test func aSourceThatFailsDuringAChangeIsJudgedByWhatComes() throws {
        let door = "restart-source"
        let (before, after) = try startingLate(door, (.stop, .restart))
        Door.shut(door)
        let driver = try RunningChainDriver(before)
        driver.waitForFrames(10)
        let answers = CommandAnswers()
        driver.chain.change(stage: nil, to: { _ in after.request }, reply: answers.reply(1))
        driver.waitForEvent { $0.name == "stage-failed" && $0.stage == "odd" }
        Door.open(door)
        let answer = try #require(answers.wait(for: 1))
        // On a machine that is too busy the failure was judged before.
        if answer.isDone, driver.chain.currentState == .streaming {
            driver.waitForEvent { $0.name == "stage-restarted" && $0.stage == "odd" }
        }
        #expect(driver.finish().ledgerFaults.isEmpty)
    }

    enum Refused: CaseIterable { case stopsNow, goesOn, restarts, leaves }

    /// It is judged by the chain that stays, and not by the one that it would have been.
    @Test(arguments: Refused.allCases) func aStageThatFailsDuringARefusedChange(refused: Refused) throws {
        let door = "restart-judged-\(refused)"
        func sketch(_ policy: OnError?) throws -> ChainSketch {
            var sketch = ChainSketch()
            sketch.request.spare = 4
            try sketch.add(CountingSource.self, "src", options: #"{"count": 1000000, "everyMs": 1}"#)
            for id in ["late", "odd"] {
                try sketch.add(
                    ProbeFilter.self, id, from: ["src"], link: LinkRequest(queue: 2, whenFull: .dropNewest),
                    onError: id == "odd" ? policy : nil)
                try sketch.add(
                    DoorSink.self, "sink-\(id)", options: id == "odd" ? "{}" : #"{"door": "\#(door)"}"#,
                    link: LinkRequest(queue: 0))
            }
            return sketch
        }
        let (was, asked): (OnError?, OnError?) =
            switch refused {
            case .stopsNow: (nil, .continue)
            case .goesOn: (.continue, .stop)
            case .restarts: (.restart, .continue)
            case .leaves: (.restart, .restart)
            }
        let driver = try RunningChainDriver(try sketch(was))
        let odd = try #require(driver.chain.graph.runner(id: "odd"))
        driver.waitForFrames(10)
        Door.shut(door)
        Door.waitForSomebody(door)
        var changed = try sketch(asked).setting("late", #"{"level": 9}"#)
        if refused == .leaves { changed.request.stages.removeLast(2) }
        let answers = CommandAnswers()
        driver.chain.change(stage: nil, to: { [changed] _ in changed.request }, reply: answers.reply(1))
        // The door keeps the change for a second, which is enough on most machines.
        let deadline = ChainClock.system.now() + 60_000_000_000
        while !driver.chain.judgements.withLock({ $0.isOpen }), answers[1] == nil, ChainClock.system.now() < deadline {
            usleep(200)
        }
        // Not as a command: what leaves the graph for a moment has no id.
        Errand { try? odd.instance.set([JSONNode.Member(key: "failFrom", value: 0)]) { key, _ in FaultPlace(key) } }
            .post(to: odd.thread)
        driver.waitForEvent { $0.name == "stage-failed" && $0.stage == "odd" }
        let answer = try #require(answers.wait(for: 1))
        #expect(!answer.isDone, "\(answer)")
        Door.open(door)
        switch refused {
        case .stopsNow: driver.waitForEvent { $0.name == "state" && $0.details["state"]?.asString == "draining" }
        case .goesOn:
            driver.waitForFrames(driver.chain.progress.captured + 20)
            #expect(driver.chain.currentState == .streaming && odd.hasFailed)
        case .restarts, .leaves: driver.waitForEvent { $0.name == "stage-restarted" && $0.stage == "odd" }
        }
        let result = driver.finish()
        let isRestarted = was == .restart && !odd.hasFailed
        #expect(result.failures.count == (isRestarted ? 0 : 1) && result.ledgerFaults.isEmpty, "\(result)")
    }

    /// One that was restarted before is another stage.
    @Test func aLaterStageWithTheSameIdBeginsAnew() throws {
        let driver = try failed("restart-same-id")
        #expect(driver.change(to: try withoutOdd("restart-same-id")).isOK)
        #expect(driver.change(to: try base("restart-same-id", onError: .continue)).isOK)
        driver.waitForEvent { $0.name == "stage-attached" && $0.stage == "odd" }
        let runner = try #require(driver.chain.graph.runner(id: "odd"))
        let deadline = ChainClock.system.now() + 60_000_000_000
        while !runner.hasFailed, ChainClock.system.now() < deadline { driver.waitForFrames(1) }
        #expect(driver.chain.restarts.awaited(runner) == nil)
        #expect(driver.finish().failures.count == 2)
    }
}

/// Takes everything, and fails when it is to finish.
private final class FailingAtDrainSink: Sink {
    static let info = StageInfo(id: "failing-at-drain", summary: "Fails at its end.", input: .video(.gray8))

    struct Options: StageOptions {}

    var options: Options

    init(options: Options, context: StageContext) { self.options = options }

    func consume(_ input: consuming Sample) throws -> SinkVerdict { .delivered }

    func drain() throws { throw FrameHostError(.callFailed, what: "the file could not be finished") }
}
