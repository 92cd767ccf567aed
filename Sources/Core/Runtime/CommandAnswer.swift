/// What came of a command or a change; whoever asked gets exactly one.
public struct CommandAnswer: Sendable {
    /// Whose command it was; nil for the chain's own.
    public var stage: String?
    /// Sequence number of the first frame for which it holds; 0 where there is an error.
    public var frame: UInt64
    /// What else there is to say: members of the answer's JSON object.
    public var details: [JSONNode.Member]
    /// Why nothing was changed; empty where it was done.
    public var faults: [FrameHostError]
    /// One sentence for people; more than one fault: one a line.
    public var text: String

    public var isDone: Bool { faults.isEmpty }

    /// An answer that says that it was done; `text` replaces the usual sentence.
    public init(stage: String?, frame: UInt64, details: [JSONNode.Member] = [], text: String? = nil) {
        self.stage = stage
        self.frame = frame
        self.details = details
        faults = []
        self.text = text ?? "\(stage ?? "chain"): takes effect at frame \(frame)."
    }

    /// An answer that says why nothing was done.
    public init(stage: String?, error: any Error) {
        self.stage = stage
        frame = 0
        details = []
        let all = (error as? FrameHostErrors) ?? FrameHostErrors([FrameHostError.wrap(error)])
        faults = all.errors
        text = all.description
    }

    /// `ok`, then `frame` and details, or `error`.
    public var members: [JSONNode.Member] {
        let ok = JSONNode.Member(key: "ok", value: JSONNode(.bool(isDone)))
        guard isDone else { return [ok, JSONNode.Member(key: "error", value: JSONNode(.string(text)))] }
        return [ok, JSONNode.Member(key: "frame", value: JSONNode(.number(String(frame))))] + details
    }
}

/// Gets an answer, on whatever thread it is found; must not wait.
public typealias CommandReply = @Sendable (CommandAnswer) -> Void
