// SPDX-License-Identifier: Apache-2.0

/// Drives one stage alone in a test, without threads or a chain: options and items go in, items and errors come out.
///
/// ```swift
/// let driver = try StageDriver(
///     Mirror.self, options: #"{ "lumaOnly": true }"#, input: .video(format))
/// try driver.send(driver.makeFrame { frame in … })
/// let out = driver.takeFrame()
/// ```
/// Everything happens on the caller's thread. The items that the stage emits wait in the driver, up to 1,024 of them. A
/// join gets its items either by its rule, as in a chain (``send(_:to:)-(Frame,_)``), or as a test puts them
/// (``put(_:at:)-(Frame,_)`` and ``merge()``).
///
/// Each call checks what a run checks, and throws the sentence that the run would end with:
/// - an item that is not emitted, dropped or counted in ``Transform/held``, or that is answered twice
/// - more buffers kept than ``StageInfo/hold`` declares
/// - times that do not rise
///
/// A stage that writes into a frame without declaring ``StageInfo/Access/modify`` ends the test's process, as it ends a
/// chain whose frames go to another branch too.
///
/// It also checks what a run does not: that ``StageInfo/events`` declares each event, and each member of it.
public final class StageDriver<S: Stage> {
    /// The stage, for a test to look into.
    public let stage: S
    /// The stage's context.
    public let context: StageContext
    /// The format of the stage's output; nil for a sink.
    public let outputFormat: MediaFormat?
    let runner: StageRunner
    private let run: InlineRun?
    private let queue: ItemQueue
    /// By input: nil where the input does not take frames.
    private let inputPools: [FramePool?]
    /// By input: nil where it takes frames; access units and blocks of sound lie in slabs.
    private let inputSlabs: [Slab?]
    private let inputFormats: [MediaFormat]
    private let joined: JoinInputs?
    let inlet: StageInlet?
    var joinIsOver = false
    /// The most items that wait at one input of a join.
    static var mostWaitingItems: Int { 16 }
    private let events: EventSubscription
    /// The same events once more, to be compared with what the stage declares.
    private let posted: EventSubscription
    private let jobs: JobQueue
    private var failure: FrameHostError?
    private var hasDrained = false
    /// The next sequence number of each input.
    private var nextSequences: [UInt64]

    /// Makes the stage, negotiates and starts it.
    ///
    /// - Parameters:
    ///   - type: The stage's class.
    ///   - options: The options as a JSON object; comments are allowed.
    ///   - input: The format of the items that the test sends; nil for a source and for a join.
    ///   - inputs: For a join, or another stage of several inputs, the format of each input.
    ///   - join: For a join, how it brings its inputs together: what a chain file says as `join`.
    ///   - folder: The folder of relative paths: ``StageContext/folder``.
    ///   - chainName: The chain's name: ``StageContext/chainName``.
    ///   - isLive: Whether the chain counts as live: ``StageContext/isLiveChain``.
    ///   - replacesRunning: Whether the stage replaces one that ran: ``StageContext/repeatsParameterSets``.
    ///   - metadata: Kinds that other stages would declare, for a test that sets them on the items that it sends.
    ///   - audio: What the stage finds as ``StageContext/audio``.
    ///   - tags: What the stage finds as ``StageContext/inputTags``.
    ///   - makesKeyframes: Whether a stage before this one makes a keyframe when asked, as an encoder does.
    ///   - slabBytes: Memory for access units, sound or motion at each input, in bytes. The memory behind the stage
    ///     is twice as large.
    ///   - clock: The clock that the stage reads; it stands still unless the test moves it.
    /// - Throws: ``FrameHostErrors`` for wrong options, and whatever the stage throws.
    public init(
        _ type: S.Type, options: String = "{}", input: MediaFormat? = nil, inputs: [MediaFormat] = [],
        join: JoinRequest = JoinRequest(), folder: String = ".",
        chainName: String = "chain",
        isLive: Bool = false, replacesRunning: Bool = false, metadata: [any FrameMetadata.Type] = [],
        audio: (any AudioOrigin)? = nil, tags: [PassedTags] = [],
        makesKeyframes: Bool = true, slabBytes: Int = 32 << 20,
        clock: ChainClock = ManualClock(at: 1_000_000_000)
    ) throws {
        let members = try JSONReader.read(Array(options.utf8), file: "options").asObject ?? []
        let stop = StopSignal()
        let hub = EventHub()
        (events, posted) = (hub.subscribe(), hub.subscribe())
        jobs = JobQueue(events: hub, clock: clock)
        context = StageContext(
            stageID: S.info.id, folder: folder, chainName: chainName, clock: clock, stop: stop, events: hub,
            jobs: jobs)
        (context.isLiveChain, context.repeatsParameterSets) = (isLive, replacesRunning)
        (context.audio, context.inputTags) = (audio, tags)
        if (input ?? inputs.first)?.encoded?.video != nil, makesKeyframes {
            context.keyframeRequest = KeyframeRequest()
        }
        let layout = MetadataLayout(S.info.metadata + metadata)
        context.layout = layout
        let stageType = StageType(type)
        let instance = try stageType.make(
            members, { key, text in "options:\(text.line):\(text.column): \(key)" }, context)
        stage = instance.stage as! S
        let inputs = input.map { [$0] } ?? inputs
        inputFormats = inputs
        context.inputIDs = inputs.indices.map { "\($0)" }
        // Formats that the stage refuses take no memory.
        outputFormat = try instance.negotiate(inputs)
        let memory = DriverMemory(layout: layout, stop: stop, clock: clock, slabBytes: slabBytes)
        inputPools = try inputs.map { try $0.video.map { try memory.pool("input", $0, count: 32) } }
        inputSlabs = try inputs.map { try memory.slab("input", $0, unitCount: 256) }
        nextSequences = [UInt64](repeating: 0, count: max(inputs.count, 1))
        context.heldHeaders = HeldHeaders(
            stageType.kind, input: input, output: outputFormat, stage.demand, layout)
        runner = StageRunner(number: 0, id: S.info.id, instance: instance, onError: nil, isTimed: false)
        runner.thread = ThreadState(name: "driver")
        let output = Output(stage: runner, stop: stop)
        queue = ItemQueue(name: "driver", settings: LinkSettings(capacity: 1024), room: output.room, stop: stop)
        output.relink([LinkEnd(queue: queue)])
        let demand = runner.demand
        try memory.equip(output, outputFormat, demand)
        runner.output = stageType.kind == .sink ? nil : output
        let copied = demand.access == .modify ? input?.video : nil
        runner.copyPool = try copied.map { try memory.pool("copies", $0, count: 8) }
        let isFilter = stageType.kind == .filter && demand.delay == 0
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

    /// Makes a frame of the input's format.
    ///
    /// - Parameters:
    ///   - input: For a join, the input that the frame is for.
    ///   - pts: The frame's time; nil counts up by the frame rate of the format (30 where it has none).
    ///   - fill: Fills the pixels.
    public func makeFrame(input: Int = 0, pts: MediaTime? = nil, _ fill: (inout Frame) throws -> Void = { _ in }) throws
        -> Frame
    {
        guard inputPools.indices.contains(input), let inputPool = inputPools[input] else {
            throw FrameHostError(
                .broken, what: "makeFrame: input \(input) takes no frames",
                remedy: "Give the StageDriver a video format for this input.")
        }
        guard var frame = inputPool.tryLease() else {
            throw FrameHostError(
                .exhausted, what: "makeFrame: the stage or the test keeps all 32 input frames",
                remedy: "Release frames in the test, or let the stage keep fewer.")
        }
        let rate = inputPool.format.frameRate.isZero ? Rational(30) : inputPool.format.frameRate
        frame.sequenceNumber = nextSequences[input]
        frame.pts = pts ?? MediaTime(seconds: Double(nextSequences[input]) / rate.value)
        frame.capturedAt = context.clock.now()
        nextSequences[input] += 1
        try fill(&frame)
        return frame
    }

    /// Makes an access unit.
    ///
    /// - Parameters:
    ///   - bytes: The payload.
    ///   - pts: When the picture is shown.
    ///   - dts: When the picture is decoded; nil means `pts`.
    ///   - isKeyframe: Whether the picture can be decoded without any other.
    ///   - input: For a join, the input that the unit is for.
    public func makeAccessUnit(
        _ bytes: [UInt8], pts: MediaTime, dts: MediaTime? = nil, isKeyframe: Bool = false, input: Int = 0
    ) throws -> AccessUnit {
        guard inputSlabs.indices.contains(input), let inputSlab = inputSlabs[input],
            inputSlab.content == .accessUnits
        else {
            throw FrameHostError(
                .broken, what: "makeAccessUnit: input \(input) takes no access units",
                remedy: "Give the StageDriver an encoded format for this input.")
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

    /// Makes a block of sound.
    ///
    /// - Parameters:
    ///   - samples: Its samples, interleaved. Their number is a multiple of the number of channels.
    ///   - pts: When the first is heard.
    ///   - input: For a sink of several inputs, the input that the block is for.
    public func makeAudioBlock(_ samples: [Float], pts: MediaTime, input: Int = 0) throws -> AudioBlock {
        guard inputSlabs.indices.contains(input), let inputSlab = inputSlabs[input], inputSlab.channelCount > 0,
            inputFormats[input].audio != nil, samples.count % inputSlab.channelCount == 0, !samples.isEmpty
        else {
            let takesSound = inputFormats.indices.contains(input) && inputFormats[input].audio != nil
            throw FrameHostError(
                .broken,
                what: takesSound
                    ? "makeAudioBlock must get the same number of samples, at least one, for each channel, but got \(samples.count)"
                    : "makeAudioBlock: input \(input) takes no sound",
                remedy: takesSound
                    ? "Pass a multiple of the number of channels."
                    : "Give the StageDriver a sound format for this input.")
        }
        let count = samples.count / inputSlab.channelCount
        var block = try inputSlab.lease(sampleCount: count)
        block.withMutableSamples { _ = $0.update(fromContentsOf: samples) }
        block.pts = pts
        block.duration = MediaTime(seconds: Double(count) / Double(inputFormats[input].audio?.sampleRate ?? 1))
        block.capturedAt = context.clock.now()
        block.sequenceNumber = nextSequences[input]
        nextSequences[input] += 1
        return block
    }

    /// Makes a block of motion.
    ///
    /// - Parameters:
    ///   - samples: At least one, with times that rise.
    ///   - input: For a stage of several inputs, the input that the block is for.
    public func makeMotionBlock(_ samples: [MotionSample], input: Int = 0) throws -> MotionBlock {
        guard inputSlabs.indices.contains(input), let inputSlab = inputSlabs[input], inputSlab.content == .motion,
            !samples.isEmpty
        else {
            throw FrameHostError(
                .broken,
                what: samples.isEmpty
                    ? "makeMotionBlock: there are no samples" : "makeMotionBlock: input \(input) takes no motion",
                remedy: samples.isEmpty
                    ? "Pass at least one sample." : "Give the StageDriver a motion format for this input.")
        }
        var block = try inputSlab.lease(motionCount: samples.count)
        block.fill(samples.span)
        block.capturedAt = context.clock.now()
        block.sequenceNumber = nextSequences[input]
        nextSequences[input] += 1
        return block
    }

    /// Hands a stage of several inputs a block of motion for one of them. A chain hands it items in the order of
    /// their time.
    public func send(_ block: consuming MotionBlock, from input: Int) throws {
        if runner.kind == .filter {
            _ = runner.takeCompanion(block.release(), from: input)
        } else {
            _ = runner.take(block.release(), from: input)
        }
        try check()
    }

    /// Hands the stage a block of motion.
    public func send(_ block: consuming MotionBlock) throws { try send(block.release()) }

    /// Hands the stage a block of sound.
    public func send(_ block: consuming AudioBlock) throws { try send(block.release()) }

    /// Hands a stage of several inputs a block of sound for one of them. A chain hands it items in the order of their
    /// time.
    ///
    /// - Parameters:
    ///   - block: The block.
    ///   - input: The input that it is for.
    ///   - isInTurn: For a transform, whether no input gives an earlier one any more (``MultiTransform``).
    public func send(_ block: consuming AudioBlock, from input: Int, isInTurn: Bool = true) throws {
        _ = runner.take(block.release(), from: input, isInTurn: isInTurn)
        try check()
    }

    /// Tells a transform of several inputs that its ``MultiTransform/idleTime`` has come.
    public func idle() throws {
        _ = runner.giveWhileIdle()
        try check()
    }

    /// Hands a sink of several inputs an access unit for one of them. A chain hands it items in the order of their
    /// time.
    public func send(_ unit: consuming AccessUnit, from input: Int) throws {
        _ = runner.take(unit.release(), from: input)
        try check()
    }

    /// Hands the stage a frame.
    ///
    /// - Throws: What the stage throws, and what a run would end with.
    public func send(_ frame: consuming Frame) throws { try send(frame.release()) }

    /// Hands the stage an access unit.
    public func send(_ unit: consuming AccessUnit) throws { try send(unit.release()) }

    private func send(_ lease: consuming Lease) throws {
        let record = lease.release()
        // Held during the call, as another branch of a chain holds it: so a stage that writes without declaring it ends
        // the test, and not a chain with a fork.
        let other =
            record.pointee.header.kind == .frame && runner.demand.access == .read
            ? Lease(record.pointee.owner.share(record)) : nil
        _ = run!.receive(Lease(record))
        _ = consume other
        try check()
    }

    /// Puts a frame at an input of a join, for the next ``merge()``.
    public func put(_ frame: consuming Frame, at input: Int) { put(frame.release(), at: input) }

    /// Puts an access unit at an input of a join, for the next ``merge()``.
    public func put(_ unit: consuming AccessUnit, at input: Int) { put(unit.release(), at: input) }

    private func put(_ lease: consuming Lease, at input: Int) {
        // The first input leads, or the first that has an item.
        if joined!.present == 0 || input < joined!.lead { joined!.lead = input }
        joined!.put(lease, at: input)
    }

    /// Hands a join the items that were put at its inputs, of which the first leads. An input without an item counts as
    /// one whose item was dropped on its way.
    ///
    /// - Throws: What the stage throws, and what a run would end with.
    public func merge() throws {
        _ = runner.merge(joined!)
        try check()
    }

    /// Throws what the stage threw, or what it did wrong.
    func check() throws {
        if let failure {
            self.failure = nil
            throw failure
        }
        if let fault = faults().first { throw fault }
    }

    /// Faults that were thrown already. Each is thrown once, so that a test may go on.
    private var reported: Set<String> = []

    private func faults() -> [FrameHostError] {
        var found = [runner.holdFault, runner.ledgerFault, runner.firstTimeFault, eventFault]
        if hasDrained, runner.heldNow > 0 {
            found.append(
                FrameHostError(
                    .broken, place: runner.title,
                    what:
                        "\(runner.heldNow) \(runner.heldNow == 1 ? "item is" : "items are") still held after the drain",
                    remedy: "Emit or drop in drain(_:) every item that the stage holds."))
        }
        return found.compactMap { $0 }.filter { reported.insert($0.description).inserted }
    }

    /// The first event since the last check that differs from its declaration.
    private var eventFault: FrameHostError? {
        let own = posted.take().events.filter { $0.stage == S.info.id }
        return own.compactMap(S.info.fault).first.map {
            FrameHostError(
                .broken, place: runner.title, what: $0,
                remedy:
                    "In 'events' of the StageInfo, declare what the stage posts: `describe` lists the declarations, and rules are checked against them."
            )
        }
    }

    /// Calls a source once: ``Source/produce(_:)``.
    public func produce() throws -> SourceProgress {
        let progress = runner.produce() ?? .ended
        try check()
        return progress
    }

    /// Tells the stage that no item follows, so that it emits what it still holds.
    ///
    /// - Throws: What the stage throws; an error when ``Transform/held`` is not 0 afterwards.
    public func drain() throws {
        try endJoin()
        // A join drains where it ends.
        if !hasDrained || inlet == nil {
            runner.drain()
            hasDrained = true
        }
        try check()
    }

    /// Stops the stage: ``Stage/stop()``.
    public func stop() throws {
        runner.stop(on: runner.thread)
        try check()
    }

    /// Asks the stage for a keyframe, as a stage behind would.
    public func requestKeyframe() { context.ownKeyframeRequest.raise() }

    /// Waits until all jobs are done that the stage gave to ``StageContext/addJob(_:_:)``.
    public func finishJobs() { _ = jobs.waitUntilIdle() }

    /// Takes the next frame that the stage emitted; nil when there is none.
    public func takeFrame() -> Frame? {
        guard queue.snapshot().depth > 0, case .item(let lease) = queue.take() else { return nil }
        return Frame(lease)
    }

    /// Takes the next access unit that the stage emitted; nil when there is none.
    public func takeAccessUnit() -> AccessUnit? {
        guard queue.snapshot().depth > 0, case .item(let lease) = queue.take() else { return nil }
        return AccessUnit(lease)
    }

    /// Takes the next block of sound that the stage emitted; nil when there is none.
    public func takeAudioBlock() -> AudioBlock? {
        guard queue.snapshot().depth > 0, case .item(let lease) = queue.take() else { return nil }
        return AudioBlock(lease)
    }

    /// Takes the next block of motion that the stage emitted; nil when there is none.
    public func takeMotionBlock() -> MotionBlock? {
        guard queue.snapshot().depth > 0, case .item(let lease) = queue.take() else { return nil }
        return MotionBlock(lease)
    }

    /// Changes live options; `options` is a JSON object: `#"{ "strength": 0.2 }"#`.
    public func set(_ options: String) throws {
        let members = try JSONReader.read(Array(options.utf8), file: "options").asObject ?? []
        try runner.instance.set(members) { key, _ in FaultPlace(key) }
    }

    /// Sends the stage a command: ``Stage/command(_:arguments:)``.
    public func command(_ name: String, arguments: JSONNode = [:]) throws {
        try stage.command(name, arguments: arguments)
    }

    /// Posts an event as another stage of the chain does, for a stage that listens: ``StageContext/followEvents()``.
    public func post(_ event: Event) { context.events.post(event) }

    /// Takes the events that the stage posted since the last call.
    public func takeEvents() -> [Event] { events.take().events }

    /// How many buffers the stage holds at this moment.
    public var keptBuffers: Int { runner.keptNow }

    /// How many items were dropped for `reason`.
    public func dropCount(_ reason: DropReason) -> Int { runner.dropCount(reason) }
}
