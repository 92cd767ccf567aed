// SPDX-License-Identifier: Apache-2.0

/// One end of a link, as its producer sees it: a queue, or a consumer that runs on this thread.
final class LinkEnd {
    let queue: ItemQueue?
    let inline: InlineRun?
    /// Leads to a tap, which is served before the others.
    let isTap: Bool
    /// What the producer had emitted, and the consumer been offered, when this end was added to the output. The link
    /// has no duty for the items before.
    private(set) var emittedBefore = 0
    private var offeredBefore = 0

    init(queue: ItemQueue) {
        self.queue = queue
        inline = nil
        isTap = false
    }

    init(inline: InlineRun) {
        queue = nil
        self.inline = inline
        isTap = inline.stages[0].isTap
    }

    private var offeredInAll: Int { queue?.snapshot().counts.offered ?? inline!.stages[0].counters.taken.value }

    /// [producer's thread] Adds the end to an output that has emitted `emitted` items.
    func begin(emitted: Int) {
        emittedBefore = emitted
        offeredBefore = offeredInAll
    }

    /// Items offered over this end.
    var offered: Int { offeredInAll - offeredBefore }

    /// Hands an item on and waits where the policy says so; false when the run was stopped.
    @inline(__always)
    func send(_ lease: consuming Lease, from output: Output) -> Bool {
        if let inline { return inline.receive(lease) }
        return sendQueued(lease, output)
    }

    private func sendQueued(_ lease: consuming Lease, _ output: Output) -> Bool {
        let queue = queue!
        let (stage, room) = (output.stage, output.room)
        let clock = stage.clock
        let mayWait = output.mayWait
        let record = lease.release()
        record.pointee.since.store(clock.now(), ordering: .relaxed)
        var version = room.version
        guard let first = queue.offer(Lease(record), mayWait: mayWait) else { return true }
        var waiting = first.release()
        queue.stalledSince.store(clock.now(), ordering: .relaxed)
        let inside = stage.thread.enterWait(for: .room)
        defer { stage.thread.leaveWait(inside) }
        while room.wait(after: version) {
            version = room.version
            guard let back = queue.offer(Lease(waiting), mayWait: mayWait) else {
                queue.stalledSince.store(0, ordering: .relaxed)
                return true
            }
            waiting = back.release()
        }
        queue.refuseStopped(Lease(waiting))
        return false
    }

    func offer(_ lease: consuming Lease, mayWait: Bool) -> Lease? { queue!.offer(lease, mayWait: mayWait) }

    /// The run was stopped before the item was handed on: counts the item and releases it.
    func refuseStopped(_ lease: consuming Lease) {
        if let queue { return queue.refuseStopped(lease) }
        inline!.stages[0].refuseStopped(lease)
    }

    func markStalled(_ clock: ChainClock) {
        if queue!.stalledSince.load(ordering: .relaxed) == 0 {
            queue!.stalledSince.store(clock.now(), ordering: .relaxed)
        }
    }

    func markMoving() { queue!.stalledSince.store(0, ordering: .relaxed) }

    func announceNothing(upTo pts: Int64) {
        if let queue { queue.announceNothing(upTo: pts) } else { inline!.announceNothing(upTo: pts, after: -1) }
    }

    func end() {
        if let queue { queue.end() } else { inline!.end() }
    }
}
