/// What a join's thread does: it takes from several queues, which share one lock.
extension Worker {
    func runJoin(_ join: StageRunner, _ queues: [FrameQueue], _ inputs: JoinInputs) {
        while !stop.isRaised {
            state.inside.store(ThreadState.Place.chainWait, ordering: .relaxed)
            state.readMail()
            switch gather(queues, inputs, announcing: join.output?.announcesGaps ?? false) {
            case .items: if !join.merge(inputs) { return }
            case .nothing(let pts): join.output?.announceNothing(upTo: pts)
            case .mail: continue
            case .ended:
                join.drain()
                join.output?.end()
                return
            case .stopped: return
            }
        }
    }

    private enum Gathered {
        case items
        case nothing(Int64)
        case mail
        case ended
        case stopped
    }

    /// Waits until every input has an item of the next time, or is known to have none of it; takes none before.
    private func gather(_ queues: [FrameQueue], _ inputs: JoinInputs, announcing: Bool) -> Gathered {
        let condition = queues[0].consumer
        condition.lock()
        defer { condition.unlock() }
        while true {
            if stop.isRaised { return .stopped }
            if queues[0].takeInterrupt() { return .mail }
            // The oldest item that is there; up to when nothing more comes on the inputs that are empty. Plain loops:
            // no allocation.
            var next: Int64?
            var emptyUpTo = Int64.max
            var isExhausted = true
            for queue in queues {
                if let head = queue.headPTS {
                    next = min(next ?? head, head)
                } else {
                    emptyUpTo = min(emptyUpTo, queue.emptyUpTo)
                }
                if !queue.isExhausted { isExhausted = false }
            }
            if isExhausted { return .ended }
            if let next, emptyUpTo >= next {
                for index in queues.indices where queues[index].headPTS == next {
                    inputs.put(queues[index].popLocked(), at: index)
                }
                return .items
            }
            // Nothing before the oldest item that may still come can leave this join: what lies behind may wait for
            // that news.
            let upTo = min(emptyUpTo, next.map { $0 &- 1 } ?? .max)
            if announcing, upTo != .max, upTo != .min, queues[0].noteAnnounced(upTo) { return .nothing(upTo) }
            for queue in queues { queue.setConsumerSleeps(true) }
            Spinner.fallAsleep()
            condition.wait()
            Spinner.wakeUp()
            for queue in queues { queue.setConsumerSleeps(false) }
        }
    }
}
