// SPDX-License-Identifier: Apache-2.0

/// Something that happened: a log line for people, a JSON line for programs.
///
/// A stage posts one with ``StageContext/post(_:level:text:details:)``, and a test finds it in
/// ``StageDriver/takeEvents()``.
public struct Event: Sendable {
    /// How important an event is.
    public enum Level: String, Sendable, Comparable {
        /// Shown only with `--verbose`.
        case debug
        /// Good to know.
        case info
        /// Something is poorer than it should be.
        case warning
        /// Something failed.
        case error

        public static func < (a: Level, b: Level) -> Bool { a.rank < b.rank }
        private var rank: Int {
            switch self {
            case .debug: 0
            case .info: 1
            case .warning: 2
            case .error: 3
            }
        }
    }

    /// The event's name in kebab-case: `recording-did-start`, `out-of-buffers`.
    public var name: String
    /// The id of the stage that posted it; nil for an event of the chain.
    public var stage: String?
    /// How important it is.
    public var level: Level
    /// One sentence for people, or a few, each with a capital and a full stop; without control characters.
    public var text: String
    /// A JSON object with what a program needs.
    public var details: JSONNode
    /// When it happened, in nanoseconds of the chain clock.
    public var time: Int64
    /// The sequence number of the item that the stage had in hand or had last; nil before the first item, and for an
    /// event of the chain.
    public var frame: UInt64?
    /// The PTS of that item; nil for a source, whose item has no time yet.
    public var pts: MediaTime?

    /// Makes an event. Addresses in its text and details are shown as ``Address`` has them.
    public init(
        name: String, stage: String? = nil, level: Level = .info, text: String,
        details: JSONNode = JSONNode(.object([])), time: Int64, frame: UInt64? = nil, pts: MediaTime? = nil
    ) {
        self.name = name
        self.stage = stage
        self.level = level
        self.text = text.sentence.hidingAddresses().printable(keeping: .indented)
        self.details = details.hidingAddresses
        self.time = time
        self.frame = frame
        self.pts = pts
    }
}
