/// One stage of a ``ChainRequest``.
public struct StageRequest: Sendable {
    public var id: String
    public var type: StageType
    /// The members that are options.
    public var options: [JSONNode.Member]
    /// Index of the stage each input comes from; empty for a source.
    public var from: [Int]
    public var link: LinkRequest
    /// How a join brings its inputs together; nil for what a person left out.
    public var join: JoinRequest?
    /// Nil: a sink that others stand beside fails alone, every other stage ends the run.
    public var onError: OnError?
    /// Its output is not taken by any stage, on purpose.
    public var isUnread: Bool
    /// Index in the chain file; the same for a converter and the stage it was inserted before.
    public var fileIndex: Int
    /// Where the stage begins in the file.
    public var place: TextPlace
    /// Where its own keys and their parts stand, as far as they are written: `from`, `link.queue`, `unread`.
    public var ownPlaces: [String: TextPlace] = [:]
    /// Options that the command line set, as it did: `rate` → `--set camera.rate=3`.
    public var settings: [String: String] = [:]

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
