// SPDX-License-Identifier: Apache-2.0

/// Work that a stage thread does between two items, and that another thread can wait for.
final class Errand: @unchecked Sendable {
    enum Outcome { case done, withdrawn, refused, underWay }
    private enum State { case waiting, begun, done, withdrawn, refused }

    private let condition = Condition()
    // Under `condition`. Once the work has begun, `body` and `refused` belong to the thread that began it.
    private var state = State.waiting
    // Freed once the work is settled, with everything that they capture.
    private var body: (() -> Void)?
    private var refused: (() -> Void)?
    private var thread: ThreadState?

    /// - Parameters:
    ///   - body: Called on the thread, between two items; not after it was withdrawn.
    ///   - refused: Called instead where the thread has ended or has no room for it. The caller is the thread itself as
    ///     its last act, the thread that posts, or the control thread at the end of the run, when the stage thread may
    ///     hang (``ThreadState/hasLetGo``). Not called after it was withdrawn.
    init(_ body: @escaping () -> Void, refused: @escaping () -> Void = {}) {
        self.body = body
        self.refused = refused
    }

    /// [any thread] Gives the work to `thread`.
    ///
    /// - Parameters:
    ///   - thread: The stage thread.
    ///   - isRequired: Whether a thread with a full mailbox takes it too.
    func post(to thread: ThreadState, isRequired: Bool = false) {
        condition.locked { self.thread = thread }
        let message = ThreadState.Message(open: { [self] in perform() }, refuse: { [self] in refuse() })
        if !thread.post(message, as: self, isRequired: isRequired) { refuse() }
    }

    /// [any thread] Whether the work is done, refused or withdrawn, so that nothing more will happen.
    var isSettled: Bool {
        condition.locked {
            switch state {
            case .waiting, .begun: false
            case .done, .withdrawn, .refused: true
            }
        }
    }

    /// With the lock held.
    private func settle(_ end: State) {
        state = end
        if end == .withdrawn { thread?.remove(self) }
        (body, refused, thread) = (nil, nil, nil)
        condition.broadcast()
    }

    private func begin() -> Bool {
        condition.locked {
            guard state == .waiting else { return false }
            state = .begun
            return true
        }
    }

    private func perform() {
        guard begin() else { return }
        body?()
        condition.locked { settle(.done) }
    }

    private func refuse() {
        guard begin() else { return }
        refused?()
        condition.locked { settle(.refused) }
    }

    /// [any thread but the stage's] Waits until the work is done. If `withdrawing`, work that has not begun after
    /// `patience` nanoseconds is withdrawn. Work that has begun is waited for until `stop`.
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
                settle(.withdrawn)
                return .withdrawn
            }
            // `stop` has locks of its own and cannot wake this condition, so it is polled.
            condition.wait(until: now + 50_000_000)
        }
    }
}
