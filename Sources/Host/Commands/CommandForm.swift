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
            "rotate": .number, "mirror": .bool, "quality": .number, "original": .bool,
        ], "status": [:],
    ]
    private static let ofOwnCommand: [String: Kind] = ["arguments": .object]

    /// The keys of all commands. `tag` is for the sender and is not read.
    private static let all = Set(common.keys).union(ofOwnCommand.keys).union(keys.values.flatMap(\.keys)).union(["tag"])

    /// The first fault in the members of a command; nil where all are valid.
    static func fault(of members: [JSONNode.Member]) -> FrameHostError? {
        if let odd = members.first(where: { !all.contains($0.key) }) {
            let command = members.first { $0.key == "command" }?.value.asString
            let own = command.flatMap { keys[$0] == nil ? nil : $0 }
            return FrameHostError(
                .invalidConfiguration, what: "'\(odd.key)' is not a key of a command",
                remedy: Suggestion.nearest(to: odd.key, in: all.sorted()).map { "Did you mean '\($0)'?" }
                    ?? (own.map { remedy(without: odd.key, $0) }
                        ?? "Write { \"stage\": \"…\", \"set\": { … } } to set options, or { \"stage\": \"…\", \"command\": \"…\", \"arguments\": { … } }."),
                reason: .noSuchKey, option: odd.key)
        }
        // Which keys a command may have depends on these.
        if let fault = members.lazy.compactMap({ fault(of: $0, common[$0.key]) }).first { return fault }
        let command = members.last { $0.key == "command" }?.value.asString
        let own = command.map { keys[$0] ?? ofOwnCommand } ?? [:]
        for member in members where member.key != "tag" && common[member.key] == nil {
            guard let kind = own[member.key] else {
                guard members.contains(where: { ["command", "set"].contains($0.key) }) else {
                    return FrameHostError(
                        .invalidConfiguration, what: "'\(member.key)' is given, but 'command' is missing",
                        remedy: "Add \(wordList(owners(of: member.key).map { "\"command\": \"\($0)\"" }, "or")).",
                        reason: .noSuchKey, option: member.key)
                }
                let subject = command.map { "the command '\($0)'" } ?? "a command that sets options"
                return FrameHostError(
                    .invalidConfiguration, what: "\(subject) has no key '\(member.key)'",
                    remedy: remedy(without: member.key, command), reason: .noSuchKey, option: member.key)
            }
            if let fault = fault(of: member, kind) { return fault }
        }
        return nil
    }

    /// The fault of a value of the wrong kind; nil where it has the right one, or where any will do.
    private static func fault(of member: JSONNode.Member, _ kind: Kind?) -> FrameHostError? {
        guard let kind, !kind.holds(member.value) else { return nil }
        return FrameHostError(
            .invalidConfiguration, place: member.key,
            what: "expected \(kind.rawValue), found \(member.value.kindName)",
            remedy: "Write \"\(member.key)\": \(kind.example).", option: member.key)
    }

    /// The commands that have a key: `snapshot` for `path`, `…` for the arguments of a stage's own command.
    private static func owners(of key: String) -> [String] {
        let names = keys.filter { $0.value[key] != nil }.keys.sorted()
        return names.isEmpty ? ["…"] : names
    }

    /// What to do about a key that the command does not have.
    private static func remedy(without key: String, _ command: String?) -> String {
        guard let command else { return "Leave '\(key)' out." }
        guard let own = keys[command] else {
            return Suggestion.nearest(to: command, in: owners(of: key)).map { "Did you mean the command '\($0)'?" }
                ?? "Leave '\(key)' out, or put it into \"arguments\": { … }."
        }
        let names = own.keys.sorted()
        switch names.count {
        case 0: return "Leave '\(key)' out."
        case 1: return "Leave '\(key)' out, or write the command's own key '\(names[0])'."
        default: return "Leave '\(key)' out, or write one of the command's own keys: \(quotedList(names, "or"))."
        }
    }
}
