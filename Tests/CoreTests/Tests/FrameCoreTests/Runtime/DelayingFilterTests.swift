// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

/// Adds one to each sample, `delay` frames late.
final class LateWriter: DelayingFilter {
    static let info = StageInfo(
        id: "late-writer", summary: "Writes late.", input: .video(.gray8), output: .sameAsInput, access: .modify,
        hold: 16, delay: 16)
    struct Options: StageOptions {
        @Option(help: "Frames.", range: 0...16) var delay = 4
        @Option(help: "Throws at this frame.") var failAt = -1
    }
    var options: Options
    private var waiting = FrameRing(capacity: 17)
    private var calls = 0

    init(options: Options, context: StageContext) { self.options = options }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        (demand.hold, demand.delay) = (options.delay, options.delay)
        return demand
    }
    var held: Int { waiting.count }

    private static func write(_ frame: inout Frame) {
        frame.withMutablePlane(0) { plane in
            for y in 0..<plane.height { for x in 0..<plane.rowBytes { plane.row(y)[x] &+= 1 } }
        }
    }

    func process(_ frame: inout Frame) throws -> Verdict {
        Self.write(&frame)
        return .forward
    }

    func process(_ frame: consuming Frame, _ output: Output) throws {
        calls += 1
        if calls - 1 == options.failAt { throw FrameHostError(.broken, what: "out of luck") }
        waiting.append(frame)
        if waiting.count > options.delay { try giveOldest(output) }
    }

    private func giveOldest(_ output: Output) throws {
        guard var frame = waiting.takeOldest() else { return }
        Self.write(&frame)
        try output.emit(frame)
    }

    func drain(_ output: Output) throws { while waiting.count > 0 { try giveOldest(output) } }
    func stop() throws { waiting.removeAll() }
}

/// Declares a delay and has no way to keep it.
final class HastyFilter: Filter {
    static let info = StageInfo(
        id: "hasty", summary: "Says that it delays.", input: .video(.gray8), output: .sameAsInput, delay: 3)
    var options: NoOptions
    init(options: NoOptions, context: StageContext) { self.options = options }
    func process(_ frame: inout Frame) throws -> Verdict { .forward }
}

@Suite struct DelayingFilterTests {
    private static let grey = MediaFormat.video(VideoFormat(.gray8, width: 16, height: 16, frameRate: Rational(30)))

    @Test(arguments: [0, 1, 4]) func givesEachFrameOnceInOrder(delay: Int) throws {
        let driver = try StageDriver(LateWriter.self, options: #"{"delay": \#(delay)}"#, input: Self.grey)
        var given: [UInt64] = []
        func take() { while let frame = driver.takeFrame() { given.append(frame.sequenceNumber) } }
        for number in 0..<10 {
            try driver.send(driver.makeFrame())
            take()
            #expect(given.count == max(0, number + 1 - delay))
            #expect(driver.keptBuffers == min(number + 1, delay))
        }
        try driver.drain()
        take()
        #expect(given == Array(0..<10))
        try driver.stop()
    }

    /// Beside a branch that shows the same buffers: they stay as they were there.
    @Test(arguments: [0, 5], [1, 3]) func writesWhatNobodyElseHolds(delay: Int, queue: Int) throws {
        let log = "late-\(delay)-\(queue)"
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 300}"#)
        try sketch.add(LateWriter.self, "late", options: #"{"delay": \#(delay)}"#, link: LinkRequest(queue: queue))
        try sketch.add(AddOne.self, "add")
        try sketch.add(RecordingSink.self, "sink", options: #"{"log": "\#(log)"}"#)
        try sketch.add(
            RecordingSink.self, "beside", options: #"{"log": "\#(log)-beside", "keep": 2}"#, from: ["src"],
            link: LinkRequest(queue: 2))
        let chain = try Chain(sketch.request)
        let (result, _) = ChainTests.run(chain)
        #expect(result.isSuccess, "\(result)")
        #expect(
            RecordingSink.log(log).entries
                == (0..<300).map { RecordingSink.Entry(sequence: $0, pixel: UInt8(truncatingIfNeeded: $0 + 2)) })
        #expect(
            RecordingSink.log("\(log)-beside").entries
                == (0..<300).map { RecordingSink.Entry(sequence: $0, pixel: UInt8(truncatingIfNeeded: $0)) })
        #expect(chain.ledger.inFlight == 0)
    }

    @Test func whatWaitsIsInThePlan() throws {
        func size(delay: Int) throws -> Int {
            var sketch = ChainSketch()
            sketch.request.spare = 0
            try sketch.add(CountingSource.self, "src", options: #"{"count": 10}"#)
            try sketch.add(LateWriter.self, "late", options: #"{"delay": \#(delay)}"#)
            try sketch.add(RecordingSink.self, "sink", options: #"{"log": "late-plan"}"#)
            return try #require(Chain(sketch.request).plan.budget.pools.map(\.size).first)
        }
        #expect(try size(delay: 5) >= size(delay: 0) + 5)
    }

    @Test func whatWaitsIsCountedWhereItFails() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 50}"#)
        try sketch.add(
            LateWriter.self, "late", options: #"{"delay": 5, "failAt": 20}"#, onError: .continue)
        try sketch.add(RecordingSink.self, "sink", options: #"{"log": "late-fails"}"#)
        let chain = try Chain(sketch.request)
        _ = ChainTests.run(chain)
        #expect(RecordingSink.log("late-fails").entries.map(\.sequence) == Array(0..<15))
        #expect(chain.ledger.inFlight == 0, "\(chain.ledger)")
    }

    @Test func cannotBePassedByWhileItDelays() throws {
        func fault(delay: Int) -> String? {
            do {
                var sketch = ChainSketch()
                try sketch.add(CountingSource.self, "src")
                try sketch.add(LateWriter.self, "late", options: #"{"delay": \#(delay)}"#, onError: .bypass)
                try sketch.add(RecordingSink.self, "sink")
                _ = try Chain(sketch.request)
                return nil
            } catch {
                return "\(error)"
            }
        }
        #expect(fault(delay: 0) == nil)
        #expect(
            fault(delay: 3)?.contains(
                "onError: 'bypass' needs a filter that keeps no frame back, and 'late' keeps back 3 frames. Use \"stop\", \"continue\" or \"restart\"."
            ) == true, "\(fault(delay: 3) ?? "nothing")")
    }

    /// Nor by a change of the chain that runs, which keeps the stage.
    @Test func cannotBePassedByAfterAChangeEither() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 1000000, "everyMs": 1}"#)
        try sketch.add(LateWriter.self, "late", options: #"{"delay": 3}"#)
        try sketch.add(RecordingSink.self, "sink", options: #"{"log": "late-bypass"}"#)
        let driver = try RunningChainDriver(sketch)
        sketch.request.stages[1].onError = .bypass
        let answer = driver.change(to: sketch)
        #expect(!answer.isOK)
        #expect(
            answer.error.contains(
                "onError: 'bypass' needs a filter that keeps no frame back, and 'late' keeps back 3 frames."),
            "\(answer.error)")
        #expect(driver.finish().isSuccess)
    }

    @Test func aFilterThatSaysItDelaysMustBeOneThatCan() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src")
        try sketch.add(HastyFilter.self, "hasty")
        try sketch.add(RecordingSink.self, "sink")
        let error = #expect(throws: FrameHostErrors.self) { _ = try Chain(sketch.request) }
        #expect(
            error?.errors.contains {
                $0.description.contains("the 'delay' of 'hasty' would be 3, but its type hasty keeps no frame back")
            } == true, "\(String(describing: error))")
    }

    /// A change while the chain runs: the old instance gives what it holds, the run is wired anew.
    @Test func canBeExchangedForOneThatDoesNotDelay() throws {
        var sketch = ChainSketch()
        sketch.request.spare = 16
        try sketch.add(CountingSource.self, "src", options: #"{"count": 1000000, "everyMs": 1}"#)
        try sketch.add(LateWriter.self, "late", options: #"{"delay": 5}"#)
        try sketch.add(RecordingSink.self, "sink", options: #"{"log": "late-exchange"}"#)
        let driver = try RunningChainDriver(sketch)
        driver.waitForFrames(20)
        let hasty = try sketch.setting("late", #"{"delay": 0}"#)
        let done = driver.change(to: hasty)
        #expect(done.isOK, "\(done.error)")
        driver.waitForFrames(Int(done.frame) + 30)
        let back = driver.change(to: sketch)
        #expect(back.isOK, "\(back.error)")
        driver.waitForFrames(Int(back.frame) + 30)
        let result = driver.finish()
        #expect(result.isSuccess, "\(result)")
        let numbers = RecordingSink.log("late-exchange").entries.map(\.sequence)
        #expect(numbers == Array(0..<UInt64(numbers.count)))
    }
}
