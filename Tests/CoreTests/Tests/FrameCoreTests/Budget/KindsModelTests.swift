// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

/// Chains in which stages take several kinds, in every state: what the plan accepts never stops.
@Suite struct KindsModelTests {
    private static let isSoak = ModelCheckerTests.isSoak
    private static let isSanitized = ModelCheckerTests.isSanitized
    private static let limit = isSoak ? 60_000 : isSanitized ? 1_000 : 3_500
    private static let randomGraphs = isSoak ? 2_000 : isSanitized ? 10 : 30
    /// A normal run takes each third chain.
    private static let small = SmallKinds.all.enumerated().filter { isSoak || $0.offset % 3 == 0 }.map(\.element)

    private struct Tally {
        var checked = 0
        var unchecked = 0
        var refused = 0
        var states = 0
        /// Chains that stop where every item keeps its turn.
        var stopping = 0
        var faults: [String] = []

        /// Checks a chain with the sizes of its plan: the fewest buffers, and as many as it gets.
        mutating func check(_ kinds: SmallKinds, limit: Int, showsNeed: Bool = false) {
            let plan = BudgetPlan(kinds.graph.countingPicturesBeforeFilters())
            guard plan.faults.isEmpty else { return refused += 1 }
            for sizes in Set([plan.pools.map(\.min), plan.pools.map(\.need)]) {
                do {
                    let report = try run(kinds, plan, sizes, limit: limit)
                    states += report.states
                    checked += 1
                    if let stall = report.stall { faults.append("\(sizes): \(kinds.brief): \(stall)") }
                } catch { unchecked += 1 }
            }
            guard showsNeed else { return }
            let strict = try? run(kinds, plan, plan.pools.map(\.need), limit: limit, keepsTurns: true)
            if strict?.stall != nil { stopping += 1 }
        }

        private func run(
            _ kinds: SmallKinds, _ plan: BudgetPlan, _ sizes: [Int], limit: Int, keepsTurns: Bool = false
        ) throws -> ModelChecker.Report {
            let pools = plan.pools.enumerated().map {
                ModelChecker.Pool(allocator: $1.allocator, isCopyPool: $1.isCopyPool, size: sizes[$0])
            }
            // What the plan counts as kept back lies in a queue.
            var graph = plan.graph
            for node in graph.nodes.indices {
                graph.nodes[node].delay = kinds.graph.nodes[node].delay
                graph.nodes[node].hold = kinds.graph.nodes[node].hold
            }
            return try ModelChecker(
                graph, pools: pools, skips: kinds.skips, ahead: kinds.ahead, keepsTurns: keepsTurns
            ).run(limit: limit)
        }

        var text: String {
            "\(checked) checks, \(states) states, \(refused) refused, \(unchecked) too large; \(stopping) chains stop where items keep their turn"
        }
    }

    @Test func holdsForSmallChains() {
        var tally = Tally()
        for kinds in Self.small { tally.check(kinds, limit: Self.limit, showsNeed: true) }
        print("kinds: \(tally.text)")
        #expect(tally.faults.isEmpty, "\(tally.faults.joined(separator: "\n"))")
        #expect(Self.isSanitized || tally.checked * 2 > tally.unchecked)
        #expect(Self.isSanitized || tally.stopping * 3 >= Self.small.count)
    }

    @Test func holdsForRandomSmallChains() {
        var tally = Tally()
        for seed in UInt64(0)..<UInt64(Self.randomGraphs) {
            tally.check(SmallKinds(KindsGenerator.make(seed: seed, .small), seed: seed), limit: Self.limit / 2)
        }
        print("random kinds, every state: \(tally.text)")
        #expect(tally.faults.isEmpty, "\(tally.faults.joined(separator: "\n"))")
        #expect(Self.isSanitized || tally.checked * 2 > tally.unchecked)
    }

    /// Pictures that a filter takes only from a full queue count as kept back.
    @Test func stopsWherePicturesBeforeAFilterAreNotCounted() throws {
        let stops = try SmallKinds.all.contains { kinds in
            guard kinds.graph.countingPicturesBeforeFilters() != kinds.graph else { return false }
            let plan = BudgetPlan(kinds.graph)
            let pools = plan.pools.map {
                ModelChecker.Pool(allocator: $0.allocator, isCopyPool: $0.isCopyPool, size: $0.min)
            }
            let checker = try ModelChecker(plan.graph, pools: pools, skips: kinds.skips, ahead: kinds.ahead)
            return try checker.run(limit: 200_000).stall != nil
        }
        #expect(stops)
    }
}
