// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

/// Filters that take pictures and motion, on the real runner.
@Suite struct MultiFilterTests {
    /// `pic` and `motion` → `reader` → `sink`.
    private func sketch(
        _ log: String, pictures: String, motion: String, reader: String = "", from: [String] = ["pic", "motion"],
        queue: Int? = nil
    ) throws -> ChainSketch {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "pic", options: pictures, from: [])
        try sketch.add(MotionTicker.self, "motion", options: motion, from: [])
        try sketch.add(
            MotionReader.self, "reader", options: #"{"log": "\#(log)"\#(reader)}"#, from: from,
            link: LinkRequest(queue: queue))
        try sketch.add(UnitEncoder.self, "h264")
        try sketch.add(OrderSink.self, "sink", options: #"{"log": "\#(log)"}"#)
        return sketch
    }

    /// A picture each millisecond, a sample each 4: at a picture's turn all samples up to 8 ms later have come.
    @Test(arguments: [1, 7]) func aPictureComesAfterTheMotionUpToItsLookAhead(samplesOfABlock: Int) throws {
        let chain = try Chain(
            try sketch(
                "ahead-\(samplesOfABlock)", pictures: #"{"count": 1000}"#,
                motion: #"{"count": 300, "each": \#(samplesOfABlock)}"#
            ).request)
        let result = chain.run()
        #expect(result.isSuccess, "\(result)")
        let entries = MotionReader.log("ahead-\(samplesOfABlock)")
        #expect(entries.map(\.milliseconds) == Array(0..<1000))
        for entry in entries {
            let newest = try #require(entry.newest)
            // The last one that is not later than 8 ms after it; of a block, all.
            let last = (entry.milliseconds + 8) / 4 * 4
            #expect(newest >= last && newest <= last + 4 * (samplesOfABlock - 1), "\(entry)")
        }
        #expect(OrderSink.log("ahead-\(samplesOfABlock)").count == 1000)
        #expect(chain.ledger.isBalanced && chain.ledgerFaults(afterDrain: true).isEmpty, "\(chain.ledger)")
        #expect(chain.ledger.capturedMotion == (300 + samplesOfABlock - 1) / samplesOfABlock)
    }

    /// Motion ends first: pictures go on without.
    @Test func picturesGoOnWhenMotionHasEnded() throws {
        let chain = try Chain(
            try sketch("ends", pictures: #"{"count": 200}"#, motion: #"{"count": 10}"#).request)
        #expect(chain.run().isSuccess)
        #expect(MotionReader.log("ends").count == 200)
        #expect(MotionReader.log("ends").last?.newest == 36)
    }

    @Test func itAlsoRunsWithPicturesAlone() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "pic", options: #"{"count": 50}"#, from: [])
        try sketch.add(MotionReader.self, "reader", options: #"{"log": "alone"}"#)
        try sketch.add(UnitEncoder.self, "h264")
        try sketch.add(OrderSink.self, "sink", options: #"{"log": "alone"}"#)
        #expect(try Chain(sketch.request).run().isSuccess)
        #expect(MotionReader.log("alone") == (0..<50).map { MotionReader.Entry(milliseconds: $0, newest: nil) })
    }

    /// The sink waits for pictures, these for motion, and the sink's queue of motion is full.
    @Test func motionThatAlsoGoesToASinkNeverStandsStill() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "pic", options: #"{"count": 2000}"#, from: [])
        try sketch.add(MotionTicker.self, "motion", options: #"{"count": 600}"#, from: [])
        try sketch.add(
            MotionReader.self, "reader", options: #"{"log": "forked", "aheadMs": 400}"#, from: ["pic", "motion"],
            link: LinkRequest(queue: 1))
        try sketch.add(UnitEncoder.self, "h264")
        try sketch.add(
            OrderSink.self, "sink", options: #"{"log": "forked"}"#, from: ["h264", "motion"],
            link: LinkRequest(queue: 1))
        let chain = try Chain(sketch.request)
        var watch = ProgressWatch()
        let result = chain.run {
            if watch.hasStoodStill(chain) { chain.cancel() }
        }
        #expect(!watch.isOver, "\(watch.standstill)")
        #expect(result.isSuccess, "\(result)")
        #expect(OrderSink.log("forked").count == 2600)
        #expect(chain.ledgerFaults(afterDrain: true).isEmpty)
    }

    /// A sensor that falls silent holds live pictures up for a tenth of a second, once.
    @Test func aLiveChainGoesOnWithoutMotion() throws {
        let driver = try RunningChainDriver(
            try sketch(
                "silent-motion", pictures: #"{"count": 100000, "live": true, "everyMs": 10}"#,
                motion: #"{"count": 4, "live": true, "falls": true}"#))
        let sink = try #require(driver.chain.graph.runner(id: "sink"))
        #expect(eventually { sink.counters.delivered.value >= 100 }, "\(sink.counters.delivered.value)")
        let result = driver.finish()
        #expect(result.keepsItsPromises, "\(result)")
        #expect(driver.chain.ledger.isBalanced)
    }

    /// Five pictures a second wait for motion that never comes, ten minutes each; then for 20 ms each.
    @Test func anotherInstanceWaitsAsLongAsItSays() throws {
        func sketch(waitMs: Int) throws -> ChainSketch {
            try self.sketch(
                "other-wait", pictures: #"{"count": 100000, "live": true, "everyMs": 200}"#,
                motion: #"{"count": 0, "live": true, "falls": true}"#, reader: #", "waitMs": \#(waitMs)"#, queue: 900)
        }
        let driver = try RunningChainDriver(sketch(waitMs: 600_000))
        let picture = try #require(driver.chain.graph.runner(id: "pic"))
        #expect(eventually { picture.counters.emitted.value >= 3 })
        #expect(MotionReader.log("other-wait").isEmpty)
        let answer = driver.change(to: try sketch(waitMs: 20))
        #expect(answer.isOK, "\(answer.error)")
        #expect(eventually { MotionReader.log("other-wait").count >= 3 })
        let result = driver.finish()
        #expect(result.keepsItsPromises, "\(result)")
    }

    @Test func aFilterThatFailsTakesNoMotionEither() throws {
        var sketch = try self.sketch(
            "fails", pictures: #"{"count": 300}"#, motion: #"{"count": 300}"#, reader: #", "failsAt": 5"#)
        sketch.request.stages[2].onError = .bypass
        let chain = try Chain(sketch.request)
        let result = chain.run()
        #expect(MotionReader.log("fails").count == 5)
        #expect(OrderSink.log("fails").count == 299, "\(result)")
        #expect(chain.ledger.isBalanced && chain.ledgerFaults(afterDrain: true).isEmpty, "\(chain.ledger)")
    }

    @Test func picturesComeFirst() throws {
        #expect {
            _ = try Chain(
                try self.sketch("order", pictures: "{}", motion: "{}", from: ["motion", "pic"]).request)
        } throws: { error in
            "\(error)".contains("'reader' takes raw video") && "\(error)".contains("but 'motion' gives motion")
        }
        var sketch = ChainSketch()
        try sketch.add(MotionTicker.self, "motion", from: [])
        try sketch.add(UnitEncoder.self, "h264")
        try sketch.add(OrderSink.self, "sink", options: #"{"log": "no"}"#)
        #expect {
            _ = try Chain(sketch.request)
        } throws: {
            "\($0)".contains("'h264' takes raw video") && "\($0)".contains("but 'motion' gives motion")
        }
    }
}
