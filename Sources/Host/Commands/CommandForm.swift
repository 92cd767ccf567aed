// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The keys that a command has beside `stage`, `command` and `tag`, and the kinds of their values. An unknown key is
/// refused, not ignored.
enum CommandForm {
    private enum Kind: String {
        case string = "a string"
        case bool = "true or false"
        case object = "an object"
        case array = "a list"
        case number = "a number"

        /// What to write as the value.
        var example: String {
            switch self {
            case .string: "\"…\""
            case .bool: rawValue
            case .object: "{ … }"
            case .array: "[ … ]"
            case .number: "1"
            }
        }

        func holds(_ node: JSONNode) -> Bool {
            switch self {
            case .string: node.asString != nil
            case .bool: node.asBool != nil
            case .object: node.asObject != nil
            case .array: node.asArray != nil
            case .number: node.asDouble != nil
            }
        }
    }

    private static let common: [String: Kind] = ["stage": .string, "command": .string, "set": .object]
    /// The keys by command. Any command that is not here is a stage's own.
    private static let keys: [String: [String: Kind]] = [
        "attach": ["at": .string, "stages": .array, "copy": .bool], "detach": [:], "drain": [:], "figures": [:],
        "pause": ["drop": .bool], "plan": [:], "reload": ["file": .string, "chain": .object],
        "reload-plugin": ["plugin": .string],
        "replace": ["with": .object, "drop": .bool], "resume": [:],
        "snapshot": [
            "path": .string, "overwrite": .bool, "width": .number, "height": .number, "fit": .string,
            "rotate": .number, "mirror": .bool, "quality": .number,
        ], "status": [:],
    ]
    private static let ofOwnCommand: [String: Kind] = ["arguments": .object]

    /// The keys of all commands. `tag` is for the sender and is not read.
    private static let all = Set(common.keys).union(ofOwnCommand.keys).union(keys.values.flatMap(\.keys)).union(["tag"])

    /// The first fault in the members of a command; nil where all are valid.
    static func fault(of members: [JSONNode.Member]) -> FrameHostError? {
        if let odd = members.first(where: { !all.contains($0.key) }) {
            return FrameHostError(
                .invalidConfiguration, what: "'\(odd.key)' is not a key of a command",
                remedy: Suggestion.nearest(to: odd.key, in: all.sorted()).map { "Did you mean '\($0)'?" }
                    ?? "Write { \"stage\": \"…\", \"set\": { … } } to set options, or { \"stage\": \"…\", \"command\": \"…\", \"arguments\": { … } }."
            )
        }
        let command = members.last { $0.key == "command" }?.value.asString
        let own = command.map { keys[$0] ?? ofOwnCommand } ?? [:]
        for member in members where member.key != "tag" {
            guard let kind = common[member.key] ?? own[member.key] else {
                guard members.contains(where: { ["command", "set"].contains($0.key) }) else {
                    return FrameHostError(
                        .invalidConfiguration, what: "'\(member.key)' is given, but 'command' is missing",
                        remedy: "Add \"command\": \"…\".")
                }
                let names = own.keys.sorted()
                let subject = command.map { "the command '\($0)'" } ?? "a command that sets options"
                return FrameHostError(
                    .invalidConfiguration, what: "\(subject) has no key '\(member.key)'",
                    remedy: names.isEmpty
                        ? "Leave '\(member.key)' out."
                        : "Leave '\(member.key)' out, or write one of the command's own keys: \(quotedList(names, "or"))."
                )
            }
            guard kind.holds(member.value) else {
                return FrameHostError(
                    .invalidConfiguration, place: member.key,
                    what: "expected \(kind.rawValue), found \(member.value.kindName)",
                    remedy: "Write \"\(member.key)\": \(kind.example).")
            }
        }
        return nil
    }
}
