// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// How a change removes branches. [desk's thread]
extension GraphChange {
    struct Leaving {
        /// Queues between what stays and what goes.
        var entrances: [ItemQueue] = []
        /// Heads of the workers that feed these queues, or that run stages that leave.
        var producers: Set<Int> = []
        /// What leaves a thread that stays: a run with everything behind it, or, without a run, stages from the middle
        /// of one.
        var inline: [(producer: Worker, run: InlineRun?, members: [StageRunner])] = []
        /// Stages that leave from the middle, by the head of their thread. What they hold goes on to the stages behind
        /// them, which stay.
        var middle: [Int: [StageRunner]] = [:]
        /// Queues behind such runs, by the head of the thread that fills them.
        var behindInline: [Int: [ItemQueue]] = [:]
        var workers: [Worker] = []
        var queues: [ItemQueue] = []
    }

    func makeLeaving() -> Leaving {
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
            let ends = before.runners.flatMap { runner in
                runner.thread === worker.state && !numbers.contains(runner.number) ? runner.output?.links ?? [] : []
            }
            var rest = members
            for run in ends.compactMap(\.inline) where numbers.contains(run.stages[0].number) {
                let whole = Self.stages(of: run)
                guard whole.allSatisfy({ numbers.contains($0.number) }) else { continue }
                leaving.inline.append((worker, run, whole))
                rest.removeAll { stage in whole.contains { $0 === stage } }
            }
            guard !rest.isEmpty else { continue }
            leaving.inline.append((worker, nil, rest))
            leaving.middle[worker.head.number] = rest
        }
        return leaving
    }

    /// The stages of a run, and of all runs inline behind it.
    private static func stages(of run: InlineRun) -> [StageRunner] {
        run.stages + (run.stages.last?.output?.links ?? []).compactMap(\.inline).flatMap(stages)
    }

    /// Closes the links of the stages that leave, so that no thread waits there any more. Then the threads that feed
    /// these links let go of them. A thread that is late does so later, and until then gives nothing, since the link is
    /// closed.
    ///
    /// - Parameter isRewired: Whether those threads have let go of them already.
    mutating func applyLast(_ leaving: Leaving, isRewired: Bool, _ held: HeldQueues) {
        guard !removed.isEmpty else { return }
        let rewirings = isRewired ? [] : assembly.rewirings.filter { leaving.producers.contains($0.worker.head.number) }
        let uncut = LeavingBranch.Uncut(rewirings.count)
        var branch = LeavingBranch(
            runners: removed, queues: leaving.queues, workers: leaving.workers, uncut: uncut)
        for part in leaving.inline {
            branch.workers.append(Worker(ending: part.run, members: part.members))
        }
        chain.graphBox.withLock {
            $0.leaving.append(branch)
            $0.mayLeave = ([], [], [])
        }
        for runner in removed where runner.kind == .source { runner.shown.context.requestEnd() }
        // Found by the threads that the taps are on now. The ends take the taps over later.
        let stayingTaps = removed.filter { runner in
            runner.isTap && !leaving.workers.contains { $0.state === runner.thread }
        }
        let allEnds = Array(branch.workers.suffix(leaving.inline.count))
        if isRewired { begin(allEnds) }
        // Every thread gets the errand before any of its waits is ended. It performs the errand before its next item,
        // so that at most the item that a tap has in hand finds the tap stopped.
        let left = rewirings.map { rewiring in
            let ends = zip(leaving.inline, allEnds).filter { $0.0.producer === rewiring.worker }.map(\.1)
            let (change, worker, concerned) = (self, rewiring.worker, concerned(rewiring))
            // A closed queue has reported its own frame already.
            let tells = leaving.inline.contains { $0.producer === worker } || !assembly.newRunners.isEmpty
            let frame = Locked<UInt64?>(nil)
            held.waitForOneMore()
            let errand = Errand {
                change.perform(rewiring, leaving)
                if tells { frame.withLock { $0 = concerned.nextFrame } }
                change.begin(ends)
                held.settle()
                uncut.count.subtract(1, ordering: .releasing)
            } refused: {
                change.endWithoutItems(rewiring, ends)
                held.settle()
                uncut.count.subtract(1, ordering: .releasing)
            }
            errand.post(to: worker.state, isRequired: true)
            return (rewiring: rewiring, errand: errand, frame: frame, hasEnds: !ends.isEmpty)
        }
        // A tap holds nothing, and a thread that stays must not wait for the branch any more. A thread that leaves with
        // all its stages hands on what it has.
        for tap in stayingTaps { tap.stop.raise() }
        for queue in leaving.entrances { holds(from: queue.detach().map { $0 + 1 }) }
        for part in left {
            let worker = part.rewiring.worker
            let outcome = awaitLeft(part.errand, with: worker.state, for: worker.head)
            holds(from: part.frame.withLock { $0 })
            guard outcome == .underWay else { continue }
            // The thread may be waiting for the very branch that leaves.
            if worker.state.inside.load(ordering: .relaxed) == ThreadState.Place.chainWait {
                for queue in leaving.behindInline[worker.head.number] ?? [] { _ = queue.detach() }
            }
            chain.post(
                "detach-waits", worker.head.id,
                "\(worker.head.title) has not returned from a call; \(part.hasEnds ? "the detached stages on its thread end" : "the change is complete") when it does."
            )
        }
        chain.post(
            "branch-detached", removed.first?.id,
            "\(removed.map(\.id).joined(separator: ", ")) \(removed.count == 1 ? "was" : "were") detached.")
    }

    /// [once the thread on which they ran has let go of them]
    private func begin(_ ends: [Worker]) {
        for end in ends {
            end.adoptMembers()
            chain.begin(workers: [end], from: reserve)
        }
    }

    /// [the thread itself as its last act, or any thread after that] The thread of `rewiring` ended before it could
    /// perform it. The stages that were to leave have ended with the thread. The new ones end without an item.
    private func endWithoutItems(_ rewiring: GraphAssembly.Rewiring, _ ends: [Worker]) {
        // At the end of a run in which the thread hangs everything stays as it is.
        guard rewiring.worker.state.hasLetGo.load(ordering: .acquiring) else { return }
        for end in ends { end.state.finished.store(true, ordering: .releasing) }
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
