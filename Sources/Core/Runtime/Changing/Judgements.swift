// SPDX-License-Identifier: Apache-2.0

/// Failures of stages that are not judged yet. `Chain.judgements` has the lock under which stages are judged.
///
/// A stage is judged by `Chain.graph` and by what `onError` says at that moment. A change may replace a stage, remove it,
/// or give it another `onError`. So a failure during a change waits until the change is made or refused, but for a second
/// at most: a change can be in a stage's own code for as long as that likes, and a failed run must end.
struct Judgements {
    typealias Failure = (runner: StageRunner, fault: FrameHostError, since: Int64)

    /// Nil while no change is being made.
    private var waiting: [Failure]?

    /// Whether a change is being made.
    var isOpen: Bool { waiting != nil }

    mutating func open() { waiting = [] }

    /// Keeps a failure; false while no change is being made.
    mutating func keep(_ runner: StageRunner, _ fault: FrameHostError) -> Bool {
        waiting?.append((runner, fault, ChainClock.system.now()))
        return isOpen
    }

    /// Takes what has waited for a second.
    mutating func takeLate(now: Int64) -> [Failure] {
        func isLate(_ failure: Failure) -> Bool { now - failure.since >= Chain.changePatienceNs }
        defer { waiting?.removeAll(where: isLate) }
        return waiting?.filter(isLate) ?? []
    }

    /// Takes everything: the change is made or refused, or the run is over.
    mutating func close() -> [Failure] {
        defer { waiting = nil }
        return waiting ?? []
    }
}

extension Chain {
    /// [stage thread] Judges a failure, or keeps it for the end of the change that is being made.
    func judgeOrKeep(_ runner: StageRunner, _ fault: FrameHostError) {
        judgements.withLock { if !$0.keep(runner, fault) { judge(runner, fault) } }
    }

    /// [desk's thread] Judges a failed stage that could not be started anew.
    ///
    /// - Parameter fault: Nil where its input has ended.
    func judgeAgain(_ runner: StageRunner, _ fault: FrameHostError?) {
        judgements.withLock { _ in judge(runner, fault) }
    }

    /// [control thread] A change that takes long, perhaps for good, holds up no judgement.
    func judgeLateFailures(now: Int64) {
        judgements.withLock { for failure in $0.takeLate(now: now) { judgeUnlessReplaced(failure) } }
    }

    /// [desk's thread] Makes a change. Then judges the stages that have failed meanwhile, and failed stages with another
    /// `onError`.
    func judging(_ make: () throws -> GraphChange) throws -> GraphChange {
        judgements.withLock { $0.open() }
        let change = Swift.Result { try make() }
        judgements.withLock { judgements in
            let failures = judgements.close()
            for failure in failures { judgeUnlessReplaced(failure) }
            let others = (try? change.get())?.otherPolicies ?? []
            for runner in others
            where runner.isDown && !runner.thread.isClosed && !failures.contains(where: { $0.runner === runner }) {
                judge(runner, nil)
            }
            endRunIfItMust()
        }
        return try change.get()
    }

    /// Judges a failure of a while ago. Under the lock of ``judgements``.
    private func judgeUnlessReplaced(_ failure: Judgements.Failure) {
        let runner = failure.runner
        if runner.isDown {
            judge(runner, failure.fault)
        } else if runner.onError != .restart {
            failures.withLock { $0.append(failure.fault) }
        }
    }

    /// Does what `onError` says of a stage that has failed. Under the lock of ``judgements``.
    ///
    /// - Parameter fault: Nil where the stage has another `onError` since its last failure, or its thread has ended.
    private func judge(_ runner: StageRunner, _ fault: FrameHostError?) {
        let leaves = !runners.contains { $0 === runner }
        // The thread of a stage that leaves may become another one now.
        let hasEnded = !leaves && runner.thread.isClosed
        let verdict = restarts.judge(runner, fault, hasEnded: hasEnded, now: ChainClock.system.now())
        if runner.isDown, runner.hasFailed == (runner.onError == .bypass) {
            Errand { runner.settleBypass() }.post(to: runner.thread, isRequired: true)
        }
        guard verdict.isOut || leaves else { return }
        // Nothing starts a stage anew that leaves.
        let owed = leaves ? restarts.forget(runner) : nil
        if let fault = verdict.fault ?? owed { failures.withLock { $0.append(fault) } }
        endRunIfItMust()
        // A failed source rests until this. The context is that of the failed instance: another may take its place now.
        let context = runner.shown.context
        if runner.hasFailed, runner.kind == .source { context.requestEnd() }
    }

    /// Ends the run where one of its failed stages must. A sink that failed earlier may be the last one now. A stage that
    /// leaves ends no run.
    func endRunIfItMust() {
        let stages = runners
        let mustEnd = stages.contains { restarts.mayEndRun($0) && endsRun($0, among: stages) }
        if mustEnd { drain(keepingJobs: true) }
    }

    /// Whether the failure of `runner` ends the run. Where the chain file does not say, and after the last restart, it
    /// does so unless it is that of one sink of several. A full disk, for example, is no reason to end the stream
    /// beside it. A sink whose input has ended is no longer there for what still comes.
    private func endsRun(_ runner: StageRunner, among stages: [StageRunner]) -> Bool {
        switch runner.onError {
        case .stop: true
        case .continue, .bypass: false
        case .restart, nil:
            runner.kind != .sink
                || stages.allSatisfy { $0.kind != .sink || restarts.isOut($0) || $0.thread.isClosed }
        }
    }
}
