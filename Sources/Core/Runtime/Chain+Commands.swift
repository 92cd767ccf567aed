/// Commands to stages, which any thread may send; each is answered by an event `command-answered`.
extension Chain {
    /// Sends a command to a stage; the answer comes as an event `command-answered`.
    ///
    /// - Parameter tag: Given back in the answer.
    public func send(
        stage id: String, command: String, arguments: JSONNode = JSONNode(.object([])), tag: JSONNode? = nil
    ) {
        guard let runner = runner(id, tag) else { return }
        guard runner.shown.info.commands.contains(where: { $0.name == command }) else {
            let names = runner.shown.info.commands.map(\.name)
            let near = Suggestion.nearest(to: command, in: names).map { "Did you mean '\($0)'?" }
            answer(
                id, tag,
                error: FrameHostError(
                    .invalidConfiguration, place: id, what: "\(runner.shown.info.id) has no command '\(command)'",
                    remedy: near ?? (names.isEmpty ? "It has none." : "It has \(quotedList(names)).")))
            return
        }
        post(runner, .command, tag) { [unowned runner] in
            try runner.instance.stage.command(command, arguments: arguments)
        }
    }

    /// Changes live options of a stage, all or none; the answer comes as an event `command-answered`.
    public func set(stage id: String, options: [JSONNode.Member], tag: JSONNode? = nil) {
        guard let runner = runner(id, tag) else { return }
        post(runner, .set, tag) { [unowned runner] in
            try runner.instance.set(options) { key, _ in
                FaultPlace(stage: id, words: key.isEmpty ? id : "\(id).\(key)")
            }
        }
    }

    func runner(_ id: String, _ tag: JSONNode?) -> StageRunner? {
        if let runner = graph.runner(id: id) { return runner }
        let near = Suggestion.nearest(to: id, in: runners.map(\.id)).map { "Did you mean '\($0)'?" }
        answer(
            id, tag,
            error: FrameHostError(
                .invalidConfiguration, place: id, what: "no such stage",
                remedy: near ?? "The chain has \(quotedList(runners.map(\.id)))."))
        return nil
    }

    private func post(_ runner: StageRunner, _ call: StageCall, _ tag: JSONNode?, _ action: @escaping () throws -> Void)
    {
        // Opened by a thread, or refused by the run's end, which hold the chain; a letter that held it would keep it
        // for good.
        let open = { [unowned self, unowned runner] in
            let frame = runner.nextFrame
            do {
                try runner.thread.call(call, stage: runner.number, action)
                answer(runner.id, tag, frame: frame)
            } catch {
                answer(runner.id, tag, error: error)
            }
        }
        let id = runner.id
        let refuse = { [unowned self] in
            answer(
                id, tag,
                error: FrameHostError(
                    .unavailable, place: id, what: "the stage has ended or does not read its commands",
                    remedy: "Send commands while the chain runs."))
        }
        if !runner.thread.post(.init(open: open, refuse: refuse)) { refuse() }
    }

    func answer(
        _ stage: String?, _ tag: JSONNode?, frame: UInt64? = nil, error: (any Error)? = nil,
        details: [JSONNode.Member] = []
    ) {
        var members = [JSONNode.Member(key: "ok", value: JSONNode(.bool(error == nil)))]
        if let tag { members.append(JSONNode.Member(key: "tag", value: tag)) }
        if let frame { members.append(JSONNode.Member(key: "frame", value: JSONNode(.number(String(frame))))) }
        members += details
        let text: String
        if let error {
            text = (error as? FrameHostErrors)?.description ?? FrameHostError.wrap(error).description
            members.append(JSONNode.Member(key: "error", value: JSONNode(.string(text))))
        } else {
            text = "\(stage ?? "chain"): takes effect at frame \(frame ?? 0)."
        }
        hub.post(
            Event(
                name: "command-answered", stage: stage, level: error == nil ? .info : .warning, text: text,
                details: JSONNode(.object(members)), time: clock.now()))
    }
}
