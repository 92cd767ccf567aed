// SPDX-License-Identifier: Apache-2.0

extension BudgetGraph {
    /// What budgets see of planned stages and their links.
    init(_ stages: [PlannedStage], _ links: [ChainPlan.Link], _ joins: [Int: JoinRule]) {
        self.init(
            nodes: stages.indices.map { Node(stages[$0], joins[$0]) },
            edges: links.map { link in
                let consumer = stages[link.to]
                let input = consumer.request.from.firstIndex(of: link.from)
                let asked = input.map { consumer.inputLinks[$0] }
                let keeps = input.map { joins[link.to]?.keeps($0) ?? false } ?? false
                return Edge(
                    link.from, link.to, capacity: link.settings.capacity, policy: link.settings.policy,
                    isFixed: asked?.queue != nil, carriesUnits: link.format.liesInSlab, keeps: keeps ? 1 : 0)
            })
    }
}

extension BudgetGraph.Node {
    fileprivate init(_ stage: PlannedStage, _ rule: JoinRule?) {
        let type = stage.request.type
        let demand = stage.demand
        let givesUnits = stage.output?.liesInSlab == true
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
        if let rule {
            (match, lead, isClocked) = (rule.match, rule.lead, rule.period != nil && !rule.followsTimes)
            // It waits for each input until that has shown an item of the tick's time or a later one.
            if rule.followsTimes { match = .exact }
        }
        isLive = demand.isLive
        isTap = stage.isTap
    }
}
