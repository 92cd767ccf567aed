// SPDX-License-Identifier: Apache-2.0

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
        let count = only != nil ? 1 : Self.isSoak ? 50_000 : getenv("FRAMEHOST_SANITIZED") != nil ? 150 : 2_000
        let first = only ?? (Self.isSoak ? UInt64(ChainClock().now()) % 1_000_000_000 : 1)
        // They mostly wait, each for its own stages: on one thread after the other both cores would be idle.
        let lanes = only == nil ? 4 : 1
        let tally = Locked(Tally())
        let threads = try (0..<lanes).map { lane in
            try TestThread("random chains \(lane)") {
                for seed in stride(from: first + UInt64(lane), to: first + UInt64(count), by: lanes) {
                    var own = Tally()
                    do { try Self.take(seed, rounds: only == nil ? 1 : 20, &own) } catch {
                        own.faults.append("seed \(seed): \(error)")
                    }
                    tally.withLock { $0.add(own) }
                }
            }
        }
        for thread in threads { thread.join(within: 6 * 3600) }
        let all = tally.now
        print(
            "random chains: \(all.ran) ran (\(all.forks) with forks, \(all.joins) with joins, \(all.tight) with `min` buffers, \(all.queued) with automatic queues), \(all.refused) refused"
        )
        #expect(all.faults.isEmpty, "\(all.faults.joined(separator: "\n"))")
        #expect(all.ran + all.refused == count)
        guard only == nil else { return }
        #expect(all.ran >= count / 2)
        #expect(all.forks * 10 >= all.ran * 3)
        #expect(all.joins * 10 >= all.ran * 2)
        #expect(all.queued * 20 >= all.ran)
    }

    private struct Tally: Sendable {
        var ran = 0
        var refused = 0
        var forks = 0
        var joins = 0
        var tight = 0
        var queued = 0
        var faults: [String] = []

        mutating func add(_ other: Tally) {
            ran += other.ran
            refused += other.refused
            forks += other.forks
            joins += other.joins
            tight += other.tight
            queued += other.queued
            faults += other.faults
        }
    }

    private static func take(_ seed: UInt64, rounds: Int, _ tally: inout Tally) throws {
        var graph = GraphGenerator.make(seed: seed)
        // A filter answers at once: only in the model can a writer delay.
        for node in graph.nodes.indices where graph.nodes[node].modifies { graph.nodes[node].delay = 0 }
        let plan = BudgetPlan(graph)
        guard plan.faults.isEmpty else {
            tally.refused += 1
            return
        }
        // Every other chain gets only `min` buffers, by its own plan: its stages are numbered otherwise, and so may
        // be its queues.
        var sizes: [Int: Int] = [:]
        if seed % 2 == 0 {
            let own = try Chain.plan(GraphChain.request(plan, seed: seed, frames: 60, sizes: [:]))
            for pool in own.budget.pools where !pool.isCopyPool && pool.min < pool.need {
                sizes[Int(own.stages[pool.allocator].id.dropFirst())!] = max(pool.min, 1)
            }
            tally.tight += sizes.isEmpty ? 0 : 1
        }
        for round in 0..<rounds {
            let automatic = try run(plan, seed: seed, sizes: sizes, &tally.faults)
            if round == 0, automatic > 0 { tally.queued += 1 }
        }
        tally.ran += 1
        tally.forks += graph.nodes.indices.contains { graph.outgoing($0).count > 1 } ? 1 : 0
        tally.joins += graph.nodes.contains(where: \.isJoin) ? 1 : 0
    }

    /// - Returns: How many queues the planner put in.
    private static func run(_ plan: BudgetPlan, seed: UInt64, sizes: [Int: Int], _ faults: inout [String]) throws -> Int
    {
        let chain = try Chain(GraphChain.request(plan, seed: seed, frames: 60, sizes: sizes))
        var watch = ProgressWatch()
        let result = chain.run {
            if watch.hasStoodStill(chain) { chain.cancel() }
        }
        if watch.isOver {
            faults.append(
                "seed \(seed), sizes \(sizes): the chain stood still after \(watch.items) items\n\(watch.standstill)")
        }
        if !result.keepsItsPromises { faults.append("seed \(seed): \(result)") }
        if !watch.isOver, sizes.isEmpty, !chain.runners.contains(where: { $0.demand.isLive }) {
            // At `need` no allocation waits; a writer that lets others go first is no allocation.
            for pool in chain.pools where !pool.name.hasSuffix(" copies") && pool.starvedMs != 0 {
                faults.append(
                    "seed \(seed): pool \(pool.name) of \(pool.bufferCount) was empty for \(pool.starvedMs) ms")
            }
        }
        return chain.plan.automaticQueues.count
    }
}
