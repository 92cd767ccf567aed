// SPDX-License-Identifier: Apache-2.0

@testable import FrameCore

/// A chain of pictures with sound and motion in it: sources of both, filters that take pictures and motion, sinks that
/// take several kinds.
struct KindsGraph {
    /// When the items of a source of sound or motion come, in microseconds.
    struct Times: Equatable {
        var first = 0
        var period = 1000
        var count = 60
    }

    /// What a node is, where it is not one of ``GraphGenerator``'s.
    enum Part {
        case motionSource(Times)
        case soundSource(Times)
        case motionRelay
        case soundEncoder
        /// Makes one motion of several.
        case mixer
        /// How far it looks ahead, in microseconds, and when the items of its first further input come; nil where that is
        /// not known.
        case filter(ahead: Int, Times?)
        case recorder
    }

    var graph: BudgetGraph
    var stages: [Int: Part] = [:]

    var filters: [Int] { stages.keys.filter { if case .filter = stages[$0]! { true } else { false } }.sorted() }
    var recorders: [Int] { stages.keys.filter { if case .recorder = stages[$0]! { true } else { false } }.sorted() }
    var isLive: Bool { graph.nodes.contains(where: \.isLive) }
    /// Nothing may be lost: every link waits, and no stage leaves anything out.
    var losesNothing: Bool {
        !isLive && graph.edges.allSatisfy { $0.policy == .wait } && !graph.nodes.contains(where: \.isJoin)
    }
}

/// Puts sound and motion into chains of ``GraphGenerator``: the same seed gives the same chain.
struct KindsGenerator {
    /// How much is put in.
    struct Limits {
        var pictures: GraphGenerator.Limits
        var companions = 1...3
        var filters = 0...2
        var recorders = 0...2
        var capacity = 3
        var delay = 3
        /// Of 100 sources of sound or motion, how many have a stage of their own behind them.
        var relays = 35
        /// Of 100 chains with several sources of motion, how many mix two of them.
        var mixers = 0

        /// Nothing is lost.
        static let waiting = Limits(pictures: .init(nodes: 2...9, capacity: 3, live: 0, drops: 0), mixers: 50)
        /// Live sources and links that drop; no joins, of which ``RandomChainTests`` has enough.
        static let dropping = Limits(
            pictures: .init(nodes: 2...9, joins: 0, secondSources: 0, live: 70, drops: 30))
        /// For the model checker.
        static let small = Limits(
            pictures: .init(
                nodes: 2...2, joins: 40, forks: 30, capacity: 1, hold: 1, delay: 1, floor: 0, secondSources: 0, live: 0,
                drops: 0),
            companions: 1...1, filters: 0...2, recorders: 0...1, capacity: 1, delay: 1, relays: 10)
    }

    private let limits: Limits
    private var dice: SplitMix
    private var made: KindsGraph
    private var companions: [Int] = []
    private var times: [Int: KindsGraph.Times] = [:]

    static func make(seed: UInt64, _ limits: Limits) -> KindsGraph {
        var generator = KindsGenerator(limits, seed)
        generator.addCompanions()
        generator.addMixer()
        for _ in 0..<generator.dice.next(in: limits.filters) { generator.addFilter() }
        for _ in 0..<generator.dice.next(in: limits.recorders) { generator.addRecorder() }
        generator.endCompanions()
        return generator.sorted()
    }

    private init(_ limits: Limits, _ seed: UInt64) {
        self.limits = limits
        made = KindsGraph(graph: GraphGenerator.make(seed: seed, limits.pictures))
        // A writer of the model delays; a filter answers at once.
        for node in made.graph.nodes.indices where made.graph.nodes[node].modifies { made.graph.nodes[node].delay = 0 }
        dice = SplitMix(state: seed ^ 0x50_1D)
    }

    // MARK: Stages

    private mutating func add(
        _ kind: BudgetGraph.Kind, _ stage: KindsGraph.Part? = nil, delay: Int = 0, hold: Int = 0
    ) -> Int {
        var node = BudgetGraph.Node("\(stage.map { "\($0)".prefix { $0 != "(" } } ?? "\(kind)")", kind)
        node.delay = delay
        node.hold = hold
        made.graph.nodes.append(node)
        made.stages[made.graph.nodes.count - 1] = stage
        return made.graph.nodes.count - 1
    }

    private mutating func connect(_ from: Int, _ to: Int, units: Bool) {
        var policy = DropPolicy.wait
        if dice.hits(limits.pictures.drops) {
            let some: [DropPolicy] = [.dropOldest, .dropNewest]
            policy = units && !companions.contains(from) ? .dropToKeyframe : some[dice.next(in: 0...1)]
        }
        made.graph.edges.append(
            BudgetGraph.Edge(
                from, to, capacity: dice.next(in: 1...limits.capacity), policy: policy,
                isFixed: dice.hits(limits.pictures.fixed), carriesUnits: units))
    }

    /// Each begins and ends when it likes: before the first picture, after the last, or never at all.
    private mutating func addCompanions() {
        for _ in 0..<dice.next(in: limits.companions) {
            let periods = [250, 1000, 4000, 10_000]
            var times = KindsGraph.Times(period: periods[dice.next(in: 0...3)])
            times.count = dice.hits(10) ? 0 : min(240, (60_000 + dice.next(in: -40_000...40_000)) / times.period)
            times.first = dice.hits(30) ? dice.next(in: -20_000...30_000) : 0
            let isMotion = dice.hits(60)
            let source = add(.encoder, isMotion ? .motionSource(times) : .soundSource(times))
            made.graph.nodes[source].isLive = dice.hits(limits.pictures.live / 2)
            self.times[source] = times
            companions.append(source)
            guard dice.hits(limits.relays) else { continue }
            let relay = add(
                .encoder, isMotion ? .motionRelay : .soundEncoder, delay: isMotion ? dice.next(in: 0...limits.delay) : 0
            )
            connect(source, relay, units: true)
            companions.append(relay)
            if isMotion { self.times[relay] = times }
        }
    }

    private mutating func addMixer() {
        let motions = companions.filter {
            switch made.stages[$0] {
            case .motionSource, .motionRelay: true
            default: false
            }
        }
        guard limits.mixers > 0, motions.count > 1, dice.hits(limits.mixers) else { return }
        let mixer = add(.encoder, .mixer)
        for motion in shuffled(motions).prefix(2) { connect(motion, mixer, units: true) }
        companions.append(mixer)
    }

    private func isSoundUnits(_ node: Int) -> Bool {
        if case .soundEncoder = made.stages[node] { true } else { false }
    }

    /// Puts a filter on a link of pictures.
    private mutating func addFilter() {
        let links = made.graph.edges.indices.filter { !made.graph.edges[$0].carriesUnits }
        let taken = shuffled(companions.filter { !isSoundUnits($0) }).prefix(dice.hits(80) ? 1 : 2)
        guard !links.isEmpty, let first = taken.first else { return }
        let link = links[dice.next(in: 0...links.count - 1)]
        let ahead = [0, 0, 1000, 3000, 10_000][dice.next(in: 0...4)]
        let filter = add(.passThrough, .filter(ahead: ahead, times[first]), hold: dice.hits(30) ? 1 : 0)
        made.graph.nodes[filter].modifies = dice.hits(20)
        connect(made.graph.edges[link].from, filter, units: false)
        made.graph.edges[link].from = filter
        for companion in taken { connect(companion, filter, units: true) }
    }

    /// Adds a sink of encoded pictures and of what goes with them, often with an encoder of its own.
    private mutating func addRecorder() {
        var encoders = made.graph.nodes.indices.filter { node in
            made.graph.edges.contains { $0.from == node && $0.carriesUnits } && !companions.contains(node)
        }
        if encoders.isEmpty || dice.hits(50) {
            let givers = made.graph.nodes.indices.filter {
                let node = made.graph.nodes[$0]
                return node.kind == .source || node.kind == .passThrough || node.kind == .allocator
            }
            let encoder = add(.encoder, delay: dice.hits(50) ? dice.next(in: 0...limits.delay) : 0)
            connect(givers[dice.next(in: 0...givers.count - 1)], encoder, units: false)
            encoders = [encoder] + (dice.hits(80) ? [] : shuffled(encoders))
        } else {
            encoders = shuffled(encoders)
        }
        let taken =
            shuffled(companions).prefix(dice.hits(70) ? 1 : 2) + encoders.prefix(dice.hits(85) ? 1 : 2)
        let recorder = add(.sink, .recorder)
        for producer in shuffled(Array(taken)) { connect(producer, recorder, units: true) }
    }

    private mutating func endCompanions() {
        for companion in companions where !made.graph.edges.contains(where: { $0.from == companion }) {
            connect(companion, add(.sink), units: true)
        }
        // What became a fork or takes several inputs has queues.
        for edge in made.graph.edges.indices where made.graph.edges[edge].capacity == 0 {
            let ends = made.graph.edges[edge]
            let isFork = made.graph.outgoing(ends.from).count > 1
            if isFork || made.graph.incoming(ends.to).count > 1 { made.graph.edges[edge].capacity = 1 }
        }
    }

    private mutating func shuffled(_ nodes: [Int]) -> [Int] {
        var nodes = nodes
        nodes.shuffle(using: &dice)
        return nodes
    }

    /// The same chain with every edge from a lower node to a higher one.
    private func sorted() -> KindsGraph {
        var order: [Int] = []
        var open = made.graph.nodes.indices.map { made.graph.incoming($0).count }
        while order.count < made.graph.nodes.count {
            let next = open.firstIndex(of: 0)!
            open[next] = -1
            order.append(next)
            for edge in made.graph.outgoing(next) { open[made.graph.edges[edge].to] -= 1 }
        }
        let places = Dictionary(uniqueKeysWithValues: order.enumerated().map { ($1, $0) })
        var result = KindsGraph(graph: BudgetGraph(nodes: order.map { made.graph.nodes[$0] }, edges: made.graph.edges))
        for edge in result.graph.edges.indices {
            result.graph.edges[edge].from = places[made.graph.edges[edge].from]!
            result.graph.edges[edge].to = places[made.graph.edges[edge].to]!
        }
        for (node, stage) in made.stages { result.stages[places[node]!] = stage }
        return result
    }
}
