/// What a graph needs so that it never stands still (`min`), and so that no allocation ever waits (`need`).
///
/// The rules and their proof are in docs/design/001-budgets.md.
public struct BudgetPlan: Sendable {
    /// One pool of frame buffers: its domain is everything that may get one of its buffers.
    public struct Pool: Sendable, Equatable {
        /// The node that allocates.
        public var allocator: Int
        /// For the copies a writer makes when its input is shared; else the allocator's output pool.
        public var isCopyPool: Bool
        /// Nodes that get buffers of this pool, without the allocator of an output pool.
        public var members: [Int]
        public var floor: Int
        /// With fewer the chain can stop for good.
        public var min: Int
        /// With as many an allocation never waits.
        public var need: Int
        /// Buffers that are made: `need`, or what a person wrote.
        public var size: Int
        /// What makes up `need`, for people: a stage or link and its part.
        public var shares: [Share]
    }

    /// A part of a pool's `need`.
    public struct Share: Sendable, Equatable {
        public var what: String
        public var count: Int
    }

    /// A queue the planner made longer so that a join cannot stop.
    public struct Raised: Sendable, Equatable {
        public var edge: Int
        public var from: Int
        public var to: Int
        public var join: Int
        public var fork: Int
    }

    /// Why a graph is refused.
    public enum Fault: Sendable, Equatable {
        /// The queue on `edge` has `capacity` places, and `required` are needed: the other way from `fork` to `join` delays that much.
        case queueTooShort(edge: Int, capacity: Int, required: Int, fork: Int, join: Int)
        /// The size written for this pool is below `min`.
        case poolTooSmall(allocator: Int, isCopyPool: Bool, size: Int, min: Int)
    }

    public var graph: BudgetGraph
    public var pools: [Pool] = []
    public var raised: [Raised] = []
    public var faults: [Fault] = []
    /// Thread of each node.
    public var threads: [Int]

    /// - Parameters:
    ///   - sizes: Buffers a person wrote for the output pool of a node.
    ///   - copySizes: The same for copy pools.
    public init(_ graph: BudgetGraph, sizes: [Int: Int] = [:], copySizes: [Int: Int] = [:], rules: BudgetRules = .standard) {
        self.graph = graph
        threads = graph.threads()
        let delays = PathDelays(graph)
        lengthenQueues(delays, rules)
        let joinPairs = JoinPair.all(in: self.graph, PathDelays(self.graph))
        for node in graph.nodes.indices where graph.nodes[node].allocatesFrames && !graph.outgoing(node).isEmpty {
            pools.append(pool(of: node, isCopyPool: false, joinPairs, rules))
        }
        for node in graph.nodes.indices where graph.nodes[node].modifies && canBeShared(inputOf: node) {
            pools.append(pool(of: node, isCopyPool: true, joinPairs, rules))
        }
        for index in pools.indices {
            let written = (pools[index].isCopyPool ? copySizes : sizes)[pools[index].allocator]
            pools[index].size = written ?? pools[index].need
            if pools[index].size < pools[index].min {
                faults.append(
                    .poolTooSmall(
                        allocator: pools[index].allocator, isCopyPool: pools[index].isCopyPool, size: pools[index].size,
                        min: pools[index].min))
            }
        }
    }

    // MARK: Rule 4: joins

    private mutating func lengthenQueues(_ delays: PathDelays, _ rules: BudgetRules) {
        for pair in JoinPair.all(in: graph, delays) {
            guard let capacity = pair.leastCapacity else { continue }
            let required = pair.lag > 0 ? pair.lag + rules.capacity : 0
            guard capacity < required else { continue }
            let edge = pair.lastEdge
            let present = graph.edges[edge].capacity
            let wanted = present + required - capacity
            if graph.edges[edge].isFixed {
                faults.append(
                    .queueTooShort(
                        edge: edge, capacity: present, required: wanted, fork: pair.fork, join: pair.join))
            } else {
                if let known = raised.firstIndex(where: { $0.edge == edge }) {
                    guard wanted > raised[known].to else { continue }
                    raised[known].to = wanted
                } else {
                    raised.append(Raised(edge: edge, from: present, to: wanted, join: pair.join, fork: pair.fork))
                }
            }
        }
        for raise in raised { graph.edges[raise.edge].capacity = raise.to }
    }

    // MARK: Domains

    /// Nodes that may get a buffer `node` gives, and the edges such buffers travel on.
    private func reach(from node: Int) -> (members: [Int], edges: [Int]) {
        var members: Set<Int> = []
        var edges: Set<Int> = []
        var open = [node]
        while let next = open.popLast() {
            for edge in graph.outgoing(next) where !graph.edges[edge].carriesUnits {
                guard edges.insert(edge).inserted else { continue }
                let consumer = graph.edges[edge].to
                if members.insert(consumer).inserted, graph.nodes[consumer].kind == .passThrough { open.append(consumer) }
            }
        }
        return (members.sorted(), edges.sorted())
    }

    /// Nodes whose buffers `node` may be handed: allocators, and writers that copied.
    private func origins(of node: Int) -> [Int] {
        graph.nodes.indices.filter { origin in
            let gives = graph.nodes[origin].allocatesFrames || (graph.nodes[origin].modifies && origin != node)
            return gives && reach(from: origin).members.contains(node)
        }
    }

    /// True when someone else can have a lease of the buffer a writer is handed: a fork before it, a stage before it that keeps, or a
    /// source whose buffers stay references.
    private func canBeShared(inputOf writer: Int) -> Bool {
        for origin in origins(of: writer) {
            let (members, edges) = reach(from: origin)
            let before = Set(members.filter { $0 != writer && reach(from: $0).members.contains(writer) && graph.nodes[$0].kind == .passThrough })
                .union([origin])
            for node in before {
                if edges.filter({ graph.edges[$0].from == node }).count > 1 { return true }
                if node != origin || graph.nodes[origin].kind == .passThrough {
                    if graph.nodes[node].hold > 0 { return true }
                }
            }
            if graph.nodes[origin].allocatesFrames, graph.nodes[origin].floor > 0 { return true }
        }
        return false
    }

    /// Whether another sharer of a writer's input can keep it, so that waiting for it to let go could last for ever.
    private func otherSharerCanHold(_ writer: Int) -> Bool {
        let after = Set(reach(from: writer).members).union([writer])
        let downstream = descendants(of: writer)
        for origin in origins(of: writer) {
            if graph.nodes[origin].allocatesFrames, graph.nodes[origin].floor > 0 { return true }
            let keepers = Set(reach(from: origin).members).union(graph.nodes[origin].kind == .passThrough ? [origin] : [])
            for other in keepers where !after.contains(other) {
                if graph.nodes[other].hold > 0 { return true }
                // The other way leads to a join that also waits for the writer.
                if !descendants(of: other).union([other]).isDisjoint(with: downstream.filter { graph.nodes[$0].isJoin }) {
                    if !descendants(of: other).contains(writer) { return true }
                    if graph.outgoing(other).count > 1 { return true }
                }
            }
            // A link straight from a node before the writer to a join after it.
            for edge in reach(from: origin).edges where graph.nodes[graph.edges[edge].to].isJoin {
                if downstream.contains(graph.edges[edge].to), !after.contains(graph.edges[edge].from) { return true }
            }
        }
        return false
    }

    private func descendants(of node: Int) -> Set<Int> {
        var found: Set<Int> = []
        var open = [node]
        while let next = open.popLast() {
            for edge in graph.outgoing(next) where found.insert(graph.edges[edge].to).inserted { open.append(graph.edges[edge].to) }
        }
        return found
    }

    // MARK: min and need

    private func pool(of allocator: Int, isCopyPool: Bool, _ pairs: [JoinPair], _ rules: BudgetRules) -> Pool {
        let node = graph.nodes[allocator]
        let (reached, edges) = reach(from: allocator)
        let holders = isCopyPool ? [allocator] + reached : reached
        let floor = isCopyPool ? 0 : node.floor
        // `hold` is per input: a join may keep that many of each input that carries this pool's buffers.
        func hold(_ member: Int) -> Int {
            if isCopyPool && member == allocator { return graph.nodes[member].hold }
            let inputs = edges.filter { graph.edges[$0].to == member }.count
            return graph.nodes[member].hold * Swift.max(inputs, 1)
        }
        let held = holders.reduce(0) { $0 + hold($1) }
        let joins = joinTerms(edges: Set(edges), members: Set(holders).union([allocator]), pairs)
        var minimum = floor + (floor > 0 ? rules.floor : 0) + 1 + rules.base + held + (held > 0 ? rules.hold : 0)
        for join in joins { minimum += join.count + rules.join }
        if isCopyPool {
            minimum = otherSharerCanHold(allocator) ? minimum + rules.copy : 0
        }

        var shares: [Share] = []
        func add(_ what: String, _ count: Int) { if count > 0 { shares.append(Share(what: what, count: count)) } }
        add("\(node.name) floor", floor)
        let touching = Set(([allocator] + reached).map { threads[$0] })
        add("threads", touching.count)
        for member in holders { add("\(graph.nodes[member].name) workers", graph.nodes[member].workers) }
        if !isCopyPool { add("\(node.name) workers", node.workers) }
        for member in reached where graph.nodes[member].isJoin {
            add("\(graph.nodes[member].name) further inputs", edges.filter { graph.edges[$0].to == member }.count - 1)
        }
        for edge in edges { add("queue before \(graph.nodes[graph.edges[edge].to].name)", graph.edges[edge].capacity) }
        for member in holders { add("\(graph.nodes[member].name) hold", hold(member)) }
        let need = shares.reduce(0) { $0 + $1.count } + rules.need
        let sufficient = Swift.max(need, minimum)
        if sufficient > need { add("joins", sufficient - need) }
        return Pool(
            allocator: allocator, isCopyPool: isCopyPool, members: reached, floor: floor, min: minimum, need: sufficient,
            size: sufficient, shares: shares)
    }

    /// For each join that takes this pool's buffers: how many of them wait there for the slower ways, beyond those the slower way
    /// itself holds.
    private func joinTerms(edges: Set<Int>, members: Set<Int>, _ pairs: [JoinPair]) -> [(join: Int, count: Int)] {
        var terms: [Int: Int] = [:]
        for pair in pairs where edges.contains(pair.lastEdge) {
            let heldThere = pair.slowNodes.reduce(0) { $0 + (members.contains($1) ? graph.nodes[$1].hold : 0) }
            let count = pair.lag - heldThere
            if count > 0 { terms[pair.join] = Swift.max(terms[pair.join] ?? 0, count) }
        }
        return terms.sorted { $0.key < $1.key }.map { (join: $0.key, count: $0.value) }
    }
}
