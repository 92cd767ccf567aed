// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import FrameCore

/// What an instance keeps that was replaced, and has not ended yet.
@Suite struct ReplacedHoldTests {
    @Test func accusesNoInstanceOfWhatTheOneBeforeItKeeps() throws {
        let log = "replaced-hold"
        func chain(_ options: String) throws -> ChainSketch {
            var sketch = ChainSketch()
            sketch.request.spare = 8
            try sketch.add(CountingSource.self, "src", options: #"{"count": 100000000, "everyMs": 1}"#)
            try sketch.add(SlowlyEndingFilter.self, "keep", options: options)
            try sketch.add(RecordingSink.self, "file", options: #"{"log": "\#(log)"}"#)
            return sketch
        }
        let driver = try RunningChainDriver(try chain(#"{"keep": 4}"#))
        let runner = try #require(driver.chain.graph.runner(id: "keep"))
        #expect(eventually { runner.keptNow == 4 })
        let answer = driver.change(to: try chain(#"{"keep": 1}"#))
        #expect(answer.isOK && answer.details["replaced"] == ["keep"], "\(answer.error)")
        driver.waitForFrames(driver.chain.progress.captured + 100)
        #expect(SlowlyEndingFilter.keptAtTheEnd.withLock { $0 } == nil, "the first instance has ended")
        #expect(runner.keptNow == 1 && runner.mostKept == 1)
        SlowlyEndingFilter.mayEnd.withLock { $0 = true }
        #expect(eventually { SlowlyEndingFilter.keptAtTheEnd.withLock { $0 } == 4 })
        let result = driver.finish()
        #expect(result.keepsItsPromises, "\(result)")
        #expect(!driver.allEvents.contains { $0.name == "over-retention" })
        for pool in driver.chain.pools { #expect(pool.freeCount == pool.bufferCount, "\(pool.name)") }
    }
}

/// Keeps frames, and releases them at its end, once it may.
private final class SlowlyEndingFilter: Filter {
    static let info = StageInfo(id: "ends-slowly", summary: "Keeps.", input: .anyVideo, output: .sameAsInput, hold: 8)

    struct Options: StageOptions { @Option(help: "Frames kept.", range: 0...8) var keep = 0 }

    static let mayEnd = Locked(false)
    /// What the first instance released at its end.
    static let keptAtTheEnd = Locked<Int?>(nil)

    var options: Options
    private var frames = FrameRing(capacity: 9)

    init(options: Options, context: StageContext) { self.options = options }

    var demand: StageDemand {
        var demand = Self.declaredDemand
        demand.hold = options.keep
        return demand
    }

    func process(_ frame: inout Frame) -> Verdict {
        frames.push(frame.share(), keeping: options.keep)
        return .forward
    }

    func stop() {
        while !Self.mayEnd.withLock({ $0 }) { usleep(1000) }
        let count = frames.count
        while frames.pop() != nil {}
        Self.keptAtTheEnd.withLock { if $0 == nil { $0 = count } }
    }
}
