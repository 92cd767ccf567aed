// SPDX-License-Identifier: Apache-2.0

@testable import FrameCore

/// Where in a state's bytes each queue, hand and kept frame of a small chain lies.
///
/// A frame is one byte: its pool in the upper three bits, its time in the lower five; units and bare times have pool 7.
/// 0xFF is nothing.
final class StateLayout {
    static let none: UInt8 = 0xFF
    static let unitPool = 7
    /// In what is said of items that will not come: later than the time, and before the next there is.
    static let afterTime = UInt8(6 << 5)
    static let mostTimes = 30

    final class Queue {
        var first = 0
        var capacity = 0
        /// Up to which time nothing more will come.
        var upTo = 0
        /// A `dropToKeyframe` link waits for the next keyframe.
        var skips = 0
        /// What is offered is dropped: the consumer is taken away, or not there yet (1), or other threads that feed it
        /// too have not opened their links (2).
        var cut = 0

        init(first: Int, capacity: Int) {
            self.first = first
            self.capacity = capacity
        }
    }

    final class Node {
        var phase = 0
        /// Branches that have not got the item yet, a bit each.
        var mask = 0
        /// What is being handed on.
        var out = 0
        /// Answers still to give in this call.
        var answers = 0
        /// Inputs in hand, one for each input.
        var hand = 0
        /// Accepted and not answered, oldest first. Leases only in a stage that hands on the buffers it got.
        var inside = 0
        var insideCount = 0
        /// Frames kept from each input.
        var kept = 0
        /// The last frame of each input, where the runner keeps it.
        var last: [Int?] = []
        /// Output frames that a decoder still refers to.
        var refs = 0
        /// Sources: the time of the next frame.
        var next = 0
        /// ``StateLayout/Condition``, where the graph changes.
        var condition = 0
        /// Frames that an instance which was replaced never lets go: a fault.
        var leaked = 0
        // Looked up once.
        var kind = BudgetGraph.Kind.sink
        var modifies = false
        var hold = 0
        var delay = 0
        var floor = 0
        var inputs: [Int] = []
        var outputs: [Int] = []
        /// The node that calls this one inline.
        var caller: Int?
        var isJoin = false
        var match = JoinMatch.exact
        /// The edge that leads a join.
        var lead: Int?
        /// The stage may drop what it is handed.
        var mayDrop = false
        /// How many times a source may leave out between two items.
        var skips = 0
        /// Takes the items of several inputs in the order of their time.
        var merge: Merge?
        var thread = 0
        var isOnLiveThread = false
        /// Pool of the output, and of copies.
        var pool: Int?
        var copyPool: Int?
    }

    /// What a stage knows that takes the items of several inputs in the order of their time.
    struct Merge {
        var isFilter = false
        var leaves: [EarlyTaking.Leave] = []
        /// How many later items of each further input a filter needs before a picture, beside the one that waits.
        var ahead = 0
        /// Times of the last `ahead` items of each further input.
        var seen: [Int] = []
        /// For each input, the inputs of other merges whose items have the same origin.
        var fellows: [[(node: Int, input: Int)]] = []
    }

    /// What a change has made of a node.
    enum Condition {
        /// Items go by, or end here; a source gives none.
        static let passes: UInt8 = 1
        static let drops: UInt8 = 2
        static let mode: UInt8 = 3
        /// Belongs to a branch that was taken away, and has something left to do; has done it, or was not there yet.
        static let leaves: UInt8 = 4
        static let isGone: UInt8 = 8
        static let presence: UInt8 = 12
        /// The instance answers what it has inside, and then another one takes its place.
        static let drains: UInt8 = 16
    }

    let graph: BudgetGraph
    let pools: [ModelChecker.Pool]
    private(set) var queues: [Queue] = []
    private(set) var nodes: [Node] = []
    let nodesOfThread: [[Int]]
    /// Bytes that hold a lease.
    let leases: UnsafeMutableBufferPointer<Int>
    /// Bytes that hold a frame, a unit or a time.
    let times: UnsafeMutableBufferPointer<Int>
    /// Bytes that say up to which time nothing more will come.
    let announcements: UnsafeMutableBufferPointer<Int>
    private(set) var byteCount = 0
    /// A link may drop, so joins are told of what is missing.
    let canLose: Bool
    /// No step can take another thread's step away: every link waits, each queue and pool has one taker, and nobody
    /// looks whether others hold a frame. Then the order in which threads move does not change where the chain can
    /// stop.
    let isOrderless: Bool
    /// A part can stop while the rest goes on. Where every link waits and all hangs together, it soon stands still as a
    /// whole.
    let canStopInPart: Bool
    /// A join waits for the news of what lies past its leading item's window.
    let hasWindows: Bool
    /// What may be changed; nil for a chain that stays as it is.
    let changes: GraphChanges?
    /// How many changes there may still be.
    private(set) var changesLeft = 0

    var threadCount: Int { nodesOfThread.count }

    /// - Parameters:
    ///   - skips: How many times a source may leave out between two items.
    ///   - ahead: How many later items of each further input a filter needs before a picture.
    ///   - keepsTurns: No item is taken before its turn: a fault.
    init(
        _ graph: BudgetGraph, _ pools: [ModelChecker.Pool], skips: [Int: Int] = [:], ahead: [Int: Int] = [:],
        keepsTurns: Bool = false, changes: GraphChanges? = nil
    ) throws {
        self.changes = changes
        guard pools.count < Self.unitPool else { throw ModelChecker.Failure.unsupported("more than 6 pools") }
        self.graph = graph
        self.pools = pools
        let topology = BudgetTopology(graph)
        nodesOfThread = topology.nodesOfThread
        hasWindows = graph.nodes.contains { $0.isJoin && $0.match == .nearest }
        // Under `exact` a stage that drops matters only beside a link that loses before a stage that delays.
        let losesBeforeDelay = graph.edges.indices.contains { edge in
            let consumer = graph.edges[edge].to
            return topology.canLose(edge)
                && topology.descendants(of: consumer).union([consumer]).contains { graph.nodes[$0].delay > 0 }
        }
        // Stages that delay need more items, and no declaration says how many a stage before them drops.
        let mayDrop = graph.nodes.indices.map { node in
            let behind = topology.descendants(of: node)
            return !topology.incoming[node].isEmpty && graph.nodes[node].kind != .sink
                && graph.nodes[node].delay == 0 && !behind.contains { graph.nodes[$0].delay > 0 }
                && behind.contains {
                    graph.nodes[$0].isJoin && (graph.nodes[$0].match == .nearest || losesBeforeDelay)
                }
        }
        canLose =
            graph.edges.indices.contains { graph.edges[$0].capacity > 0 && !topology.canBlock($0) }
            || mayDrop.contains(true) || (changes != nil && topology.hasJoins)
        canStopInPart = canLose || changes != nil || topology.incoming.filter(\.isEmpty).count > 1
        isOrderless = !canStopInPart && !graph.nodes.contains { $0.modifies }
        let taking = EarlyTaking(topology)
        var leases: [Int] = []
        var times: [Int] = []
        var announcements: [Int] = []
        var end = 0
        func reserve(_ count: Int) -> Int {
            defer { end += count }
            return end
        }
        for edge in graph.edges {
            let queue = Queue(first: reserve(edge.capacity), capacity: edge.capacity)
            leases += queue.first..<end
            times += queue.first..<end
            queue.upTo = reserve(1)
            announcements.append(queue.upTo)
            queue.skips = reserve(1)
            if changes != nil { queue.cut = reserve(1) }
            queues.append(queue)
        }
        for (index, node) in graph.nodes.enumerated() {
            let entry = Node()
            // A source of units has no pool.
            entry.kind = topology.incoming[index].isEmpty ? .source : node.kind
            entry.modifies = node.modifies
            entry.hold = topology.hold(index)
            entry.delay = node.delay
            entry.floor = node.floor
            entry.inputs = topology.incoming[index]
            entry.outputs = topology.outgoing[index]
            entry.isJoin = node.isJoin && entry.inputs.count > 1
            entry.match = node.match
            entry.lead = topology.leadingInput(of: index)
            entry.mayDrop = mayDrop[index]
            entry.skips = skips[index] ?? 0
            entry.thread = topology.thread[index]
            entry.isOnLiveThread = topology.isLiveThread[entry.thread]
            if entry.inputs.count == 1, graph.edges[entry.inputs[0]].capacity == 0 {
                entry.caller = graph.edges[entry.inputs[0]].from
            }
            entry.pool = pools.firstIndex { $0.allocator == index && !$0.isCopyPool }
            entry.copyPool = pools.firstIndex { $0.allocator == index && $0.isCopyPool }
            if node.kind == .source, entry.pool == nil {
                throw ModelChecker.Failure.unsupported("a source without a pool")
            }
            entry.phase = reserve(1)
            entry.mask = reserve(1)
            entry.answers = reserve(1)
            entry.out = reserve(1)
            entry.hand = reserve(max(entry.inputs.count, 1))
            entry.kept = reserve(max(entry.inputs.count, 1) * entry.hold)
            entry.last = entry.inputs.map { graph.edges[$0].keeps > 0 ? reserve(1) : nil }
            entry.refs = reserve(node.floor)
            if changes?.fault == .keepsWhatWasReplaced { entry.leaked = reserve(entry.hold) }
            leases += entry.out..<end
            times += entry.out..<end
            entry.insideCount = entry.kind == .source || entry.kind == .sink ? 0 : node.delay + 1
            entry.inside = reserve(entry.insideCount)
            if node.kind == .passThrough { leases += entry.inside..<end }
            times += entry.inside..<end
            if entry.kind == .source {
                entry.next = reserve(1)
                times.append(entry.next)
            }
            if let inputs = taking.inputs[index] {
                var merge = Merge(isFilter: node.kind != .sink, leaves: inputs.leaves, ahead: ahead[index] ?? 0)
                if keepsTurns { merge.leaves = merge.leaves.map { _ in .ownTurn } }
                if merge.isFilter { merge.seen = entry.inputs.dropFirst().map { _ in reserve(merge.ahead) } }
                if let first = merge.seen.first { times += first..<end }
                merge.fellows = inputs.origins.map { origins in
                    taking.inputs.keys.sorted().filter { $0 != index }.flatMap { other in
                        taking.inputs[other]!.origins.enumerated().filter { !origins.isDisjoint(with: $0.element) }
                            .map { (other, $0.offset) }
                    }
                }
                entry.merge = merge
            }
            if changes != nil { entry.condition = reserve(1) }
            nodes.append(entry)
        }
        if changes != nil { changesLeft = reserve(1) }
        byteCount = (end + 7) / 8 * 8
        self.leases = Self.fixed(leases)
        self.times = Self.fixed(times)
        self.announcements = Self.fixed(announcements)
    }

    deinit {
        leases.deallocate()
        times.deallocate()
        announcements.deallocate()
    }

    private static func fixed(_ offsets: [Int]) -> UnsafeMutableBufferPointer<Int> {
        let buffer = UnsafeMutableBufferPointer<Int>.allocate(capacity: offsets.count)
        _ = buffer.initialize(from: offsets)
        return buffer
    }

    /// Nothing has happened yet.
    func initial() -> UnsafeMutablePointer<UInt8> {
        let state = UnsafeMutablePointer<UInt8>.allocate(capacity: byteCount)
        state.initialize(repeating: 0, count: byteCount)
        for offset in Array(times) + Array(announcements) { state[offset] = Self.none }
        for node in nodes where node.kind == .source { state[node.next] = UInt8(Self.unitPool << 5) }
        guard let changes else { return state }
        state[changesLeft] = UInt8(changes.most)
        for root in changes.absent {
            let branch = changes.branch(of: root)
            for node in branch { state[nodes[node].condition] = Condition.isGone }
            for edge in changes.entrances(of: root) { state[queues[edge].cut] = 1 }
        }
        return state
    }

    // MARK: For people

    func threadName(_ thread: Int) -> String { graph.nodes[nodesOfThread[thread][0]].name }

    func describe(_ state: UnsafeMutablePointer<UInt8>) -> String {
        func text(_ offset: Int) -> String? {
            let byte = state[offset]
            guard byte != Self.none else { return nil }
            let pool = Int(byte >> 5)
            return pool == Self.unitPool ? "\(byte & 31)" : "\(byte & 31)\(String(repeating: "'", count: pool))"
        }
        func list(_ first: Int, _ count: Int) -> String {
            (first..<first + count).compactMap(text).joined(separator: " ")
        }
        var parts: [String] = []
        for (node, entry) in nodes.enumerated() {
            for edge in entry.inputs where queues[edge].capacity > 0 {
                parts.append(
                    "\(graph.nodes[graph.edges[edge].from].name)→[\(list(queues[edge].first, queues[edge].capacity))]")
            }
            let inputs = max(entry.inputs.count, 1)
            var about = ["\(StateMoves.Phase(rawValue: state[entry.phase])!)"]
            if changes != nil, state[entry.condition] != 0 { about.append("condition \(state[entry.condition])") }
            for (name, first, count) in [
                ("hand", entry.hand, inputs), ("out", entry.out, 1), ("inside", entry.inside, entry.insideCount),
                ("kept", entry.kept, inputs * entry.hold), ("refers to", entry.refs, entry.floor),
                ("seen", entry.merge?.seen.first ?? 0, (entry.merge?.ahead ?? 0) * (entry.merge?.seen.count ?? 0)),
            ] {
                let items = list(first, count)
                if !items.isEmpty { about.append("\(name) \(items)") }
            }
            parts.append("\(graph.nodes[node].name)(\(about.joined(separator: ", ")))")
        }
        return parts.joined(separator: " ")
    }
}
