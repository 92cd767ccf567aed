// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A branch that was removed from the graph and finishes the items that it still has.
struct LeavingBranch {
    var runners: [StageRunner]
    var queues: [ItemQueue]
    var stageThreads: [StageThread]
    /// What the threads that stay do to let go of it. What they offer to it before that counts.
    let cuts: [Errand]
    /// When it is stopped, or abandoned if it is stopped already, in nanoseconds of the system clock; 0 before the
    /// first look.
    var stopDeadline: Int64 = 0
    var isStopped = false
    /// Whether its thread did not return; see Chain+Abandoning.swift.
    var isAbandoned = false

    var hasEnded: Bool {
        cuts.allSatisfy(\.isSettled) && stageThreads.allSatisfy { $0.state.finished.load(ordering: .acquiring) }
    }
}

/// What a change takes out of the chain. [desk's thread]
struct LeavingStages {
    /// What leaves a thread that stays, or the links of that thread.
    struct Cut {
        /// They end what leaves: a run with everything behind it, or stages from the middle of a run.
        var ends: [StageThread] = []
        /// Stages from the middle. What they hold goes on to the stages behind them, which stay.
        var middle: [StageRunner] = []
        /// Queues behind what leaves the thread.
        var behind: [ItemQueue] = []
    }

    let runners: [StageRunner]
    private(set) var queues: [ItemQueue] = []
    /// Stage threads that leave with all their stages.
    private(set) var stageThreads: [StageThread] = []
    /// Queues between what stays and what leaves.
    private(set) var entrances: [ItemQueue] = []
    /// Taps on threads that stay.
    let stayingTaps: [StageRunner]
    /// By the number of the head of the thread that stays.
    private(set) var cuts: [Int: Cut] = [:]

    var ends: [StageThread] { cuts.values.flatMap(\.ends) }

    init(_ runners: [StageRunner], of graph: RunningGraph) {
        self.runners = runners
        let numbers = Set(runners.map(\.number))
        stayingTaps = runners.filter { runner in
            runner.isTap
                && !graph.stageThreads.contains { $0.state === runner.thread && numbers.contains($0.head.number) }
        }
        for entry in graph.queues where numbers.contains(graph.runners[entry.link.to].number) {
            queues.append(entry.queue)
            let from = graph.runners[entry.link.from]
            guard !numbers.contains(from.number) else { continue }
            entrances.append(entry.queue)
            if let stageThread = graph.stageThreads.first(where: { $0.state === from.thread }) {
                cuts[stageThread.head.number] = Cut()
            }
        }
        for stageThread in graph.stageThreads {
            guard !numbers.contains(stageThread.head.number) else {
                stageThreads.append(stageThread)
                continue
            }
            let members = stageThread.members.filter { numbers.contains($0.number) }
            if !members.isEmpty { cuts[stageThread.head.number] = Self.cut(members, from: stageThread, of: graph) }
        }
    }

    /// - Parameter members: What leaves the thread.
    private static func cut(_ members: [StageRunner], from stageThread: StageThread, of graph: RunningGraph) -> Cut {
        func leaves(_ runner: StageRunner) -> Bool { members.contains { $0 === runner } }
        var cut = Cut()
        cut.behind = graph.queues.filter { leaves(graph.runners[$0.link.from]) }.map(\.queue)
        let links = graph.runners.filter { $0.thread === stageThread.state && !leaves($0) }.flatMap {
            $0.output?.links ?? []
        }
        cut.middle = members
        for run in links.compactMap(\.inline) where leaves(run.stages[0]) {
            let whole = stages(of: run)
            guard whole.allSatisfy(leaves) else { continue }
            cut.ends.append(StageThread(ending: run, members: whole))
            cut.middle.removeAll { stage in whole.contains { $0 === stage } }
        }
        if !cut.middle.isEmpty { cut.ends.append(StageThread(ending: nil, members: cut.middle)) }
        return cut
    }

    /// The stages of a run, and of all runs inline behind it.
    private static func stages(of run: InlineRun) -> [StageRunner] {
        run.stages + (run.stages.last?.output?.links ?? []).compactMap(\.inline).flatMap(stages)
    }
}

extension Chain {
    /// [control thread] Looks after removed branches: counts them when they have ended, stops them when they take
    /// longer than a drain may, and abandons them when they do not return even then.
    func tendLeavingBranches(now: Int64) {
        let leaving = graph.leaving
        guard !leaving.isEmpty else { return }
        // Another instance may have come into a source since.
        for runner in leaving.flatMap(\.runners) where runner.kind == .source { runner.shown.context.requestEnd() }
        var ended: [LeavingBranch] = []
        var late: [StageThread] = []
        var cut: [FrameHostError] = []
        // Read before the graph is locked, since `drainNs` locks it itself.
        let drainNs = drainNs
        graphBox.withLock { present in
            for index in present.leaving.indices {
                let branch = present.leaving[index]
                if branch.isAbandoned { continue }
                // A stage may end on a thread of its own once another thread has let go of it. Before that it is
                // not late.
                let atWork = branch.stageThreads.filter { running.has($0.state) }
                if atWork.isEmpty {
                    (present.leaving[index].stopDeadline, present.leaving[index].isStopped) = (0, false)
                    continue
                }
                if present.leaving[index].stopDeadline == 0 {
                    present.leaving[index].stopDeadline = now + drainNs
                } else if now >= branch.stopDeadline {
                    if branch.isStopped {
                        present.leaving[index].isAbandoned = true
                        // Items that wait for the thread need not be lost with it.
                        for queue in branch.queues { queue.discardAll(.detached) }
                    } else {
                        present.leaving[index].isStopped = true
                        present.leaving[index].stopDeadline = now + Self.stopPatienceNs
                        cut.append(lateFault(branch, atWork, drainNs))
                    }
                    late += atWork
                }
            }
            // Each branch is asked once: a branch that ends meanwhile must not be removed without being counted.
            var stays: [LeavingBranch] = []
            for branch in present.leaving { if branch.hasEnded { ended.append(branch) } else { stays.append(branch) } }
            present.leaving = stays
            for branch in ended {
                for queue in branch.queues { queue.discardAll(.detached) }
                for runner in branch.runners { present.departed += Ledger(of: runner) }
                for queue in branch.queues { present.departed += Ledger(of: queue) }
            }
        }
        for fault in cut {
            failures.withLock { $0.append(fault) }
            hub.post(Event(name: "branch-stopped", level: .error, text: fault.description, time: clock.now()))
        }
        for branch in ended { settle(branch) }
        let abandoned = graph.leaving.filter(\.isAbandoned).flatMap(\.stageThreads)
        for stageThread in late {
            if abandoned.contains(where: { $0 === stageThread }) {
                abandon(stageThread)
            } else {
                stageThread.raiseStop()
            }
        }
    }

    private func lateFault(_ branch: LeavingBranch, _ atWork: [StageThread], _ drainNs: Int64) -> FrameHostError {
        FrameHostError(
            .exhausted, place: FaultPlace(stage: atWork[0].head.id, title: atWork[0].head.title),
            what:
                "the detached branch did not finish within \(text(seconds: Double(drainNs) / 1e9)) s and was stopped;"
                + " the items that \(quotedList(atWork.map(\.head.id), "and")) still had are lost",
            remedy: "Raise \"drainSeconds\" in the chain file if the branch needs longer.")
    }

    private func settle(_ branch: LeavingBranch) {
        let faults = (branch.queues.flatMap(\.ledgerFaults) + branch.runners.flatMap(\.ledgerFaults))
        departedFaults.withLock { $0 += faults }
        for runner in branch.runners {
            runner.pictures.close()
            runner.units.close()
            if let fault = runner.timeFault { failures.withLock { $0.append(fault) } }
            CrashReport.forget(runner)
        }
        post(
            "branch-ended", branch.runners.first?.id, "\(branch.runners.map(\.id).joined(separator: ", ")) ended.",
            [
                JSONNode.Member(
                    key: "stages", value: JSONNode(.array(branch.runners.map { JSONNode(.string($0.id)) })))
            ])
    }
}
