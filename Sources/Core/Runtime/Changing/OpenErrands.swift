// SPDX-License-Identifier: Apache-2.0

import Glibc

/// [desk's thread] Work of changes that threads have not done in time. Until a thread has done it, the thread does
/// not match the plan. The next change therefore waits for it, and is refused where the thread stays in the chain.
final class OpenErrands {
    struct Open {
        var errand: Errand
        var thread: ThreadState
        /// The stage for which the thread was asked.
        var runner: StageRunner
    }

    private var all: [Open] = []

    func add(_ errand: Errand, on thread: ThreadState, for runner: StageRunner) {
        all.append(Open(errand: errand, thread: thread, runner: runner))
    }

    /// The errands of `workers` that are not settled after `patience` nanoseconds, or once `stop` is raised.
    /// Forgets those of all other threads.
    func left(among workers: [Worker], after patience: Int64, stop: StopSignal) -> [Open] {
        let deadline = ChainClock.system.now() + patience
        all.removeAll { open in !workers.contains { $0.state === open.thread } }
        while true {
            all.removeAll { $0.errand.isSettled }
            if all.isEmpty || stop.isRaised || ChainClock.system.now() >= deadline { return all }
            usleep(2_000)
        }
    }
}
