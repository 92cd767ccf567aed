// SPDX-License-Identifier: Apache-2.0

/// How many threads of a run have not ended, and where the control thread waits for that.
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
