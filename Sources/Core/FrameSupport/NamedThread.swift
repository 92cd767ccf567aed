// SPDX-License-Identifier: Apache-2.0

import Glibc

/// A thread with a name, so that `top -H` and a debugger show whose it is. Others can wait for its end.
///
/// A thread of its own for anything that a chain must wait for at its end; ``start(_:isBatch:blocking:ended:_:)`` for
/// threads that nothing waits for. `@unchecked Sendable`: the handle is used by the owner only.
public final class NamedThread: @unchecked Sendable {
    /// Raised when the thread's body has returned, and everything that it held was let go of.
    public let end = WaitableFlag()
    /// nil once it was joined.
    private var handle: pthread_t?

    /// Starts a thread that runs `body` to its end.
    ///
    /// - Parameter name: At most 15 bytes are shown by the kernel (proc(5), comm).
    public init(_ name: String, _ body: @escaping () -> Void) throws(NoThread) {
        handle = try Self.make(Start(name: name, isBatch: false, body: body, ended: { [end] in end.raise() }), [])
    }

    deinit { if let handle { pthread_detach(handle) } }

    /// [the owner] Waits until the kernel has the thread back, so that it counts for no limit any more.
    public func join() {
        guard let handle else { return }
        pthread_join(handle, nil)
        self.handle = nil
    }

    /// Starts a detached thread that runs `body` to its end.
    ///
    /// - Parameters:
    ///   - isBatch: Throughput counts, not latency. The thread then does not interrupt another one when it wakes
    ///     (sched(7), SCHED_BATCH), so that each goes through several items at a time.
    ///   - signals: Signals that other threads of the process take.
    ///   - ended: Called on the thread as its last act, after it let go of `body` and everything that it held. After
    ///     this call the thread frees nothing any more.
    public static func start(
        _ name: String, isBatch: Bool = false, blocking signals: [Int32] = [], ended: @escaping () -> Void = {},
        _ body: @escaping () -> Void
    ) throws(NoThread) {
        pthread_detach(try make(Start(name: name, isBatch: isBatch, body: body, ended: ended), signals))
    }

    /// What a new thread is handed. `@unchecked Sendable`: made by one thread, and used only by the new one from then
    /// on.
    private final class Start: @unchecked Sendable {
        let name: String
        let isBatch: Bool
        var body: (() -> Void)?
        let ended: () -> Void

        init(name: String, isBatch: Bool, body: @escaping () -> Void, ended: @escaping () -> Void) {
            (self.name, self.isBatch, self.body, self.ended) = (name, isBatch, body, ended)
        }
    }

    private static func make(_ start: Start, _ signals: [Int32]) throws(NoThread) -> pthread_t {
        let context = Unmanaged.passRetained(start)
        var (blocked, before) = (sigset_t(), sigset_t())
        sigemptyset(&blocked)
        for signal in signals { sigaddset(&blocked, signal) }
        // A new thread has the mask of the one that makes it.
        pthread_sigmask(SIG_BLOCK, &blocked, &before)
        defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
        var handle = pthread_t()
        let result = pthread_create(
            &handle, nil,
            { context in
                let start = Unmanaged<Start>.fromOpaque(context!).takeRetainedValue()
                NamedThread.dress(name: start.name, isBatch: start.isBatch)
                start.body?()
                start.body = nil
                start.ended()
                return nil
            }, context.toOpaque())
        guard result == 0 else {
            context.release()
            throw NoThread(code: result)
        }
        return handle
    }

    /// [the thread itself] Gives it its name and its way of being scheduled.
    public static func dress(name: String, isBatch: Bool) {
        // Swift does not import `pthread_setname_np`; proc(5) does the same.
        let file = open("/proc/thread-self/comm", O_WRONLY | O_CLOEXEC)
        if file >= 0 {
            let bytes = Array(name.utf8.prefix(15))
            _ = write(file, bytes, bytes.count)
            close(file)
        }
        guard isBatch else { return }
        // Refused in some containers; then the thread runs as usual.
        var parameters = sched_param()
        _ = sched_setscheduler(0, schedBatch, &parameters)
    }

    /// `SCHED_BATCH` of sched.h, which Swift does not import.
    private static let schedBatch: Int32 = 3
}

/// Why the system gives no further thread.
public struct NoThread: Error, CustomStringConvertible {
    /// The errno of pthread_create(3).
    public let code: Int32

    public var description: String { String(cString: strerror(code)) }

    /// What a user can do about it.
    public static let remedy =
        "Raise the limit of processes (ulimit -u, or TasksMax= of a service), or end other programs."
}
