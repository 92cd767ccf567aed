// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Reads `on` of a chain file: its rules, and all their faults.
///
/// Control thread, desk's thread. docs/design/023-rules.md.
struct RuleReader: ChainPartReader {
    static let most = 100
    /// The chain file's name as the user wrote it.
    let name: String
    /// All ids of the chain, also those of stages with an unknown plugin.
    private let ids: Set<String>
    /// Stages whose plugin is known, in the order of the file.
    private let stages: [StageRequest]
    var faults: [FrameHostError] = []

    init(name: String, ids: Set<String>, stages: [StageRequest]) {
        self.name = name
        self.ids = ids
        self.stages = stages
    }

    mutating func read(_ node: JSONNode) -> [Rule] {
        guard let nodes = node.asArray else {
            fault(
                node, "on", "expected a list of rules, found \(node.kindName)",
                "Write \"on\": [ { \"event\": \"…\", \"do\": { … } } ].")
            return []
        }
        guard nodes.count <= Self.most else {
            fault(node, "on", "\(nodes.count) rules are more than the limit of \(Self.most)", "Leave some out.")
            return []
        }
        return nodes.enumerated().compactMap { readRule($1, "on[\($0)]") }
    }

    // MARK: One rule

    private mutating func readRule(_ node: JSONNode, _ path: String) -> Rule? {
        let count = faults.count
        var times = ChainKeys.RuleTimes()
        guard read(node, path, as: ChainKeys.rule, into: &times) else { return nil }
        let heard = readEvent(node, path)
        let conditions = readConditions(node["when"], "\(path).when", of: heard?.declaration)
        let commands = readCommands(node["do"], "\(path).do")
        let otherwise = readOtherwise(node["otherwise"], "\(path).otherwise")
        guard let heard, faults.count == count else { return nil }
        return Rule(
            path: path, event: heard.declaration.name, subject: heard.subject, isOfInstance: heard.isOfInstance,
            conditions: conditions, holdNs: times.holdNs, everyNs: times.everyNs, commands: commands,
            otherwise: otherwise)
    }

    private mutating func readOtherwise(_ node: JSONNode?, _ path: String) -> Rule.Otherwise? {
        guard let node else { return nil }
        var times = ChainKeys.RuleTimes()
        guard read(node, path, as: ChainKeys.otherwise, into: &times) else { return nil }
        return Rule.Otherwise(holdNs: times.holdNs ?? 0, commands: readCommands(node["do"], "\(path).do"))
    }

    // MARK: Whose event

    private typealias Heard = (declaration: EventDeclaration, subject: Rule.Subject, isOfInstance: Bool)

    private mutating func readEvent(_ node: JSONNode, _ path: String) -> Heard? {
        guard let event = node["event"] else { return nil }
        guard let name = event.asString else {
            fault(event, "\(path).event", "expected a string, found \(event.kindName)", "Write the name of an event.")
            return nil
        }
        guard let subject = node["stage"] else { return readEvent(name, event, node, path) }
        guard let id = subject.asString else {
            fault(subject, "\(path).stage", "expected a string, found \(subject.kindName)", "Write the id of a stage.")
            return nil
        }
        guard ids.contains(id) else {
            fault(
                subject, "\(path).stage", "no stage '\(id)'",
                remedyOfUnknownStage(id, in: ids.sorted()))
            return nil
        }
        guard let stage = stages.first(where: { $0.id == id }) else { return nil }
        if let own = stage.type.info.events.first(where: { $0.name == name }) { return (own, .stage(id), true) }
        if let entry = ChainEvents.entry(name) {
            guard entry.scope != .chain else {
                fault(
                    subject, "\(path).stage", "'\(name)' is an event of the chain, not of a stage",
                    "Leave 'stage' out.")
                return nil
            }
            return (entry.event, .stage(id), false)
        }
        let kind = stage.type.info
        let known = kind.events.map(\.name)
        fault(
            event, "\(path).event", "'\(id)' (\(kind.id)) posts no event '\(name)'",
            didYouMean(
                name, in: known + ChainEvents.all.filter { $0.scope != .chain }.map(\.event.name),
                else: known.isEmpty
                    ? "`framehost describe chain` lists what every stage posts."
                    : "It posts \(quotedList(known, "and")); `framehost describe chain` lists what every stage posts."))
        return nil
    }

    /// Reads the event of a rule that has no `stage`.
    private mutating func readEvent(_ name: String, _ event: JSONNode, _ node: JSONNode, _ path: String) -> Heard? {
        let own = stages.compactMap { stage in
            stage.type.info.events.first { $0.name == name }.map { (id: stage.id, declaration: $0) }
        }
        let entry = ChainEvents.entry(name)
        if let entry, entry.scope != .stage || own.isEmpty {
            return (entry.event, entry.scope == .stage ? .anyStage : .chain, false)
        }
        if let first = own.first, own.count == 1 { return (first.declaration, .stage(first.id), true) }
        guard own.isEmpty else {
            fault(
                event, "\(path).event", "several stages post '\(name)': \(quotedList(own.map(\.id), "and"))",
                "Name one of them in \"stage\".")
            return nil
        }
        // A stage with an unknown plugin may post it.
        guard ids.isSubset(of: stages.map(\.id)) else { return nil }
        let known = stages.flatMap { $0.type.info.events.map(\.name) } + ChainEvents.all.map(\.event.name)
        fault(
            event, "\(path).event", "no stage of this chain posts '\(name)'",
            didYouMean(
                name, in: known,
                else:
                    "`framehost describe TYPE` lists the events of a stage type, `framehost describe chain` those that every stage posts."
            ))
        return nil
    }

    // MARK: Conditions

    private mutating func readConditions(_ node: JSONNode?, _ path: String, of event: EventDeclaration?)
        -> [RuleCondition]
    {
        guard let node else { return [] }
        guard let members = node.asObject else {
            fault(
                node, path, "expected an object, found \(node.kindName)", "Write { \"MEMBER\": { \"above\": 0 } }.")
            return []
        }
        guard !members.isEmpty else {
            fault(node, path, "is empty", "Write { \"MEMBER\": { \"above\": 0 } }, or leave 'when' out.")
            return []
        }
        guard let event else { return [] }
        return members.flatMap { member -> [RuleCondition] in
            let own = JSONPathText.appending(member.key, to: path)
            guard let declared = event.member(member.key) else {
                let names = event.members.map(\.name)
                fault(
                    member.keyPlace, own, "the event '\(event.name)' has no member '\(member.key)'",
                    didYouMean(
                        member.key, in: names,
                        else: names.isEmpty ? "It has none: leave 'when' out." : "It has \(quotedList(names, "and"))."))
                return []
            }
            guard [.bool, .number, .string].contains(declared.kind) else {
                fault(
                    member.keyPlace, own,
                    "'\(member.key)' is \(declared.kind.rawValue), and a condition needs a number, a string, or true or false",
                    "Leave it out.")
                return []
            }
            let count = faults.count
            let tests = readTests(member.value, own, declared)
            if faults.count == count, RuleContradiction(tests, declared).isNeverMet {
                fault(
                    member.value, own,
                    "no value of '\(member.key)' meets all of these conditions, so the rule does nothing",
                    "Leave one of them out, or write a second rule: conditions of one rule must hold together."
                )
            }
            return tests
        }
    }

    private mutating func readTests(_ node: JSONNode, _ path: String, _ member: MemberDeclaration) -> [RuleCondition] {
        guard let tests = node.asObject else {
            // A plain value means `equals`.
            return readValue(node, path, member).map { [RuleCondition(member.name, member.kind, .equals($0))] } ?? []
        }
        guard !tests.isEmpty else {
            fault(node, path, "is empty", "Write a value, or a condition such as { \"not\": … }.")
            return []
        }
        return tests.compactMap { test in
            readTest(test, "\(path).\(test.key)", member).map { RuleCondition(member.name, member.kind, $0) }
        }
    }

    private mutating func readTest(_ test: JSONNode.Member, _ path: String, _ member: MemberDeclaration)
        -> RuleCondition.Test?
    {
        switch test.key {
        case "equals": return readValue(test.value, path, member).map { .equals($0) }
        case "not": return readValue(test.value, path, member).map { .not($0) }
        case "in":
            guard let values = test.value.asArray, !values.isEmpty else {
                fault(
                    test.value, path,
                    test.value.asArray != nil
                        ? "the list is empty" : "expected a list of values, found \(test.value.kindName)",
                    "Write \"in\": [ … ].")
                return nil
            }
            let read = values.enumerated().compactMap { readValue($1, "\(path)[\($0)]", member) }
            return read.count == values.count ? .among(read) : nil
        case "above": return readBound(test, path, member).map { .above($0) }
        case "below": return readBound(test, path, member).map { .below($0) }
        case "atLeast": return readBound(test, path, member).map { .atLeast($0) }
        case "atMost": return readBound(test, path, member).map { .atMost($0) }
        default:
            fault(
                test.keyPlace, path, "no such condition",
                didYouMean(
                    test.key, in: RuleCondition.Test.keys,
                    else: "The conditions are \(quotedList(RuleCondition.Test.keys, "and"))."), unknown: test.key)
            return nil
        }
    }

    private mutating func readBound(_ test: JSONNode.Member, _ path: String, _ member: MemberDeclaration) -> Double? {
        guard member.kind == .number else {
            fault(
                test.keyPlace, path, "'\(member.name)' is \(member.kind.rawValue), and '\(test.key)' needs a number",
                "Use 'equals', 'not' or 'in'.")
            return nil
        }
        guard let bound = test.value.asDouble else {
            fault(test.value, path, "expected a number, found \(test.value.text())", "")
            return nil
        }
        return bound
    }

    private mutating func readValue(_ node: JSONNode, _ path: String, _ member: MemberDeclaration)
        -> RuleCondition.Value?
    {
        guard let value = RuleCondition.Value(node), value.kind == member.kind else {
            fault(
                node, path, "'\(member.name)' is \(member.kind.rawValue), so it cannot be \(node.text())",
                "Write \(member.kind.rawValue).")
            return nil
        }
        if case .string(let word) = value, !member.words.isEmpty, !member.words.contains(word) {
            fault(
                node, path, "'\(member.name)' cannot be \(node.text())",
                didYouMean(word, in: member.words, else: "Use \(quotedList(member.words, "or"))."))
            return nil
        }
        return value
    }

    // MARK: Commands

    static let mostCommands = 20

    private mutating func readCommands(_ node: JSONNode?, _ path: String) -> [RuleCommand] {
        guard let node else { return [] }
        let example = "Write { \"stage\": \"…\", \"command\": \"…\" }, or a list of commands."
        guard let list = node.asArray else {
            guard node.asObject != nil else {
                fault(node, path, "expected a command or a list of commands, found \(node.kindName)", example)
                return []
            }
            return readCommand(node, path).map { [$0] } ?? []
        }
        guard (1...Self.mostCommands).contains(list.count) else {
            fault(
                node, path,
                list.isEmpty
                    ? "the list is empty" : "\(list.count) commands are more than the limit of \(Self.mostCommands)",
                list.isEmpty ? example : "Leave some out, or write a second rule.")
            return []
        }
        return list.enumerated().compactMap { readCommand($1, "\(path)[\($0)]") }
    }

    private mutating func readCommand(_ node: JSONNode, _ path: String) -> RuleCommand? {
        var check = RuleCommandCheck(ids: ids, stages: stages)
        check.check(node)
        for found in check.found {
            fault(found.place, path + found.path, found.what, found.remedy, unknown: found.unknown)
        }
        return check.found.isEmpty ? RuleCommand(path: path, node) : nil
    }
}

/// Writes paths of members whose keys may be any text.
enum JSONPathText {
    static func appending(_ key: String, to path: String) -> String {
        path + (JSONPath().appending(key).description.hasPrefix("[") ? "" : ".") + JSONPath().appending(key).description
    }
}
