// SPDX-License-Identifier: Apache-2.0

/// Makes a plan of a request: it checks the request, orders the stages, negotiates formats, and plans links and
/// budgets, in that order. Each step reports all its faults.
///
/// It makes every stage, which opens nothing. Given a running chain, it plans a change: stages that the request leaves
/// as they are stay, with their memory, and nothing that runs is touched. Only the control thread uses it.
struct ChainPlanner {
    private let request: ChainRequest
    private let services: ChainServices
    private let running: RunningChain?

    /// - Parameter running: The running chain that the plan changes; nil for a chain that is yet to be started.
    init(_ request: ChainRequest, clock: ChainClock, running: RunningChain? = nil) {
        self.request = request.part == nil ? request : PartPlanner.withGates(request)
        self.running = running
        services = running?.services ?? ChainServices(clock: clock)
    }

    /// - Throws: ``FrameHostErrors`` with all faults of the first step that found any.
    func plan() throws -> PlannedChain {
        var faults = RequestCheck(request).faults
        let order = StageOrder(request)
        for circle in order.circles.map({ $0.map { request.stages[$0] } }) {
            // A source in it has a `from`, which is a fault of its own.
            if circle.allSatisfy({ $0.type.info.input != .none }) { faults.addCircle(circle) }
        }
        try faults.throwAll()

        var negotiation = try FormatNegotiation(order.applied(to: request), services, running: running)
        try negotiation.negotiate()
        let stages = negotiation.stages
        let part = try planPart(stages)
        // A stage that runs keeps its own, which its thread reads.
        for stage in stages where !stage.isKept { stage.context.part = part }
        let layout = running?.layout ?? MetadataLayout(stages.flatMap(\.request.type.info.metadata))
        try checkWhatStays(stages, layout)
        for stage in stages where !stage.isKept { stage.context.layout = layout }
        let originals = try proveOriginals(stages)
        var plan = try plan(stages, layout, isLive: negotiation.isLive)
        plan.part = part
        for index in stages.indices { plan.stages[index].hiddenBy = originals.way(to: index)?.hiders[0] }
        plan.notes += originals.notes(stages)
        return PlannedChain(
            plan: plan, stages: stages, services: services,
            layout: layout,
            isLive: negotiation.isLive, spare: request.spare, hidden: originals.hidden, changes: changes(stages))
    }

    private func planPart(_ stages: [PlannedStage]) throws -> TimelinePart? {
        guard let part = request.part else { return nil }
        let planner = PartPlanner(part: part, stages: stages)
        var faults = PlanFaults(request)
        planner.check(&faults)
        try faults.throwAll()
        return planner.whole
    }

    private func proveOriginals(_ stages: [PlannedStage]) throws -> OriginalsProof {
        let proof = OriginalsProof(stages, after: running)
        var faults = PlanFaults(request)
        faults.addOriginals(stages, proof)
        faults.addOriginals(request.rules, stages, proof)
        try faults.throwAll()
        return proof
    }

    /// Metadata slots and the sizes of pools cannot change during a run.
    private func checkWhatStays(_ stages: [PlannedStage], _ layout: MetadataLayout) throws {
        guard let running else { return }
        var faults = PlanFaults(request)
        for stage in stages {
            for type in stage.request.type.info.metadata where layout.index(of: type) == nil {
                faults.addRestart(metadata: layout.refusal(of: type), of: stage.request)
            }
            if let runs = running[stage.id], stage.request.type.kind == .join, runs.request.type.kind == .join,
                runs.inputIDs == stage.inputIDs, runs.request.join != stage.request.join
            {
                faults.addRestart("the 'join' settings of '\(stage.id)' would change", at: (stage.request, "join"))
            }
            if stage.isKept, stage.buffers != running.buffers[stage.id] {
                faults.addRestart(
                    top: .buffers(of: stage.id), "the size of the pool of '\(stage.id)' would change")
            }
        }
        if request.spare != running.spare {
            faults.addRestart(top: .spare, "the sizes of all pools would change")
        }
        try faults.throwAll()
    }

    private func changes(_ stages: [PlannedStage]) -> PlannedChain.Changes {
        let kept = stages.filter(\.isKept).map(\.id)
        return PlannedChain.Changes(
            kept: kept, made: stages.filter { !$0.isKept }.map(\.id),
            gone: (running?.stages.keys.sorted() ?? []).filter { !kept.contains($0) })
    }

    // MARK: Links, threads and budgets

    private func plan(_ stages: [PlannedStage], _ layout: MetadataLayout, isLive: Bool) throws -> ChainPlan {
        var faults = PlanFaults(request)
        let joins = JoinPlanner(stages)
        joins.check(&faults)
        let links = LinkPlanner(stages, isLive: isLive, running: running).links(&faults)
        faults.addFileClashes(stages, request)
        faults.addClaims(stages, beside: request.services)
        for stage in stages { faults.addClaims(stage.demand.claims, of: stage.id, on: request.ownStreams) }
        try faults.throwAll()

        let automatic = AutomaticQueues(
            stages, isLive: isLive, processors: request.processors, running: running)
        var more = links
        let queues = automatic.add(to: &more)
        // A queue that the chain file does not ask for is no reason to refuse the chain.
        if !queues.isEmpty, let plan = try? plan(stages, layout, more, joins, queues, isLive: isLive) {
            return plan
        }
        return try plan(stages, layout, links, joins, [], isLive: isLive)
    }

    /// Plans the rest once all links are known: memory, latency and notes.
    private func plan(
        _ stages: [PlannedStage], _ layout: MetadataLayout, _ links: [ChainPlan.Link], _ joins: JoinPlanner,
        _ queues: [AutomaticQueues.Queue], isLive: Bool
    ) throws -> ChainPlan {
        var faults = PlanFaults(request)
        var links = links
        let spare = request.spare.map { PoolSpare.buffers($0) } ?? (isLive ? .computed : .none)
        let budget = try budget(stages, links, joins.rules, spare, &faults)
        for (index, edge) in budget.graph.edges.enumerated() { links[index].settings.capacity = edge.capacity }

        var plan = ChainPlan(stages, links, joins.rules, budget)
        plan.poolFormats = try budget.pools.map { try poolFormat($0, stages) }
        plan.poolBufferBytes = zip(budget.pools, plan.poolFormats).map { pool, format in
            let padding = pool.isCopyPool ? BufferPadding() : stages[pool.allocator].demand.padding
            return BufferLayout(format, padding: padding).byteCount
        }
        let slabs = SlabSizes(stages, links, spare: spare, running: running)
        plan.slabs = slabs.slabs
        for (missing, reader) in slabs.shortages() { faults.addShortage(missing, for: stages[reader].request, stages) }
        let memory = MemoryCheck(
            plan, stages, layout, services: request.services, available: request.memory ?? AvailableMemory.now(),
            running: running)
        memory.check(&faults)
        try faults.throwAll()
        plan.memoryBytes = memory.needed

        if isLive {
            plan.usualLatency = PlanLatency(plan).seconds(withQueues: false)
            plan.worstLatency = PlanLatency(plan).seconds(withQueues: true)
        }
        plan.automaticQueues = queues
        let notes = PlanNotes(plan)
        plan.warnings = joins.notes(warnings: true) + notes.ofStages(stages, warnings: true)
        plan.notes = notes.ofPlan + joins.notes(warnings: false) + notes.ofStages(stages, warnings: false)
        return plan
    }

    /// Running pools keep their size. If it is not enough for the new plan, that is a fault.
    private func budget(
        _ stages: [PlannedStage], _ links: [ChainPlan.Link], _ joins: [Int: JoinRule], _ spare: PoolSpare,
        _ faults: inout PlanFaults
    ) throws -> BudgetPlan {
        var sizes = stages.writtenPoolSizes
        var copySizes: [Int: Int] = [:]
        for (index, stage) in stages.enumerated() where stage.isKept {
            if let pool = running?.pools[RunningChain.PoolName(stage: stage.id)] { sizes[index] = pool.size }
            copySizes[index] = running?.pools[RunningChain.PoolName(stage: stage.id, isCopyPool: true)]?.size
        }
        let graph = BudgetGraph(stages, links, joins).countingPicturesBeforeFilters()
        let budget = BudgetPlan(graph, sizes: sizes, copySizes: copySizes, spare: spare)
        for pool in budget.pools {
            guard let missing = missing(pool, stages) else { continue }
            let reader = pool.members.first { !stages[$0].isKept } ?? pool.allocator
            faults.addShortage(missing, ofPool: stages[pool.allocator].id, for: stages[reader].request)
        }
        for fault in budget.faults {
            if case .poolTooSmall(let allocator, _, _, _) = fault, stages[allocator].isKept { continue }
            faults.add(fault, in: budget, stages)
        }
        try faults.throwAll()
        return budget
    }

    /// How many buffers a running pool lacks. With fewer than `min` the chain could stop for good. With fewer than
    /// `need` it waits where it did not wait before, unless the chain file chose that size.
    private func missing(_ pool: BudgetPlan.Pool, _ stages: [PlannedStage]) -> Int? {
        let name = RunningChain.PoolName(stage: stages[pool.allocator].id, isCopyPool: pool.isCopyPool)
        guard stages[pool.allocator].isKept, let runs = running?.pools[name] else { return nil }
        // A new stage may come between this pool and stages that it feeds now. Those keep their buffers until the new
        // stage gives them something, which the new stage may be able to do only with the buffers that they keep.
        let members = pool.members.map { stages[$0].id }
        let kept = stages.reduce(0) { sum, stage in
            sum + (stage.isKept && !members.contains(stage.id) ? runs.keepers[stage.id] ?? 0 : 0)
        }
        let missing = max(pool.min + kept - runs.size, pool.need - max(runs.size, runs.need))
        return missing > 0 ? missing : nil
    }

    private func poolFormat(_ pool: BudgetPlan.Pool, _ stages: [PlannedStage]) throws -> VideoFormat {
        let allocator = stages[pool.allocator]
        if !pool.isCopyPool, let format = allocator.output?.video { return format }
        let input = allocator.request.from.first.flatMap { stages[$0].output?.video }
        guard let format = input ?? allocator.output?.video else {
            throw FrameHostError(.broken, what: "the pool of '\(allocator.id)' has no format")
        }
        return format
    }
}
