// SPDX-License-Identifier: Apache-2.0

/// Counts the threads of a run that have not ended. The control thread waits here for their end.
final class RunningThreads: @unchecked Sendable {
    let changed = Condition()
    /// Under the lock of `changed`.
    private(set) var count = 0

    /// [any thread] Counts threads that are about to be started.
    func add(_ threads: [ThreadState]) {
        changed.locked {
            for thread in threads { thread.isCounted = true }
            count += threads.count
        }
    }

    /// [any thread] Whether `thread` was started and has not ended.
    func has(_ thread: ThreadState) -> Bool {
        changed.locked { thread.isCounted } && !thread.finished.load(ordering: .acquiring)
    }

    /// [any thread] Whether `thread` was started, has not ended, and no other thread runs.
    func isOnly(_ thread: ThreadState) -> Bool {
        changed.locked {
            // One that is about to be started is not among those that count yet.
            count == 1 && thread.isCounted && !thread.isAbandoned && !thread.finished.load(ordering: .acquiring)
        }
    }

    /// [stage thread, as its last act]
    func ended(_ thread: ThreadState) {
        changed.locked {
            if !thread.isAbandoned { count -= 1 }
            changed.broadcast()
        }
    }

    /// [control thread] Stops waiting for `thread`.
    func abandon(_ thread: ThreadState) {
        changed.locked {
            guard thread.isCounted, !thread.isAbandoned, !thread.finished.load(ordering: .acquiring) else { return }
            thread.isAbandoned = true
            count -= 1
            changed.broadcast()
        }
    }
}
