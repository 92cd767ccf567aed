// SPDX-License-Identifier: Apache-2.0

/// Pictures of a running chain. docs/design/021-live-operation.md.
extension Chain {
    /// [any thread but a stage's] Asks for the next picture that a stage gives. It comes to `inbox`.
    ///
    /// - Throws: ``FrameHostError`` when there is no such stage, when the stage gives no pictures, or with code
    ///   `.exhausted`.
    public func askPicture(of id: String, for inbox: PictureInbox) throws {
        let graph = graph
        guard let runner = graph.runner(id: id) else { throw unknown(id) }
        guard let format = Self.pictureFormat(of: id, in: graph.plan) else {
            let near = graph.plan.nearestPictures(before: id)
            throw FrameHostError(
                .invalidConfiguration, place: runner.title, what: "gives no pictures",
                remedy: near.map { "Ask for the pictures of '\($0)'." } ?? "Ask a stage that gives raw video.")
        }
        try runner.pictures.ask(PictureInbox.Ask(inbox: inbox, stage: id), format: format)
    }

    /// [any thread but a stage's] Waits for the next picture that a stage gives; nil when none came in time, or when
    /// the chain does not run.
    ///
    /// - Throws: What ``askPicture(of:for:)`` throws.
    public func picture(of id: String, within seconds: Double = 1) throws -> StagePicture? {
        let inbox = PictureInbox()
        let end = ChainClock.system.now() + MediaTime(seconds: min(max(seconds, 0), 3600)).nanoseconds
        while true {
            try askPicture(of: id, for: inbox)
            let left = Double(end - ChainClock.system.now()) / 1e9
            guard left > 0, [.starting, .streaming, .draining].contains(currentState) else { return nil }
            // A stage that is replaced in the meantime does not answer: the new one is asked.
            if let picture = inbox.take(within: min(left, 0.1))?.picture { return picture }
        }
    }

    private static func pictureFormat(of id: String, in plan: ChainPlan) -> VideoFormat? {
        plan.stages.first { $0.id == id }?.output?.video
    }
}

extension ChainPlan {
    /// The nearest stage before `id` that gives raw video; nil where there is none.
    func nearestPictures(before id: String) -> String? {
        guard var index = stages.firstIndex(where: { $0.id == id }) else { return nil }
        for _ in stages.indices {
            guard let link = links.first(where: { $0.to == index }) else { return nil }
            index = link.from
            if stages[index].output?.video != nil, !stages[index].isTap { return nameInFile(index) }
        }
        return nil
    }
}
