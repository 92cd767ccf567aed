// SPDX-License-Identifier: Apache-2.0

/// Posts the event `frames-dropped` when items are dropped: at once, then at most every ten seconds for each stage or
/// link and each reason. Where a live chain loses items, it says which stage is too slow: the one behind that place
/// that was found at work most often.
///
/// The control thread calls it at each of its looks, every 50 ms; counters are read once a second.
/// docs/design/021-live-operation.md.
struct DropWatch {
    static let repeatNs: Int64 = 10_000_000_000
    /// Losses that go on at one place are reported as a warning again after this long.
    static let warnAgainNs: Int64 = 60_000_000_000
    /// A stage is called too slow only where at least this share of the looks finds it at work, per cent.
    static let leastPercent = 50
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
        /// Whether the items are access units, which messages do not call frames.
        var isEncoded: Bool
    }

    /// What was lost at one place, and which stages were too slow then.
    private struct Loss {
        var isEncoded: Bool
        var count = 0
        /// Lost items by the title of the stage that was too slow. Items lost while no stage was too slow are not
        /// in it.
        var blamed: [String: Int] = [:]
        var warnedAt: Int64?
    }

    private struct Culprit {
        var id: String
        var title: String
        var percent: Int
    }

    /// What was reported last, by place and reason. It contains only present stages and links.
    private(set) var told: [String: [DropReason: Told]] = [:]
    private var seen: [String: [DropReason: Int]] = [:]
    private var losses: [String: Loss] = [:]
    /// For each stage, by number: the looks that found it in a call, in the current second and the one before.
    private var busy: [[Int: Int]] = [[:], [:]]
    private var looks = [0, 0]
    private var nextLook = Int64.min

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
                isEncoded: graph.plan.stages[index].output?.encoded != nil)
            present.insert(place.key)
            for reason in DropReason.allCases {
                let count = runner.dropCount(reason) + (reason == .unconnected ? runner.unconnected.value : 0)
                tell(chain, graph, place, reason, count, isLoss: isLive && reason == .noBuffer, now: now)
            }
        }
        for entry in graph.queues {
            let counts = entry.queue.snapshot().counts
            let (from, to) = (graph.runners[entry.link.from], graph.runners[entry.link.to])
            let place = Place(
                key: "\(from.number)-\(to.number)", words: "between \(from.id) and \(to.id)", stage: to.id,
                behind: entry.link.to, isEncoded: entry.link.format.encoded != nil)
            present.insert(place.key)
            for reason in DropReason.allCases {
                let count = counts.dropped[reason.rawValue] + counts.evicted[reason.rawValue]
                tell(
                    chain, graph, place, reason, count, isLoss: isLive && DropReason.lossesOfLinks.contains(reason),
                    now: now)
            }
        }
        told = told.filter { present.contains($0.key) }
        seen = seen.filter { present.contains($0.key) }
        (busy, looks) = ([busy[1], [:]], [looks[1], 0])
    }

    /// One sentence for each place of a live chain that lost something, the worst first: `139 frames lost between
    /// cam and h264: h264 (x264-encoder) was too slow.`
    var summary: [String] {
        losses.sorted { ($1.value.count, $0.key) < ($0.value.count, $1.key) }.map { words, loss in
            let unit = (loss.isEncoded ? "access unit" : "frame") + (loss.count == 1 ? "" : "s")
            let blamed = loss.blamed.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map(\.key)
            let why =
                switch blamed.count {
                case 0: "no stage was busy most of the time, so perhaps the machine was."
                case 1: "\(blamed[0]) was too slow."
                default: "\(blamed[0]) was too slow most often, then \(blamed[1])."
                }
            return "\(loss.count) \(unit) lost \(words): \(why)"
        }
    }

    // MARK: Who is at work

    private mutating func sample(_ graph: RunningGraph) {
        looks[1] += 1
        for worker in graph.workers {
            let number = Int(worker.state.inside.load(ordering: .relaxed))
            if number >= 0 { busy[1][number, default: 0] += 1 }
        }
    }

    /// The stage at `first` or behind it that was at work at most looks; nil where none was at half of them.
    /// Sources are left out, since they wait for their device inside their call.
    private func culprit(behind first: Int, in graph: RunningGraph) -> Culprit? {
        let all = looks[0] + looks[1]
        guard all > 0 else { return nil }
        var reached: Set<Int> = [first]
        var open = [first]
        while let stage = open.popLast() {
            for link in graph.plan.links where link.from == stage && reached.insert(link.to).inserted {
                open.append(link.to)
            }
        }
        func count(_ index: Int) -> Int {
            let number = graph.runners[index].number
            return (busy[0][number] ?? 0) + (busy[1][number] ?? 0)
        }
        let worst = reached.sorted().filter { graph.runners[$0].kind != .source }.max { count($0) < count($1) }
        guard let worst, count(worst) * 100 >= all * Self.leastPercent else { return nil }
        let runner = graph.runners[worst]
        return Culprit(id: runner.id, title: runner.title, percent: count(worst) * 100 / all)
    }

    // MARK: What is told

    private mutating func tell(
        _ chain: Chain, _ graph: RunningGraph, _ place: Place, _ reason: DropReason, _ count: Int, isLoss: Bool,
        now: Int64
    ) {
        guard count > 0 else { return }
        let before = seen[place.key]?[reason] ?? 0
        // A new queue between the same two stages counts from 0.
        let grown = count < before ? count : count - before
        seen[place.key, default: [:]][reason] = count
        let culprit = isLoss && grown > 0 ? culprit(behind: place.behind, in: graph) : nil
        if isLoss, grown > 0 { note(grown, at: place, culprit) }

        var last = told[place.key]?[reason]
        if let before = last, count < before.count { last = nil }
        if let last, count == last.count || now - last.at < Self.repeatNs { return }
        told[place.key, default: [:]][reason] = Told(count: count, at: now)
        let new = count - (last?.count ?? 0)
        var text = "\(new) dropped \(place.words) (\(reason.words)), \(count) in all."
        var details: [(String, JSONNode)] = [
            ("reason", .string(reason.name)), ("count", .number(new)), ("total", .number(count)),
            ("place", .string(place.words)),
        ]
        if let culprit {
            text +=
                " \(culprit.title) is too slow: it was at work \(culprit.percent) % of the time. Use a smaller picture, a lower rate or a faster setting."
            details += [("tooSlow", .string(culprit.id)), ("busyPercent", .number(culprit.percent))]
        } else if isLoss {
            text += " No stage was busy most of the time, so the machine may be too busy. Stop other programs."
        }
        chain.hub.post(
            Event(
                name: "frames-dropped", stage: place.stage, level: warns(of: place, isLoss, now: now),
                text: text, details: .object(details), time: chain.clock.now()))
    }

    private mutating func note(_ count: Int, at place: Place, _ culprit: Culprit?) {
        guard losses[place.words] != nil || losses.count < Self.mostPlaces else { return }
        losses[place.words, default: Loss(isEncoded: place.isEncoded)].count += count
        if let culprit { losses[place.words]!.blamed[culprit.title, default: 0] += count }
    }

    private mutating func warns(of place: Place, _ isLoss: Bool, now: Int64) -> Event.Level {
        guard isLoss, let loss = losses[place.words] else { return .debug }
        if let last = loss.warnedAt, now - last < Self.warnAgainNs { return .debug }
        losses[place.words]!.warnedAt = now
        return .warning
    }
}
