// SPDX-License-Identifier: Apache-2.0

/// Finds the status of a chain, and posts the event `state` when it changes. The control thread calls it four times a
/// second.
struct HealthWatch {
    private static let pauseNs: Int64 = 250_000_000
    private var nextLook = Int64.min
    private var lastRuns: Chain.State?
    /// The last answer, which every thread may read.
    let status = Locked(ChainStatus(state: .stopped, stages: [], problems: []))
    /// A call that does not return is a hang for the chain's health only after this long, nanoseconds.
    static let hangNs: Int64 = 10_000_000_000
    /// A source that gives nothing for this long, and for at least the time of two frames, counts as not working.
    static let silenceNs: Int64 = 5_000_000_000
    /// A reader that was given a picture within this time, in nanoseconds, counts as looking.
    static let lookNs: Int64 = 2_000_000_000

    private struct Seen {
        var emitted: Int
        /// System clock.
        var since: Int64
    }
    private var sources: [Int: Seen] = [:]

    /// - Parameters:
    ///   - hanging: Calls that do not return, a sentence each.
    ///   - isLast: The run is over.
    mutating func look(at chain: Chain, now: Int64, isLast: Bool = false, hanging: () -> [String]) {
        let runs = chain.currentState
        // The watch looks at once when frames begin to flow, so that no answer is given before the first look.
        guard now >= nextLook || isLast || runs != lastRuns else { return }
        (nextLook, lastRuns) = (now + Self.pauseNs, runs)
        let graph = chain.graph
        var next = Self.words(of: chain, graph, runs, now: now)
        if runs.works {
            (next.problems, next.missing) = problems(graph, next.stages, chain, now: now)
            next.impaired = graph.runners.compactMap { runner in
                runner.shown.context.impairment.map { "\(runner.title) \($0)." }
            }
            next.problems += next.impaired + hanging()
        }
        let before = status.withLock { status in
            defer { status = next }
            return status
        }
        tell(before, next, chain, runs)
    }

    /// [any thread] The states of the chain and its stages, and the problems of a chain that does not work.
    static func words(of chain: Chain, _ graph: RunningGraph, _ runs: Chain.State, now: Int64) -> ChainStatus {
        let stages = graph.runners.map { state(of: $0, in: chain, runs) }
        let problems: [String] =
            switch runs {
            case .failed: ["The chain has failed."]
            case .stopped, .starting: ["The chain is \(runs.rawValue)."]
            case .finishing: failures(graph, stages)
            case .streaming, .draining: []
            }
        return ChainStatus(state: state(runs, stages, graph, now: now), stages: stages, problems: problems)
    }

    private static func failures(_ graph: RunningGraph, _ stages: [ChainStatus.Stage]) -> [String] {
        zip(graph.runners, stages).filter { $0.1.state == .failed }.map { "\($0.0.title) has failed." }
    }

    private static func state(of runner: StageRunner, in chain: Chain, _ runs: Chain.State) -> ChainStatus.Stage {
        var stage = ChainStatus.Stage(id: runner.id, state: .init(runs), reason: "")
        if runner.isDown {
            stage.state = .failed
            if runs == .streaming, let fault = chain.restarts.awaited(runner) {
                (stage.state, stage.reason) = (.recovering, fault)
            }
        } else if runs == .streaming || runs == .draining {
            if runner.isPaused {
                stage.state = .paused
            } else if let reason = runner.shown.context.recovering {
                (stage.state, stage.reason) = (.recovering, reason)
            }
        }
        return stage
    }

    private static func state(
        _ runs: Chain.State, _ stages: [ChainStatus.Stage], _ graph: RunningGraph, now: Int64
    ) -> ChainStatus.State {
        guard runs == .streaming else { return .init(runs) }
        if stages.contains(where: { $0.state == .recovering }) { return .recovering }
        let sources = zip(graph.runners, stages).filter { $0.0.isSource }
        if !sources.isEmpty, sources.allSatisfy({ $0.1.state == .paused }) { return .paused }
        let isLookedAt = graph.runners.contains {
            $0.pictures.hasGiven(within: lookNs, now: now) || $0.units.hasGiven(within: lookNs, now: now)
        }
        if isLookedAt { return .rendering }
        return .streaming
    }

    private mutating func problems(
        _ graph: RunningGraph, _ stages: [ChainStatus.Stage], _ chain: Chain, now: Int64
    ) -> (all: [String], missing: [String]) {
        var found = Self.failures(graph, stages)
        var missing: [String] = []
        var current: [Int: Seen] = [:]
        let paused = PausedWaits(graph)
        for (place, (runner, stage)) in zip(graph.runners, stages).enumerated() where runner.isSource {
            let emitted = runner.counters.emitted.value
            let shown = runner.shown
            var seen = sources[runner.number] ?? Seen(emitted: -1, since: now)
            if seen.emitted != emitted || stage.state == .paused || runner.thread.finished.load(ordering: .acquiring) {
                seen = Seen(emitted: emitted, since: now)
            }
            current[runner.number] = seen
            // Such a stage waits by itself. A failed stage that is started anew is another matter.
            let isAway = stage.state == .recovering && !runner.hasFailed
            let hasNeverBeenThere = isAway && shown.context.hasNeverBeenThere
            if hasNeverBeenThere {
                missing.append("\(runner.title) has not been connected yet: \(stage.reason).")
            }
            let silence = now - seen.since
            let frameTime = shown.output?.frameTime ?? 0
            guard silence > max(Self.silenceNs, 2 * frameTime), !hasNeverBeenThere else { continue }
            // Whatever somebody paused is as somebody wants it, and so is what waits for it.
            guard paused.wait(behind: place) == nil else { continue }
            let sentence = "\(runner.title) has given nothing for \(silence / 1_000_000_000) s"
            // Nothing stands in for it, and starting the chain anew would not bring it.
            if isAway { missing.append("\(sentence): \(stage.reason).") } else { found.append("\(sentence).") }
        }
        sources = current
        let chainNow = chain.clock.now()
        for entry in graph.queues {
            let since = entry.queue.stalledSince.load(ordering: .relaxed)
            if since != 0, chainNow - since >= StarvationWatch.stallPatienceNs,
                paused.wait(behind: entry.link.to) == nil
            {
                found.append(
                    "The link \(entry.queue.name) has been full for \((chainNow - since) / 1_000_000_000) s.")
            }
        }
        for pool in graph.pools {
            if let since = pool.starvedSinceTime, chainNow - since >= StarvationWatch.stallPatienceNs,
                paused.wait(for: pool) == nil
            {
                found.append("The pool '\(pool.name)' has been empty for \((chainNow - since) / 1_000_000_000) s.")
            }
        }
        return (found + missing, missing)
    }

    /// Posts what ``Chain`` itself does not post: the states of a chain that streams, and those of each stage.
    private func tell(_ before: ChainStatus, _ next: ChainStatus, _ chain: Chain, _ runs: Chain.State) {
        guard runs == .streaming else { return }
        let words: Set<ChainStatus.State> = [.rendering, .paused, .recovering]
        if before.state != next.state, words.contains(before.state) || words.contains(next.state) {
            chain.post(
                "state", nil, "chain: \(next.state.rawValue).",
                [JSONNode.Member(key: "state", value: .string(next.state.rawValue))])
        }
        for stage in next.stages {
            let was = before.stages.first { $0.id == stage.id }?.state
            let isTold = { (state: ChainStatus.State) in words.contains(state) || state == .failed }
            guard let was, was != stage.state, isTold(was) || isTold(stage.state) else { continue }
            var details = [JSONNode.Member(key: "state", value: .string(stage.state.rawValue))]
            if !stage.reason.isEmpty { details.append(JSONNode.Member(key: "reason", value: .string(stage.reason))) }
            chain.post("state", stage.id, "\(stage.id): \(stage.state.rawValue).", details)
        }
    }
}

extension Chain.State {
    /// Whether frames flow, or should flow.
    fileprivate var works: Bool { self == .streaming || self == .draining }
}

extension ChainStatus.State {
    init(_ state: Chain.State) {
        self =
            switch state {
            case .stopped: .stopped
            case .starting: .starting
            case .streaming: .streaming
            case .draining: .draining
            case .finishing: .finishing
            case .failed: .failed
            }
    }
}

extension Chain {
    /// [any thread] What people call the chain: its file's name without folder and `.json`.
    public var name: String { graph.request.name }
    /// [any thread] The folder where relative paths start.
    public var folder: String { graph.request.folder }
    /// [any thread] Live options that commands have set since the chain file's options were applied, by the stage's
    /// id.
    public var setOptions: [String: [JSONNode.Member]] {
        liveOptions.withLock { $0 }.byID(of: runners)
    }
    /// [any thread] The stage types that the chain has now, each once, in the order of its stages.
    public var stageTypes: [StageType] {
        var seen = Set<String>()
        return graph.request.stages.map(\.type).filter { seen.insert($0.info.id).inserted }
    }

    /// [any thread] What the chain and its stages are doing. While the chain runs, the problems are at most 0.3 s old.
    public var status: ChainStatus {
        let runs = currentState
        var status = HealthWatch.words(of: self, graph, runs, now: ChainClock.system.now())
        let last = health.withLock { $0 }
        if runs.works, ![.stopped, .starting].contains(last.state) {
            (status.problems, status.missing, status.impaired) = (last.problems, last.missing, last.impaired)
        }
        return status
    }
}
