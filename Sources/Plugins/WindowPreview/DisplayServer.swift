// SPDX-License-Identifier: Apache-2.0

import CSDL2
import Glibc
import Synchronization

/// Whether the connection to an X server still stands. libX11 ends the process when it breaks, unless it is told not to
/// (XSetIOErrorHandler(3)). Belongs to the window thread.
enum DisplayServer {
    private static let lost = Atomic<Bool>(false)

    /// From then on; SDL has no second connection for a process.
    static var isLost: Bool { lost.load(ordering: .acquiring) }

    /// Graphics drivers unload themselves when the process ends, beside threads of theirs that run, and libGLX wants the
    /// lock of a connection that is lost. Handlers run in the opposite order of their registration (on_exit(3)), so this
    /// one, made when both are there, runs before theirs: it ends the process with the status it has.
    private static let endsAtOnce: Bool =
        on_exit(
            { status, _ in
                fflush(nil)
                _exit(status)
            }, nil) == 0

    private typealias ErrorHandler = @convention(c) (OpaquePointer?) -> Int32
    private typealias SetErrorHandler = @convention(c) (ErrorHandler?) -> ErrorHandler?

    /// Has libX11 say so here when a connection breaks, where SDL uses X11.
    ///
    /// Of any connection: SDL and graphics drivers have more than one. libX11 calls this one first, without its locks
    /// (XSetIOErrorHandler(3)), and ends the process when it returns.
    static func watch() {
        // SDL loads it under no name that others see.
        guard let library = dlopen("libX11.so.6", RTLD_NOW | RTLD_NOLOAD) else { return }
        defer { dlclose(library) }
        guard let setError = dlsym(library, "XSetIOErrorHandler") else { return }
        _ = endsAtOnce
        _ = unsafeBitCast(setError, to: SetErrorHandler.self)({ _ in
            // In the midst of a call of SDL's, which would wait for an answer for ever.
            DisplayServer.lost.store(true, ordering: .releasing)
            WindowThread.shared.screenIsLost()
            while true { pause() }
        })
    }
}
