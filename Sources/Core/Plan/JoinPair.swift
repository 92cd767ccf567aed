/// Most and least delay, least capacity and the slowest way between two points of a graph.
struct PathDelays {
    /// Of all ways from one edge to another, both included.
    struct Way {
        var mostDelay: Int
        var leastDelay: Int
        /// Least sum of capacities among the ways that can block; nil when every way has a link that drops.
        var leastCapacity: Int?
        /// The nodes of a way with the most delay.
        var slowNodes: [Int]
    }

    private let graph: BudgetGraph

    init(_ graph: BudgetGraph) { self.graph = graph }

    /// For each edge that can be reached from `first`: the ways that begin with `first` and end with it.
    func ways(from first: Int) -> [Int: Way] {
        func alone(_ edge: Int) -> Int? { graph.edges[edge].policy.canBlock ? graph.edges[edge].capacity : nil }
        var found: [Int: Way] = [first: Way(mostDelay: 0, leastDelay: 0, leastCapacity: alone(first), slowNodes: [])]
        // Edges in the topological order of the node they leave.
        for edge in graph.edges.indices.sorted(by: { graph.edges[$0].from < graph.edges[$1].from }) where edge != first {
            let node = graph.edges[edge].from
            let delay = graph.nodes[node].delay
            for before in graph.incoming(node) {
                guard let way = found[before] else { continue }
                let capacity: Int? = if let a = way.leastCapacity, let b = alone(edge) { a + b } else { nil }
                var next = Way(
                    mostDelay: way.mostDelay + delay, leastDelay: way.leastDelay + delay, leastCapacity: capacity,
                    slowNodes: way.slowNodes + [node])
                if let known = found[edge] {
                    if known.mostDelay >= next.mostDelay {
                        next.mostDelay = known.mostDelay
                        next.slowNodes = known.slowNodes
                    }
                    next.leastDelay = min(next.leastDelay, known.leastDelay)
                    next.leastCapacity = [next.leastCapacity, known.leastCapacity].compactMap { $0 }.min()
                }
                found[edge] = next
            }
        }
        return found
    }
}

/// Two ways from a fork to two inputs of a join: one that delays, and one on which items wait for it.
struct JoinPair {
    var fork: Int
    var join: Int
    /// Items that wait on the fast way: the most delay of the slow one less the least of the fast one.
    var lag: Int
    /// Places for them on the fast way; nil when a link there drops, so that nothing stands still.
    var leastCapacity: Int?
    /// The fast way's last edge, into the join.
    var lastEdge: Int
    var slowNodes: [Int]

    /// Every pair of ways with a lag above 0.
    static func all(in graph: BudgetGraph, _ delays: PathDelays) -> [JoinPair] {
        let joins = graph.nodes.indices.filter { graph.nodes[$0].isJoin }
        guard !joins.isEmpty else { return [] }
        var pairs: [JoinPair] = []
        for fork in graph.nodes.indices {
            let edges = graph.outgoing(fork)
            guard edges.count > 1 else { continue }
            let ways = edges.map { delays.ways(from: $0) }
            for join in joins where join > fork {
                let inputs = graph.incoming(join)
                for (slowStart, slowWays) in ways.enumerated() {
                    for (fastStart, fastWays) in ways.enumerated() where fastStart != slowStart {
                        for slowEnd in inputs {
                            guard let slow = slowWays[slowEnd] else { continue }
                            for fastEnd in inputs where fastEnd != slowEnd {
                                guard let fast = fastWays[fastEnd] else { continue }
                                let lag = slow.mostDelay - fast.leastDelay
                                guard lag > 0 else { continue }
                                pairs.append(
                                    JoinPair(
                                        fork: fork, join: join, lag: lag, leastCapacity: fast.leastCapacity,
                                        lastEdge: fastEnd, slowNodes: slow.slowNodes))
                            }
                        }
                    }
                }
            }
        }
        return pairs
    }
}
