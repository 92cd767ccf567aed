// SPDX-License-Identifier: Apache-2.0

/// Posts the event `frames-dropped` when items are dropped: within a second, then at most every ten seconds for each
/// stage or link and each reason. Where a live chain loses items and a thread behind that place was at work nearly all
/// the time, it says which stage is too slow: the one on that thread that was found at work most often. Where no thread
/// was, it waits for the second after the loss began, in which a stage shows that was idle before.
///
/// The control thread calls it at each of its looks, every 50 ms; counters are read once a second.
/// docs/design/021-live-operation.md.
struct DropWatch {
    static let repeatNs: Int64 = 10_000_000_000
    /// Losses that go on at one place are reported as a warning again after this long.
    static let warnAgainNs: Int64 = 60_000_000_000
    /// A stage is called too slow only where at least this share of the looks finds its thread at work, per cent. With
    /// less, something else may have kept the items waiting: a busy machine, a disk.
    static let leastPercent = 80
    /// With fewer looks nothing is said of who was at work.
    private static let leastLooks = 10
    /// The most places whose losses are kept for the end. A chain that is changed over days may have had many.
    static let mostPlaces = 1000
    private static let pauseNs: Int64 = 1_000_000_000

    struct Told {
        var count: Int
        var at: Int64
    }

    /// A stage or link, and what its drops are called.
    private struct Place {
        /// The number of a stage, or the numbers of a link's two ends.
        var key: String
        /// `cam`, `between cam and h264`.
        var words: String
        /// The id of the stage that the event names.
        var stage: String
        /// Index of the first stage behind the place. That stage and those behind it may be to blame.
        var behind: Int
        /// What messages call an item: `frame`, `access unit`, `block`.
        var unit: String
        var isLink = false
        /// What made the link's queue full when it lost something last.
        var bound: QueueBound?
    }

    /// What was lost at one place, and which stages were too slow then.
    private struct Loss {
        var unit: String
        var count = 0
        /// Lost items by the title of the stage that was too slow. Items lost while no stage could be named are not in
        /// it.
        var blamed: [String: Int] = [:]
        /// Lost items by what a stage waited for that was paused.
        var paused: [String: Int] = [:]
        /// Lost items of seconds in which no thread was at work nearly all the time.
        var unexplained = 0
        var warnedAt: Int64?
    }

    /// What the looks of the last second say of the threads behind a place.
    private enum Verdict {
        /// A stage behind the place waits for an input that somebody paused.
        case paused(PausedWaits.Wait)
        case tooSlow(Culprit)
        /// No thread was at work nearly all the time.
        case nobody
        /// There were too few looks.
        case unknown
    }

    /// The stage at which a thread was found most often that was at work nearly all the time.
    private struct Culprit {
        var runner: StageRunner
        /// The share of the looks that found the thread at work, per cent.
        var percent: Int
        /// The share of the looks that found it in this stage, per cent.
        var ownPercent: Int
        /// The ids of the stages on that thread, without a source.
        var stages: [String]
        /// The id of the stage before which a queue divides that thread; nil where there is none.
        var divider: String?
    }

    /// What was reported last, by place and reason. It contains only present stages and links.
    private(set) var told: [String: [DropReason: Told]] = [:]
    private var seen: [String: [DropReason: Int]] = [:]
    private var losses: [String: Loss] = [:]
    /// By place and reason: lost items that no stage explained yet, and that wait for the next second.
    private var open: [String: [DropReason: Int]] = [:]
    /// For each stage, by number: the looks that found it in a call, in the current second.
    private var busy: [Int: Int] = [:]
    private var looks = 0
    private var nextLook = Int64.min

    /// [control thread] Frames begin to flow: counters are read a second later, when enough looks can name a stage.
    mutating func begin(now: Int64) {
        nextLook = now + Self.pauseNs
        (busy, looks) = ([:], 0)
    }

    /// - Parameter isLast: The run has ended: counters are read at once.
    mutating func look(at chain: Chain, now: Int64, isLast: Bool = false) {
        let graph = chain.graph
        if !isLast { sample(graph) }
        guard isLast || now >= nextLook else { return }
        nextLook = now + Self.pauseNs
        let isLive = graph.runners.contains { $0.shown.demand.isLive }
        var present: Set<String> = []
        for (index, runner) in graph.runners.enumerated() {
            let place = Place(
                key: "\(runner.number)", words: "at \(runner.id)", stage: runner.id, behind: index,
                unit: Self.unit(of: graph.plan.stages[index].output))
            present.insert(place.key)
            for reason in DropReason.allCases {
                let count = runner.counters.lost(reason)
                // A join ticks by the clock where its inputs are files in real time too.
                let isLoss = reason == .missed || isLive && reason == .noBuffer
                tell(chain, graph, place, reason, count, isLoss: isLoss, now: now, isLast: isLast)
            }
        }
        for entry in graph.queues {
            let counts = entry.queue.snapshot().counts
            let (from, to) = (graph.runners[entry.link.from], graph.runners[entry.link.to])
            let place = Place(
                key: "\(from.number)-\(to.number)", words: "between \(from.id) and \(to.id)", stage: to.id,
                behind: entry.link.to, unit: Self.unit(of: entry.link.format), isLink: true,
                bound: entry.queue.lastBound)
            present.insert(place.key)
            for reason in DropReason.allCases {
                let count = counts.lost(reason)
                tell(
                    chain, graph, place, reason, count, isLoss: isLive && DropReason.lossesOfLinks.contains(reason),
                    now: now, isLast: isLast)
            }
        }
        told = told.filter { present.contains($0.key) }
        seen = seen.filter { present.contains($0.key) }
        open = open.filter { present.contains($0.key) }
        (busy, looks) = ([:], 0)
    }

    /// One sentence for each place of a live chain that lost something, the worst first: `139 frames lost between
    /// cam and h264: h264 (x264-encoder) was too slow.`
    var summary: [String] {
        losses.sorted { ($1.value.count, $0.key) < ($0.value.count, $1.key) }.map { words, loss in
            let blamed = loss.blamed.sorted { ($1.value, $0.key) < ($0.value, $1.key) }
            let explained = blamed.reduce(0) { $0 + $1.value }
            let lost = "\(Self.counted(loss.count, loss.unit)) lost \(words)"
            if let pause = loss.paused.max(by: { ($0.value, $1.key) < ($1.value, $0.key) }),
                pause.value * 2 >= loss.count
            {
                return "\(lost): \(pause.key)."
            }
            switch blamed.count {
            case 0 where loss.unexplained == 0: return "\(lost)."
            case 0:
                return
                    "\(lost): no later stage was fully busy, so the machine itself may have been too busy."
            // The stages that were too slow explain the loss only where they explain most of it.
            case _ where explained * 2 < loss.count:
                return "\(lost): \(blamed[0].key) was too slow for \(blamed[0].value) of them."
            case 1: return "\(lost): \(blamed[0].key) was too slow."
            default: return "\(lost): \(blamed[0].key) was too slow most often, then \(blamed[1].key)."
            }
        }
    }

    private static func unit(of format: MediaFormat?) -> String {
        switch format {
        case .encoded: "access unit"
        case .audio, .motion: "block"
        case .video, nil: "frame"
        }
    }

    /// `3 frames`
    private static func counted(_ count: Int, _ unit: String) -> String { "\(count) \(unit)\(count == 1 ? "" : "s")" }

    // MARK: Who is at work

    private mutating func sample(_ graph: RunningGraph) {
        looks += 1
        for stageThread in graph.stageThreads {
            let number = Int(stageThread.state.inside.load(ordering: .relaxed))
            if number >= 0 { busy[number, default: 0] += 1 }
        }
    }

    /// Finds the thread that was at work at most looks, of those that run the stage at `first` or one behind it, and its
    /// busiest such stage. Sources are left out, since they wait for their device inside their call.
    private func verdict(behind first: Int, in graph: RunningGraph) -> Verdict {
        if let wait = PausedWaits(graph).wait(behind: first) { return .paused(wait) }
        guard looks >= Self.leastLooks else { return .unknown }
        var reached: Set<Int> = [first]
        var open = [first]
        while let stage = open.popLast() {
            for link in graph.plan.links where link.from == stage && reached.insert(link.to).inserted {
                open.append(link.to)
            }
        }
        let behind = Set(reached.map { graph.runners[$0].number })
        func count(_ runner: StageRunner) -> Int { busy[runner.number] ?? 0 }
        let found = graph.stageThreads.compactMap { stageThread -> Culprit? in
            let members = stageThread.members.filter { $0.kind != .source }
            let sum = members.reduce(0) { $0 + count($1) }
            guard sum * 100 >= looks * Self.leastPercent,
                let worst = members.filter({ behind.contains($0.number) }).max(by: { count($0) < count($1) }),
                count(worst) > 0
            else { return nil }
            return Culprit(
                runner: worst, percent: sum * 100 / looks, ownPercent: count(worst) * 100 / looks,
                stages: members.map(\.id), divider: divider(of: stageThread.members, before: worst, in: graph))
        }
        return found.max { $0.percent < $1.percent }.map { .tooSlow($0) } ?? .nobody
    }

    /// A thread begins with its first stage, so a queue before the busiest one divides it, or one behind that.
    private func divider(of members: [StageRunner], before busiest: StageRunner, in graph: RunningGraph) -> String? {
        guard let index = members.firstIndex(where: { $0 === busiest }), max(index, 1) < members.count,
            let stage = graph.runners.firstIndex(where: { $0 === members[max(index, 1)] })
        else { return nil }
        return graph.plan.nameOfLink(into: stage)
    }

    // MARK: What is told

    private mutating func tell(
        _ chain: Chain, _ graph: RunningGraph, _ place: Place, _ reason: DropReason, _ count: Int, isLoss: Bool,
        now: Int64, isLast: Bool
    ) {
        guard count > 0 else { return }
        let before = seen[place.key]?[reason] ?? 0
        // A new queue between the same two stages counts from 0.
        let grown = count < before ? count : count - before
        seen[place.key, default: [:]][reason] = count
        var verdict = Verdict.unknown
        if isLoss {
            let waiting = open[place.key]?.removeValue(forKey: reason) ?? 0
            if grown + waiting > 0 { verdict = self.verdict(behind: place.behind, in: graph) }
            switch verdict {
            case .tooSlow, .paused: break
            case .nobody, .unknown:
                guard waiting == 0, grown > 0, !isLast else { break }
                open[place.key, default: [:]][reason] = grown
                return
            }
            if grown + waiting > 0 { note(grown + waiting, at: place, verdict) }
        }

        var last = told[place.key]?[reason]
        if let before = last, count < before.count { last = nil }
        if let last, count == last.count || now - last.at < Self.repeatNs { return }
        told[place.key, default: [:]][reason] = Told(count: count, at: now)
        let new = count - (last?.count ?? 0)
        let bound = DropReason.lossesOfLinks.contains(reason) ? place.bound : nil
        // A queue that has its most items is what everybody expects.
        let limit = bound.map { $0 == .items ? "" : "; full by \"\($0.key)\"" } ?? ""
        var text =
            "\(Self.counted(new, place.unit)) dropped \(place.words) (\(reason.words(atLink: place.isLink))\(limit)), \(count) in all."
        var details: [(String, JSONNode)] = [
            ("reason", .string(reason.name)), ("count", .number(new)), ("total", .number(count)),
            ("place", .string(place.words)),
        ]
        if let bound { details.append(("bound", .string(bound.key))) }
        var level = warns(of: place, isLoss, now: now)
        switch verdict {
        case .paused(let wait):
            text += " \(wait.sentence). \(wait.remedy)"
            level = min(level, .info)
        case .tooSlow(let culprit):
            text += " " + Self.text(culprit)
            details += [("tooSlow", .string(culprit.runner.id)), ("busyPercent", .number(culprit.ownPercent))]
        case .nobody:
            text += " No later stage is fully busy, so the machine itself may be too busy: stop other programs."
            if let more = Self.moreRoom(at: place, for: reason, in: graph) {
                text += " To bridge short delays, give \(more)."
            }
        case .unknown: break
        }
        chain.hub.post(
            Event(
                name: "frames-dropped", stage: place.stage, level: level, text: text, details: .object(details),
                time: chain.clock.now()))
    }

    private static func text(_ culprit: Culprit) -> String {
        let title = culprit.runner.title
        let isAlone = culprit.ownPercent >= leastPercent
        let why: String
        if !isAlone {
            let stages = culprit.stages.joined(separator: ", ")
            why =
                "The thread of \(stages) was at work for \(culprit.percent) % of the last second, longest (\(culprit.ownPercent) %) in \(title)."
        } else if culprit.percent > culprit.ownPercent {
            // The rest would seem to be time left.
            why =
                "\(title) is too slow: its thread was at work for \(culprit.percent) % of the last second, \(culprit.ownPercent) % in this stage."
        } else {
            why = "\(title) is too slow: it was at work for \(culprit.percent) % of the last second."
        }
        let split =
            isAlone
            ? nil : culprit.divider.map { " With \"link\": { \"queue\": 2 }, '\($0)' gets a thread of its own." }
        let remedy =
            culprit.runner.kind == .sink
            ? "Check the disk, the network or the device that it writes to, or give it less: a smaller picture, a lower rate."
            : "Use a smaller picture, a lower rate or a faster setting."
        return "\(why) \(remedy)\(split ?? "")"
    }

    /// A stage, and what to give it so that more items are kept where they were lost; nil where a chain file cannot say it.
    private static func moreRoom(at place: Place, for reason: DropReason, in graph: RunningGraph) -> String? {
        func queue(into stage: Int) -> String {
            let key = (place.bound ?? .items).key
            return "'\(graph.plan.nameOfLink(into: stage))' a longer queue: \"link\": { \"\(key)\": N }"
        }
        if place.isLink { return queue(into: place.behind) }
        if reason == .missed {
            return graph.plan.links.first { $0.from == place.behind }.map { queue(into: $0.to) }
        }
        guard place.unit == "frame", !graph.plan.stages[place.behind].isInserted else { return nil }
        return "'\(place.stage)' more buffers: \"buffers\": { \"\(place.stage)\": N } in the chain file"
    }

    private mutating func note(_ count: Int, at place: Place, _ verdict: Verdict) {
        guard losses[place.words] != nil || losses.count < Self.mostPlaces else { return }
        losses[place.words, default: Loss(unit: place.unit)].count += count
        switch verdict {
        case .tooSlow(let culprit): losses[place.words]!.blamed[culprit.runner.title, default: 0] += count
        case .paused(let wait): losses[place.words]!.paused[wait.past, default: 0] += count
        case .nobody: losses[place.words]!.unexplained += count
        case .unknown: break
        }
    }

    private mutating func warns(of place: Place, _ isLoss: Bool, now: Int64) -> Event.Level {
        guard isLoss, let loss = losses[place.words] else { return .debug }
        if let last = loss.warnedAt, now - last < Self.warnAgainNs { return .debug }
        losses[place.words]!.warnedAt = now
        return .warning
    }
}
