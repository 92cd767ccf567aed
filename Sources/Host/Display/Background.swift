// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Threads of the program that nothing waits for.
enum Background {
    private final class Body {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    /// Signals for the main thread, or for a thread that waits for them.
    static let signals = [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH]

    /// Runs `body` on a new thread, where ``signals`` are blocked.
    ///
    /// - Returns: False where no thread could be started.
    static func start(_ body: @escaping @Sendable () -> Void) -> Bool {
        var handle = pthread_t()
        let context = Unmanaged.passRetained(Body(body)).toOpaque()
        var (blocked, before) = (sigset_t(), sigset_t())
        sigemptyset(&blocked)
        for signal in signals { sigaddset(&blocked, signal) }
        pthread_sigmask(SIG_BLOCK, &blocked, &before)
        defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
        let result = pthread_create(
            &handle, nil,
            { context in
                Unmanaged<Body>.fromOpaque(context!).takeRetainedValue().run()
                return nil
            }, context)
        guard result == 0 else {
            Unmanaged<Body>.fromOpaque(context).release()
            return false
        }
        pthread_detach(handle)
        return true
    }
}
