/// What a chain does when something happens: one element of a chain file's `on`, checked.
///
/// docs/rules.md is for people, docs/design/023-rules.md says how it works.
public struct Rule: Sendable, Equatable {
    /// Whose events it hears.
    public enum Subject: Sendable, Equatable {
        /// Those of the chain as a whole.
        case chain
        /// Those of every stage.
        case anyStage
        /// Those of the stage with this id.
        case stage(String)

        func hears(_ event: Event) -> Bool {
            switch self {
            case .chain: event.stage == nil
            case .anyStage: event.stage != nil
            case .stage(let id): event.stage == id
            }
        }
    }

    /// The way back.
    public struct Otherwise: Sendable, Equatable {
        /// For how long the state must not have held, nanoseconds.
        public var holdNs: Int64
        public var commands: [RuleCommand]

        public init(holdNs: Int64 = 0, commands: [RuleCommand]) {
            self.holdNs = holdNs
            self.commands = commands
        }
    }

    /// Its path in the chain file: `on[0]`.
    public var path: String
    public var event: String
    public var subject: Subject
    /// The stage itself posts the event, not Core: what it said is worth nothing once another instance is in its place.
    public var isOfInstance: Bool
    /// All must fit.
    public var conditions: [RuleCondition]
    /// For how long they must fit, nanoseconds; nil where the rule is about moments and not about a state.
    public var holdNs: Int64?
    /// Shortest time from one `do` to the next, nanoseconds; nil for the usual bound (`RuleState.mostDone`).
    public var everyNs: Int64?
    public var commands: [RuleCommand]
    public var otherwise: Otherwise?

    public init(
        path: String, event: String, subject: Subject = .chain, isOfInstance: Bool = false,
        conditions: [RuleCondition] = [], holdNs: Int64? = nil, everyNs: Int64? = nil, commands: [RuleCommand],
        otherwise: Otherwise? = nil
    ) {
        self.path = path
        self.event = event
        self.subject = subject
        self.isOfInstance = isOfInstance
        self.conditions = conditions
        self.holdNs = otherwise == nil ? holdNs : holdNs ?? 0
        self.everyNs = everyNs
        self.commands = commands
        self.otherwise = otherwise
    }

    /// What an event says holds until the next one.
    public var followsState: Bool { holdNs != nil }

    /// Whether it says the same, wherever it stands in its file.
    public func isSame(as other: Rule) -> Bool {
        func bare(_ rule: Rule) -> Rule {
            func bare(_ command: RuleCommand) -> RuleCommand { RuleCommand(path: "", command.node.withoutPlaces) }
            var rule = rule
            rule.path = ""
            rule.commands = rule.commands.map(bare)
            rule.otherwise = rule.otherwise.map { Otherwise(holdNs: $0.holdNs, commands: $0.commands.map(bare)) }
            return rule
        }
        return bare(self) == bare(other)
    }

    func fits(_ event: Event) -> Bool { conditions.allSatisfy { $0.fits(event.details) } }
}

/// A command that a rule sends.
public struct RuleCommand: Sendable, Equatable {
    /// In the chain file: `on[0].do`, `on[0].otherwise.do[1]`.
    public var path: String
    /// As `--commands` would read it.
    public var node: JSONNode

    public init(path: String, _ node: JSONNode) {
        self.path = path
        self.node = node
    }
}
