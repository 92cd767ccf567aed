// SPDX-License-Identifier: Apache-2.0

/// What the chain file says of a stage that runs in a process of its own: the key `isolate`.
public struct IsolationRequest: Sendable, Equatable {
    /// What becomes of the frame that the process had in hand when it ended, and of those that come before another one
    /// is ready.
    public enum OnDeath: String, Sendable, CaseIterable {
        /// The frame goes on as it came.
        case pass
        /// The frame ends there.
        case drop
        /// The frame goes on, covered whole.
        case cover
    }

    /// What the process may not do.
    public enum Sandbox: String, Sendable, CaseIterable {
        /// Nothing is forbidden but new rights and core files.
        case none
        /// It cannot reach the network.
        case usual = "default"
    }

    /// What the process may not do.
    public var sandbox = Sandbox.usual
    /// How long a call may take, in milliseconds; nil for four frame times, at least 100.
    public var deadlineMs: Int?
    /// Nil for ``OnDeath/pass``, or ``OnDeath/cover`` where no frame may go on without the stage's work.
    public var onDeath: OnDeath?
    /// How often the process may end within a minute. With one time more the stage has failed.
    public var deathsPerMinute = 5
    /// The file of the stage's plugin, which the process loads.
    public var plugin = ""

    /// The defaults.
    public init() {}
}
