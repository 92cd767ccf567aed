// SPDX-License-Identifier: Apache-2.0

/// Takes from the queues of a ``MultiSink`` or ``MultiFilter`` what ``TimeOrder`` says, under their one lock. Belongs to
/// the stage's thread.
final class MergeInlet {
    enum Taken: ~Copyable {
        case item(Lease, Int)
        /// No picture up to this time will come.
        case nothing(upTo: Int64)
        /// There is something else for the stage's thread to do, such as a command.
        case interrupted
        case ended
        case stopped
    }

    /// In a live chain a sink waits no longer than this for an input without items.
    static let longestWait: Int64 = 1_000_000_000

    let queues: [FrameQueue]
    private let stage: StageRunner
    private var order: TimeOrder
    private let stop: StopSignal

    /// - Parameters:
    ///   - queues: In the order of `from`. They share one condition.
    ///   - isLive: Whether the chain is live.
    ///   - haveOneOrigin: Whether two of the queues lead back to one source.
    init(_ stage: StageRunner, _ queues: [FrameQueue], isLive: Bool, haveOneOrigin: Bool, stop: StopSignal) {
        self.stage = stage
        self.queues = queues
        self.stop = stop
        let longestWait = stage.asMultiFilter?.longestWait.nanoseconds ?? Self.longestWait
        // Live pictures are better without motion than lost.
        order = TimeOrder(
            count: queues.count, longestWait: isLive ? longestWait : nil,
            heedsPressure: haveOneOrigin || (isLive && stage.kind == .filter))
    }

    /// Waits for the item whose turn it is.
    func take() -> Taken {
        let condition = queues[0].consumer
        condition.lock()
        while true {
            if stop.isRaised {
                condition.unlock()
                return .stopped
            }
            if queues[0].takeInterrupt() {
                condition.unlock()
                return .interrupted
            }
            for index in queues.indices { order.inputs[index] = queues[index].shownInOrder }
            if let filter = stage.asMultiFilter {
                // Pictures wait for what is measured up to so long after them, that moment included.
                order.inputs[0].delay(by: filter.lookAhead.nanoseconds &+ 1)
                if order.inputs[0].time == nil, let pts = queues[0].takeNothing() {
                    condition.unlock()
                    return .nothing(upTo: pts)
                }
            }
            switch order.next(now: stage.clock.now()) {
            case .take(let index):
                let lease = queues[index].popLocked()
                condition.unlock()
                return .item(lease, index)
            case .end:
                condition.unlock()
                return .ended
            case .wait(let instant): queues.wait(until: instant, as: stage)
            }
        }
    }
}

extension Worker {
    /// [worker thread] Hands a ``MultiSink`` the items of all its inputs.
    func runMerge(_ sink: StageRunner, _ inlet: MergeInlet) {
        while true {
            state.inside.store(ThreadState.Place.chainWait, ordering: .relaxed)
            state.readMail()
            switch inlet.take() {
            case .item(let lease, let index): if !sink.take(lease, from: index) { return }
            case .interrupted: continue
            case .nothing: continue
            case .ended: return sink.drain()
            case .stopped: return
            }
        }
    }

    /// [worker thread] Takes pictures through the run that begins with a ``MultiFilter``, and hands it the items of its
    /// further inputs.
    func runCompanions(_ inlet: MergeInlet) {
        while true {
            state.inside.store(ThreadState.Place.chainWait, ordering: .relaxed)
            state.readMail()
            guard let run else { return }
            switch inlet.take() {
            case .item(let lease, let index):
                let goesOn = index == 0 ? run.receive(lease) : head.takeCompanion(lease, from: index)
                if !goesOn { return }
            case .nothing(let pts): run.announceNothing(upTo: pts, after: -1)
            case .interrupted: continue
            case .ended: return run.end()
            case .stopped: return
            }
        }
    }
}
