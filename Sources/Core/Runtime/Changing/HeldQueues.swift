// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The queues through which running threads feed the new stages of a change.
///
/// Each thread takes over its links in its own time. A thread that already waited at a new join could block another one
/// that has not taken over its links yet. The queues are therefore held back until the last thread has its links, and
/// that thread opens them.
final class HeldQueues: Sendable {
    private let queues: [ItemQueue]
    /// Threads that have no links yet, and the change itself until it has asked them all.
    private let missing = Atomic<Int>(1)

    /// - Parameter step: As ``ItemQueue/holdBack(step:)``.
    init(_ queues: [ItemQueue], step: Int64) {
        self.queues = queues
        for queue in queues { queue.holdBack(step: step) }
    }

    /// [desk's thread] One more thread is asked.
    func waitForOneMore() { missing.add(1, ordering: .relaxed) }

    /// [any thread] A thread has its links, or has ended without them.
    ///
    /// - Returns: The sequence number of the last item that was turned away, where this call opened the queues.
    @discardableResult
    func settle() -> UInt64? {
        guard missing.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 else { return nil }
        return ItemQueue.open(queues)
    }
}
