// SPDX-License-Identifier: Apache-2.0

/// For each pool the stages that can have its buffers, and for each writer the stages that can hold the buffer that it
/// is handed.
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

    /// The places, beside the writer itself, where the frame that a writer is handed can be.
    struct Sharers {
        /// Whether a stage keeps frames after its call, or lends them while it still refers to them. A wait for it
        /// could last forever.
        var canKeep = false
        /// Threads that can have the frame in hand.
        var threads: Set<Int> = []
        /// Edges, beside the writer's way, on which the frame can lie or wait for a place.
        var edges: Set<Int> = []

        var isEmpty: Bool { !canKeep && threads.isEmpty && edges.isEmpty }
    }

    let topology: BudgetTopology
    private(set) var domains: [Domain] = []
    /// For each writer with a copy pool, where else its frame can be.
    private(set) var sharers: [Int: Sharers] = [:]

    init(_ topology: BudgetTopology) {
        self.topology = topology
        let graph = topology.graph
        for node in graph.nodes.indices where graph.nodes[node].allocatesFrames {
            let domain = domain(of: node, isCopyPool: false)
            if topology.outgoing[node].isEmpty || !domain.edges.isEmpty { domains.append(domain) }
        }
        for node in graph.nodes.indices where graph.nodes[node].modifies {
            let others = sharers(of: node)
            guard !others.isEmpty else { continue }
            sharers[node] = others
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

    /// A writer makes its frame its own, so sharing begins anew behind each writer and each allocator. From those
    /// points before `writer` the frame may go wherever the same buffer goes, up to and into further writers, but not
    /// past them.
    private func sharers(of writer: Int) -> Sharers {
        let graph = topology.graph
        var found = Sharers()
        var before: Set<Int> = []
        var open = topology.incoming[writer].map { graph.edges[$0].from }
        while let node = open.popLast() {
            guard before.insert(node).inserted else { continue }
            if graph.nodes[node].kind == .passThrough {
                if topology.hold(node) > 0 { found.canKeep = true }
                if topology.incoming[node].contains(where: { graph.edges[$0].keeps > 0 }) { found.canKeep = true }
                if !graph.nodes[node].modifies { open += topology.incoming[node].map { graph.edges[$0].from } }
            } else if graph.nodes[node].floor > 0 {
                found.canKeep = true
            }
        }
        for node in before {
            for edge in topology.outgoing[node] {
                let consumer = graph.edges[edge].to
                let handsItOn =
                    consumer == writer || (before.contains(consumer) && graph.nodes[consumer].kind == .passThrough)
                if !handsItOn { share(edge, into: &found) }
            }
        }
        return found
    }

    private func share(_ edge: Int, into found: inout Sharers) {
        let graph = topology.graph
        let node = graph.edges[edge].to
        // A tap has released the frame before any other stage gets it.
        guard !graph.edges[edge].carriesUnits, !graph.nodes[node].isTap, found.edges.insert(edge).inserted else {
            return
        }
        found.threads.insert(topology.thread[node])
        if graph.edges[edge].keeps > 0 { found.canKeep = true }
        if graph.nodes[node].modifies { return }
        if topology.hold(node) > 0 { found.canKeep = true }
        if graph.nodes[node].kind == .passThrough { for next in topology.outgoing[node] { share(next, into: &found) } }
    }
}
