// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

/// Nothing of a chain is left once nobody has it.
@Suite struct ChainLifetimeTests {
    private final class Watched {
        weak var chain: Chain?
        weak var source: CountingSource?
        var pools: [() -> FramePool?] = []
        var slabs: [() -> Slab?] = []
        var queues: [() -> ItemQueue?] = []

        init(_ chain: Chain) {
            self.chain = chain
            source = chain.runners[0].instance.stage as? CountingSource
            for pool in chain.pools { pools.append({ [weak pool] in pool }) }
            for slab in chain.slabs { slabs.append({ [weak slab] in slab }) }
            for queue in chain.queues.map(\.queue) { queues.append({ [weak queue] in queue }) }
        }

        var isGone: Bool {
            chain == nil && source == nil && pools.allSatisfy { $0() == nil } && slabs.allSatisfy { $0() == nil }
                && queues.allSatisfy { $0() == nil }
        }
    }

    /// Two writers beside readers, a join, an encoder: every kind of pool, queue and wait.
    private func sketch(_ count: Int) throws -> ChainSketch {
        var sketch = ChainSketch()
        try sketch.add(CountingSource.self, "src", options: #"{"count": \#(count)}"#)
        try sketch.add(AddOne.self, "writer1", from: ["src"])
        try sketch.add(AddOne.self, "writer2", from: ["src"])
        try sketch.add(PairJoin.self, "pair", from: ["writer1", "writer2"])
        try sketch.add(UnitEncoder.self, "h264")
        try sketch.add(UnitSink.self, "units")
        try sketch.add(RecordingSink.self, "keeper", options: #"{"log": "lifetime", "keep": 2}"#, from: ["src"])
        return sketch
    }

    @Test func goesAfterARun() throws {
        var chain: Chain? = try Chain(try sketch(200).request)
        let watched = Watched(chain!)
        #expect(watched.pools.count == 3, "two writers make copies")
        let (result, _) = ChainTests.run(chain!)
        #expect(result.isSuccess, "\(result)")
        chain = nil
        // The last stage thread lets go of its closure just after it has said that it ended.
        #expect(eventually { watched.isGone })
    }

    @Test func goesWithoutARun() throws {
        var chain: Chain? = try Chain(try sketch(200).request)
        let watched = Watched(chain!)
        chain = nil
        #expect(watched.isGone)
    }

    @Test func goesWithCommandsThatWereNeverRead() throws {
        var chain: Chain? = try Chain(try sketch(200).request)
        let watched = Watched(chain!)
        chain!.cancel()
        let answers = CommandAnswers()
        chain!.set(stage: "src", options: [], reply: answers.reply(1))
        _ = ChainTests.run(chain!)
        #expect(answers.count == 1, "answered all the same")
        chain!.set(stage: "src", options: [], reply: answers.reply(2))
        #expect(answers.count == 2)
        chain = nil
        #expect(eventually { watched.isGone })
    }

    /// Keeps its context, as most do, and gives it what keeps the stage and the context.
    private final class Knot: Source {
        static let info = StageInfo(id: "knot", summary: "Knots.", output: .anyVideo)
        typealias Options = NoOptions
        var options: NoOptions
        let context: StageContext

        private final class Sound: AudioOrigin {
            let tracks: [AudioTrackFormat] = []
            let context: StageContext
            init(_ context: StageContext) { self.context = context }
            func open(track: Int) throws -> any AudioReader { throw FrameHostError(.broken, what: "there is none") }
        }

        init(options: NoOptions, context: StageContext) {
            self.options = options
            self.context = context
        }

        func negotiate() throws -> MediaFormat {
            context.offerAudio(Sound(context))
            nonisolated(unsafe) let stage = self
            context.showFigures { JSONNode(.string(stage.context.stageID)) }
            return .video(VideoFormat(.gray8, width: 16, height: 16, frameRate: Rational(30)))
        }

        func produce(_ output: Output) throws -> SourceProgress { .ended }
    }

    @Test func goesWithAStageThatItsContextKnows() throws {
        weak var stage: Knot?
        weak var context: StageContext?
        do {
            let driver = try StageDriver(Knot.self)
            (stage, context) = (driver.stage, driver.stage.context)
            #expect(context?.offeredAudio != nil && context?.figures != nil)
        }
        #expect(stage == nil && context == nil)
    }

    @Test func goesAfterACancel() throws {
        var chain: Chain? = try Chain(try sketch(1_000_000_000).request)
        let watched = Watched(chain!)
        var ticks = 0
        let result = chain!.run {
            ticks += 1
            if ticks == 2 { chain!.cancel() }
        }
        #expect(result.failures.isEmpty && result.ledgerFaults.isEmpty, "\(result)")
        chain = nil
        // The last stage thread lets go of its closure just after it has said that it ended.
        #expect(eventually { watched.isGone })
    }
}
