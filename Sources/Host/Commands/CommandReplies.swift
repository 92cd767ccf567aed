import FrameCore
import Synchronization

/// Answers to commands that the chain itself never saw, on their way from the reader to the control thread, which writes all lines.
final class CommandReplies: Sendable {
    struct Reply: Sendable {
        /// Nil for a drain that was accepted.
        var error: String?
        var tag: JSONNode?
    }

    private let replies = Mutex<[Reply]>([])

    /// [command thread] Says what is wrong with a line.
    func refuse(_ what: String, _ remedy: String, _ tag: JSONNode? = nil) {
        replies.withLock { $0.append(Reply(error: remedy.isEmpty ? what : "\(what). \(remedy)", tag: tag)) }
    }

    /// [command thread] The chain is about to drain.
    func acceptDrain(_ tag: JSONNode?) { replies.withLock { $0.append(Reply(error: nil, tag: tag)) } }

    /// [control thread] Those since the last call, as events.
    func take(_ chain: Chain) -> [Event] {
        let taken = replies.withLock { replies in
            defer { replies.removeAll() }
            return replies
        }
        guard !taken.isEmpty else { return [] }
        let frame = chain.progress.captured
        return taken.map { reply in
            var members: [(key: String, value: JSONNode)] = [("ok", .bool(reply.error == nil))]
            if let tag = reply.tag { members.append(("tag", tag)) }
            members.append(reply.error.map { ("error", .string($0)) } ?? ("frame", .number(frame)))
            return Event(
                name: "command-answered", level: reply.error == nil ? .info : .warning,
                text: reply.error ?? "chain: drains at frame \(frame).", details: .object(members), time: chain.clock.now())
        }
    }
}
