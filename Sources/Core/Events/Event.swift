/// Something that happened: a log line for people, a JSON line for programs.
public struct Event: Sendable {
    public enum Level: String, Sendable, Comparable {
        case debug, info, warning, error

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

    /// Kebab-case: `recording-did-start`, `out-of-buffers`.
    public var name: String
    /// Whose it is; nil for the chain's own.
    public var stage: String?
    public var level: Level
    /// One sentence for people.
    public var text: String
    /// A JSON object with what a program needs.
    public var details: JSONNode
    /// Chain clock, nanoseconds.
    public var time: Int64
    /// Sequence number of the item the stage had in hand or had last; nil before the first, and for the chain's own
    /// events.
    public var frame: UInt64?
    /// When that item is to be shown; nil for a source, whose item has no time yet.
    public var pts: MediaTime?

    public init(
        name: String, stage: String? = nil, level: Level = .info, text: String,
        details: JSONNode = JSONNode(.object([])), time: Int64, frame: UInt64? = nil, pts: MediaTime? = nil
    ) {
        self.name = name
        self.stage = stage
        self.level = level
        self.text = text
        self.details = details
        self.time = time
        self.frame = frame
        self.pts = pts
    }
}
