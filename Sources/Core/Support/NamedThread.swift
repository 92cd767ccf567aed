// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A thread of its own for stages, a service or jobs, named so that `top -H` and a debugger show whose it is.
enum NamedThread {
    /// What a new thread is handed. `@unchecked Sendable`: made on the control thread, and used only by the new
    /// thread from then on.
    private final class Start: @unchecked Sendable {
        let name: String
        let isBatch: Bool
        var body: (() -> Void)?
        let ended: () -> Void

        init(name: String, isBatch: Bool, body: @escaping () -> Void, ended: @escaping () -> Void) {
            self.name = name
            self.isBatch = isBatch
            self.body = body
            self.ended = ended
        }
    }

    /// Starts a detached thread that runs `body` to its end.
    ///
    /// - Parameter name: At most 15 bytes are shown by the kernel (proc(5), comm).
    /// - Parameter isBatch: Throughput counts, not latency. The thread then does not interrupt another one when it
    ///   wakes (sched(7), SCHED_BATCH), so that each goes through several items at a time.
    /// - Parameter ended: Called on the thread as its last act, after it let go of `body` and everything that it held.
    ///   After this call the thread frees nothing any more.
    /// - Throws: ``FrameHostError`` `.exhausted` when the system gives no further thread.
    static func start(name: String, isBatch: Bool, body: @escaping () -> Void, ended: @escaping () -> Void = {}) throws
    {
        let context = Unmanaged.passRetained(Start(name: name, isBatch: isBatch, body: body, ended: ended))
        var handle = pthread_t()
        let result = pthread_create(&handle, nil, Self.main, context.toOpaque())
        guard result == 0 else {
            context.release()
            throw FrameHostError(
                .exhausted, place: name, what: "no thread could be started: \(String(cString: strerror(result)))",
                remedy:
                    "Raise the limit of processes (ulimit -u, or TasksMax= of a service), or use fewer stages with a queue: each has a thread."
            )
        }
        pthread_detach(handle)
    }

    private static let main: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { context in
        let start = Unmanaged<Start>.fromOpaque(context!).takeRetainedValue()
        dress(name: start.name, isBatch: start.isBatch)
        Spinner.wakeUp()
        start.body?()
        start.body = nil
        Spinner.fallAsleep()
        start.ended()
        return nil
    }

    /// [the thread itself] Gives it its name and its way of being scheduled.
    static func dress(name: String, isBatch: Bool) {
        nameCurrentThread(name)
        guard isBatch else { return }
        // Refused in some containers; then the thread runs as usual.
        var parameters = sched_param()
        _ = sched_setscheduler(0, schedBatch, &parameters)
    }

    /// `SCHED_BATCH` of sched.h, which Swift does not import.
    private static let schedBatch: Int32 = 3

    /// Gives the running thread its name through proc(5), since Swift does not import `pthread_setname_np`.
    private static func nameCurrentThread(_ name: String) {
        let file = open("/proc/thread-self/comm", O_WRONLY | O_CLOEXEC)
        guard file >= 0 else { return }
        let bytes = Array(name.utf8.prefix(15))
        _ = write(file, bytes, bytes.count)
        close(file)
    }
}
