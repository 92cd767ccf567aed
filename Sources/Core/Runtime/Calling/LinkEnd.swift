// SPDX-License-Identifier: Apache-2.0

/// One end of a link, as its producer sees it: a queue, or a consumer that runs on this thread.
final class LinkEnd {
    enum Way {
        case queue(ItemQueue)
        case inline(InlineRun)
    }

    let way: Way
    /// Leads to a tap, which is served before the others.
    let isTap: Bool
    /// What the producer had emitted, and the consumer been offered, when this end was added to the output. The link
    /// has no duty for the items before.
    private(set) var emittedBefore = 0
    private var offeredBefore = 0

    init(queue: ItemQueue) {
        way = .queue(queue)
        isTap = false
    }

    init(inline: InlineRun) {
        way = .inline(inline)
        isTap = inline.stages[0].isTap
    }

    var queue: ItemQueue? { if case .queue(let queue) = way { queue } else { nil } }
    var inline: InlineRun? { if case .inline(let run) = way { run } else { nil } }

    private var offeredInAll: Int {
        switch way {
        case .queue(let queue): queue.snapshot().counts.offered
        case .inline(let run): run.stages[0].counters.taken.value
        }
    }

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
        switch way {
        case .inline(let run): return run.receive(lease)
        case .queue(let queue): return send(lease, to: queue, output)
        }
    }

    private func send(_ lease: consuming Lease, to queue: ItemQueue, _ output: Output) -> Bool {
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

    /// The run was stopped before the item was handed on: counts the item and releases it.
    func refuseStopped(_ lease: consuming Lease) {
        switch way {
        case .queue(let queue): queue.refuseStopped(lease)
        case .inline(let run): run.stages[0].refuseStopped(lease)
        }
    }

    func announceNothing(upTo pts: Int64) {
        switch way {
        case .queue(let queue): queue.announceNothing(upTo: pts)
        case .inline(let run): run.announceNothing(upTo: pts, after: -1)
        }
    }

    func end() {
        switch way {
        case .queue(let queue): queue.end()
        case .inline(let run): run.end()
        }
    }
}
