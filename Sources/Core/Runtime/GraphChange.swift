import Synchronization

/// One change of a running chain, from the request to the last thread that has applied it. [desk's thread]
struct GraphChange {
    private let chain: Chain
    private let before: RunningGraph
    private let isDraining: Bool
    private let planned: PlannedChain
    private let assembly: GraphAssembly
    /// Instances that take the place of others of the same stage.
    private var exchanges: [GraphAssembly.Exchange] { assembly.exchanges }
    private let sets: [LiveSet]
    private let resets: ResetScope
    /// Stages that are no more in the plan.
    private let removed: [StageRunner]
    /// The one thread that everything concerns has begun to put instances in each other's places.
    private let isExchanging = Locked(false)
    /// The frame from which on all of the change holds; nil where no frame can tell.
    private(set) var frame: UInt64?

    /// Live options that a stage of the new request has otherwise.
    private struct LiveSet {
        var runner: StageRunner
        var options: [JSONNode.Member]
        var earlier: [JSONNode.Member]

        /// [stage thread]
        ///
        /// - Throws: ``SetRefusal``.
        func perform() throws {
            do { try runner.instance.set(options) { key, _ in "\(runner.id).\(key)" } } catch {
                throw SetRefusal(stage: runner.id, reason: error)
            }
        }

        /// [stage thread]
        func takeBack() { try? runner.instance.set(earlier) { key, _ in FaultPlace(key) } }
    }

    /// The stage does not take its live options as it runs: a new instance may.
    struct SetRefusal: Error {
        var stage: String
        var reason: any Error
    }

    /// Makes the chain what `request` says.
    ///
    /// - Parameters:
    ///   - remade: Stages that are made anew though they are asked for as they run. One that refuses its live options
    ///     becomes one of them.
    ///   - resetting: Of which stages what commands have set is to be as `request` says.
    /// - Throws: As `init` and ``make()``; the chain is as it was then.
    static func made(
        _ chain: Chain, to request: ChainRequest, isDraining: Bool, remaking remade: Set<String> = [],
        resetting: ResetScope = .none
    ) throws -> GraphChange {
        var remade = remade
        while true {
            var change = try GraphChange(
                chain, to: request, isDraining: isDraining, remaking: remade, resetting: resetting)
            do {
                try change.make()
                return change
            } catch let refusal as SetRefusal {
                guard remade.insert(refusal.stage).inserted else { throw refusal.reason }
            }
        }
    }

    /// Plans the change whole and makes its parts; opens nothing.
    ///
    /// - Parameters:
    ///   - remade: Stages that are made anew though they are asked for as they run.
    ///   - resetting: Of which stages what commands have set is to be as `request` says.
    /// - Throws: ``FrameHostErrors``; ``FrameHostError`` where the change would move a stage to another thread.
    private init(
        _ chain: Chain, to request: ChainRequest, isDraining: Bool, remaking remade: Set<String>, resetting: ResetScope
    ) throws {
        self.chain = chain
        self.isDraining = isDraining
        before = chain.graph
        var running = RunningChain(before.planned)
        running.liveOptions = chain.liveOptions.withLock { $0 }
        running.resets = resetting
        resets = resetting
        for id in remade { running.remake(id) }
        for runner in before.runners {
            for (pool, isCopyPool) in [(runner.output?.pool, false), (runner.copyPool, true)] {
                guard let pool else { continue }
                let name = RunningChain.PoolName(stage: runner.id, isCopyPool: isCopyPool)
                running.pools[name]?.size = pool.bufferCount - chain.buffersLost(in: pool)
            }
        }
        let planned = try ChainPlanner(request, clock: chain.clock, running: running).plan()
        self.planned = planned
        let live = running.liveOptions
        sets = planned.stages.compactMap { [before] stage in
            guard case .kept(let options) = stage.origin, !options.isEmpty, let runner = before.runner(id: stage.id)
            else { return nil }
            let was = before.planned.stages.first { $0.id == stage.id }!.request
            let earlier = options.map { option in
                live[stage.id]?.last { $0.key == option.key } ?? was.options.last { $0.key == option.key }
                    ?? JSONNode.Member(
                        key: option.key, value: was.type.options.first { $0.name == option.key }!.defaultValue)
            }
            return LiveSet(runner: runner, options: options, earlier: earlier)
        }
        assembly = try GraphAssembly(
            planned, request: request, running: before, timed: chain.isTimed, frameLimit: request.frameLimit)
        let kept = Set(assembly.graph.runners.map(\.number))
        removed = before.runners.filter { !kept.contains($0.number) }
    }

    /// What the answer says beside the frame.
    var details: [JSONNode.Member] {
        func list(_ key: String, _ ids: [String]) -> JSONNode.Member? {
            ids.isEmpty ? nil : JSONNode.Member(key: key, value: JSONNode(.array(ids.map { JSONNode(.string($0)) })))
        }
        return [
            list("attached", assembly.newRunners.map(\.id)), list("detached", removed.map(\.id)),
            list("replaced", exchanges.map(\.runner.id)), list("set", sets.map(\.runner.id)),
        ].compactMap { $0 }
    }

    // MARK: Making it

    /// Each thread exchanges its stages at a time of its own: what one gives in another format would reach those behind
    /// it before they know, and what is on its way those who know it no more.
    private func refuseOtherFormats() throws {
        for exchange in exchanges {
            let id = exchange.runner.id
            guard let after = planned.stages.first(where: { $0.id == id })?.output,
                let was = before.planned.stages.first(where: { $0.id == id })?.output, !after.isAsGood(as: was)
            else { continue }
            throw FrameHostError(
                .invalidConfiguration, place: FaultPlace(id),
                what:
                    "needs a restart: '\(id)' would give \(after) instead of \(was), and stages on several threads work with what it gives",
                remedy: "Start the chain anew with it, or leave this as it runs.")
        }
    }

    /// Starts what is new, then lets every thread concerned take its part.
    ///
    /// - Throws: ``FrameHostErrors``, ``FrameHostError``; then the chain is as it was.
    private mutating func make() throws {
        let leaving = makeLeaving()
        let thread = onlyThread(leaving)
        if thread == nil, let exchange = exchanges.first(where: \.isOfOtherKind) {
            throw FrameHostError(
                .invalidConfiguration, place: FaultPlace(exchange.runner.id),
                what:
                    "a \(exchange.type.kind.rawValue) takes the place of a \(exchange.runner.kind.rawValue) only in a change that concerns no other thread",
                remedy: "Replace it alone.")
        }
        if thread == nil { try refuseOtherFormats() }
        try startStages()
        for runner in assembly.newRunners {
            chain.adopt(runner)
            CrashReport.name(runner)
        }
        chain.graphBox.withLock { present in
            var next = assembly.graph
            next.leaving = present.leaving
            next.departed = present.departed
            present = next
        }
        setRules(assembly.graph.request)
        let held = queuesOfSeveralThreads
        let step = stepOfHeldQueues
        for queue in held { queue.holdBack(step: step) }
        chain.begin(workers: assembly.newWorkers)
        do {
            if let thread {
                try applyAtOnce(on: thread, leaving)
            } else {
                try applyBefore(leaving)
                try setOptions()
            }
        } catch {
            takeBack()
            throw error
        }
        if thread == nil { exchangeInstances() }
        applyLast(leaving, isRewired: thread != nil)
        holds(from: FrameQueue.open(held).map { $0 + 1 })
        planned.connectKeyframeRequests()
        askForKeyframes()
        forgetOptions()
        for runner in assembly.newRunners { chain.post("stage-attached", runner.id, "\(runner.id) was attached.") }
    }

    /// What commands have set holds until the request says otherwise.
    private func forgetOptions() {
        chain.liveOptions.withLock { all in
            for id in all.keys {
                guard let stage = planned.stages.first(where: { $0.id == id })?.request,
                    let was = before.planned.stages.first(where: { $0.id == id })?.request,
                    stage.type.info.id == was.type.info.id
                else {
                    all[id] = nil
                    continue
                }
                if resets.contains(id) {
                    all[id] = nil
                    continue
                }
                let changed = stage.changedOptions(from: was)
                if stage.type === was.type, sets.contains(where: { $0.runner.id == id }) {
                    all[id]?.removeAll { changed.contains($0.key) }
                } else if !changed.isEmpty {
                    all[id] = nil
                }
            }
        }
    }

    /// A stage that is new behind an encoder can use nothing before its next keyframe, and asks for it once the links
    /// are there; one that takes another's place does so in that moment.
    private func askForKeyframes() {
        for runner in assembly.newRunners { runner.shown.context.keyframeRequest?.raise() }
    }

    /// Consumers first, on this thread, which is watched like any other.
    private func startStages() throws {
        guard let thread = chain.changes.threads.first else { return }
        var begun: [StageInstance] = []
        let new = assembly.newRunners.map { (runner: $0, instance: $0.instance) }
        let order = exchanges.map { (runner: $0.runner, instance: $0.instance) } + new
        for (runner, instance) in order.reversed() {
            do {
                if chain.stop.isRaised { throw FrameHostError(.stopped, what: "the run was stopped") }
                begun.append(instance)
                try thread.call(.start, stage: runner.number) { try instance.stage.start() }
            } catch {
                for instance in begun { try? instance.stage.stop() }
                throw FrameHostError.wrap(error, place: FaultPlace(stage: runner.id, title: runner.title))
            }
        }
    }

    /// The queues by which several threads that run feed what is new: each opens its links in its own time, and one that
    /// waited at a join meanwhile could be what another one waits for.
    private var queuesOfSeveralThreads: [FrameQueue] {
        let entries = assembly.graph.queues.filter { entry in
            assembly.newQueues.contains { $0 === entry.queue }
                && !assembly.newRunners.contains { $0 === assembly.graph.runners[entry.link.from] }
        }
        let threads = Set(entries.map { ObjectIdentifier(assembly.graph.runners[$0.link.from].thread) })
        return threads.count > 1 ? entries.map(\.queue) : []
    }

    /// A join that matches by time waits for news of what is as near as half a frame: three quarters are said to be empty.
    /// See ``StageRunner``'s news of what ended at a stage that delays.
    private var stepOfHeldQueues: Int64 {
        let plan = assembly.graph.plan
        let joins = plan.joins.filter { joined in
            assembly.newRunners.contains { $0 === assembly.graph.runners[joined.key] }
        }
        guard joins.values.allSatisfy({ $0.match == .nearest }) else { return 0 }
        return (joins.values.flatMap(\.frameTimes).filter { $0 > 0 }.min() ?? 0) / 4 * 3
    }

    /// Everything but what feeds branches that go, and the exchanges: may still be taken back. The threads of stages
    /// that are replaced are asked whether they answer, so that what follows finds them between two items.
    private mutating func applyBefore(_ leaving: Leaving) throws {
        for rewiring in assembly.rewirings.reversed() where !leaving.producers.contains(rewiring.worker.head.number) {
            try perform(rewiring)
        }
        for exchange in exchanges { try chain.perform(on: exchange.runner.thread, for: exchange.runner) {} }
    }

    // MARK: On one thread

    /// The thread that everything concerns, where one alone does and no queue is to be closed first.
    private func onlyThread(_ leaving: Leaving) -> ThreadState? {
        guard leaving.entrances.isEmpty, leaving.workers.isEmpty else { return nil }
        let threads =
            assembly.rewirings.map(\.worker.state) + sets.map(\.runner.thread) + exchanges.map(\.runner.thread)
        guard let first = threads.first, threads.allSatisfy({ $0 === first }) else { return nil }
        return first
    }

    /// All parts between the same two items: no frame sees one without the others.
    private mutating func applyAtOnce(on thread: ThreadState, _ leaving: Leaving) throws {
        let change = self
        let failure = Locked<(any Error)?>(nil)
        let frames = Locked<[UInt64]>([])
        let first = sets.first?.runner ?? exchanges.first?.runner ?? assembly.rewirings[0].worker.head
        try chain.perform(on: thread, for: first) {
            do {
                // What may fail comes first.
                for (index, set) in change.sets.enumerated() {
                    do {
                        try set.perform()
                    } catch {
                        for set in change.sets[..<index].reversed() { set.takeBack() }
                        throw error
                    }
                }
            } catch {
                return failure.withLock { $0 = error }
            }
            change.isExchanging.withLock { $0 = true }
            for exchange in change.exchanges {
                let old = exchange.perform(isDraining: change.isDraining)
                frames.withLock { $0.append(exchange.runner.nextFrame) }
                change.stop(old, of: exchange.runner)
            }
            for set in change.sets { frames.withLock { $0.append(set.runner.nextFrame) } }
            for rewiring in change.assembly.rewirings {
                frames.withLock { $0.append(change.concerned(rewiring).nextFrame) }
                rewiring.perform()
            }
        }
        if let error = failure.withLock({ $0 }) { throw error }
        for frame in frames.withLock({ $0 }) { holds(from: frame) }
        for exchange in exchanges { announce(exchange) }
    }

    private func announce(_ exchange: GraphAssembly.Exchange) {
        let runner = exchange.runner
        chain.post("stage-replaced", runner.id, "\(runner.id) was replaced.")
    }

    /// Whose next frame is the first that goes the new way.
    private func concerned(_ rewiring: GraphAssembly.Rewiring) -> StageRunner {
        rewiring.members.last { member in
            member.output != nil && !assembly.newRunners.contains { $0 === member }
        } ?? rewiring.worker.head
    }

    // MARK: On several threads

    /// From the first exchange on there is no way back: an instance that has drained cannot go on. A thread that does not
    /// come to it in time does so later.
    private mutating func exchangeInstances() {
        for exchange in exchanges {
            let (change, runner) = (self, exchange.runner)
            let frame = Locked<UInt64?>(nil)
            let errand = Errand {
                let old = exchange.perform(isDraining: change.isDraining)
                frame.withLock { $0 = runner.nextFrame }
                change.stop(old, of: runner)
            }
            errand.post(to: runner.thread)
            let outcome = errand.wait(Chain.changePatienceNs, withdrawing: false, stop: chain.stop)
            holds(from: frame.withLock { $0 })
            switch outcome {
            case .done: announce(exchange)
            case .refused: stop(exchange.instance, of: runner)
            case .underWay, .withdrawn:
                chain.post(
                    "replace-waits", runner.id, "\(runner.title) has not come back; it is replaced when it does.")
            }
        }
    }

    private mutating func perform(_ rewiring: GraphAssembly.Rewiring) throws {
        let frame = Locked<UInt64?>(nil)
        let concerned = concerned(rewiring)
        try chain.perform(on: rewiring.worker.state, for: rewiring.worker.head) {
            rewiring.perform()
            frame.withLock { $0 = concerned.nextFrame }
        }
        holds(from: frame.withLock { $0 })
    }

    /// A part of the change holds from there on.
    private mutating func holds(from frame: UInt64?) {
        guard let frame else { return }
        self.frame = max(self.frame ?? frame, frame)
    }

    /// The instance that was replaced ends on a thread of its own: finishing a file may take its time.
    private func stop(_ instance: StageInstance?, of runner: StageRunner) {
        guard let instance else { return }
        let title = runner.title
        let chain = chain
        chain.beginEnding(name: "end:\(runner.id)") { thread in
            do {
                try thread.call(.stop, stage: runner.number) { try instance.stage.stop() }
            } catch {
                chain.failures.withLock { $0.append(.wrap(error, place: title)) }
            }
        }
    }

    private mutating func setOptions() throws {
        var done: [LiveSet] = []
        for set in sets {
            let failure = Locked<(any Error)?>(nil)
            let frame = Locked<UInt64?>(nil)
            do {
                try chain.perform(on: set.runner.thread, for: set.runner) {
                    frame.withLock { $0 = set.runner.nextFrame }
                    do {
                        try set.perform()
                    } catch {
                        failure.withLock { $0 = error }
                    }
                }
                if let error = failure.withLock({ $0 }) { throw error }
                holds(from: frame.withLock { $0 })
                done.append(set)
            } catch {
                for set in done.reversed() {
                    try? chain.perform(on: set.runner.thread, for: set.runner) { set.takeBack() }
                }
                throw error
            }
        }
    }

    /// What the chain file says of stages that any thread may look at.
    private func setRules(_ request: ChainRequest) {
        for stage in request.stages { chain.graph.runner(id: stage.id)?.onError = stage.onError }
    }

    /// The graph as it was; what was begun ends.
    private func takeBack() {
        var branch = LeavingBranch(
            runners: assembly.newRunners, queues: assembly.newQueues, workers: assembly.newWorkers,
            uncut: LeavingBranch.Uncut(assembly.earlier.count))
        branch.isRefused = true
        for queue in assembly.newQueues { _ = queue.detach() }
        for worker in assembly.newWorkers where worker.head.kind == .source { worker.head.shown.context.requestEnd() }
        chain.graphBox.withLock { present in
            let (leaving, departed) = (present.leaving, present.departed)
            let number = present.nextNumber
            present = before
            present.leaving = leaving + (branch.workers.isEmpty ? [] : [branch])
            present.departed = departed
            present.nextNumber = number
        }
        setRules(before.request)
        for rewiring in assembly.earlier {
            Errand {
                rewiring.perform()
                branch.uncut.count.subtract(1, ordering: .releasing)
            }.post(to: rewiring.worker.state)
        }
        // Where the run was stopped in the middle of that, they are their runners' and end with them.
        guard !isExchanging.withLock({ $0 }) else { return }
        for exchange in exchanges { stop(exchange.instance, of: exchange.runner) }
    }

    // MARK: Branches that go

    private struct Leaving {
        /// Queues between what stays and what goes.
        var entrances: [FrameQueue] = []
        /// Heads of the workers that feed them, or run what goes.
        var producers: Set<Int> = []
        /// Runs that go from a thread that stays.
        var inline: [(producer: Worker, run: InlineRun, members: [StageRunner])] = []
        /// Queues behind such runs, by the head of the thread that fills them.
        var behindInline: [Int: [FrameQueue]] = [:]
        var workers: [Worker] = []
        var queues: [FrameQueue] = []
    }

    private func makeLeaving() -> Leaving {
        var leaving = Leaving()
        let numbers = Set(removed.map(\.number))
        for entry in before.queues where numbers.contains(before.runners[entry.link.to].number) {
            leaving.queues.append(entry.queue)
            let from = before.runners[entry.link.from]
            guard !numbers.contains(from.number) else { continue }
            leaving.entrances.append(entry.queue)
            if let worker = before.workers.first(where: { $0.state === from.thread }) {
                leaving.producers.insert(worker.head.number)
            }
        }
        for worker in before.workers {
            if numbers.contains(worker.head.number) {
                leaving.workers.append(worker)
                continue
            }
            let members = worker.members.filter { numbers.contains($0.number) }
            guard !members.isEmpty else { continue }
            leaving.producers.insert(worker.head.number)
            leaving.behindInline[worker.head.number] = before.queues.filter { entry in
                members.contains { $0 === before.runners[entry.link.from] }
            }.map(\.queue)
            // What lies behind such a run ends with it.
            let ends = before.runners.flatMap { runner in
                runner.thread === worker.state && !numbers.contains(runner.number) ? runner.output?.links ?? [] : []
            }
            let runs = ends.compactMap(\.inline).filter { numbers.contains($0.stages[0].number) }
            for run in runs { leaving.inline.append((worker, run, members)) }
        }
        return leaving
    }

    /// The links of what goes are closed, so that nobody waits there any more; then the threads that feed them let go
    /// of them. One that does not come to it in time does so later: to the closed link it gives nothing.
    ///
    /// - Parameter isRewired: Whether those threads have let go of them already.
    private mutating func applyLast(_ leaving: Leaving, isRewired: Bool) {
        guard !removed.isEmpty else { return }
        let rewirings = isRewired ? [] : assembly.rewirings.filter { leaving.producers.contains($0.worker.head.number) }
        let uncut = LeavingBranch.Uncut(rewirings.count)
        var branch = LeavingBranch(
            runners: removed, queues: leaving.queues, workers: leaving.workers, uncut: uncut)
        for part in leaving.inline {
            branch.workers.append(Worker(ending: part.run, members: part.members))
        }
        chain.graphBox.withLock { $0.leaving.append(branch) }
        for runner in removed where runner.kind == .source { runner.shown.context.requestEnd() }
        // A tap holds nothing; the thread it runs on is not to wait for the branch any more.
        for runner in removed where runner.isTap { runner.stop.raise() }
        for queue in leaving.entrances { holds(from: queue.detach().map { $0 + 1 }) }
        let allEnds = branch.workers.suffix(leaving.inline.count)
        if isRewired {
            for end in allEnds {
                end.adoptMembers()
                chain.begin(workers: [end])
            }
        }
        for rewiring in rewirings {
            let ends = zip(leaving.inline, allEnds).filter { $0.0.producer === rewiring.worker }.map(\.1)
            let (chain, worker, concerned) = (chain, rewiring.worker, concerned(rewiring))
            // A queue that was closed has told its own frame.
            let tells = leaving.inline.contains { $0.producer === worker } || !assembly.newRunners.isEmpty
            let frame = Locked<UInt64?>(nil)
            let errand = Errand {
                rewiring.perform()
                if tells { frame.withLock { $0 = concerned.nextFrame } }
                for end in ends {
                    end.adoptMembers()
                    chain.begin(workers: [end])
                }
                uncut.count.subtract(1, ordering: .releasing)
            }
            errand.post(to: worker.state)
            let outcome = errand.wait(Chain.changePatienceNs, withdrawing: false, stop: chain.stop)
            holds(from: frame.withLock { $0 })
            if outcome != .done, !ends.isEmpty {
                // It may wait for the very branch that is to go.
                if worker.state.inside.load(ordering: .relaxed) == ThreadState.Place.chainWait {
                    for queue in leaving.behindInline[worker.head.number] ?? [] { _ = queue.detach() }
                }
                chain.post(
                    "detach-waits", worker.head.id,
                    "\(worker.head.title) has not come back; what ran on its thread ends after that.")
            }
        }
        chain.post(
            "branch-detached", removed.first?.id,
            "\(removed.map(\.id).joined(separator: ", ")) \(removed.count == 1 ? "was" : "were") detached.")
    }
}
