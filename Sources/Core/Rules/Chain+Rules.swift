// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// What a host needs from a chain to carry out its rules.
extension Chain {
    /// [any thread] The rules of the chain as it runs now.
    public var rules: [Rule] { graph.request.rules }

    /// [any thread] Whether the stage has ended normally, because nothing more comes for it; false for a stage that
    /// failed.
    public func hasEnded(_ id: String) -> Bool {
        guard let runner = graph.runner(id: id) else { return false }
        return runner.thread.isClosed && !runner.hasFailed
    }
}
