import Testing

@testable import FrameCore

/// Nothing of a chain is left once nobody has it.
@Suite struct ChainLifetimeTests {
    private final class Watched {
        weak var chain: Chain?
        weak var source: CountingSource?
        var pools: [() -> FramePool?] = []
        var slabs: [() -> Slab?] = []
        var queues: [() -> FrameQueue?] = []

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
        #expect(watched.isGone)
    }

    @Test func goesAfterACancel() throws {
        var chain: Chain? = try Chain(try sketch(1_000_000_000).request)
        let watched = Watched(chain!)
        var ticks = 0
        let result = chain!.run {
            ticks += 1
            if ticks == 2 { chain!.cancel() }
        }
        #expect(result.isSuccess, "\(result)")
        chain = nil
        // The last stage thread lets go of its closure just after it has said that it ended.
        #expect(eventually { watched.isGone })
    }
}
