// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// A thread of a service. Others can wait for its end for a limited time.
package final class PublisherThread: Sendable {
    private let hasEnded = Locked(false)

    /// [control thread]
    ///
    /// - Throws: ``FrameHostError`` `.exhausted`.
    package init(_ name: String, _ body: @escaping @Sendable () -> Void) throws {
        let hasEnded = hasEnded
        try ServiceThread.start(name: name) {
            body()
            hasEnded.withLock { $0 = true }
        }
    }

    /// [any thread] False where it has not ended in time.
    @discardableResult
    package func wait(milliseconds: Int) -> Bool {
        for _ in 0..<max(milliseconds, 1) {
            if hasEnded.withLock({ $0 }) { return true }
            usleep(1000)
        }
        return hasEnded.withLock { $0 }
    }
}
