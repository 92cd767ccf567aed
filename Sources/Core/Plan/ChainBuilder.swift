/// From a request to a plan: options, links, formats, converters, budgets, in that order; each step reports all its
/// faults.
///
/// Makes every stage (which opens nothing) and negotiates formats. Control thread only.
struct ChainBuilder {
    private var request: ChainRequest
    private let clock: ChainClock
    let stop = StopSignal()
    let events = EventHub()
    let jobs: JobQueue
    let files = RunFiles()
    private var faults: [FrameHostError] = []

    private(set) var contexts: [StageContext] = []
    private(set) var instances: [StageInstance] = []
    private var outputs: [MediaFormat?] = []

    init(_ request: ChainRequest, clock: ChainClock) {
        self.request = request
        self.clock = clock
        jobs = JobQueue(events: events, clock: clock)
    }

    var stages: [StageRequest] { request.stages }

    /// - Throws: ``FrameHostErrors`` with all faults of the first step that found any.
    mutating func build() throws -> ChainPlan {
        checkOptions()
        checkMedia()
        try sortTopologically()
        try throwFaults()
        makeStages()
        try throwFaults()
        try negotiate()
        return try plan()
    }

    private func throwFaults() throws { if !faults.isEmpty { throw FrameHostErrors(faults) } }

    private mutating func fault(
        _ stage: StageRequest, _ key: String, at place: TextPlace, _ what: String, _ remedy: String
    ) {
        faults.append(
            FrameHostError(.invalidConfiguration, place: self.place(stage, key, place), what: what, remedy: remedy))
    }

    private func place(_ stage: StageRequest, _ key: String, _ text: TextPlace) -> String {
        stage.optionPlace(file: request.file, key, text)
    }

    // MARK: Step 1: without any stage

    private mutating func checkOptions() {
        for stage in request.stages {
            do {
                try stage.checkOptions(file: request.file)
            } catch let found as FrameHostErrors {
                faults += found.errors
            } catch {
                faults.append(.wrap(error, place: place(stage, "", stage.place)))
            }
        }
    }

    private mutating func checkMedia() {
        let given = givenMedia()
        let before = faults.count
        for stage in request.stages {
            let info = stage.type.info
            if info.input == .none, !stage.from.isEmpty {
                fault(
                    stage, "from", at: stage.fromPlace, "'\(stage.id)' is a source (\(info.id)) and takes no input",
                    "Put it first, or take 'from' out.")
            } else if info.input != .none, stage.from.isEmpty {
                fault(
                    stage, "", at: stage.place, "'\(stage.id)' (\(info.id)) has no input",
                    "Put a source before it, or name one with 'from'.")
            } else if stage.from.count > 1, stage.type.kind != .join {
                fault(
                    stage, "from", at: stage.fromPlace,
                    "'\(stage.id)' (\(info.id)) takes one input, \(stage.from.count) are named",
                    "Name one stage.")
            } else if stage.type.kind == .join, stage.from.count < 2 {
                fault(
                    stage, "from", at: stage.fromPlace, "'\(stage.id)' (\(info.id)) joins several inputs, one is named",
                    "Name two or more: \"from\": [\"a\", \"b\"].")
            }
            for producer in stage.from { checkMedia(of: stage, from: request.stages[producer], gives: given[producer]) }
        }
        // A wrong `from` leaves some other stage without a reader: that is said once.
        if faults.count == before { checkReaders() }
    }

    /// What a stage gives goes somewhere, unless the chain says that it does not.
    private mutating func checkReaders() {
        var reader: [Int: Int] = [:]
        for (index, stage) in request.stages.enumerated() { for producer in stage.from { reader[producer] = index } }
        for (index, stage) in request.stages.enumerated() {
            let info = stage.type.info
            if stage.isUnread, info.output == .none || reader[index] != nil {
                let why =
                    reader[index].map { "'\(request.stages[$0].id)' takes what '\(stage.id)' gives" }
                    ?? "'\(stage.id)' (\(info.id)) gives nothing on"
                fault(stage, "unread", at: stage.place, why, "Leave 'unread' out.")
            } else if !stage.isUnread, info.output != .none, reader[index] == nil {
                fault(
                    stage, "", at: stage.place, "no stage takes what '\(stage.id)' (\(info.id)) gives",
                    "Name it in a later stage (\"from\": \"\(stage.id)\"), put a sink behind it, or write \"unread\": true if it ends here on purpose."
                )
            }
        }
    }

    private mutating func checkMedia(of stage: StageRequest, from producer: StageRequest, gives: StageInfo.Media) {
        let takes = stage.type.info.input
        func refuse(_ what: String, _ remedy: String) { fault(stage, "from", at: stage.fromPlace, what, remedy) }
        switch (gives, takes) {
        case (.none, _):
            refuse(
                "'\(producer.id)' (\(producer.type.info.id)) gives nothing on",
                "Name the stage before '\(producer.id)'.")
        case (.encoded(let codecs), .video):
            refuse(
                "'\(stage.id)' takes video (\(describe(takes))), but '\(producer.id)' gives "
                    + codecs.map(\.description).joined(separator: " or "), "Name a stage before '\(producer.id)'.")
        case (.video, .encoded(let codecs)):
            refuse(
                "'\(stage.id)' takes \(codecs.map(\.description).joined(separator: " or ")), but '\(producer.id)' gives video",
                "Put an encoder between them.")
        default: break
        }
    }

    /// What each stage gives as far as its kind says; `.any` when that depends on an input that nothing feeds.
    private func givenMedia() -> [StageInfo.Media] {
        var given: [StageInfo.Media?] = request.stages.map {
            $0.type.info.output == .sameAsInput ? nil : $0.type.info.output
        }
        var isOnWay = [Bool](repeating: false, count: given.count)
        for start in given.indices {
            // Up to a stage of which it is known, or to one met before (a circle, which is a fault of its own).
            var way: [Int] = []
            var stage: Int? = start
            while let next = stage, given[next] == nil, !isOnWay[next] {
                isOnWay[next] = true
                way.append(next)
                stage = request.stages[next].from.first
            }
            let media = stage.flatMap { given[$0] } ?? .any
            for passed in way { given[passed] = media }
        }
        return given.map { $0 ?? .any }
    }

    private func describe(_ media: StageInfo.Media) -> String {
        if case .video(let formats) = media { return formats.map(\.rawValue).joined(separator: ", ") }
        return "\(media)"
    }

    // MARK: Step 2: order, stages

    private mutating func sortTopologically() throws {
        // Stage by stage as inputs become known; how many stages lie before one decides, then the order of the file.
        var consumers = [[Int]](repeating: [], count: request.stages.count)
        for (index, stage) in request.stages.enumerated() {
            for producer in stage.from { consumers[producer].append(index) }
        }
        var unknown = request.stages.map(\.from.count)
        var depth = [Int](repeating: 0, count: request.stages.count)
        var order = request.stages.indices.filter { unknown[$0] == 0 }
        var next = 0
        while next < order.count {
            for consumer in consumers[order[next]] {
                depth[consumer] = max(depth[consumer], depth[order[next]] + 1)
                unknown[consumer] -= 1
                if unknown[consumer] == 0 { order.append(consumer) }
            }
            next += 1
        }
        guard order.count == request.stages.count else {
            reportCircles(among: unknown.map { $0 > 0 })
            return try throwFaults()
        }
        order.sort { (depth[$0], $0) < (depth[$1], $1) }
        let position = Dictionary(uniqueKeysWithValues: order.enumerated().map { ($1, $0) })
        let buffers = request.buffers
        request.links = Dictionary(
            uniqueKeysWithValues: request.links.map { (LinkEnds(from: position[$0.from]!, to: position[$0.to]!), $1) })
        let sorted = order.map { index -> StageRequest in
            var stage = request.stages[index]
            stage.from = stage.from.map { position[$0]! }
            return stage
        }
        request.stages = sorted
        request.buffers = Dictionary(uniqueKeysWithValues: buffers.map { (position[$0]!, $1) })
    }

    /// From each stage that waits for itself, against the flow until a stage is met again: one circle each.
    private mutating func reportCircles(among stuck: [Bool]) {
        var walk = [Int](repeating: -1, count: stuck.count)
        for start in request.stages.indices where stuck[start] && walk[start] < 0 {
            var stage = start
            while walk[stage] < 0 {
                walk[stage] = start
                stage = request.stages[stage].from.first { stuck[$0] }!
            }
            guard walk[stage] == start else { continue }
            var circle = [stage]
            while let before = request.stages[circle.last!].from.first(where: { stuck[$0] }), before != stage {
                circle.append(before)
            }
            circle.sort()
            fault(
                request.stages[circle[0]], "from", at: request.stages[circle[0]].fromPlace,
                circle.count == 1
                    ? "'\(request.stages[circle[0]].id)' takes its input from itself"
                    : "\(circle.map { "'\(request.stages[$0].id)'" }.joined(separator: ", ")) feed each other in a circle",
                "A chain runs one way: let one of them take its input from a stage before the circle.")
        }
    }

    private mutating func makeStages() {
        for stage in request.stages { make(stage) }
    }

    private mutating func make(_ stage: StageRequest) {
        let context = context(of: stage)
        contexts.append(context)
        if let instance = makeInstance(stage, context) { instances.append(instance) }
    }

    private func context(of stage: StageRequest) -> StageContext {
        StageContext(
            stageID: stage.id, folder: request.folder, chainName: request.name, clock: clock, stop: stop,
            events: events, jobs: jobs,
            files: files)
    }

    /// Nil, with the faults listed, when the stage cannot be made.
    private mutating func makeInstance(_ stage: StageRequest, _ context: StageContext) -> StageInstance? {
        do {
            return try CrashReport.during("\(stage.id) (\(stage.type.info.id)) was being made") {
                try stage.type.make(stage.options, { place(stage, $0, $1) }, context)
            }
        } catch let found as FrameHostErrors {
            faults += found.errors
        } catch {
            faults.append(stage.placed(error, file: request.file))
        }
        return nil
    }

    // MARK: Step 3: formats

    private mutating func negotiate() throws {
        let isLive = instances.contains { $0.stage is any Source && $0.stage.demand.isLive }
        for context in contexts { context.isLiveChain = isLive }
        // Stages come in topological order; a converter inserted before one moves it and all after it up by one.
        var index = 0
        while index < request.stages.count {
            switch try insertConverter(before: index) {
            case .inserted: continue
            case .fits: try negotiate(index)
            case .impossible: outputs.append(nil)
            }
            index += 1
        }
        try throwFaults()
        metadata()
    }

    private mutating func negotiate(_ index: Int) throws {
        let stage = request.stages[index]
        let inputs = stage.from.compactMap { outputs[$0] }
        guard inputs.count == stage.from.count else {
            // A stage before it could not say what it gives; that fault is listed already.
            outputs.append(nil)
            return
        }
        let audio = stage.from.lazy.compactMap { [contexts] in contexts[$0].offeredAudio ?? contexts[$0].audio }.first
        contexts[index].audio = audio
        contexts[index].keyframeRequest = stage.from.first.flatMap { keyframeRequest(of: $0) }
        do {
            let output = try CrashReport.during("\(stage.id) (\(stage.type.info.id)) was negotiating") {
                try negotiate(instances[index].stage, inputs)
            }
            if let impossible = output?.impossibility {
                throw FrameHostError(
                    .broken, what: "\(stage.type.info.id) says that it gives \(impossible)",
                    remedy: "Report this to whoever wrote the plugin.")
            }
            checkDemand(index)
            outputs.append(output)
        } catch {
            faults.append(stage.placed(error, file: request.file))
            outputs.append(nil)
        }
    }

    private func negotiate(_ stage: any Stage, _ inputs: [MediaFormat]) throws -> MediaFormat? {
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

    /// Who is asked for a keyframe of what `producer` gives: itself, or whoever made the access units it hands on.
    private func keyframeRequest(of producer: Int) -> KeyframeRequest? {
        guard outputs[producer]?.encoded != nil else { return nil }
        let handsOn = instances[producer].stage.demand.outputBuffers == .sameAsInput
        return handsOn ? contexts[producer].keyframeRequest : contexts[producer].ownKeyframeRequest
    }

    /// Options may ask for no more than the kind of stage declares.
    private mutating func checkDemand(_ index: Int) {
        let stage = request.stages[index]
        let info = stage.type.info
        let demand = instances[index].stage.demand
        for (name, asked, declared) in [
            ("hold", demand.hold, info.hold), ("delay", demand.delay, info.delay),
            ("workers", demand.workers, info.workers),
        ] where asked > declared {
            fault(
                stage, "", at: stage.place,
                "'\(stage.id)' asks for \(name) \(asked) and \(info.id) declares \(declared)",
                "Choose smaller options, or raise \(name) in the plugin's StageInfo.")
        }
    }

    private enum Conversion { case fits, inserted, impossible }

    /// Puts a converter on the first input of `index` whose format it does not take.
    private mutating func insertConverter(before index: Int) throws -> Conversion {
        let stage = request.stages[index]
        guard case .video(let accepted) = stage.type.info.input else { return .fits }
        for (input, producer) in stage.from.enumerated() {
            guard let format = outputs[producer]?.video, !accepted.contains(format.pixelFormat) else { continue }
            guard !stage.type.info.isConverter, let converter = try request.converter(),
                let target = FormatCost.best(from: format.pixelFormat, among: accepted)
            else {
                fault(
                    stage, "from", at: stage.fromPlace,
                    "'\(stage.id)' takes video (\(describe(stage.type.info.input))), but '\(request.stages[producer].id)' gives \(format.pixelFormat.rawValue)",
                    "No converter plugin was found: put the plugin 'convert' beside the executable, or name its folder with --plugin-path."
                )
                return .impossible
            }
            var inserted = StageRequest(
                id: uniqueID("\(stage.id)-convert"), type: converter,
                options: [JSONNode.Member(key: "format", value: JSONNode(.string(target.rawValue)))], from: [producer],
                link: stage.link, fileIndex: stage.fileIndex, place: stage.place, fromPlace: stage.fromPlace)
            inserted.link.seconds = nil
            inserted.link.megabytes = nil
            return insert(inserted, at: index, feeding: input) ? .inserted : .impossible
        }
        return .fits
    }

    private func uniqueID(_ wanted: String) -> String {
        var id = wanted
        var count = 2
        while request.stages.contains(where: { $0.id == id }) {
            id = "\(wanted)-\(count)"
            count += 1
        }
        return id
    }

    /// False, with the fault listed, when the stage cannot be made.
    private mutating func insert(_ stage: StageRequest, at index: Int, feeding input: Int) -> Bool {
        let context = context(of: stage)
        context.isLiveChain = contexts.first?.isLiveChain ?? false
        guard let instance = makeInstance(stage, context) else { return false }
        contexts.insert(context, at: index)
        instances.insert(instance, at: index)
        for later in index..<request.stages.count {
            request.stages[later].from = request.stages[later].from.map { $0 >= index ? $0 + 1 : $0 }
        }
        request.buffers = Dictionary(uniqueKeysWithValues: request.buffers.map { ($0 >= index ? $0 + 1 : $0, $1) })
        request.links = Dictionary(
            uniqueKeysWithValues: request.links.map {
                (LinkEnds(from: $0.from >= index ? $0.from + 1 : $0.from, to: $0.to >= index ? $0.to + 1 : $0.to), $1)
            })
        request.stages[index].from[input] = index
        request.stages[index].link = LinkRequest()
        request.stages.insert(stage, at: index)
        return true
    }

    private func metadata() {
        let layout = MetadataLayout(request.stages.flatMap(\.type.info.metadata))
        for context in contexts { context.layout = layout }
    }

    // MARK: Step 4: links and budgets

    private mutating func plan() throws -> ChainPlan {
        let demands = instances.map(\.stage.demand)
        let links = makeLinks(demands)
        for clash in FileClashes(demands).clashes { report(clash) }
        reportClaims(demands)
        try throwFaults()
        let graph = BudgetGraph(
            nodes: request.stages.indices.map { node($0, demands[$0]) },
            edges: links.map { link in
                BudgetGraph.Edge(
                    link.from, link.to, capacity: link.settings.capacity, policy: link.settings.policy,
                    isFixed: (request.links[LinkEnds(from: link.from, to: link.to)] ?? request.stages[link.to].link)
                        .queue != nil,
                    carriesUnits: link.format.encoded != nil)
            })
        let budget = BudgetPlan(graph, sizes: request.buffers)
        for found in budget.faults { report(found, in: budget) }
        try throwFaults()
        var raised = links
        for (index, edge) in budget.graph.edges.enumerated() { raised[index].settings.capacity = edge.capacity }
        let formats = try budget.pools.map { pool -> VideoFormat in
            if !pool.isCopyPool, let format = outputs[pool.allocator]?.video { return format }
            let input = request.stages[pool.allocator].from.first.flatMap { outputs[$0]?.video }
            guard let format = input ?? outputs[pool.allocator]?.video else {
                throw FrameHostError(.broken, what: "a pool without a format at '\(request.stages[pool.allocator].id)'")
            }
            return format
        }
        let poolBufferBytes = zip(budget.pools, formats).map { pool, format in
            BufferLayout(format, padding: pool.isCopyPool ? BufferPadding() : demands[pool.allocator].padding).byteCount
        }
        let slabs = slabs(raised, demands)
        checkMemory(budget.pools, formats, poolBufferBytes, slabs, demands)
        try throwFaults()
        return ChainPlan(
            stages: request.stages.indices.map { index in
                ChainPlan.Stage(
                    id: request.stages[index].id, use: request.stages[index].type.info.id,
                    kind: request.stages[index].type.kind,
                    thread: budget.threads[index], output: outputs[index],
                    isInserted: index > 0
                        && request.stages[index].fileIndex == request.stages[safe: index + 1]?.fileIndex
                        && request.stages[index].type.info.isConverter,
                    demand: demands[index])
            },
            links: raised, budget: budget, slabs: slabs, usualLatency: latency(raised, demands, withQueues: false),
            worstLatency: latency(raised, demands, withQueues: true),
            warnings: stageNotes { $0.isWarning }, notes: notes(budget, raised, demands) + stageNotes { !$0.isWarning },
            poolFormats: formats, poolBufferBytes: poolBufferBytes)
    }

    /// All pools and slabs together against what there is: a plan that is too large is refused here, not ended by the
    /// kernel.
    private mutating func checkMemory(
        _ pools: [BudgetPlan.Pool], _ formats: [VideoFormat], _ bufferBytes: [Int], _ slabs: [ChainPlan.SlabPlan],
        _ demands: [StageDemand]
    ) {
        guard let available = request.memory ?? AvailableMemory.now() else { return }
        var parts: [(bytes: Int, text: String)] = pools.indices.map { index in
            let (pool, format) = (pools[index], formats[index])
            let id = request.stages[pool.allocator].id
            return (
                AvailableMemory.product(pool.size, bufferBytes[index]),
                "\(pool.size) buffers of \(format.width)x\(format.height) \(format.pixelFormat.rawValue)\(pool.isCopyPool ? " for copies" : "") at '\(id)'"
            )
        }
        parts += slabs.map { ($0.byteCount, "access units of '\(request.stages[$0.stage].id)'") }
        parts += demands.indices.filter { demands[$0].ownBytes > 0 }.map {
            (demands[$0].ownBytes, "what '\(request.stages[$0].id)' takes for itself")
        }
        let needed = parts.reduce(0) { AvailableMemory.sum($0, $1.bytes) }
        guard needed > available.bytes, let largest = parts.max(by: { $0.bytes < $1.bytes }) else { return }
        faults.append(
            FrameHostError(
                .invalidConfiguration, place: request.file,
                what:
                    "the chain needs \(AvailableMemory.text(needed)) of memory and \(available.holder) has \(AvailableMemory.text(available.bytes)) to give;"
                    + " the largest part is \(AvailableMemory.text(largest.bytes)), \(largest.text)",
                remedy:
                    "Use a smaller picture, shorter queues (\"link\": { \"queue\", \"megabytes\" }) or fewer \"buffers\", or run it where there is more memory."
            ))
    }

    /// Two stages that want one thing, which is one stage's or has other terms.
    private mutating func reportClaims(_ demands: [StageDemand]) {
        var first: [String: (stage: Int, terms: String?)] = [:]
        for (index, demand) in demands.enumerated() {
            for claim in demand.claims {
                guard let other = first[claim.name] else {
                    first[claim.name] = (index, claim.terms)
                    continue
                }
                if let terms = claim.terms, terms == other.terms { continue }
                let stage = request.stages[index]
                fault(
                    stage, claim.option, at: stage.place,
                    "'\(stage.id)' \(claim.what) '\(request.stages[other.stage].id)'", claim.remedy)
            }
        }
    }

    private mutating func report(_ clash: FileClashes.Clash) {
        let (writer, other) = (request.stages[clash.writer], request.stages[clash.other].id)
        fault(
            writer, writer.key(ofFile: clash.path), at: writer.place,
            "'\(writer.id)' would write '\(clash.path)', which '\(other)' \(clash.isRead ? "reads" : "writes")",
            "Name another file.")
    }

    private func node(_ index: Int, _ demand: StageDemand) -> BudgetGraph.Node {
        let stage = request.stages[index]
        let givesUnits = outputs[index]?.encoded != nil
        let kind: BudgetGraph.Kind =
            switch stage.type.kind {
            case .source: givesUnits ? .encoder : .source
            case .filter: .passThrough
            case .sink: .sink
            case .transform, .join:
                demand.outputBuffers == .sameAsInput ? .passThrough : givesUnits ? .encoder : .allocator
            }
        var node = BudgetGraph.Node(stage.id, kind)
        node.modifies = stage.type.kind == .filter && demand.access == .modify
        node.hold = demand.hold
        node.delay = demand.delay
        node.workers = demand.workers
        node.floor = demand.floor
        node.isJoin = stage.type.kind == .join
        node.isLive = demand.isLive
        return node
    }

    private mutating func makeLinks(_ demands: [StageDemand]) -> [ChainPlan.Link] {
        let consumers = Dictionary(
            grouping: request.stages.indices.flatMap { index in request.stages[index].from }, by: { $0 }
        )
        .mapValues(\.count)
        var links: [ChainPlan.Link] = []
        for (index, stage) in request.stages.enumerated() {
            for producer in stage.from {
                guard let format = outputs[producer] else { continue }
                let isFork = consumers[producer, default: 0] > 1
                let isJoin = stage.type.kind == .join
                let settings = linkSettings(
                    stage, request.links[LinkEnds(from: producer, to: index)] ?? stage.link, format, isFork: isFork,
                    isJoin: isJoin,
                    afterLive: demands[producer].isLive,
                    unbounded: stage.type.info.service == .unbounded)
                if settings.capacity == 0, isFork || isJoin {
                    fault(
                        stage, "link", at: stage.place,
                        "\"queue\": 0 runs '\(stage.id)' on the thread of '\(request.stages[producer].id)', "
                            + (isJoin ? "and a join waits for several" : "which feeds several"),
                        "Use 1 or more, or leave it out for 2.")
                }
                links.append(ChainPlan.Link(from: producer, to: index, settings: settings, format: format))
            }
        }
        return links
    }

    private mutating func linkSettings(
        _ stage: StageRequest, _ asked: LinkRequest, _ format: MediaFormat, isFork: Bool, isJoin: Bool, afterLive: Bool,
        unbounded: Bool
    ) -> LinkSettings {
        let isEncoded = format.encoded != nil
        let isLive = contexts[0].isLiveChain
        var policy = asked.whenFull ?? .wait
        if isEncoded, unbounded, isLive, asked.whenFull == nil { policy = .dropToKeyframe }
        if isEncoded, policy != .wait, policy != .dropToKeyframe {
            fault(
                stage, "link.whenFull", at: stage.place,
                "'\(policy.rawValue)' would leave access units that cannot be decoded on the way to '\(stage.id)'",
                "Use \"wait\" or \"dropToKeyframe\".")
        }
        if !isEncoded, policy == .dropToKeyframe {
            fault(
                stage, "link.whenFull", at: stage.place,
                "'dropToKeyframe' is for access units, and '\(stage.id)' takes video",
                "Use \"wait\", \"dropOldest\", \"dropNewest\" or \"latest\".")
        }
        var capacity = asked.queue ?? 0
        if asked.queue == nil {
            if isFork || isJoin || afterLive || asked.whenFull != nil { capacity = 2 }
            if unbounded { capacity = isEncoded ? 512 : 2 }
        }
        var settings = LinkSettings(capacity: capacity, policy: policy)
        if isEncoded {
            settings.mostBytes = Int((asked.megabytes ?? 64) * 1e6)
            settings.mostTime = MediaTime(seconds: asked.seconds ?? 8)
        }
        return settings
    }

    private mutating func report(_ found: BudgetPlan.Fault, in budget: BudgetPlan) {
        switch found {
        case .queueTooShort(let edge, let capacity, let required, let fork, let join):
            let stage = request.stages[budget.graph.edges[edge].to]
            fault(
                stage, "link.queue", at: stage.place,
                "\(capacity) places are too few: from '\(request.stages[fork].id)' the other way to '\(request.stages[join].id)' delays so much that \(required) items wait here",
                "Use \(required) or more, or leave it out.")
        case .dropsBeforeDelay(let edge, let fork, let join):
            let consumer = request.stages[budget.graph.edges[edge].to]
            fault(
                consumer, "link.whenFull", at: consumer.place,
                "drops before '\(consumer.id)', which answers later, on the way from '\(request.stages[fork].id)' to '\(request.stages[join].id)': a join would wait for what was dropped",
                "Use \"wait\" here, or drop after the stage that delays.")
        case .poolTooSmall(let allocator, _, let size, let min):
            faults.append(
                FrameHostError(
                    .invalidConfiguration, place: "\(request.file): buffers.\(request.stages[allocator].id)",
                    what: "\(size) buffers are fewer than the \(min) without which the chain can stop for good",
                    remedy: "Use \(min) or more, or leave it out."))
        }
    }

    private func slabs(_ links: [ChainPlan.Link], _ demands: [StageDemand]) -> [ChainPlan.SlabPlan] {
        request.stages.indices.compactMap { index in
            guard outputs[index]?.encoded != nil, demands[index].outputBuffers == .own else { return nil }
            var units = demands[index].slabUnits + demands[index].delay + 2
            var bytes = demands[index].slabBytes
            var open = [index]
            while let next = open.popLast() {
                for link in links where link.from == next {
                    units += link.settings.capacity + 2 + demands[link.to].hold
                    if link.settings.capacity > 0 { bytes += link.settings.mostBytes ?? 0 }
                    if demands[link.to].outputBuffers == .sameAsInput { open.append(link.to) }
                }
            }
            return ChainPlan.SlabPlan(stage: index, byteCount: bytes, unitCount: units)
        }
    }

    /// The longest way's delays, and its queues where asked for, in seconds at the frame rates on it; nil for a chain
    /// without a live source, which has no moment of capture to be late against.
    private func latency(_ links: [ChainPlan.Link], _ demands: [StageDemand], withQueues: Bool) -> Double? {
        guard contexts[0].isLiveChain else { return nil }
        func frameSeconds(_ format: MediaFormat) -> Double? {
            let rate = format.video?.frameRate ?? format.encoded?.video.frameRate ?? Rational(0)
            return rate.isZero ? nil : 1 / rate.value
        }
        var worst = [Double?](repeating: 0, count: request.stages.count)
        for link in links {
            guard let before = worst[link.from], let seconds = frameSeconds(link.format), let known = worst[link.to]
            else {
                worst[link.to] = nil
                continue
            }
            let items =
                link.settings.mostTime.map { min(Double(link.settings.capacity) * seconds, $0.seconds) }
                ?? Double(link.settings.capacity) * seconds
            worst[link.to] = max(known, before + (withQueues ? items : 0) + Double(demands[link.to].delay) * seconds)
        }
        let all = worst.compactMap { $0 }
        return all.count == worst.count ? all.max() : nil
    }

    private func notes(_ budget: BudgetPlan, _ links: [ChainPlan.Link], _ demands: [StageDemand]) -> [String] {
        var notes: [String] = []
        let stages = request.stages
        for raise in budget.raised {
            let edge = budget.graph.edges[raise.edge]
            notes.append(
                "queue \(stages[edge.from].id) → \(stages[edge.to].id) raised from \(raise.from) to \(raise.to): the other way from '\(stages[raise.fork].id)' to '\(stages[raise.join].id)' delays that much"
            )
        }
        for pool in budget.pools where pool.isCopyPool {
            let name = stages[pool.allocator].id
            notes.append(
                "up to 1 copy per frame at \(name): its input is shared with \(sharers(of: pool.allocator, links, demands))"
            )
        }
        for pool in budget.pools where pool.size < pool.need {
            let name = stages[pool.allocator].id
            notes.append(
                demands[pool.allocator].isLive
                    ? "pool \(name): \(pool.size) of \(pool.need) buffers: frames may be lost"
                    : "pool \(name): \(pool.size) of \(pool.need) buffers: the source may wait")
        }
        return notes
    }

    /// What stages noted while they negotiated: `face: searches for faces with …`.
    private func stageNotes(_ isWanted: ((text: String, isWarning: Bool)) -> Bool) -> [String] {
        contexts.flatMap { context in context.planNotes.filter(isWanted).map { "\(context.stageID): \($0.text)" } }
    }

    private func sharers(of stage: Int, _ links: [ChainPlan.Link], _ demands: [StageDemand]) -> String {
        var producer = stage
        while let before = links.first(where: { $0.to == producer })?.from {
            let others = links.filter { $0.from == before && $0.to != producer }.map { request.stages[$0.to].id }
            if !others.isEmpty { return others.joined(separator: ", ") }
            if demands[before].floor > 0 { return "\(request.stages[before].id), which may still read it" }
            producer = before
        }
        return "a stage that keeps it"
    }
}

extension Array {
    subscript(safe index: Int) -> Element? { indices.contains(index) ? self[index] : nil }
}

/// What a conversion between two pixel formats costs in quality and time; lower is better.
enum FormatCost {
    static func best(from format: PixelFormat, among accepted: [PixelFormat]) -> PixelFormat? {
        accepted.enumerated().min { a, b in
            (cost(from: format, to: a.element), a.offset) < (cost(from: format, to: b.element), b.offset)
        }?.element
    }

    /// Chroma lost, depth lost and a matrix passed count before bytes written.
    static func cost(from: PixelFormat, to: PixelFormat) -> Int {
        if from == to { return 0 }
        func chroma(_ format: PixelFormat) -> Int {
            switch format {
            case .gray8: 0
            case .i420, .nv12, .i010, .p010: 1
            case .yuyv: 2
            case .bgra, .rgb24: 3
            }
        }
        var cost = 1
        if chroma(to) < chroma(from) { cost += 20 * (chroma(from) - chroma(to)) }
        if from.bitDepth > to.bitDepth { cost += 10 }
        if from.isRGB != to.isRGB { cost += 25 }
        if to == .gray8 { cost += 100 }
        if to.isRGB { cost += 3 }
        // The same layout but for interleaving is the cheapest pass there is.
        if (from == .i420 && to == .nv12) || (from == .nv12 && to == .i420) { cost -= 1 }
        return cost
    }
}
