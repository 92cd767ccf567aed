// SPDX-License-Identifier: Apache-2.0

/// Stages with `onError: "restart"` that have failed: when each is made anew. [any thread]
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
        var fault: FrameHostError?

        /// Whether a failure now is followed by a further attempt.
        var isOpen: Bool { attempts < mostInARow }
        /// The fault for which the stage is to be started anew; nil where it was given up, and the fault was reported.
        var owed: FrameHostError? { attempts <= mostInARow ? fault : nil }
    }

    /// By the stage's number, so that a later stage with the same id begins anew.
    private let entries = Locked<[Int: Entry]>([:])

    /// [stage thread, desk's thread] Notes that a stage has failed, or could not be started again; false when it will
    /// not be started anew.
    func isToBeRestarted(_ runner: StageRunner, _ fault: FrameHostError, now: Int64) -> Bool {
        guard runner.onError == .restart else { return false }
        return entries.withLock { entries in
            var entry = entries[runner.number] ?? Entry()
            if now - entry.lastFailure > Self.recoveredNs { entry.attempts = 0 }
            entry.lastFailure = now
            entry.fault = fault
            entry.due = entry.isOpen ? now + min(1_000_000_000 << Int64(entry.attempts), Self.longestNs) : nil
            let goesOn = entry.isOpen
            entry.attempts += 1
            entries[runner.number] = entry
            return goesOn
        }
    }

    /// [desk's thread, control thread] The stage could not be made now, which is no failure of its own: it is tried
    /// again a second later, and the attempt does not count.
    func waitForMore(_ number: Int, now: Int64) {
        entries.withLock { $0[number]?.due = now + 1_000_000_000 }
    }

    /// [any thread] Why a failed stage is about to be started anew; nil where it will not be.
    func awaited(_ runner: StageRunner) -> String? {
        guard runner.onError == .restart else { return nil }
        return entries.withLock { $0[runner.number]?.owed?.what }
    }

    /// [desk's thread, stage thread] Forgets a stage that has left the chain, was replaced, or has another `onError`
    /// now.
    ///
    /// - Returns: Its fault where it has failed and was to be started anew. Only one of several callers gets it.
    func forget(_ runner: StageRunner) -> FrameHostError? {
        entries.withLock { entries in
            let owed = entries.removeValue(forKey: runner.number)?.owed
            return runner.hasFailed ? owed : nil
        }
    }

    /// [desk's thread] A new instance has taken the place of a stage's. Where that one has failed already, its failure
    /// is kept.
    func forgetUnlessFailed(_ runner: StageRunner) {
        // A failure is noted in the runner before it is noted here.
        entries.withLock { if !runner.hasFailed { $0[runner.number] = nil } }
    }

    /// [control thread, at the end] The faults of the stages that were to be started anew and were not.
    func unfinished(of runners: [StageRunner]) -> [FrameHostError] {
        entries.withLock { entries in runners.compactMap { $0.hasFailed ? entries[$0.number]?.owed : nil } }
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
