// SPDX-License-Identifier: Apache-2.0

/// A checked chain, ready to be made: the formats of all links, threads and pools. `framehost check` prints it.
public struct ChainPlan: Sendable {
    /// A stage of the plan.
    public struct Stage: Sendable {
        /// The stage's id in the chain file.
        public var id: String
        /// The id of its kind: what the chain file says as `use`.
        public var use: String
        /// The protocol that it adopts.
        public var kind: StageKind
        /// The number of the thread that it runs on.
        public var thread: Int
        /// The format of its output; nil for a sink.
        public var output: MediaFormat?
        /// Whether the planner inserted it.
        public var isInserted: Bool
        /// Whether it copies what a branch gets into buffers of the branch's own, as the branch's link asks for.
        public var isTap: Bool
        /// What it asks of the plan.
        public var demand: StageDemand
        /// The privacy stage that hides something in the pictures that the stage gives, or gets as a sink, and has not
        /// covered it there; nil where nothing is hidden, or all of it is covered.
        public var hiddenBy: String?
    }

    /// A link of the plan.
    public struct Link: Sendable {
        /// Index of the stage that gives.
        public var from: Int
        /// Index of the stage that takes.
        public var to: Int
        /// Queue and drop policy.
        public var settings: LinkSettings
        /// The format of what the link carries.
        public var format: MediaFormat
    }

    /// Memory for the access units of one stage, sized by `SlabSizes`.
    public struct SlabPlan: Sendable {
        /// Index of the stage.
        public var stage: Int
        /// The memory in bytes.
        public var byteCount: Int
        /// How many units it has room for.
        public var unitCount: Int
    }

    /// The stages in topological order.
    public var stages: [Stage]
    /// The links.
    public var links: [Link]
    /// How joins bring their inputs together, by index of the stage.
    public var joins: [Int: JoinRule]
    /// The sizes of all pools.
    public var budget: BudgetPlan
    /// The memory for access units.
    public var slabs: [SlabPlan]
    /// The latency of a live chain in seconds: how long its stages hold items back while its queues are empty.
    ///
    /// Full queues add up to ``worstLatency``, and the time that stages work comes on top. Nil where a rate on the way
    /// is unknown.
    public var usualLatency: Double?
    /// The most that queues and delays of a live chain can add, in seconds; nil where a rate on the way is unknown.
    public var worstLatency: Double?
    /// Queues that the planner added, with the reason.
    public var automaticQueues: [AutomaticQueues.Queue] = []
    /// The part of the timeline that is made, and what is read beside it; nil means the whole timeline.
    public var part: TimelinePart?
    /// Where stages make do with something poorer than was asked for, a sentence each.
    public var warnings: [String]
    /// Sentences that a reader of the plan should see: longer queues, copies, what may wait or be lost, what stages
    /// chose.
    public var notes: [String]
    /// The format of each pool of ``budget``.
    public var poolFormats: [VideoFormat]
    /// The size of one buffer of each pool in bytes, with all padding.
    public var poolBufferBytes: [Int]

    /// The memory of all pools and slabs, and what stages and services say they use themselves, in bytes. For a change, only
    /// what is needed beside what runs.
    public var memoryBytes = 0

    /// Sets stages, links and budget. The planner sets the rest afterwards.
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

    /// Whether two inputs of a stage lead back to one source.
    func inputsHaveOneOrigin(_ stage: Int) -> Bool {
        var seen: Set<Int> = []
        for link in links where link.to == stage {
            var open = [link.from]
            var origins: Set<Int> = []
            while let next = open.popLast() {
                let before = links.filter { $0.to == next }.map(\.from)
                if before.isEmpty { origins.insert(next) }
                open += before
            }
            if !seen.isDisjoint(with: origins) { return true }
            seen.formUnion(origins)
        }
        return false
    }

    /// The id that the user knows: for an inserted converter, the id of the stage before it.
    func nameInFile(_ stage: Int) -> String {
        var stage = stage
        while stages[stage].isInserted, let before = links.first(where: { $0.to == stage })?.from { stage = before }
        return stages[stage].id
    }

    /// The id of the stage whose `link` in the file is the link into this one: for an inserted converter, the stage
    /// after it.
    func nameOfLink(into stage: Int) -> String {
        var stage = stage
        while stages[stage].isInserted, let after = links.first(where: { $0.from == stage })?.to { stage = after }
        return stages[stage].id
    }
}
