extension BudgetGraph {
    /// What budgets see of planned stages and their links.
    init(_ stages: [PlannedStage], _ links: [ChainPlan.Link]) {
        self.init(
            nodes: stages.map { Node($0) },
            edges: links.map { link in
                let consumer = stages[link.to]
                let asked = zip(consumer.request.from, consumer.inputLinks).first { $0.0 == link.from }?.1
                return Edge(
                    link.from, link.to, capacity: link.settings.capacity, policy: link.settings.policy,
                    isFixed: asked?.queue != nil, carriesUnits: link.format.encoded != nil)
            })
    }
}

extension BudgetGraph.Node {
    fileprivate init(_ stage: PlannedStage) {
        let type = stage.request.type
        let demand = stage.demand
        let givesUnits = stage.output?.encoded != nil
        let kind: BudgetGraph.Kind =
            switch type.kind {
            case .source: givesUnits ? .encoder : .source
            case .filter: .passThrough
            case .sink: .sink
            case .transform, .join:
                demand.outputBuffers == .sameAsInput ? .passThrough : givesUnits ? .encoder : .allocator
            }
        self.init(stage.id, kind)
        modifies = type.kind == .filter && demand.access == .modify
        hold = demand.hold
        delay = demand.delay
        workers = demand.workers
        floor = demand.floor
        isJoin = type.kind == .join
        isLive = demand.isLive
    }
}
