// SPDX-License-Identifier: Apache-2.0

/// Commands to stages. Any thread may send one, and each is answered once.
extension Chain {
    /// Sends a command to a stage.
    ///
    /// - Parameters:
    ///   - id: The stage's id in the chain file.
    ///   - command: A command that the stage declares in ``StageInfo/commands``.
    ///   - arguments: A JSON object, as ``CommandInfo/arguments`` declares it.
    ///   - reply: Called with the answer on the stage's thread, or at once where there is a fault.
    public func send(
        stage id: String, command: String, arguments: JSONNode = JSONNode(.object([])), reply: @escaping CommandReply
    ) {
        guard let runner = runner(id, reply) else { return }
        guard runner.shown.info.commands.contains(where: { $0.name == command }) else {
            let names = runner.shown.info.commands.map(\.name)
            let near = Suggestion.nearest(to: command, in: names).map { "Did you mean '\($0)'?" }
            return reply(
                CommandAnswer(
                    stage: id,
                    error: FrameHostError(
                        .invalidConfiguration, place: id, what: "\(runner.shown.info.id) has no command '\(command)'",
                        remedy: near
                            ?? (names.isEmpty
                                ? "It takes only the commands that every stage has, such as 'pause'."
                                : "It has \(quotedList(names, "and"))."),
                        reason: .noSuchCommand)))
        }
        post(runner, .command, reply) { [unowned runner] in
            try runner.instance.stage.command(command, arguments: arguments)
        } again: { [unowned self] in
            send(stage: id, command: command, arguments: arguments, reply: reply)
        }
    }

    /// Changes live options of a stage, all or none.
    ///
    /// - Parameters:
    ///   - id: The stage's id in the chain file.
    ///   - options: Keys and new values of options that are live.
    ///   - reply: Called with the answer on the stage's thread, or at once where there is a fault.
    public func set(stage id: String, options: [JSONNode.Member], reply: @escaping CommandReply) {
        guard let runner = runner(id, reply) else { return }
        post(runner, .set, reply) { [unowned self, unowned runner] in
            try runner.instance.set(options) { key, _ in
                FaultPlace(stage: id, words: key.isEmpty ? id : "\(id).\(key)")
            }
            liveOptions.withLock { $0.set(runner.number, options) }
            let keys = quotedList(options.map(\.key), "and")
            // Listeners keep events, so an event carries no long values. A listener that wants them asks for them.
            let values = JSONNode(.object(options)).withoutPlaces
            let isShort = values.text().utf8.count <= 4096
            post(
                "option-changed", id, level: .debug, "\(id): \(keys) changed.",
                isShort ? [JSONNode.Member(key: "options", value: values)] : [])
        } again: { [unowned self] in
            set(stage: id, options: options, reply: reply)
        }
    }

    private func runner(_ id: String, _ reply: CommandReply) -> StageRunner? {
        if let runner = graph.runner(id: id) { return runner }
        reply(CommandAnswer(stage: id, error: unknown(id)))
        return nil
    }

    func failed(_ runner: StageRunner) -> FrameHostError {
        FrameHostError(
            .unavailable, place: runner.id, what: "the stage has failed",
            remedy: restarts.awaited(runner) == nil
                ? "Replace it, or start the chain again."
                : "Wait until framehost has restarted it, then send the command again.")
    }

    static func ended(_ title: String) -> FrameHostError {
        var fault = FrameHostError(
            .unavailable, place: title, what: "the stage has ended",
            remedy: "Start the chain again, and send the command while the stage runs.")
        fault.mayBeOfEnd = true
        return fault
    }

    private func post(
        _ runner: StageRunner, _ call: StageCall, _ reply: @escaping CommandReply,
        _ action: @escaping () throws -> Void, again: @escaping () -> Void
    ) {
        let id = runner.id
        // Weak: the thread has the message, and the stage has the thread. The stage may be gone by then: one that a
        // refused change had made. The mailbox's owner is not.
        let (thread, title): (ThreadState, String) = (runner.thread, runner.title)
        let open = { [weak runner, unowned thread, unowned self] in
            // A change has put another runner in its place since.
            if let present = graph.runner(id: id), present !== runner { return again() }
            // A stage that leaves may go on to another thread.
            guard let runner, runner.thread === thread else {
                return reply(CommandAnswer(stage: id, error: Self.ended(title)))
            }
            let frame = runner.nextFrame
            // A failed stage takes no command.
            guard !runner.hasFailed else { return reply(CommandAnswer(stage: id, error: failed(runner))) }
            do {
                try runner.thread.call(call, stage: runner.number, action)
                reply(CommandAnswer(stage: id, frame: frame))
            } catch {
                reply(CommandAnswer(stage: id, error: error))
            }
        }
        let refuse = { [unowned thread] in
            let fault = thread.isClosed ? Self.ended(title) : Self.crowded(title)
            reply(CommandAnswer(stage: id, error: fault))
        }
        if !thread.post(.init(open: open, refuse: refuse)) { refuse() }
    }
}
