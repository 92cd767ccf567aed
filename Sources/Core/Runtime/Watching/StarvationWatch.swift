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
        let paused = PausedWaits(graph)
        for pool in graph.pools {
            guard let since = pool.starvedSinceTime, now - since >= Self.patienceNs,
                let level = level(of: "pool \(pool.name)", now)
            else { continue }
            let wait = paused.wait(for: pool)
            let report = PoolHolders(pool, in: graph).report(now: now, pause: wait)
            var event = report.event
            event.level = wait == nil ? level : min(level, .info)
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
            let (from, to) = (graph.runners[link.from], graph.runners[link.to])
            let wait = paused.wait(behind: link.to)
            let why =
                wait.map { "\($0.sentence). \($0.remedy)" }
                ?? "\(to.title) takes no item, and '\(from.id)' waits for it. Look at what '\(to.id)' waits for: a disk, a network, or a later stage."
            hub.post(
                Event(
                    name: "link-stalled", stage: to.id, level: wait == nil ? level : min(level, .info),
                    text: "The link \(queue.name) has been full for \(ms) ms: \(why)",
                    details: [
                        "from": JSONNode(.string(from.id)), "to": JSONNode(.string(to.id)),
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
}
