// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// One change of a running chain, from the request to the last thread that has applied it. [desk's thread]
struct GraphChange {
    let chain: Chain
    let before: RunningGraph
    let isDraining: Bool
    let planned: PlannedChain
    let assembly: GraphAssembly
    /// Instances that take the place of others of the same stage.
    var exchanges: [GraphAssembly.Exchange] { assembly.exchanges }
    let sets: [LiveSet]
    private let resets: ResetScope
    /// How many live options commands had set when this change was first planned. Later ones hold on.
    let optionCount: Int
    /// Stages that the plan does not have any more.
    let removed: [StageRunner]
    /// Workers that have been rewired, or may have been.
    var rewired: [Worker] = []
    /// Whether instances may have been exchanged. Those end with their runners.
    var hasExchanged = false
    /// Stages that stay and have another `onError`.
    private(set) var otherPolicies: [StageRunner] = []
    /// Ids of stages that ended before they could be replaced.
    var missed: [String] = []
    /// The threads that this change may need. Whatever it leaves with other threads has it too.
    private(set) var reserve: ThreadReserve?
    /// The first frame for which the whole change holds; nil where no frame number can say it.
    private(set) var frame: UInt64?

    /// The live options in which a stage of the new request differs.
    struct LiveSet {
        var runner: StageRunner
        var options: [JSONNode.Member]
        /// What the request before says of them.
        var earlier: [JSONNode.Member]

        var keys: [String] { options.map(\.key) }

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

    /// A set that a stage has taken.
    struct TakenSet {
        var set: LiveSet
        /// What commands had set of it.
        var overridden: [LiveOptions.Entry]
        /// How many live options commands had set then.
        var optionCount: Int
    }

    /// The running stage refuses its live options. A new instance may take them.
    struct SetRefusal: Error {
        var stage: String
        var reason: any Error
    }

    /// Turns the running chain into the one that `request` asks for.
    ///
    /// - Parameters:
    ///   - remade: Stages that are made anew although their request has not changed. A stage that refuses its live
    ///     options becomes one of them.
    ///   - resetting: The stages whose live options become those of `request` again.
    /// - Throws: What `init` and ``make()`` throw. The chain is then as it was before.
    static func made(
        _ chain: Chain, to request: ChainRequest, isDraining: Bool, remaking remade: Set<String> = [],
        resetting: ResetScope = .none
    ) throws -> GraphChange {
        var remade = remade
        let optionCount = chain.liveOptions.withLock { $0.count }
        while true {
            var change = try GraphChange(
                chain, to: request, isDraining: isDraining, remaking: remade, resetting: resetting,
                optionCount: optionCount)
            do {
                try change.make()
                return change
            } catch let refusal as SetRefusal {
                guard remade.insert(refusal.stage).inserted else { throw refusal.reason }
            }
        }
    }

    /// Plans the whole change and makes its parts. Opens nothing.
    ///
    /// - Parameters:
    ///   - remade: Stages that are made anew although their request has not changed.
    ///   - resetting: The stages whose live options become those of `request` again.
    /// - Throws: ``FrameHostErrors``; ``FrameHostError`` where the change would move a stage to another thread, or
    ///   where a stage that stays has not yet done what an earlier change left with it.
    private init(
        _ chain: Chain, to request: ChainRequest, isDraining: Bool, remaking remade: Set<String>, resetting: ResetScope,
        optionCount: Int
    ) throws {
        self.chain = chain
        self.isDraining = isDraining
        before = chain.graph
        let open = chain.openErrands.left(among: before.workers, after: Chain.changePatienceNs, stop: chain.stop)
        var running = RunningChain(before.planned)
        running.liveOptions = chain.setOptions
        running.resets = resetting
        resets = resetting
        for id in remade { running.remake(id) }
        for runner in before.runners where !open.contains(where: { $0.thread === runner.thread }) {
            for (pool, isCopyPool) in [(runner.output?.pool, false), (runner.copyPool, true)] {
                guard let pool else { continue }
                let name = RunningChain.PoolName(stage: runner.id, isCopyPool: isCopyPool)
                running.pools[name]?.size = pool.bufferCount - chain.buffersLost(in: pool)
                running.pools[name]?.touched = pool.touchedCount
            }
        }
        let planned = try ChainPlanner(request, clock: chain.clock, running: running).plan()
        self.planned = planned
        let clashes = ChainNeighbours.shared.faults(of: chain, to: request, planned.plan)
        guard clashes.isEmpty else { throw FrameHostErrors(clashes) }
        // Where the thread leaves with all its stages, nothing waits for the errands that it still has.
        let awaited = open.first { [before] entry in
            planned.stages.contains { before.runner(id: $0.id)?.thread === entry.thread }
        }
        if let awaited { throw chain.late(awaited.thread, awaited.runner, isAwaited: true) }
        self.optionCount = optionCount
        sets = planned.stages.compactMap { [before] stage in
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
        assembly = try GraphAssembly(
            planned, request: request, running: before, timed: chain.isTimed, tracer: chain.tracer,
            frameLimit: request.frameLimit)
        let kept = Set(assembly.graph.runners.map(\.number))
        removed = before.runners.filter { !kept.contains($0.number) }
    }

    private func list(_ key: String, _ ids: [String]) -> JSONNode.Member? {
        ids.isEmpty ? nil : JSONNode.Member(key: key, value: JSONNode(.array(ids.map { JSONNode(.string($0)) })))
    }

    /// The members of the answer beside the frame. Of the stages in `missed` there is an event each, `replace-missed`.
    var answerDetails: [JSONNode.Member] { details + [list("missed", missed)].compactMap { $0 } }

    /// What was done: the members of the event.
    var details: [JSONNode.Member] {
        // Stages that the planner inserts, such as the tap of a copy, come and go with stages of the file.
        func named(_ runners: [StageRunner], in plan: ChainPlan) -> [String] {
            let inserted = Set(plan.stages.filter(\.isInserted).map(\.id))
            return runners.map(\.id).filter { !inserted.contains($0) }
        }
        return [
            list("attached", named(assembly.newRunners, in: assembly.graph.plan)),
            list("detached", named(removed, in: before.plan)),
            list("replaced", exchanges.map(\.runner.id).filter { !missed.contains($0) }),
            list("set", sets.map(\.runner.id)),
        ].compactMap { $0 }
    }

    // MARK: Making it

    /// Refuses a change of formats between stages that are exchanged. Each thread exchanges its stages at its own time,
    /// so a stage could get items in a format that it does not know yet, or does not know any more.
    private func refuseOtherFormats() throws {
        for exchange in exchanges {
            let id = exchange.runner.id
            guard let after = planned.stages.first(where: { $0.id == id })?.output,
                let was = before.planned.stages.first(where: { $0.id == id })?.output, !after.isAsGood(as: was)
            else { continue }
            throw FrameHostError(
                .invalidConfiguration,
                place: assembly.graph.request.stages.first { $0.id == id }?
                    .place(file: assembly.graph.request.file, of: "") ?? FaultPlace(id),
                what:
                    "needs a restart: '\(id)' would give \("\(after)" == "\(was)" ? "another kind of \(after)" : "\(after) instead of \(was)"), and the change affects several threads",
                remedy: PlanFaults.restart)
        }
    }

    /// Starts what is new, then lets every thread concerned apply its part.
    ///
    /// - Throws: ``FrameHostErrors``, ``FrameHostError``; then the chain is as it was.
    private mutating func make() throws {
        let leaving = makeLeaving()
        let thread = onlyThread(leaving)
        if thread == nil, let exchange = exchanges.first(where: \.isOfOtherKind) {
            throw FrameHostError(
                .invalidConfiguration, place: FaultPlace(exchange.runner.id),
                what:
                    "'\(exchange.runner.id)' cannot be replaced with '\(exchange.type.info.id)' together with the other parts of this change, which affect other threads",
                remedy: "First replace only '\(exchange.runner.id)', then make the other changes.")
        }
        if thread == nil { try refuseOtherFormats() }
        try reserveThreads(leaving)
        try startStages()
        for runner in assembly.newRunners {
            chain.adopt(runner)
            CrashReport.name(runner, in: chain)
        }
        chain.tracer?.follow(assembly.graph)
        chain.graphBox.withLock { present in
            var next = assembly.graph
            next.leaving = present.leaving
            next.departed = present.departed
            next.isProvisional = true
            next.mayLeave = (
                removed,
                before.queues.map(\.queue).filter { queue in !next.queues.contains { $0.queue === queue } },
                before.workers.filter { worker in !next.workers.contains { $0 === worker } }
            )
            present = next
        }
        assembly.graph.setMergeRules()
        chain.holdReadFiles()
        let held = HeldQueues(queuesOfSeveralThreads, step: stepOfHeldQueues)
        chain.begin(workers: assembly.newWorkers, from: reserve)
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
        chain.graphBox.withLock { $0.isProvisional = false }
        if thread == nil { exchangeInstances() }
        applyLast(leaving, isRewired: thread != nil, held)
        holds(from: held.settle().map { $0 + 1 })
        planned.connectKeptStages()
        askForKeyframes()
        setPolicies()
        settleOptions()
        for runner in assembly.newRunners { chain.post("stage-attached", runner.id, "\(runner.id) was attached.") }
    }

    /// Options that commands have set hold until the request says otherwise. Those that this change sets itself were
    /// forgotten when it did, and those of a stage of another type when that took the place.
    private func settleOptions() {
        var late: [StageRunner] = []
        chain.liveOptions.withLock { options in
            for runner in assembly.graph.runners {
                let id = runner.id
                guard let stage = planned.stages.first(where: { $0.id == id })?.request,
                    let was = before.planned.stages.first(where: { $0.id == id })?.request,
                    stage.type.info.id == was.type.info.id, let earlier = before.runner(id: id)
                else { continue }
                if isNew(runner) {
                    // It has begun with them, but for those that were set since.
                    options.move(from: earlier.number, to: runner.number)
                    if !options.options(of: runner.number, setAfter: optionCount).isEmpty { late.append(runner) }
                }
                let isMadeAnew = isNew(runner) || exchanges.contains { $0.runner === runner }
                if resets.contains(id) || (isMadeAnew && !stage.changedOptions(from: was).isEmpty) {
                    options.forget(runner.number, setBefore: optionCount)
                }
            }
            options.keep(stages: Set(assembly.graph.runners.map(\.number)))
        }
        let change = self
        for runner in late { Errand { change.setAgain(runner) }.post(to: runner.thread, isRequired: true) }
    }

    /// A new stage behind an encoder can use nothing before the next keyframe, and asks for one once its links are
    /// there. A stage that takes another's place asks at the moment of the exchange.
    private func askForKeyframes() {
        for runner in assembly.newRunners { runner.shown.context.keyframeRequest?.raise() }
    }

    /// Starts the threads of new stages, of the ends of replaced and removed ones, and of what ends where the change is
    /// taken back, before anything is touched.
    ///
    /// - Throws: ``FrameHostError`` `.exhausted`.
    private mutating func reserveThreads(_ leaving: Leaving) throws {
        let returning = assembly.rewirings.count { $0.members.contains(where: isNew) }
        let count = assembly.newWorkers.count + exchanges.count + leaving.inline.count + returning
        guard count > 0 else { return }
        do { reserve = try ThreadReserve(count, start: chain.startThread) } catch {
            let id = assembly.newRunners.first?.id ?? exchanges.first?.runner.id ?? removed.first?.id ?? ""
            throw Chain.withoutThread(.wrap(error), id)
        }
    }

    /// Starts consumers first, on this thread, which is watched like every other.
    private func startStages() throws {
        guard let thread = chain.changes.threads.first else { return }
        var begun: [(runner: StageRunner, instance: StageInstance)] = []
        let new = assembly.newRunners.map { (runner: $0, instance: $0.instance) }
        let order = exchanges.map { (runner: $0.runner, instance: $0.instance) } + new
        chain.starting.withLock { $0 = (assembly.newRunners, exchanges.map(\.context)) }
        defer { chain.starting.withLock { $0 = ([], []) } }
        for (runner, instance) in order.reversed() {
            do {
                if chain.stop.isRaised { throw FrameHostError(.stopped, what: "the run was stopped") }
                begun.append((runner, instance))
                try thread.call(.start, stage: runner.number) { try instance.stage.start() }
            } catch {
                for (runner, instance) in begun {
                    try? thread.call(.stop, stage: runner.number) { try instance.stop() }
                }
                // Later stages get the same numbers.
                chain.callFigures.withLock { figures in
                    for runner in assembly.newRunners { figures[runner.number] = nil }
                }
                throw FrameHostError.wrap(error, place: FaultPlace(stage: runner.id, title: runner.title))
            }
        }
    }

    /// See ``HeldQueues``.
    private var queuesOfSeveralThreads: [ItemQueue] {
        let entries = assembly.graph.queues.filter { entry in
            assembly.newQueues.contains { $0 === entry.queue }
                && !assembly.newRunners.contains { $0 === assembly.graph.runners[entry.link.from] }
        }
        let threads = Set(entries.map { ObjectIdentifier(assembly.graph.runners[$0.link.from].thread) })
        return threads.count > 1 ? entries.map(\.queue) : []
    }

    /// A join that matches by time waits until it knows what lies within half a frame, so three quarters of a frame
    /// are announced as empty. `StageRunner.tellLoss(upTo:after:)` does the same for a stage that delays.
    private var stepOfHeldQueues: Int64 {
        let plan = assembly.graph.plan
        let joins = plan.joins.filter { joined in
            assembly.newRunners.contains { $0 === assembly.graph.runners[joined.key] }
        }
        guard joins.values.allSatisfy({ $0.match == .nearest }) else { return 0 }
        return (joins.values.flatMap(\.frameTimes).filter { $0 > 0 }.min() ?? 0) / 4 * 3
    }

    /// Notes that a part of the change holds from this frame on.
    mutating func holds(from frame: UInt64?) {
        guard let frame else { return }
        self.frame = max(self.frame ?? frame, frame)
    }

    /// Sets what the request says of failures, once the change cannot be refused any more.
    private mutating func setPolicies() {
        for stage in assembly.graph.request.stages {
            guard let runner = assembly.graph.runner(id: stage.id), runner.onError != stage.onError else { continue }
            runner.onError = stage.onError
            otherPolicies.append(runner)
        }
    }
}
