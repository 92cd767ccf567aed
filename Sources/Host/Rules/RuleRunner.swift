// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Carries out the rules of a chain while it runs.
///
/// Runs on the control thread at each tick of the run. Answers come from any thread. docs/design/023-rules.md.
final class RuleRunner {
    /// The most answers that wait for the control thread. A rule acts at most 20 times in 10 s unless it has
    /// `every`.
    private static let mostAnswers = 4096

    /// The answer to one command.
    private struct Answer: Sendable {
        var command: RuleCommand
        var rule: String
        var isOtherwise: Bool
        var answer: CommandAnswer
    }

    /// How often one command of a rule was sent and failed.
    private struct Tally {
        var sent = 0
        var failed = 0
        /// The text of the last fault.
        var last = ""
    }

    private let chain: Chain
    private let language: CommandLanguage
    private let subscription: EventSubscription
    private var book: RuleBook
    /// The rules from which `book` was made.
    private var present: [Rule]
    private let answers = Locked<[Answer]>([])
    /// By path of the command.
    private var tallies: [String: Tally] = [:]

    /// Must be made before the chain runs, and after every listener that must get the events of planning.
    init(chain: Chain, language: CommandLanguage) {
        self.chain = chain
        self.language = language
        present = chain.rules
        book = RuleBook(present)
        subscription = chain.subscribe()
    }

    /// Carries out what the rules ask for now.
    func tick() {
        defer { chain.ruleFigures.withLock { $0 = book.isEmpty ? nil : book.figures } }
        let (events, lost) = subscription.take()
        adoptRules()
        let now = chain.clock.now()
        if lost > 0, !book.isEmpty {
            post(
                "rule-events-lost", level: .warning,
                "\(lost == 1 ? "1 event" : "\(lost) events") came too fast for the rules and did not reach them. Conditions keep their state until the next event.",
                [("count", .number(lost))])
        }
        for answer in takeAnswers() { judge(answer) }
        guard !book.isEmpty else { return }
        let actions = book.take(events, now: now)
        // A chain that drains or is over cannot carry out a command.
        guard isAtWork else { return }
        for action in actions { carryOut(action, now: now) }
    }

    /// Whether the chain is neither draining nor over.
    private var isAtWork: Bool { chain.currentState == .starting || chain.currentState == .streaming }

    /// Takes over the rules after a reload.
    private func adoptRules() {
        let rules = chain.rules
        guard rules != present else { return }
        present = rules
        let kept = book.replace(with: rules)
        post(
            "rules-changed", level: .debug,
            "The chain now has \(rules.count) \(rules.count == 1 ? "rule" : "rules"), \(kept) unchanged.",
            [("count", .number(rules.count)), ("kept", .number(kept))])
    }

    private func carryOut(_ action: RuleBook.Action, now: Int64) {
        let (rule, isOtherwise) = (action.rule.path, action.kind == .otherwise)
        guard action.kind != .rest else {
            return post(
                "rule-rests", level: .warning,
                "\(rule) ran 20 times within 10 s, so it pauses for 10 s. Its command probably causes the event that triggers the rule: change one of them, or set the shortest time between two runs with 'every'.",
                [("rule", .string(rule)), ("otherwise", .bool(false))])
        }
        post(
            "rule-did", level: .debug, "\(rule)\(isOtherwise ? ".otherwise" : ""): \(RuleText.text(action.commands)).",
            [("rule", .string(rule)), ("otherwise", .bool(isOtherwise))])
        for command in action.commands {
            tallies[Self.place(command), default: Tally()].sent += 1
            language.perform(filled(command.node, now: now)) { [answers] answer in
                answers.withLock { list in
                    guard list.count < Self.mostAnswers else { return }
                    list.append(Answer(command: command, rule: rule, isOtherwise: isOtherwise, answer: answer))
                }
            }
        }
    }

    /// The command with the times in a snapshot's name.
    private func filled(_ node: JSONNode, now: Int64) -> JSONNode {
        guard node["command"]?.asString == "snapshot", var members = node.asObject else { return node }
        for index in members.indices where members[index].key == "path" {
            guard let path = members[index].value.asString else { continue }
            members[index].value = .string(SnapshotName.filled(path, unixTime: chain.clock.unixTime(at: now)))
        }
        return JSONNode(.object(members))
    }

    private func takeAnswers() -> [Answer] {
        answers.withLock { list in
            defer { list = [] }
            return list
        }
    }

    /// `on[0].do (rec start)`. After a reload the same path may be that of another command.
    private static func place(_ command: RuleCommand) -> String { "\(command.path) (\(RuleText.text([command])))" }

    private func judge(_ answer: Answer) {
        guard let fault = answer.answer.faults.first else { return }
        // The stage gives nothing more that the command could apply to.
        let isOver = !isAtWork || answer.answer.stage.map(chain.hasEnded) == true
        let ends = isOver && (fault.mayBeOfEnd || fault.code == .stopped)
        if !ends {
            let place = Self.place(answer.command)
            tallies[place, default: Tally()].failed += 1
            tallies[place]?.last = answer.answer.text
        }
        post(
            "rule-failed", level: ends ? .debug : .error,
            "\(Self.place(answer.command)): \(fault)",
            [
                ("rule", .string(answer.rule)), ("otherwise", .bool(answer.isOtherwise)),
                ("command", .string(answer.command.path)), ("error", .string(answer.answer.text)),
            ])
    }

    private func post(_ event: String, level: Event.Level, _ text: String, _ details: [(key: String, value: JSONNode)])
    {
        chain.post(
            Event(name: event, level: level, text: text, details: .object(details), time: chain.clock.now()))
    }

    // MARK: After the run

    /// The faults of the rules: a sentence for each command that could not be carried out.
    func finish() -> [FrameHostError] {
        for answer in takeAnswers() { judge(answer) }
        return tallies.filter { $0.value.failed > 0 }.sorted { $0.key < $1.key }.map { place, tally in
            let times = tally.failed == 1 ? "once" : "\(tally.failed) times"
            return FrameHostError(
                .unavailable, place: FaultPlace(place),
                what:
                    "the command of this rule was sent \(tally.sent == 1 ? "once" : "\(tally.sent) times") and failed \(times)",
                cause: tally.last)
        }
    }
}
