// SPDX-License-Identifier: Apache-2.0

/// Takes from the queues of a ``MultiSink`` what ``TimeOrder`` says, under their one lock. Belongs to the sink's thread.
final class MergeInlet {
    enum Taken: ~Copyable {
        case item(Lease, Int)
        /// There is something else for the sink's thread to do, such as a command.
        case interrupted
        case ended
        case stopped
    }

    /// In a live chain nobody waits longer than this for an input without items.
    static let longestWait: Int64 = 1_000_000_000

    let queues: [FrameQueue]
    private let sink: StageRunner
    private var order: TimeOrder
    private let stop: StopSignal

    /// - Parameters:
    ///   - queues: In the order of `from`. They share one condition.
    ///   - isLive: Whether the chain is live.
    ///   - haveOneOrigin: Whether two of the queues lead back to one source.
    init(_ sink: StageRunner, _ queues: [FrameQueue], isLive: Bool, haveOneOrigin: Bool, stop: StopSignal) {
        self.sink = sink
        self.queues = queues
        self.stop = stop
        order = TimeOrder(
            count: queues.count, longestWait: isLive ? Self.longestWait : nil, haveOneOrigin: haveOneOrigin)
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
            switch order.next(now: sink.clock.now()) {
            case .take(let index):
                let lease = queues[index].popLocked()
                condition.unlock()
                return .item(lease, index)
            case .end:
                condition.unlock()
                return .ended
            case .wait(let instant): queues.wait(until: instant, as: sink)
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
            case .ended: return sink.drain()
            case .stopped: return
            }
        }
    }
}
