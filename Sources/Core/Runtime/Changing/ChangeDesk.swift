// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Carries out all changes of a chain's structure, one after the other, on a thread that exists only while there are
/// any.
final class ChangeDesk: @unchecked Sendable {
    static let mostWaiting = 64
    /// Why a change is not made.
    enum Refusal: Equatable {
        case ended
        /// Too many changes wait.
        case full
        /// The system gave no thread for the change.
        case noThread(FrameHostError)
    }

    private struct Waiting {
        var body: () -> Void
        /// Called instead of the change when it will not be made.
        var refuse: (Refusal) -> Void
    }

    private enum State { case closed, awaitsStart, open }

    private let condition = Condition()
    // Below: under `condition`.
    private var waiting: [Waiting] = []
    private var state = State.awaitsStart
    private var deskThread: ThreadState?

    /// [control thread] Allows changes from here on.
    func open(_ start: (ThreadState, @escaping () -> Void) throws -> Void) {
        let thread = condition.locked { () -> ThreadState? in
            guard state == .awaitsStart else { return nil }
            state = .open
            if !waiting.isEmpty { deskThread = ThreadState(name: "changes") }
            return deskThread
        }
        if let thread { begin(thread, start) }
    }

    /// Refuses the changes that wait where there is no thread for them: the chain goes on as it is.
    private func begin(_ thread: ThreadState, _ start: (ThreadState, @escaping () -> Void) throws -> Void) {
        do { try start(thread, { [self] in work() }) } catch {
            let refused = condition.locked { () -> [Waiting] in
                defer { (waiting, deskThread) = ([], nil) }
                return waiting
            }
            for one in refused { one.refuse(.noThread(.wrap(error))) }
        }
    }

    /// [any thread] Begins no further change. A change that is under way sees the run's stop signal.
    func close() {
        let refused = condition.locked { () -> [Waiting] in
            defer { waiting = [] }
            state = .closed
            return waiting
        }
        for one in refused { one.refuse(.ended) }
    }

    var isClosed: Bool { condition.locked { state == .closed } }

    /// [any thread] The thread of the change that is under way.
    var threads: [ThreadState] { condition.locked { deskThread.map { [$0] } ?? [] } }

    /// [any thread] Performs `body` once the changes before it are done, or `refuse` when the chain has ended, too many
    /// changes wait, or there is no thread for them.
    ///
    /// - Parameter start: Starts a thread on which the given function runs to its end. Throws where it cannot.
    func post(
        _ body: @escaping () -> Void, refuse: @escaping (Refusal) -> Void,
        start: (ThreadState, @escaping () -> Void) throws -> Void
    ) {
        let (refusal, thread) = condition.locked { () -> (Refusal?, ThreadState?) in
            guard state != .closed else { return (.ended, nil) }
            guard waiting.count < Self.mostWaiting else { return (.full, nil) }
            waiting.append(Waiting(body: body, refuse: refuse))
            guard state == .open, deskThread == nil else { return (nil, nil) }
            deskThread = ThreadState(name: "changes")
            return (nil, deskThread)
        }
        if let thread { begin(thread, start) }
        if let refusal { refuse(refusal) }
    }

    private func work() {
        while let next = take() { next.body() }
    }

    private func take() -> Waiting? {
        condition.locked {
            guard !waiting.isEmpty else {
                deskThread = nil
                return nil
            }
            return waiting.removeFirst()
        }
    }
}

/// [desk's thread] Parts of changes that their threads have not done in time. Until then such a thread does not match the
/// plan. The next change therefore waits for it, and is refused where the thread stays in the chain.
final class LateParts {
    struct Part {
        var errand: Errand
        var thread: ThreadState
        /// The stage for which the thread was asked.
        var runner: StageRunner
    }

    private var all: [Part] = []

    /// Waits for parts that are certain, `patience` nanoseconds in all, or until `stop` is raised. Keeps those that are
    /// late.
    ///
    /// - Returns: Whether each of them is late.
    @discardableResult
    func settled(_ parts: [Part], after patience: Int64, stop: StopSignal) -> [Bool] {
        let deadline = ChainClock.system.now() + patience
        return parts.map { part in
            let left = max(deadline - ChainClock.system.now(), 0)
            let isLate = part.errand.wait(left, withdrawing: false, stop: stop) == .underWay
            if isLate { all.append(part) }
            return isLate
        }
    }

    /// The parts of `stageThreads` that are still late after `patience` nanoseconds, or once `stop` is raised. Forgets
    /// those of all other threads.
    func left(among stageThreads: [StageThread], after patience: Int64, stop: StopSignal) -> [Part] {
        let deadline = ChainClock.system.now() + patience
        all.removeAll { part in !stageThreads.contains { $0.state === part.thread } }
        while true {
            all.removeAll { $0.errand.isSettled }
            if all.isEmpty || stop.isRaised || ChainClock.system.now() >= deadline { return all }
            usleep(2_000)
        }
    }
}
