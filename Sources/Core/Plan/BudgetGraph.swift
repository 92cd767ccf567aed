/// A chain as budgets see it: who allocates, who holds, who waits. Pure data; ``BudgetPlan`` computes from it.
///
/// Nodes are in topological order: an edge's `from` is below its `to`.
public struct BudgetGraph: Sendable, Equatable {
    /// How a node treats buffers.
    public enum Kind: String, Sendable, CaseIterable {
        /// Allocates and never takes.
        case source
        /// The same buffers go on.
        case passThrough
        /// Takes buffers and gives others, of its own pool.
        case allocator
        /// Takes buffers, copies inside its call and gives access units, which are no frame buffers.
        case encoder
        /// Takes and has no output.
        case sink
    }

    public struct Node: Sendable, Equatable {
        public var name: String
        public var kind: Kind
        /// Writes its input's pixels.
        public var modifies = false
        /// Input buffers still leased after a call, at most, for each input.
        public var hold = 0
        /// Items accepted and not yet answered, at most.
        public var delay = 0
        /// Threads of its own with a frame in hand.
        public var workers = 0
        /// Buffers of its own pool that are never free.
        public var floor = 0
        /// Takes an item from every input at once.
        public var isJoin = false
        /// A join: which items belong together, and which of its inputs leads (by position among them).
        public var match = JoinMatch.exact
        public var lead = 0
        /// A join that gives by the clock, and waits for no input.
        public var isClocked = false
        /// A source that never waits.
        public var isLive = false
        /// An allocator that runs on its producer's thread, gets each item before anybody else behind that, and lets go
        /// of it before they do.
        public var isTap = false

        public init(_ name: String, _ kind: Kind) {
            self.name = name
            self.kind = kind
        }

        /// A pool of frames feeds its output.
        var allocatesFrames: Bool { kind == .source || kind == .allocator }
    }

    public struct Edge: Sendable, Equatable {
        public var from: Int
        public var to: Int
        /// 0: `to` runs on the thread of `from`.
        public var capacity: Int
        public var policy: DropPolicy
        /// The capacity was written down by a person, so the planner does not raise it.
        public var isFixed: Bool
        /// Carries access units rather than frames.
        public var carriesUnits: Bool
        /// Frames that the runner keeps of a join's input beside the stage's `hold`: its last one, to give it again.
        public var keeps: Int

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

    public var nodes: [Node]
    public var edges: [Edge]

    public init(nodes: [Node], edges: [Edge]) {
        self.nodes = nodes
        self.edges = edges
    }

    /// Edges that leave `node`, by index, in the order of the file.
    func outgoing(_ node: Int) -> [Int] { edges.indices.filter { edges[$0].from == node } }
    /// Edges that enter `node`, by index, in the order of its inputs.
    func incoming(_ node: Int) -> [Int] { edges.indices.filter { edges[$0].to == node } }

    /// For each node the thread it runs on, numbered from 0: an inline edge joins two nodes' threads.
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

/// The terms of the rules, so that the tests can lower each by one and see it caught. Everyone else uses `.standard`.
public struct BudgetRules: Sendable {
    /// Added to the constant 1 of `min`.
    public var base = 0
    /// Added to `floor`.
    public var floor = 0
    /// Added to the Σ hold of `min`, where it is above 0.
    public var hold = 0
    /// Added to each join's term in `min`, where it is above 0.
    public var join = 0
    /// Added to `min` of a copy pool, where it is above 0.
    public var copy = 0
    /// Added to the capacity that rule 4 asks for, where it is above 0.
    public var capacity = 0
    /// Added to `need`.
    public var need = 0
    /// Below 0: a link that drops before a stage that delays is taken for one that does not.
    public var gaps = 0
    /// Below 0: a join that waits past the window of its leading item is taken for one that does not.
    public var window = 0
    /// Below 0: the last items that joins keep are not counted.
    public var keeps = 0
    /// Below 0: a writer waits for the others although they can wait for it.
    public var sharers = 0

    public init() {}
    public static let standard = BudgetRules()
}
