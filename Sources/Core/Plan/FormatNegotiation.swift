/// Makes the stages of an ordered request, lets each say what it gives, and puts converters where two formats do not
/// fit.
struct FormatNegotiation {
    /// In topological order, converters among them; whole after ``negotiate()``.
    private(set) var stages: [PlannedStage] = []
    /// A source captures at a pace of its own.
    let isLive: Bool

    private let request: ChainRequest
    private let services: ChainServices
    private let made: [(context: StageContext, instance: StageInstance)]
    private var faults: PlanFaults
    /// Where each stage of the request came to stand in `stages`.
    private var position: [Int] = []

    /// Makes all stages; opens nothing.
    ///
    /// - Parameter request: Stages in topological order.
    /// - Throws: ``FrameHostErrors`` of all that cannot be made.
    init(_ request: ChainRequest, _ services: ChainServices) throws {
        self.request = request
        self.services = services
        faults = PlanFaults(file: request.file)
        var made: [(context: StageContext, instance: StageInstance)] = []
        for stage in request.stages {
            if let one = Self.make(stage, request, services, &faults) { made.append(one) }
        }
        try faults.throwAll()
        self.made = made
        isLive = made.contains { $0.instance.stage is any Source && $0.instance.stage.demand.isLive }
    }

    /// Nil, with the faults listed, when the stage cannot be made.
    private static func make(
        _ stage: StageRequest, _ request: ChainRequest, _ services: ChainServices, _ faults: inout PlanFaults
    ) -> (context: StageContext, instance: StageInstance)? {
        let context = StageContext(
            stageID: stage.id, folder: request.folder, chainName: request.name, clock: services.clock,
            stop: services.stop, events: services.events, jobs: services.jobs, files: services.files)
        do {
            let instance = try CrashNote.during("\(stage.id) (\(stage.type.info.id)) was being made") {
                try stage.type.make(
                    stage.options, { stage.optionPlace(file: request.file, $0, $1) }, context)
            }
            return (context, instance)
        } catch {
            faults.add(error, of: stage)
            return nil
        }
    }

    /// - Throws: ``FrameHostErrors`` of all stages whose input or output cannot be.
    mutating func negotiate() throws {
        for index in request.stages.indices {
            var stage = PlannedStage(
                request: request.stages[index],
                inputLinks: request.stages[index].from.map {
                    request.links[LinkEnds(from: $0, to: index)] ?? request.stages[index].link
                },
                buffers: request.buffers[index], context: made[index].context, instance: made[index].instance)
            stage.request.from = stage.request.from.map { position[$0] }
            let fits = try insertConverters(before: &stage)
            position.append(stages.count)
            append(stage, isPossible: fits)
        }
        try faults.throwAll()
    }

    /// Adds `stage`, with what it gives if its inputs are known and it agrees to them.
    private mutating func append(_ stage: PlannedStage, isPossible: Bool = true) {
        var stage = stage
        stage.context.isLiveChain = isLive
        let inputs = stage.request.from.compactMap { stages[$0].output }
        // A stage before it may be one that could not say what it gives; that fault is listed already.
        if isPossible, inputs.count == stage.request.from.count { negotiate(&stage, inputs) }
        stages.append(stage)
    }

    private mutating func negotiate(_ stage: inout PlannedStage, _ inputs: [MediaFormat]) {
        let request = stage.request
        let instance = stage.instance
        stage.context.audio =
            request.from.lazy.compactMap { [stages] in
                stages[$0].context.offeredAudio ?? stages[$0].context.audio
            }
            .first
        stage.context.keyframeRequest = request.from.first.flatMap { stages[$0].keyframeRequest }
        do {
            let output = try CrashNote.during("\(request.id) (\(request.type.info.id)) was negotiating") {
                try instance.negotiate(inputs)
            }
            if let impossible = output?.impossibility {
                throw FrameHostError(
                    .broken, what: "\(request.type.info.id) says that it gives \(impossible)",
                    remedy: "Report this to whoever wrote the plugin.")
            }
            stage.demand = instance.stage.demand
            checkDemand(stage)
            stage.output = output
        } catch {
            faults.add(FrameHostError.wrap(error), of: request)
        }
    }

    /// Options may ask for no more than the kind of stage declares.
    private mutating func checkDemand(_ stage: PlannedStage) {
        let info = stage.request.type.info
        for (name, asked, declared) in [
            ("hold", stage.demand.hold, info.hold), ("delay", stage.demand.delay, info.delay),
            ("workers", stage.demand.workers, info.workers),
        ] where asked > declared {
            faults.add(
                stage.request, "", at: stage.request.place,
                "'\(stage.id)' asks for \(name) \(asked) and \(info.id) declares \(declared)",
                "Choose smaller options, or raise \(name) in the plugin's StageInfo.")
        }
    }

    // MARK: Converters

    /// Puts a converter on each input of `stage` whose format it does not take; false, with the fault listed, where
    /// there is none.
    private mutating func insertConverters(before stage: inout PlannedStage) throws -> Bool {
        guard case .video(let accepted) = stage.request.type.info.input else { return true }
        for input in stage.request.from.indices {
            let producer = stages[stage.request.from[input]]
            guard let format = producer.output?.video, !accepted.contains(format.pixelFormat) else { continue }
            guard !stage.request.type.info.isConverter, let type = try request.converter(),
                let target = FormatCost.best(from: format.pixelFormat, among: accepted)
            else {
                faults.addUnconvertible(stage.request, producer.id, gives: format.pixelFormat)
                return false
            }
            guard try insertConverter(type, to: target, before: &stage, input) else { return false }
        }
        return true
    }

    private mutating func insertConverter(
        _ type: StageType, to target: PixelFormat, before stage: inout PlannedStage, _ input: Int
    ) throws -> Bool {
        var converter = StageRequest(
            id: uniqueID("\(stage.id)-convert"), type: type,
            options: [JSONNode.Member(key: "format", value: JSONNode(.string(target.rawValue)))],
            from: [stage.request.from[input]], fileIndex: stage.request.fileIndex, place: stage.request.place,
            fromPlace: stage.request.fromPlace)
        // What was asked of the stage's link holds before the converter, which then runs where the stage would have.
        converter.link = stage.inputLinks[input]
        converter.link.seconds = nil
        converter.link.megabytes = nil
        guard let (context, instance) = Self.make(converter, request, services, &faults) else { return false }
        var inserted = PlannedStage(
            request: converter, inputLinks: [converter.link], context: context, instance: instance, isInserted: true)
        // Nor need the converter take the format.
        let fits = try insertConverters(before: &inserted)
        stage.request.from[input] = stages.count
        stage.inputLinks[input] = LinkRequest()
        append(inserted, isPossible: fits)
        return true
    }

    private func uniqueID(_ wanted: String) -> String {
        var id = wanted
        var count = 2
        while request.stages.contains(where: { $0.id == id }) || stages.contains(where: { $0.id == id }) {
            id = "\(wanted)-\(count)"
            count += 1
        }
        return id
    }
}

extension PlannedStage {
    /// Who is asked for a keyframe of what this stage gives: itself, or whoever made the access units it hands on.
    fileprivate var keyframeRequest: KeyframeRequest? {
        guard output?.encoded != nil else { return nil }
        return demand.outputBuffers == .sameAsInput ? context.keyframeRequest : context.ownKeyframeRequest
    }
}

extension StageInstance {
    /// From the formats of the inputs to that of the output; nil for a sink.
    fileprivate func negotiate(_ inputs: [MediaFormat]) throws -> MediaFormat? {
        switch stage {
        case let source as any Source: return try source.negotiate()
        case let filter as any Filter:
            guard let format = inputs[0].video else {
                throw FrameHostError(.invalidConfiguration, what: "filters take video, not \(inputs[0])")
            }
            try filter.negotiate(format)
            return inputs[0]
        case let join as any Join: return try join.negotiate(inputs)
        case let transform as any Transform: return try transform.negotiate(inputs[0])
        case let sink as any Sink:
            try sink.negotiate(inputs[0])
            return nil
        default: throw FrameHostError(.broken, what: "the stage adopts none of the five protocols")
        }
    }
}
