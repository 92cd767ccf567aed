// SPDX-License-Identifier: Apache-2.0

/// All that one thread which stays does for a change, between the same two items.
struct ThreadPart {
    /// The stage thread whose thread it is.
    let stageThread: StageThread
    /// Live options that its stages take when they are asked.
    let sets: [LiveSet]
    /// Instances that take the place of others.
    let exchanges: [GraphAssembly.Exchange]
    /// Its new links, run and members; nil where these stay.
    let rewiring: GraphAssembly.Rewiring?
    /// What leaves the thread, or its links; nil where nothing does.
    let cut: LeavingStages.Cut?

    /// Whether the thread must answer before the change is made. A thread that only lets go of what leaves need not: it
    /// may be waiting for that very branch.
    var isAsked: Bool { cut == nil || !sets.isEmpty || !exchanges.isEmpty }

    /// Whether there is more to do than to take live options.
    var hasWork: Bool { rewiring != nil || !exchanges.isEmpty }

    /// The stage that is named where the thread does not answer.
    var runner: StageRunner { sets.first?.runner ?? exchanges.first?.runner ?? stageThread.head }
}

/// The live options in which a stage of the new request differs.
struct LiveSet {
    var runner: StageRunner
    var options: [JSONNode.Member]
    /// What the request before says of them.
    var earlier: [JSONNode.Member]

    var keys: [String] { options.map(\.key) }

    /// The live options that differ, of all stages that take them as they run.
    static func all(_ planned: PlannedChain, _ before: RunningGraph) -> [LiveSet] {
        planned.stages.compactMap { stage in
            guard case .kept(let options) = stage.origin, !options.isEmpty, let runner = before.runner(id: stage.id)
            else { return nil }
            let was = before.planned.stages.first { $0.id == stage.id }!.request
            let earlier = options.map { option in
                was.options.last { $0.key == option.key }
                    ?? JSONNode.Member(
                        key: option.key, value: was.type.options.first { $0.name == option.key }!.defaultValue)
            }
            return LiveSet(runner: runner, options: options, earlier: earlier)
        }
    }

    /// Without the options that are among `others`.
    func without(_ others: [JSONNode.Member]) -> LiveSet {
        var set = self
        for key in others.map(\.key) {
            set.options.removeAll { $0.key == key }
            set.earlier.removeAll { $0.key == key }
        }
        return set
    }
}

/// The running stage refuses its live options. A new instance may take them.
struct SetRefusal: Error {
    var stage: String
    var reason: any Error
}

/// What a thread does for a change. [the part's thread, between two items]
extension GraphChange {
    // MARK: Live options

    /// Sets live options, all or none.
    ///
    /// - Returns: What was set: what a command has set since the change was planned is newer, and is left alone.
    /// - Throws: ``SetRefusal``.
    func take(_ sets: [LiveSet]) throws -> [LiveSet] {
        var taken: [LiveSet] = []
        for set in sets {
            let (id, number) = (set.runner.id, set.runner.number)
            holds(from: set.runner.nextFrame)
            let set = set.without(chain.liveOptions.withLock { $0.options(of: number, setAfter: optionCount) })
            guard !set.options.isEmpty else { continue }
            do { try set.runner.instance.set(set.options) { key, _ in "\(id).\(key)" } } catch {
                takeBack(taken)
                throw SetRefusal(stage: id, reason: error)
            }
            taken.append(set)
        }
        return taken
    }

    /// Sets what held before, but for what commands have set since.
    func takeBack(_ taken: [LiveSet]) {
        for set in taken.reversed() {
            let (id, number) = (set.runner.id, set.runner.number)
            let (commanded, since) = chain.liveOptions.withLock {
                ($0[number], $0.options(of: number, setAfter: optionCount))
            }
            let left = set.without(since)
            guard !left.earlier.isEmpty else { continue }
            let earlier = left.earlier.overlaid(with: commanded.filter { left.keys.contains($0.key) })
            do { try set.runner.instance.set(earlier) { key, _ in FaultPlace(key) } } catch {
                chain.post(
                    "option-lost", id, level: .warning,
                    "\(id): the change was refused, but the stage refuses the earlier value of \(quotedList(earlier.map(\.key), "and")) and keeps the new one: \(error)"
                )
            }
        }
    }

    /// Gives a new instance what commands have set while it was being made.
    func setAgain(_ runner: StageRunner) {
        let id = runner.id
        func set(_ options: [JSONNode.Member]) throws {
            try runner.instance.set(options) { key, _ in FaultPlace(stage: id, words: "\(id).\(key)") }
        }
        let since = chain.liveOptions.withLock { $0.options(of: runner.number, setAfter: optionCount) }
        guard !since.isEmpty else { return }
        // Together first: one may need another.
        do { return try set(since) } catch {}
        for option in since {
            do { try set([option]) } catch {
                chain.liveOptions.withLock { $0.forget(runner.number, keys: [option.key]) }
                chain.post(
                    "option-lost", id, level: .warning,
                    "\(id): '\(option.key)' was set while the chain was being changed, but the stage that runs now refuses that value and keeps its own: \(error)"
                )
            }
        }
    }

    // MARK: The part

    func errand(for part: ThreadPart) -> Errand {
        Errand { [self] in
            perform(part)
        } refused: { [self] in
            settleEnded(part)
        }
    }

    func perform(_ part: ThreadPart) {
        guard part.hasWork else { return }
        // Stages that are taken from the middle of a run answer what they hold before the next item passes.
        for stage in part.cut?.middle ?? [] { stage.letGo(isDraining: isDraining) }
        for exchange in part.exchanges {
            perform(exchange)
            holds(from: exchange.runner.nextFrame)
        }
        if let rewiring = part.rewiring {
            rewiring.perform()
            // A queue that was closed has reported its own frame.
            let isToldByQueue = part.cut.map { $0.ends.isEmpty && assembly.newRunners.isEmpty } ?? false
            let first = rewiring.members.last { $0.output != nil && !isNew($0) } ?? part.stageThread.head
            if !isToldByQueue { holds(from: first.nextFrame) }
        }
        for end in part.cut?.ends ?? [] {
            end.adoptMembers()
            chain.begin(stageThreads: [end], from: reserve)
        }
        settlePart()
    }

    private func perform(_ exchange: GraphAssembly.Exchange) {
        let runner = exchange.runner
        let letFramesPass = runner.mode == .passes
        let isOfOtherType = runner.shown.info.id != exchange.instance.info.id
        chain.restarts.began(runner.number, now: ChainClock.system.now())
        let replaced = exchange.perform(isDraining: isDraining)
        stop(replaced, of: runner, hasFailed: runner.replacedHadFailed)
        if isOfOtherType { chain.liveOptions.withLock { $0.forget(runner.number) } } else { setAgain(runner) }
        chain.post("stage-replaced", runner.id, "\(runner.title): the new instance has replaced the one before.")
        // The pause was announced for an instance that frames could pass by.
        if letFramesPass, runner.mode == .drops {
            chain.post("stage-paused", runner.id, "\(runner.title) is paused: no frame passes meanwhile.")
        }
    }

    /// Ends a replaced instance on a thread of its own: finishing a file may take long.
    ///
    /// - Parameter hasFailed: Whether the instance had failed: its failure is known, and counts once.
    private func stop(_ instance: StageInstance, of runner: StageRunner, hasFailed: Bool = false) {
        let (chain, title) = (chain, runner.title)
        chain.beginEnding(name: "end:\(runner.id)", from: reserve) { thread in
            do {
                try thread.call(.stop, stage: runner.number) { try instance.stop() }
            } catch {
                let fault = FrameHostError.wrap(error, place: title)
                if !hasFailed { chain.failures.withLock { $0.append(fault) } }
                // Not as a failure of the stage: another instance runs.
                chain.post("stage-end-failed", runner.id, level: hasFailed ? .warning : .error, fault.description)
            }
        }
    }

    // MARK: A thread that has ended

    /// [the thread itself as its last act, or any thread after that] The thread ended before its part. Its stages have
    /// ended with their old instances, and those that were to leave have ended with it. What is new ends without an item.
    func settleEnded(_ part: ThreadPart) {
        for exchange in part.exchanges {
            stop(exchange.instance, of: exchange.runner)
            missed.withLock { $0.append(exchange.runner.id) }
            chain.post(
                "replace-missed", exchange.runner.id, level: .warning,
                "\(exchange.runner.title) ended before it could be replaced.")
        }
        // At the end of a run in which the thread hangs everything stays as it is.
        if part.stageThread.state.hasLetGo.load(ordering: .acquiring) {
            for end in part.cut?.ends ?? [] { end.state.finished.store(true, ordering: .releasing) }
            if let rewiring = part.rewiring { endWithoutItems(rewiring) }
        }
        settlePart()
    }

    private func endWithoutItems(_ rewiring: GraphAssembly.Rewiring) {
        let links = rewiring.outputs.flatMap { part in
            part.links.filter { link in !part.output.links.contains { $0 === link } }
        }
        let members = rewiring.members.filter(isNew)
        rewiring.perform()
        func endQueues() { for link in links { link.queue?.end() } }
        guard let first = members.first else { return endQueues() }
        let isStopped = chain.stop.isRaised
        // They remain members of the ended thread, as the plan says.
        chain.beginEnding(name: "end:\(first.id)", from: reserve) { thread in
            if !isStopped { for member in members { member.drain() } }
            endQueues()
            for member in members { member.stop(on: thread) }
        }
    }
}
