// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The commands of a running chain, wherever they are read: JSON in, an answer out.
///
/// docs/chain-file.md lists them. [any thread]
struct CommandLanguage: Sendable {
    /// Commands of the chain itself.
    static let ofChain = ["attach", "drain", "figures", "plan", "reload", "reload-plugin", "status"]
    /// Commands that every stage has, beside its own.
    static let ofStages = ["detach", "pause", "replace", "resume", "snapshot"]

    let chain: Chain
    let document: ChainDocument
    let snapshots: Snapshots
    private let order = DrainOrder()

    init(chain: Chain, document: ChainDocument, snapshots: Snapshots) {
        self.chain = chain
        self.document = document
        self.snapshots = snapshots
    }

    /// [control thread] Starts a drain that has waited for the commands before it as long as
    /// ``DrainOrder/patience``.
    func tick() { if order.isDue(now: chain.clock.now()) { chain.drain(keepingJobs: true) } }

    /// Carries out a command.
    ///
    /// - Parameter reply: Called once, now or later, on any thread.
    func perform(_ node: JSONNode, reply: @escaping CommandReply) {
        // A drain waits for all others, not for itself.
        if node["command"]?.asString == "drain", node["stage"] == nil {
            return carryOut(node, reply: reply)
        }
        let number = order.begin()
        // Weak: the closure may wait in the mailbox of a stage's thread, which holds the chain. A strong reference
        // would be a cycle.
        carryOut(node) { [order, weak chain] answer in
            reply(answer)
            if order.ended(number) { chain?.drain(keepingJobs: true) }
        }
    }

    private func carryOut(_ node: JSONNode, reply: @escaping CommandReply) {
        guard let members = node.asObject else {
            return refuse("expected an object, found \(node.kindName)", form, reply)
        }
        if let fault = CommandForm.fault(of: members) { return reply(CommandAnswer(stage: nil, error: fault)) }
        let command = node["command"]?.asString
        guard let stage = node["stage"]?.asString else {
            guard let command, node["stage"] == nil else {
                guard node["set"] == nil else {
                    return refuse("'stage' is missing", "Add \"stage\": \"…\".", reply)
                }
                return refuse("'command' is missing", "Add \"command\": \"…\".", reply)
            }
            return performOnChain(command, node, reply)
        }
        if let command, node["set"] == nil {
            performOnStage(stage, command, node, reply)
        } else if let members = node["set"]?.asObject, command == nil {
            chain.set(stage: stage, options: members) { [document] answer in
                if answer.isDone { document.countChange() }
                reply(answer)
            }
        } else {
            refuse(
                command == nil ? "'command' and 'set' are both missing" : "'command' and 'set' contradict each other",
                "Write either \"command\": \"name\" or \"set\": { \"option\": value }.", reply)
        }
    }

    private func performOnChain(_ command: String, _ node: JSONNode, _ reply: @escaping CommandReply) {
        switch command {
        case "drain":
            tell("drains", [], reply)
            // While the run finishes, what is asked for is to give up its jobs.
            if chain.currentState == .finishing || order.drain(now: chain.clock.now()) { chain.drain() }
        case "figures": tell("figures", [JSONNode.Member(key: "figures", value: chain.figuresWithPlugins)], reply)
        case "status": tell("status", [JSONNode.Member(key: "status", value: chain.status.json)], reply)
        case "plan": tell("plan", [JSONNode.Member(key: "plan", value: PlanText(chain.plan).json)], reply)
        case "attach":
            guard let producer = node["at"]?.asString, let stages = node["stages"]?.asArray else {
                return refuse(
                    "'at' and 'stages' must both be given",
                    "Write \"at\": \"stage\", \"stages\": [ { \"use\": \"…\" } ].", reply)
            }
            let copies = node["copy"]?.asBool ?? false
            change(
                producer, reply, beginsBranch: true,
                placing: { ChainDocument.place($0, inAttaching: stages, $1) }
            ) {
                try document.attaching(stages, at: producer, copies: copies)
            }
        case "reload":
            let file = node["file"]?.asString
            let what = node["chain"] == nil ? file.map { "'\($0)'" } ?? "the chain file" : "the new chain"
            let ofReload: CommandReply = { [weak chain] in reply($0.ofReload(what, chain)) }
            if let whole = node["chain"] {
                guard file == nil else {
                    return refuse("'file' and 'chain' contradict each other", "Leave one of them out.", reply)
                }
                return change(nil, ofReload, resetting: .all, file: ChainDocument.inlineFile) {
                    document.withHiddenParts(whole)
                }
            }
            change(nil, ofReload, resetting: .all, file: file) { try document.read(file) }
        case "reload-plugin":
            guard let plugin = node["plugin"]?.asString else {
                return refuse(
                    "'plugin' is missing",
                    "Name the plugin's file or one of its stage types: \"plugin\": \"night-mode\".", reply)
            }
            document.reloadPlugin(plugin, chain, reply: reply)
        default:
            let near = Suggestion.nearest(to: command, in: Self.ofChain + Self.ofStages).map {
                "Did you mean '\($0)'?" + (Self.ofStages.contains($0) ? " Then also add \"stage\": \"…\"." : "")
            }
            let needsStage =
                Self.ofStages.contains(command) ? "Name the stage that the command is for: \"stage\": \"…\"." : nil
            refuse(
                needsStage == nil ? "the chain has no command '\(command)'" : "'stage' is missing",
                needsStage ?? near
                    ?? "Use \(quotedList(Self.ofChain, "or")), or, for a command of a stage, add \"stage\": \"…\".",
                reply, reason: needsStage == nil ? .noSuchCommand : nil)
        }
    }

    private func performOnStage(_ stage: String, _ command: String, _ node: JSONNode, _ reply: @escaping CommandReply) {
        let drops = node["drop"]?.asBool ?? false
        if ["detach", "replace"].contains(command), let fault = faultOfInserted(stage) {
            return reply(CommandAnswer(stage: stage, error: fault))
        }
        switch command {
        case "pause": chain.pause(stage: stage, isDropping: drops, reply: reply)
        case "resume": chain.resume(stage: stage, reply: reply)
        case "detach":
            change(nil, reply, placing: { ChainDocument.named($0, in: $1) }) { try document.detaching(stage) }
        case "snapshot": snapshots.take(stage, node, reply: reply)
        case "replace":
            guard let other = node["with"] else {
                return refuse("'with' is missing", "Write \"with\": { \"use\": \"…\" }.", reply)
            }
            change(
                stage, reply, isDraining: !drops, resetting: .of(stage), isReplacement: true,
                placing: { ChainDocument.place($0, inReplacing: stage, with: other, $1) }
            ) {
                try document.replacing(stage, with: other)
            }
        default:
            chain.send(stage: stage, command: command, arguments: node["arguments"] ?? [:], reply: reply)
        }
    }

    /// The fault of naming a tap or converter, which no file contains: it says which stage to name instead. Nil for
    /// other stages.
    private func faultOfInserted(_ id: String) -> FrameHostError? {
        let plan = chain.plan
        guard var index = plan.stages.firstIndex(where: { $0.id == id }), plan.stages[index].isInserted else {
            return nil
        }
        while plan.stages[index].isInserted, let link = plan.links.first(where: { $0.from == index }) {
            index = link.to
        }
        let behind = plan.stages[index].id
        return FrameHostError(
            .invalidConfiguration, place: FaultPlace(id),
            what: "framehost has inserted this stage for '\(behind)', and it changes only with '\(behind)'",
            remedy: "Name '\(behind)' instead.")
    }

    /// - Parameters:
    ///   - file: The file that `edited` is read from, where that is not the chain's.
    ///   - beginsBranch: Whether the first stage that `edited` adds begins a branch.
    ///   - isReplacement: Whether `edited` puts another stage in the place of `stage`.
    ///   - placing: Translates a fault's place in the changed chain, the second argument, into a place that the
    ///     sender of the command finds.
    private func change(
        _ stage: String?, _ reply: @escaping CommandReply, isDraining: Bool = true, resetting: ResetScope = .none,
        file: String? = nil, beginsBranch: Bool = false, isReplacement: Bool = false,
        placing: @escaping @Sendable (FaultPlace, JSONNode) -> FaultPlace = { place, _ in place },
        _ edited: @escaping () throws -> JSONNode
    ) {
        let document = document
        let next = Locked<JSONNode?>(nil)
        chain.change(stage: stage, isDraining: isDraining, resetting: resetting) { _ in
            let first = document.present["stages"]?.asArray?.count ?? 0
            let root = try edited()
            next.withLock { $0 = root }
            var request = try document.request(root, file: file)
            if beginsBranch, first < request.stages.count { request.stages[first].beginsBranch = true }
            if isReplacement, let index = request.stages.firstIndex(where: { $0.id == stage }) {
                request.stages[index].isReplacement = true
            }
            return request
        } committed: {
            if let next = next.withLock({ $0 }) { document.commit(next) }
        } reply: { answer in
            guard let changed = next.withLock({ $0 }) else { return reply(answer) }
            reply(answer.placed { placing($0, changed) })
        }
    }

    private func tell(_ what: String, _ details: [JSONNode.Member], _ reply: CommandReply) {
        let frame = UInt64(chain.progress.captured)
        reply(CommandAnswer(stage: nil, frame: frame, details: details, text: "chain: \(what) at frame \(frame)."))
    }

    private func refuse(
        _ what: String, _ remedy: String, _ reply: CommandReply, reason: FrameHostError.Reason? = nil
    ) {
        reply(
            CommandAnswer(
                stage: nil, error: FrameHostError(.invalidConfiguration, what: what, remedy: remedy, reason: reason)))
    }
}

/// The commands of a chain that runs alone.
extension CommandLanguage: CommandReader.Taker {
    var clock: ChainClock { chain.clock }
    var form: String { "Write an object, such as {\"command\":\"drain\"}." }

    func addressed(_ command: JSONNode) -> (language: CommandLanguage, command: JSONNode, chain: String?) {
        (self, command, nil)
    }
}
