// SPDX-License-Identifier: Apache-2.0

/// A part of a chain's timeline that one run makes, as `framehost batch --parts` divides a long file.
///
/// The items of the part are those with `begin ≤ PTS < end`. A source that is ``StageDemand/isDivisible`` begins
/// earlier and ends later, so that the stages behind it have what they need. Before sinks and encoders the planner
/// puts a stage that drops what is outside. docs/design/027-parts.md.
public struct TimelinePart: Sendable, Equatable {
    /// The first PTS of the part.
    public var begin: MediaTime
    /// The first PTS behind the part; nil where it goes to the end.
    public var end: MediaTime?
    /// What the stages of the chain need before ``begin``. Known before `start`.
    public internal(set) var warmUp = WarmUp.none
    /// How many frames the stages of the chain need from ``end`` on. Known before `start`.
    public internal(set) var lookAhead = 0

    /// Asks for a part.
    public init(begin: MediaTime, end: MediaTime?) { (self.begin, self.end) = (begin, end) }
}

/// How much of the past a stage needs until its output is that of a run from the beginning.
public struct WarmUp: Sendable, Equatable {
    /// How many frames it needs before the first one.
    public var frames: Int
    /// The time before the first frame of which it needs all frames.
    public var time: MediaTime
    /// Why no past is enough, as the end of a sentence that begins with the stage's id: `remembers all earlier
    /// pictures`; nil where some past is enough.
    public var obstacle: String?

    /// The stage needs nothing of the past.
    public static let none = WarmUp(frames: 0)
    /// The stage needs `frames` frames before the first one, and all frames of `time`.
    public init(frames: Int, time: MediaTime = .zero) { (self.frames, self.time) = (max(frames, 0), max(time, .zero)) }
    /// The stage needs all of the past, for a reason: `remembers all earlier pictures`.
    public static func never(_ obstacle: String) -> WarmUp {
        var never = WarmUp(frames: 0)
        never.obstacle = obstacle
        return never
    }

    /// What a stage and one behind it need together.
    static func + (a: WarmUp, b: WarmUp) -> WarmUp {
        WarmUp(frames: a.frames + b.frames, time: a.time + b.time)
    }

    /// What two branches of one stage need together.
    func joined(_ other: WarmUp) -> WarmUp {
        WarmUp(frames: max(frames, other.frames), time: max(time, other.time))
    }
}
