// SPDX-License-Identifier: Apache-2.0

/// How many buffers a graph needs so that no allocation ever waits (`need`), with how many it still never stands still
/// (`min`), and how long the queues before joins are.
///
/// The rules and their proof are in docs/design/001-budgets.md.
public struct BudgetPlan: Sendable {
    /// One pool of frame buffers: its domain is everything that may get one of its buffers.
    public struct Pool: Sendable, Equatable {
        /// Index of the node that allocates.
        public var allocator: Int
        /// Whether the pool is for the copies that a writer makes when its input is shared. If not, it is the
        /// allocator's output pool.
        public var isCopyPool: Bool
        /// The nodes that get buffers of this pool, without the allocator of an output pool.
        public var members: [Int]
        /// How many buffers are never free.
        public var floor: Int
        /// With fewer buffers the chain can stop for good. The same as ``need`` in a chain with a join, and for a copy
        /// pool.
        public var min: Int
        /// With this many buffers an allocation never waits.
        public var need: Int
        /// How many buffers are made: ``need`` and some to spare, or the number that a person wrote.
        public var size: Int
        /// The parts of ``need``, for people.
        public var shares: [Share]

        /// Buffers beside ``need``, for branches that are attached while the chain runs.
        public var spare: Int { Swift.max(0, size - need) }
    }

    /// A part of a pool's `need`.
    public struct Share: Sendable, Equatable {
        /// The stage or link that needs it.
        public var what: String
        /// How many buffers.
        public var count: Int
    }

    /// A queue the planner made longer so that a join cannot stop.
    public struct Raised: Sendable, Equatable {
        /// Index of the edge.
        public var edge: Int
        /// The capacity that it had.
        public var from: Int
        /// The capacity that it has now.
        public var to: Int
        /// Index of the join.
        public var join: Int
        /// Index of the fork before the join.
        public var fork: Int
    }

    /// Why a graph is refused.
    public enum Fault: Sendable, Equatable {
        /// The queue on `edge` has `capacity` places, and `required` are needed: the other way from `fork` to `join`
        /// delays that much.
        case queueTooShort(edge: Int, capacity: Int, required: Int, fork: Int, join: Int)
        /// `edge` drops items before a stage that delays, on one way from `fork` to `join`, and the other way waits. No
        /// queue is long enough.
        case dropsBeforeDelay(edge: Int, fork: Int, join: Int)
        /// The chain file's size of this pool is less than `min`.
        case poolTooSmall(allocator: Int, isCopyPool: Bool, size: Int, min: Int)
    }

    /// The graph, with the queues that the planner made longer.
    public var graph: BudgetGraph
    /// The pools and their sizes.
    public var pools: [Pool] = []
    /// The queues that the planner made longer.
    public var raised: [Raised] = []
    /// Why the graph is refused; empty when it is not.
    public var faults: [Fault] = []
    /// The number of each node's thread.
    public var threads: [Int]

    /// - Parameters:
    ///   - graph: Stages and links.
    ///   - sizes: Buffers a person wrote for the output pool of a node.
    ///   - copySizes: Buffers a person wrote for the copy pool of a node.
    ///   - spare: Buffers beside the need, for branches that are attached while the chain runs.
    ///   - rules: The standard rules, or others in a test.
    public init(
        _ graph: BudgetGraph, sizes: [Int: Int] = [:], copySizes: [Int: Int] = [:], spare: PoolSpare = .none,
        rules: BudgetRules = .standard
    ) {
        self.graph = graph
        let topology = BudgetTopology(graph)
        let domains = BudgetDomains(topology)
        threads = topology.thread
        var waits = BudgetWaits(topology, rules)
        lengthenQueues(&waits)
        let sizes = PoolSizes(
            domains, self.graph, rules, written: sizes, writtenForCopies: copySizes, spare: spare)
        pools = domains.domains.map(sizes.pool)
        for pool in pools where pool.size < pool.min {
            faults.append(
                .poolTooSmall(
                    allocator: pool.allocator, isCopyPool: pool.isCopyPool, size: pool.size, min: pool.min))
        }
    }

    // MARK: Queues before joins

    /// The greatest capacity of a queue. A chain that needs a longer one is refused.
    static let mostCapacity = 1 << 16

    /// Makes queues longer until no circle of starved and pushing threads is left.
    private mutating func lengthenQueues(_ waits: inout BudgetWaits) {
        var ends: [Int: (fork: Int, join: Int)] = [:]
        while let circle = waits.badCircle() {
            var (edge, fork, join) = Self.ends(of: circle.places, graph, waits.edgesBeforeRivals)
            if circle.sum < BudgetWaits.unbounded / 2 {
                waits.capacities[edge] += circle.sum + 1
                guard waits.capacities[edge] <= Self.mostCapacity else {
                    faults.append(
                        .queueTooShort(
                            edge: edge, capacity: graph.edges[edge].capacity, required: waits.capacities[edge],
                            fork: fork, join: join))
                    return
                }
            } else {
                // Some link on this circle drops what a stage behind it needs.
                let late = circle.places.lazy.compactMap { if case .starved(let edge, true) = $0 { edge } else { nil } }
                guard let short = late.first(where: { waits.losesTooMuch($0) }) else {
                    edge = waits.loser(on: circle.places)!
                    faults.append(.dropsBeforeDelay(edge: edge, fork: fork, join: join))
                    waits.reported.insert(edge)
                    continue
                }
                edge = short
                guard !graph.edges[edge].isFixed, waits.canBeLongEnough(edge) else {
                    faults.append(.dropsBeforeDelay(edge: edge, fork: fork, join: join))
                    waits.reported.insert(edge)
                    continue
                }
                waits.capacities[edge] = waits.topology.totalLag + 1 + waits.rules.gaps
            }
            ends[edge] = (fork, join)
        }
        // A queue that one circle made longer may be longer than needed, now that another circle made others longer.
        for edge in ends.keys.sorted() {
            while waits.capacities[edge] > graph.edges[edge].capacity {
                waits.capacities[edge] -= 1
                guard waits.badCircle() != nil else { continue }
                waits.capacities[edge] += 1
                break
            }
        }
        for (edge, place) in ends.sorted(by: { $0.key < $1.key })
        where waits.capacities[edge] > graph.edges[edge].capacity {
            let present = graph.edges[edge].capacity
            let wanted = waits.capacities[edge]
            if graph.edges[edge].isFixed {
                faults.append(
                    .queueTooShort(edge: edge, capacity: present, required: wanted, fork: place.fork, join: place.join))
            } else {
                raised.append(Raised(edge: edge, from: present, to: wanted, join: place.join, fork: place.fork))
                graph.edges[edge].capacity = wanted
            }
        }
    }

    /// The queue of a circle that the planner makes longer, and the fork and join it lies between. A queue whose length
    /// no person fixed is preferred, and none of `others` is taken while there is another one.
    private static func ends(
        of circle: [BudgetWaits.Place], _ graph: BudgetGraph, _ others: Set<Int>
    ) -> (edge: Int, fork: Int, join: Int) {
        let all = circle.compactMap { if case .pushing(let edge) = $0 { edge } else { nil } }
        let helping = all.filter { !others.contains($0) }
        let pushing = helping.isEmpty ? all : helping
        let intoJoins = pushing.filter { graph.nodes[graph.edges[$0].to].isJoin }
        let edge =
            intoJoins.first { !graph.edges[$0].isFixed } ?? pushing.first { !graph.edges[$0].isFixed } ?? intoJoins
            .first
            ?? pushing[0]
        let join = intoJoins.contains(edge) ? edge : intoJoins.first ?? edge
        return (edge, graph.edges[pushing.min() ?? edge].from, graph.edges[join].to)
    }
}
