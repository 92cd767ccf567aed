// SPDX-License-Identifier: Apache-2.0

/// Starts threads of a service or the host, for work that takes time and that no frame waits for.
public enum ServiceThread {
    /// Starts a detached thread that runs `body` to its end.
    ///
    /// - Parameters:
    ///   - name: At most 15 bytes are shown by the kernel (proc(5), comm).
    ///   - mostlyWaits: Whether it waits nearly all the time. Such a thread does not count as one that needs a processor,
    ///     where a stage thread decides whether to look for work or to sleep.
    ///   - body: What the thread does.
    /// - Throws: ``FrameHostError`` `.exhausted` when the system gives no further thread.
    public static func start(
        name: String, mostlyWaits: Bool = false, _ body: @escaping @Sendable () -> Void
    ) throws {
        try CountedThread.start(name: name, isBatch: false) {
            if mostlyWaits { Spinner.fallAsleep() }
            body()
            if mostlyWaits { Spinner.wakeUp() }
        }
    }
}
