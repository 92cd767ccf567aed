// SPDX-License-Identifier: Apache-2.0

extension Chain {
    /// Upper bounds of the buckets of ``metrics``, seconds.
    static let timeBounds = [
        0.000_01, 0.000_03, 0.000_1, 0.000_3, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1, 3,
    ]

    /// [any thread] Figures for programs that draw them: counts since the start, values of this moment, and times
    /// as cumulative histograms where the chain is timed. Does not make the run wait.
    ///
    /// ```json
    /// { "stages": [{ "id", "number" (of this stage alone in the run), "use", "framesIn", "framesOut", "delivered", "dropped": { "REASON": n },
    ///     "held", "heldLimit", "heldOldestSeconds", "pixelCopies", "busy": HISTOGRAM, "latency": HISTOGRAM (sinks), "figures" }],
    ///   "links": [{ "from", "to", "depth", "capacity", "offered", "dropped", "replaced" }],
    ///   "pools": [{ "name", "buffers", "free", "min", "need", "bytes", "starvedSeconds" }] }
    /// HISTOGRAM: { "count", "sumSeconds", "buckets": [{ "le", "count" }] }
    /// ```
    public var metrics: JSONNode {
        let graph = graph
        let now = clock.now()
        let holdings = Holdings(graph)
        let stages = graph.runners.enumerated().map { index, runner -> JSONNode in
            let most = graph.mostHeld(by: index)
            let holding = holdings.byStage[runner.number]
            var members: [(String, JSONNode)] = [
                ("id", .string(runner.id)), ("number", .number(runner.number)), ("use", .string(runner.shown.info.id)),
                ("kind", .string(runner.kind.rawValue)),
                ("framesIn", .number(runner.kind == .source ? 0 : runner.counters.taken.value)),
                ("framesOut", .number(runner.counters.emitted.value)),
                ("delivered", .number(runner.counters.delivered.value)),
                ("dropped", Self.reasons { runner.counters.lost($0) }),
                ("held", .number(holding?.buffers.count ?? 0)),
                ("heldLimit", .number(most.taken + most.made)),
                ("heldOldestSeconds", .number(holding.map { Double(max(now - $0.oldest, 0)) / 1e9 } ?? 0)),
                ("pixelCopies", .number(runner.counters.pixelCopies.value)),
            ]
            if let histogram = runner.histogram { members.append(("busy", Self.json(histogram))) }
            if runner.kind == .sink, let histogram = runner.latency {
                members.append(("latency", Self.json(histogram)))
            }
            if let figures = runner.shown.context.figures { members.append(("figures", figures)) }
            return .object(members)
        }
        let links = graph.plan.links.map { link -> JSONNode in
            let snapshot = graph.queues.first { $0.link.from == link.from && $0.link.to == link.to }?.queue.snapshot()
            return .object([
                ("from", .string(graph.runners[link.from].id)), ("to", .string(graph.runners[link.to].id)),
                ("depth", .number(snapshot?.depth ?? 0)), ("capacity", .number(link.settings.capacity)),
                ("offered", .number(snapshot?.counts.offered ?? graph.runners[link.to].counters.taken.value)),
                ("dropped", Self.reasons { snapshot?.counts.lost($0) ?? 0 }),
                ("replaced", .number(snapshot?.counts.replaced ?? 0)),
            ])
        }
        let pools = graph.pools.map { pool -> JSONNode in
            let budget = graph.budget(of: pool)
            return .object([
                ("name", .string(pool.name)), ("buffers", .number(pool.bufferCount)), ("free", .number(pool.freeCount)),
                ("min", .number(budget?.min ?? 0)), ("need", .number(budget?.need ?? 0)),
                ("bytes", .number(pool.byteCount)), ("starvedSeconds", .number(Double(pool.starvedMs) / 1000)),
            ])
        }
        return ["stages": .array(stages), "links": .array(links), "pools": .array(pools)]
    }

    private static func reasons(_ counts: (DropReason) -> Int) -> JSONNode {
        .object(DropReason.allCases.filter { counts($0) > 0 }.map { ($0.name, .number(counts($0))) })
    }

    private static func json(_ histogram: Histogram) -> JSONNode {
        let summary = histogram.summary(upTo: timeBounds.map { $0 * 1e9 })
        return [
            "count": .number(summary.count), "sumSeconds": .number(summary.sum / 1e9),
            "buckets": .array(
                zip(timeBounds, summary.below).map { ["le": .number($0), "count": .number($1)] }),
        ]
    }
}

/// The buffers of pools that each stage has at this moment, by the stage's number.
struct Holdings {
    struct Holding {
        /// Pool and buffer.
        var buffers = Set<Int>()
        /// When the stage got the oldest of them, by the chain clock.
        var oldest = Int64.max
    }
    private(set) var byStage: [Int: Holding] = [:]

    init(_ graph: RunningGraph) {
        for (number, pool) in graph.pools.enumerated() {
            for lease in pool.holders() where lease.holder >= 0 && lease.holder % 2 == 0 {
                let stage = Int(lease.holder) / 2
                byStage[stage, default: Holding()].buffers.insert(number << 32 | Int(lease.buffer))
                if lease.since > 0 { byStage[stage]!.oldest = min(byStage[stage]!.oldest, lease.since) }
            }
        }
    }
}

extension RunningGraph {
    /// The most buffers of pools that the stage at `index` has at once, by its declaration: of its inputs, and of its
    /// own output.
    func mostHeld(by index: Int) -> (taken: Int, made: Int) {
        let demand = runners[index].shown.demand
        let producers = plan.links.filter { $0.to == index }.map(\.from)
        let inputs = producers.indices.filter { plan.stages[producers[$0]].output?.video != nil }
        // A join that may give the last picture of an input again keeps that picture too.
        let kept = inputs.count { plan.joins[index]?.keeps($0) ?? false }
        let taken = inputs.isEmpty ? 0 : inputs.count * (demand.hold + 1) + kept + demand.workers
        let made = plan.budget.pools.filter { $0.allocator == index }.map { $0.isCopyPool ? 1 : demand.floor + 1 }
        return (taken, made.reduce(0, +))
    }

    /// The plan's budget for a pool; nil for a pool that the plan does not know.
    func budget(of pool: FramePool) -> BudgetPlan.Pool? {
        plan.budget.pools.first {
            let id = runners[$0.allocator].id
            return pool.name == ($0.isCopyPool ? "\(id) copies" : id)
        }
    }
}
