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
        lag = type.kind == .transform ? Self.lag(stage) : 0
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

    /// The items that a stage takes for one that it gives, where its output has a lower rate.
    ///
    /// With `ratio` inputs for an output, the first output that is not before an input is less than `ratio` inputs later.
    /// A stage that keeps inputs back may choose the nearest one, which it knows half an output later.
    private static func lag(_ stage: PlannedStage) -> Int {
        guard let input = stage.inputs.first?.video?.frameRate, let output = stage.output?.video?.frameRate,
            !input.isZero, !output.isZero, input.value > output.value
        else { return 0 }
        let (inputs, outputs) = (
            Int(input.numerator) * Int(output.denominator), Int(input.denominator) * Int(output.numerator)
        )
        let common = Double(greatestCommonDivisor(inputs, outputs))
        // Times that differ do so by at least this part of an input's period.
        let step = common / Double(outputs)
        let items = Double(inputs) / Double(outputs) * (stage.demand.delay > 0 ? 1.5 : 1) - step
        guard items < Double(BudgetPlan.mostCapacity) else { return BudgetPlan.mostCapacity }
        return max(0, Int((items - 1e-9).rounded(.up)) - stage.demand.delay)
    }
}
