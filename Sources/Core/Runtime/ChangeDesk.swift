// SPDX-License-Identifier: Apache-2.0

/// Carries out all changes of a chain's structure, one after the other, on a thread that exists only while there are
/// any.
final class ChangeDesk: @unchecked Sendable {
    static let mostWaiting = 64
    private struct Waiting {
        var body: () -> Void
        /// Called instead of the change when it will not be made.
        var refuse: () -> Void
    }

    private enum State { case closed, awaitsStart, open }

    private let condition = Condition()
    // Below: under `condition`.
    private var waiting: [Waiting] = []
    private var state = State.awaitsStart
    private var worker: ThreadState?

    /// [control thread] Allows changes from here on.
    func open(_ start: (ThreadState, @escaping () -> Void) -> Void) {
        let thread = condition.locked { () -> ThreadState? in
            guard state == .awaitsStart else { return nil }
            state = .open
            if !waiting.isEmpty { worker = ThreadState(name: "changes") }
            return worker
        }
        if let thread { start(thread, { [self] in work() }) }
    }

    /// [any thread] Begins no further change. A change that is under way sees the run's stop signal.
    func close() {
        let refused = condition.locked { () -> [Waiting] in
            defer { waiting = [] }
            state = .closed
            return waiting
        }
        for one in refused { one.refuse() }
    }

    /// Whether the queue of changes is full.
    var isFull: Bool { condition.locked { state != .closed && waiting.count >= Self.mostWaiting } }

    var isClosed: Bool { condition.locked { state == .closed } }

    /// [any thread] The thread of the change that is under way.
    var threads: [ThreadState] { condition.locked { worker.map { [$0] } ?? [] } }

    /// [any thread] Performs `body` once the changes before it are done, or `refuse` when the chain has ended or too
    /// many changes wait.
    ///
    /// - Parameter start: Starts a thread on which the given function runs to its end.
    func post(
        _ body: @escaping () -> Void, refuse: @escaping () -> Void, start: (ThreadState, @escaping () -> Void) -> Void
    ) {
        let (isTaken, thread) = condition.locked { () -> (Bool, ThreadState?) in
            guard state != .closed, waiting.count < Self.mostWaiting else { return (false, nil) }
            waiting.append(Waiting(body: body, refuse: refuse))
            guard state == .open, worker == nil else { return (true, nil) }
            worker = ThreadState(name: "changes")
            return (true, worker)
        }
        if let thread { start(thread, { [self] in work() }) }
        if !isTaken { refuse() }
    }

    private func work() {
        while let next = take() { next.body() }
    }

    private func take() -> Waiting? {
        condition.locked {
            guard !waiting.isEmpty else {
                worker = nil
                return nil
            }
            return waiting.removeFirst()
        }
    }
}
