// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Checks one command of a rule before anything runs, for what ``CommandLanguage`` and the stage would refuse later.
struct RuleCommandCheck {
    struct Fault {
        var place: TextPlace
        /// The path within the command: `.set.text`.
        var path: String
        var what: String
        var remedy: String
        /// The key whose name is unknown, if that is the fault.
        var unknown: String?
    }

    /// The program's commands that a rule may send to a stage, beside the stage's own.
    static let ofStages = CommandLanguage.ofStages.filter { !["detach", "replace"].contains($0) }

    let ids: Set<String>
    let stages: [StageRequest]
    private(set) var found: [Fault] = []

    init(ids: Set<String>, stages: [StageRequest]) {
        self.ids = ids
        self.stages = stages
    }

    private mutating func add(
        _ place: TextPlace, _ path: String, _ what: String, _ remedy: String, from fault: FrameHostError? = nil
    ) {
        let unknown = fault?.reason == .noSuchKey ? fault?.option : nil
        found.append(Fault(place: place, path: path, what: what, remedy: remedy, unknown: unknown))
    }

    mutating func check(_ node: JSONNode) {
        guard let members = node.asObject else {
            return add(
                node.place, "", "expected a command, found \(node.kindName)",
                "Write { \"stage\": \"…\", \"command\": \"…\" }.")
        }
        if let fault = CommandForm.fault(of: members) { return add(fault, of: members, node) }
        if let tag = members.first(where: { $0.key == "tag" }) {
            return add(
                tag.keyPlace, ".tag", "'tag' has no effect, because nothing reads the answer to a rule's command",
                "Leave 'tag' out.")
        }
        let command = node["command"]
        guard let id = node["stage"]?.asString else { return checkOfChain(command, node) }
        guard ids.contains(id) else {
            return add(
                node["stage"]?.place ?? node.place, ".stage", "no stage '\(id)'",
                remedyOfUnknownStage(id, in: ids.sorted()))
        }
        guard (command == nil) != (node["set"] == nil) else {
            return add(
                node.place, "",
                command == nil ? "neither 'command' nor 'set' is given" : "'command' and 'set' contradict each other",
                "Write \"command\": \"name\" or \"set\": { \"option\": value }.")
        }
        guard let stage = stages.first(where: { $0.id == id }) else { return }
        if let set = node["set"] { return checkSet(set, stage) }
        checkCommand(command?.asString ?? "", node, stage)
    }

    /// A fault of ``CommandForm`` names the key of its member.
    private mutating func add(_ fault: FrameHostError, of members: [JSONNode.Member], _ node: JSONNode) {
        let named = members.first { $0.key == fault.option }
        let place = fault.reason == .noSuchKey ? named?.keyPlace : named?.value.place
        add(place ?? node.place, named.map { ".\($0.key)" } ?? "", fault.what, fault.remedy, from: fault)
    }

    private mutating func checkOfChain(_ command: JSONNode?, _ node: JSONNode) {
        guard let command, let name = command.asString else {
            return add(
                node.place, "", "'stage' is missing",
                node["set"] == nil ? "Write { \"stage\": \"…\", \"command\": \"…\" }." : "Add \"stage\": \"…\".")
        }
        guard name != "drain" else { return }
        if CommandLanguage.ofStages.contains(name), !Self.ofStages.contains(name) {
            return add(command.place, ".command", "'\(name)' is not a command for a rule", Self.remedy)
        }
        let isOfAStage = stages.contains { $0.type.info.commands.contains { $0.name == name } }
        if !isOfAStage, Suggestion.nearest(to: name, in: ["drain"] + CommandLanguage.ofStages) == "drain" {
            return add(command.place, ".command", "the chain has no command '\(name)'", "Did you mean 'drain'?")
        }
        if Self.ofStages.contains(name) || !CommandLanguage.ofChain.contains(name) {
            return add(
                node.place, "", "'stage' is missing", "Name the stage that has the command '\(name)': \"stage\": \"…\"."
            )
        }
        add(command.place, ".command", "'\(name)' is not a command for a rule", Self.remedy)
    }

    private static let remedy =
        "Use a command of a stage type, 'set', 'pause', 'resume', 'snapshot' or 'drain': a rule cannot send any other command."

    private mutating func checkCommand(_ name: String, _ node: JSONNode, _ stage: StageRequest) {
        let place = node["command"]?.place ?? node.place
        if name == "snapshot" { return checkSnapshot(node, stage) }
        if Self.ofStages.contains(name) { return }
        if CommandLanguage.ofStages.contains(name) {
            return add(place, ".command", "'\(name)' is not a command for a rule", Self.remedy)
        }
        let info = stage.type.info
        guard let command = info.commands.first(where: { $0.name == name }) else {
            let names = info.commands.map(\.name) + Self.ofStages
            return add(
                place, ".command", "\(info.id) has no command '\(name)'",
                didYouMean(name, in: names, else: "It has \(quotedList(names, "and"))."))
        }
        checkArguments(node["arguments"], command, node)
    }

    private mutating func checkArguments(_ node: JSONNode?, _ command: CommandInfo, _ owner: JSONNode) {
        let given = node?.asObject ?? []
        for argument in given {
            let path = JSONPathText.appending(argument.key, to: ".arguments")
            guard let declared = command.arguments.first(where: { $0.name == argument.key }) else {
                let names = command.arguments.map(\.name)
                add(
                    argument.keyPlace, path, "the command '\(command.name)' has no argument '\(argument.key)'",
                    didYouMean(
                        argument.key, in: names,
                        else: names.isEmpty
                            ? "Leave '\(argument.key)' out: the command has no arguments."
                            : "It has \(quotedList(names, "and"))."))
                continue
            }
            let isOfKind: Bool =
                switch (declared.kind, argument.value.value) {
                case (.bool, .bool), (.number, .number), (.string, .string), (.list, .array), (.object, .object): true
                default: false
                }
            let isKnown = declared.words.isEmpty || argument.value.asString.map(declared.words.contains) == true
            guard !isOfKind || !isKnown else { continue }
            add(
                argument.value.place, path,
                isOfKind
                    ? "\(argument.value.text()) must be one of \(quotedList(declared.words, "or"))"
                    : "expected \(declared.kind.rawValue), found \(argument.value.text())",
                isOfKind || declared.words.isEmpty ? "" : "Use \(quotedList(declared.words, "or")).")
        }
        for needed in command.arguments where needed.isRequired && !given.contains(where: { $0.key == needed.name }) {
            add(
                node?.place ?? owner.place, node == nil ? "" : ".arguments",
                "the command '\(command.name)' needs '\(needed.name)'",
                "Write \"arguments\": { \"\(needed.name)\": … }"
                    + (needed.summary.isEmpty ? "." : ", where '\(needed.name)' is: \(needed.summary)"))
        }
    }

    // MARK: set

    private mutating func checkSet(_ node: JSONNode, _ stage: StageRequest) {
        let members = node.asObject ?? []
        guard !members.isEmpty else {
            return add(node.place, ".set", "is empty", "Write \"set\": { \"option\": value }.")
        }
        let options = stage.type.options
        let live = options.filter(\.isLive).map(\.name)
        for member in members {
            let path = JSONPathText.appending(member.key, to: ".set")
            guard let option = options.first(where: { $0.name == member.key }) else {
                add(
                    member.keyPlace, path, "\(stage.type.info.id) has no option '\(member.key)'",
                    didYouMean(
                        member.key, in: live,
                        else: live.isEmpty
                            ? "Remove this command: no option of \(stage.type.info.id) can change while the chain runs."
                            : "\(quotedList(live, "and")) can change while the chain runs."))
                continue
            }
            guard !option.isLive else { continue }
            add(
                member.keyPlace, path, "cannot change while the chain runs",
                live.isEmpty
                    ? "Remove this command: no option of \(stage.type.info.id) can change."
                    : members.count == 1
                        ? "Set another option, or remove this command: only \(quotedList(live, "and")) can change."
                        : "Leave '\(member.key)' out: only \(quotedList(live, "and")) can change.")
        }
        if found.isEmpty { checkValues(members, stage) }
    }

    /// Checks the values of a `set` together with the file's other options. Faults of those are reported at their own
    /// place.
    private mutating func checkValues(_ members: [JSONNode.Member], _ stage: StageRequest) {
        var changed = stage
        changed.settings = [:]
        changed.options.removeAll { option in members.contains { $0.key == option.key } }
        let stage = "stages[\(stage.fileIndex)]"
        let before = Self.faults(of: changed)
        changed.options += members
        for fault in Self.faults(of: changed) where !before.contains(fault) {
            let path = fault.place.path ?? ""
            guard path.hasPrefix(stage) else { continue }
            let rest = String(path.dropFirst(stage.count))
            let isOfSet = members.contains {
                rest == ".\($0.key)" || rest.hasPrefix(".\($0.key).") || rest.hasPrefix(".\($0.key)[")
            }
            guard isOfSet || !before.contains(where: { $0.place.path == path }) else { continue }
            add(
                isOfSet ? fault.place.position ?? members[0].keyPlace : members[0].keyPlace,
                ".set" + (isOfSet ? rest : ""), fault.what, fault.remedy, from: fault)
        }
    }

    private static func faults(of stage: StageRequest) -> [FrameHostError] {
        do {
            try stage.checkOptions(file: "")
            return []
        } catch { return (error as? FrameHostErrors)?.errors ?? [.wrap(error)] }
    }

    // MARK: snapshot

    private mutating func checkSnapshot(_ node: JSONNode, _ stage: StageRequest) {
        let media = stage.type.info.output(with: stage.options)
        if media == .none || { if case .encoded = media { true } else { false } }() {
            add(
                node["stage"]?.place ?? node.place, ".stage", "'\(stage.id)' gives no pictures",
                "Name a stage that gives raw video.")
        }
        guard let path = node["path"]?.asString, !path.isEmpty else {
            return add(
                node["path"]?.place ?? node.place, node["path"] == nil ? "" : ".path",
                node["path"] == nil ? "'path' is missing" : "must be the name of a file, but is empty",
                "Write \"path\": \"picture-%Y%m%d-%H%M%S.jpg\".")
        }
        if let odd = SnapshotName.oddConversion(in: path) {
            add(
                node["path"]?.place ?? node.place, ".path", "'\(odd)' is not a time field",
                "Use \(SnapshotName.known.map { "%\($0)" }.joined(separator: ", ")), or %% for a percent sign.")
        }
        do { _ = try PictureForm(node, path: path) } catch {
            for fault in (error as? FrameHostErrors)?.errors ?? [.wrap(error)] {
                let key = fault.place.words
                add(node[key]?.place ?? node.place, key.isEmpty ? "" : ".\(key)", fault.what, fault.remedy)
            }
        }
    }
}
