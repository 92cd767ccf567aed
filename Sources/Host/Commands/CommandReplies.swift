import FrameCore
import Synchronization

/// Answers to commands that the chain itself never saw, on their way from the reader to the control thread, which
/// writes all lines.
final class CommandReplies: Sendable {
    private enum Reply: Sendable {
        case refused(String)
        case drains
        case figures
        case plan
    }

    private struct Waiting: Sendable {
        var reply: Reply
        var tag: JSONNode?
    }

    private let replies = Mutex<[Waiting]>([])

    /// [command thread] Says what is wrong with a line.
    func refuse(_ what: String, _ remedy: String, _ tag: JSONNode) {
        add(.refused(remedy.isEmpty ? what : "\(what). \(remedy)"), tag)
    }

    /// [command thread] The chain is about to drain.
    func acceptDrain(_ tag: JSONNode?) { add(.drains, tag) }

    /// [command thread] The run's figures so far are asked for.
    func askFigures(_ tag: JSONNode?) { add(.figures, tag) }

    /// [command thread] The plan as it is now is asked for.
    func askPlan(_ tag: JSONNode?) { add(.plan, tag) }

    private func add(_ reply: Reply, _ tag: JSONNode?) {
        replies.withLock { $0.append(Waiting(reply: reply, tag: tag)) }
    }

    /// [control thread] Those since the last call, as events.
    func take(_ chain: Chain) -> [Event] {
        let taken = replies.withLock { replies in
            defer { replies.removeAll() }
            return replies
        }
        guard !taken.isEmpty else { return [] }
        let frame = chain.progress.captured
        return taken.map { Self.event($0, chain, frame: frame) }
    }

    private static func event(_ waiting: Waiting, _ chain: Chain, frame: Int) -> Event {
        var members: [(key: String, value: JSONNode)] = []
        var (level, text) = (Event.Level.info, "chain: drains at frame \(frame).")
        switch waiting.reply {
        case .refused(let why):
            members.append(("error", .string(why)))
            (level, text) = (.warning, why)
        case .drains:
            members.append(("frame", .number(frame)))
        case .figures:
            members += [("frame", .number(frame)), ("figures", chain.statistics)]
            text = "chain: figures at frame \(frame)."
        case .plan:
            members += [("frame", .number(frame)), ("plan", PlanText(chain.plan).json)]
            text = "chain: plan at frame \(frame)."
        }
        let tag = waiting.tag.map { [(key: "tag", value: $0)] } ?? []
        return Event(
            name: "command-answered", level: level, text: text,
            details: .object([("ok", .bool(level == .info))] + tag + members),
            time: chain.clock.now())
    }
}
