// SPDX-License-Identifier: Apache-2.0

/// What a chain file says about a stage's input link. The planner decides what is nil.
public struct LinkRequest: Sendable, Equatable {
    /// Places in the queue; 0 for no queue.
    public var queue: Int?
    /// What happens to an item that finds the queue full.
    public var whenFull: DropPolicy?
    /// Access units: the longest span in the queue, in seconds.
    public var seconds: Double?
    /// Access units: the most in the queue, in 10^6 bytes.
    public var megabytes: Double?
    /// Whether the stage and those behind it get copies in buffers of their own (`CopyTap`).
    public var copies = false

    /// Asks for a link; the planner decides what is left out.
    public init(
        queue: Int? = nil, whenFull: DropPolicy? = nil, seconds: Double? = nil, megabytes: Double? = nil,
        copies: Bool = false
    ) {
        self.queue = queue
        self.whenFull = whenFull
        self.seconds = seconds
        self.megabytes = megabytes
        self.copies = copies
    }
}
