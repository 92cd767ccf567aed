// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// One change of a running chain, from the request to the answer.
///
/// It is planned and made while everything runs on. Then the threads that it concerns are asked; then it is committed,
/// once; then each of these threads does its part (``ThreadPart``) between two of its items. A change that concerns one
/// thread asks, commits and does the part in one errand, so that no frame meets one piece of it without the others.
///
/// 1. Before the commit, nothing that runs has changed but live options. These are all that is ever taken back.
/// 2. A commit is never undone. `Chain.graph` is always the chain that will be.
/// 3. A thread that stays gets one part for each change and does it before its next item: threads read errands before
///    other messages.
/// 4. Parts are posted consumers first. So a thread has done its part before it takes an item that its producer sent
///    after the producer's own part, and nobody waits for that: a writer has its copy pool before its input is shared.
/// 5. A part that is late belongs to its thread (``LateParts``). The next change that keeps this thread waits for it for
///    a second, and is then refused. A thread that ends settles its part as its last act.
/// 6. A branch that leaves has gone when the parts that let go of it are settled and its own threads have finished.
///
/// `@unchecked Sendable`: the desk's thread makes it; ``outcome``, ``frames``, ``missed`` and ``held`` are for any thread.
final class GraphChange: @unchecked Sendable {
    private enum Outcome: UInt8, AtomicRepresentable { case open, committed, refused }

    let chain: Chain
    let before: RunningGraph
    let isDraining: Bool
    private let planned: PlannedChain
    let assembly: GraphAssembly
    /// Instances that take the place of others of the same stage.
    var exchanges: [GraphAssembly.Exchange] { assembly.exchanges }
    let sets: [LiveSet]
    private let resets: ResetScope
    /// How many live options commands had set when this change was first planned. Later ones hold on.
    let optionCount: Int
    private let leaving: LeavingStages
    /// Stages that the plan does not have any more.
    var removed: [StageRunner] { leaving.runners }
    /// Consumers first.
    private let parts: [ThreadPart]
    let held: HeldQueues
    /// The parts with more than live options, and their errands, which are posted once the change is certain.
    private var errands: [(part: ThreadPart, errand: Errand)] = []
    /// Whoever sets it first decides.
    private let outcome = Atomic<Outcome>(.open)
    /// What was started and runs nowhere yet.
    private var begun: [(runner: StageRunner, instance: StageInstance)] = []
    /// Stages that stay and have another `onError`.
    private(set) var otherPolicies: [StageRunner] = []
    /// The threads that this change may need. Whatever it leaves with other threads has it too.
    private(set) var reserve: ThreadReserve?
    /// The first frame for which the whole change holds; nil where no frame number can say it.
    var frame: UInt64? { frames.withLock { $0 } }
    private let frames = Locked<UInt64?>(nil)
    /// Ids of stages that ended before they could be replaced.
    let missed = Locked<[String]>([])

    // MARK: Planning

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
            let change = try GraphChange(
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

    /// Plans the whole change and makes its parts. Opens nothing. Parameters as for ``made(_:to:isDraining:remaking:resetting:)``.
    ///
    /// - Throws: ``FrameHostErrors``; ``FrameHostError`` where the change would move a stage to another thread, or
    ///   where a stage that stays has not yet done its part of an earlier change.
    private init(
        _ chain: Chain, to request: ChainRequest, isDraining: Bool, remaking remade: Set<String>, resetting: ResetScope,
        optionCount: Int
    ) throws {
        let before = chain.graph
        let late = chain.lateParts.left(among: before.stageThreads, after: Chain.changePatienceNs, stop: chain.stop)
        var running = chain.runningChain(before, without: late)
        running.resets = resetting
        for id in remade { running.remake(id) }
        let planned = try ChainPlanner(request, clock: chain.clock, running: running).plan()
        let clashes = ChainNeighbours.shared.faults(of: chain, to: request, planned.plan)
        guard clashes.isEmpty else { throw FrameHostErrors(clashes) }
        // Where the thread leaves with all its stages, nothing waits for the part that it still has.
        let awaited = late.first { part in
            planned.stages.contains { before.runner(id: $0.id)?.thread === part.thread }
        }
        if let awaited { throw chain.late(awaited.thread, awaited.runner, isAwaited: true) }
        let assembly = try GraphAssembly(
            planned, request: request, running: before, timed: chain.isTimed, tracer: chain.tracer,
            frameLimit: request.frameLimit)
        (self.chain, self.before, self.planned, self.assembly) = (chain, before, planned, assembly)
        (self.isDraining, resets, self.optionCount) = (isDraining, resetting, optionCount)
        let kept = Set(assembly.graph.runners.map(\.number))
        let leaving = LeavingStages(before.runners.filter { !kept.contains($0.number) }, of: before)
        let sets = LiveSet.all(planned, before)
        let parts = assembly.graph.stageThreads.reversed().compactMap { stageThread -> ThreadPart? in
            let rewiring = assembly.rewirings.first { $0.stageThread === stageThread }
            let part = ThreadPart(
                stageThread: stageThread, sets: sets.filter { $0.runner.thread === stageThread.state },
                exchanges: assembly.exchanges.filter { $0.runner.thread === stageThread.state }, rewiring: rewiring,
                cut: leaving.cuts[stageThread.head.number])
            return part.hasWork || !part.sets.isEmpty ? part : nil
        }
        (self.leaving, self.sets, self.parts) = (leaving, sets, parts)
        held = HeldQueues(
            assembly.queuesOfSeveralThreads, step: assembly.stepOfHeldQueues, count: parts.count(where: \.hasWork) + 1)
    }

    /// Whether all of it concerns one thread, and no queue must be closed.
    private var isOnOneThread: Bool { parts.count == 1 && leaving.entrances.isEmpty && leaving.stageThreads.isEmpty }

    /// Each thread exchanges its stages at its own time, so a stage could get items in a format that it does not know
    /// yet, or does not know any more.
    private func refuseWhatNeedsOneThread() throws {
        if let exchange = exchanges.first(where: \.isOfOtherKind) {
            throw FrameHostError(
                .invalidConfiguration, place: FaultPlace(exchange.runner.id),
                what:
                    "'\(exchange.runner.id)' cannot be replaced with '\(exchange.instance.info.id)' together with the other parts of this change, which affect other threads",
                remedy: "First replace only '\(exchange.runner.id)', then make the other changes.")
        }
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
                    "needs a restart: '\(id)' would give \(FormatChange.words(from: [was], to: [after])), and the change affects several threads",
                remedy: PlanFaults.restart)
        }
    }

    // MARK: Making

    /// Starts what is new, asks, commits, and lets each thread do its part.
    ///
    /// - Throws: ``FrameHostErrors``, ``FrameHostError``, ``SetRefusal``; then the chain is as it was.
    private func make() throws {
        if !isOnOneThread { try refuseWhatNeedsOneThread() }
        try reserveThreads()
        defer { chain.starting.withLock { $0 = ([], []) } }
        do {
            try startStages()
            if isOnOneThread {
                try askAndPerform()
            } else {
                try ask()
                errands = parts.filter(\.hasWork).map { ($0, errand(for: $0)) }
                chain.willCommit()
                commit()
            }
        } catch {
            stopWhatHasBegun()
            throw error
        }
        chain.holdReadFiles()
        setPolicies()
        performParts()
        planned.connectKeptStages()
        settleOptions()
        for runner in assembly.newRunners { chain.post("stage-attached", runner.id, "\(runner.id) was attached.") }
    }

    /// Starts the threads of new stages, and of the ends of replaced and removed ones and of those whose thread ends
    /// before its part, while nothing is changed yet.
    ///
    /// - Throws: ``FrameHostError`` `.exhausted`.
    private func reserveThreads() throws {
        let orphans = assembly.rewirings.count { $0.members.contains(where: isNew) }
        let count = assembly.newThreads.count + exchanges.count + leaving.ends.count + orphans
        guard count > 0 else { return }
        do { reserve = try ThreadReserve(count, start: chain.startThread) } catch {
            let id = assembly.newRunners.first?.id ?? exchanges.first?.runner.id ?? removed.first?.id ?? ""
            throw Chain.withoutThread(.wrap(error), id)
        }
    }

    /// Starts consumers first, on this thread, which is watched like every other.
    private func startStages() throws {
        guard let thread = chain.changes.threads.first else { return }
        let new = assembly.newRunners.map { (runner: $0, instance: $0.instance) }
        let order = exchanges.map { (runner: $0.runner, instance: $0.instance) } + new
        chain.starting.withLock { $0 = (assembly.newRunners, exchanges.map(\.instance.context)) }
        for (runner, instance) in order.reversed() {
            do {
                if chain.stop.isRaised { throw FrameHostError(.stopped, what: "the run was stopped") }
                begun.append((runner, instance))
                try thread.call(.start, stage: runner.number) { try instance.stage.start() }
            } catch {
                throw FrameHostError.wrap(error, place: FaultPlace(stage: runner.id, title: runner.title))
            }
        }
    }

    /// The change is refused. What it has started ends on the thread that started it.
    private func stopWhatHasBegun() {
        guard let thread = chain.changes.threads.first else { return }
        for (runner, instance) in begun {
            do { try thread.call(.stop, stage: runner.number) { try instance.stop() } } catch {
                let fault = FrameHostError.wrap(error, place: runner.title)
                chain.post("stage-end-failed", runner.id, level: .warning, fault.description)
            }
        }
        // Later stages get the same numbers.
        chain.callFigures.withLock { figures in
            for runner in assembly.newRunners { figures[runner.number] = nil }
        }
    }

    // MARK: Asking

    /// All threads that must answer take their live options, and so show that they come. They have a second in all.
    ///
    /// - Throws: ``FrameHostError`` for a thread that is late, ``SetRefusal``. Then no option is set.
    private func ask() throws {
        let deadline = ChainClock.system.now() + Chain.changePatienceNs
        let asked = parts.filter(\.isAsked).map { part in
            let answer = Locked<Swift.Result<[LiveSet], any Error>>(.success([]))
            let errand = Errand { [self] in
                // Not under the lock: the stages' own code runs here.
                let result = Swift.Result { try take(part.sets) }
                answer.withLock { $0 = result }
            }
            errand.post(to: part.stageThread.state)
            return (part: part, errand: errand, answer: answer)
        }
        var refusal: (any Error)?
        var taken: [(part: ThreadPart, sets: [LiveSet])] = []
        for (part, errand, answer) in asked {
            let patience = refusal == nil ? max(deadline - ChainClock.system.now(), 0) : 0
            let outcome = errand.wait(patience, stop: chain.stop)
            do {
                if let fault = chain.fault(of: outcome, part.stageThread.state, part.runner) { throw fault }
                taken.append((part, try answer.withLock { $0 }.get()))
            } catch {
                refusal = refusal ?? error
            }
        }
        guard let refusal else { return }
        let back = taken.filter { !$0.sets.isEmpty }.map { taken in
            LateParts.Part(
                errand: Errand { [self] in takeBack(taken.sets) }, thread: taken.part.stageThread.state,
                runner: taken.part.runner)
        }
        for part in back { part.errand.post(to: part.thread, isRequired: true) }
        chain.lateParts.settled(back, after: Chain.changePatienceNs, stop: chain.stop)
        throw refusal
    }

    /// The only thread takes its options, commits and does its part between the same two items.
    private func askAndPerform() throws {
        let part = parts[0]
        let refusal = Locked<(any Error)?>(nil)
        let errand = Errand { [self] in
            do {
                let taken = try take(part.sets)
                if commit() { perform(part) } else { takeBack(taken) }
            } catch {
                refusal.withLock { $0 = error }
            }
        }
        errands = [(part, errand)]
        errand.post(to: part.stageThread.state)
        let answer = errand.wait(Chain.changePatienceNs, stop: chain.stop)
        if let refusal = refusal.withLock({ $0 }) { throw refusal }
        guard let fault = chain.fault(of: answer, part.stageThread.state, part.runner) else { return }
        // Where the run was stopped, the thread may have committed meanwhile.
        if outcome.compareExchange(expected: .open, desired: .refused, ordering: .acquiringAndReleasing).exchanged {
            throw fault
        }
    }

    // MARK: Committing

    /// [desk's thread; its thread where the change concerns one only] Makes the new graph the chain's.
    ///
    /// - Returns: False where the change was refused before.
    @discardableResult private func commit() -> Bool {
        guard outcome.compareExchange(expected: .open, desired: .committed, ordering: .acquiringAndReleasing).exchanged
        else { return false }
        for runner in assembly.newRunners {
            chain.adopt(runner)
            CrashReport.name(runner, in: chain)
        }
        chain.tracer?.follow(assembly.graph)
        let branch = LeavingBranch(
            runners: removed, queues: leaving.queues, stageThreads: leaving.stageThreads + leaving.ends,
            cuts: errands.filter { $0.part.cut != nil }.map(\.errand))
        chain.graphBox.withLock { present in
            let (leaving, departed) = (present.leaving, present.departed)
            present = assembly.graph
            present.leaving = leaving + (removed.isEmpty ? [] : [branch])
            present.departed = departed
        }
        assembly.graph.setMergeRules()
        chain.begin(stageThreads: assembly.newThreads, from: reserve)
        return true
    }

    /// Sets what the request says of failures.
    private func setPolicies() {
        for stage in assembly.graph.request.stages {
            guard let runner = assembly.graph.runner(id: stage.id), runner.onError != stage.onError else { continue }
            runner.onError = stage.onError
            otherPolicies.append(runner)
        }
    }

    // MARK: The parts

    /// Lets each thread do its part, unless the only one has done it. Then closes the links of what leaves, so that no
    /// thread waits there any more: at most the item that a tap has in hand finds the tap stopped.
    private func performParts() {
        if !isOnOneThread {
            for (part, errand) in errands { errand.post(to: part.stageThread.state, isRequired: true) }
        }
        settlePart()
        for runner in removed where runner.kind == .source { runner.shown.context.requestEnd() }
        // A tap holds nothing, and a thread that stays must not wait for the branch any more. A thread that leaves with
        // all its stages hands on what it has.
        for tap in leaving.stayingTaps { tap.stop.raise() }
        for queue in leaving.entrances { holds(from: queue.detach().map { $0 + 1 }) }
        let late = chain.lateParts.settled(
            errands.map { LateParts.Part(errand: $1, thread: $0.stageThread.state, runner: $0.runner) },
            after: Chain.changePatienceNs, stop: chain.stop)
        for (entry, isLate) in zip(errands, late) where isLate { report(entry.part) }
        guard !removed.isEmpty else { return }
        chain.post(
            "branch-detached", removed.first?.id,
            "\(removed.map(\.id).joined(separator: ", ")) \(removed.count == 1 ? "was" : "were") detached.")
    }

    /// Says what is done later, since a thread does not come.
    private func report(_ part: ThreadPart) {
        for exchange in part.exchanges {
            chain.post(
                "replace-waits", exchange.runner.id,
                "\(exchange.runner.title) has not returned from a call; it is replaced when it does.")
        }
        let head = part.stageThread.head
        if let cut = part.cut {
            // The thread may be waiting for the very branch that leaves.
            if part.stageThread.state.inside.load(ordering: .relaxed) == ThreadState.Place.chainWait {
                for queue in cut.behind { _ = queue.detach() }
            }
            chain.post(
                "detach-waits", head.id,
                "\(head.title) has not returned from a call; \(cut.ends.isEmpty ? "the change is complete" : "the detached stages on its thread end") when it does."
            )
        } else if part.exchanges.isEmpty {
            chain.post(
                "attach-waits", head.id,
                "\(head.title) has not returned from a call; the change is complete when it does.")
        }
    }

    /// [any thread] A part is done, or its thread has ended. A new stage behind an encoder can use nothing before the
    /// next keyframe, and asks for one once all links are there.
    func settlePart() {
        held.settle { last in
            holds(from: last.map { $0 + 1 })
            for runner in assembly.newRunners { runner.shown.context.keyframeRequest?.raise() }
        }
    }

    /// [any thread] Notes that a piece of the change holds from this frame on.
    func holds(from frame: UInt64?) {
        guard let frame else { return }
        frames.withLock { $0 = max($0 ?? frame, frame) }
    }

    func isNew(_ runner: StageRunner) -> Bool { assembly.isNew(runner) }

    /// Options that commands have set hold until the request says otherwise. Those of a stage of another type were
    /// forgotten when that took the place.
    private func settleOptions() {
        var late: [StageRunner] = []
        chain.liveOptions.withLock { options in
            for set in sets { options.forget(set.runner.number, keys: set.keys, setBefore: optionCount) }
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
        for runner in late { Errand { [self] in setAgain(runner) }.post(to: runner.thread, isRequired: true) }
    }
}
