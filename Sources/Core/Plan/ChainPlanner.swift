/// From a request to a plan: request checked, stages ordered, formats negotiated, links and budgets, in that order;
/// each step reports all its faults.
///
/// Makes every stage (which opens nothing) and negotiates formats. Control thread only.
struct ChainPlanner {
    private let request: ChainRequest
    private let services: ChainServices

    init(_ request: ChainRequest, clock: ChainClock) {
        self.request = request
        services = ChainServices(clock: clock)
    }

    /// - Throws: ``FrameHostErrors`` with all faults of the first step that found any.
    func plan() throws -> PlannedChain {
        var faults = RequestCheck(request).faults
        let order = StageOrder(request)
        for circle in order.circles { faults.addCircle(circle.map { request.stages[$0] }) }
        try faults.throwAll()

        let ordered = order.applied(to: request)
        var negotiation = try FormatNegotiation(ordered, services)
        try negotiation.negotiate()
        let stages = negotiation.stages
        let layout = MetadataLayout(stages.flatMap(\.request.type.info.metadata))
        for stage in stages { stage.context.layout = layout }
        return PlannedChain(
            plan: try plan(stages, isLive: negotiation.isLive), stages: stages, services: services, layout: layout)
    }

    private func plan(_ stages: [PlannedStage], isLive: Bool) throws -> ChainPlan {
        var faults = PlanFaults(file: request.file)
        let demands = stages.map(\.demand)
        var links = LinkPlanner(stages, isLive: isLive).links(&faults)
        for clash in FileClashes(demands).clashes { faults.add(clash, stages) }
        faults.addClaims(stages)
        try faults.throwAll()

        let budget = BudgetPlan(BudgetGraph(stages, links), sizes: stages.writtenPoolSizes)
        for found in budget.faults { faults.add(found, in: budget, stages) }
        try faults.throwAll()
        for (index, edge) in budget.graph.edges.enumerated() { links[index].settings.capacity = edge.capacity }

        var plan = ChainPlan(stages, links, budget)
        plan.poolFormats = try budget.pools.map { try poolFormat($0, stages) }
        plan.poolBufferBytes = zip(budget.pools, plan.poolFormats).map { pool, format in
            let padding = pool.isCopyPool ? BufferPadding() : stages[pool.allocator].demand.padding
            return BufferLayout(format, padding: padding).byteCount
        }
        plan.slabs = SlabSizes(stages, links).slabs
        MemoryCheck(plan, available: request.memory ?? AvailableMemory.now()).check(&faults)
        try faults.throwAll()

        if isLive {
            plan.usualLatency = PlanLatency(plan).seconds(withQueues: false)
            plan.worstLatency = PlanLatency(plan).seconds(withQueues: true)
        }
        let notes = PlanNotes(plan)
        plan.warnings = notes.ofStages(stages, warnings: true)
        plan.notes = notes.ofPlan + notes.ofStages(stages, warnings: false)
        return plan
    }

    private func poolFormat(_ pool: BudgetPlan.Pool, _ stages: [PlannedStage]) throws -> VideoFormat {
        let allocator = stages[pool.allocator]
        if !pool.isCopyPool, let format = allocator.output?.video { return format }
        let input = allocator.request.from.first.flatMap { stages[$0].output?.video }
        guard let format = input ?? allocator.output?.video else {
            throw FrameHostError(.broken, what: "a pool without a format at '\(allocator.id)'")
        }
        return format
    }
}
