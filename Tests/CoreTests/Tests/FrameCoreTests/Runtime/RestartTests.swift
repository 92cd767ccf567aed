// SPDX-License-Identifier: Apache-2.0

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
            #expect(chain.restarts.isToBeRestarted(runner, FrameHostError(.callFailed, what: "earlier"), now: now))
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
