// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Signals that one thread waits for.
enum BlockedSignals {
    /// [main thread] Blocks signals in this thread and so in every thread made from now on, those that libraries make
    /// while planning too. They then reach the thread that waits for them (sigwait(3)).
    static func block(_ numbers: [Int32]) -> sigset_t {
        var signals = sigset_t()
        sigemptyset(&signals)
        for number in numbers { sigaddset(&signals, number) }
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        return signals
    }
}
