// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

/// Figures for programs that draw them.
@Suite struct MetricsTests {
    private func chain(_ log: String, timed: Bool) throws -> Chain {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 500}"#)
        try sketch.add(ProbeFilter.self, "mid", options: #"{"dropEvery": 10, "sleepUs": 20}"#)
        try sketch.add(AddOne.self, "one", from: ["mid"], link: LinkRequest(queue: 2))
        try sketch.add(RecordingSink.self, "sink", options: #"{"log": "\#(log)"}"#)
        let chain = try Chain(sketch.request, timed: timed)
        #expect(chain.run().isSuccess)
        return chain
    }

    private func stage(_ id: String, _ metrics: JSONNode) -> JSONNode? {
        metrics["stages"]?.asArray?.first { $0["id"]?.asString == id }
    }

    /// Whether at least half of the samples are at most 10 ms: a busy machine may hold up some of them.
    private func isMostlyShort(_ histogram: JSONNode) throws -> Bool {
        let bucket = try #require(histogram["buckets"]?.asArray?.first { $0["le"]?.asDouble == 0.01 })
        let short = try #require(bucket["count"]?.asInt)
        let all = try #require(histogram["count"]?.asInt)
        return short * 2 >= all
    }

    @Test func countsWhatCameWentAndWasDropped() throws {
        let metrics = try chain("metrics-counts", timed: false).metrics
        let stages = try #require(metrics["stages"]?.asArray)
        #expect(stages.compactMap { $0["id"]?.asString } == ["src", "mid", "one", "sink"])
        func number(_ id: String, _ key: String) -> Int? { stage(id, metrics)?[key]?.asInt }
        #expect(number("src", "framesIn") == 0 && number("src", "framesOut") == 500)
        #expect(number("mid", "framesIn") == 500 && number("mid", "framesOut") == 450)
        #expect(stage("mid", metrics)?["dropped"]?[DropReason.byStage.name]?.asInt == 50)
        #expect(number("one", "framesIn") == 450 && number("sink", "delivered") == 450)
        #expect(number("sink", "held") == 0, "all has ended")
        #expect(stages.allSatisfy { $0["busy"] == nil && $0["latency"] == nil }, "nothing is timed")
        let links = try #require(metrics["links"]?.asArray)
        #expect(links.count == 3)
        let link = try #require(links.first { $0["to"]?.asString == "one" })
        #expect(link["from"]?.asString == "mid" && link["offered"]?.asInt == 450 && link["capacity"]?.asInt == 2)
        let pools = try #require(metrics["pools"]?.asArray)
        #expect(!pools.isEmpty)
        for pool in pools {
            #expect(pool["free"]?.asInt == pool["buffers"]?.asInt, "all have come back")
            #expect((pool["min"]?.asInt ?? 0) <= (pool["need"]?.asInt ?? 0))
            #expect((pool["need"]?.asInt ?? 0) <= (pool["buffers"]?.asInt ?? 0))
            #expect((pool["bytes"]?.asInt ?? 0) >= 256)
        }
    }

    /// A branch that comes back under the same ids is another one: its counters begin anew.
    @Test func numbersTellAStageThatCameBackFromTheOneBefore() throws {
        func chain(hasBranch: Bool) throws -> ChainSketch {
            var sketch = ChainSketch()
            sketch.request.spare = 4
            try sketch.add(CountingSource.self, "src", options: #"{"count": 100000000, "everyMs": 1}"#)
            try sketch.add(RecordingSink.self, "file", options: #"{"log": "metrics-numbers"}"#)
            if hasBranch {
                try sketch.add(RecordingSink.self, "more", options: #"{"log": "metrics-more"}"#, from: ["src"])
            }
            return sketch
        }
        let driver = try RunningChainDriver(try chain(hasBranch: true))
        func number(_ id: String) -> Int? { stage(id, driver.chain.metrics)?["number"]?.asInt }
        let (source, first) = (try #require(number("src")), try #require(number("more")))
        for hasBranch in [false, true] {
            let answer = driver.change(to: try chain(hasBranch: hasBranch))
            #expect(answer.isOK, "\(answer.error)")
        }
        let second = try #require(number("more"))
        #expect(second != first && number("src") == source)
        #expect(driver.finish().keepsItsPromises)
    }

    @Test func histogramsAddUp() throws {
        let metrics = try chain("metrics-times", timed: true).metrics
        for (id, key, count) in [("mid", "busy", 500), ("one", "busy", 450), ("sink", "latency", 450)] {
            let histogram = try #require(stage(id, metrics)?[key], "\(id) \(key)")
            #expect(histogram["count"]?.asInt == count, "\(id) \(key)")
            let buckets = try #require(histogram["buckets"]?.asArray)
            let bounds = buckets.compactMap { $0["le"]?.asDouble }
            let counts = buckets.compactMap { $0["count"]?.asInt }
            #expect(bounds == Chain.timeBounds && counts.count == bounds.count)
            #expect(counts == counts.sorted() && (counts.last ?? .max) <= count, "cumulative: \(counts)")
            let sum = try #require(histogram["sumSeconds"]?.asDouble)
            // Each sample at least as long as the bucket before its own says, and at most as its own.
            var least = 0.0
            var before = (count: 0, bound: 0.0)
            for (bound, below) in zip(bounds, counts) {
                least += Double(below - before.count) * before.bound
                before = (below, bound)
            }
            least += Double(count - before.count) * before.bound
            #expect(sum >= least * 0.99, "\(id) \(key): \(sum) s, at least \(least) s")
        }
        // The probe sleeps at least 20 µs.
        let busy = try #require(stage("mid", metrics)?["busy"])
        #expect(busy["buckets"]?.asArray?.first?["count"]?.asInt == 0)
        #expect((busy["sumSeconds"]?.asDouble ?? 0) >= 500 * 20e-6)
        #expect(stage("src", metrics)?["latency"] == nil && stage("mid", metrics)?["latency"] == nil)
    }

    /// Items get older from stage to stage.
    @Test func figuresSayHowOldItemsAreBehindEachStage() throws {
        let figures = try chain("figures-latency", timed: true).figures
        func latency(_ id: String, _ key: String) throws -> Double {
            try #require(figures["stages"]?.asArray?.first { $0["id"]?.asString == id }?[key]?.asDouble, "\(id) \(key)")
        }
        for key in ["latencyP50Us", "latencyP99Us"] {
            #expect(try latency("src", key) >= 0)
            // The probe sleeps at least 20 µs; a bucket is 6 % wide, and figures are rounded to tenths.
            #expect(try latency("mid", key) >= 20)
            #expect(try latency("sink", key) >= latency("mid", key) * 0.9)
        }
        let untimed = try chain("figures-untimed", timed: false).figures
        #expect(untimed["stages"]?.asArray?.allSatisfy { $0["latencyP50Us"] == nil } == true)
    }

    @Test func mayBeReadWhileTheChainRuns() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 100000000, "everyMs": 1}"#)
        try sketch.add(ProbeFilter.self, "mid", options: #"{"keep": 2}"#)
        try sketch.add(RecordingSink.self, "sink", options: #"{"log": "metrics-live", "sleepUs": 500}"#)
        let driver = try RunningChainDriver(sketch)
        driver.waitForFrames(10)
        var last = 0
        for _ in 0..<200 {
            let out = try #require(stage("src", driver.chain.metrics)?["framesOut"]?.asInt)
            #expect(out >= last)
            last = out
        }
        #expect(eventually { (stage("mid", driver.chain.metrics)?["held"]?.asInt ?? 0) >= 2 })
        #expect(stage("mid", driver.chain.metrics)?["heldLimit"]?.asInt == 3)
        #expect((stage("mid", driver.chain.metrics)?["heldOldestSeconds"]?.asDouble ?? -1) >= 0)
        #expect(driver.finish().isSuccess)
    }

    /// Not what it waits for its device and for the clock, nor what stages behind it take on the same thread.
    @Test func busyIsTheTimeOfTheStageAlone() throws {
        var sketch = ChainSketch()
        try sketch.add(DeviceSource.self, "cam")
        try sketch.add(ProbeFilter.self, "mid", options: #"{"sleepUs": 4000}"#, link: LinkRequest(queue: 0))
        try sketch.add(CopyTransform.self, "copy", link: LinkRequest(queue: 0))
        try sketch.add(
            RecordingSink.self, "sink", options: #"{"log": "metrics-busy", "sleepUs": 40000}"#,
            link: LinkRequest(queue: 0))
        let chain = try Chain(sketch.request, timed: true)
        #expect(chain.run().isSuccess)
        let metrics = chain.metrics
        func time(_ id: String) throws -> JSONNode {
            let busy = try #require(stage(id, metrics)?["busy"])
            #expect(busy["count"]?.asInt == DeviceSource.count, "once for each item, \(id)")
            return busy
        }
        func milliseconds(_ id: String) throws -> Double {
            let busy = try time(id)
            return try #require(busy["sumSeconds"]?.asDouble) * 1000 / Double(DeviceSource.count)
        }
        #expect(try isMostlyShort(time("cam")), "of 20 ms for its device and the clock, and 44 ms behind it")
        #expect(try milliseconds("mid") >= 4)
        #expect(try isMostlyShort(time("copy")), "of 40 ms behind it")
        #expect(try milliseconds("sink") >= 40)
    }

    @Test func busyIsNotTheWaitForAPlace() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 20}"#)
        try sketch.add(CopyTransform.self, "copy", link: LinkRequest(queue: 0))
        try sketch.add(
            RecordingSink.self, "slow", options: #"{"log": "metrics-place", "sleepUs": 40000}"#,
            link: LinkRequest(queue: 1, whenFull: .wait))
        let chain = try Chain(sketch.request, timed: true)
        #expect(chain.run().isSuccess)
        for id in ["src", "copy"] {
            let busy = try #require(stage(id, chain.metrics)?["busy"])
            #expect(busy["count"]?.asInt == 20)
            #expect(try isMostlyShort(busy), "most wait 40 ms: \(busy.text())")
        }
    }

    /// Whoever looks may be a thread of low priority that is kept from going on: frames must not wait for it, nor it for
    /// them. Here the locks are held by somebody who does not give them back.
    @Test func areReadWithoutTheLocksThatFramesWaitFor() throws {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": 100000000, "everyMs": 1}"#)
        try sketch.add(ProbeFilter.self, "mid", options: #"{"keep": 2}"#, link: LinkRequest(queue: 2))
        try sketch.add(UnitEncoder.self, "enc", link: LinkRequest(queue: 2))
        try sketch.add(UnitSink.self, "file", options: #"{"log": "metrics-locks"}"#, link: LinkRequest(queue: 2))
        let driver = try RunningChainDriver(sketch)
        driver.waitForFrames(20)
        let graph = driver.chain.graph
        #expect(!graph.pools.isEmpty && !graph.slabs.isEmpty && graph.queues.count == 3)
        let locks = graph.pools.map(\.condition) + graph.slabs.map(\.condition) + graph.queues.map(\.queue.consumer)
        for lock in locks { lock.lock() }
        let isRead = Locked(false)
        let reader = try TestThread("reader") {
            let (metrics, figures) = (driver.chain.metrics, driver.chain.figures)
            _ = (driver.chain.progress, driver.chain.status, LiveLosses(driver.chain.graph).total)
            isRead.set((metrics["stages"]?.asArray?.count, figures["pools"]?.asArray?.isEmpty) == (4, false))
        }
        #expect(eventually { isRead.now })
        for lock in locks { lock.unlock() }
        reader.join()
        #expect(driver.finish().isSuccess)
    }
}

/// Waits 10 ms for its device, without a picture at first, and 10 ms for the clock.
private final class DeviceSource: Source {
    static let info = StageInfo(id: "device-source", summary: "Waits.", output: .video(.gray8))
    static let count = 20

    var options: NoOptions
    private let context: StageContext
    private var calls = 0

    init(options: NoOptions, context: StageContext) {
        self.options = options
        self.context = context
    }

    func negotiate() throws -> MediaFormat {
        .video(VideoFormat(.gray8, width: 16, height: 16, frameRate: Rational(30)))
    }

    func produce(_ output: Output) throws -> SourceProgress {
        calls += 1
        context.waiting { pauseTest(ms: 5) }
        guard calls.isMultiple(of: 2) else { return .more }
        guard context.sleep(until: context.clock.now() + 10_000_000), let frame = try output.makeFrame() else {
            return .ended
        }
        frame.pts = MediaTime(nanoseconds: Int64(calls) * 10_000_000)
        try output.emit(frame)
        return calls == 2 * Self.count ? .ended : .more
    }
}
