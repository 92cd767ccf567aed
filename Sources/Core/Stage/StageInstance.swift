// SPDX-License-Identifier: Apache-2.0

/// One instance of a stage, without its Swift type.
final class StageInstance {
    let stage: any Stage
    /// [stage thread] Checks and sets live options; all or none.
    let set: (_ members: [JSONNode.Member], _ place: OptionPlace) throws -> Void

    private let context: StageContext
    /// Only one thread at a time ends an instance.
    @exclusivity(unchecked) private(set) var isStopped = false

    /// [stage thread, a thread of its own] Ends what `start` began. Only the first call does something.
    func stop() throws {
        guard !isStopped else { return }
        isStopped = true
        try stage.stop()
    }

    init<S: Stage>(_ stage: S, _ context: StageContext) {
        self.stage = stage
        self.context = context
        set = { members, place in
            let fields = S.Options.fields
            let frozen = members.filter { member in fields.contains { $0.name == member.key && !$0.isLive } }
            guard frozen.isEmpty else {
                let live = fields.filter(\.isLive).map(\.name)
                throw FrameHostErrors(
                    frozen.map {
                        FrameHostError(
                            .invalidConfiguration, place: place($0.key, $0.keyPlace),
                            what: "cannot change while the chain runs",
                            remedy: live.isEmpty
                                ? "Set it in the chain file, then reload or restart the chain."
                                : "Set it in the chain file, then reload or restart the chain. Only \(quotedList(live, "and")) can change while it runs."
                        )
                    })
            }
            let before = stage.options
            stage.options = try OptionDecoder.decode(
                S.Options.self, from: members, base: before, isChange: true, place: place)
            do {
                try stage.optionsChanged()
            } catch {
                stage.options = before
                throw error
            }
        }
    }

    deinit { context.forgetStage() }
}
