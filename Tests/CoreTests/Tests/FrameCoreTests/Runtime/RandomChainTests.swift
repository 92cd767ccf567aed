import Glibc
import Testing

@testable import FrameCore

/// Thousands of random chains on the real runner, with random stalls: what the plan accepts never stops, and its ledger
/// closes.
@Suite struct RandomChainTests {
    static var isSoak: Bool { getenv("FRAMEHOST_SOAK") != nil }

    @Test func nothingThatIsAcceptedEverStops() throws {
        // FRAMEHOST_SEED=N runs that one chain, twenty times over.
        let only = getenv("FRAMEHOST_SEED").flatMap { UInt64(String(cString: $0)) }
        let count = only != nil ? 1 : Self.isSoak ? 50_000 : getenv("FRAMEHOST_SANITIZED") != nil ? 300 : 2_000
        let first = only ?? (Self.isSoak ? UInt64(ChainClock().now()) % 1_000_000_000 : 1)
        var ran = 0
        var refused = 0
        var forks = 0
        var joins = 0
        var tight = 0
        var queued = 0
        for seed in first..<first + UInt64(count) {
            var graph = GraphGenerator.make(seed: seed)
            // A filter answers at once: only in the model can a writer delay.
            for node in graph.nodes.indices where graph.nodes[node].modifies { graph.nodes[node].delay = 0 }
            let plan = BudgetPlan(graph)
            guard plan.faults.isEmpty else {
                refused += 1
                continue
            }
            // Every other chain gets only `min` buffers, by its own plan: its stages are numbered otherwise, and so may
            // be its queues.
            var sizes: [Int: Int] = [:]
            if seed % 2 == 0 {
                let own = try Chain.plan(GraphChain.request(plan, seed: seed, frames: 60, sizes: [:]))
                for pool in own.budget.pools where !pool.isCopyPool && pool.min < pool.need {
                    sizes[Int(own.stages[pool.allocator].id.dropFirst())!] = max(pool.min, 1)
                }
                tight += sizes.isEmpty ? 0 : 1
            }
            for round in 0..<(only == nil ? 1 : 20) {
                let automatic = try run(plan, seed: seed, sizes: sizes)
                if round == 0, automatic > 0 { queued += 1 }
            }
            ran += 1
            forks += graph.nodes.indices.contains { graph.outgoing($0).count > 1 } ? 1 : 0
            joins += graph.nodes.contains(where: \.isJoin) ? 1 : 0
        }
        print(
            "random chains: \(ran) ran (\(forks) with forks, \(joins) with joins, \(tight) with `min` buffers, \(queued) with automatic queues), \(refused) refused"
        )
        guard only == nil else { return }
        #expect(ran >= count / 2)
        #expect(forks * 10 >= ran * 3)
        #expect(joins * 10 >= ran * 2)
        #expect(queued * 20 >= ran)
    }

    /// Stages, queues and pools at a standstill.
    private static func describe(_ chain: Chain) -> String {
        var lines = chain.runners.map { runner in
            "\(runner.id) \(runner.info.id) hold \(runner.demand.hold) delay \(runner.demand.delay) floor \(runner.demand.floor)\(runner.demand.isLive ? " live" : ""): taken \(runner.taken.value) made \(runner.made.value) emitted \(runner.emitted.value) held \(runner.heldNow) kept \(runner.keptNow) inside \(runner.thread.inside.load(ordering: .relaxed)) thread \(chain.plan.stages[runner.number].thread)"
        }
        for link in chain.plan.links {
            let queue = chain.queues.first { $0.link.from == link.from && $0.link.to == link.to }?.queue
            let depth = queue.map { "\($0.snapshot().depth)" } ?? "inline"
            lines.append(
                "\(chain.runners[link.from].id) → \(chain.runners[link.to].id): \(depth) of \(link.settings.capacity) \(link.settings.policy)"
            )
        }
        for pool in chain.pools { lines.append("pool \(pool.name): \(pool.freeCount) of \(pool.bufferCount) free") }
        return lines.joined(separator: "\n")
    }

    /// - Returns: How many queues the planner put in.
    private func run(_ plan: BudgetPlan, seed: UInt64, sizes: [Int: Int]) throws -> Int {
        let chain = try Chain(GraphChain.request(plan, seed: seed, frames: 60, sizes: sizes))
        var lastCount = -1
        var lastChange = ChainClock().now()
        var stalled = false
        var standstill = ""
        let result = chain.run {
            let ledger = chain.ledger
            let count = ledger.captured + ledger.delivered + ledger.merged + ledger.dropped
            let now = ChainClock().now()
            if count != lastCount {
                lastCount = count
                lastChange = now
            } else if now - lastChange > 4_000_000_000, !stalled {
                stalled = true
                standstill = Self.describe(chain)
                chain.cancel()
            }
        }
        #expect(!stalled, "seed \(seed), sizes \(sizes): the chain stood still after \(lastCount) items\n\(standstill)")
        #expect(result.isSuccess, "seed \(seed): \(result)")
        if !stalled, sizes.isEmpty, !chain.runners.contains(where: { $0.demand.isLive }) {
            // At `need` no allocation waits; a writer that lets others go first is no allocation.
            for pool in chain.pools where !pool.name.hasSuffix(" copies") {
                #expect(
                    pool.starvedMs == 0,
                    "seed \(seed): pool \(pool.name) of \(pool.bufferCount) was empty for \(pool.starvedMs) ms")
            }
        }
        return chain.plan.automaticQueues.count
    }
}
