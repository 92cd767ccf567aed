// SPDX-License-Identifier: Apache-2.0

/// Stages that have failed, by what `onError` says of them: when one is made anew, and which are out of the run. [any
/// thread; `Chain.judgements` lets one thread at a time judge]
final class Restarts: Sendable {
    static let mostInARow = 10
    private static let longestNs: Int64 = 30_000_000_000
    /// A stage that has run for this long counts as recovered, nanoseconds.
    private static let recoveredNs: Int64 = 60_000_000_000

    private struct Entry {
        var attempts = 0
        /// When the stage is made anew, by the system clock; nil while it runs or is being made.
        var due: Int64?
        var lastFailure: Int64 = 0
        /// When the present instance took the place of one that had failed; nil where it has failed since.
        var runsSince: Int64?
        /// Of the last failure.
        var fault: FrameHostError?
        /// Whether nothing starts the stage anew.
        var isOut = false
        /// Whether it was to be started anew, but its input has ended: it would have given nothing more.
        var hasEnded = false
        /// Whether the fault is among those of the run.
        var isCounted = false

        /// The fault of a stage that is to be started anew.
        var owed: FrameHostError? { isOut ? nil : fault }
    }

    /// What becomes of a stage that has failed.
    struct Verdict {
        /// Whether nothing starts it anew.
        var isOut: Bool
        /// The fault where it counts from now on.
        var fault: FrameHostError?
    }

    /// By the stage's number, so that a later stage with the same id begins anew.
    private let entries = Locked<[Int: Entry]>([:])

    /// Decides what becomes of a stage that has failed, or could not be started again.
    ///
    /// - Parameters:
    ///   - fault: Nil where the stage has another `onError` since its last failure, or its thread has ended.
    ///   - hasEnded: Whether its thread has ended.
    func judge(_ runner: StageRunner, _ fault: FrameHostError?, hasEnded: Bool = false, now: Int64) -> Verdict {
        entries.withLock { entries in
            var entry = entries[runner.number] ?? Entry()
            defer { entries[runner.number] = entry }
            if let fault { (entry.fault, entry.isCounted) = (fault, false) }
            entry.due = nil
            let isRestarted = runner.onError == .restart
            if hasEnded, isRestarted || fault == nil { entry.hasEnded = true }
            entry.isOut = !isRestarted || hasEnded
            if !entry.isOut {
                // The time for which it waited for a restart, or tried to start, is none for which it has run.
                let rested = fault == nil ? now - entry.lastFailure : entry.runsSince.map { now - $0 } ?? 0
                if rested > Self.recoveredNs { entry.attempts = 0 }
                if fault != nil { (entry.lastFailure, entry.runsSince) = (now, nil) }
                entry.isOut = entry.attempts >= Self.mostInARow
                if !entry.isOut { entry.due = now + min(1_000_000_000 << Int64(entry.attempts), Self.longestNs) }
                // Another `onError` is no attempt.
                if fault != nil { entry.attempts += 1 }
            }
            guard entry.isOut, !entry.isCounted else { return Verdict(isOut: entry.isOut) }
            entry.isCounted = true
            return Verdict(isOut: true, fault: entry.fault)
        }
    }

    /// [desk's thread, control thread] The stage could not be made now, which is no failure of its own: it is tried
    /// again a second later, and the attempt does not count.
    func waitForMore(_ number: Int, now: Int64) {
        entries.withLock { $0[number]?.due = now + 1_000_000_000 }
    }

    /// [stage thread] A new instance takes the place of one that had failed.
    func began(_ number: Int, now: Int64) {
        entries.withLock { entries in
            guard var entry = entries[number] else { return }
            (entry.runsSince, entry.isOut, entry.due) = (now, false, nil)
            entries[number] = entry
        }
    }

    /// [any thread] Why a failed stage is about to be started anew; nil where it will not be, or where its failure is
    /// not judged yet.
    func awaited(_ runner: StageRunner) -> String? { entries.withLock { $0[runner.number]?.owed?.what } }

    /// [any thread] Whether the stage has failed, and nothing starts it anew.
    func isOut(_ runner: StageRunner) -> Bool {
        runner.isDown && entries.withLock { $0[runner.number]?.isOut == true }
    }

    /// [any thread] Whether the stage is out, and not only because its input has ended.
    func mayEndRun(_ runner: StageRunner) -> Bool {
        isOut(runner) && entries.withLock { $0[runner.number]?.hasEnded == false }
    }

    /// Forgets a stage that has left the chain.
    ///
    /// - Returns: Its fault where it has failed and was to be started anew.
    func forget(_ runner: StageRunner) -> FrameHostError? {
        entries.withLock { entries in
            let owed = entries.removeValue(forKey: runner.number)?.owed
            return runner.isDown ? owed : nil
        }
    }

    /// [desk's thread] A new instance has taken the place of a stage's. Where that one has failed already, its failure
    /// is kept.
    func forgetUnlessFailed(_ runner: StageRunner) {
        // A failure is noted in the runner before it is noted here.
        entries.withLock { if !runner.isDown { $0[runner.number] = nil } }
    }

    /// [control thread, at the end] The faults of the stages that were to be started anew and were not.
    func unfinished(of runners: [StageRunner]) -> [FrameHostError] {
        entries.withLock { entries in runners.compactMap { $0.isDown ? entries[$0.number]?.owed : nil } }
    }

    /// [control thread] The numbers of the stages that are due, each once.
    func due(now: Int64) -> [Int] {
        entries.withLock { entries in
            let due = entries.filter { $0.value.due.map { now >= $0 } ?? false }.map(\.key)
            for number in due { entries[number]?.due = nil }
            return due
        }
    }
}
