/// A chain as its file asks for it: stages by kind, options unread, links as written. Host makes one from a
/// ``JSONNode``.
public struct ChainRequest: Sendable {
    /// The file's name as the user wrote it; the beginning of every fault's place.
    public var file: String
    /// The folder that relative paths are meant from.
    public var folder: String
    public var stages: [StageRequest]
    /// Buffers written down for a stage's output pool, by index of the stage.
    public var buffers: [Int: Int] = [:]
    /// Buffers of each pool beside what the chain needs, for branches that are attached while it runs; nil for the
    /// computed number (``PoolSpare``).
    public var spare: Int?
    /// Where keys of the chain and their parts stand, as far as they are written: `spare`, `buffers.camera`.
    public var ownPlaces: [String: TextPlace] = [:]
    /// Links of a join that differ from input to input; else the consumer's ``StageRequest/link`` holds for all its
    /// inputs.
    var links: [LinkEnds: LinkRequest] = [:]
    /// Longest time a drain may take, in seconds.
    public var drainSeconds = 10.0
    /// The stage the planner may insert where two formats do not fit, asked for when first needed; nil when there is
    /// none. Its option `format` names the pixel format to give.
    public var converter: @Sendable () throws -> StageType? = { nil }
    /// What the chain's memory may come to; nil for what the machine and its control groups have at the moment of
    /// planning.
    public var memory: AvailableMemory?
    /// Processors that the chain's threads have to themselves; nil for those the process may use.
    public var processors: Int?
    /// What runs beside the chain. The planner does not look at them.
    public var services: [ServiceRequest] = []
    /// What is done when something happens. The planner does not look at them.
    public var rules: [Rule] = []
    /// Each source ends after this many items.
    public var frameLimit: Int?
    /// Standard streams that the program uses itself, so that no stage may: not at the start, and not by a change.
    public var ownStreams: [OwnStream] = []

    public init(file: String, folder: String, stages: [StageRequest]) {
        self.file = file
        self.folder = folder
        self.stages = stages
    }

    /// What people call the chain where `file` is not its file; nil: by that.
    public var ownName: String?

    /// What people call the chain: its file's name without folder and `.json`.
    public var name: String {
        if let ownName { return ownName }
        let last = file.split(separator: "/").last.map(String.init) ?? file
        return last.hasSuffix(".json") && last.count > 5 ? String(last.dropLast(5)) : last
    }
}

/// A link by the indices of the stages it joins.
struct LinkEnds: Hashable, Sendable {
    var from: Int
    var to: Int
}
