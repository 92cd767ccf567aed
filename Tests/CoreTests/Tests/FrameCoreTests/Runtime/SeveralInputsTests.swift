// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import FrameCore

/// Sinks that take pictures and sound, on the real runner.
@Suite struct SeveralInputsTests {
    /// `pic` → `h264` and `snd` → `aac`, both into each of `sinks`.
    private func sketch(
        _ log: String, pictures: String, sound: String, sinks: Int = 1, link: LinkRequest = LinkRequest(),
        sleepUs: Int = 0
    ) throws -> ChainSketch {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "pic", options: pictures, from: [])
        try sketch.add(UnitEncoder.self, "h264")
        try sketch.add(BlockSource.self, "snd", options: sound, from: [])
        try sketch.add(BlockEncoder.self, "aac")
        for index in 0..<sinks {
            try sketch.add(
                OrderSink.self, "sink\(index)", options: #"{"log": "\#(log)\#(index)", "sleepUs": \#(sleepUs)}"#,
                from: index % 2 == 0 ? ["h264", "aac"] : ["aac", "h264"], link: link)
        }
        return sketch
    }

    private func rises(_ entries: [OrderSink.Entry]) -> Bool {
        zip(entries.dropFirst(), entries).allSatisfy { $0.milliseconds >= $1.milliseconds }
    }

    /// Pictures each millisecond, a unit of sound each 20; the sound's source is ever so much faster.
    @Test(arguments: [0, 3]) func givesTheItemsInTheOrderOfTheirTime(places: Int) throws {
        let link = LinkRequest(queue: places == 0 ? nil : places)
        let chain = try Chain(
            try sketch("ordered-\(places)-", pictures: #"{"count": 1000}"#, sound: #"{"count": 101}"#, link: link)
                .request)
        let result = chain.run()
        #expect(result.isSuccess, "\(result)")
        let entries = OrderSink.log("ordered-\(places)-0")
        #expect(entries.count { $0.input == 0 } == 1000)
        #expect(entries.count { $0.input == 1 } == 51, "the last one is half full")
        #expect(entries.first == OrderSink.Entry(input: 1, milliseconds: -10), "priming")
        #expect(rises(entries))
        #expect(chain.ledger.isBalanced && chain.ledgerFaults(afterDrain: true).isEmpty, "\(chain.ledger)")
    }

    /// Each sink waits for the input that the other one has full.
    @Test func severalSinksOfTheSameInputsDoNotWaitForEachOther() throws {
        let chain = try Chain(
            try sketch(
                "several-", pictures: #"{"count": 2000}"#, sound: #"{"count": 200}"#, sinks: 3,
                link: LinkRequest(queue: 1), sleepUs: 20
            ).request)
        var watch = ProgressWatch()
        let result = chain.run {
            if watch.hasStoodStill(chain) { chain.cancel() }
        }
        #expect(!watch.isOver, "\(watch.standstill)")
        #expect(result.isSuccess, "\(result)")
        for index in 0..<3 {
            let entries = OrderSink.log("several-\(index)")
            #expect(entries.count == 2100 && rises(entries))
        }
        #expect(chain.ledgerFaults(afterDrain: true).isEmpty)
    }

    /// One source, two encoders, one sink: its full queue keeps the source from feeding the other one.
    @Test func oneSourceBehindTwoInputsNeverStandsStill() throws {
        var sketch = ChainSketch()
        try sketch.add(BlockSource.self, "snd", options: #"{"count": 400}"#, from: [])
        try sketch.add(BlockEncoder.self, "a", link: LinkRequest(queue: 1))
        try sketch.add(BlockEncoder.self, "b", from: ["snd"], link: LinkRequest(queue: 1))
        try sketch.add(CountingSource.self, "pic", options: #"{"count": 3000}"#, from: [])
        try sketch.add(UnitEncoder.self, "h264")
        try sketch.add(
            OrderSink.self, "sink", options: #"{"log": "one-origin"}"#, from: ["h264", "a", "b"],
            link: LinkRequest(queue: 1))
        let chain = try Chain(sketch.request)
        #expect(chain.plan.inputsHaveOneOrigin(chain.plan.stages.firstIndex { $0.id == "sink" }!))
        let result = chain.run()
        #expect(result.isSuccess, "\(result)")
        #expect(OrderSink.log("one-origin").count == 3400)
    }

    /// A microphone that falls silent holds pictures up for a second, once.
    @Test func aLiveChainGoesOnWithoutAnInputThatFallsSilent() throws {
        let driver = try RunningChainDriver(
            try sketch(
                "silent-", pictures: #"{"count": 100000, "live": true, "everyMs": 10}"#,
                sound: #"{"count": 4, "live": true, "falls": true}"#))
        let sink = try #require(driver.chain.graph.runner(id: "sink0"))
        let deadline = ChainClock.system.now() + 120_000_000_000
        while sink.counters.delivered.value < 150, ChainClock.system.now() < deadline { usleep(1000) }
        let delivered = sink.counters.delivered.value
        let result = driver.finish()
        #expect(delivered >= 150)
        #expect(result.keepsItsPromises, "\(result)")
        #expect(driver.chain.ledger.isBalanced)
    }

    /// Sound can be decoded from any unit on, pictures only from a keyframe.
    @Test func picturesGoOnWithAKeyframeThoughSoundCameFirst() throws {
        let driver = try RunningChainDriver(
            try sketch(
                "resumed-", pictures: #"{"count": 100000, "live": true, "everyMs": 2}"#,
                sound: #"{"count": 100000, "live": true, "everyMs": 5}"#))
        let encoder = try #require(driver.chain.plan.stages.firstIndex { $0.id == "h264" })
        let pictureQueue = try #require(driver.chain.queues.first { $0.link.from == encoder }?.queue)
        func delivered() -> [OrderSink.Entry] { OrderSink.log("resumed-0").filter { $0.input == 0 } }
        func wait(until isSo: () -> Bool) {
            let deadline = ChainClock.system.now() + 60_000_000_000
            while !isSo(), ChainClock.system.now() < deadline { usleep(500) }
        }
        for _ in 0..<8 {
            let count = delivered().count
            wait { delivered().count > count }
            #expect(driver.answer { driver.chain.pause(stage: "sink0", isDropping: true, reply: $0) }.isOK)
            let taken = pictureQueue.snapshot().counts.taken
            wait { pictureQueue.snapshot().counts.taken > taken }
            #expect(driver.answer { driver.chain.resume(stage: "sink0", reply: $0) }.isOK)
        }
        let count = delivered().count
        wait { delivered().count > count }
        #expect(driver.finish().keepsItsPromises)
        let pictures = delivered()
        let breaks = zip(pictures.dropFirst(), pictures).filter { $0.number != $1.number + 1 }.map { $0.0 }
        #expect(breaks.count >= 8, "each pause leaves pictures out")
        #expect(breaks.allSatisfy { $0.isKeyframe }, "\(breaks)")
    }

    @Test func aStopEndsTheWaitForAnInput() throws {
        let driver = try RunningChainDriver(
            try sketch("stopped-", pictures: #"{"count": 100000}"#, sound: #"{"count": 4, "falls": true}"#))
        usleep(100_000)
        driver.chain.cancel()
        _ = driver.finish()
        for slab in driver.chain.graph.slabs { #expect(slab.usage.units == 0, "\(slab.name)") }
    }

    @Test func saysWhatDoesNotFit() throws {
        func faults(_ change: (inout ChainSketch) throws -> Void) throws -> String {
            var sketch = ChainSketch()
            try sketch.add(CountingSource.self, "pic", from: [])
            try sketch.add(UnitEncoder.self, "h264")
            try sketch.add(BlockSource.self, "snd", from: [])
            try sketch.add(BlockEncoder.self, "aac")
            try change(&sketch)
            do { _ = try Chain.plan(sketch.requestWithOpenEnds) } catch { return "\(error)" }
            return ""
        }
        #expect(
            try faults { try $0.add(OrderSink.self, "file", from: ["h264", "snd"]) }.contains(
                "stages[4].from: 'file' takes AAC or Opus, but 'snd' gives sound. Put an encoder of sound between them: \"use\": \"audio-encoder\"."
            ))
        #expect(
            try faults { try $0.add(OrderSink.self, "file", from: ["aac"]) }.contains(
                "'file' takes H.264, but 'aac' gives AAC. In 'from', first name a stage that gives H.264: \"from\": [\"…\", \"aac\"]."
            ))
        #expect(
            try faults { try $0.add(UnitEncoder.self, "enc", from: ["snd"]) }.contains(
                "'enc' takes raw video, but 'snd' gives sound. In 'from', name a stage that gives raw video."))
        #expect(
            try faults { try $0.add(BlockEncoder.self, "enc", from: ["pic"]) }.contains(
                "'enc' takes sound, but 'pic' gives raw video. In 'from', name a stage that gives sound."))
        #expect(
            try faults { try $0.add(UnitSink.self, "file", from: ["h264", "aac"]) }.contains(
                "'file' (unit-sink) takes one input, but 2 are named"))
        #expect(
            try faults {
                try $0.add(
                    OrderSink.self, "file", from: ["h264", "aac"], link: LinkRequest(queue: 0))
            }.contains("\"queue\": 0 runs 'file' on the thread of 'h264', but 'file' waits for several stages"))
    }
}
