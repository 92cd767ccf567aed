// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Signals that one thread waits for.
enum BlockedSignals {
    /// [main thread] Blocks signals in this thread and so in every thread made from now on, also by libraries while
    /// planning. The signals then reach the thread that waits for them (sigwait(3)).
    static func block(_ numbers: [Int32]) -> sigset_t {
        var signals = sigset_t()
        sigemptyset(&signals)
        for number in numbers { sigaddset(&signals, number) }
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        return signals
    }

    /// Waits for one of the signals. Once the process has crashed, SIGUSR1 belongs to the backtrace. Any other
    /// signal then ends the process, since nothing else would.
    static func wait(for signals: inout sigset_t) -> Int32 {
        while true {
            var signal: Int32 = 0
            guard sigwait(&signals, &signal) == 0 else { continue }
            guard CrashReport.isCrashing else { return signal }
            guard signal != SIGUSR1 else { continue }
            _exit(128 + signal)
        }
    }
}
