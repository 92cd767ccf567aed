// SPDX-License-Identifier: Apache-2.0

/// Starts threads of a service or the host, for work that takes time and that no frame waits for.
public enum ServiceThread {
    /// Starts a detached thread that runs `body` to its end.
    ///
    /// - Parameters:
    ///   - name: At most 15 bytes are shown by the kernel (proc(5), comm).
    ///   - body: What the thread does.
    /// - Throws: ``FrameHostError`` `.exhausted` when the system gives no further thread.
    public static func start(name: String, _ body: @escaping @Sendable () -> Void) throws {
        try NamedThread.start(name: name, isBatch: false, body: body)
    }
}
