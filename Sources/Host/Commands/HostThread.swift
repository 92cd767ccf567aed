// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// A thread of the program's own that touches no frame.
enum HostThread {
    /// What a new thread is handed. `@unchecked Sendable`: used by the new thread alone from its start on.
    private final class Start: @unchecked Sendable {
        let name: String
        let body: @Sendable () -> Void

        init(name: String, body: @escaping @Sendable () -> Void) {
            self.name = name
            self.body = body
        }
    }

    /// Starts a detached thread.
    ///
    /// - Parameter name: At most 15 bytes are shown by the kernel (proc(5), comm).
    /// - Throws: ``FrameHostError`` `.exhausted` when the system gives no further thread.
    static func start(name: String, _ body: @escaping @Sendable () -> Void) throws {
        var handle = pthread_t()
        let context = Unmanaged.passRetained(Start(name: name, body: body)).toOpaque()
        let result = pthread_create(&handle, nil, Self.main, context)
        guard result == 0 else {
            Unmanaged<Start>.fromOpaque(context).release()
            throw FrameHostError(
                .exhausted, place: FaultPlace(name),
                what: "no thread could be started: \(String(cString: strerror(result)))",
                remedy: "Start fewer chains, or raise the limit of processes (ulimit -u).")
        }
        pthread_detach(handle)
    }

    private static let main: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { context in
        let start = Unmanaged<Start>.fromOpaque(context!).takeRetainedValue()
        nameCurrentThread(start.name)
        start.body()
        return nil
    }

    /// `pthread_setname_np(3)` is not in Swift's Glibc; this is what it does (proc(5), comm).
    private static func nameCurrentThread(_ name: String) {
        let file = open("/proc/thread-self/comm", O_WRONLY | O_CLOEXEC)
        guard file >= 0 else { return }
        let bytes = Array(name.utf8.prefix(15))
        _ = write(file, bytes, bytes.count)
        close(file)
    }
}
