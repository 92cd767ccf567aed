// SPDX-License-Identifier: Apache-2.0

/// A chain as its file asks for it: stages by kind, options unread, links as written. The host makes one from a
/// ``JSONNode``.
public struct ChainRequest: Sendable {
    /// The file's name as the user wrote it; the beginning of every fault's place.
    public var file: String
    /// The folder where relative paths start.
    public var folder: String
    /// The stages, in the order of the file.
    public var stages: [StageRequest]
    /// Sizes that a person wrote for output pools, by index of the stage.
    public var buffers: [Int: Int] = [:]
    /// Buffers in each pool beside what the chain needs, for branches that are attached while it runs; nil for the
    /// computed number (``PoolSpare``).
    public var spare: Int?
    /// Where the keys of the chain and their parts stand, as far as the file has them: `spare`, `buffers.camera`.
    public var ownPlaces: [String: TextPlace] = [:]
    /// Links of a join that differ from input to input. Otherwise the consumer's ``StageRequest/link`` holds for
    /// all its inputs.
    var links: [LinkEnds: LinkRequest] = [:]
    /// The longest time that a drain may take, in seconds.
    public var drainSeconds = 10.0
    /// Finds the stage that the planner may insert where two formats do not fit; nil when there is none. The planner
    /// calls it when it first needs one. The stage's option `format` names the pixel format to give.
    public var converter: @Sendable () throws -> StageType? = { nil }
    /// The memory that the chain may take; nil for what the machine and its control groups have at the moment of
    /// planning.
    public var memory: AvailableMemory?
    /// The number of processors that the chain's threads have; nil means those that the process may use.
    public var processors: Int?
    /// Services that run beside the chain. The planner looks only at what they claim.
    public var services: [ServiceRequest] = []
    /// What the chain does when something happens. The planner looks only at the pictures that are taken.
    public var rules: [Rule] = []
    /// The part of the timeline that is made; nil means the whole timeline.
    public var part: TimelinePart?
    /// After this many items each source ends; nil for no limit.
    public var frameLimit: Int?
    /// Standard streams that the program itself uses, so that no stage may use them, at the start or after a change.
    public var ownStreams: [OwnStream] = []

    /// Asks for a chain.
    public init(file: String, folder: String, stages: [StageRequest]) {
        self.file = file
        self.folder = folder
        self.stages = stages
    }

    /// What people call the chain where ``file`` is not its file; nil to name it after ``file``.
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
