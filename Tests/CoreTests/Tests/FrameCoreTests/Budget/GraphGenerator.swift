// SPDX-License-Identifier: Apache-2.0

@testable import FrameCore

/// Makes random valid chains: the same seed gives the same chain.
struct GraphGenerator {
    /// How large and how rich the chains are.
    struct Limits {
        var nodes = 3...14
        /// Of 100 nodes that take an item, how many take several at once, and how many share their producer with
        /// another where they need not.
        var joins = 14
        var forks = 30
        var capacity = 3
        var hold = 2
        var delay = 3
        var floor = 1
        /// Of 100 chains, how many have a second source, where there is room.
        var secondSources = 12
        /// Of 100 sources, how many are live.
        var live = 25
        /// Of 100 links that may drop, how many do.
        var drops = 30
        /// Of 100 links, how many have a capacity that the planner must leave alone.
        var fixed = 25
        /// Of 100 joins, how many do not want equal times, and of those how many take the newest.
        var matching = 60
        var newest = 30

        static let large = Limits()
        /// For the model checker: at most 5 stages.
        static let small = Limits(
            nodes: 2...5, joins: 30, forks: 40, capacity: 2, hold: 1, delay: 2, floor: 1, secondSources: 10, drops: 25)
    }

    /// A chain of up to 14 nodes.
    static func make(seed: UInt64) -> BudgetGraph { make(seed: seed, .large) }

    static func make(seed: UInt64, _ limits: Limits) -> BudgetGraph {
        var generator = GraphGenerator(limits, random: SplitMix(state: seed))
        var graph = generator.make()
        // Dice of their own, so that a seed's chain is otherwise what it was.
        var dice = SplitMix(state: seed ^ 0xA5A5)
        for node in graph.nodes.indices where graph.nodes[node].isJoin && dice.hits(limits.matching) {
            match(node, in: &graph, limits, &dice)
        }
        return graph
    }

    private static func match(_ node: Int, in graph: inout BudgetGraph, _ limits: Limits, _ dice: inout SplitMix) {
        let inputs = graph.incoming(node)
        // Access units are neither left out nor given again.
        let takesUnits = inputs.contains { graph.edges[$0].carriesUnits }
        graph.nodes[node].match = !takesUnits && dice.hits(limits.newest) ? .newest : .nearest
        graph.nodes[node].lead = dice.next(in: 0...inputs.count - 1)
        let holds = !takesUnits && dice.hits(30)
        for (input, edge) in inputs.enumerated() where input != graph.nodes[node].lead {
            if graph.nodes[node].match == .newest {
                (graph.edges[edge].capacity, graph.edges[edge].policy) = (1, .latest)
            }
            if holds || graph.nodes[node].match == .newest { graph.edges[edge].keeps = 1 }
        }
    }

    private let limits: Limits
    private var random: SplitMix
    private var graph = BudgetGraph(nodes: [], edges: [])
    /// Producers of each node.
    private var producers: [[Int]] = []

    private init(_ limits: Limits, random: SplitMix) {
        self.limits = limits
        self.random = random
    }

    private mutating func make() -> BudgetGraph {
        let count = random.next(in: limits.nodes)
        let sources = count >= 4 && random.hits(limits.secondSources) ? 2 : 1
        connect(count, sources)
        for node in producers.indices { addNode(node) }
        for node in producers.indices { for producer in producers[node] { addEdge(producer, node) } }
        return graph
    }

    // MARK: Shape

    private mutating func connect(_ count: Int, _ sources: Int) {
        producers = [[Int]](repeating: [], count: sources)
        var loose = Array(0..<sources)
        /// Nodes that may give to a further one: sinks have not been told apart yet, so any.
        for node in sources..<count {
            var chosen: [Int] = []
            let wanted = node > 1 && random.hits(limits.joins) ? random.next(in: 2...3) : 1
            while chosen.count < min(wanted, node) {
                let producer =
                    !loose.isEmpty && !random.hits(limits.forks)
                    ? loose[random.next(in: 0...loose.count - 1)] : random.next(in: 0...node - 1)
                if !chosen.contains(producer) { chosen.append(producer) }
            }
            loose.removeAll { chosen.contains($0) }
            loose.append(node)
            producers.append(chosen.sorted())
        }
        // A source gives to somebody.
        for source in 0..<sources where loose.contains(source) { producers.append([source]) }
    }

    // MARK: Stages

    private mutating func addNode(_ node: Int) {
        let isJoin = producers[node].count > 1
        let isLeaf = !producers.contains { $0.contains(node) }
        let takesUnits = producers[node].map { carriesUnits($0) }
        let kind: BudgetGraph.Kind =
            if producers[node].isEmpty {
                .source
            } else if isLeaf {
                .sink
            } else if takesUnits.contains(true) {
                takesUnits.contains(false) || random.hits(70) ? .allocator : .encoder
            } else {
                switch random.next(in: 0...99) {
                case ..<50: .passThrough
                case ..<75: .allocator
                default: .encoder
                }
            }
        var made = BudgetGraph.Node("\(kind)\(node)", kind)
        made.isJoin = isJoin
        switch kind {
        case .source:
            made.isLive = random.hits(limits.live)
            if random.hits(20) { made.floor = random.next(in: 0...limits.floor) }
        case .sink:
            if !takesUnits.contains(true), random.hits(40) { made.hold = random.next(in: 0...limits.hold) }
        default:
            if random.hits(40) { made.hold = random.next(in: 0...limits.hold) }
            if !isJoin, random.hits(35) { made.delay = random.next(in: 0...limits.delay) }
            if kind == .passThrough {
                if made.delay > 0 { made.hold = max(made.hold, made.delay) }
                made.modifies = !isJoin && random.hits(35)
            }
            if kind == .allocator, random.hits(10) { made.floor = random.next(in: 0...limits.floor) }
        }
        graph.nodes.append(made)
    }

    private func carriesUnits(_ node: Int) -> Bool { graph.nodes[node].kind == .encoder }

    // MARK: Links

    private mutating func addEdge(_ from: Int, _ to: Int) {
        let isFork = producers.reduce(0) { $0 + ($1.contains(from) ? 1 : 0) } > 1
        let isQueued = isFork || producers[to].count > 1
        let units = carriesUnits(from)
        var capacity = random.next(in: (isQueued ? 1 : 0)...limits.capacity)
        var policy = DropPolicy.wait
        if capacity > 0, random.hits(limits.drops) {
            let policies: [DropPolicy] = units ? [.dropToKeyframe] : [.dropOldest, .dropNewest, .latest]
            policy = policies[random.next(in: 0...policies.count - 1)]
            if policy == .latest { capacity = 1 }
        }
        graph.edges.append(
            BudgetGraph.Edge(
                from, to, capacity: capacity, policy: policy, isFixed: random.hits(limits.fixed), carriesUnits: units))
    }
}

/// Small, fast, the same everywhere.
///
/// - SeeAlso: Steele, Lea, Flood: Fast splittable pseudorandom number generators (OOPSLA 2014).
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var value = state
        value = (value ^ value >> 30) &* 0xBF58_476D_1CE4_E5B9
        value = (value ^ value >> 27) &* 0x94D0_49BB_1331_11EB
        return value ^ value >> 31
    }

    mutating func next(in range: ClosedRange<Int>) -> Int { range.lowerBound + Int(next() % UInt64(range.count)) }

    /// True in `percent` of 100 cases.
    mutating func hits(_ percent: Int) -> Bool { next() % 100 < UInt64(percent) }
}
