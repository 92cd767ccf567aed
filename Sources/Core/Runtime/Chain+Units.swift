/// Access units of a running chain. docs/design/021-live-operation.md.
extension Chain {
    /// [any thread but a stage's] The access units that a stage gives come to `inbox` from the next on, until
    /// ``unwatchUnits(of:for:)`` or the inbox is let go.
    ///
    /// - Returns: What they have in common.
    /// - Throws: ``FrameHostError``: no such stage, or one that gives no access units.
    public func watchUnits(of id: String, for inbox: UnitInbox) throws -> EncodedFormat {
        let graph = graph
        guard let runner = graph.runner(id: id) else { throw unknown(id) }
        guard let format = graph.plan.stages.first(where: { $0.id == id })?.output?.encoded else {
            throw FrameHostError(
                .invalidConfiguration, place: runner.title, what: "gives no access units",
                remedy: "Ask an encoder, or a source that passes its stream through.")
        }
        runner.units.watch(id, inbox)
        return format
    }

    /// [any thread but a stage's] Nothing of the stage comes to `inbox` any more; what is there stays.
    public func unwatchUnits(of id: String, for inbox: UnitInbox) { graph.runner(id: id)?.units.unwatch(inbox) }

    /// [any thread] The stage is to give a keyframe as soon as may be. Many requests before its next picture are one.
    ///
    /// - Returns: False where its keyframes are where they are, or there is no such stage.
    @discardableResult
    public func requestKeyframe(of id: String) -> Bool {
        let graph = graph
        guard let runner = graph.runner(id: id),
            graph.plan.stages.first(where: { $0.id == id })?.output?.encoded != nil
        else { return false }
        let shown = runner.shown
        if shown.demand.outputBuffers == .sameAsInput {
            guard let request = shown.context.keyframeRequest else { return false }
            request.raise()
            return true
        }
        guard !runner.isSource || shown.demand.makesKeyframes else { return false }
        shown.context.ownKeyframeRequest.raise()
        return true
    }
}
