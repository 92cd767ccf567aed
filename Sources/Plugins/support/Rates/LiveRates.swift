// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Computes rates, losses and problems from successive looks at a running chain.
///
/// Pure: it asks nobody and draws nothing.
public struct LiveRates {
    /// Rates cover this many seconds. Over one second they would jump by a frame.
    public static let usualInterval = 3.0
    /// Losses longer ago than this are no longer reported, seconds.
    static let lossSeconds = 10.0
    /// When a stage has held all its buffers for this long, frames wait there, seconds.
    static let holdSeconds = 1.0
    /// A queue is reported when it was full in this many successive looks, and for this long.
    static let (fullLooks, fullSeconds) = (3, 1.5)
    /// The plan is read again after this many looks, since a stage may give another format when nothing else has
    /// changed.
    private static let looksPerPlan = 10

    /// Over how many seconds rates are taken: at least those between two looks.
    private let window: Double
    private let lossWindow: Double
    private var histories: [String: FigureHistory] = [:]
    /// In how many successive looks the queue of a link was full, since when, and for how many seconds.
    private var full: [String: (looks: Int, since: Double, seconds: Double)] = [:]
    private var plan: (json: JSONNode, structure: [String])?
    private var looks = 0
    /// Of the last look.
    private var figures = LiveFigures()

    /// - Parameter interval: Seconds from look to look.
    public init(interval: Double) {
        window = max(Self.usualInterval, interval)
        lossWindow = max(Self.lossSeconds, interval)
    }

    private mutating func history(
        _ key: String, _ counters: [String: Double], of what: String = "", gauge: Double = 0, time: Double
    ) -> FigureHistory {
        histories[key, default: FigureHistory()].add(counters, of: what, gauge: gauge, time: time)
        return histories[key]!
    }

    /// What the chain does as of this look. The first look has no rates.
    ///
    /// - Parameter plan: Gives the plan, which has formats and live sources. Called where the chain's structure has
    ///   changed, and once in a while.
    public mutating func take(_ look: ChainLook, plan read: () throws -> JSONNode) rethrows -> LiveFigures {
        if plan?.structure != look.structure || looks % Self.looksPerPlan == 0 {
            plan = (try read(), look.structure)
        }
        looks += 1
        var look = look
        if let plan { look.take(plan: plan.json) }
        figures.name = look.name
        figures.state = look.state
        figures.isHealthy = look.isHealthy
        figures.problems = look.problems
        let known = Set(
            look.links.map { "link \($0.from)>\($0.to)" } + look.stages.map { "stage \($0.id)" }
                + look.pools.map { "pool \($0.name)" } + ["process"])
        for key in histories.keys where !known.contains(key) { histories[key] = nil }
        takeLinks(look)
        takePools(look)
        takeProcess(look)
        var byID: [String: FigureHistory] = [:]
        for stage in look.stages {
            byID[stage.id] = history("stage \(stage.id)", stage.counters, of: stage.identity, time: look.time)
        }
        let inline = InlineStages(look)
        figures.stages = look.stages.map { stage($0, byID[$0.id] ?? FigureHistory(), inline) }
        let sources = figures.stages.filter { $0.kind == "source" }.compactMap(\.rate)
        figures.captured = sources.isEmpty ? nil : sources.reduce(0, +)
        figures.latency = figures.stages.compactMap { stage -> LiveFigures.Latency? in
            guard let history = byID[stage.id], let mean = stage.latencySeconds else { return nil }
            let p99 = history.p99("latency", within: lossWindow).map { Self.percentile($0, since: nil) }
            return LiveFigures.Latency(sink: stage.id, seconds: mean, p99: p99)
        }.max { $0.seconds < $1.seconds }
        return figures
    }

    // MARK: Links, pools, process

    private mutating func takeLinks(_ look: ChainLook) {
        var next: [LiveFigures.Link] = []
        let before = full
        full = [:]
        let identities = look.identities
        for link in look.links {
            let ends = [link.from, link.to].map { identities[$0] ?? "" }.joined(separator: " > ")
            let key = "link \(link.from)>\(link.to)"
            let history = history(key, link.counters, of: ends, gauge: Double(link.depth), time: look.time)
            // A link that keeps only the newest item is nearly always full.
            let isFull = link.capacity > 1 && link.depth >= link.capacity
            if isFull {
                let since = min(before[key]?.since ?? look.time, look.time)
                full[key] = ((before[key]?.looks ?? 0) + 1, since, look.time - since)
            }
            next.append(
                LiveFigures.Link(
                    from: link.from, to: link.to, depth: link.depth, capacity: link.capacity,
                    rate: history.rate("offered", within: window), drops: link.drops, replaced: link.replaced,
                    lost: lost(history, lossWindow), isFull: isFull))
        }
        figures.links = next
    }

    private mutating func takePools(_ look: ChainLook) {
        var next: [LiveFigures.Pool] = []
        let identities = look.identities
        for pool in look.pools {
            // A pool has the id of its stage; one of copies is `ID copies`.
            let copies = pool.name.hasSuffix(" copies") ? String(pool.name.dropLast(" copies".count)) : pool.name
            let owner = identities[pool.name] ?? identities[copies] ?? ""
            let history = history("pool \(pool.name)", pool.counters, of: owner, time: look.time)
            next.append(
                LiveFigures.Pool(
                    name: pool.name, buffers: pool.buffers, free: pool.free,
                    starved: history.rate("starved", within: window)))
        }
        figures.pools = next
    }

    private mutating func takeProcess(_ look: ChainLook) {
        guard let process = look.process else {
            (figures.processor, figures.residentBytes, figures.uptimeSeconds) = (nil, nil, nil)
            return
        }
        let history = history("process", ["cpu": process.processorSeconds], time: look.time)
        figures.processor = history.rate("cpu", within: window)
        figures.residentBytes = process.residentBytes
        figures.uptimeSeconds = process.uptimeSeconds
    }

    // MARK: Stages

    private func stage(
        _ look: ChainLook.Stage, _ history: FigureHistory, _ inline: InlineStages
    ) -> LiveFigures.Stage {
        let into = figures.links.filter { $0.to == look.id }
        let isLive = look.kind == "source" && look.isLive
        let dropKeys = look.counters.keys.filter { $0.hasPrefix("drop.") }
        let ownDrops = dropKeys.compactMap { history.rate($0, within: window) }.reduce(0, +)
        let linkDrops = into.compactMap { dropRate(of: $0) }.reduce(0, +)
        let isKnown = history.rate("in", within: window) != nil
        let p99 = history.p99("busy", within: lossWindow).map {
            Self.percentile($0, since: look.p99Seconds)
        }
        var stage = LiveFigures.Stage(
            id: look.id, use: look.use, kind: look.kind, state: look.state.isEmpty ? figures.state : look.state,
            rate: history.rate(look.kind == "sink" ? "in" : "out", within: window), wait: nil,
            busy: isLive ? nil : share(look.id, inline), busySeconds: mean("busy", history),
            latencySeconds: look.kind == "sink" ? mean("latency", history) : nil, p99: p99,
            queues: into.filter { $0.capacity > 0 }.map { ($0.depth, $0.capacity) }, held: look.held,
            heldLimit: look.heldLimit, oldestSeconds: look.oldestSeconds,
            dropRate: isKnown ? ownDrops + linkDrops : nil, drops: Self.sum([look.drops] + into.map(\.drops)),
            lost: Self.sum([lost(history, lossWindow)] + into.map(\.lost)),
            lostInAll: Self.sum(([history] + histories(of: into)).map { lost($0, nil) }),
            replaced: Self.sum(into.map(\.replaced)), format: look.format, hurts: [])
        if isLive {
            if let share = shareOfThread(look.id, inline), let rate = stage.rate, rate > 0 {
                stage.wait = (1 - share) / rate
            }
        } else {
            stage.wait = into.compactMap { queueWait($0) }.max()
        }
        stage.hurts = hurts(stage, reason: look.reason, history, into)
        return stage
    }

    private func dropRate(of link: LiveFigures.Link) -> Double? {
        guard let history = histories["link \(link.from)>\(link.to)"] else { return nil }
        return history.rise(prefix: "drop.", within: window).map { $0.by / $0.in }
    }

    /// The wait by Little's law: the mean length of the queue, divided by the items a second; nil for an inline link,
    /// and where no item comes.
    private func queueWait(_ link: LiveFigures.Link) -> Double? {
        guard link.capacity > 0, let rate = link.rate, rate > 0,
            let history = histories["link \(link.from)>\(link.to)"]
        else { return nil }
        return history.meanGauge / rate
    }

    /// Share of the time that the stage itself works: without its waits and the stages that run inline after it.
    private func share(_ id: String, _ inline: InlineStages) -> Double? {
        guard inline.timed.contains(id) else { return nil }
        return histories["stage \(id)"]?.rate("busy", within: window).map { min(max($0, 0), 1) }
    }

    /// Share of the time that the stage and all that run on its thread after it work; nil while one of them is new.
    private func shareOfThread(_ id: String, _ inline: InlineStages) -> Double? {
        var sum = 0.0
        for id in inline.after(id).union([id]) {
            guard let share = share(id, inline) else { return nil }
            sum += share
        }
        return min(sum, 1)
    }

    /// The stages that run on the thread of another one, after it.
    private struct InlineStages {
        private var next: [String: [String]] = [:]
        /// Those whose time of work the server tells.
        let timed: Set<String>

        init(_ look: ChainLook) {
            timed = Set(look.stages.filter { $0.counters["busy.count"] != nil }.map(\.id))
            for link in look.links where link.capacity == 0 { next[link.from, default: []].append(link.to) }
        }

        func after(_ id: String) -> Set<String> {
            var (found, open) = (Set<String>(), next[id] ?? [])
            while let each = open.popLast() {
                if found.insert(each).inserted { open += next[each] ?? [] }
            }
            return found
        }
    }

    private func mean(_ name: String, _ history: FigureHistory) -> Double? {
        guard let count = history.rise("\(name).count", within: window)?.by, count > 0,
            let sum = history.rise(name, within: window)?.by
        else { return nil }
        return sum / count
    }

    /// - Parameter since: The percentile since the stage started, which is exact. It is used where the last seconds do
    ///   not contradict it.
    static func percentile(_ range: (above: Double, most: Double), since: Double?) -> LiveFigures.Percentile {
        if let since, since > range.above, since <= range.most { return .exact(since) }
        return range.most.isFinite ? .atMost(range.most) : .above(range.above)
    }

    // MARK: Where it hurts

    /// Drops that somebody has asked for: by a link that keeps the newest item, by a filter, by a paused stage.
    private static let wanted: Set<String> = [
        "replaced", "byStage", "paused", "detached", "unconnected", "stopped",
    ]

    private static let reasonWords = [
        "noBuffer": "queue full or no free buffer", "queueFull": "queue full",
        "evicted": "queue full, oldest dropped",
        "untilKeyframe": "until the next keyframe", "damaged": "damaged", "unmatched": "no match",
        "failed": "stage failed", "missed": "not made in time",
    ]

    /// The sum of a server's figures. Bounded, so that it cannot overflow.
    private static func sum(_ counts: [Int]) -> Int {
        counts.reduce(0) { min($0, 1 << 61) + min($1, 1 << 61) }
    }

    /// Items lost within so many seconds; nil: since the start.
    private func lost(_ history: FigureHistory, _ seconds: Double?) -> Int {
        history.last("drop.").filter { !Self.wanted.contains($0.key) }.reduce(0) { sum, drops in
            guard let seconds else { return sum + Int(drops.value) }
            return sum + Int(history.rise("drop.\(drops.key)", within: seconds)?.by ?? 0)
        }
    }

    private func histories(of links: [LiveFigures.Link]) -> [FigureHistory] {
        links.compactMap { histories["link \($0.from)>\($0.to)"] }
    }

    private func hurts(
        _ stage: LiveFigures.Stage, reason: String, _ history: FigureHistory, _ into: [LiveFigures.Link]
    ) -> [LiveFigures.Hurt] {
        var found: [LiveFigures.Hurt] = []
        func say(_ level: LiveFigures.Hurt.Level, _ word: String, _ sentence: String) {
            found.append(LiveFigures.Hurt(level: level, word: word, sentence: sentence))
        }
        if stage.state == "failed" { say(.bad, "failed", "The stage has failed.") }
        if stage.state == "recovering" {
            say(.warn, "recovering", reason.isEmpty ? "It is recovering." : "It is recovering: \(reason)")
        }
        if stage.lost > 0 {
            let reasons = Set(([history] + histories(of: into)).flatMap { $0.risen("drop.", within: lossWindow) })
                .subtracting(Self.wanted).map { Self.reasonWords[$0] ?? $0 }.sorted()
            let items = stage.lost == 1 ? "item was" : "items were"
            let seconds = FigureText.decimal(lossWindow, places: 0)
            say(
                .warn, "lost \(stage.lost)",
                "\(stage.lost) \(items) lost in the last \(seconds) s (\(reasons.joined(separator: ", "))).")
        }
        for link in into {
            guard let full = full["link \(link.from)>\(link.to)"], full.looks >= Self.fullLooks,
                full.seconds >= Self.fullSeconds
            else { continue }
            let items = "\(link.depth) of \(link.capacity)"
            say(
                .warn, "queue full",
                "The queue from \(link.from) was full (\(items)) at the last \(full.looks) updates.")
        }
        if stage.heldLimit > 0, stage.held >= stage.heldLimit, stage.oldestSeconds >= Self.holdSeconds,
            stage.state != "paused"
        {
            let time = FigureText.time(stage.oldestSeconds)
            say(
                .warn, "held at limit",
                "It holds \(stage.held) of \(stage.heldLimit) buffers, the oldest for \(time).")
        }
        if stage.state == "paused" { say(.rest, "paused", "The stage is paused.") }
        return found
    }
}

extension FigureHistory {
    /// The same for all counters whose name begins with `prefix`.
    func rise(prefix: String, within seconds: Double) -> (by: Double, in: Double)? {
        guard let time = rise("", within: seconds)?.in else { return nil }
        return (risen(prefix, within: seconds).reduce(0) { $0 + (rise(prefix + $1, within: seconds)?.by ?? 0) }, time)
    }
}
