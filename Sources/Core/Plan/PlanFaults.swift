// SPDX-License-Identifier: Apache-2.0

/// Collects the faults of a request and of its plan, each at its place in the chain file, and throws them together.
struct PlanFaults {
    let file: String
    private let ownPlaces: [String: TextPlace]
    private(set) var found: [FrameHostError] = []

    init(_ request: ChainRequest) {
        file = request.file
        ownPlaces = request.ownPlaces
    }

    func throwAll() throws { if !found.isEmpty { throw FrameHostErrors(found) } }

    /// - Parameter key: The stage's member with the fault, as far as it is known: an option, `from`, `link.queue`;
    ///   empty for the stage.
    mutating func add(_ stage: StageRequest, _ key: String, _ what: String, _ remedy: String) {
        found.append(
            FrameHostError(.invalidConfiguration, place: stage.place(file: file, of: key), what: what, remedy: remedy))
    }

    /// Adds the fault of a member of the chain itself.
    mutating func add(_ key: ChainKey, _ what: String, _ remedy: String) {
        let place = FaultPlace(file: file, position: ownPlaces[key.path], path: key.path)
        found.append(FrameHostError(.invalidConfiguration, place: place, what: what, remedy: remedy))
    }

    /// A member of the chain beside its stages.
    enum ChainKey {
        case buffers(of: String)
        case spare

        var path: String {
            switch self {
            case .buffers(let stage): JSONPath().appending("buffers").appending(stage).description
            case .spare: "spare"
            }
        }
    }

    mutating func add(_ error: FrameHostError) { found.append(error) }

    /// Adds an error that a stage threw while it was made or negotiated.
    mutating func add(_ error: any Error, of stage: StageRequest) {
        if let several = error as? FrameHostErrors {
            found += several.errors
        } else {
            found.append(stage.placed(error, file: file))
        }
    }

    // MARK: What is joined to what

    mutating func addCircle(_ circle: [StageRequest]) {
        add(
            circle[0], "from",
            circle.count == 1
                ? "'\(circle[0].id)' takes its input from itself"
                : "\(quotedList(circle.map(\.id), "and")) feed each other in a circle",
            circle.count == 1
                ? "In 'from', name another stage."
                : "In 'from' of \(quotedList(circle.map(\.id), "or")), name a stage outside the circle.")
    }

    mutating func addUnconvertible(_ stage: StageRequest, _ producer: String, gives format: PixelFormat) {
        let takes = stage.type.info.input
        let what = "'\(stage.id)' takes \(takes.kinds) (\(takes.listed)), but '\(producer)' gives \(format.rawValue)"
        // No converter is put before another one.
        guard !stage.type.info.isConverter else {
            return add(stage, "from", what, "In 'from', name a stage that gives one of these formats.")
        }
        add(
            stage, "from", "\(what), and no converter plugin was found",
            "Put the plugin 'convert' beside the executable, or name its folder with --plugin-path.")
    }

    // MARK: Two stages that want one thing

    /// Adds the faults of stages that would write what another one, a service or the program itself reads or writes.
    mutating func addFileClashes(_ stages: [PlannedStage], _ request: ChainRequest) {
        let others = FileClashes.readers(beside: request)
        for clash in FileClashes(stages.map(\.demand) + others.map(\.demand)).clashes {
            let writer = stages[clash.writer].request
            let what =
                clash.other < stages.count
                ? "\(clash.other == clash.writer ? "it also" : "'\(stages[clash.other].id)'") \(clash.isRead ? "reads" : "writes")"
                : others[clash.other - stages.count].does
            add(
                writer, writer.key(ofFile: clash.path), "'\(writer.id)' would write '\(clash.path)', which \(what)",
                "Name another file.")
        }
    }

    /// Adds the faults of stages that claim what a service or an earlier stage has claimed, unless both name the
    /// same terms.
    ///
    /// - Parameter services: Their claims come before those of all stages.
    mutating func addClaims(_ stages: [PlannedStage], beside services: [ServiceRequest]) {
        var first: [String: (name: String, terms: String?, stage: Int?)] = [:]
        for service in services {
            // Faults of its options have been reported where they were read.
            for claim in (try? service.make())?.claims ?? [] { first[claim.name] = (service.key, claim.terms, nil) }
        }
        for (index, stage) in stages.enumerated() {
            for claim in stage.demand.claims {
                guard let other = first[claim.name] else {
                    first[claim.name] = (stage.id, claim.terms, index)
                    continue
                }
                if let terms = claim.terms, terms == other.terms { continue }
                let whose = other.stage == index ? "another option of it" : "'\(other.name)'"
                add(stage.request, claim.option, "'\(stage.id)' \(claim.what) \(whose)", claim.remedy)
            }
        }
    }

    /// Adds the fault of a stage that claims a standard stream which the program uses itself.
    mutating func addClaims(_ claims: [StageDemand.Claim], of stage: String, on ownStreams: [ChainRequest.OwnStream]) {
        for own in ownStreams {
            // A stage that names terms writes whole lines of text, as the program does.
            guard let claim = claims.first(where: { $0.name == own.stream.rawValue && $0.terms == nil }) else {
                continue
            }
            found.append(
                FrameHostError(
                    .invalidConfiguration, place: FaultPlace(argument: own.argument),
                    what: "'\(stage)' \(own.stream.use), \(own.what)",
                    remedy:
                        "Leave \(own.argument) out, or give '\(stage)' a named pipe (made with 'mkfifo') as its \"\(claim.option)\"."
                ))
        }
    }

    /// Adds the fault of a stage that takes some of the codecs that the one before it may give, but not the one it gives.
    ///
    /// - Parameter name: The id of `producer` in the chain file.
    mutating func add(codec: Codec, of producer: PlannedStage, to stage: StageRequest, _ name: String) {
        let option = producer.request.type.info.optionOfOtherOutput(producer.request.options)
        var taken = stage.type.info.input
        if case .encoded(let codecs) = taken { taken = .encoded(codecs.filter { !$0.isSound }) }
        add(
            stage, stage.takesFromTheOneBefore ? "" : "from",
            "'\(stage.id)' takes \(taken.listed), but '\(name)'\(stage.takesFromTheOneBefore ? ", the stage before it," : "") gives \(codec)",
            option.map { "Leave '\($0)' out at '\(name)', and put an encoder between them." }
                ?? "Name a stage that gives \(taken.listed).")
    }

    // MARK: What runs

    /// The remedy for a change that a running chain cannot make.
    static let restart =
        "Restart the chain to make this change (if it came from a command, first write it into the chain file), or leave it out."

    /// Adds the fault of a running stage whose input would not be what it was negotiated with.
    mutating func addRestart(
        _ id: String, runsWith before: [MediaFormat], gets after: [MediaFormat],
        at member: (stage: StageRequest, key: String)
    ) {
        addRestart("'\(id)' is running and would get \(FormatChange.words(from: before, to: after))", at: member)
    }

    mutating func addRestart(soundOf id: String, at member: (stage: StageRequest, key: String)) {
        addRestart("'\(id)' is running and would get another sound stream", at: member)
    }

    /// Stages choose their defaults by whether the chain is live.
    mutating func addRestart(live isLive: Bool, _ stage: StageRequest) {
        addRestart(
            isLive
                ? "'\(stage.id)' was started in a chain without a live source, and now there is one"
                : "'\(stage.id)' was started in a chain with a live source, and now there is none", at: (stage, ""))
    }

    /// A source drops what finds no place when it is live, and waits when it is not.
    mutating func addRestart(liveSource isLive: Bool, _ stage: StageRequest) {
        addRestart(
            isLive
                ? "'\(stage.id)' is a source that is not live and would become live"
                : "'\(stage.id)' is a live source and would no longer be live", at: (stage, ""))
    }

    /// - Parameter why: The text after the stage's name.
    mutating func addRestart(metadata why: String, of stage: StageRequest) {
        addRestart("'\(stage.id)' (\(stage.type.info.id)) \(why)", at: (stage, "use"))
    }

    mutating func addRestart(_ what: String, at member: (stage: StageRequest, key: String)) {
        let fault = FrameHostError(
            .invalidConfiguration,
            place: member.stage.place(file: file, of: member.key),
            what: "needs a restart: \(what)", remedy: Self.restart)
        // Several stages may run behind one that changes.
        if !found.contains(where: { $0.place == fault.place }) { found.append(fault) }
    }

    mutating func addRestart(top key: ChainKey, _ what: String) { add(key, "needs a restart: \(what)", Self.restart) }

    /// - Parameters:
    ///   - missing: How many buffers are missing.
    ///   - reader: The first new stage among those that would hold them; the stage that has the pool where none is new.
    mutating func addShortage(_ missing: Int, ofPool pool: String, for reader: StageRequest) {
        let buffers = "\(missing) \(missing == 1 ? "buffer" : "buffers") more than"
        guard reader.id != pool else {
            return add(
                reader, "", "the stages after '\(pool)' need \(buffers) its pool has to spare",
                "Shorten their queues, or restart the chain with a larger \"spare\".")
        }
        add(
            reader, "", "'\(reader.id)' needs \(buffers) pool '\(pool)' has to spare",
            "Give '\(reader.id)' copies, which use no buffer of '\(pool)' (\"link\": { \"copy\": true }, or `--copy` of `framehost ctl`); or shorten its queues, or restart the chain with a larger \"spare\"."
        )
    }

    /// - Parameter missing: The units and bytes that are missing.
    mutating func addShortage(_ missing: ChainPlan.SlabPlan, for reader: StageRequest, _ stages: [PlannedStage]) {
        let maker = stages[missing.stage]
        let content = Slab.Content(maker.output)
        let units = missing.unitCount == 1 ? content.itemText : "\(missing.unitCount) \(content.itemsText)"
        let parts = [
            missing.unitCount > 0 ? "room for \(units)" : nil,
            missing.byteCount > 0 ? AvailableMemory.text(missing.byteCount) : nil,
        ]
        .compactMap { $0 }.joined(separator: " and ")
        guard reader.id != maker.id else {
            return add(
                reader, "",
                "the stages after '\(maker.id)' need more memory for \(content.itemsText) than it has to spare; the shortfall is \(parts)",
                "Shorten their queues (\"queue\", \"megabytes\"), or restart the chain with this change in its file.")
        }
        add(
            reader, "",
            "'\(reader.id)' needs more memory for \(content.itemsText) than '\(maker.id)' has to spare; the shortfall is \(parts)",
            "Give '\(reader.id)' copies (\"link\": { \"copy\": true }, or `--copy` of `framehost ctl`), shorten its queue (\"queue\", \"megabytes\"), or restart the chain with '\(reader.id)' in its file."
        )
    }

    // MARK: Budgets

    /// The most places and buffers that a chain file can name. The planner may choose more.
    private static let mostInFile = 4096

    mutating func add(_ fault: BudgetPlan.Fault, in budget: BudgetPlan, _ stages: [PlannedStage]) {
        switch fault {
        case .queueTooShort(let edge, let capacity, let required, let fork, let join):
            let stage = stages[budget.graph.edges[edge].to].request
            let delays = "the other path from '\(stages[fork].id)' to '\(stages[join].id)' delays so much"
            guard required <= BudgetPlan.mostCapacity else {
                return add(
                    stage, "link.queue",
                    "\(delays) that the queue would need \(required) places; the limit is \(BudgetPlan.mostCapacity)",
                    "Use stages with a smaller delay on that path.")
            }
            add(
                stage, "link.queue",
                "must be \(required) or more, but is \(capacity): \(delays) that \(required) items wait here",
                required <= Self.mostInFile ? "Use \(required) or more, or leave it out." : "Leave it out.")
        case .dropsBeforeDelay(let edge, let fork, let join):
            let link = budget.graph.edges[edge]
            let stage = stages[link.to].request
            let path =
                "on the path from '\(stages[fork].id)' to '\(stages[join].id)', where a stage delays its output: '\(stages[join].id)' would wait for the dropped items"
            guard link.policy != .wait else {
                return add(
                    stage, "",
                    "a live source never waits, so the queue before '\(stage.id)', once full, would drop items \(path)",
                    "Move the stage that delays its output, so that it comes after '\(stages[join].id)'.")
            }
            add(
                stage, "link.whenFull", "would drop items before '\(stage.id)' \(path)",
                link.policy == .dropNewest
                    ? "Use \"wait\" or \"dropOldest\", or drop items only after the stage that delays."
                    : "Use \"wait\", or drop items only after the stage that delays.")
        case .poolTooSmall(let allocator, _, let size, let min):
            add(
                .buffers(of: stages[allocator].id),
                "must be \(min) or more, but is \(size): with fewer buffers the chain can deadlock",
                min > Self.mostInFile
                    ? "Leave it out."
                    : budget.graph.nodes.contains(where: \.isJoin)
                        ? "Use \(min) or more, give its links shorter queues, or leave it out."
                        : "Use \(min) or more, or leave it out.")
        }
    }
}

extension StageInfo.Media {
    /// The kinds as a message shows them, without pixel formats: `raw video`.
    var kinds: String {
        switch self {
        case .video: "raw video"
        case .several(let media): media.map(\.kinds).joined(separator: " or ")
        default: listed
        }
    }

    /// The formats as a message shows them: `i420, nv12`.
    var listed: String {
        switch self {
        case .video(let formats): formats.map(\.rawValue).joined(separator: ", ")
        case .encoded(let codecs): codecs.map(\.description).joined(separator: " or ")
        case .audio: "sound"
        case .motion: "motion"
        case .several(let media): media.map(\.listed).joined(separator: " or ")
        case .any: "any input"
        case .sameAsInput: "what it takes"
        case .none: "nothing"
        }
    }
}
