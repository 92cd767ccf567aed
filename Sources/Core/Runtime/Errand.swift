/// Something a stage thread does between two items, for whoever asked to wait for.
final class Errand: @unchecked Sendable {
    enum Outcome { case done, withdrawn, refused, underWay }
    private enum State { case waiting, begun, done, withdrawn, refused }

    private let condition = Condition()
    // Below: under `condition`.
    private var state = State.waiting
    private let body: () -> Void

    init(_ body: @escaping () -> Void) { self.body = body }

    /// [any thread] Leaves it with `thread`.
    func post(to thread: ThreadState) {
        let letter = ThreadState.Letter(open: { [self] in perform() }, refuse: { [self] in enter(.refused) })
        if !thread.post(letter) { enter(.refused) }
    }

    private func enter(_ next: State) {
        condition.locked {
            state = next
            condition.broadcast()
        }
    }

    private func perform() {
        let begins = condition.locked { () -> Bool in
            guard state == .waiting else { return false }
            state = .begun
            return true
        }
        guard begins else { return }
        body()
        enter(.done)
    }

    /// [any thread but the stage's] Waits until it is done; what has not been begun after `patience` nanoseconds is
    /// withdrawn if so asked. Work that is under way is waited for until `stop`.
    func wait(_ patience: Int64, withdrawing: Bool = true, stop: StopSignal) -> Outcome {
        let deadline = ChainClock.system.now() + patience
        condition.lock()
        defer { condition.unlock() }
        while true {
            switch state {
            case .done: return .done
            case .refused: return .refused
            case .withdrawn: return .withdrawn
            case .waiting, .begun: break
            }
            let now = ChainClock.system.now()
            if stop.isRaised, state == .begun || !withdrawing { return .underWay }
            if state == .waiting, now >= deadline {
                guard withdrawing else { return .underWay }
                state = .withdrawn
                return .withdrawn
            }
            // The signal of `stop` is looked at from time to time: it lies under other locks.
            condition.wait(until: now + 50_000_000)
        }
    }
}
