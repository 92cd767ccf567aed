// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

/// Which chain gets which queue that nobody asked for, by cost and processors.
@Suite struct AutomaticQueuesTests {
    /// Says what it costs; gives pictures of `width`.
    struct CostOptions: StageOptions {
        @Option(help: "Microseconds of an item.") var cost = 0
        @Option(help: "Width of the picture.") var width = 640
        @Option(help: "Live.") var live = false
        @Option(help: "In real time.") var paced = false
    }

    final class CostSource: Source {
        static let info = StageInfo(id: "cost-source", summary: "Gives.", output: .anyVideo)
        var options: CostOptions
        init(options: CostOptions, context: StageContext) { self.options = options }
        var demand: StageDemand {
            var demand = Self.declaredDemand
            demand.cost = MediaTime(nanoseconds: Int64(options.cost) * 1000)
            demand.isLive = options.live
            demand.isPaced = options.paced
            return demand
        }
        func negotiate() throws -> MediaFormat {
            .video(VideoFormat(.gray8, width: options.width, height: 480, frameRate: Rational(30)))
        }
        func produce(_ output: Output) throws -> SourceProgress { .ended }
    }

    final class CostFilter: Filter {
        static let info = StageInfo(
            id: "cost-filter", summary: "Works.", input: .anyVideo, output: .sameAsInput, access: .modify)
        var options: CostOptions
        init(options: CostOptions, context: StageContext) { self.options = options }
        var demand: StageDemand {
            var demand = Self.declaredDemand
            demand.cost = MediaTime(nanoseconds: Int64(options.cost) * 1000)
            return demand
        }
        func process(_ frame: inout Frame) throws -> Verdict { .forward }
    }

    final class CostTransform: Transform {
        static let info = StageInfo(
            id: "cost-transform", summary: "Cuts.", input: .anyVideo, output: .video(.gray8))
        var options: CostOptions
        init(options: CostOptions, context: StageContext) { self.options = options }
        var demand: StageDemand {
            var demand = Self.declaredDemand
            demand.cost = MediaTime(nanoseconds: Int64(options.cost) * 1000)
            return demand
        }
        func negotiate(_ input: MediaFormat) throws -> MediaFormat {
            var format = input.video!
            format.width = options.width
            return .video(format)
        }
        func process(_ input: consuming Sample, _ output: Output) throws {}
    }

    /// File → crop → encoder → sink, in the small: 4 ms, little, 5 ms, little; what comes out of the crop is smaller.
    private func file(
        _ source: String = "", crop: LinkRequest = LinkRequest(), encoder: LinkRequest = LinkRequest(), last: Int = 5000
    ) throws -> ChainSketch {
        var sketch = ChainSketch()
        try sketch.add(CostSource.self, "in", options: #"{"cost": 4000\#(source)}"#)
        try sketch.add(CostTransform.self, "crop", options: #"{"cost": 100, "width": 320}"#, link: crop)
        try sketch.add(CostFilter.self, "enc", options: #"{"cost": \#(last)}"#, link: encoder)
        try sketch.add(Anything.self, "out")
        return sketch
    }

    private func plan(_ sketch: ChainSketch, processors: Int) throws -> PlannedChain {
        var request = sketch.request
        request.processors = processors
        return try ChainPlanner(request, clock: ManualClock()).plan()
    }

    /// `crop → enc`, with places, of all links that are no inline ones.
    private func queues(_ sketch: ChainSketch, processors: Int) throws -> [String] {
        let plan = try plan(sketch, processors: processors).plan
        return plan.links.filter { $0.settings.capacity > 0 }
            .map {
                "\(plan.stages[$0.from].id) → \(plan.stages[$0.to].id) \($0.settings.capacity)\($0.settings.isAutomatic ? " automatic" : "")"
            }
    }

    @Test func putsAQueueBetweenTwoStagesThatTakeMuchWhereTheItemsAreSmall() throws {
        #expect(try queues(file(), processors: 2) == ["crop → enc 1 automatic"])
        let plan = try plan(file(), processors: 2).plan
        #expect(plan.stages.map(\.thread) == [0, 0, 1, 1])
        // One in hand of each thread, one between.
        #expect(plan.budget.pools.map(\.size) == [1, 3])
    }

    @Test func saysWhichQueueItPutInAndHowItIsForbidden() throws {
        #expect(
            try plan(file(), processors: 2).plan.notes == [
                "queue crop → enc of 1 inserted: the stages before it take about 4.1 ms a frame, those after it 5.0 ms, and there are 2 processors; \"link\": { \"queue\": 0 } in 'enc' prevents it"
            ])
    }

    @Test(arguments: [(1, 0), (2, 1), (3, 2), (8, 3)])
    func usesNoMoreThreadsThanProcessors(_ processors: Int, _ count: Int) throws {
        var sketch = ChainSketch()
        try sketch.add(CostSource.self, "in", options: #"{"cost": 4000}"#)
        for name in ["a", "b", "c"] { try sketch.add(CostFilter.self, name, options: #"{"cost": 4000}"#) }
        try sketch.add(Anything.self, "out")
        #expect(try queues(sketch, processors: processors).count == count)
        #expect(try queues(sketch, processors: processors) == queues(sketch, processors: processors))
    }

    @Test func relievesTheThreadThatAllOthersWaitFor() throws {
        var sketch = ChainSketch()
        try sketch.add(CostSource.self, "in", options: #"{"cost": 2000}"#)
        try sketch.add(CostFilter.self, "faces", options: #"{"cost": 9000}"#)
        try sketch.add(CostFilter.self, "enc", options: #"{"cost": 5000}"#)
        try sketch.add(Anything.self, "out")
        #expect(try queues(sketch, processors: 2) == ["faces → enc 1 automatic"])
        #expect(try queues(sketch, processors: 4) == ["in → faces 1 automatic", "faces → enc 1 automatic"])
    }

    @Test func putsNoQueueWhereLittleIsSaved() throws {
        #expect(try queues(file(last: 150), processors: 8) == [])
        #expect(try queues(file(last: 0), processors: 8) == [])
        var sketch = ChainSketch()
        try sketch.add(CostSource.self, "in", options: #"{"cost": 300}"#)
        try sketch.add(CostFilter.self, "faces", options: #"{"cost": 90000}"#)
        try sketch.add(Anything.self, "out")
        #expect(try queues(sketch, processors: 8) == [], "a tenth of the thread's work at least")
    }

    @Test func neverDelaysWhatIsLiveOrPlayedInRealTime() throws {
        #expect(try queues(file(#", "live": true"#), processors: 8) == ["in → crop 2"])
        #expect(try queues(file(#", "paced": true"#), processors: 8) == [])
    }

    @Test func leavesAloneWhatAPersonWrote() throws {
        let never = LinkRequest(queue: 0)
        #expect(try queues(file(crop: never, encoder: never), processors: 8) == [])
        #expect(try queues(file(encoder: never), processors: 8) == ["in → crop 1 automatic"])
        #expect(try queues(file(crop: LinkRequest(queue: 5)), processors: 8) == ["in → crop 5"])
        #expect(try queues(file(encoder: LinkRequest(whenFull: .wait)), processors: 8) == ["crop → enc 2"])
    }

    @Test func leavesAloneAPoolWhoseSizeAPersonWrote() throws {
        var sketch = try file()
        sketch.request.buffers = [1: 1]
        #expect(try queues(sketch, processors: 8) == ["in → crop 1 automatic"])
        sketch.request.buffers = [0: 1, 1: 1]
        #expect(try queues(sketch, processors: 8) == [])
    }

    @Test func refusesNoChainForAQueueThatNobodyAskedFor() throws {
        let inline = try plan(file(), processors: 1).plan
        let bytes = zip(inline.budget.pools, inline.poolBufferBytes).reduce(0) { $0 + $1.0.size * $1.1 }
        var sketch = try file()
        sketch.request.memory = AvailableMemory(bytes: bytes)
        #expect(try queues(sketch, processors: 8) == [])
    }

    @Test func believesNoCostWithoutBounds() throws {
        #expect(try queues(file(last: 1 << 50), processors: 2) == [])
        #expect(try queues(file(last: -(1 << 50)), processors: 2) == [])
    }

    @Test func keepsWhatRunsAndAddsNoneToIt() throws {
        let running = try plan(file(), processors: 2)
        var request = try file(last: 40_000).request
        request.processors = 8
        // The encoder is made anew, with another cost; its queue stays, and no stage moves to another thread.
        let changed = try ChainPlanner(request, clock: ManualClock(), running: RunningChain(running)).plan()
        #expect(changed.changes.made == ["enc"])
        #expect(changed.plan.stages.map(\.thread) == [0, 0, 1, 1] && changed.plan.links[1].settings.isAutomatic)
        // So it is where a stage of another kind takes its place.
        request.stages[2].type = ChainSketch.stageType(Labeller2.self)
        request.stages[2].options = []
        let other = try ChainPlanner(request, clock: ManualClock(), running: RunningChain(running)).plan()
        #expect(other.plan.stages.map(\.thread) == [0, 0, 1, 1])

        let inline = try plan(file(), processors: 1)
        request = try file(last: 40_000).request
        request.processors = 8
        let same = try ChainPlanner(request, clock: ManualClock(), running: RunningChain(inline)).plan()
        #expect(same.plan.links.allSatisfy { $0.settings.capacity == 0 })
    }

    /// Another kind of filter.
    final class Labeller2: Filter {
        static let info = StageInfo(id: "labeller-2", summary: "Labels.", input: .anyVideo, output: .sameAsInput)
        typealias Options = NoOptions
        var options: NoOptions
        init(options: NoOptions, context: StageContext) { self.options = options }
        func process(_ frame: inout Frame) throws -> Verdict { .forward }
    }
}
