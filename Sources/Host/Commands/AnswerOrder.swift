import FrameCore

/// Answers to commands in the order of their lines, though stages take theirs at different times.
///
/// The reader numbers the lines from 1 and puts the number around each `tag`; here it is taken off again. An answer
/// that does not come within a second (a stage that hangs) holds up the others no longer. Control thread only.
struct AnswerOrder {
    /// Nanoseconds that an answer waits for those before it.
    static let patience: Int64 = 1_000_000_000
    private var next = 1
    private var waiting: [(number: Int, event: Event, since: Int64)] = []

    /// The tag of line `number`, as the chain is to give it back.
    static func tag(_ number: Int, _ tag: JSONNode?) -> JSONNode {
        .object([("number", .number(number))] + (tag.map { [("tag", $0)] } ?? []))
    }

    /// Keeps an answer until its turn.
    mutating func add(_ event: Event, now: Int64) {
        var event = event
        var number = 0
        let members = (event.details.asObject ?? []).compactMap { member -> JSONNode.Member? in
            guard member.key == "tag" else { return member }
            number = member.value["number"]?.asInt ?? 0
            return member.value["tag"].map { JSONNode.Member(key: "tag", value: $0) }
        }
        event.details = JSONNode(.object(members))
        let place = waiting.firstIndex { $0.number > number } ?? waiting.endIndex
        waiting.insert((number, event, now), at: place)
    }

    /// Those whose turn it is.
    mutating func take(now: Int64) -> [Event] {
        let isOverdue = waiting.contains { now - $0.since >= Self.patience }
        var taken: [Event] = []
        while let first = waiting.first, isOverdue || first.number <= next {
            taken.append(first.event)
            next = max(next, first.number + 1)
            waiting.removeFirst()
        }
        return taken
    }

    /// All that are left, at the end.
    mutating func takeAll() -> [Event] {
        defer { waiting = [] }
        return waiting.map(\.event)
    }
}
