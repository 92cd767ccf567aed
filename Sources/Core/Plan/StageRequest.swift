// SPDX-License-Identifier: Apache-2.0

/// One stage of a ``ChainRequest``.
public struct StageRequest: Sendable {
    /// The stage's id.
    public var id: String
    /// What `use` names.
    public var type: StageType
    /// The members that are options.
    public var options: [JSONNode.Member]
    /// For each input the index of the stage that it comes from; empty for a source.
    public var from: [Int]
    /// What the file says about the input's link.
    public var link: LinkRequest
    /// How a join brings its inputs together; nil where the file does not say.
    public var join: JoinRequest?
    /// What an error of the stage does. Nil: a sink with others beside it fails alone, and every other stage ends the
    /// run.
    public var onError: OnError?
    /// Whether no stage takes its output, on purpose.
    public var isUnread: Bool
    /// Sinks: whether the stage may have pictures in which a privacy stage hides something.
    public var isOriginal = false
    /// How the stage runs in a process of its own; nil where it runs in the host's.
    public var isolation: IsolationRequest?
    /// Index in the chain file; the same for a converter and the stage it was inserted before.
    public var fileIndex: Int
    /// Where the stage begins in the file.
    public var place: TextPlace
    /// Where its own keys and their parts stand, as far as the file has them: `from`, `link.queue`, `unread`.
    public var ownPlaces: [String: TextPlace] = [:]
    /// The arguments of options that the command line set: `rate` → `--set camera.rate=3`.
    public var settings: [String: String] = [:]
    /// Whether the stage begins a branch that a command attaches. The command names one of its inputs, so `from` can
    /// name others only beside that one.
    public var beginsBranch = false
    /// Whether a command puts the stage in the place of another. The command can change no other stage.
    public var isReplacement = false

    /// Asks for a stage.
    public init(
        id: String, type: StageType, options: [JSONNode.Member] = [], from: [Int] = [],
        link: LinkRequest = LinkRequest(), join: JoinRequest? = nil,
        onError: OnError? = nil, isUnread: Bool = false, fileIndex: Int = 0,
        place: TextPlace = TextPlace(line: 0, column: 0)
    ) {
        self.id = id
        self.type = type
        self.options = options
        self.from = from
        self.link = link
        self.join = join
        self.onError = onError
        self.isUnread = isUnread
        self.fileIndex = fileIndex
        self.place = place
    }
}
