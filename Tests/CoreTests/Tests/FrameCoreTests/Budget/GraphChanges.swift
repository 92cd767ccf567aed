// SPDX-License-Identifier: Apache-2.0

@testable import FrameCore

/// What may be changed in a small graph while it runs, and how often: the moves of one more actor of the model, the desk.
///
/// The graph is the largest there can be; branches that are `absent` come with a change. Nodes keep their numbers, so a
/// branch that is attached again is a new instance in the old one's place, which has gone by then.
struct GraphChanges {
    enum Kind: CaseIterable { case detach, attach, pause, resume, replace }

    /// What a runner could do wrong, so that the tests see it caught.
    enum Fault {
        /// A producer that waits at a queue which is taken away goes on waiting.
        case closedQueueWaits
        /// A paused writer hands on frames that others hold.
        case pausedWriterSharesOn
        /// The frames that a replaced instance kept never come back.
        case keepsWhatWasReplaced
        /// The frames that a branch kept which was taken away never come back.
        case keepsWhatWasDetached
        /// Joins are not told of the items that were inside an instance which was replaced without draining.
        case replacesInSilence
        /// Joins are not told of the items that end at a paused stage.
        case pausesInSilence
        /// A stage that delays says of items that end there no more than that they do: something as near could still come.
        case tellsOnlyWhatEnded
        /// Links that several threads feed are opened without the news of what was turned away before.
        case opensInSilence
    }

    var kinds = Set(Kind.allCases)
    var most: Int
    /// First stages of branches that are not there at the start.
    var absent: [Int] = []
    /// One change takes a branch away and attaches another one, in this order, while the first still ends.
    var swap: (coming: Int, going: Int)?
    var fault: Fault?

    let graph: BudgetGraph
    private let branches: [[Int]]
    private let entranceEdges: [[Int]]
    /// For each node whether it may drop: not where a stage behind it delays, and a join behind that waits for its
    /// answers (docs/design/001-budgets.md, "Outside the model").
    private let canDrop: [Bool]

    init(_ graph: BudgetGraph, most: Int) {
        self.graph = graph
        self.most = most
        let topology = BudgetTopology(graph)
        let branches = graph.nodes.indices.map { [$0] + topology.descendants(of: $0).sorted() }
        self.branches = branches
        entranceEdges = branches.map { branch in
            graph.edges.indices.filter { branch.contains(graph.edges[$0].to) && !branch.contains(graph.edges[$0].from) }
        }
        canDrop = graph.nodes.indices.map { node in
            !branches[node].contains { late in
                late != node && graph.nodes[late].delay > 0
                    && branches[late].contains { graph.nodes[$0].isJoin }
            }
        }
    }

    /// A stage and all that is behind it, in topological order.
    func branch(of root: Int) -> [Int] { branches[root] }
    func mayDrop(_ node: Int) -> Bool { canDrop[node] }
    /// Edges between what stays and what goes with `root`.
    func entrances(of root: Int) -> [Int] { entranceEdges[root] }

    /// Pools of the whole graph, each large enough for every graph there can be between two changes: the planner refuses
    /// a change whose `min` is above the size that runs.
    ///
    /// - Parameter less: Taken off each size, so that the tests see it caught.
    func pools(less: Int = 0) -> [ModelChecker.Pool] {
        var gone: [Set<Int>]
        if let swap {
            gone = [Set(branch(of: swap.coming)), Set(branch(of: swap.going))]
        } else {
            gone = [[]]
        }
        let whole = BudgetPlan(graph).pools.map { ($0.allocator, $0.isCopyPool) }
        var sizes = [Int](repeating: 0, count: whole.count)
        for nodes in gone {
            let kept = graph.nodes.indices.filter { !nodes.contains($0) }
            for pool in BudgetPlan(graph.without(nodes)).pools {
                let name = (kept[pool.allocator], pool.isCopyPool)
                guard let index = whole.firstIndex(where: { $0 == name }) else { continue }
                sizes[index] = max(sizes[index], pool.min)
            }
        }
        return whole.indices.map {
            ModelChecker.Pool(
                allocator: whole[$0].0, isCopyPool: whole[$0].1, size: max(0, sizes[$0] - less))
        }
    }
}

extension BudgetGraph {
    /// The graph without some nodes and their links.
    func without(_ gone: Set<Int>) -> BudgetGraph {
        let kept = nodes.indices.filter { !gone.contains($0) }
        return BudgetGraph(
            nodes: kept.map { nodes[$0] },
            edges: edges.filter { !gone.contains($0.from) && !gone.contains($0.to) }.map { edge in
                var edge = edge
                edge.from = kept.firstIndex(of: edge.from)!
                edge.to = kept.firstIndex(of: edge.to)!
                return edge
            })
    }
}
