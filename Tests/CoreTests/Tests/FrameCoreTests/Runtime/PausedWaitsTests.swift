// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

/// What is said where a stage of several inputs waits for one that somebody paused: nobody is to blame for it.
@Suite struct PausedWaitsTests {
    /// Two sources, each with a filter behind it, and a join of both.
    private func joined(_ log: String, source: String) throws -> ChainSketch {
        var sketch = ChainSketch()
        for index in 0..<2 {
            try sketch.add(TimedSource.self, "src\(index)", options: source, from: [])
            try sketch.add(ProbeFilter.self, "mid\(index)", from: ["src\(index)"])
        }
        try sketch.add(NotingJoin.self, "join", options: #"{"log": "\#(log)"}"#, from: ["mid0", "mid1"])
        try sketch.add(RecordingSink.self, "sink", options: #"{"log": "\#(log)"}"#)
        return sketch
    }

    private func pause(_ stage: String, of driver: RunningChainDriver) {
        #expect(driver.answer { driver.chain.pause(stage: stage, isDropping: true, reply: $0) }.isOK)
    }

    private func resume(_ stage: String, of driver: RunningChainDriver) {
        #expect(driver.answer { driver.chain.resume(stage: stage, reply: $0) }.isOK)
    }

    /// What is posted of a link that stands still, and then that the chain has no problem.
    private func said(of driver: RunningChainDriver) throws -> Event {
        let event = try #require(
            driver.waitForEvent { ["link-stalled", "out-of-buffers"].contains($0.name) && $0.text.contains("paused") })
        #expect(event.level == .info, "\(event)")
        #expect(!event.text.contains("disk") && !event.text.contains("machine"), "\(event.text)")
        // A source counts as silent after five seconds.
        let begin = ChainClock.system.now()
        while ChainClock.system.now() - begin < 6_000_000_000 {
            let problems = driver.chain.status.problems
            guard problems.isEmpty else {
                Issue.record("\(problems)")
                break
            }
        }
        return event
    }

    @Test func saysWhichPausedInputAJoinWaitsFor() throws {
        let driver = try RunningChainDriver(joined("paused-join", source: "{}"))
        pause("src1", of: driver)
        let event = try said(of: driver)
        #expect(
            event.text.hasSuffix(
                " 'join' waits for its input 'mid1', since 'src1' is paused. It goes on when 'src1' is resumed."),
            "\(event.text)")
        resume("src1", of: driver)
        let count = NotingJoin.notes("paused-join").count
        #expect(eventually { NotingJoin.notes("paused-join").count > count })
        #expect(driver.finish().keepsItsPromises)
    }

    @Test func saysWhichPausedInputASinkWaitsFor() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "pic", options: #"{"count": 100000000}"#, from: [])
        try sketch.add(UnitEncoder.self, "h264")
        try sketch.add(BlockSource.self, "snd", options: #"{"count": 100000000}"#, from: [])
        try sketch.add(BlockEncoder.self, "aac")
        try sketch.add(OrderSink.self, "sink", options: #"{"log": "paused-sink"}"#, from: ["h264", "aac"])
        let driver = try RunningChainDriver(sketch)
        pause("snd", of: driver)
        let event = try said(of: driver)
        #expect(event.text.contains(" 'sink' waits for its input 'aac', since 'snd' is paused."), "\(event.text)")
        resume("snd", of: driver)
        #expect(driver.finish().keepsItsPromises)
    }

    @Test func blamesThePauseForWhatALiveJoinLoses() throws {
        let driver = try RunningChainDriver(joined("paused-live", source: #"{"live": true, "stepUs": 5000}"#))
        #expect(eventually { NotingJoin.notes("paused-live").count > 5 })
        pause("src1", of: driver)
        let event = try #require(
            driver.waitForEvent { $0.name == "frames-dropped" && $0.text.contains(" is paused.") })
        #expect(event.level <= .info && event.details["tooSlow"] == nil, "\(event)")
        #expect(event.text.contains(" 'join' waits for its input 'mid1', since 'src1' is paused."), "\(event.text)")
        let lost = LiveLosses(driver.chain.graph).total
        // More than what a busy machine may have lost before.
        #expect(eventually { LiveLosses(driver.chain.graph).total > 3 * lost + 100 })
        let result = driver.finish()
        #expect(result.keepsItsPromises)
        let past = ": 'join' waited for its input 'mid1', since 'src1' was paused."
        #expect(result.drops.contains { $0.hasSuffix(past) }, "\(result.drops)")
    }
}
