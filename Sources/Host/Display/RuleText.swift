// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// A rule as people and programs read it.
struct RuleText {
    private let rule: Rule

    init(_ rule: Rule) { self.rule = rule }

    /// `faces of face, count above 0, for 1 s: rec start; otherwise for 5 s: rec stop`.
    var text: String {
        var parts = [rule.event + subject] + rule.conditions.map(Self.text)
        if let hold = rule.holdNs, hold > 0 { parts.append("for \(Self.seconds(hold))") }
        if let every = rule.everyNs { parts.append("every \(Self.seconds(every)) at most") }
        var text = "\(parts.joined(separator: ", ")): \(Self.text(rule.commands))"
        if let otherwise = rule.otherwise {
            let hold = otherwise.holdNs > 0 ? " for \(Self.seconds(otherwise.holdNs))" : ""
            text += "; otherwise\(hold): \(Self.text(otherwise.commands))"
        }
        return text
    }

    var json: JSONNode {
        .object([
            ("rule", .string(rule.path)), ("text", .string(text)),
            ("notes", .array(notes.map { .string($0) })),
        ])
    }

    /// What `check` adds to its plan; empty without rules.
    static func section(_ rules: [Rule]) -> String {
        guard !rules.isEmpty else { return "" }
        let notes = rules.flatMap { RuleText($0).notes }.map { "\nnote: \($0)" }.joined()
        return "\n\nRules\n" + Terminal.table(rules.map { [$0.path, RuleText($0).text] })
            + (notes.isEmpty ? "" : "\n\(notes)")
    }

    /// What becomes of pictures whose name has no time in it.
    var notes: [String] {
        (rule.commands + (rule.otherwise?.commands ?? [])).compactMap { command in
            guard command.node["command"]?.asString == "snapshot",
                let path = command.node["path"]?.asString,
                SnapshotName.isFixed(path)
            else { return nil }
            let what =
                command.node["overwrite"]?.asBool == true
                ? "each picture replaces the one before it in '\(path)'"
                : "'\(path)' takes one picture, and every further one is refused; the exit status of the run is then 1"
            return
                "\(command.path): \(what). A time in the name, such as %Y%m%d-%H%M%S, keeps all pictures\(command.node["overwrite"]?.asBool == true ? "" : "; \"overwrite\": true keeps the newest")."
        }
    }

    private var subject: String {
        switch rule.subject {
        case .chain: ""
        case .anyStage: " of any stage"
        case .stage(let id): " of \(id)"
        }
    }

    private static func seconds(_ ns: Int64) -> String {
        let value = Double(ns) / 1e9
        return value == value.rounded() ? "\(Int64(value)) s" : "\(value) s"
    }

    /// `rec start, title set text="slow"`.
    static func text(_ commands: [RuleCommand]) -> String {
        commands.map { command in
            let words = [command.node["stage"], command.node["command"]].compactMap { $0?.asString }
            let set = command.node["set"]?.asObject?.map { "\($0.key)=\($0.value.text())" } ?? []
            return (words + (set.isEmpty ? [] : ["set"]) + set).joined(separator: " ")
        }.joined(separator: ", ")
    }

    private static func text(_ condition: RuleCondition) -> String {
        func number(_ value: Double) -> String { JSONNode.number(value).text() }
        func plain(_ value: RuleCondition.Value) -> String {
            switch value {
            case .bool(let flag): "\(flag)"
            case .number(let value): value == value.rounded() && abs(value) < 1e15 ? "\(Int64(value))" : number(value)
            case .string(let text): JSONNode.string(text).text()
            }
        }
        let test =
            switch condition.test {
            case .above(let bound): "above \(plain(.number(bound)))"
            case .below(let bound): "below \(plain(.number(bound)))"
            case .atLeast(let bound): "at least \(plain(.number(bound)))"
            case .atMost(let bound): "at most \(plain(.number(bound)))"
            case .equals(let value): plain(value)
            case .not(let value): "not \(plain(value))"
            case .among(let values): "one of \(values.map(plain).joined(separator: ", "))"
            }
        return "\(condition.member) \(test)"
    }
}
