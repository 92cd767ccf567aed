// SPDX-License-Identifier: Apache-2.0

/// A thread of stages, of a service or of jobs: it counts as one that needs a processor (``Spinner``).
enum CountedThread {
    /// Starts a detached thread that runs `body` to its end.
    ///
    /// - Parameters:
    ///   - name: At most 15 bytes are shown by the kernel (proc(5), comm).
    ///   - isBatch: Throughput counts, not latency.
    ///   - ended: Called on the thread as its last act, after it let go of `body` and everything that it held.
    /// - Throws: ``FrameHostError`` `.exhausted` when the system gives no further thread.
    static func start(name: String, isBatch: Bool, body: @escaping () -> Void, ended: @escaping () -> Void = {}) throws
    {
        do {
            try NamedThread.start(name, isBatch: isBatch, ended: ended) {
                Spinner.wakeUp()
                body()
                Spinner.fallAsleep()
            }
        } catch {
            throw FrameHostError(
                .exhausted, place: name, what: "no thread could be started: \(error)",
                remedy:
                    "Raise the limit of processes (ulimit -u, or TasksMax= of a service), or use fewer stages with a queue: each has a thread."
            )
        }
    }
}
