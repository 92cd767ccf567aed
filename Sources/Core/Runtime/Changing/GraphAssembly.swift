// SPDX-License-Identifier: Apache-2.0

/// [control thread] Makes what a plan says: runners, queues, pools, slabs, stage threads and their links. What runs
/// already and stays as it is in the plan is used again.
///
/// It changes nothing that runs: ``rewirings`` say what each thread has to do to itself.
struct GraphAssembly {
    /// What a stage thread does between two items to become part of the new graph.
    struct Rewiring {
        var stageThread: StageThread
        var run: InlineRun?
        var members: [StageRunner]
        var outputs: [(output: Output, links: [LinkEnd])]
        /// New copy pools of writers.
        var copyPools: [(runner: StageRunner, pool: FramePool)]

        /// [as ``StageThread/rewire(run:members:)``]
        func perform() {
            for (runner, pool) in copyPools { runner.copyPool = pool }
            for (output, links) in outputs { output.relink(links) }
            stageThread.rewire(run: run, members: members)
        }
    }

    /// A new instance for a stage that stays.
    struct Exchange {
        var runner: StageRunner
        var instance: StageInstance
        /// Whether a filter takes the place of a transform or of a filter that delays, or the reverse. The run is
        /// then rewired in the same step.
        var isOfOtherKind: Bool
        /// The stage's name in a crash report from then on.
        var crashTitle: String
        /// The pool and lender of the new instance, where they differ from the old one's.
        var pool: (pool: FramePool, lender: BufferLender)?
        var slab: Slab?
        var copyPool: FramePool?

        /// [stage thread, between two items] Puts the new instance in place and returns the old one.
        func perform(isDraining: Bool) -> StageInstance {
            let old = runner.exchange(instance, isDraining: isDraining)
            CrashReport.rename(runner, crashTitle)
            if isOfOtherKind {
                // The old instance's pool goes with the last of its items.
                runner.output?.pool = nil
                runner.output?.lender = nil
                runner.output?.slab = nil
                runner.copyPool = nil
            }
            if let pool {
                runner.output?.pool = pool.pool
                runner.output?.lender = pool.lender
            }
            if let slab { runner.output?.slab = slab }
            if let copyPool { runner.copyPool = copyPool }
            // Behind an encoder the new instance can use nothing before the next keyframe.
            instance.context.keyframeRequest?.raise()
            return old
        }
    }

    private(set) var graph: RunningGraph
    private(set) var newRunners: [StageRunner] = []
    private(set) var newThreads: [StageThread] = []
    private(set) var newQueues: [ItemQueue] = []
    private(set) var exchanges: [Exchange] = []
    /// For the stage threads that run and change. New stage threads have their links already.
    private(set) var rewirings: [Rewiring] = []

    private let before: RunningGraph?
    private let clock: ChainClock
    private let timed: Bool
    private let tracer: Tracer?
    private let frameLimit: Int
    private let layout: MetadataLayout
    private var newCopyPools: [(runner: StageRunner, pool: FramePool)] = []

    /// - Parameter running: What runs; nil for the first plan.
    /// - Throws: ``FrameHostError`` `.exhausted` without memory, `.invalidConfiguration` where the plan moves a stage
    ///   that runs to another thread.
    init(
        _ planned: PlannedChain, request: ChainRequest, running: RunningGraph?, timed: Bool, tracer: Tracer? = nil,
        frameLimit: Int?
    ) throws {
        clock = planned.services.clock
        self.timed = timed
        self.tracer = tracer
        self.frameLimit = frameLimit ?? .max
        before = running
        layout = planned.layout
        graph = RunningGraph(request: request, planned: planned)
        graph.leaving = running?.leaving ?? []
        graph.departed = running?.departed ?? Ledger()
        graph.nextNumber = running?.nextNumber ?? 0
        for stage in planned.stages { takeRunner(of: stage) }
        try makePools()
        try makeSlabs()
        for runner in newRunners where runner.kind != .sink && runner.output == nil {
            runner.output = Output(stage: runner, stop: runner.stop)
        }
        try connect()
    }

    private mutating func takeRunner(of stage: PlannedStage) {
        if stage.isKept, let kept = before?.runner(id: stage.id) { return graph.runners.append(kept) }
        let type = stage.request.type
        if !stage.isTap {
            stage.context.heldHeaders = HeldHeaders(
                type.kind, input: stage.inputs.first, output: stage.output, stage.demand, layout)
        }
        // A new instance takes the place of the old one where the stages around it stay.
        if let kept = before?.runner(id: stage.id), type.kind.fitsInPlace(of: kept.kind),
            kept.isTap == stage.isTap, isInPlace(stage)
        {
            exchanges.append(
                Exchange(
                    runner: kept, instance: stage.instance,
                    isOfOtherKind: kept.kind != type.kind
                        || kept.isPlainFilter != (type.kind == .filter && stage.demand.delay == 0),
                    crashTitle: CrashReport.title(of: stage.id, type.info.id, in: kept.crashStages)))
            return graph.runners.append(kept)
        }
        let runner = StageRunner(
            number: graph.nextNumber, id: stage.request.id, instance: stage.instance, onError: stage.request.onError,
            isTimed: timed)
        if stage.inputs.contains(where: { !$0.goesWithPictures }) {
            for (index, input) in stage.inputs.enumerated() where input.goesWithPictures {
                runner.companionInputs |= 1 << UInt64(index & 63)
            }
        }
        graph.nextNumber += 1
        graph.runners.append(runner)
        newRunners.append(runner)
    }

    /// Whether a stage takes its input from the same place as before.
    private func isInPlace(_ stage: PlannedStage) -> Bool {
        guard let before, let place = before.planned.stages.firstIndex(where: { $0.id == stage.id }) else {
            return false
        }
        return before.plan.links.filter { $0.to == place }.map { before.runners[$0.from].id } == inputs(of: stage)
    }

    private func inputs(of stage: PlannedStage) -> [String] {
        stage.request.from.map { graph.planned.stages[$0].id }
    }

    func isNew(_ runner: StageRunner) -> Bool { newRunners.contains { $0 === runner } }

    // MARK: Memory

    private mutating func makePools() throws {
        let (plan, runners) = (graph.plan, graph.runners)
        for (index, pool) in plan.budget.pools.enumerated() {
            let runner = runners[pool.allocator]
            if pool.isCopyPool, pool.size == 0 { continue }
            // One lease for each holder of a buffer: each branch, and each frame that a stage keeps. Repeats of one
            // buffer can also fill the queues.
            let kept = plan.budget.graph.edges.reduce(0) { $0 + (pool.members.contains($1.to) ? 2 * $1.keeps : 0) }
            let leases = 1 + pool.members.count + pool.members.reduce(kept) { $0 + plan.stages[$1].demand.hold }
            let queued = plan.links.reduce(0) { $0 + (pool.members.contains($1.to) ? $1.settings.capacity : 0) }
            let exchange = exchanges.firstIndex { $0.runner === runner }
            let demand = graph.planned.stages[pool.allocator].demand
            if let kept = pool.isCopyPool ? runner.copyPool : runner.output?.pool,
                exchange.map({ !exchanges[$0].isOfOtherKind }) ?? true,
                exchange == nil || fits(kept, pool, plan.poolFormats[index], demand, runner)
            {
                // Before anything is changed, so that no frame thread meets the page faults.
                try kept.touch(pool.need)
                kept.reserveLeases(kept.bufferCount * max(min(leases, 64), 1) + queued)
                graph.pools.append(kept)
                continue
            }
            let made = try FramePool(
                name: pool.isCopyPool ? "\(runner.id) copies" : runner.id, format: plan.poolFormats[index],
                padding: pool.isCopyPool ? BufferPadding() : demand.padding, bufferCount: pool.size,
                touching: pool.need, leasesPerBuffer: min(leases, 64), furtherLeases: queued, metadata: layout,
                stop: runner.stop, clock: clock)
            tracer?.follow(made)
            graph.pools.append(made)
            if pool.isCopyPool {
                if let exchange { exchanges[exchange].copyPool = made } else { newCopyPools.append((runner, made)) }
                continue
            }
            let lender = BufferLender(pool: made, count: demand.floor, holderCode: runner.holderCode)
            if let exchange {
                exchanges[exchange].pool = (made, lender)
            } else {
                let output = Output(stage: runner, stop: runner.stop)
                (output.pool, output.lender) = (made, lender)
                runner.output = output
            }
        }
        // Every pool whose buffers can reach a writer wakes that writer when a buffer has only one holder left.
        let copyPools =
            runners.compactMap(\.copyPool) + newCopyPools.map(\.pool) + exchanges.compactMap(\.copyPool)
        for copyPool in copyPools {
            for pool in graph.pools where pool !== copyPool { pool.addUniquenessListener(copyPool) }
        }
    }

    private mutating func makeSlabs() throws {
        let plan = graph.plan
        for slab in plan.slabs {
            let runner = graph.runners[slab.stage]
            let exchange = exchanges.firstIndex { $0.runner === runner }
            if let kept = runner.output?.slab,
                kept.content == Slab.Content(plan.stages[slab.stage].output),
                exchange.map({ !exchanges[$0].isOfOtherKind }) ?? true,
                exchange == nil || (kept.byteCount >= slab.byteCount && kept.unitCount >= slab.unitCount)
            {
                graph.slabs.append(kept)
                continue
            }
            let made = try Slab(
                name: runner.id, byteCount: slab.byteCount, unitCount: slab.unitCount,
                leasesPerUnit: max(2, plan.links.count { $0.from == slab.stage } + 1),
                content: Slab.Content(plan.stages[slab.stage].output), metadata: layout,
                stop: runner.stop)
            tracer?.follow(made)
            graph.slabs.append(made)
            if let exchange {
                exchanges[exchange].slab = made
                continue
            }
            let output = runner.output ?? Output(stage: runner, stop: runner.stop)
            output.slab = made
            runner.output = output
        }
    }

    /// Whether the new instance can fill the buffers of the old one.
    private func fits(
        _ kept: FramePool, _ pool: BudgetPlan.Pool, _ format: VideoFormat, _ demand: StageDemand, _ runner: StageRunner
    ) -> Bool {
        let was = runner.shown.demand
        return kept.format == format && kept.bufferCount >= pool.size
            && (pool.isCopyPool || (was.padding == demand.padding && was.floor == demand.floor))
    }

    // MARK: Links and threads

    private mutating func connect() throws {
        let queueOf = makeQueues()
        let (runOf, linksOf) = makeRuns(queueOf)
        markGaps()
        try makeThreads(queueOf, runOf, linksOf)
    }

    /// The queues by their link in the plan. The inputs of a join share one lock.
    private mutating func makeQueues() -> [Int: ItemQueue] {
        let runners = graph.runners
        var queueOf: [Int: ItemQueue] = [:]
        var joinCondition: [Int: Condition] = [:]
        for (index, link) in graph.plan.links.enumerated() where link.settings.capacity > 0 {
            let (from, to) = (runners[link.from], runners[link.to])
            let kept = from.output?.links.compactMap(\.queue).first { $0.consumerNumber == to.number }
            // A stage with one input has one queue, and the queue has a condition of its own.
            let condition = joinCondition[link.to] ?? Condition()
            joinCondition[link.to] = condition
            let queue =
                kept
                ?? ItemQueue(
                    name: "\(from.id) → \(to.id)", settings: link.settings, room: from.output!.room,
                    consumer: condition, stop: to.stop, consumerNumber: to.number)
            if kept == nil {
                tracer?.follow(queue)
                newQueues.append(queue)
            }
            queueOf[index] = queue
            graph.queues.append(RunningGraph.Queued(link: link, queue: queue))
        }
        return queueOf
    }

    /// Makes the run that begins with each stage, and the links of each stage with an output. It goes backwards, so
    /// that a consumer's run exists before its producer's link to it.
    private func makeRuns(_ queueOf: [Int: ItemQueue]) -> (runs: [Int: InlineRun], links: [Int: [LinkEnd]]) {
        let (plan, runners) = (graph.plan, graph.runners)
        let consumers = Dictionary(grouping: plan.links.indices, by: { plan.links[$0].from })
        var runOf: [Int: InlineRun] = [:]
        var linksOf: [Int: [LinkEnd]] = [:]
        func run(_ filters: [StageRunner], _ last: StageRunner?) -> InlineRun {
            InlineRun(filters: filters, last: last, clock: clock, isTimed: timed, isTraced: tracer != nil)
        }
        for index in runners.indices.reversed() {
            guard let output = runners[index].output else {
                runOf[index] = run([], runners[index])
                continue
            }
            let links = consumers[index, default: []]
            let behind = links.count == 1 && queueOf[links[0]] == nil ? runOf[plan.links[links[0]].to] : nil
            let isFilter = plan.stages[index].kind == .filter && plan.stages[index].demand.delay == 0
            if isFilter, let behind {
                // A filter before an inline run becomes part of it.
                runOf[index] = run(
                    [runners[index]] + behind.filters, behind.last)
                linksOf[index] = []
                continue
            }
            let ends = links.map { link in
                guard let queue = queueOf[link] else { return LinkEnd(inline: runOf[plan.links[link].to]!) }
                return output.links.first { $0.queue === queue } ?? LinkEnd(queue: queue)
            }
            linksOf[index] = ends.filter(\.isTap) + ends.filter { !$0.isTap }
            runOf[index] = run(isFilter ? [runners[index]] : [], isFilter ? nil : runners[index])
        }
        return (runOf, linksOf)
    }

    /// Every output from which a join can be reached announces what it drops.
    private func markGaps() {
        let runners = graph.runners
        var open = runners.indices.filter { runners[$0].kind == .join }
        var seen = Set<Int>()
        while let next = open.popLast() {
            for link in graph.plan.links where link.to == next && seen.insert(link.from).inserted {
                runners[link.from].output?.announcesGaps = true
                open.append(link.from)
            }
        }
    }

    private mutating func makeThreads(
        _ queueOf: [Int: ItemQueue], _ runOf: [Int: InlineRun], _ linksOf: [Int: [LinkEnd]]
    ) throws {
        let (plan, runners) = (graph.plan, graph.runners)
        for thread in 0..<((plan.budget.threads.max() ?? -1) + 1) {
            let places = runners.indices.filter { plan.budget.threads[$0] == thread }
            let members = places.map { runners[$0] }
            let head = members[0]
            let kept = isNew(head) ? nil : before?.stageThreads.first { $0.head === head }
            let inputs = plan.links.indices.filter { plan.links[$0].to == places[0] }.compactMap { queueOf[$0] }
            let stageThread =
                kept ?? StageThread(head: head, input: input(of: head, at: places[0], inputs), frameLimit: frameLimit)
            // A stage behind a queue keeps that queue: a new producer in the old one's place would feed another queue.
            if kept != nil, !stageThread.input.queues.elementsEqual(inputs, by: { $0 === $1 }) { throw moved(head) }
            graph.stageThreads.append(stageThread)
            for member in members where member.thread !== stageThread.state {
                guard isNew(member) else { throw moved(member) }
                member.thread = stageThread.state
                member.output?.mayWait = !(head.kind == .source && head.demand.isLive)
            }
            let takesRun =
                switch stageThread.input {
                case .queue: true
                case .several: head.kind == .filter
                case .source, .none: false
                }
            let rewiring = Rewiring(
                stageThread: stageThread, run: takesRun ? runOf[places[0]] : nil, members: members,
                outputs: places.compactMap { place in
                    runners[place].output.map { ($0, linksOf[place] ?? []) }
                },
                copyPools: newCopyPools.filter { entry in members.contains { $0 === entry.runner } })
            if kept == nil {
                rewiring.perform()
                newThreads.append(stageThread)
            } else if Self.differs(rewiring) {
                rewirings.append(rewiring)
            }
        }
    }

    private func input(of head: StageRunner, at place: Int, _ queues: [ItemQueue]) -> StageThread.Input {
        switch head.kind {
        case .source: .source
        case .join:
            .several(
                StageInlet(
                    head, queues,
                    JoinInputs(
                        names: graph.plan.links.filter { $0.to == place }.map { graph.plan.nameInFile($0.from) }),
                    graph.plan.joins[place]!))
        case .sink where queues.count > 1, .filter where queues.count > 1, .transform where queues.count > 1:
            .several(StageInlet(inOrder: head, queues, isLive: graph.planned.isLive))
        case .filter, .transform, .sink: .queue(queues[0])
        }
    }

    /// The fault of a plan that moves `runner` to another thread. It names the replaced stage before the one that
    /// would have to move.
    private func moved(_ runner: StageRunner) -> FrameHostError {
        let (plan, stages) = (graph.plan, graph.planned.stages)
        var shown = graph.runners.firstIndex { $0 === runner } ?? 0
        while stages[shown].isInserted, let reader = plan.links.first(where: { $0.from == shown })?.to {
            shown = reader
        }
        var changed = shown
        var open = stages[shown].request.from
        while !open.isEmpty {
            let producer = open.removeFirst()
            if !stages[producer].isKept, !stages[producer].isInserted {
                changed = producer
                break
            }
            if !stages[producer].isKept || stages[producer].isInserted { open += stages[producer].request.from }
        }
        return FrameHostError(
            .invalidConfiguration, place: FaultPlace(stages[changed].id),
            what:
                "this change would move '\(stages[shown].id)'\(changed == shown ? "" : ", which comes after '\(stages[changed].id)',") to another thread or queue, and a running stage cannot be moved",
            remedy: PlanFaults.restart)
    }

    /// Whether a running stage thread has anything to change.
    private static func differs(_ rewiring: Rewiring) -> Bool {
        let stageThread = rewiring.stageThread
        /// A queue, or the stages of a run and how many of them are filters.
        func shape(_ links: [LinkEnd]) -> [[Int]] {
            links.map { link in link.queue.map { [Int(bitPattern: ObjectIdentifier($0))] } ?? shape(link.inline) ?? [] }
        }
        func shape(_ run: InlineRun?) -> [Int]? { run.map { [-$0.filters.count] + $0.stages.map(\.number) } }
        return !rewiring.copyPools.isEmpty || stageThread.members.map(\.number) != rewiring.members.map(\.number)
            || shape(stageThread.run) != shape(rewiring.run)
            || rewiring.outputs.contains { shape($0.output.links) != shape($0.links) }
    }
}
