// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// A plan as people and programs read it.
struct PlanText {
    private let plan: ChainPlan

    init(_ plan: ChainPlan) { self.plan = plan }

    private func name(_ index: Int) -> String { plan.stages[index].id }

    // MARK: For people

    var text: String {
        var parts = ["Stages", Terminal.table([["id", "use", "thread", "gives"]] + plan.stages.map(row))]
        parts += ["", "Links", Terminal.table([["from", "to", "queue", "format"]] + plan.links.map(row))]
        parts += ["", "Pools", pools]
        if !plan.slabs.isEmpty { parts += ["", "Access units", slabs] }
        let threads = Set(plan.stages.map(\.thread)).count
        parts += [
            "",
            "\(threads) \(threads == 1 ? "thread" : "threads") for frames; pools \(Terminal.bytes(poolBytes)). \(latency)",
        ]
        if !plan.warnings.isEmpty { parts += ["", "Warnings"] + plan.warnings.map { "  \($0)." } }
        if !plan.notes.isEmpty { parts += ["", "Notes"] + plan.notes.map { "  \($0)." } }
        return parts.joined(separator: "\n")
    }

    private func row(_ stage: ChainPlan.Stage) -> [String] {
        [
            stage.id, stage.use + (stage.isInserted ? " (inserted)" : ""), "\(stage.thread)",
            stage.output.map(\.description) ?? "–",
        ]
    }

    private func row(_ link: ChainPlan.Link) -> [String] {
        let queue =
            link.settings.capacity == 0
            ? "inline" : "\(link.settings.capacity), \(whenFull(link))\(bounds(link.settings))"
        return [name(link.from), name(link.to), queue, link.format.description]
    }

    /// On the thread of a live source nothing waits: what finds a queue full is dropped.
    private func whenFull(_ link: ChainPlan.Link) -> String {
        let thread = plan.stages[link.from].thread
        let isLive = plan.stages.contains { $0.kind == .source && $0.demand.isLive && $0.thread == thread }
        return link.settings.policy == .wait && isLive ? PlanLook.drops : link.settings.policy.rawValue
    }

    private func bounds(_ settings: LinkSettings) -> String {
        var text = ""
        if let bytes = settings.mostBytes { text += ", \(Terminal.bytes(bytes))" }
        if let time = settings.mostTime { text += ", \(Terminal.decimal(time.seconds)) s" }
        if settings.isAutomatic { text += ", automatic" }
        return text
    }

    private var pools: String {
        guard !plan.budget.pools.isEmpty else { return "  none" }
        let rows = zip(plan.budget.pools, plan.poolBufferBytes).map { pool, bufferBytes in
            [
                name(pool.allocator) + (pool.isCopyPool ? " (copies)" : ""), "\(pool.min)", "\(pool.need)",
                "\(pool.spare)", "\(pool.size)",
                Terminal.bytes(pool.size * bufferBytes),
                pool.shares.map { "\($0.what) \($0.count)" }.joined(separator: ", "),
            ]
        }
        return Terminal.table([["of", "min", "need", "spare", "buffers", "bytes", "need is made of"]] + rows)
    }

    private var slabs: String {
        Terminal.table(
            [["of", "units", "at most"]]
                + plan.slabs.map { [name($0.stage), "\($0.unitCount)", Terminal.bytes($0.byteCount)] })
    }

    private var poolBytes: Int { zip(plan.budget.pools, plan.poolBufferBytes).reduce(0) { $0 + $1.0.size * $1.1 } }

    private var latency: String {
        if let usual = plan.usualLatency {
            return usual > 0
                ? "Usual added latency: \(Terminal.decimal(usual * 1000)) ms for which stages hold frames back, plus the stages' own processing time."
                : "Usual added latency: none apart from the stages' own processing time."
        }
        return plan.stages.contains { $0.demand.isLive }
            ? "Usual added latency: unknown, because a rate on the way is variable."
            : "Added latency: does not apply, because no source is live."
    }

    // MARK: For programs

    private func milliseconds(_ seconds: Double?) -> JSONNode {
        guard let seconds else { return .null }
        return .number(seconds * 1000)
    }

    var json: JSONNode {
        .object([
            ("stages", .array(plan.stages.map(json))), ("links", .array(plan.links.map(json))),
            (
                "conversions",
                .array(
                    plan.stages.filter { $0.isInserted && !$0.isTap }.map {
                        .object([("stage", .string($0.id)), ("use", .string($0.use))])
                    })
            ),
            ("threads", .number(Set(plan.stages.map(\.thread)).count)),
            (
                "copies",
                .array(
                    (plan.budget.pools.filter(\.isCopyPool).map { name($0.allocator) }
                        + plan.stages.filter(\.isTap).map(\.id)).map { .string($0) })
            ),
            ("pools", .array(zip(plan.budget.pools, plan.poolBufferBytes).map { json($0, $1) })),
            (
                "slabs",
                .array(
                    plan.slabs.map {
                        .object([
                            ("stage", .string(name($0.stage))), ("bytes", .number($0.byteCount)),
                            ("units", .number($0.unitCount)),
                        ])
                    })
            ),
            ("usualLatencyMs", milliseconds(plan.usualLatency)), ("worstLatencyMs", milliseconds(plan.worstLatency)),
            ("warnings", .array(plan.warnings.map { .string($0) })), ("notes", .array(plan.notes.map { .string($0) })),
        ])
    }

    private func json(_ stage: ChainPlan.Stage) -> JSONNode {
        .object([
            ("id", .string(stage.id)), ("use", .string(stage.use)), ("kind", .string(stage.kind.rawValue)),
            ("thread", .number(stage.thread)), ("inserted", .bool(stage.isInserted)),
            ("output", stage.output.map { .string($0.description) } ?? .null), ("hold", .number(stage.demand.hold)),
            ("delay", .number(stage.demand.delay)), ("live", .bool(stage.demand.isLive)),
            ("ownBytes", .number(stage.demand.ownBytes)),
            ("hiddenBy", stage.hiddenBy.map { .string($0) } ?? .null),
        ])
    }

    private func json(_ link: ChainPlan.Link) -> JSONNode {
        .object([
            ("from", .string(name(link.from))), ("to", .string(name(link.to))),
            ("queue", .number(link.settings.capacity)),
            ("automatic", .bool(link.settings.isAutomatic)),
            ("whenFull", .string(link.settings.policy.rawValue)), ("format", .string(link.format.description)),
        ])
    }

    private func json(_ pool: BudgetPlan.Pool, _ bufferBytes: Int) -> JSONNode {
        .object([
            ("stage", .string(name(pool.allocator))), ("copies", .bool(pool.isCopyPool)), ("min", .number(pool.min)),
            ("need", .number(pool.need)), ("spare", .number(pool.spare)), ("buffers", .number(pool.size)),
            ("bytes", .number(pool.size * bufferBytes)),
            ("shares", .object(pool.shares.map { ($0.what, .number($0.count)) })),
        ])
    }
}
