// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

@Suite struct GraphGeneratorTests {
    private static let seeds = UInt64(0)..<5_000

    @Test func makesTheSameChainFromTheSameSeed() {
        for seed in UInt64(0)..<50 { #expect(GraphGenerator.make(seed: seed) == GraphGenerator.make(seed: seed)) }
    }

    @Test func makesTheSharesOfChainsItShould() {
        var forks = 0
        var joins = 0
        var has: [String: Int] = [:]
        var sizes: Set<Int> = []
        for seed in Self.seeds {
            let graph = GraphGenerator.make(seed: seed)
            sizes.insert(graph.nodes.count)
            let topology = BudgetTopology(graph)
            if topology.outgoing.contains(where: { $0.count > 1 }) { forks += 1 }
            if graph.nodes.contains(where: \.isJoin) { joins += 1 }
            for policy in Set(graph.edges.map(\.policy)) { has[policy.rawValue, default: 0] += 1 }
            for kind in Set(graph.nodes.map(\.kind)) { has[kind.rawValue, default: 0] += 1 }
            for (name, isThere) in [
                ("writer", graph.nodes.contains(where: \.modifies)), ("live", graph.nodes.contains(where: \.isLive)),
                ("hold", graph.nodes.contains { $0.hold > 0 }), ("delay", graph.nodes.contains { $0.delay > 0 }),
                ("floor", graph.nodes.contains { $0.floor > 0 }), ("inline", graph.edges.contains { $0.capacity == 0 }),
                ("three-way join", topology.incoming.contains { $0.count > 2 }),
                ("two sources", topology.incoming.filter(\.isEmpty).count > 1),
            ] where isThere { has[name, default: 0] += 1 }
        }
        let count = Self.seeds.count
        print("forks \(forks), joins \(joins) of \(count); \(has.sorted { $0.key < $1.key })")
        #expect(forks * 100 >= count * 30)
        #expect(joins * 100 >= count * 20)
        #expect(sizes.min()! >= 3 && sizes.max()! >= 14 && sizes.max()! <= 16)
        for (name, times) in has { #expect(times * 100 >= count * 5, "\(name) \(times)") }
        #expect(has.count == DropPolicy.allCases.count + BudgetGraph.Kind.allCases.count + 8)
    }

    @Test func makesValidChains() {
        for seed in Self.seeds {
            let graph = GraphGenerator.make(seed: seed)
            let topology = BudgetTopology(graph)
            for (index, node) in graph.nodes.enumerated() {
                let inputs = topology.incoming[index]
                let outputs = topology.outgoing[index]
                #expect((node.kind == .source) == inputs.isEmpty)
                #expect((node.kind == .sink) == outputs.isEmpty)
                #expect(node.isJoin == (inputs.count > 1))
                #expect(!node.modifies || node.kind == .passThrough)
                #expect(node.kind != .passThrough || node.hold >= node.delay)
            }
            for edge in graph.edges {
                #expect(edge.from < edge.to)
                #expect(edge.carriesUnits == (graph.nodes[edge.from].kind == .encoder))
                #expect(
                    edge.capacity > 0
                        || (edge.policy == .wait && topology.outgoing[edge.from].count == 1
                            && !graph.nodes[edge.to].isJoin)
                )
                #expect(edge.policy != .latest || edge.capacity == 1)
                #expect(edge.policy == .wait || (edge.policy == .dropToKeyframe) == edge.carriesUnits)
            }
        }
    }

    /// Larger than the model checker can see, but the plan must not fail: queues are raised, or faults found, in little
    /// time.
    @Test func plansEveryChain() {
        var faults = 0
        for seed in UInt64(0)..<1_000 {
            let plan = BudgetPlan(GraphGenerator.make(seed: seed))
            if !plan.faults.isEmpty { faults += 1 }
            for pool in plan.pools { #expect(pool.min <= pool.need && pool.need == pool.size) }
            #expect(!plan.pools.isEmpty)
        }
        #expect(faults < 300)
    }
}
