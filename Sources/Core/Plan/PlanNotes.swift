// SPDX-License-Identifier: Apache-2.0

/// Notes for a person who reads a plan: longer queues, copies, what may wait or be lost, and what stages chose.
struct PlanNotes {
    private let plan: ChainPlan

    init(_ plan: ChainPlan) { self.plan = plan }

    /// Notes that stages made while they negotiated: `face: searches for faces with …`.
    func ofStages(_ stages: [PlannedStage], warnings: Bool) -> [String] {
        stages.flatMap { stage in
            stage.context.planNotes.filter { $0.isWarning == warnings }.map { "\(stage.id): \($0.text)" }
        }
    }

    var ofPlan: [String] {
        let budget = plan.budget
        var notes = plan.automaticQueues.map(automatic)
        notes += budget.raised.map { raise in
            let edge = budget.graph.edges[raise.edge]
            return
                "queue \(name(edge.from)) → \(name(edge.to)) raised from \(raise.from) to \(raise.to): the other path from '\(name(raise.fork))' to '\(name(raise.join))' delays that much"
        }
        for pool in budget.pools where pool.isCopyPool {
            notes.append(
                "up to 1 copy per frame at \(name(pool.allocator)): its input is shared with \(sharers(of: pool.allocator))"
            )
        }
        for (index, stage) in plan.stages.enumerated() where stage.isTap {
            let producer = plan.links.first { $0.to == index }.map { name($0.from) } ?? ""
            let readers = plan.links.filter { $0.from == index }.map { plan.stages[$0.to].id }
            notes.append(
                "1 copy of each item at \(stage.id), on the thread of '\(producer)': \(readers.joined(separator: ", ")) cannot use up the buffers of the stages before \(stage.id)"
            )
        }
        for pool in budget.pools where pool.size < pool.need {
            let stage = name(pool.allocator)
            let cost =
                plan.stages[pool.allocator].demand.isLive
                ? "frames may be lost" : "'\(stage)' may wait for a free one"
            notes.append(
                "pool \(stage): has \(pool.size) \(pool.size == 1 ? "buffer" : "buffers"), needs \(pool.need): \(cost)")
        }
        return notes
    }

    private func automatic(_ queue: AutomaticQueues.Queue) -> String {
        let link = plan.links[queue.link]
        return
            "queue \(name(link.from)) → \(name(link.to)) of \(link.settings.capacity) inserted: the stages before it take about \(Self.text(queue.before)) a frame, those after it \(Self.text(queue.after)), and there are \(queue.processors) processors; \"link\": { \"queue\": 0 } in '\(plan.nameOfLink(into: link.to))' prevents it"
    }

    /// `4.3 ms`
    private static func text(_ time: MediaTime) -> String {
        let tenths = (time.nanoseconds + 50_000) / 100_000
        return "\(tenths / 10).\(tenths % 10) ms"
    }

    private func name(_ stage: Int) -> String { plan.stages[stage].id }

    private func sharers(of stage: Int) -> String {
        var producer = stage
        while let before = plan.links.first(where: { $0.to == producer })?.from {
            let others = plan.links.filter { $0.from == before && $0.to != producer }.map { name($0.to) }
            if !others.isEmpty { return others.joined(separator: ", ") }
            if plan.stages[before].demand.floor > 0 { return "\(name(before)), which may still read it" }
            producer = before
        }
        return "a stage that keeps it"
    }
}
