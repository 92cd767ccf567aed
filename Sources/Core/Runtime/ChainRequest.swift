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
    /// Each source ends after this many items.
    public var frameLimit: Int?

    public init(file: String, folder: String, stages: [StageRequest]) {
        self.file = file
        self.folder = folder
        self.stages = stages
    }

    /// What people call the chain: its file's name without folder and `.json`.
    var name: String {
        let last = file.split(separator: "/").last.map(String.init) ?? file
        return last.hasSuffix(".json") && last.count > 5 ? String(last.dropLast(5)) : last
    }
}

/// A link by the indices of the stages it joins.
struct LinkEnds: Hashable, Sendable {
    var from: Int
    var to: Int
}

/// One stage of a ``ChainRequest``.
public struct StageRequest: Sendable {
    public var id: String
    public var type: StageType
    /// The members that are options.
    public var options: [JSONNode.Member]
    /// Index of the stage each input comes from; empty for a source.
    public var from: [Int]
    public var link: LinkRequest
    /// Nil: a sink that others stand beside fails alone, every other stage ends the run.
    public var onError: OnError?
    /// Its output is not taken by any stage, on purpose.
    public var isUnread: Bool
    /// Index in the chain file; the same for a converter and the stage it was inserted before.
    public var fileIndex: Int
    /// Where the stage begins in the file.
    public var place: TextPlace
    /// Where `from` (or the stage) stands.
    public var fromPlace: TextPlace
    /// Options that the command line set, as it did: `rate` → `--set camera.rate=3`.
    public var settings: [String: String] = [:]

    public init(
        id: String, type: StageType, options: [JSONNode.Member] = [], from: [Int] = [],
        link: LinkRequest = LinkRequest(),
        onError: OnError? = nil, isUnread: Bool = false, fileIndex: Int = 0,
        place: TextPlace = TextPlace(line: 0, column: 0),
        fromPlace: TextPlace = TextPlace(line: 0, column: 0)
    ) {
        self.id = id
        self.type = type
        self.options = options
        self.from = from
        self.link = link
        self.onError = onError
        self.isUnread = isUnread
        self.fileIndex = fileIndex
        self.place = place
        self.fromPlace = fromPlace
    }
}

/// What a person wrote about a stage's input link; what is nil the planner decides.
public struct LinkRequest: Sendable, Equatable {
    public var queue: Int?
    public var whenFull: DropPolicy?
    /// Access units: longest span queued, seconds.
    public var seconds: Double?
    /// Access units: most bytes queued, 10^6 bytes.
    public var megabytes: Double?

    public init(queue: Int? = nil, whenFull: DropPolicy? = nil, seconds: Double? = nil, megabytes: Double? = nil) {
        self.queue = queue
        self.whenFull = whenFull
        self.seconds = seconds
        self.megabytes = megabytes
    }
}

extension StageRequest {
    /// Checks the options alone.
    ///
    /// - Throws: ``FrameHostErrors``.
    public func checkOptions(file: String) throws {
        try type.check(options) { optionPlace(file: file, $0, $1) }
    }

    /// The option that names a file; `path` where none of them reads like it.
    func key(ofFile path: String) -> String {
        options.first { member in
            guard let name = member.value.asString, !name.isEmpty else { return false }
            return path == name || path.hasSuffix("/\(name)")
        }?.key ?? "path"
    }

    /// `camera.json:7:5: stages[2].rate`; of a value from the command line, that.
    func optionPlace(file: String, _ key: String, _ text: TextPlace) -> String {
        if let setting = settings[Self.option(in: key)] { return setting }
        let shown = key.isEmpty ? place : text
        let position = shown.line > 0 ? ":\(shown.line):\(shown.column)" : ""
        return "\(file)\(position): stages[\(fileIndex)]" + (key.isEmpty ? "" : ".\(key)")
    }

    /// What the stage threw before the run, at its place in the file.
    ///
    /// An error whose place is an option (`path`, `parameters.blur`) stands there; so does one whose sentence names an
    /// option that is written in the file, or what is written there; any other at the stage.
    func placed(_ error: any Error, file: String) -> FrameHostError {
        var fault = FrameHostError.wrap(error)
        let isOption = type.options.contains { $0.name == Self.option(in: fault.place) }
        let key =
            isOption
            ? fault.place : fault.place.isEmpty ? Self.optionNamed(in: fault.what, or: fault.remedy, options) ?? "" : ""
        guard !key.isEmpty else { return fault.within(optionPlace(file: file, "", place) + " '\(id)'") }
        fault.place = optionPlace(file: file, key, textPlace(of: key))
        return fault
    }

    /// The option of `members` that a sentence is about: quoted in it ("'track' is 3"), its first word ("stamp needs
    /// …"), by the text it was given ("'/clips/no.mp4' does not exist"), or else quoted in the remedy.
    static func optionNamed(in what: String, or remedy: String = "", _ members: [JSONNode.Member]) -> String? {
        func quoted(_ text: String) -> String? {
            members.compactMap { member in
                text.firstRange(of: "'\(member.key)'").map { (at: $0.lowerBound, key: member.key) }
            }
            .min { $0.at < $1.at }?.key
        }
        if let found = quoted(what) { return found }
        let first = what.prefix { $0 != " " && $0 != ":" }
        if let member = members.first(where: { $0.key == first }) { return member.key }
        func isQuoted(_ value: String?) -> Bool {
            value.map { $0.utf8.count >= 3 && what.firstRange(of: $0) != nil } ?? false
        }
        return members.first { isQuoted($0.value.asString) }?.key ?? quoted(remedy)
    }

    /// `parameters` of `parameters.blur`, `each` of `each[2].tint`.
    private static func option(in key: String) -> String { String(key.prefix { $0 != "." && $0 != "[" }) }

    /// Where the key stands, as far into it as there is something; the stage for an option that is not written.
    private func textPlace(of key: String) -> TextPlace {
        var found = place
        var members = options
        for part in key.split(separator: ".") {
            guard let member = members.first(where: { $0.key == part }) else { break }
            found = member.keyPlace
            members = member.value.asObject ?? []
        }
        return found
    }
}
