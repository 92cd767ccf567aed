// SPDX-License-Identifier: Apache-2.0

/// The answer to a command or a change. Each one gets exactly one answer.
public struct CommandAnswer: Sendable {
    /// The stage that the command was for; nil for a command of the chain.
    public var stage: String?
    /// The sequence number of the first frame for which the change holds; 0 where there is an error.
    public var frame: UInt64
    /// Further members of the answer's JSON object.
    public var details: [JSONNode.Member]
    /// Why nothing was changed; empty where the command was carried out.
    public var faults: [FrameHostError]
    /// One sentence for people; a line for each of several faults.
    public var text: String

    /// Whether the command was carried out.
    public var isDone: Bool { faults.isEmpty }

    /// Whether nothing was done only because the chain had no time for it. The same command may succeed later.
    public var isBusy: Bool { faults.contains { $0.isBusy } }

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

/// Receives an answer, on any thread. It must not wait.
public typealias CommandReply = @Sendable (CommandAnswer) -> Void
