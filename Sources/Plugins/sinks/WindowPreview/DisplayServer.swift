// SPDX-License-Identifier: Apache-2.0

import CSDL2
import Glibc
import Synchronization

/// Tells whether the connection to an X server still exists. libX11 ends the process when it breaks, unless a handler
/// prevents that (XSetIOErrorHandler(3)). Belongs to the window thread.
enum DisplayServer {
    private static let lost = Atomic<Bool>(false)

    /// Whether the connection was lost, for good: SDL makes no second connection in a process.
    static var isLost: Bool { lost.load(ordering: .acquiring) }

    /// Graphics drivers unload themselves when the process ends, while threads of theirs still run, and libGLX waits
    /// for the lock of a lost connection. Handlers run in the opposite order of their registration (on_exit(3)). This
    /// one is registered after both are loaded, so it runs before theirs, and ends the process with its present status.
    private static let endsAtOnce: Bool =
        on_exit(
            { status, _ in
                fflush(nil)
                _exit(status)
            }, nil) == 0

    private typealias ErrorHandler = @convention(c) (OpaquePointer?) -> Int32
    private typealias SetErrorHandler = @convention(c) (ErrorHandler?) -> ErrorHandler?

    /// Makes libX11 report a broken connection here, where SDL uses X11.
    ///
    /// This is for every connection: SDL and graphics drivers have several. libX11 calls this one first, without its
    /// locks (XSetIOErrorHandler(3)), and ends the process when it returns.
    static func watch() {
        // SDL loads libX11 privately, so its symbols must be found by hand.
        guard let library = dlopen("libX11.so.6", RTLD_NOW | RTLD_NOLOAD) else { return }
        defer { dlclose(library) }
        guard let setError = dlsym(library, "XSetIOErrorHandler") else { return }
        _ = endsAtOnce
        _ = unsafeBitCast(setError, to: SetErrorHandler.self)({ _ in
            // This runs within a call of SDL, which would wait for an answer forever.
            DisplayServer.lost.store(true, ordering: .releasing)
            WindowThread.shared.screenIsLost()
            while true { pause() }
        })
    }
}
