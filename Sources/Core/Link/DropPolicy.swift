/// What a link does with an item that finds its queue full.
public enum DropPolicy: String, Sendable, Hashable, CaseIterable, Codable {
    /// The producer waits. On a live source's own thread the item is dropped instead (`noBuffer`): a live source never
    /// waits.
    case wait
    /// The item that waits longest goes.
    case dropOldest
    /// The new item goes.
    case dropNewest
    /// One place; the newest wins.
    case latest
    /// Access units only: everything goes up to the next keyframe.
    case dropToKeyframe

    /// True when a producer can stand still at this link.
    public var canBlock: Bool { self == .wait }
}

/// Why an item was dropped.
public enum DropReason: Int, Sendable, Hashable, CaseIterable {
    /// A live source had no free buffer, or found its link full.
    case noBuffer
    /// A `dropNewest` link was full.
    case queueFull
    /// A `dropOldest` link made room for a newer item.
    case evicted
    /// A `latest` link held a newer item.
    case replaced
    /// A `dropToKeyframe` link was full, or still waits for the keyframe after that.
    case untilKeyframe
    /// The output has no link.
    case unconnected
    /// The stage said so (a filter's `.drop`).
    case byStage
    /// Damaged input.
    case damaged
    /// No item of a join's leading input belongs to it, or the join has ended.
    case unmatched
    /// The stage had failed.
    case failed
    /// The stage is paused.
    case paused
    /// `stop` ended the run while the item was on its way.
    case stopped
    /// Its branch was taken away, or its stage replaced, while it was on its way.
    case detached

    /// The word in events and statistics.
    public var name: String { String(describing: self) }
}

/// How a link holds items between two stages.
public struct LinkSettings: Sendable, Hashable {
    /// Places in the queue; 0 makes the consumer run on the producer's thread.
    public var capacity: Int
    public var policy: DropPolicy
    /// Access units: most bytes queued; nil for no bound of its own.
    public var mostBytes: Int?
    /// Access units: longest span of decode time queued; nil for no bound of its own.
    public var mostTime: MediaTime?
    /// The planner put the queue here because it pays (docs/design/013-automatic-queues.md).
    public var isAutomatic = false

    public init(capacity: Int, policy: DropPolicy = .wait, mostBytes: Int? = nil, mostTime: MediaTime? = nil) {
        self.capacity = policy == .latest ? 1 : capacity
        self.policy = policy
        self.mostBytes = mostBytes
        self.mostTime = mostTime
    }

    /// The consumer runs on the producer's thread.
    public static let inline = LinkSettings(capacity: 0)
}
