// SPDX-License-Identifier: Apache-2.0

/// Decides for each link whether it is a queue or runs the consumer inline, how long the queue is, and what is dropped
/// when it is full.
struct LinkPlanner {
    /// The most access units that wait before a sink whose calls may last any time.
    static let mostUnits = 512
    static let usualPlaces = 2
    /// Blocks of sound are short. 64 blocks of 10 ms are 0.64 s, by which a thread behind may be late.
    static let soundPlaces = 64
    /// About how long an item of sound or motion lasts, in seconds.
    static let usualBlockSeconds = 0.02
    /// Frames that wait for the motion of their time, which comes late.
    static let companionPlaces = 4
    private static let usualMegabytes = 64.0
    /// For motion, in 10^6 bytes: 8 s of ten thousand samples a second.
    private static let motionMegabytes = 8.0
    /// The memory of a queue that is attached while the chain runs, in 10^6 bytes. Slabs have room for one such
    /// queue, see ``SlabSizes``.
    static let lateMegabytes = 16.0
    private static let usualSeconds = 8.0

    private let stages: [PlannedStage]
    private let isLive: Bool
    private let running: RunningChain?
    /// How many links leave each stage.
    private let readers: [Int]

    /// - Parameters:
    ///   - isLive: Whether a source captures at a pace of its own.
    ///   - running: What runs, for a plan that changes it.
    init(_ stages: [PlannedStage], isLive: Bool, running: RunningChain? = nil) {
        self.stages = stages
        self.isLive = isLive
        self.running = running
        var readers = [Int](repeating: 0, count: stages.count)
        // A tap copies the item before the other consumers get it, so for them there is no fork.
        for producer in stages.filter({ !$0.isTap }).flatMap(\.request.from) { readers[producer] += 1 }
        self.readers = readers
    }

    /// All links, by consumer and then by its inputs.
    func links(_ faults: inout PlanFaults) -> [ChainPlan.Link] {
        var links: [ChainPlan.Link] = []
        for (index, stage) in stages.enumerated() {
            for (input, producer) in stage.request.from.enumerated() {
                guard let format = stages[producer].output else { continue }
                let asked = stage.inputLinks[input]
                if stage.isTap {
                    checkTap(index, producer, &faults)
                    links.append(
                        ChainPlan.Link(
                            from: producer, to: index, settings: LinkSettings(capacity: 0, policy: .wait),
                            format: format))
                    continue
                }
                let settings =
                    fixedLink(input, of: stage) ?? linkThatRuns(from: producer, into: stage, asked, format)
                    ?? settings(from: producer, into: stage, asked, format)
                checkWhatRuns(settings, producer, stage, format, &faults)
                check(settings, producer, stage, format, &faults)
                links.append(ChainPlan.Link(from: producer, to: index, settings: settings, format: format))
            }
        }
        return links
    }

    private func fixedLink(_ input: Int, of stage: PlannedStage) -> LinkSettings? {
        isJoin(stage) ? JoinRule(stage, among: stages).fixedLink(of: input) : nil
    }

    private func settings(
        from producer: Int, into stage: PlannedStage, _ asked: LinkRequest, _ format: MediaFormat
    ) -> LinkSettings {
        let places = asked.queue ?? places(from: producer, into: stage, asked, format)
        var settings = LinkSettings(capacity: places, policy: policy(into: stage, asked, format))
        if format.liesInSlab {
            let isLate = stages[producer].isTap || (stages[producer].isKept && running?[stage.id] == nil)
            let usual = format.motion != nil ? Self.motionMegabytes : Self.usualMegabytes
            let megabytes = asked.megabytes ?? (isLate ? min(Self.lateMegabytes, usual) : usual)
            settings.mostBytes = Int(megabytes * 1e6)
            settings.mostTime = MediaTime(seconds: asked.seconds ?? Self.usualSeconds)
        }
        return settings
    }

    /// A tap gives the item to its branch before the other branches are offered it. So a join that waits for one of
    /// those could wait forever.
    private func checkTap(_ tap: Int, _ producer: Int, _ faults: inout PlanFaults) {
        guard isBeforeJoin(tap) else { return }
        faults.add(
            stages[tap].request, "link.copy",
            "'copy' is not possible before a join: '\(stages[producer].id)' makes the copy before its other branches get the item, so the join could wait forever",
            "Leave 'copy' out.")
    }

    /// A running link stays as it is, so that no stage moves to another thread. A queue stays even where its fork is
    /// gone, and an inline link even where a branch is attached beside it.
    private func linkThatRuns(
        from producer: Int, into stage: PlannedStage, _ asked: LinkRequest, _ format: MediaFormat
    ) -> LinkSettings? {
        guard let runs = running?.link(from: stages[producer].id, to: stage.id), runs.asked == asked,
            (runs.settings.mostBytes == nil) == !format.liesInSlab
        else { return nil }
        // No rule would make an automatic queue again for a stage of another kind.
        let isOfOneKind = running?[stage.id]?.request.type.info.id == stage.request.type.info.id
        let staysAnyhow = runs.settings.isAutomatic && stage.request.type.info.service == .bounded && !isJoin(stage)
        guard isOfOneKind || staysAnyhow else { return nil }
        return runs.settings
    }

    /// Checks that a running queue keeps its settings, also before a stage that replaces another. (Inline links are not
    /// checked here. A change to one would move a stage to another thread, which the assembly refuses.)
    private func checkWhatRuns(
        _ settings: LinkSettings, _ producer: Int, _ stage: PlannedStage, _ format: MediaFormat,
        _ faults: inout PlanFaults
    ) {
        if let before = running?[stage.id], before.request.type.kind == stage.request.type.kind,
            before.request.link.copies != stage.request.link.copies
        {
            return faults.addRestart(
                "'\(stage.id)' is running \(before.request.link.copies ? "with copies and would get none" : "without copies and would get them")",
                at: (stage.request, "link.copy"))
        }
        guard let runs = running?.link(from: stages[producer].id, to: stage.id)?.settings, runs != settings,
            let before = running?[stage.id], stage.request.type.kind.fitsInPlace(of: before.request.type.kind),
            (runs.mostBytes == nil) == !format.liesInSlab
        else { return }
        let policy = runs.capacity == 0 ? "" : " and \"whenFull\": \"\(runs.policy.rawValue)\""
        faults.addRestart(
            "the link from '\(stages[producer].id)' to '\(stage.id)' would change: now it has \"queue\": \(runs.capacity)\(policy)",
            at: (stage.request, "link"))
    }

    /// The places of a queue for which the chain file has no number; 0 for an inline link.
    ///
    /// There is a queue where the chain file names a policy, after a live source, at each branch of a fork, before a
    /// join, and before a sink whose calls may last any time.
    private func places(
        from producer: Int, into stage: PlannedStage, _ asked: LinkRequest, _ format: MediaFormat
    ) -> Int {
        if stage.request.type.info.service == .unbounded || takesSeveral(stage) {
            return format.liesInSlab
                ? Self.mostUnits : stage.request.type.kind == .filter ? Self.companionPlaces : Self.usualPlaces
        }
        let isQueued =
            asked.whenFull != nil || stages[producer].demand.isLive || stages[producer].isTap || isFork(producer)
            || isJoin(stage)
        return isQueued ? format.audio != nil || format.motion != nil ? Self.soundPlaces : Self.usualPlaces : 0
    }

    /// The policy that the planner chooses. A network or disk that hangs must not stop a live chain: later it goes on
    /// with units that can be decoded without the lost ones.
    private func policy(into stage: PlannedStage, _ asked: LinkRequest, _ format: MediaFormat) -> DropPolicy {
        if let written = asked.whenFull { return written }
        let mayHang = stage.request.type.info.service == .unbounded
        // A filter that waits for pictures must not hold up motion on its way elsewhere.
        let waits = stage.request.type.kind == .filter && takesSeveral(stage)
        guard mayHang || waits, isLive, format.liesInSlab else { return .wait }
        return format.goesWithPictures ? .dropOldest : .dropToKeyframe
    }

    /// Whether a join can be reached from `stage`. Then a fork serves first whichever branch has room, and an inline
    /// branch cannot wait for its turn.
    private func isBeforeJoin(_ stage: Int) -> Bool {
        var reached = [Bool](repeating: false, count: stages.count)
        reached[stage] = true
        for (index, next) in stages.enumerated() where next.request.from.contains(where: { reached[$0] }) {
            if isJoin(next) { return true }
            reached[index] = true
        }
        return false
    }

    private func isFork(_ producer: Int) -> Bool { readers[producer] > 1 }
    private func isJoin(_ stage: PlannedStage) -> Bool { stage.request.type.kind == .join }
    /// Whether it is a stage other than a join that waits for several others.
    private func takesSeveral(_ stage: PlannedStage) -> Bool { !isJoin(stage) && stage.request.from.count > 1 }

    private func check(
        _ settings: LinkSettings, _ producer: Int, _ stage: PlannedStage, _ format: MediaFormat,
        _ faults: inout PlanFaults
    ) {
        let isEncoded = format.encoded != nil && !format.isSound
        if isEncoded, settings.policy != .wait, settings.policy != .dropToKeyframe {
            faults.add(
                stage.request, "link.whenFull",
                "'\(settings.policy.rawValue)' would leave '\(stage.id)' with access units that cannot be decoded",
                "Use \"wait\" or \"dropToKeyframe\".")
        }
        if !isEncoded, settings.policy == .dropToKeyframe {
            faults.add(
                stage.request, "link.whenFull",
                "'dropToKeyframe' is for access units of pictures, and '\(stage.id)' takes \(format.motion != nil ? "motion" : format.isSound ? "sound" : "raw video")",
                "Use \"wait\", \"dropOldest\", \"dropNewest\" or \"latest\".")
        }
        let runsInline =
            running?.link(from: stages[producer].id, to: stage.id)?.settings.capacity == 0 && !isBeforeJoin(producer)
        let isTapped = stages[producer].isTap
        if settings.capacity == 0, (isFork(producer) && !runsInline) || isJoin(stage) || takesSeveral(stage) || isTapped
        {
            let named = isTapped ? stages[producer].request.from[0] : producer
            faults.add(
                stage.request, "link.queue",
                "\"queue\": 0 runs '\(stage.id)' on the thread of '\(stages[named].id)', "
                    + (isJoin(stage) || takesSeveral(stage)
                        ? "but \(isJoin(stage) ? "a join" : "'\(stage.id)'") waits for several stages"
                        : isTapped ? "which the copies are meant to relieve" : "which feeds several stages"),
                "Use 1 or more, or leave it out.")
        }
    }
}
