// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// What a running chain does, look by look: rates, losses, and words for the problems.
///
/// Pure: it asks no server and draws nothing. The page of the control server computes the same (`Page/model.js`).
struct LiveFigures {
    /// Rates cover this many seconds. Over one second they would jump by a frame.
    static let rateSeconds = 3.0
    /// Losses longer ago than this are no longer reported, seconds.
    static let lossSeconds = 10.0
    /// When a stage has held all its buffers for this long, frames wait there, seconds.
    static let holdSeconds = 1.0
    /// A queue is reported when it was full in this many successive looks.
    static let fullLooks = 3

    /// 99 of 100 items take no longer.
    enum Percentile: Equatable {
        /// Seconds, within 6 %.
        case exact(Double)
        /// An upper bound, seconds: the histogram's buckets say no more of the last seconds.
        case atMost(Double)
        case above(Double)
    }

    struct Hurt: Equatable {
        enum Level: String { case bad, warn, rest }
        var level: Level
        /// For a table or a node of a graph.
        var word: String
        var sentence: String
    }

    struct Stage {
        var id: String
        var use: String
        var kind: String
        var state: String
        /// Items a second: input of a sink, output of other stages.
        var rate: Double?
        /// Seconds that an item waits before the stage in its queue, or that a live source waits for its device or
        /// clock; nil where nothing waits.
        var wait: Double?
        /// Share of the time that the stage itself works, without its waits and what runs inline behind it.
        var busy: Double?
        var p99: Percentile?
        var queues: [(depth: Int, capacity: Int)]
        var held: Int
        var heldLimit: Int
        var oldestSeconds: Double
        /// Drops a second, including those of its queues.
        var dropRate: Double?
        var drops: Int
        /// Items before it whose place a newer one took, as its links' policy says.
        var replaced: Int
        /// The format of its output, or of a sink's input; empty when not known.
        var format: String
        var hurts: [Hurt]
    }

    struct Link {
        var from: String
        var to: String
        var depth: Int
        var capacity: Int
        var rate: Double?
        var drops: Int
        /// Items whose place a newer one took, as the link's policy says.
        var replaced: Int
        /// Items lost within ``lossSeconds``, without drops that somebody asked for.
        var lost: Int
        var isFull: Bool
        /// In how many successive looks the queue was full.
        var fullFor: Int
    }

    struct Pool {
        var name: String
        var buffers: Int
        var free: Int
        /// Share of the time in which a thread waited for a buffer.
        var starved: Double?
    }

    struct Latency {
        var sink: String
        var seconds: Double
        var p99: Percentile?
    }

    private(set) var name = ""
    private(set) var state = ""
    private(set) var isHealthy = false
    private(set) var problems: [String] = []
    private(set) var stages: [Stage] = []
    private(set) var links: [Link] = []
    private(set) var pools: [Pool] = []
    /// Items a second of all sources.
    private(set) var captured: Double?
    /// The latency from capture to the slowest sink.
    private(set) var latency: Latency?
    /// Share of one processor core.
    private(set) var processor: Double?
    private(set) var residentBytes: Int?
    private(set) var uptimeSeconds: Double?

    /// Over how many seconds rates are taken: at least those between two looks.
    private let window: Double
    private let lossWindow: Double
    private var histories: [String: FigureHistory] = [:]

    /// - Parameter interval: Seconds from look to look.
    init(interval: Double = 1) {
        window = max(Self.rateSeconds, interval)
        lossWindow = max(Self.lossSeconds, interval)
    }

    private mutating func history(
        _ key: String, _ counters: [String: Double], of what: String = "", gauge: Double = 0, time: Double
    ) -> FigureHistory {
        histories[key, default: FigureHistory()].add(counters, of: what, gauge: gauge, time: time)
        return histories[key]!
    }

    /// - Parameter plan: Formats and live sources. If the chain has changed meanwhile, what is missing stays empty.
    mutating func take(_ look: ChainLook, plan: PlanLook?) {
        name = look.name
        state = look.state
        isHealthy = look.isHealthy
        problems = look.problems
        let known = Set(
            look.links.map { "link \($0.from)>\($0.to)" } + look.stages.map { "stage \($0.id)" }
                + look.pools.map { "pool \($0.name)" } + ["process"])
        for key in histories.keys where !known.contains(key) { histories[key] = nil }
        takeLinks(look)
        takePools(look)
        takeProcess(look)
        var byID: [String: FigureHistory] = [:]
        for stage in look.stages {
            byID[stage.id] = history("stage \(stage.id)", stage.counters, of: stage.use, time: look.time)
        }
        let inline = InlineStages(look)
        stages = look.stages.map { stage($0, byID[$0.id] ?? FigureHistory(), inline, plan) }
        let sources = stages.filter { $0.kind == "source" }.compactMap(\.rate)
        captured = sources.isEmpty ? nil : sources.reduce(0, +)
        latency = look.stages.compactMap { stage -> Latency? in
            guard let history = byID[stage.id], let mean = mean("latency", history) else { return nil }
            let p99 = history.p99("latency", within: lossWindow).map { Self.percentile($0, since: nil) }
            return Latency(sink: stage.id, seconds: mean, p99: p99)
        }.max { $0.seconds < $1.seconds }
    }

    // MARK: Links, pools, process

    private mutating func takeLinks(_ look: ChainLook) {
        var next: [Link] = []
        for link in look.links {
            let key = "link \(link.from)>\(link.to)"
            let history = history(key, link.counters, gauge: Double(link.depth), time: look.time)
            // A link that keeps only the newest item is nearly always full.
            let isFull = link.capacity > 1 && link.depth >= link.capacity
            let before = links.first { $0.from == link.from && $0.to == link.to }?.fullFor ?? 0
            next.append(
                Link(
                    from: link.from, to: link.to, depth: link.depth, capacity: link.capacity,
                    rate: history.rate("offered", within: window), drops: link.drops, replaced: link.replaced,
                    lost: lost(history),
                    isFull: isFull, fullFor: isFull ? before + 1 : 0))
        }
        links = next
    }

    private mutating func takePools(_ look: ChainLook) {
        var next: [Pool] = []
        for pool in look.pools {
            let history = history("pool \(pool.name)", pool.counters, time: look.time)
            next.append(
                Pool(
                    name: pool.name, buffers: pool.buffers, free: pool.free,
                    starved: history.rate("starved", within: window)))
        }
        pools = next
    }

    private mutating func takeProcess(_ look: ChainLook) {
        guard let process = look.process else {
            (processor, residentBytes, uptimeSeconds) = (nil, nil, nil)
            return
        }
        let history = history("process", ["cpu": process.processorSeconds], time: look.time)
        processor = history.rate("cpu", within: window)
        residentBytes = process.residentBytes
        uptimeSeconds = process.uptimeSeconds
    }

    // MARK: Stages

    private func stage(
        _ look: ChainLook.Stage, _ history: FigureHistory, _ inline: InlineStages, _ plan: PlanLook?
    ) -> Stage {
        let into = links.filter { $0.to == look.id }
        let isLive = look.kind == "source" && plan?.stages[look.id]?.isLive == true
        let dropKeys = look.counters.keys.filter { $0.hasPrefix("drop.") }
        let ownDrops = dropKeys.compactMap { history.rate($0, within: window) }.reduce(0, +)
        let linkDrops = into.compactMap { dropRate(of: $0) }.reduce(0, +)
        let isKnown = history.rate("in", within: window) != nil
        let p99 = history.p99("busy", within: lossWindow).map {
            Self.percentile($0, since: look.p99Seconds)
        }
        var stage = Stage(
            id: look.id, use: look.use, kind: look.kind, state: look.state.isEmpty ? state : look.state,
            rate: history.rate(look.kind == "sink" ? "in" : "out", within: window), wait: nil,
            busy: isLive ? nil : share(look.id, inline), p99: p99,
            queues: into.filter { $0.capacity > 0 }.map { ($0.depth, $0.capacity) }, held: look.held,
            heldLimit: look.heldLimit, oldestSeconds: look.oldestSeconds,
            dropRate: isKnown ? ownDrops + linkDrops : nil, drops: Self.sum([look.drops] + into.map(\.drops)),
            replaced: Self.sum(into.map(\.replaced)),
            format: plan?.format(of: look.id) ?? "", hurts: [])
        if isLive {
            if let share = shareOfThread(look.id, inline), let rate = stage.rate, rate > 0 {
                stage.wait = (1 - share) / rate
            }
        } else {
            stage.wait = into.compactMap { queueWait($0) }.max()
        }
        let lost = Self.sum([self.lost(history)] + into.map(\.lost))
        stage.hurts = hurts(stage, reason: look.reason, lost: lost, history, into)
        return stage
    }

    private func dropRate(of link: Link) -> Double? {
        guard let history = histories["link \(link.from)>\(link.to)"] else { return nil }
        return history.rise(prefix: "drop.", within: window).map { $0.by / $0.in }
    }

    /// The wait by Little's law: the mean length of the queue, divided by the items a second; nil for an inline link,
    /// and where no item comes.
    private func queueWait(_ link: Link) -> Double? {
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
    static func percentile(_ range: (above: Double, most: Double), since: Double?) -> Percentile {
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
        "failed": "stage failed",
    ]

    /// The sum of a server's figures. Bounded, so that it cannot overflow.
    private static func sum(_ counts: [Int]) -> Int {
        counts.reduce(0) { min($0, 1 << 61) + min($1, 1 << 61) }
    }

    /// Items lost within ``lossSeconds``.
    private func lost(_ history: FigureHistory) -> Int {
        history.risen("drop.", within: lossWindow).filter { !Self.wanted.contains($0) }.reduce(0) {
            $0 + Int(history.rise("drop.\($1)", within: lossWindow)?.by ?? 0)
        }
    }

    private func hurts(
        _ stage: Stage, reason: String, lost: Int, _ history: FigureHistory, _ into: [Link]
    ) -> [Hurt] {
        var found: [Hurt] = []
        if stage.state == "failed" {
            found.append(Hurt(level: .bad, word: "failed", sentence: "The stage has failed."))
        }
        if stage.state == "recovering" {
            let why = reason.isEmpty ? "It is recovering." : "It is recovering: \(reason)"
            found.append(Hurt(level: .warn, word: "recovering", sentence: why))
        }
        if lost > 0 {
            let linkHistories = into.compactMap { histories["link \($0.from)>\($0.to)"] }
            let reasons = Set(([history] + linkHistories).flatMap { $0.risen("drop.", within: lossWindow) })
                .subtracting(Self.wanted).map { Self.reasonWords[$0] ?? $0 }.sorted()
            found.append(
                Hurt(
                    level: .warn, word: "lost \(lost)",
                    sentence:
                        "\(lost) \(lost == 1 ? "item was" : "items were") lost in the last \(Terminal.decimal(lossWindow, places: 0)) s (\(reasons.joined(separator: ", ")))."
                ))
        }
        for link in into where link.fullFor >= Self.fullLooks {
            found.append(
                Hurt(
                    level: .warn, word: "queue full",
                    sentence:
                        "The queue from \(link.from) was full (\(link.depth) of \(link.capacity)) at the last \(link.fullFor) updates."
                ))
        }
        if stage.heldLimit > 0, stage.held >= stage.heldLimit, stage.oldestSeconds >= Self.holdSeconds,
            stage.state != "paused"
        {
            found.append(
                Hurt(
                    level: .warn, word: "held at limit",
                    sentence:
                        "It holds \(stage.held) of \(stage.heldLimit) buffers, the oldest for \(FigureText.time(stage.oldestSeconds))."
                ))
        }
        if stage.state == "paused" {
            found.append(Hurt(level: .rest, word: "paused", sentence: "The stage is paused."))
        }
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

// MARK: - For programs

extension LiveFigures {
    /// A look as `framehost top --json` prints it; times in seconds, null where it is not known yet.
    var json: JSONNode {
        func number(_ value: Double?) -> JSONNode { value.map { .number($0) } ?? .null }
        let stages = stages.map { stage -> JSONNode in
            let (p99, isBound) = Self.parts(stage.p99)
            return .object([
                ("id", .string(stage.id)), ("use", .string(stage.use)), ("kind", .string(stage.kind)),
                ("state", .string(stage.state)), ("rate", number(stage.rate)), ("waitSeconds", number(stage.wait)),
                ("busy", number(stage.busy)), ("p99Seconds", number(p99)), ("p99IsBound", .bool(isBound)),
                (
                    "queues",
                    .array(stage.queues.map { ["depth": .number($0.depth), "capacity": .number($0.capacity)] })
                ),
                ("held", .number(stage.held)), ("heldLimit", .number(stage.heldLimit)),
                ("heldOldestSeconds", .number(stage.oldestSeconds)), ("dropRate", number(stage.dropRate)),
                ("drops", .number(stage.drops)), ("replaced", .number(stage.replaced)),
                ("format", .string(stage.format)),
                ("problems", .array(stage.hurts.filter { $0.level != .rest }.map { .string($0.sentence) })),
            ])
        }
        return .object([
            ("name", .string(name)), ("state", .string(state)), ("healthy", .bool(isHealthy)),
            ("problems", .array(problems.map { .string($0) })), ("captured", number(captured)),
            (
                "latency",
                latency.map { ["sink": .string($0.sink), "seconds": .number($0.seconds)] } ?? .null
            ),
            ("uptimeSeconds", number(uptimeSeconds)), ("processor", number(processor)),
            ("residentBytes", residentBytes.map { .number($0) } ?? .null), ("stages", .array(stages)),
        ])
    }

    private static func parts(_ percentile: Percentile?) -> (Double?, isBound: Bool) {
        switch percentile {
        case .exact(let seconds): (seconds, false)
        case .atMost(let seconds): (seconds, true)
        case .above, nil: (nil, false)
        }
    }
}
