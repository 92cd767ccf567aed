/// Drives one stage alone, without threads or a chain: options in, frames in, frames and errors out. For a plugin's own
/// tests.
///
/// ```swift
/// let driver = try StageDriver(Mirror.self, options: #"{ "lumaOnly": true }"#, input: .video(format))
/// try driver.send(driver.makeFrame { frame in … })
/// let out = driver.takeFrame()
/// ```
/// Everything happens on the caller's thread; what the stage emits waits in the driver (up to 1,024 items). A join gets
/// its items either by its rule, as in a chain (``send(_:to:)``), or as a test lays them (``put(_:at:)``, ``merge()``).
///
/// Each call checks what a run checks, and throws the sentence the run would end with: an item that is neither emitted,
/// dropped nor in `held`, or answered twice; more buffers kept than `hold` declares; times that do not rise. And what
/// a run does not: an event, or a member of one, that the stage's ``StageInfo/events`` do not declare.
public final class StageDriver<S: Stage> {
    public let stage: S
    public let context: StageContext
    /// What the stage gives; nil for a sink.
    public let outputFormat: MediaFormat?
    let runner: StageRunner
    private let run: InlineRun?
    private let queue: FrameQueue
    /// By input, of which only a join has several: nil where it takes access units.
    private let inputPools: [FramePool?]
    /// By input: nil where it takes frames.
    private let inputSlabs: [Slab?]
    private let joined: JoinInputs?
    let inlet: JoinInlet?
    var joinIsOver = false
    /// At one input of a join.
    static var mostWaitingItems: Int { 16 }
    private let events: EventSubscription
    /// The same once more, to be compared with what the stage declares.
    private let posted: EventSubscription
    private let jobs: JobQueue
    private var failure: FrameHostError?
    private var hasDrained = false
    /// By input.
    private var nextSequences: [UInt64]

    /// Makes the stage, negotiates and starts it.
    ///
    /// - Parameters:
    ///   - options: A JSON object, comments allowed.
    ///   - input: The format of what will be sent; nil for a source, and for a join.
    ///   - inputs: Of a join instead: the format of each of its inputs.
    ///   - join: How a join brings its inputs together: what a chain file says as `join`.
    ///   - metadata: Kinds that stages beside it would declare, for a test that sets them on what it sends.
    ///   - audio: What the stage finds as ``StageContext/audio``.
    ///   - makesKeyframes: Whether somebody before the stage makes a keyframe when asked, as an encoder does.
    ///   - slabBytes: Memory for the access units that wait in the driver, before the stage and after it each.
    /// - Throws: ``FrameHostErrors`` for options, whatever the stage throws.
    public init(
        _ type: S.Type, options: String = "{}", input: MediaFormat? = nil, inputs: [MediaFormat] = [],
        join: JoinRequest = JoinRequest(), folder: String = ".",
        chainName: String = "chain",
        isLive: Bool = false, metadata: [any FrameMetadata.Type] = [], audio: (any AudioOrigin)? = nil,
        makesKeyframes: Bool = true, slabBytes: Int = 32 << 20,
        clock: ChainClock = ManualClock(at: 1_000_000_000)
    ) throws {
        let members = try JSONReader.read(Array(options.utf8), file: "options").asObject ?? []
        let stop = StopSignal()
        let hub = EventHub()
        events = hub.subscribe()
        posted = hub.subscribe()
        jobs = JobQueue(events: hub, clock: clock)
        context = StageContext(
            stageID: S.info.id, folder: folder, chainName: chainName, clock: clock, stop: stop, events: hub,
            jobs: jobs)
        context.isLiveChain = isLive
        context.audio = audio
        if input?.encoded != nil, makesKeyframes { context.keyframeRequest = KeyframeRequest() }
        let layout = MetadataLayout(S.info.metadata + metadata)
        context.layout = layout
        let stageType = StageType(type)
        let instance = try stageType.make(
            members, { key, text in "options:\(text.line):\(text.column): \(key)" }, context)
        stage = instance.stage as! S
        let isRaw = input?.video != nil
        let inputs = input.map { [$0] } ?? inputs
        context.inputIDs = inputs.indices.map { "\($0)" }
        // What the stage refuses takes no memory.
        outputFormat = try instance.negotiate(inputs)
        inputPools = try inputs.map {
            guard let format = $0.video else { return nil }
            return try FramePool(
                name: "input", format: format, bufferCount: 32, leasesPerBuffer: 8, metadata: layout,
                stop: stop, clock: clock)
        }
        inputSlabs = try inputs.map {
            $0.encoded == nil
                ? nil : try Slab(name: "input", byteCount: slabBytes, unitCount: 256, metadata: layout, stop: stop)
        }
        nextSequences = [UInt64](repeating: 0, count: max(inputs.count, 1))
        context.heldHeaders = HeldHeaders(
            stageType.kind, input: input, output: outputFormat, stage.demand, layout)
        runner = StageRunner(
            number: 0, id: S.info.id, info: S.info, kind: stageType.kind, instance: instance, context: context,
            onError: nil,
            isTimed: false)
        runner.thread = ThreadState(name: "driver")
        let output = Output(stage: runner, stop: stop)
        queue = FrameQueue(name: "driver", settings: LinkSettings(capacity: 1024), room: output.room, stop: stop)
        output.relink([LinkEnd(queue: queue)])
        let demand = runner.demand
        if demand.outputBuffers == .own, let video = outputFormat?.video {
            output.pool = try FramePool(
                name: "output", format: video, padding: demand.padding, bufferCount: 32, leasesPerBuffer: 8,
                metadata: layout, stop: stop, clock: clock)
        }
        output.lender = output.pool.map { BufferLender(pool: $0, count: demand.floor, holderCode: 0) }
        if outputFormat?.encoded != nil {
            output.slab = try Slab(
                name: "output", byteCount: 2 * slabBytes, unitCount: 1024, metadata: layout, stop: stop)
        }
        runner.output = stageType.kind == .sink ? nil : output
        runner.copyPool =
            isRaw && demand.access == .modify
            ? try FramePool(
                name: "copies", format: input!.video!, bufferCount: 8, leasesPerBuffer: 8, metadata: layout, stop: stop,
                clock: clock)
            : nil
        let isFilter = stageType.kind == .filter
        run =
            stageType.kind == .source
            ? nil
            : InlineRun(filters: isFilter ? [runner] : [], last: isFilter ? nil : runner, clock: clock, isTimed: false)
        joined = stageType.kind == .join ? JoinInputs(names: inputs.indices.map { "\($0)" }) : nil
        inlet = try joined.map { [runner] in try Self.makeInlet(join, inputs, $0, runner, isLive: isLive) }
        runner.inputs = joined
        runner.onFailure = { [unowned self] in self.failure = $1 }
        try instance.stage.start()
    }

    /// A frame of the input format, PTS counted up by its frame rate (30 where it has none), to be filled by `fill`.
    ///
    /// - Parameter input: Which input of a join it is meant for.
    public func makeFrame(input: Int = 0, pts: MediaTime? = nil, _ fill: (inout Frame) throws -> Void = { _ in }) throws
        -> Frame
    {
        guard inputPools.indices.contains(input), let inputPool = inputPools[input] else {
            throw FrameHostError(.broken, what: "the stage has no input \(input) for frames")
        }
        guard var frame = inputPool.tryLease() else {
            throw FrameHostError(.exhausted, what: "no input frame left: the stage or the test keeps all 32")
        }
        let rate = inputPool.format.frameRate.isZero ? Rational(30) : inputPool.format.frameRate
        frame.sequenceNumber = nextSequences[input]
        frame.pts = pts ?? MediaTime(seconds: Double(nextSequences[input]) / rate.value)
        frame.capturedAt = context.clock.now()
        nextSequences[input] += 1
        try fill(&frame)
        return frame
    }

    /// An access unit with these bytes.
    ///
    /// - Parameter input: Which input of a join it is meant for.
    public func makeAccessUnit(
        _ bytes: [UInt8], pts: MediaTime, dts: MediaTime? = nil, isKeyframe: Bool = false, input: Int = 0
    ) throws -> AccessUnit {
        guard inputSlabs.indices.contains(input), let inputSlab = inputSlabs[input] else {
            throw FrameHostError(.broken, what: "the input is not encoded")
        }
        var unit = try inputSlab.lease(byteCount: bytes.count)
        unit.withMutableBytes { $0.copyBytes(from: bytes) }
        unit.pts = pts
        unit.dts = dts ?? pts
        unit.isKeyframe = isKeyframe
        unit.sequenceNumber = nextSequences[input]
        nextSequences[input] += 1
        return unit
    }

    /// Hands the stage a frame.
    ///
    /// - Throws: what the stage threw, and what a run would end with.
    public func send(_ frame: consuming Frame) throws { try send(frame.release()) }

    /// Hands the stage an access unit.
    public func send(_ unit: consuming AccessUnit) throws { try send(unit.release()) }

    private func send(_ lease: consuming Lease) throws {
        _ = run!.receive(lease)
        try check()
    }

    /// Lays a frame at an input of a join, to be taken with the next ``merge()``.
    public func put(_ frame: consuming Frame, at input: Int) { put(frame.release(), at: input) }

    /// Lays an access unit at an input of a join.
    public func put(_ unit: consuming AccessUnit, at input: Int) { put(unit.release(), at: input) }

    private func put(_ lease: consuming Lease, at input: Int) {
        // The first input leads, or the first that has an item.
        if joined!.present == 0 || input < joined!.lead { joined!.lead = input }
        joined!.put(lease, at: input)
    }

    /// Hands a join what lies at its inputs: the items that belong together, of which the first leads. An input without
    /// one counts as dropped on its way.
    ///
    /// - Throws: what the stage threw, and what a run would end with.
    public func merge() throws {
        _ = runner.merge(joined!)
        try check()
    }

    /// What the stage threw, or what is wrong with what it did.
    func check() throws {
        if let failure {
            self.failure = nil
            throw failure
        }
        if let fault = faults().first { throw fault }
    }

    /// Each is thrown once: a test may go on.
    private var reported: Set<String> = []

    private func faults() -> [FrameHostError] {
        var found = [runner.holdFault, runner.ledgerFault, runner.firstTimeFault, eventFault]
        if hasDrained, runner.heldNow > 0 {
            found.append(
                FrameHostError(
                    .broken, place: runner.title, what: "\(runner.heldNow) items are still held after the drain",
                    remedy: "drain must emit or drop everything the stage holds."))
        }
        return found.compactMap { $0 }.filter { reported.insert($0.description).inserted }
    }

    /// The first event since the last look that is not as the stage declares it.
    private var eventFault: FrameHostError? {
        let own = posted.take().events.filter { $0.stage == S.info.id }
        return own.compactMap(S.info.fault).first.map {
            FrameHostError(
                .broken, place: runner.title, what: $0,
                remedy: "Declare it in 'events' of the StageInfo, so that `describe` lists it and rules can name it.")
        }
    }

    /// Calls a source once.
    public func produce() throws -> SourceProgress {
        let progress = runner.produce() ?? .ended
        try check()
        return progress
    }

    /// No item follows: the stage gives what it still has.
    public func drain() throws {
        try endJoin()
        // A join drains where it ends.
        if !hasDrained || inlet == nil {
            runner.drain()
            hasDrained = true
        }
        try check()
    }

    /// Ends what `start` began.
    public func stop() throws {
        runner.stop(on: runner.thread)
        try check()
    }

    /// Wishes for a keyframe, as a stage behind would.
    public func requestKeyframe() { context.ownKeyframeRequest.raise() }

    /// Waits until all jobs of the stage are done.
    public func finishJobs() { _ = jobs.waitUntilIdle() }

    /// The next frame the stage has given; nil when there is none.
    public func takeFrame() -> Frame? {
        guard queue.snapshot().depth > 0, case .item(let lease) = queue.take() else { return nil }
        return Frame(lease)
    }

    /// The next access unit the stage has given; nil when there is none.
    public func takeAccessUnit() -> AccessUnit? {
        guard queue.snapshot().depth > 0, case .item(let lease) = queue.take() else { return nil }
        return AccessUnit(lease)
    }

    /// Changes live options: a JSON object.
    public func set(_ options: String) throws {
        let members = try JSONReader.read(Array(options.utf8), file: "options").asObject ?? []
        try runner.instance.set(members) { key, _ in FaultPlace(key) }
    }

    /// Sends a command.
    public func command(_ name: String, arguments: JSONNode = [:]) throws {
        try stage.command(name, arguments: arguments)
    }

    /// Events posted so far, each once.
    public func takeEvents() -> [Event] { events.take().events }

    /// How many buffers the stage keeps at this moment.
    public var keptBuffers: Int { runner.keptNow }

    /// Items dropped for this reason.
    public func dropCount(_ reason: DropReason) -> Int { runner.dropCount(reason) }
}
