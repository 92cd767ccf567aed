// SPDX-License-Identifier: Apache-2.0

/// All rules of a chain and their present states: events and time go in, actions come out.
///
/// It is a value without threads or a clock.
public struct RuleBook: Sendable {
    /// Something to do.
    public struct Action: Sendable, Equatable {
        /// Which part of a rule to carry out.
        public enum Kind: Sendable, Equatable {
            /// The commands of `do`.
            case `do`
            /// The commands of `otherwise`.
            case otherwise
            /// Nothing: the rule was carried out too often and rests for a while.
            case rest
        }

        /// The rule.
        public var rule: Rule
        /// The part to carry out.
        public var kind: Kind

        /// The commands to send, in order.
        public var commands: [RuleCommand] {
            switch kind {
            case .do: rule.commands
            case .otherwise: rule.otherwise?.commands ?? []
            case .rest: []
            }
        }
    }

    private struct Entry {
        var rule: Rule
        var state = RuleState()
    }

    private var entries: [Entry]
    /// The latest time that was seen. Events come from several threads, each with the time at which it was made.
    private var latest = Int64.min

    /// Begins with rules that have heard nothing yet.
    public init(_ rules: [Rule]) { entries = rules.map { Entry(rule: $0) } }

    /// The rules.
    public var rules: [Rule] { entries.map(\.rule) }
    /// Whether there are no rules.
    public var isEmpty: Bool { entries.isEmpty }

    /// Replaces the rules. A new rule that says the same as an old one goes on from the old one's state.
    ///
    /// - Returns: How many rules go on.
    public mutating func replace(with rules: [Rule]) -> Int {
        var old = entries
        var kept = 0
        entries = rules.map { rule in
            guard let index = old.firstIndex(where: { $0.rule.isSame(as: rule) }) else { return Entry(rule: rule) }
            kept += 1
            return Entry(rule: rule, state: old.remove(at: index).state)
        }
        return kept
    }

    /// Takes events and the time that has passed, and returns what to do, in the order of their times.
    ///
    /// - Parameters:
    ///   - events: The events in the order in which they were posted.
    ///   - now: The time, in nanoseconds of the chain clock.
    public mutating func take(_ events: [Event], now: Int64) -> [Action] {
        var actions: [Action] = []
        for event in events {
            let concerned = entries.indices.filter { concerns(entries[$0].rule, event) }
            guard !concerned.isEmpty else { continue }
            advance(to: event.time, &actions)
            for index in concerned {
                let rule = entries[index].rule
                // The event that the rule hears counts for more than that its stage begins anew.
                let fits = rule.event == event.name && rule.fits(event)
                add(entries[index].state.see(fits, at: latest, rule), rule, &actions)
            }
        }
        advance(to: now, &actions)
        return actions
    }

    /// Whether the rule hears the event, or the event makes it forget what it knows.
    private func concerns(_ rule: Rule, _ event: Event) -> Bool {
        guard rule.subject.hears(event) else { return false }
        return rule.event == event.name || (rule.isOfInstance && Self.beginnings.contains(event.name))
    }

    /// After these events, what a stage said before no longer holds.
    static let beginnings: Set<String> = ["stage-failed", "stage-replaced", "stage-restarted", "stage-attached"]

    /// Takes the steps that time alone brings, up to `time`.
    private mutating func advance(to time: Int64, _ actions: inout [Action]) {
        latest = max(latest, time)
        // A rule that rests is due again later, so this ends.
        while let index = nextDue() {
            let rule = entries[index].rule
            add(entries[index].state.advance(to: latest, rule), rule, &actions)
        }
    }

    /// The rule that is due first, if that is now.
    private func nextDue() -> Int? {
        let due = entries.indices.compactMap { index in
            entries[index].state.due(entries[index].rule).map { (index: index, at: $0) }
        }
        return due.filter { $0.at <= latest }.min { $0.at < $1.at }?.index
    }

    private func add(_ step: RuleState.Step?, _ rule: Rule, _ actions: inout [Action]) {
        guard let step else { return }
        let kind: Action.Kind =
            switch step {
            case .do: .do
            case .otherwise: .otherwise
            case .rest: .rest
            }
        actions.append(Action(rule: rule, kind: kind))
    }

    /// Figures for programs: each rule's path, whether its conditions hold, and how often it was carried out.
    public var figures: JSONNode {
        .array(
            entries.map { entry in
                var members: [(key: String, value: JSONNode)] = [
                    ("rule", .string(entry.rule.path)), ("event", .string(entry.rule.event)),
                    ("done", .number(entry.state.doneCount)),
                ]
                if entry.rule.followsState { members.append(("holds", .bool(entry.state.holds))) }
                if entry.rule.otherwise != nil { members.append(("otherwise", .number(entry.state.otherwiseCount))) }
                return .object(members)
            })
    }
}
