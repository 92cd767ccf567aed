// SPDX-License-Identifier: Apache-2.0

/// What a chain does when something happens: one element of a chain file's `on`, checked.
///
/// docs/rules.md says what people can write, docs/design/023-rules.md how it works.
public struct Rule: Sendable, Equatable {
    /// The stages whose events a rule hears.
    public enum Subject: Sendable, Equatable {
        /// Events of the chain as a whole.
        case chain
        /// Events of every stage.
        case anyStage
        /// Events of the stage with this id.
        case stage(String)

        func hears(_ event: Event) -> Bool {
            switch self {
            case .chain: event.stage == nil
            case .anyStage: event.stage != nil
            case .stage(let id): event.stage == id
            }
        }
    }

    /// What a rule does when its state has ended.
    public struct Otherwise: Sendable, Equatable {
        /// How long the state must have been over, in nanoseconds.
        public var holdNs: Int64
        /// The commands to send, in order.
        public var commands: [RuleCommand]

        /// Makes the part of a rule.
        public init(holdNs: Int64 = 0, commands: [RuleCommand]) {
            self.holdNs = holdNs
            self.commands = commands
        }
    }

    /// The rule's path in the chain file: `on[0]`.
    public var path: String
    /// The event that it hears.
    public var event: String
    /// The stages whose events it hears.
    public var subject: Subject
    /// Whether the stage itself posts the event, and not Core. What the event said is then forgotten when another
    /// instance takes the stage's place.
    public var isOfInstance: Bool
    /// The conditions, all of which must hold.
    public var conditions: [RuleCondition]
    /// How long the conditions must hold, in nanoseconds; nil for a rule about moments rather than a state.
    public var holdNs: Int64?
    /// The shortest time from one `do` to the next, in nanoseconds; nil for the usual bound (`RuleState.mostDone`).
    public var everyNs: Int64?
    /// The commands to send, in order.
    public var commands: [RuleCommand]
    /// What the rule does when its state has ended; nil where it does nothing.
    public var otherwise: Otherwise?

    /// Makes a rule.
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

    /// Whether the rule is about a state: what an event says holds until the next event.
    public var followsState: Bool { holdNs != nil }

    /// Whether two rules say the same, wherever they stand in their files.
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
    /// The command's path in the chain file: `on[0].do`, `on[0].otherwise.do[1]`.
    public var path: String
    /// The command, as `--commands` would read it.
    public var node: JSONNode

    /// Makes a command.
    public init(path: String, _ node: JSONNode) {
        self.path = path
        self.node = node
    }
}
