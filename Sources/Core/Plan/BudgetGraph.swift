// SPDX-License-Identifier: Apache-2.0

/// A chain as budgets see it: which stages allocate, hold and wait. ``BudgetPlan`` computes from it.
///
/// The nodes are in topological order: an edge's `from` is less than its `to`.
public struct BudgetGraph: Sendable, Equatable {
    /// How a node treats buffers.
    public enum Kind: String, Sendable, CaseIterable {
        /// A node that allocates buffers and takes none.
        case source
        /// A node that hands on the buffers that it takes.
        case passThrough
        /// A node that takes buffers and gives others, of a pool of its own.
        case allocator
        /// A node that takes buffers, copies inside its call, and gives access units, which use no frame buffers.
        case encoder
        /// A node that takes buffers and hands nothing on.
        case sink
    }

    /// A stage.
    public struct Node: Sendable, Equatable {
        /// The stage's id.
        public var name: String
        /// How it treats buffers.
        public var kind: Kind
        /// Whether it writes the pixels of its input.
        public var modifies = false
        /// How many buffers of each input it still leases after a call, at most.
        public var hold = 0
        /// How many items it has accepted and not yet answered, at most.
        public var delay = 0
        /// How many further items it takes before it answers, which it neither keeps nor counts as delayed: a stage that
        /// lowers the rate drops most of them.
        var lag = 0
        /// How many threads of its own have a frame in hand.
        public var workers = 0
        /// How many buffers of its own pool are never free.
        public var floor = 0
        /// Whether it takes an item from every input at once.
        public var isJoin = false
        /// For a join, which items belong together.
        public var match = JoinMatch.exact
        /// For a join, the input that leads, by its position among the inputs.
        public var lead = 0
        /// Whether it is a join by the clock, which waits for no input.
        public var isClocked = false
        /// Whether it is a source that never waits.
        public var isLive = false
        /// Whether it is an allocator that runs on its producer's thread, gets each item before all other stages behind
        /// the producer, and lets go of it before they get it.
        public var isTap = false

        /// Makes a node.
        public init(_ name: String, _ kind: Kind) {
            self.name = name
            self.kind = kind
        }

        /// Whether a pool of frames feeds its output.
        var allocatesFrames: Bool { kind == .source || kind == .allocator }
    }

    /// A link.
    public struct Edge: Sendable, Equatable {
        /// Index of the node that gives.
        public var from: Int
        /// Index of the node that takes.
        public var to: Int
        /// Places in the queue. With 0, ``to`` runs on the thread of ``from``.
        public var capacity: Int
        /// What happens to an item that finds the queue full.
        public var policy: DropPolicy
        /// Whether a person wrote the capacity, so that the planner does not raise it.
        public var isFixed: Bool
        /// Whether the link carries access units rather than frames.
        public var carriesUnits: Bool
        /// How many frames of a join's input the runner keeps beside the stage's `hold`: the last one, to give it
        /// again.
        public var keeps: Int

        /// Makes an edge.
        public init(
            _ from: Int, _ to: Int, capacity: Int, policy: DropPolicy = .wait, isFixed: Bool = false,
            carriesUnits: Bool = false, keeps: Int = 0
        ) {
            self.from = from
            self.to = to
            self.capacity = capacity
            self.policy = policy
            self.isFixed = isFixed
            self.carriesUnits = carriesUnits
            self.keeps = keeps
        }
    }

    /// The stages in topological order.
    public var nodes: [Node]
    /// The links.
    public var edges: [Edge]

    /// Makes a graph.
    public init(nodes: [Node], edges: [Edge]) {
        self.nodes = nodes
        self.edges = edges
    }

    /// Edges that leave `node`, by index, in the order of the file.
    func outgoing(_ node: Int) -> [Int] { edges.indices.filter { edges[$0].from == node } }
    /// Edges that enter `node`, by index, in the order of its inputs.
    func incoming(_ node: Int) -> [Int] { edges.indices.filter { edges[$0].to == node } }

    /// The number of each node's thread, from 0. Two nodes with an inline edge between them share a thread.
    public func threads() -> [Int] {
        var callers = [Int?](repeating: nil, count: nodes.count)
        for edge in edges where edge.capacity == 0 { callers[edge.to] = edge.from }
        var thread = [Int](repeating: -1, count: nodes.count)
        var count = 0
        for node in nodes.indices {
            if let caller = callers[node] {
                thread[node] = thread[caller]
            } else {
                thread[node] = count
                count += 1
            }
        }
        return thread
    }
}

/// The terms of the rules, so that a test can lower each by one and see that this is caught. All other callers use
/// ``standard``.
public struct BudgetRules: Sendable {
    /// Added to the constant 1 of `min`.
    public var base = 0
    /// Added to `floor`.
    public var floor = 0
    /// Added to the Σ hold of `min`, where it is above 0.
    public var hold = 0
    /// Added to the capacity that rule 4 asks for, where it is above 0.
    public var capacity = 0
    /// Added to `need`.
    public var need = 0
    /// Below 0: a link that drops before a stage that delays counts as a link that does not drop.
    public var gaps = 0
    /// Below 0: a queue that drops its newest items counts as one that drops its oldest.
    public var newest = 0
    /// Below 0: a join that waits past the window of its leading item counts as a join that does not.
    public var window = 0

    /// The rules as they are.
    public init() {}
    /// The rules as they are.
    public static let standard = BudgetRules()
}
