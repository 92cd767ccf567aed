// SPDX-License-Identifier: Apache-2.0

extension Chain {
    /// [any thread] All figures of the run, as `--stats` writes them. They are exact once the run has ended. Before
    /// that, each figure is as it was at some moment of the call. Does not make the run wait.
    public var figures: JSONNode {
        let graph = graph
        let (plan, runners) = (graph.plan, graph.runners)
        let slowCalls = callFigures.withLock { $0 }
        func number(_ value: Int) -> JSONNode { JSONNode(.number(String(value))) }
        func object(_ members: [(String, JSONNode)]) -> JSONNode {
            JSONNode(.object(members.map { JSONNode.Member(key: $0.0, value: $0.1) }))
        }
        func reasons(_ counts: (DropReason) -> Int) -> JSONNode {
            object(DropReason.allCases.filter { counts($0) > 0 }.map { ($0.name, number(counts($0))) })
        }
        let stages = runners.map { runner -> JSONNode in
            var members: [(String, JSONNode)] = [
                ("id", JSONNode(.string(runner.id))), ("use", JSONNode(.string(runner.shown.info.id))),
                ("framesIn", number(runner.kind == .source ? 0 : runner.counters.taken.value)),
                ("framesOut", number(runner.counters.emitted.value)),
                ("dropped", reasons { runner.counters.lost($0) }),
                ("heldMax", number(runner.mostKept)), ("pixelCopies", number(runner.counters.pixelCopies.value)),
            ]
            for (key, fraction) in [("p50Us", 0.5), ("p99Us", 0.99)] {
                let value = runner.histogram?.percentile(fraction).map { JSONNode(.number(tenths($0 / 1000))) }
                members.append((key, value ?? JSONNode(.null)))
            }
            for (key, fraction) in [("latencyP50Us", 0.5), ("latencyP99Us", 0.99)] {
                guard let value = runner.latency?.percentile(fraction) else { continue }
                members.append((key, JSONNode(.number(tenths(value / 1000)))))
            }
            if let inputs = runner.inputFigures { members.append(("inputs", inputs)) }
            if let watched = slowCalls[runner.number] {
                members.append(("slowCalls", number(watched.slowCalls)))
                members.append(("longestCallMs", number(Int(watched.longestNs / 1_000_000))))
            }
            if let figures = runner.shown.context.figures { members.append(("figures", figures)) }
            return object(members)
        }
        let links = plan.links.map { link -> JSONNode in
            let snapshot = graph.queues.first { $0.link.from == link.from && $0.link.to == link.to }?.queue.snapshot()
            return object([
                ("from", JSONNode(.string(runners[link.from].id))), ("to", JSONNode(.string(runners[link.to].id))),
                ("capacity", number(link.settings.capacity)),
                ("whenFull", JSONNode(.string(link.settings.policy.rawValue))),
                ("depth", number(snapshot?.depth ?? 0)), ("depthMax", number(snapshot?.counts.mostDepth ?? 0)),
                ("offered", number(snapshot?.counts.offered ?? runners[link.to].counters.taken.value)),
                ("dropped", reasons { snapshot?.counts.lost($0) ?? 0 }),
                ("replaced", number(snapshot?.counts.replaced ?? 0)),
            ])
        }
        let pools = graph.pools.map { pool -> JSONNode in
            let budget = graph.budget(of: pool)
            return object([
                ("name", JSONNode(.string(pool.name))), ("buffers", number(pool.bufferCount)),
                ("min", number(budget?.min ?? 0)), ("need", number(budget?.need ?? 0)),
                ("bytes", number(pool.byteCount)),
                ("starvedMs", number(pool.starvedMs)),
            ])
        }
        let slabs = graph.slabs.map { slab -> JSONNode in
            let usage = slab.usage
            return object([
                ("name", JSONNode(.string(slab.name))), ("bytes", number(slab.byteCount)),
                ("bytesMax", number(usage.mostBytes)),
                ("units", number(slab.unitCount)),
            ])
        }
        let l = graph.ledger
        return object([
            ("stages", JSONNode(.array(stages))), ("links", JSONNode(.array(links))),
            ("pools", JSONNode(.array(pools))),
            ("slabs", JSONNode(.array(slabs))),
            (
                "ledger",
                object([
                    ("captured", number(l.captured)), ("made", number(l.made)), ("copies", number(l.copies)),
                    ("delivered", number(l.delivered)), ("merged", number(l.merged)), ("idle", number(l.idle)),
                    ("dropped", number(l.dropped)), ("replaced", number(l.replaced)),
                    ("inFlight", number(l.inFlight)),
                ])
            ),
        ])
    }

    /// How far the run is, for a progress line.
    public struct Progress: Sendable {
        /// Items that sources gave.
        public var captured: Int
        /// Items that were delivered at the sink that took the most.
        public var delivered: Int
        /// Items that were dropped, without those that a newer one replaced (``Ledger/replaced``).
        public var dropped: Int
        /// How many items the first source will give, where it knows.
        public var expectedItems: Int?
        /// Nominal frames per second of the first source; zero when unknown.
        public var frameRate: Rational
    }

    /// [any thread] How far the run is.
    public var progress: Progress {
        let graph = graph
        let (plan, runners) = (graph.plan, graph.runners)
        // Blocks of sound are not frames. A chain without pictures counts them all the same.
        let all = runners.filter { $0.kind == .source }
        let pictures = all.filter { $0.shown.output?.goesWithPictures != true }
        let sources = pictures.isEmpty ? all : pictures
        let sinks = runners.filter { $0.kind == .sink }
        let format = sources.first.flatMap { source in plan.stages.first { $0.id == source.id }?.output }
        return Progress(
            captured: sources.map { $0.counters.made.value }.max() ?? 0,
            delivered: sinks.map { $0.counters.delivered.value }.max() ?? 0,
            dropped: graph.ledger.dropped, expectedItems: sources.first?.shown.demand.expectedItems,
            frameRate: format?.video?.frameRate ?? format?.encoded?.video?.frameRate ?? Rational(0))
    }
}

/// `12.3`.
private func tenths(_ value: Double) -> String {
    let scaled = Int((value * 10).rounded())
    return "\(scaled / 10).\(scaled % 10)"
}
