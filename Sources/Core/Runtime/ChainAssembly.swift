/// Makes what a plan says: runners, queues, pools, slabs, and the loop of each thread. Control thread, before `start`.
struct ChainAssembly {
    private(set) var runners: [StageRunner] = []
    private(set) var queues: [(link: ChainPlan.Link, queue: FrameQueue)] = []
    private(set) var pools: [FramePool] = []
    private(set) var slabs: [Slab] = []
    private(set) var threads: [ThreadState] = []
    private(set) var bodies: [() -> Void] = []
    private let clock: ChainClock
    private let stop: StopSignal
    private let timed: Bool
    private let frameLimit: Int?

    init(_ planned: PlannedChain, timed: Bool, frameLimit: Int?) throws {
        let plan = planned.plan
        clock = planned.services.clock
        self.timed = timed
        self.frameLimit = frameLimit
        stop = planned.services.stop
        for (index, stage) in planned.stages.enumerated() {
            runners.append(
                StageRunner(
                    index: index, id: stage.id, info: stage.request.type.info, kind: stage.request.type.kind,
                    instance: stage.instance, context: stage.context, onError: stage.request.onError, isTimed: timed))
        }
        try makePools(plan, layout: planned.layout)
        for runner in runners where runner.kind != .sink {
            if runner.output == nil { runner.output = Output(stage: runner, stop: stop) }
        }
        connect(plan)
    }

    // MARK: Memory

    private mutating func makePools(_ plan: ChainPlan, layout: MetadataLayout) throws {
        for (index, pool) in plan.budget.pools.enumerated() {
            let runner = runners[pool.allocator]
            guard pool.size > 0 || !pool.isCopyPool else {
                runner.copyPool = nil
                continue
            }
            // One lease per holder of a buffer: each branch, each frame a stage keeps. Repeats of one buffer can fill
            // the queues besides.
            let leases = 1 + pool.members.count + pool.members.reduce(0) { $0 + plan.stages[$1].demand.hold }
            let queued = plan.links.reduce(0) { $0 + (pool.members.contains($1.to) ? $1.settings.capacity : 0) }
            let made = try FramePool(
                name: pool.isCopyPool ? "\(runner.id) copies" : runner.id, format: plan.poolFormats[index],
                padding: pool.isCopyPool ? BufferPadding() : runner.demand.padding, bufferCount: pool.size,
                leasesPerBuffer: min(leases, 64), furtherLeases: queued, metadata: layout, stop: stop, clock: clock)
            pools.append(made)
            if pool.isCopyPool {
                runner.copyPool = made
            } else {
                let output = Output(stage: runner, stop: stop)
                output.pool = made
                output.lender = BufferLender(pool: made, count: runner.demand.floor, holderCode: runner.holderCode)
                runner.output = output
            }
        }
        // Every pool whose buffers a writer may be handed wakes that writer when a buffer is down to one holder.
        for copyPool in runners.compactMap(\.copyPool) {
            for pool in pools where pool !== copyPool { pool.addUniquenessListener(copyPool) }
        }
        for slab in plan.slabs {
            let runner = runners[slab.stage]
            let made = try Slab(
                name: runner.id, byteCount: slab.byteCount, unitCount: slab.unitCount,
                leasesPerUnit: max(2, plan.links.count { $0.from == slab.stage } + 1), metadata: layout, stop: stop)
            slabs.append(made)
            let output = runner.output ?? Output(stage: runner, stop: stop)
            output.slab = made
            runner.output = output
        }
    }

    // MARK: Links and threads

    private mutating func connect(_ plan: ChainPlan) {
        let consumers = Dictionary(grouping: plan.links.indices, by: { plan.links[$0].from })
        // Queues first; the inputs of a join share one lock.
        var queueOf: [Int: FrameQueue] = [:]
        var joinCondition: [Int: Condition] = [:]
        for (index, link) in plan.links.enumerated() where link.settings.capacity > 0 {
            let condition = runners[link.to].kind == .join ? joinCondition[link.to] ?? Condition() : Condition()
            joinCondition[link.to] = condition
            let queue = FrameQueue(
                name: "\(runners[link.from].id) → \(runners[link.to].id)", settings: link.settings,
                room: runners[link.from].output!.room, consumer: condition, stop: stop,
                consumerIndex: link.to)
            queueOf[index] = queue
            queues.append((link, queue))
        }
        // Backwards, so that a consumer's run exists before its producer's link to it.
        var runOf: [Int: InlineRun] = [:]
        for index in runners.indices.reversed() {
            guard let output = runners[index].output else {
                runOf[index] = InlineRun(filters: [], last: runners[index], clock: clock, isTimed: timed)
                continue
            }
            let links = consumers[index, default: []]
            let behind = links.count == 1 && queueOf[links[0]] == nil ? runOf[plan.links[links[0]].to] : nil
            if runners[index].kind == .filter, let behind {
                // A filter before an inline run becomes part of it.
                runOf[index] = InlineRun(
                    filters: [runners[index]] + behind.stages.filter { $0.kind == .filter }, last: behind.last,
                    clock: clock,
                    isTimed: timed)
            } else {
                for link in links {
                    let end = queueOf[link].map { LinkEnd(queue: $0) } ?? LinkEnd(inline: runOf[plan.links[link].to]!)
                    output.links.append(end)
                }
                output.prepare()
                let isFilter = runners[index].kind == .filter
                runOf[index] = InlineRun(
                    filters: isFilter ? [runners[index]] : [], last: isFilter ? nil : runners[index], clock: clock,
                    isTimed: timed)
            }
        }
        markGaps(plan)
        makeThreads(plan, queueOf, runOf)
    }

    /// Every output from which a join can be reached announces what it drops.
    private func markGaps(_ plan: ChainPlan) {
        var open = runners.indices.filter { runners[$0].kind == .join }
        var seen = Set<Int>()
        while let next = open.popLast() {
            for link in plan.links where link.to == next && seen.insert(link.from).inserted {
                runners[link.from].output?.announcesGaps = true
                open.append(link.from)
            }
        }
    }

    private mutating func makeThreads(_ plan: ChainPlan, _ queueOf: [Int: FrameQueue], _ runOf: [Int: InlineRun]) {
        let count = (plan.budget.threads.max() ?? -1) + 1
        for thread in 0..<count {
            let members = runners.indices.filter { plan.budget.threads[$0] == thread }.map { runners[$0] }
            let head = members[0]
            let state = ThreadState(name: "\(head.kind == .source ? "src" : "stg"):\(head.id)")
            let isLive = head.kind == .source && head.demand.isLive
            for member in members {
                member.thread = state
                member.context.thread = state
                member.output?.mayWait = !isLive
            }
            let inputs = plan.links.indices.filter { plan.links[$0].to == head.index }.compactMap { queueOf[$0] }
            threads.append(state)
            let loop = StageLoop(members: members, state: state, stop: stop, frameLimit: frameLimit ?? .max)
            if head.kind == .source {
                bodies.append { loop.runSource(head) }
            } else if head.kind == .join {
                let joined = JoinInputs(count: inputs.count)
                head.inputs = joined
                state.interrupt = { inputs[0].interrupt() }
                bodies.append { loop.runJoin(head, inputs, joined) }
            } else {
                let run = runOf[head.index]!
                state.interrupt = { inputs[0].interrupt() }
                state.input = inputs[0]
                bodies.append { loop.runQueue(inputs[0], run) }
            }
        }
    }
}

/// What a stage thread does from beginning to end.
struct StageLoop {
    let members: [StageRunner]
    let state: ThreadState
    let stop: StopSignal
    /// A source ends after this many items.
    let frameLimit: Int

    func runSource(_ source: StageRunner) {
        while !stop.isRaised, !source.context.isEnded, source.made.value < frameLimit {
            state.readMail()
            guard let progress = source.produce() else { break }
            if progress == .ended || source.hasFailed { break }
        }
        if !stop.isRaised { source.output?.end() }
        stopMembers()
    }

    func runQueue(_ queue: FrameQueue, _ run: InlineRun) {
        loop: while true {
            state.inside.store(ThreadState.Place.chainWait, ordering: .relaxed)
            state.readMail()
            switch queue.take() {
            case .item(let lease):
                if !run.receive(lease) { break loop }
            case .nothing(let pts): run.announceNothing(upTo: pts, after: -1)
            case .interrupted: continue
            case .ended:
                run.end()
                break loop
            case .stopped: break loop
            }
        }
        stopMembers()
    }

    func stopMembers() {
        for member in members { member.stop(on: state) }
        state.closeMail()
    }
}
