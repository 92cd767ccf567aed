// SPDX-License-Identifier: Apache-2.0

/// How the threads of a chain take their parts of a change. [desk's thread]
extension GraphChange {
    /// Applies everything that can still be taken back: all but the exchanges and the links to branches that leave. The
    /// threads of replaced stages are asked whether they answer, so that the exchanges find them between two items.
    mutating func applyBefore(_ leaving: Leaving) throws {
        for rewiring in assembly.rewirings.reversed() where !leaving.producers.contains(rewiring.worker.head.number) {
            try perform(rewiring)
        }
        for exchange in exchanges { try chain.perform(on: exchange.runner.thread, for: exchange.runner) {} }
    }

    // MARK: On one thread

    /// The only thread that the change concerns; nil where it concerns several, or where a queue must be closed first.
    func onlyThread(_ leaving: Leaving) -> ThreadState? {
        guard leaving.entrances.isEmpty, leaving.workers.isEmpty else { return nil }
        let threads =
            assembly.rewirings.map(\.worker.state) + sets.map(\.runner.thread) + exchanges.map(\.runner.thread)
        guard let first = threads.first, threads.allSatisfy({ $0 === first }) else { return nil }
        return first
    }

    /// Applies all parts between the same two items, so that no frame meets one part without the others.
    mutating func applyAtOnce(on thread: ThreadState, _ leaving: Leaving) throws {
        let change = self
        let failure = Locked<(any Error)?>(nil)
        let frames = Locked<[UInt64]>([])
        let first = sets.first?.runner ?? exchanges.first?.runner ?? assembly.rewirings[0].worker.head
        let asked = chain.ask(thread, for: first) {
            do {
                // The parts that may fail come first.
                var taken: [TakenSet] = []
                for set in change.sets {
                    do {
                        taken.append(try change.perform(set))
                    } catch {
                        for set in taken.reversed() { change.takeBack(set) }
                        throw error
                    }
                }
            } catch {
                return failure.withLock { $0 = error }
            }
            for exchange in change.exchanges {
                change.perform(exchange)
                frames.withLock { $0.append(exchange.runner.nextFrame) }
            }
            for set in change.sets { frames.withLock { $0.append(set.runner.nextFrame) } }
            for rewiring in change.assembly.rewirings {
                frames.withLock { $0.append(change.concerned(rewiring).nextFrame) }
                change.perform(rewiring, leaving)
            }
        }
        if let error = failure.withLock({ $0 }) { throw error }
        if let fault = asked.fault {
            // The run was stopped while the thread applied the change.
            if asked.hasBegun { (rewired, hasExchanged) = (assembly.rewirings.map(\.worker), true) }
            throw fault
        }
        for frame in frames.withLock({ $0 }) { holds(from: frame) }
    }

    /// [stage thread, between two items]
    private func perform(_ exchange: GraphAssembly.Exchange) {
        let runner = exchange.runner
        let letFramesPass = runner.mode == .passes
        let isOfOtherType = runner.shown.info.id != exchange.type.info.id
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

    /// [stage thread, between two items] Gives a new instance what commands have set while it was being made.
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
                chain.liveOptions.withLock { _ = $0.forget(runner.number, keys: [option.key]) }
                chain.post(
                    "option-lost", id, level: .warning,
                    "\(id): '\(option.key)' was set while the chain was being changed, but the stage that runs now refuses that value and keeps its own: \(error)"
                )
            }
        }
    }

    /// [the worker's thread, between two items] A stage that is removed from the middle of a run answers the items that
    /// it holds before the next item passes.
    func perform(_ rewiring: GraphAssembly.Rewiring, _ leaving: Leaving) {
        for stage in leaving.middle[rewiring.worker.head.number] ?? [] { stage.letGo(isDraining: isDraining) }
        rewiring.perform()
    }

    /// The stage whose next frame is the first that takes the new way.
    func concerned(_ rewiring: GraphAssembly.Rewiring) -> StageRunner {
        rewiring.members.last { $0.output != nil && !isNew($0) } ?? rewiring.worker.head
    }

    func isNew(_ runner: StageRunner) -> Bool { assembly.newRunners.contains { $0 === runner } }

    // MARK: On several threads

    /// Exchanges the instances. From the first exchange on the change cannot be undone, since an instance that has
    /// drained cannot go on. A thread that is late exchanges its instances later. Where it ends before that, the stage
    /// has ended with its old instance, and the new one ends without an item.
    mutating func exchangeInstances() {
        for exchange in exchanges {
            let (change, runner) = (self, exchange.runner)
            let frame = Locked<UInt64?>(nil)
            let errand = Errand {
                change.perform(exchange)
                frame.withLock { $0 = runner.nextFrame }
            } refused: {
                change.stop(exchange.instance, of: runner)
                change.chain.post(
                    "replace-missed", runner.id, level: .warning,
                    "\(runner.title) ended before it could be replaced.")
            }
            switch leave(errand, with: runner.thread, for: runner) {
            case .underWay:
                chain.post(
                    "replace-waits", runner.id,
                    "\(runner.title) has not returned from a call; it is replaced when it does.")
            case .refused: missed.append(runner.id)
            case .done, .withdrawn: break
            }
            holds(from: frame.withLock { $0 })
        }
    }

    /// Lets `thread` do what cannot be withdrawn any more. The thread may do it after this change.
    func leave(_ errand: Errand, with thread: ThreadState, for runner: StageRunner) -> Errand.Outcome {
        errand.post(to: thread, isRequired: true)
        return awaitLeft(errand, with: thread, for: runner)
    }

    /// Waits for what ``leave(_:with:for:)`` has posted.
    func awaitLeft(_ errand: Errand, with thread: ThreadState, for runner: StageRunner) -> Errand.Outcome {
        let outcome = errand.wait(Chain.changePatienceNs, withdrawing: false, stop: chain.stop)
        if outcome == .underWay { chain.openErrands.add(errand, on: thread, for: runner) }
        return outcome
    }

    private mutating func perform(_ rewiring: GraphAssembly.Rewiring) throws {
        let frame = Locked<UInt64?>(nil)
        let concerned = concerned(rewiring)
        let asked = chain.ask(rewiring.worker.state, for: rewiring.worker.head) {
            rewiring.perform()
            frame.withLock { $0 = concerned.nextFrame }
        }
        if asked.hasBegun { rewired.append(rewiring.worker) }
        if let fault = asked.fault { throw fault }
        holds(from: frame.withLock { $0 })
    }

    /// Ends a replaced instance on a thread of its own: finishing a file may take long.
    ///
    /// - Parameter hasFailed: Whether the instance had failed: its failure is known, and counts once.
    private func stop(_ instance: StageInstance, of runner: StageRunner, hasFailed: Bool = false) {
        let title = runner.title
        let chain = chain
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

    mutating func setOptions() throws {
        let change = self
        var done: [TakenSet] = []
        for set in sets {
            let outcome = Locked<Swift.Result<TakenSet, any Error>?>(nil)
            let frame = Locked<UInt64?>(nil)
            do {
                try chain.perform(on: set.runner.thread, for: set.runner) {
                    frame.withLock { $0 = set.runner.nextFrame }
                    // Not under the lock: the stage's own code runs here.
                    let result = Swift.Result { try change.perform(set) }
                    outcome.withLock { $0 = result }
                }
                if let taken = try outcome.withLock({ try $0?.get() }) { done.append(taken) }
                holds(from: frame.withLock { $0 })
            } catch {
                // A thread that is late takes its options back when it returns, and the next change waits for that.
                for taken in done.reversed() {
                    let runner = taken.set.runner
                    _ = leave(Errand { change.takeBack(taken) }, with: runner.thread, for: runner)
                }
                throw error
            }
        }
    }

    /// [stage thread]
    ///
    /// - Throws: ``SetRefusal``.
    private func perform(_ set: LiveSet) throws -> TakenSet {
        let id = set.runner.id
        // What a command has set meanwhile is newer than the request.
        let number = set.runner.number
        let set = set.without(chain.liveOptions.withLock { $0.options(of: number, setAfter: optionCount) })
        if !set.options.isEmpty {
            do { try set.runner.instance.set(set.options) { key, _ in "\(id).\(key)" } } catch {
                throw SetRefusal(stage: id, reason: error)
            }
        }
        return chain.liveOptions.withLock { options in
            TakenSet(set: set, overridden: options.forget(number, keys: set.keys), optionCount: options.count)
        }
    }

    /// [stage thread] Sets what held before, but for what commands have set since.
    private func takeBack(_ taken: TakenSet) {
        let (set, number) = (taken.set, taken.set.runner.number)
        let left = set.without(
            chain.liveOptions.withLock { $0.options(of: number, setAfter: taken.optionCount) })
        guard !left.earlier.isEmpty else { return }
        let overridden = taken.overridden.filter { left.keys.contains($0.member.key) }
        let earlier = left.earlier.overlaid(with: overridden.map(\.member))
        do { try set.runner.instance.set(earlier) { key, _ in FaultPlace(key) } } catch {
            let id = set.runner.id
            return chain.post(
                "option-lost", id, level: .warning,
                "\(id): the change was refused, but the stage refuses the earlier value of \(quotedList(earlier.map(\.key), "and")) and keeps the new one: \(error)"
            )
        }
        chain.liveOptions.withLock { $0.restore(number, overridden) }
    }

    // MARK: Back

    /// What commands have set at stages that this change had made anew holds for the stages that stay.
    private func keepLateOptions() {
        var late: [StageRunner] = []
        chain.liveOptions.withLock { options in
            for runner in assembly.newRunners {
                guard let earlier = before.runner(id: runner.id), earlier.shown.info.id == runner.shown.info.id,
                    !options.options(of: runner.number, setAfter: optionCount).isEmpty
                else { continue }
                options.move(from: runner.number, to: earlier.number)
                late.append(earlier)
            }
            options.keep(stages: Set(before.runners.map(\.number)))
        }
        let change = self
        for runner in late { Errand { change.setAgain(runner) }.post(to: runner.thread, isRequired: true) }
    }

    /// Restores the earlier graph, and ends what was begun.
    func takeBack() {
        // New stages on a thread that stays end on a thread of their own, once the thread that stays has let go of
        // them.
        let endings = assembly.rewirings.map { rewiring in
            let members = rewiring.members.filter(isNew)
            return members.isEmpty ? nil : Worker(ending: nil, members: members)
        }
        var branch = LeavingBranch(
            runners: assembly.newRunners, queues: assembly.newQueues,
            workers: assembly.newWorkers + endings.compactMap { $0 },
            uncut: LeavingBranch.Uncut(rewired.count))
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
        before.setMergeRules()
        keepLateOptions()
        for (earlier, ending) in zip(assembly.earlier, endings) {
            let (chain, reserve, uncut, worker) = (chain, reserve, branch.uncut, earlier.worker)
            func end() {
                ending?.raiseStop()
                if let ending { chain.begin(workers: [ending], from: reserve) }
            }
            guard rewired.contains(where: { $0 === worker }) else {
                end()
                continue
            }
            func back() {
                earlier.perform()
                end()
                uncut.count.subtract(1, ordering: .releasing)
            }
            let errand = Errand {
                back()
            } refused: {
                // At the end of a run in which the thread hangs, everything stays as it is.
                if worker.state.hasLetGo.load(ordering: .acquiring) { back() }
            }
            errand.post(to: worker.state, isRequired: true)
            chain.openErrands.add(errand, on: worker.state, for: worker.head)
        }
        guard !hasExchanged else { return }
        for exchange in exchanges { stop(exchange.instance, of: exchange.runner) }
    }
}
