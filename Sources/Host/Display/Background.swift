// SPDX-License-Identifier: Apache-2.0

import FrameSupport
import Glibc

/// Threads of the program that nothing waits for.
enum Background {
    /// Signals for the main thread, or for a thread that waits for them.
    static let signals = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH]

    /// Runs `body` on a new thread, where ``signals`` are blocked.
    ///
    /// - Returns: False where no thread could be started.
    static func start(_ body: @escaping @Sendable () -> Void) -> Bool {
        (try? NamedThread.start("background", blocking: signals, body)) != nil
    }
}
