// SPDX-License-Identifier: Apache-2.0

import Glibc
import Testing

@testable import FrameCore

/// Random chains with sound and motion on the real runner, with random stalls: what the plan accepts never stops, no
/// picture of a filter comes before what it needs, and each item is accounted for.
@Suite struct RandomKindsTests {
    /// `true`: with live sources and links that drop.
    @Test(arguments: [false, true]) func nothingThatIsAcceptedEverStops(drops: Bool) throws {
        // FRAMEHOST_SEED=N runs that one chain, twenty times over.
        let only = getenv("FRAMEHOST_SEED").flatMap { UInt64(String(cString: $0)) }
        let isSoak = RandomChainTests.isSoak
        let count = only != nil ? 1 : isSoak ? 20_000 : getenv("FRAMEHOST_SANITIZED") != nil ? 40 : 150
        let first = only ?? (isSoak ? UInt64(ChainClock().now()) % 1_000_000_000 : 1)
        let lanes = only == nil ? 4 : 1
        let tally = Locked(Tally())
        let threads = try (0..<lanes).map { lane in
            try TestThread("random kinds \(lane)") {
                for seed in stride(from: first + UInt64(lane), to: first + UInt64(count), by: lanes) {
                    var own = Tally()
                    do { try Self.take(seed, drops: drops, rounds: only == nil ? 1 : 20, &own) } catch {
                        own.faults.append("seed \(seed): \(error)")
                    }
                    tally.withLock { $0 += own }
                }
            }
        }
        for thread in threads { thread.join(within: 6 * 3600) }
        let all = tally.now
        print("random kinds\(drops ? " with drops" : ""): \(all.text)")
        #expect(all.faults.isEmpty, "\(all.faults.joined(separator: "\n"))")
        #expect(all.ran + all.refused == count)
        guard only == nil else { return }
        #expect(all.ran * 2 >= count)
        #expect(all.withFilters * 2 >= all.ran && all.withSeveral * 10 >= all.ran && all.withRecorders * 2 >= all.ran)
        #expect(all.early > 0 && (drops || all.withMixers * 20 >= all.ran))
    }

    private struct Tally: Sendable {
        var ran = 0
        var refused = 0
        var withFilters = 0
        /// With several filters, or with a filter and a recorder.
        var withSeveral = 0
        var withRecorders = 0
        var withMixers = 0
        /// Chains in which an input is taken from before its turn.
        var early = 0
        var tight = 0
        var items = 0
        var faults: [String] = []

        static func += (sum: inout Tally, other: Tally) {
            sum.ran += other.ran
            sum.refused += other.refused
            sum.withFilters += other.withFilters
            sum.withSeveral += other.withSeveral
            sum.withRecorders += other.withRecorders
            sum.withMixers += other.withMixers
            sum.early += other.early
            sum.tight += other.tight
            sum.items += other.items
            sum.faults += other.faults
        }

        var text: String {
            "\(ran) ran (\(withFilters) with filters, \(withRecorders) with recorders, \(withMixers) with mixers, \(withSeveral) with several of these, \(early) that may take early, \(tight) with `min` buffers), \(items) items, \(refused) refused"
        }
    }

    private static func take(_ seed: UInt64, drops: Bool, rounds: Int, _ tally: inout Tally) throws {
        let made = KindsGenerator.make(seed: seed, drops ? .dropping : .waiting)
        let plan = BudgetPlan(made.graph.countingPicturesBeforeFilters())
        guard plan.faults.isEmpty else {
            tally.refused += 1
            return
        }
        let types = made.types(seed: seed)
        // Every other chain gets only `min` buffers, by its own plan.
        var sizes: [Int: Int] = [:]
        if seed % 2 == 0 {
            let own = try Chain.plan(GraphChain.request(plan, seed: seed, frames: 60, sizes: [:], others: types))
            for pool in own.budget.pools where !pool.isCopyPool && pool.min < pool.need {
                sizes[Int(own.stages[pool.allocator].id.dropFirst())!] = max(pool.min, 1)
            }
            tally.tight += sizes.isEmpty ? 0 : 1
        }
        for _ in 0..<rounds {
            let chain = try Chain(GraphChain.request(plan, seed: seed, frames: 60, sizes: sizes, others: types))
            var watch = ProgressWatch()
            let result = chain.run {
                if watch.hasStoodStill(chain) { chain.cancel() }
            }
            let ledger = chain.ledger
            tally.items += ledger.captured
            if watch.isOver {
                tally.faults.append(
                    "seed \(seed), sizes \(sizes): stood still\n\(made.graph.brief)\n\(watch.standstill)")
            }
            if !result.keepsItsPromises { tally.faults.append("seed \(seed): \(result)\n\(made.graph.brief)") }
            if made.losesNothing, ledger.dropped > 0 {
                tally.faults.append("seed \(seed): \(ledger)\n\(made.graph.brief)")
            }
        }
        tally.ran += 1
        tally.withFilters += made.filters.isEmpty ? 0 : 1
        tally.withRecorders += made.recorders.isEmpty ? 0 : 1
        tally.withMixers += made.stages.values.contains { if case .mixer = $0 { true } else { false } } ? 1 : 0
        tally.withSeveral += made.filters.count + made.recorders.count > 1 ? 1 : 0
        let taking = EarlyTaking(BudgetTopology(plan.graph))
        tally.early += taking.inputs.values.contains { $0.leaves.contains { $0 != .ownTurn } } ? 1 : 0
    }
}
