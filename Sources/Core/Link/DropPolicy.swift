// SPDX-License-Identifier: Apache-2.0

/// What a link does with an item that finds its queue full.
public enum DropPolicy: String, Sendable, Hashable, CaseIterable, Codable {
    /// The producer waits. On a live source's own thread the item is dropped instead (`noBuffer`): a live source never
    /// waits.
    case wait
    /// The item that has waited longest is dropped, and further ones where the new one needs their bytes or time.
    case dropOldest
    /// The new item is dropped.
    case dropNewest
    /// The queue has one place, and the newest item takes it.
    case latest
    /// Access units only: everything up to the next keyframe is dropped.
    case dropToKeyframe

    /// Whether a producer may have to wait at this link.
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
    /// A `dropToKeyframe` link was full, or still waits for the next keyframe.
    case untilKeyframe
    /// The output has no link.
    case unconnected
    /// The stage chose to: ``Verdict/drop(_:)``, ``Output/drop(_:)``.
    case byStage
    /// The input was damaged.
    case damaged
    /// The item belongs to no item of a join's leading input, or the join has ended.
    case unmatched
    /// The stage had failed.
    case failed
    /// The stage is paused.
    case paused
    /// A stop ended the run while the item was on its way.
    case stopped
    /// The item's branch was removed, or its stage replaced, while the item was on its way.
    case detached
    /// A join by the clock could not give the picture of a tick in time. The picture was never made, as that of a live
    /// source without a free buffer; the ledger counts both as made and dropped.
    case missed

    /// The word for it in events and statistics.
    public var name: String { String(describing: self) }

    /// How messages put it.
    ///
    /// - Parameter isLink: Whether a link dropped the item, rather than a stage.
    func words(atLink isLink: Bool) -> String {
        switch self {
        case .noBuffer: isLink ? "queue full" : "no free buffer"
        case .queueFull: "queue full"
        case .evicted: "queue full, oldest dropped"
        case .replaced: "replaced by a newer one"
        case .untilKeyframe: "until the next keyframe"
        case .unconnected: "no stage takes them"
        case .byStage: "by the stage"
        case .damaged: "damaged"
        case .unmatched: "no match"
        case .failed: "stage failed"
        case .paused: "paused"
        case .stopped: "run stopped"
        case .detached: "branch removed"
        case .missed: "not made in time"
        }
    }
}

/// How a link holds items between two stages.
public struct LinkSettings: Sendable, Hashable {
    /// Places in the queue; 0 makes the consumer run on the producer's thread.
    public var capacity: Int
    /// What happens to an item that finds the queue full.
    public var policy: DropPolicy
    /// Access units, sound and motion: the most bytes in the queue; nil means no such limit. An empty queue takes an
    /// item of any size.
    public var mostBytes: Int?
    /// Access units, sound and motion: the longest span of time in the queue (decode time for access units),
    /// without the gaps between its items; nil means no such limit.
    public var mostTime: MediaTime?
    /// The planner put the queue here because it pays (docs/design/013-automatic-queues.md).
    public var isAutomatic = false

    /// Makes settings; ``DropPolicy/latest`` always has a capacity of 1.
    public init(capacity: Int, policy: DropPolicy = .wait, mostBytes: Int? = nil, mostTime: MediaTime? = nil) {
        self.capacity = policy == .latest ? 1 : capacity
        self.policy = policy
        self.mostBytes = mostBytes
        self.mostTime = mostTime
    }

    /// The consumer runs on the producer's thread.
    public static let inline = LinkSettings(capacity: 0)
}
