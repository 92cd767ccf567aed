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
    }

    private let entries = Locked<[String: Entry]>([:])

    /// [stage thread, desk's thread] Notes that a stage has failed, or could not be started again; false when it will
    /// not be started anew.
    func isToBeRestarted(_ runner: StageRunner, _ fault: FrameHostError, now: Int64) -> Bool {
        guard runner.onError == .restart else { return false }
        return entries.withLock { entries in
            var entry = entries[runner.id] ?? Entry()
            if now - entry.lastFailure > Self.recoveredNs { entry.attempts = 0 }
            entry.lastFailure = now
            entry.fault = fault
            let goesOn = entry.attempts < Self.mostInARow
            entry.due = goesOn ? now + min(1_000_000_000 << Int64(entry.attempts), Self.longestNs) : nil
            entry.attempts += 1
            entries[runner.id] = entry
            return goesOn
        }
    }

    /// [desk's thread, control thread] The stage could not be made now, which is no failure of its own: it is tried
    /// again a second later, and the attempt does not count.
    func waitForMore(_ id: String, now: Int64) {
        entries.withLock { $0[id]?.due = now + 1_000_000_000 }
    }

    /// [any thread] Why a failed stage is about to be started anew; nil where it will not be.
    func awaited(_ runner: StageRunner) -> String? {
        entries.withLock { entries in
            guard let entry = entries[runner.id], entry.attempts <= Self.mostInARow else { return nil }
            return entry.fault?.what
        }
    }

    /// [control thread, at the end] The faults of the stages that were to be started anew and were not.
    func unfinished(of runners: [StageRunner]) -> [FrameHostError] {
        entries.withLock { entries in
            runners.compactMap { runner in
                guard runner.hasFailed, let entry = entries[runner.id], entry.attempts <= Self.mostInARow else {
                    return nil
                }
                return entry.fault
            }
        }
    }

    /// [control thread] The stages that are due, each once.
    func due(now: Int64) -> [String] {
        entries.withLock { entries in
            let due = entries.filter { $0.value.due.map { now >= $0 } ?? false }.map(\.key)
            for id in due { entries[id]?.due = nil }
            return due
        }
    }
}
