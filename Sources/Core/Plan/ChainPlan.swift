/// A checked chain, ready to be made: formats on every link, threads, pools. What `framehost check` prints.
public struct ChainPlan: Sendable {
    public struct Stage: Sendable {
        public var id: String
        public var use: String
        public var kind: StageKind
        public var thread: Int
        /// What it gives; nil for a sink.
        public var output: MediaFormat?
        /// Inserted by the planner.
        public var isInserted: Bool
        /// Copies what a branch gets into buffers of the branch's own, as its link asks for.
        public var isTap: Bool
        public var demand: StageDemand
    }

    public struct Link: Sendable {
        public var from: Int
        public var to: Int
        public var settings: LinkSettings
        public var format: MediaFormat
    }

    /// Memory of access units, sized by `SlabSizes`.
    public struct SlabPlan: Sendable {
        public var stage: Int
        public var byteCount: Int
        public var unitCount: Int
    }

    /// In topological order.
    public var stages: [Stage]
    public var links: [Link]
    /// How joins bring their inputs together, by index of the stage.
    public var joins: [Int: JoinRule]
    public var budget: BudgetPlan
    public var slabs: [SlabPlan]
    /// Time that stages of a live chain hold items back while its queues are empty, in seconds, where every rate on the
    /// way is known; else nil. What people call its latency: full queues would add up to ``worstLatency``, and the
    /// stages' own time comes on top.
    public var usualLatency: Double?
    /// Most time a live chain's queues and delays can add, in seconds, where every rate on the way is known; else nil.
    public var worstLatency: Double?
    /// Queues that nobody asked for, with the reason.
    public var automaticQueues: [AutomaticQueues.Queue] = []
    /// What stages do with something poorer than was asked for, a sentence each.
    public var warnings: [String]
    /// Sentences a reader of the plan should see: raised queues, copies, what may wait or be lost, what stages chose.
    public var notes: [String]
    /// Format of each pool of `budget`.
    public var poolFormats: [VideoFormat]
    /// Bytes of one buffer of each pool, with all padding.
    public var poolBufferBytes: [Int]

    /// Stages, links and budget; the rest is still to be said.
    init(_ stages: [PlannedStage], _ links: [Link], _ joins: [Int: JoinRule], _ budget: BudgetPlan) {
        self.stages = stages.enumerated().map { index, stage in
            Stage(
                id: stage.id, use: stage.request.type.info.id, kind: stage.request.type.kind,
                thread: budget.threads[index], output: stage.output, isInserted: stage.isInserted,
                isTap: stage.isTap, demand: stage.demand)
        }
        self.links = links
        self.joins = joins
        self.budget = budget
        slabs = []
        warnings = []
        notes = []
        poolFormats = []
        poolBufferBytes = []
    }

    /// The id of a stage as a person knows it: of a converter that was put in, that of the stage before.
    func nameInFile(_ stage: Int) -> String {
        var stage = stage
        while stages[stage].isInserted, let before = links.first(where: { $0.to == stage })?.from { stage = before }
        return stages[stage].id
    }
}
