// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Changes of a chain's structure while it runs. Each request is answered once, from the desk's thread, where a
/// `GraphChange` carries it out. docs/design/009-running-graph.md.
extension Chain {
    /// How long a change waits for a stage that is in its own code before it gives up, nanoseconds.
    static let changePatienceNs: Int64 = 1_000_000_000

    // MARK: Any thread

    /// [any thread] Pauses a stage. The answer comes once nothing is inside the stage, and says so where the stage is
    /// paused that way already.
    ///
    /// A paused source gives nothing. A paused filter lets frames pass, or drops them where they must not pass or
    /// `isDropping` says so. Any other paused stage drops what comes. Dropped items are counted as `paused`.
    ///
    /// - Parameters:
    ///   - id: The stage's id in the chain file.
    ///   - isDropping: Whether a filter drops what comes.
    ///   - reply: Called with the answer on the desk's thread.
    public func pause(stage id: String, isDropping: Bool = false, reply: @escaping CommandReply) {
        setMode(of: id, isDropping ? .drops : .passes, reply)
    }

    /// [any thread] Lets a paused stage go on. The first item that it takes is marked as the first after a gap, and
    /// access units begin with a keyframe. The answer says so where the stage is not paused.
    public func resume(stage id: String, reply: @escaping CommandReply) { setMode(of: id, .runs, reply) }

    private func setMode(of id: String, _ mode: StageRunner.Mode, _ reply: @escaping CommandReply) {
        change(id, reply) { [unowned self] in
            guard let runner = graph.runner(id: id) else { throw unknown(id) }
            let outcome = Locked(StageRunner.ModeChange.refused)
            let frame = Atomic<UInt64>(0)
            try perform(on: runner.thread, for: runner) {
                outcome.withLock { $0 = runner.setMode(mode) }
                frame.store(runner.nextFrame, ordering: .relaxed)
            }
            let next = frame.load(ordering: .relaxed)
            switch outcome.withLock({ $0 }) {
            case .done: break
            case .unchanged: return (next, [], mode == .runs ? "\(id): is not paused." : "\(id): is already paused.")
            case .refused: throw failed(runner)
            }
            let name = mode == .runs ? "stage-resumed" : "stage-paused"
            let isHeld = runner.shown.demand.mustNotBePassed
            let how = mode == .runs ? "goes on" : isHeld ? "is paused: no frame passes meanwhile" : "is paused"
            post(name, runner.id, "\(runner.title) \(how).")
            return (next, [], nil)
        }
    }

    /// [any thread] Turns the running chain into another one: the chain that `request` returns, planned against what
    /// runs.
    ///
    /// Stages of the same id, kind and options stay as they are. Where only live options differ, they are set; any
    /// other difference replaces the stage's instance. New stages begin, and stages that are gone end. An error changes
    /// nothing at all.
    ///
    /// - Parameters:
    ///   - id: The stage whose frame the answer names; nil for the first source.
    ///   - isDraining: Whether an instance that is replaced first answers what it holds.
    ///   - resetting: The stages whose live options become those of the new chain, even where commands have set
    ///     them.
    ///   - request: Called on the desk's thread with what runs.
    ///   - committed: Called there once the change is made.
    ///   - details: Called there for further members of the answer.
    ///   - reply: Called there with the answer, after `committed`.
    public func change(
        stage id: String?, isDraining: Bool = true, resetting: ResetScope = .none,
        to request: @escaping (ChainRequest) throws -> ChainRequest,
        committed: @escaping () -> Void = {}, details: @escaping () -> [JSONNode.Member] = { [] },
        reply: @escaping CommandReply
    ) {
        change(id, reply) { [unowned self] in
            let change = try judging {
                let next = try request(graph.request)
                // A failed stage is replaced by another instance even where nothing differs.
                let remade = next.stages.filter { $0.isReplacement && graph.runner(id: $0.id)?.isDown == true }
                let change = try GraphChange.made(
                    self, to: next, isDraining: isDraining, remaking: Set(remade.map(\.id)), resetting: resetting)
                settle(change)
                return change
            }
            committed()
            post(
                "structure-changed", nil, level: .debug,
                "chain: changed while running; it has \(runners.count) \(runners.count == 1 ? "stage" : "stages").",
                change.details)
            let runner = id.flatMap { graph.runner(id: $0) } ?? runners.first
            return (change.frame ?? runner?.nextFrame ?? 0, change.answerDetails + details(), nil)
        }
    }

    /// Lets the desk perform `body`, and answers with what it returns or throws. A text replaces the usual sentence.
    private func change(
        _ id: String?, _ reply: @escaping CommandReply,
        _ body: @escaping () throws -> (frame: UInt64, details: [JSONNode.Member], text: String?)
    ) {
        changes.post { [unowned self] in
            do {
                guard !changes.isClosed else { throw refused(id, .ended) }
                let (frame, details, text) = try body()
                reply(CommandAnswer(stage: id, frame: frame, details: details, text: text))
            } catch {
                reply(CommandAnswer(stage: id, error: error))
            }
        } refuse: { [unowned self] refusal in
            reply(CommandAnswer(stage: id, error: refused(id, refusal)))
        } start: { [unowned self] thread, work in
            try beginChanges(thread, work)
        }
    }

    /// The fault of a change for which the system gives no thread.
    static func withoutThread(_ fault: FrameHostError, _ place: String) -> FrameHostError {
        var fault = FrameHostError(
            .exhausted, place: FaultPlace(place), what: "\(fault.what), so nothing was changed",
            remedy:
                "Raise the limit of processes (ulimit -u, TasksMax= of a service, or the pids limit of a container), or detach a branch that has a thread of its own, then send the command again."
        )
        fault.isBusy = true
        return fault
    }

    private func refused(_ id: String?, _ refusal: ChangeDesk.Refusal) -> FrameHostError {
        if case .noThread(let fault) = refusal { return Self.withoutThread(fault, id ?? "") }
        let isFull = if case .full = refusal { true } else { false }
        var fault = FrameHostError(
            .unavailable, place: id ?? "",
            what: isFull
                ? "\(ChangeDesk.mostWaiting) changes are already waiting"
                : "the chain has ended, or is about to end",
            remedy: isFull
                ? "Send the command again when they are answered." : "Start the chain again, then send the command.")
        (fault.isBusy, fault.mayBeOfEnd) = (isFull, !isFull)
        return fault
    }

    func unknown(_ id: String) -> FrameHostError {
        let ids = runners.map(\.id)
        return FrameHostError(
            .invalidConfiguration, place: id, what: "no such stage",
            remedy: Suggestion.nearest(to: id, in: ids).map { "Did you mean '\($0)'?" }
                ?? "The chain has \(quotedList(ids, "and")).", reason: .noSuchStage)
    }

    /// [desk's thread] Forgets the failures of stages that a change has replaced. Where a stage that it has removed was
    /// to be started anew, its fault counts.
    private func settle(_ change: GraphChange) {
        // A thread that is late exchanges its instance later; until then the stage is as failed as before.
        for exchange in change.exchanges { restarts.forgetUnlessFailed(exchange.runner) }
        let owed = change.removed.compactMap { restarts.forget($0) }
        failures.withLock { $0 += owed }
    }

    /// [control thread] Makes and starts a failed stage anew.
    ///
    /// - Parameter number: The stage's number.
    func restart(_ number: Int) {
        changes.post { [unowned self] in
            guard !changes.isClosed, let runner = graph.runners.first(where: { $0.number == number }),
                restarts.awaited(runner) != nil, runner.isDown
            else { return }
            let id = runner.id
            // Its input has ended, and so it has.
            guard !runner.thread.isClosed else { return judgeAgain(runner, nil) }
            // A call of another stage that does not return is not a failure of this one.
            guard lateParts.left(among: graph.stageThreads, after: 0, stop: stop).isEmpty else {
                return restarts.waitForMore(number, now: ChainClock.system.now())
            }
            do {
                // The old instance stops first, since the new one may open what it still has open.
                try perform(on: runner.thread, for: runner) { runner.stopFailedInstance(on: runner.thread) }
                _ = try judging {
                    try GraphChange.made(self, to: graph.request, isDraining: false, remaking: [id])
                }
                post("stage-restarted", id, "\(runner.title) was restarted.")
            } catch {
                let fault = FrameHostError.wrap(error, place: runner.title)
                // A thread that has no time for the change is no failure of this stage either.
                guard !fault.isBusy else { return restarts.waitForMore(number, now: ChainClock.system.now()) }
                let isStopped = stop.isRaised || drainRequested.load(ordering: .acquiring)
                guard !fault.mayBeOfEnd, !isStopped || fault.code != .stopped else { return judgeAgain(runner, nil) }
                judgeAgain(runner, fault)
                var told = fault
                if restarts.awaited(runner) != nil {
                    let own = fault.remedy.isEmpty && fault.code == .broken ? FrameHostError.report : fault.remedy
                    told.remedy = own + (own.isEmpty ? "" : " ") + "framehost tries again by itself."
                }
                post("restart-failed", id, level: .warning, told.description)
            }
        } refuse: { [unowned self] refusal in
            // `Restarts.due` names a stage only once.
            switch refusal {
            case .full, .noThread: restarts.waitForMore(number, now: ChainClock.system.now())
            case .ended: break
            }
        } start: { [unowned self] thread, work in
            try beginChanges(thread, work)
        }
    }

    // MARK: The desk's thread

    /// What runs, for the planner.
    ///
    /// - Parameter late: Parts of earlier changes that may still exchange pools.
    func runningChain(_ graph: RunningGraph, without late: [LateParts.Part]) -> RunningChain {
        var running = RunningChain(graph.planned)
        running.liveOptions = setOptions
        for runner in graph.runners where !late.contains(where: { $0.thread === runner.thread }) {
            for (pool, isCopyPool) in [(runner.output?.pool, false), (runner.copyPool, true)] {
                guard let pool else { continue }
                let name = RunningChain.PoolName(stage: runner.id, isCopyPool: isCopyPool)
                running.pools[name]?.size = pool.bufferCount - buffersLost(in: pool)
                running.pools[name]?.touched = pool.touchedCount
            }
        }
        return running
    }

    /// Starts the thread that makes changes. The run waits for it as for any other thread.
    ///
    /// - Throws: ``FrameHostError`` `.exhausted`. The run goes on.
    func beginChanges(_ thread: ThreadState, _ work: @escaping () -> Void) throws {
        tracer?.follow(thread)
        running.add([thread])
        // The closure keeps the chain alive while a change is made.
        try start(thread, isBatch: false) { [self] in withExtendedLifetime(self) { work() } }
    }

    /// Starts a thread on which something ends, which may take long.
    func beginEnding(name: String, from reserve: ThreadReserve?, _ body: @escaping (ThreadState) -> Void) {
        let thread = ThreadState(name: name)
        endings.withLock { threads in
            threads.removeAll { $0.finished.load(ordering: .acquiring) }
            threads.append(thread)
        }
        begin([(thread, { body(thread) })], isBatch: false, from: reserve)
    }

    func post(
        _ event: String, _ stage: String?, level: Event.Level = .info, _ text: String,
        _ details: [JSONNode.Member] = []
    ) {
        hub.post(
            Event(
                name: event, stage: stage, level: level, text: text, details: JSONNode(.object(details)),
                time: clock.now()))
    }

    /// Lets `thread` do something between two items.
    ///
    /// - Throws: ``FrameHostError`` when the thread does not do it within a second, has no room for it, or has ended.
    func perform(on thread: ThreadState, for runner: StageRunner, _ body: @escaping () -> Void) throws {
        if let fault = ask(thread, for: runner, body).fault { throw fault }
    }

    /// As ``perform(on:for:_:)``. Also returns whether the thread has begun with it, or may have.
    func ask(
        _ thread: ThreadState, for runner: StageRunner, _ body: @escaping () -> Void
    ) -> (hasBegun: Bool, fault: FrameHostError?) {
        let errand = Errand(body)
        errand.post(to: thread)
        let outcome = errand.wait(Self.changePatienceNs, stop: stop)
        return (outcome == .done || outcome == .underWay, fault(of: outcome, thread, runner))
    }

    /// The fault of a thread that was asked for `runner` and has not done it; nil where it has.
    func fault(of outcome: Errand.Outcome, _ thread: ThreadState, _ runner: StageRunner) -> FrameHostError? {
        switch outcome {
        case .done: nil
        case .refused where !thread.isClosed: Self.crowded(runner.title)
        case .refused, .underWay: Self.ended(runner.title)
        case .withdrawn: late(thread, runner)
        }
    }

    /// The thread of a stage has no room for a further message.
    static func crowded(_ title: String) -> FrameHostError {
        var fault = FrameHostError(
            .unavailable, place: title,
            what: "\(ThreadState.mostMessages) commands are already waiting, so nothing was changed",
            remedy: "Send the command again when they are answered.")
        fault.isBusy = true
        return fault
    }

    /// `odd (misbehave): its call 'process' of frame 12 has not returned for 1.0 s`
    ///
    /// - Parameter isAwaited: Whether the thread still has work of an earlier change to do.
    func late(_ thread: ThreadState, _ runner: StageRunner, isAwaited: Bool = false) -> FrameHostError {
        let seconds = Self.changePatienceNs / 1_000_000_000
        let outcome = (isAwaited ? "; an earlier change still waits for that" : "") + ", so nothing was changed"
        let inside = Int(thread.inside.load(ordering: .relaxed))
        var fault: FrameHostError
        if let busy = graph.runner(number: inside) {
            let call = thread.currentCall
            let item = call == .item ? " of frame \(busy.shownFrame)" : ""
            fault = FrameHostError(
                .unavailable, place: busy.title,
                what: "its call '\(call.name(of: busy.kind))'\(item) has not returned for \(seconds) s\(outcome)",
                remedy:
                    "Send the command again later. If the call has still not returned then, detach the branch with this stage, or restart the chain."
            )
        } else {
            fault = FrameHostError(
                .unavailable, place: runner.title,
                what:
                    "its thread has been waiting for more than \(seconds) s for a later stage to take items\(outcome)",
                remedy:
                    "Resume, replace or detach the later stage that takes no items, then send the command again.")
        }
        fault.isBusy = true
        return fault
    }
}

extension GraphChange {
    /// What was done: the members of the event. Of the stages in `missed` there is an event each, `replace-missed`.
    var details: [JSONNode.Member] {
        // Stages that the planner inserts, such as the tap of a copy, come and go with stages of the file.
        func named(_ runners: [StageRunner], in plan: ChainPlan) -> [String] {
            let inserted = Set(plan.stages.filter(\.isInserted).map(\.id))
            return runners.map(\.id).filter { !inserted.contains($0) }
        }
        let missed = missed.withLock { $0 }
        return [
            list("attached", named(assembly.newRunners, in: assembly.graph.plan)),
            list("detached", named(removed, in: before.plan)),
            list("replaced", exchanges.map(\.runner.id).filter { !missed.contains($0) }),
            list("set", sets.map(\.runner.id)),
        ].compactMap { $0 }
    }

    /// The members of the answer beside the frame.
    var answerDetails: [JSONNode.Member] { details + [list("missed", missed.withLock { $0 })].compactMap { $0 } }

    private func list(_ key: String, _ ids: [String]) -> JSONNode.Member? {
        ids.isEmpty ? nil : JSONNode.Member(key: key, value: JSONNode(.array(ids.map { JSONNode(.string($0)) })))
    }
}
