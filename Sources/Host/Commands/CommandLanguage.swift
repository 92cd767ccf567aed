import FrameCore

/// The commands of `--commands`, wherever they are read: JSON in, an answer out.
///
/// docs/chain-file.md lists them. Each is answered once, by an event `command-answered` with the command's `tag`.
/// [any thread]
struct CommandLanguage: Sendable {
    /// Commands of the chain itself.
    private static let ofChain = ["attach", "drain", "figures", "plan", "reload"]
    /// Commands that every stage has, beside its own.
    static let ofStages = ["detach", "pause", "replace", "resume"]
    private static let keys: Set<String> = [
        "stage", "command", "set", "tag", "arguments", "at", "stages", "with", "file", "drop",
    ]

    let chain: Chain
    let document: ChainDocument
    let replies: CommandReplies

    /// Has a command done.
    ///
    /// - Parameter number: The command's place in the order of those that came; answers keep it.
    func perform(_ node: JSONNode, _ number: Int) {
        let tag = AnswerOrder.tag(number, node["tag"])
        guard let members = node.asObject else {
            return replies.refuse(
                "expected an object, found \(node.kindName)", "Write {\"stage\":\"…\",\"command\":\"…\"}.", tag)
        }
        if let odd = members.first(where: { !Self.keys.contains($0.key) }) {
            return replies.refuse(
                "'\(odd.key)' is no key of a command", "Use \"stage\", \"command\" or \"set\", \"arguments\", \"tag\".",
                tag)
        }
        let command = node["command"]?.asString
        guard let stage = node["stage"]?.asString else {
            guard let command, node["stage"] == nil else {
                return replies.refuse("'stage' is missing", "Write {\"stage\":\"…\",\"command\":\"…\"}.", tag)
            }
            return performOnChain(command, node, tag)
        }
        if let command, node["set"] == nil {
            performOnStage(stage, command, node, tag)
        } else if let members = node["set"]?.asObject, command == nil {
            chain.set(stage: stage, options: members, tag: tag)
        } else {
            replies.refuse(
                "neither 'command' nor 'set' is given as it should be",
                "Write \"command\": \"name\" or \"set\": { \"option\": value }.", tag)
        }
    }

    private func performOnChain(_ command: String, _ node: JSONNode, _ tag: JSONNode) {
        switch command {
        case "drain":
            replies.acceptDrain(tag)
            chain.drain()
        case "figures": replies.askFigures(tag)
        case "plan": replies.askPlan(tag)
        case "attach":
            guard let producer = node["at"]?.asString, let stages = node["stages"]?.asArray else {
                return replies.refuse(
                    "'at' or 'stages' is missing", "Write \"at\": \"stage\", \"stages\": [ { \"use\": \"…\" } ].", tag)
            }
            change(producer, tag) { try document.attaching(stages, at: producer) }
        case "reload":
            let file = node["file"]?.asString
            change(nil, tag, file: file) { try document.read(file) }
        default:
            let near = Suggestion.nearest(to: command, in: Self.ofChain).map { "Did you mean '\($0)'?" }
            let needsStage = Self.ofStages.contains(command) ? "Name its stage: \"stage\": \"…\"." : nil
            replies.refuse(
                needsStage == nil ? "the chain has no command '\(command)'" : "'stage' is missing",
                needsStage ?? near
                    ?? "It has \(Self.ofChain.map { "'\($0)'" }.joined(separator: ", ")); name a stage in \"stage\" for one of its own.",
                tag)
        }
    }

    private func performOnStage(_ stage: String, _ command: String, _ node: JSONNode, _ tag: JSONNode) {
        let drops = node["drop"] == JSONNode.bool(true)
        switch command {
        case "pause": chain.pause(stage: stage, isDropping: drops, tag: tag)
        case "resume": chain.resume(stage: stage, tag: tag)
        case "detach": change(nil, tag) { try document.detaching(stage) }
        case "replace":
            guard let other = node["with"] else {
                return replies.refuse("'with' is missing", "Write \"with\": { \"use\": \"…\" }.", tag)
            }
            change(stage, tag, isDraining: !drops) { try document.replacing(stage, with: other) }
        default: chain.send(stage: stage, command: command, arguments: node["arguments"] ?? [:], tag: tag)
        }
    }

    /// - Parameter file: The file that `edited` is read from, where it is another than the chain's.
    private func change(
        _ stage: String?, _ tag: JSONNode, isDraining: Bool = true, file: String? = nil,
        _ edited: @escaping () throws -> JSONNode
    ) {
        let document = document
        var next: JSONNode?
        chain.change(stage: stage, tag: tag, isDraining: isDraining) { _ in
            let root = try edited()
            next = root
            return try document.request(root, file: file)
        } committed: {
            if let next { document.commit(next) }
        }
    }
}

extension JSONNode {
    fileprivate static func bool(_ value: Bool) -> JSONNode { JSONNode(.bool(value)) }
}
