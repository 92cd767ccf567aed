// SPDX-License-Identifier: Apache-2.0

/// Says which stages hold the buffers when a pool has been empty for long, and where a link stands still. The control
/// thread calls it between ticks.
struct StarvationWatch {
    /// A pool or link must stand still this long before it is reported.
    static let patienceNs: Int64 = 200_000_000
    static let stallPatienceNs: Int64 = 2_000_000_000
    /// The same pool or link is reported again after this long.
    static let repeatNs: Int64 = 2_000_000_000
    /// The same pool or link is reported again as a warning after this long.
    static let warnAgainNs: Int64 = 60_000_000_000
    /// A pool or link that was well for so long is reported as if for the first time.
    static let newStallNs: Int64 = 10_000_000_000
    private var spokenOf: [String: (at: Int64, warnedAt: Int64, seenAt: Int64)] = [:]

    mutating func look(at chain: Chain, _ hub: EventHub) {
        let now = chain.clock.now()
        let graph = chain.graph
        for pool in graph.pools {
            guard let since = pool.starvedSinceTime, now - since >= Self.patienceNs,
                let level = level(of: "pool \(pool.name)", now)
            else { continue }
            let report = Self.report(pool, in: graph, now: now)
            var event = report.event
            event.level = level
            hub.post(event)
            for index in report.holders {
                guard let runner = graph.runner(number: index) else { continue }
                let thread: ThreadState = runner.thread
                _ = thread.post(
                    .init(open: { [weak runner, unowned thread] in
                        guard let runner, runner.thread === thread else { return }
                        runner.thread.call(.releaseCaches, stage: runner.number) {
                            runner.instance.stage.releaseCaches()
                        }
                    }))
            }
        }
        for entry in graph.queues {
            let (link, queue) = (entry.link, entry.queue)
            let since = queue.stalledSince.load(ordering: .relaxed)
            guard since != 0, now - since >= Self.stallPatienceNs, let level = level(of: "link \(queue.name)", now)
            else { continue }
            let ms = (now - since) / 1_000_000
            hub.post(
                Event(
                    name: "link-stalled", stage: graph.runners[link.to].id, level: level,
                    text:
                        "The link \(queue.name) has been full for \(ms) ms: \(graph.runners[link.to].title) takes no item, and '\(graph.runners[link.from].id)' waits for it. Look at what '\(graph.runners[link.to].id)' waits for: a disk, a network, or a later stage.",
                    details: [
                        "from": JSONNode(.string(graph.runners[link.from].id)),
                        "to": JSONNode(.string(graph.runners[link.to].id)),
                        "ms": JSONNode(.number(String(ms))),
                    ], time: now))
        }
    }

    /// The level at which the pool or link is reported now; nil where it was reported a moment ago.
    private mutating func level(of name: String, _ now: Int64) -> Event.Level? {
        guard let last = spokenOf[name], now - last.seenAt < Self.newStallNs else {
            spokenOf[name] = (at: now, warnedAt: now, seenAt: now)
            return .warning
        }
        spokenOf[name]!.seenAt = now
        guard now - last.at >= Self.repeatNs else { return nil }
        spokenOf[name]!.at = now
        guard now - last.warnedAt >= Self.warnAgainNs else { return .debug }
        spokenOf[name]!.warnedAt = now
        return .warning
    }

    /// The event, and the same without a remedy as a part of a sentence: `the pool 'camera' has been empty for 212 ms (7
    /// of 7 buffers held): recorder 3 (oldest 1.94 s, declared 2), face 2, preview 1, h264 1`
    static func report(
        _ pool: FramePool, in graph: RunningGraph, now: Int64
    ) -> (event: Event, sentence: String, holders: [Int]) {
        struct Holding {
            var buffers = Set<Int32>()
            var oldest = Int64.max
        }
        var stages: [Int: Holding] = [:]
        var queued: [Int: Holding] = [:]
        var all = Set<Int32>()
        var runners: [Int: StageRunner] = [:]
        for lease in pool.holders() {
            all.insert(lease.buffer)
            let index = Int(lease.holder) / 2
            guard lease.holder >= 0, let runner = graph.runner(number: index) else { continue }
            runners[index] = runner
            if lease.holder % 2 == 0 {
                stages[index, default: Holding()].buffers.insert(lease.buffer)
                if lease.since > 0 { stages[index]!.oldest = min(stages[index]!.oldest, lease.since) }
            } else {
                queued[index, default: Holding()].buffers.insert(lease.buffer)
            }
        }
        // Whether a stage has more buffers of this pool than it declares.
        func isOver(_ number: Int, _ holding: Holding) -> Bool {
            guard let place = graph.runners.firstIndex(where: { $0.number == number }) else { return false }
            let most = graph.mostHeld(by: place)
            let isOwn = graph.budget(of: pool).map { $0.allocator == place && !$0.isCopyPool } ?? false
            return holding.buffers.count > (isOwn ? most.made : most.taken)
        }
        let ms = pool.starvedSinceTime.map { (now - $0) / 1_000_000 } ?? 0
        var parts: [(count: Int, text: String)] = stages.map { index, holding in
            let runner = runners[index]!
            let demand = runner.shown.demand
            let age = holding.oldest <= now ? "oldest \(hundredths(now - holding.oldest)) s, " : ""
            return (
                holding.buffers.count,
                "\(runner.id) \(holding.buffers.count)"
                    + (isOver(index, holding) || demand.hold > 0 ? " (\(age)declared \(demand.hold))" : "")
            )
        }
        parts += queued.map {
            ($0.value.buffers.count, "queue before \(runners[$0.key]!.id) \($0.value.buffers.count)")
        }
        parts.sort { ($0.count, $1.text) > ($1.count, $0.text) }
        let over = stages.filter { isOver($0.key, $0.value) }.keys.sorted().map { runners[$0]!.id }
        let blame =
            over.isEmpty
            ? "Look at what the stages with the most buffers wait for: a disk, a network, or a later stage."
            : over.count == 1
                ? "'\(over[0])' holds more buffers than it declares. Report this to the author of its plugin."
                : "\(quotedList(over, "and")) hold more buffers than they declare. Report this to the authors of their plugins."
        let figures =
            "pool '\(pool.name)' has been empty for \(ms) ms (\(all.count) of \(pool.bufferCount) buffers held)"
            + (parts.isEmpty ? "" : ": " + parts.map(\.text).joined(separator: ", "))
        let holders = stages.map { index, holding in
            JSONNode(
                .object([
                    JSONNode.Member(key: "stage", value: JSONNode(.string(runners[index]!.id))),
                    JSONNode.Member(key: "held", value: JSONNode(.number(String(holding.buffers.count)))),
                    JSONNode.Member(
                        key: "declared", value: JSONNode(.number(String(runners[index]!.shown.demand.hold)))),
                ]))
        }
        let event = Event(
            name: "out-of-buffers", stage: pool.name, level: .warning,
            text: "The \(figures)." + (parts.isEmpty ? "" : " \(blame)"),
            details: [
                "pool": JSONNode(.string(pool.name)), "ms": JSONNode(.number(String(ms))),
                "held": JSONNode(.number(String(all.count))), "buffers": JSONNode(.number(String(pool.bufferCount))),
                "holders": JSONNode(.array(holders)),
                "overDeclaration": JSONNode(.array(over.map { JSONNode(.string($0)) })),
            ], time: now)
        return (event, "the \(figures)", stages.keys.sorted())
    }

    private static func hundredths(_ ns: Int64) -> String {
        let value = ns / 10_000_000
        return "\(value / 100).\(value % 100 < 10 ? "0" : "")\(value % 100)"
    }
}
