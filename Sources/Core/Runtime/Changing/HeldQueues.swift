// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The queues through which several threads feed the new stages of a change, closed until all parts of the change are
/// done.
///
/// Each thread does its part in its own time. A thread that already waited at a new join could block another one that
/// has no links to it yet. So items are turned away meanwhile, and whoever is last opens the queues.
final class HeldQueues: Sendable {
    private let queues: [ItemQueue]
    private let missing: Atomic<Int>

    /// - Parameters:
    ///   - step: As ``ItemQueue/holdBack(step:)``.
    ///   - count: How often ``settle(_:)`` is called.
    init(_ queues: [ItemQueue], step: Int64, count: Int) {
        self.queues = queues
        missing = Atomic(count)
        for queue in queues { queue.holdBack(step: step) }
    }

    /// [any thread] A part is done, or its thread has ended without it.
    ///
    /// - Parameter opened: Called where this was the last one, with the sequence number of the last item that was turned
    ///   away.
    func settle(_ opened: (UInt64?) -> Void) {
        guard missing.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 else { return }
        opened(ItemQueue.open(queues))
    }
}

extension GraphAssembly {
    /// See ``HeldQueues``; none where only one thread feeds new stages.
    var queuesOfSeveralThreads: [ItemQueue] {
        let entries = graph.queues.filter { entry in
            newQueues.contains { $0 === entry.queue } && !isNew(graph.runners[entry.link.from])
        }
        let threads = Set(entries.map { ObjectIdentifier(graph.runners[$0.link.from].thread) })
        return threads.count > 1 ? entries.map(\.queue) : []
    }

    /// A join that matches by time waits until it knows what lies within half a frame, so three quarters of a frame
    /// are announced as empty. `StageRunner.tellLoss(upTo:after:)` does the same for a stage that delays.
    var stepOfHeldQueues: Int64 {
        let joins = graph.plan.joins.filter { isNew(graph.runners[$0.key]) }.values
        guard joins.allSatisfy({ $0.match == .nearest }) else { return 0 }
        return (joins.flatMap(\.frameTimes).filter { $0 > 0 }.min() ?? 0) / 4 * 3
    }
}
