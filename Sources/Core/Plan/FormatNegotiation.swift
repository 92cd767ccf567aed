// SPDX-License-Identifier: Apache-2.0

/// Makes the stages of an ordered request, lets each say what it gives, and puts converters where two formats do not
/// fit.
struct FormatNegotiation {
    /// In topological order, with inserted converters; complete after ``negotiate()``.
    private(set) var stages: [PlannedStage] = []
    /// Whether a source captures at a pace of its own.
    let isLive: Bool

    private let request: ChainRequest
    private let services: ChainServices
    private let running: RunningChain?
    private let made: [MadeStage]
    private var faults: PlanFaults
    /// The index in `stages` of each stage of the request.
    private var position: [Int] = []

    /// A stage that was made for this plan, or taken over from the running chain.
    private struct MadeStage {
        var context: StageContext
        var instance: StageInstance
        /// The running stage, and the live options to set in it.
        var kept: (stage: PlannedStage, options: [JSONNode.Member])?
    }

    /// Makes all stages except those that run already as requested. Opens nothing.
    ///
    /// - Parameters:
    ///   - request: Stages in topological order.
    ///   - running: The running chain, for a plan that changes it.
    /// - Throws: ``FrameHostErrors`` of all that cannot be made.
    init(_ request: ChainRequest, _ services: ChainServices, running: RunningChain?) throws {
        self.request = request
        self.services = services
        self.running = running
        faults = PlanFaults(request)
        var made: [MadeStage] = []
        for stage in request.stages {
            if let kept = running?.counterpart(of: stage) {
                made.append(MadeStage(context: kept.stage.context, instance: kept.stage.instance, kept: kept))
            } else if let one = Self.make(stage, with: running?.options(of: stage), request, services, &faults) {
                made.append(MadeStage(context: one.context, instance: one.instance))
            }
        }
        // Checked before the stages negotiate. Otherwise a source that reads standard input would read the run's
        // commands.
        for one in made where one.kept == nil && one.instance.stage is any Source {
            faults.addClaims(one.instance.stage.demand.claims, of: one.context.stageID, on: request.ownStreams)
        }
        try faults.throwAll()
        self.made = made
        // Only the thread of a running stage may compute its demand.
        isLive = made.contains {
            $0.instance.stage is any Source && ($0.kept?.stage.demand ?? $0.instance.stage.demand).isLive
        }
    }

    /// Makes a stage. Returns nil, with the faults listed, when that fails.
    ///
    /// - Parameter options: Used in place of the requested options.
    private static func make(
        _ stage: StageRequest, with options: [JSONNode.Member]? = nil, _ request: ChainRequest,
        _ services: ChainServices, _ faults: inout PlanFaults
    ) -> (context: StageContext, instance: StageInstance)? {
        let context = StageContext(
            stageID: stage.id, folder: request.folder, chainName: request.name, clock: services.clock,
            stop: StopSignal(under: services.stop), events: services.events, jobs: services.jobs, files: services.files)
        do {
            let instance = try CrashNote.during("\(stage.id) (\(stage.type.info.id))", "being made") {
                let place: OptionPlace = { stage.place(file: request.file, of: $0, at: $1) }
                guard let isolation = stage.isolation ?? stage.type.program.map({ _ in IsolationRequest() }) else {
                    return try stage.type.make(options ?? stage.options, place, context)
                }
                return try stage.type.makeIsolated(isolation, options ?? stage.options, place, context)
            }
            return (context, instance)
        } catch {
            faults.add(error, of: stage)
            return nil
        }
    }

    /// - Throws: ``FrameHostErrors`` of all stages whose input or output is impossible.
    mutating func negotiate() throws {
        beginNegotiations()
        for index in request.stages.indices {
            var stage = PlannedStage(
                request: request.stages[index], inputIDs: [],
                inputLinks: request.stages[index].from.map {
                    request.links[LinkEnds(from: $0, to: index)] ?? request.stages[index].link
                },
                buffers: request.buffers[index], context: made[index].context, instance: made[index].instance)
            if let kept = made[index].kept { stage.origin = .kept(kept.options) }
            stage.request.from = stage.request.from.map { position[$0] }
            let fits =
                try insertTaps(before: &stage)
                && insertConverters(before: &stage, as: made[index].kept?.stage.inputs)
            position.append(stages.count)
            append(stage, isPossible: fits, runs: made[index].kept?.stage)
        }
        try faults.throwAll()
        guardFurtherOutputs()
    }

    /// The cameras of a chain are opened side by side.
    private func beginNegotiations() {
        for (stage, one) in zip(request.stages, made) where one.kept == nil {
            guard let source = one.instance.stage as? any Source else { continue }
            one.context.takenOutputs = takenOutputs(of: stage)
            CrashNote.during("\(stage.id) (\(stage.type.info.id))", "beginning to negotiate") {
                source.beginNegotiation()
            }
        }
    }

    private func takenOutputs(of stage: StageRequest) -> Set<String> {
        Set(
            stage.type.info.furtherOutputs.map(\.name).filter { name in
                request.stages.contains { $0.id == "\(stage.id).\(name)" }
            })
    }

    /// What a stage hides in the pictures of a source, the tags of its sound would tell.
    private mutating func guardFurtherOutputs() {
        var guards: [String: String] = [:]
        // Producers come before their consumers.
        var sources: [Set<Int>] = []
        for (index, stage) in stages.enumerated() {
            let from = stage.request.from
            sources.append(from.isEmpty ? [index] : from.reduce(into: []) { $0.formUnion(sources[$1]) })
            guard stage.demand.mustNotBePassed else { continue }
            for source in sources[index] { guards[stages[source].id] = guards[stages[source].id] ?? stage.id }
        }
        guard !guards.isEmpty else { return }
        for index in stages.indices {
            if stages[index].request.type.kind == .source {
                guard let dot = stages[index].id.lastIndex(of: ".") else { continue }
                stages[index].guardBesideIt = guards[String(stages[index].id[..<dot])]
            } else {
                stages[index].inputTags = stages[index].request.from.map { stages[$0].tagsOfOutput }
                if !stages[index].isKept { stages[index].context.setInputTags(stages[index].inputTags) }
            }
        }
    }

    /// Adds `stage`, and its output format if its inputs are known and it agrees to them.
    ///
    /// - Parameter running: The running stage with the same request.
    private mutating func append(_ stage: PlannedStage, isPossible: Bool = true, runs running: PlannedStage?) {
        var stage = stage
        let producers = stage.request.from.map { stages[$0] }
        stage.inputIDs = producers.map(\.id)
        stage.audio = producers.lazy.compactMap { $0.context.offeredAudio ?? $0.audio }.first
        stage.keyframes = producers.lazy.compactMap(\.keyframesOfOutput).first
        stage.inputTags = producers.map(\.tagsOfOutput)
        let inputs = producers.compactMap(\.output)
        // A stage before it may have failed to say what it gives. That fault is listed already.
        let areKnown = isPossible && inputs.count == producers.count
        if let running {
            keep(&stage, running, inputs: areKnown ? inputs : nil)
        } else {
            stage.context.isLiveChain = isLive
            stage.context.repeatsParameterSets = self.running?[stage.id] != nil
            if areKnown { negotiate(&stage, inputs) }
        }
        stages.append(stage)
    }

    /// The id that the user knows: for an inserted converter, the id of the stage before it.
    private func nameInFile(_ stage: Int) -> String {
        var stage = stage
        while stages[stage].isInserted, let before = stages[stage].request.from.first { stage = before }
        return stages[stage].id
    }

    private mutating func negotiate(_ stage: inout PlannedStage, _ inputs: [MediaFormat]) {
        let request = stage.request
        let instance = stage.instance
        stage.context.audio = stage.audio
        stage.context.setInputTags(stage.inputTags)
        stage.context.inputIDs = request.from.map(nameInFile)
        stage.context.takenOutputs = takenOutputs(of: request)
        stage.context.keyframeRequest = stage.keyframes.map { KeyframeRequest(to: $0) }
        if let (index, codec) = request.untaken(inputs) {
            let producer = request.from[index]
            return faults.add(codec: codec, of: stages[producer], to: request, nameInFile(producer))
        }
        do {
            let output = try CrashNote.during("\(request.id) (\(request.type.info.id))", "negotiating") {
                try instance.negotiate(inputs)
            }
            if let impossible = output?.impossibility {
                throw FrameHostError(
                    .broken, what: "\(request.type.info.id) says that it gives \(impossible)",
                    remedy:
                        "Check the file, device or earlier stage that its input comes from; if the input is right, report this to the plugin's author."
                )
            }
            stage.demand = instance.stage.demand
            // Such a stage has the times of the clock, and the sound of its input has others.
            if stage.demand.outputRate != nil { stage.audio = nil }
            checkDemand(stage)
            // From the first item on, its thread drops at a full queue or waits there. That cannot change during a run.
            if request.type.kind == .source, let was = running?[stage.id], was.request.type.kind == .source,
                was.demand.isLive != stage.demand.isLive
            {
                faults.addRestart(liveSource: stage.demand.isLive, request)
            }
            stage.inputs = inputs
            stage.output = output
        } catch {
            faults.add(FrameHostError.wrap(error), of: request)
        }
    }

    /// Checks that options ask for no more than the stage type declares.
    private mutating func checkDemand(_ stage: PlannedStage) {
        let info = stage.request.type.info
        for (name, asked, declared) in [
            ("hold", stage.demand.hold, info.hold), ("delay", stage.demand.delay, info.delay),
            ("workers", stage.demand.workers, info.workers),
        ] where asked > declared {
            faults.add(
                stage.request, "",
                "the '\(name)' of '\(stage.id)' would be \(asked), but its type \(info.id) allows at most \(declared)",
                "Choose smaller values for its options, or ask the plugin's author to raise '\(name)' in the StageInfo."
            )
        }
        checkBypass(stage)
        guard stage.request.type.kind == .filter, stage.demand.delay > 0 else { return }
        if !(stage.instance.stage is any DelayingFilter) {
            faults.add(
                stage.request, "",
                "the 'delay' of '\(stage.id)' would be \(stage.demand.delay), but its type \(info.id) keeps no frame back",
                "Report this to the plugin's author: a filter that delays must adopt DelayingFilter.")
        }
    }

    /// Frames cannot pass by a filter that keeps others back, and must not pass by one that hides something.
    private mutating func checkBypass(_ stage: PlannedStage) {
        guard stage.request.type.kind == .filter, stage.request.onError == .bypass else { return }
        if stage.demand.mustNotBePassed {
            return faults.add(
                stage.request, "onError",
                "'bypass' would let frames pass unchanged, which the options of '\(stage.id)' forbid",
                "Use \"stop\", \"continue\" or \"restart\".")
        }
        let delay = stage.demand.delay
        guard delay > 0 else { return }
        faults.add(
            stage.request, "onError",
            "'bypass' needs a filter that keeps no frame back, and '\(stage.id)' keeps back \(delay) \(delay == 1 ? "frame" : "frames")",
            "Use \"stop\", \"continue\" or \"restart\".")
    }

    // MARK: What runs

    /// Takes over the formats that `stage` was negotiated with, if the new input formats are as good.
    ///
    /// - Parameter inputs: nil where they are not known because of a fault that is listed already.
    private mutating func keep(_ stage: inout PlannedStage, _ running: PlannedStage, inputs: [MediaFormat]?) {
        // Keeps the running formats after a fault too, so that the stages behind get no fault from it.
        (stage.inputs, stage.output, stage.demand) = (running.inputs, running.output, running.demand)
        // The chain file may say another 'onError' now.
        checkBypass(stage)
        guard let inputs else { return }
        let fits =
            inputs.count == running.inputs.count && zip(inputs, running.inputs).allSatisfy { $0.isAsGood(as: $1) }
        // Only a sink reads the sound, and it has begun to read already.
        let hasOtherSound = stage.request.type.kind == .sink && stage.audio !== running.audio
        if !fits {
            faults.addRestart(
                stage.id, runsWith: running.inputs, gets: inputs,
                at: changedMember(before: stage) { $0.isInserted })
        } else if hasOtherSound {
            faults.addRestart(soundOf: stage.id, at: changedMember(before: stage) { $0.isKept || $0.isInserted })
        } else if running.context.isLiveChain != isLive {
            faults.addRestart(live: isLive, stage.request)
        }
    }

    /// The member of the chain file that changed the input of `stage`: an option, the plugin or the input of the
    /// nearest stage before it that was changed.
    ///
    /// - Parameter handsOn: Whether a stage's output depends on its input.
    private func changedMember(
        before stage: PlannedStage, through handsOn: (PlannedStage) -> Bool
    ) -> (stage: StageRequest, key: String) {
        var open = stage.request.from
        while !open.isEmpty {
            let producer = stages[open.removeFirst()]
            if handsOn(producer) {
                open += producer.request.from
            } else if !producer.isKept, let before = running?[producer.id]?.request {
                let changed = producer.request.changedOptions(from: before).first ?? "use"
                return (producer.request, producer.request.type === before.type ? changed : "use")
            }
        }
        return (stage.request, "from")
    }

    // MARK: Taps

    /// Puts a tap on each input of which `stage` gets copies; false, with the fault listed, where a tap cannot be made.
    private mutating func insertTaps(before stage: inout PlannedStage) throws -> Bool {
        for input in stage.request.from.indices where stage.inputLinks[input].copies {
            let producer = stages[stage.request.from[input]]
            let running = running?.tap(from: producer.id, for: stage.id)
            let tap = inserted(
                StageRequest(id: running?.id ?? uniqueID("\(stage.id)-copy"), type: CopyTap.type), before: stage, input)
            // The stage's link settings hold behind the tap. The tap itself runs on its producer's thread.
            stage.inputLinks[input].copies = false
            let link = stage.inputLinks[input]
            guard try insert(tap, as: running, before: &stage, input) else { return false }
            stage.inputLinks[input] = link
        }
        return true
    }

    // MARK: Converters

    /// Puts a converter on each input of `stage` whose format it does not take; false, with the fault listed, where
    /// there is none.
    ///
    /// - Parameter running: The formats that the running stage has. It takes no others.
    private mutating func insertConverters(
        before stage: inout PlannedStage, as running: [MediaFormat]? = nil
    ) throws -> Bool {
        guard case .video(let takes) = stage.request.type.info.input else { return true }
        for input in stage.request.from.indices {
            let producer = stages[stage.request.from[input]]
            let runsWith = running?[safe: input]?.video?.pixelFormat
            let accepted = runsWith.map { [$0] } ?? takes
            guard let format = producer.output?.video, !accepted.contains(format.pixelFormat) else { continue }
            let type: StageType?
            do {
                type = try stage.request.type.info.isConverter ? nil : request.converter()
            } catch {
                faults.add(error, of: stage.request)
                return false
            }
            guard let type, let target = FormatCost.best(from: format.pixelFormat, among: accepted) else {
                // ``keep(_:_:inputs:)`` reports what is wrong with the input of a running stage.
                if runsWith != nil { return true }
                faults.addUnconvertible(stage.request, producer.id, gives: format.pixelFormat)
                return false
            }
            guard try insertConverter(type, to: target, before: &stage, input) else { return false }
        }
        return true
    }

    /// Inserts the converter that runs there, where it still fits, or a new one.
    private mutating func insertConverter(
        _ type: StageType, to target: PixelFormat, before stage: inout PlannedStage, _ input: Int
    ) throws -> Bool {
        let producer = stages[stage.request.from[input]]
        let running = running?.converter(from: producer.id, to: stage.id)
        var converter = inserted(
            StageRequest(
                id: running?.id ?? uniqueID("\(stage.id)-convert"), type: type,
                options: [JSONNode.Member(key: "format", value: JSONNode(.string(target.rawValue)))]),
            before: stage, input)
        // The stage's link settings hold before the converter, which then runs on the thread where the stage would have
        // run.
        converter.link = stage.inputLinks[input]
        converter.link.seconds = nil
        converter.link.megabytes = nil
        return try insert(converter, as: running, before: &stage, input)
    }

    // MARK: Stages that are put in

    /// `request` for a stage between `stage` and the producer of its `input`. Its faults are shown at `stage`.
    private func inserted(_ request: StageRequest, before stage: PlannedStage, _ input: Int) -> StageRequest {
        var request = request
        request.from = [stage.request.from[input]]
        (request.fileIndex, request.place) = (stage.request.fileIndex, stage.request.place)
        request.ownPlaces = stage.request.ownPlaces
        return request
    }

    /// Inserts a stage before `stage`: the one that runs there, where it still fits, or a new one. False, with the
    /// fault listed, where it cannot be made.
    private mutating func insert(
        _ request: StageRequest, as running: PlannedStage?, before stage: inout PlannedStage, _ input: Int
    ) throws -> Bool {
        let producer = stages[stage.request.from[input]]
        let fitting = running.flatMap { running in
            let isSame = self.running?.counterpart(of: request)?.options.isEmpty == true
            return isSame && running.inputs == [producer.output].compactMap { $0 } ? running : nil
        }
        guard
            let (context, instance) = fitting.map({ ($0.context, $0.instance) })
                ?? Self.make(request, self.request, services, &faults)
        else { return false }
        var inserted = PlannedStage(
            request: request, inputIDs: [], inputLinks: [request.link], context: context, instance: instance,
            origin: fitting == nil ? .made : .kept([]), isInserted: true)
        // A converter need not take the format either.
        let fits = try insertConverters(before: &inserted)
        stage.request.from[input] = stages.count
        stage.inputLinks[input] = LinkRequest()
        append(inserted, isPossible: fits, runs: fitting)
        return true
    }

    private func uniqueID(_ wanted: String) -> String {
        var id = wanted
        var count = 2
        // The id of a running stage is not used again, so that a new converter can be told from it.
        while request.stages.contains(where: { $0.id == id }) || stages.contains(where: { $0.id == id })
            || running?[id] != nil
        {
            id = "\(wanted)-\(count)"
            count += 1
        }
        return id
    }
}

extension PlannedStage {
    /// The keyframe request for this stage's output: its own, or that of the stage whose access units it hands on. Nil
    /// where a source makes no keyframes on request.
    fileprivate var keyframesOfOutput: KeyframeRequest? {
        guard output?.encoded?.video != nil else { return nil }
        if demand.outputBuffers == .sameAsInput || isTap { return keyframes }
        return request.type.kind == .source && !demand.makesKeyframes ? nil : context.ownKeyframeRequest
    }
}

extension Array {
    fileprivate subscript(safe index: Int) -> Element? { indices.contains(index) ? self[index] : nil }
}

extension StageRequest {
    /// The first input with pictures whose codec its type does not take, though it takes another one that the stage before
    /// it might have given.
    fileprivate func untaken(_ inputs: [MediaFormat]) -> (input: Int, codec: Codec)? {
        let info = type.info
        for (index, input) in inputs.enumerated() where input.encoded?.video != nil {
            guard let codec = input.encoded?.codec else { continue }
            let takes = [info.input, info.furtherInputs].contains { $0.takes(.encoded([codec])) }
            if !takes { return (index, codec) }
        }
        return nil
    }
}
