// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A branch that was removed from the graph and finishes the items that it still has.
struct LeavingBranch {
    var runners: [StageRunner]
    var queues: [ItemQueue]
    var workers: [Worker]
    /// Threads that still have to let go of its links. What they offer there in the meantime counts.
    let uncut: Uncut
    /// When it is stopped, or abandoned if it is stopped already, in nanoseconds of the system clock; 0 before the
    /// first look.
    var stopDeadline: Int64 = 0
    var isStopped = false
    /// Whether its change was refused. No event told of its beginning, so none tells of its end.
    var isRefused = false
    /// Whether its thread did not return; see Chain+Abandoning.swift.
    var isAbandoned = false

    var hasEnded: Bool {
        uncut.count.load(ordering: .acquiring) == 0
            && workers.allSatisfy { $0.state.finished.load(ordering: .acquiring) }
    }

    final class Uncut: Sendable {
        let count: Atomic<Int>
        init(_ count: Int) { self.count = Atomic(count) }
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
        var late: [Worker] = []
        var cut: [FrameHostError] = []
        // Read before the graph is locked, since `drainNs` locks it itself.
        let drainNs = drainNs
        graphBox.withLock { present in
            for index in present.leaving.indices {
                let branch = present.leaving[index]
                if branch.isAbandoned { continue }
                // A stage may end on a thread of its own once another thread has let go of it. Before that it is
                // not late.
                let atWork = branch.workers.filter { running.has($0.state) }
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
                        if !branch.isRefused { cut.append(lateFault(branch, atWork, drainNs)) }
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
        let abandoned = graph.leaving.filter(\.isAbandoned).flatMap(\.workers)
        for worker in late {
            if abandoned.contains(where: { $0 === worker }) { abandon(worker) } else { worker.raiseStop() }
        }
    }

    private func lateFault(_ branch: LeavingBranch, _ atWork: [Worker], _ drainNs: Int64) -> FrameHostError {
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
        guard !branch.isRefused else { return }
        post(
            "branch-ended", branch.runners.first?.id, "\(branch.runners.map(\.id).joined(separator: ", ")) ended.",
            [
                JSONNode.Member(
                    key: "stages", value: JSONNode(.array(branch.runners.map { JSONNode(.string($0.id)) })))
            ])
    }
}
