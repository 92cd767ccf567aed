// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The JSON Schema of the rules of a chain file: which events and members there are, and which commands.
struct RuleSchema {
    /// The events of all stage types, and of the chain. Several stages may post events of the same name.
    private let events: [EventDeclaration]

    init(stages: [StageType]) { events = ChainEvents.all.map(\.event) + stages.flatMap(\.info.events) }

    var rule: JSONNode {
        .object(
            ChainKeys.rule.schema(values: ["event": ["enum": .array(names.map { .string($0) })]]) + [
                ("allOf", .array(names.map(members)))
            ])
    }

    private var names: [String] {
        var seen = Set<String>()
        return events.map(\.name).filter { seen.insert($0).inserted }
    }

    /// The members that `when` may have for events of this name.
    private func members(of name: String) -> JSONNode {
        var kinds: [(name: String, members: [MemberDeclaration])] = []
        for member in events.filter({ $0.name == name }).flatMap(\.members) {
            if let index = kinds.firstIndex(where: { $0.name == member.name }) {
                kinds[index].members.append(member)
            } else {
                kinds.append((member.name, [member]))
            }
        }
        let properties = kinds.compactMap { kind -> (key: String, value: JSONNode)? in
            let conditions = kind.members.compactMap(Self.condition)
            guard let first = conditions.first else { return nil }
            let same = conditions.allSatisfy { $0 == first }
            return (kind.name, same ? first : ["anyOf": .array(conditions)])
        }
        return [
            "if": ["properties": ["event": ["const": .string(name)]], "required": ["event"]],
            "then": [
                "properties": ["when": ["additionalProperties": false, "properties": .object(properties)]]
            ],
        ]
    }

    /// The conditions on a member; nil for lists and objects, which no condition can test.
    private static func condition(_ member: MemberDeclaration) -> JSONNode? {
        let value: JSONNode
        switch member.kind {
        case .bool: value = ["type": "boolean"]
        case .number: value = ["type": "number"]
        case .string:
            value = member.words.isEmpty ? ["type": "string"] : ["enum": .array(member.words.map { .string($0) })]
        case .list, .object: return nil
        }
        var tests: [(key: String, value: JSONNode)] = [
            ("equals", value), ("not", value), ("in", ["type": "array", "minItems": 1, "items": value]),
        ]
        if member.kind == .number { tests += ["above", "below", "atLeast", "atMost"].map { ($0, value) } }
        return [
            "description": .string(member.summary),
            "anyOf": [
                value,
                [
                    "type": "object", "minProperties": 1, "additionalProperties": false,
                    "properties": .object(tests),
                ],
            ],
        ]
    }

    static let command: JSONNode = [
        "type": "object", "description": "A command as --commands reads it.",
        "properties": [
            "stage": ["type": "string"], "command": ["type": "string"],
            "set": ["type": "object", "minProperties": 1], "arguments": ["type": "object"],
        ],
        "anyOf": [["required": ["stage", "command"]], ["required": ["stage", "set"]], ["required": ["command"]]],
    ]
}
