// SPDX-License-Identifier: Apache-2.0

/// What commands, changes and the end of the run do to a stage, between two items on its thread.
extension StageRunner {
    /// [stage thread] The first item of a source after a pause.
    func goOn(after record: UnsafeMutablePointer<LeaseRecord>) {
        record.pointee.header.isDiscontinuity = true
        modes.value = .runs
    }

    /// [stage thread] Counts an item that reached the stage after the run was stopped.
    func refuseStopped(_ lease: consuming Lease) {
        counters.taken.add()
        countDrop(.stopped)
    }

    /// [stage thread, between two items] Pauses the stage or lets it go on. A stage that frames cannot pass by drops
    /// them.
    func setMode(_ asked: Mode) -> ModeChange {
        guard !hasFailed, !hasStopped, !instance.isStopped else { return .refused }
        if asked == .runs, isPaused { context.resumedAt = clock.now() }
        // Decided here: the thread may have replaced the instance since the pause was asked for.
        return modes.set(asked, canBePassed: canBePassed)
    }

    /// [stage thread, between two items] Puts another instance in the place of the present one, which is returned to be
    /// stopped. Counters, output and mailbox stay.
    ///
    /// - Parameters:
    ///   - other: The new instance: made, negotiated for the same formats, and started.
    ///   - isDraining: Whether the present instance first answers the items that it holds. Otherwise they are counted
    ///     as `detached`.
    func exchange(_ other: StageInstance, isDraining: Bool) -> StageInstance {
        let modeBefore = mode
        let wasPaused = isPaused && !isDown
        isLettingGo = true
        letGo(isDraining: isDraining)
        isLettingGo = false
        replacedHadFailed = isDown
        let old = instance
        other.context.item.take(over: context.item)
        other.context.thread = thread
        adopt(other)
        hasReportedHold = false
        hasReportedMetadata = false
        times.beginAnew()
        modes.beginAnew(before: modeBefore, wasPaused: wasPaused, canBePassed: other.canBePassed)
        // Last: whoever finds the stage failed after it has looked here has seen the instance that failed.
        show(other)
        return old
    }

    /// [stage thread, between two items] Gives the present instance no further item. It answers the items that it
    /// holds, or they are dropped.
    func letGo(isDraining: Bool) {
        if isDraining { drain() }
        let lost = max(0, counters.unanswered)
        for _ in 0..<lost { countDrop(.detached) }
        counters.held = 0
        // A join behind may wait for these items, and the fork before may wait for that join.
        if lost > 0, kind != .source, let pts = context.item.pts { tellLoss(upTo: pts, after: nil) }
    }

    /// [stage thread, between two items] Lets frames pass a stage that has failed, or no longer lets them, as `onError`
    /// says now.
    func settleBypass() {
        modes.settleBypass(passes: onError == .bypass && canBePassed)
    }

    /// Ends what `start` began. Only the first call does something.
    ///
    /// - Parameter current: The thread that calls: the stage's own, or the one that started the stage where its own
    ///   thread never ran.
    func stop(on current: ThreadState) {
        guard !hasStopped else { return }
        hasStopped = true
        settleAfterStop()
        guard !isDown else { return stopFailedInstance(on: current) }
        do { try current.call(.stop, stage: number) { try instance.stop() } } catch {
            fail(error, sequence: lastSequence, pts: nil)
        }
    }

    /// [stage thread, between two items] Ends the instance that has failed. Its failure is known, so what this throws is
    /// none of its own.
    func stopFailedInstance(on current: ThreadState) {
        do { try current.call(.stop, stage: number) { try instance.stop() } } catch {
            context.post(
                "stage-end-failed", level: .warning, text: FrameHostError.wrap(error, place: title).description)
        }
    }

    /// Tells joins behind that items up to `pts` ended here. This includes items that the stage still holds: when it
    /// answers them, the joins will have passed their times.
    ///
    /// A join that matches by time must also know that nothing follows within its window. The next item would say so,
    /// but a stage that delays does not answer it at once, and the fork before cannot give it while it waits for that
    /// join. So three quarters of the time to the next item are announced as empty, and an item within them is too
    /// late. docs/design/010-joins.md.
    func tellLoss(upTo pts: MediaTime, after earlier: MediaTime?) {
        guard let output, output.announcesGaps else { return }
        let frameTime = instance.output?.frameTime ?? 0
        let step = frameTime > 0 ? frameTime : pts.nanoseconds &- (earlier ?? pts).nanoseconds
        toldUpTo = max(toldUpTo, pts.nanoseconds &+ max(0, min(step, 1_000_000_000)) / 4 * 3)
        output.announceNothing(upTo: toldUpTo)
    }

    /// [stage thread] Whether an answer comes too late for the joins behind, and is dropped. Access units go on with a
    /// keyframe.
    func isTooLate(_ header: borrowing ItemHeader) -> Bool {
        guard header.pts.nanoseconds <= toldUpTo else { return false }
        countDrop(.paused)
        if header.kind == .accessUnit { context.ownKeyframeRequest.raise() }
        return true
    }

    // MARK: Reports

    /// Checks after a call whether the stage keeps more than it declares.
    func checkHold() {
        let kept = ownKept
        if kept > keeper.pointee.most.load(ordering: .relaxed) { keeper.pointee.most.store(kept, ordering: .relaxed) }
        guard kept > mostHeld, !hasReportedHold else { return }
        hasReportedHold = true
        context.post(
            "over-retention", level: .warning, text: "\(holdSentence(kept)). \(Self.holdRemedy)",
            details: [
                "kept": JSONNode(.number(String(kept))), "declared": JSONNode(.number(String(demand.hold))),
            ])
    }

    /// [stage thread] Reports an answer whose PTS matches no item that the stage holds.
    func reportLostMetadata(_ record: UnsafeMutablePointer<LeaseRecord>) {
        guard !hasReportedMetadata else { return }
        hasReportedMetadata = true
        let pts = record.pointee.header.pts.nanoseconds
        context.post(
            "metadata-lost", level: .warning,
            text:
                "\(title) gave an output the PTS \(text(seconds: Double(pts) / 1e9)) s (\(pts) ns), but holds no input with this PTS: the metadata of the picture is lost."
                + " In the plugin, give each output the PTS of its input; if the plugin is not yours, tell its author.",
            details: ["ptsNanoseconds": JSONNode(.number(String(pts)))])
    }

    private var mostHeld: Int { demand.hold * max(inputs?.count ?? 1, 1) }
    private static let holdRemedy =
        "The chain may run out of buffers. In the plugin, raise 'hold' or release buffers earlier; if it is not yours, tell its author."
    private func holdSentence(_ kept: Int) -> String {
        "\(title) keeps \(kept) buffer\(kept == 1 ? "" : "s") after its call but declares a 'hold' of \(demand.hold)"
            + (inputs.map { $0.count > 1 ? " for each of its \($0.count) inputs" : "" } ?? "")
    }

    /// The fault of a stage that keeps more than it declares, for ``StageDriver``.
    var holdFault: FrameHostError? {
        guard keptNow > mostHeld else { return nil }
        return FrameHostError(.broken, what: holdSentence(keptNow), remedy: Self.holdRemedy)
    }
}
