// SPDX-License-Identifier: Apache-2.0

/// For each pool the stages that can have its buffers. A writer has a pool for copies where another stage can hold the
/// frame that it is handed.
struct BudgetDomains {
    /// One pool and its domain.
    struct Domain {
        /// The node that allocates: a source, an allocator, or a writer for its copies.
        var allocator: Int
        var isCopyPool: Bool
        /// Nodes that get buffers of this pool, in order; without the allocator.
        var members: [Int]
        /// Edges that carry buffers of this pool.
        var edges: [Int]
        /// `edges` by the node they enter: how many inputs of a member carry this pool's buffers.
        var inputs: [Int: Int]
    }

    let topology: BudgetTopology
    private(set) var domains: [Domain] = []
    init(_ topology: BudgetTopology) {
        self.topology = topology
        let graph = topology.graph
        for node in graph.nodes.indices where graph.nodes[node].allocatesFrames {
            let domain = domain(of: node, isCopyPool: false)
            if topology.outgoing[node].isEmpty || !domain.edges.isEmpty { domains.append(domain) }
        }
        for node in graph.nodes.indices where graph.nodes[node].modifies && sharesFrames(node) {
            domains.append(domain(of: node, isCopyPool: true))
        }
    }

    private func domain(of allocator: Int, isCopyPool: Bool) -> Domain {
        let graph = topology.graph
        var inputs: [Int: Int] = [:]
        var edges: [Int] = []
        var open = [allocator]
        while let next = open.popLast() {
            for edge in topology.outgoing[next] where !graph.edges[edge].carriesUnits {
                let consumer = graph.edges[edge].to
                edges.append(edge)
                if inputs[consumer] == nil, graph.nodes[consumer].kind == .passThrough { open.append(consumer) }
                inputs[consumer, default: 0] += 1
            }
        }
        return Domain(
            allocator: allocator, isCopyPool: isCopyPool, members: inputs.keys.sorted(), edges: edges.sorted(),
            inputs: inputs)
    }

    /// Whether another stage can hold the frame that `writer` is handed.
    ///
    /// A writer makes its frame its own, so sharing begins anew behind each writer and each allocator. From those points
    /// before `writer` the frame may go wherever the same buffer goes.
    private func sharesFrames(_ writer: Int) -> Bool {
        let graph = topology.graph
        var before: Set<Int> = []
        var open = topology.incoming[writer].map { graph.edges[$0].from }
        while let node = open.popLast() {
            guard before.insert(node).inserted else { continue }
            guard graph.nodes[node].kind == .passThrough else {
                if graph.nodes[node].floor > 0 { return true }
                continue
            }
            let inputs = topology.incoming[node].map { graph.edges[$0] }
            if topology.hold(node) > 0 || inputs.contains(where: { $0.keeps > 0 }) { return true }
            if !graph.nodes[node].modifies { open += inputs.map(\.from) }
        }
        return before.contains { node in
            topology.outgoing[node].contains { edge in
                let consumer = graph.edges[edge].to
                let handsItOn =
                    consumer == writer || (before.contains(consumer) && graph.nodes[consumer].kind == .passThrough)
                // A tap has released the frame before any other stage gets it.
                return !handsItOn && !graph.edges[edge].carriesUnits && !graph.nodes[consumer].isTap
            }
        }
    }
}
