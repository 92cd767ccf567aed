// SPDX-License-Identifier: Apache-2.0

/// Access units of a running chain. docs/design/021-live-operation.md.
extension Chain {
    /// [any thread but a stage's] Lets the access units of a stage come to `inbox`, from the next one on, until
    /// ``unwatchUnits(of:for:)`` or until the inbox is freed.
    ///
    /// - Returns: The format of the units.
    /// - Throws: ``FrameHostError`` when there is no such stage, or when it gives no access units.
    public func watchUnits(of id: String, for inbox: UnitInbox) throws -> EncodedFormat {
        let graph = graph
        guard let runner = graph.runner(id: id) else { throw unknown(id) }
        guard let format = graph.plan.stages.first(where: { $0.id == id })?.output?.encoded,
            format.video != nil
        else {
            throw FrameHostError(
                .invalidConfiguration, place: runner.title, what: "gives no encoded video",
                remedy: "Name an encoder, or a source that does not decode its stream.")
        }
        runner.units.watch(id, inbox)
        return format
    }

    /// [any thread but a stage's] Ends ``watchUnits(of:for:)``. What is in the inbox stays there.
    public func unwatchUnits(of id: String, for inbox: UnitInbox) { graph.runner(id: id)?.units.unwatch(inbox) }

    /// [any thread] Asks a stage for a keyframe as soon as possible. Several requests before its next picture count as
    /// one.
    ///
    /// - Returns: False where no stage makes a keyframe when asked, or where there is no such stage.
    @discardableResult
    public func requestKeyframe(of id: String) -> Bool {
        let graph = graph
        guard let runner = graph.runner(id: id),
            graph.plan.stages.first(where: { $0.id == id })?.output?.encoded?.video != nil
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
