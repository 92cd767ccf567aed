import Glibc
import Synchronization

/// A chain that is planned and can be run once.
///
/// ```swift
/// let chain = try Chain(request)          // checks everything, opens nothing
/// print(chain.plan.notes)
/// let result = chain.run()                // on the control thread, until it ends
/// ```
public final class Chain: @unchecked Sendable {
    public let plan: ChainPlan
    public let clock: ChainClock
    /// The control thread's alone, like all that is not said to be for any thread.
    let runners: [StageRunner]
    let queues: [(link: ChainPlan.Link, queue: FrameQueue)]
    let pools: [FramePool]
    let slabs: [Slab]
    let threads: [ThreadState]
    private let bodies: [() -> Void]
    private let stop: StopSignal
    private let hub: EventHub
    private let drainNs: Int64
    private let contexts: [StageContext]
    private let jobs: JobQueue
    /// The way to create and replace files in this run.
    public let files: RunFiles
    /// As the request names it.
    private let chainFile: String
    private let running = RunningThreads()
    /// The control thread's: what was seen of calls that took too long.
    private(set) var callWatch = CallWatch()

    // Requests from any thread.
    private let drainRequested = Atomic<Bool>(false)
    private let stopRequested = Atomic<Bool>(false)
    private let state = Locked<State>(.stopped)
    private let failures = Locked<[FrameHostError]>([])

    /// Where a run is.
    public enum State: String, Sendable {
        case stopped, starting, streaming, draining
        /// All stages have ended; jobs they have left are under way.
        case finishing
        case failed
    }

    /// How a run ended.
    public struct Result: Sendable {
        /// In the order they happened; empty for a run without fault.
        public var failures: [FrameHostError]
        /// Stages that did not come back from native code: the process should end without waiting for them.
        public var abandoned: [String]
        /// Ledger laws that do not hold; a bug of a stage or of framehost.
        public var ledgerFaults: [String]
        /// Frames of a live chain that were lost because a stage did not come back from a call in time; a sentence for
        /// each such call.
        public var losses: [String] = []

        public var isSuccess: Bool { failures.isEmpty && abandoned.isEmpty && ledgerFaults.isEmpty && losses.isEmpty }
    }

    /// Plans a chain: all faults at once, nothing opened.
    ///
    /// - Parameters:
    ///   - timed: Measures each stage's time per item (one clock read per boundary).
    /// - Throws: ``FrameHostErrors``.
    public init(_ request: ChainRequest, clock: ChainClock = ChainClock(), timed: Bool = false) throws {
        let planned = try ChainPlanner(request, clock: clock).plan()
        plan = planned.plan
        self.clock = clock
        stop = planned.services.stop
        hub = planned.services.events
        contexts = planned.stages.map(\.context)
        jobs = planned.services.jobs
        files = planned.services.files
        chainFile = request.file
        drainNs = Int64(request.drainSeconds * 1e9)
        let assembly = try ChainAssembly(planned, timed: timed, frameLimit: request.frameLimit)
        runners = assembly.runners
        queues = assembly.queues
        pools = assembly.pools
        slabs = assembly.slabs
        threads = assembly.threads
        bodies = assembly.bodies
        for runner in runners { runner.onFailure = { [unowned self] in self.stageFailed($0, $1) } }
    }

    /// Why a file should not be written beside the run, such as its figures: it is the chain file or a stage's, or it
    /// cannot be written. Writes nothing.
    ///
    /// - Parameter option: What names the file: `--stats`.
    public func fault(ofWriting path: String, as option: String) -> FrameHostError? {
        var own = StageDemand()
        own.writesFiles = [path]
        var chain = StageDemand()
        chain.readsFiles = [chainFile]
        let clash = FileClashes(plan.stages.map(\.demand) + [chain, own]).clashes.first {
            $0.writer == plan.stages.count + 1
        }
        if let clash {
            let who =
                clash.other == plan.stages.count ? "is the chain file" : "belongs to '\(plan.stages[clash.other].id)'"
            return FrameHostError(
                .invalidConfiguration, place: option, what: "'\(path)' \(who)", remedy: "Name another file.")
        }
        guard var fault = files.refusalOfWriting(path)?.fault(path) else { return nil }
        (fault.code, fault.place) = (.invalidConfiguration, option)
        return fault
    }

    /// The plan alone: as `init`, without making pools or queues.
    ///
    /// - Throws: ``FrameHostErrors``.
    public static func plan(_ request: ChainRequest, clock: ChainClock = ChainClock()) throws -> ChainPlan {
        try ChainPlanner(request, clock: clock).plan().plan
    }

    // MARK: Any thread

    /// Ends the sources and lets what is under way finish. While ``State/finishing``: gives up what is left to do.
    public func drain() {
        if currentState == .finishing { jobs.cancel() }
        drainRequested.store(true, ordering: .releasing)
        running.changed.locked { running.changed.broadcast() }
    }

    /// Ends every wait of ours at once. Stages still close what they opened, and jobs they leave are done. While
    /// ``State/finishing``: gives up what is left to do.
    public func cancel() {
        if currentState == .finishing { jobs.cancel() }
        stopRequested.store(true, ordering: .releasing)
        stop.raise()
        running.changed.locked { running.changed.broadcast() }
    }

    public var currentState: State { state.withLock { $0 } }

    /// What a stage has left to do while frames flow or after, how far it is (0...1), and how many such jobs follow;
    /// nil when there is none.
    public var currentJob: (title: String, fraction: Double, following: Int)? { jobs.current }

    /// All events since the last call, and how many were lost because nobody asked in time.
    public func takeEvents() -> (events: [Event], lost: Int) { hub.drain() }

    /// Sends a command to a stage; the answer comes as an event `command-answered`.
    ///
    /// - Parameter tag: Given back in the answer.
    public func send(
        stage id: String, command: String, arguments: JSONNode = JSONNode(.object([])), tag: JSONNode? = nil
    ) {
        guard let runner = runner(id, tag) else { return }
        guard runner.info.commands.contains(where: { $0.name == command }) else {
            let names = runner.info.commands.map(\.name)
            let near = Suggestion.nearest(to: command, in: names).map { "Did you mean '\($0)'?" }
            answer(
                id, tag,
                error: FrameHostError(
                    .invalidConfiguration, place: id, what: "\(runner.info.id) has no command '\(command)'",
                    remedy: near ?? (names.isEmpty ? "It has none." : "It has \(quotedList(names)).")))
            return
        }
        post(runner, .command, tag) { [unowned runner] in
            try runner.instance.stage.command(command, arguments: arguments)
        }
    }

    /// Changes live options of a stage, all or none; the answer comes as an event `command-answered`.
    public func set(stage id: String, options: [JSONNode.Member], tag: JSONNode? = nil) {
        guard let runner = runner(id, tag) else { return }
        post(runner, .set, tag) { [unowned runner] in
            try runner.instance.set(options) { key, _ in key.isEmpty ? id : "\(id).\(key)" }
        }
    }

    private func runner(_ id: String, _ tag: JSONNode?) -> StageRunner? {
        if let runner = runners.first(where: { $0.id == id }) { return runner }
        let near = Suggestion.nearest(to: id, in: runners.map(\.id)).map { "Did you mean '\($0)'?" }
        answer(
            id, tag,
            error: FrameHostError(
                .invalidConfiguration, place: id, what: "no such stage",
                remedy: near ?? "The chain has \(quotedList(runners.map(\.id)))."))
        return nil
    }

    private func post(_ runner: StageRunner, _ call: StageCall, _ tag: JSONNode?, _ action: @escaping () throws -> Void)
    {
        // Opened by a thread, or refused by the run's end, which hold the chain; a letter that held it would keep it
        // for good.
        let open = { [unowned self, unowned runner] in
            let frame = runner.taken.value + runner.made.value == 0 ? 0 : runner.lastSequence + 1
            do {
                try runner.thread.call(call, stage: runner.index, action)
                answer(runner.id, tag, frame: frame)
            } catch {
                answer(runner.id, tag, error: error)
            }
        }
        let id = runner.id
        let refuse = { [unowned self] in
            answer(
                id, tag,
                error: FrameHostError(
                    .unavailable, place: id, what: "the stage has ended or does not read its commands",
                    remedy: "Send commands while the chain runs."))
        }
        if !runner.thread.post(.init(open: open, refuse: refuse)) { refuse() }
    }

    private func answer(_ stage: String, _ tag: JSONNode?, frame: UInt64? = nil, error: (any Error)? = nil) {
        var members = [JSONNode.Member(key: "ok", value: JSONNode(.bool(error == nil)))]
        if let tag { members.append(JSONNode.Member(key: "tag", value: tag)) }
        if let frame { members.append(JSONNode.Member(key: "frame", value: JSONNode(.number(String(frame))))) }
        let text: String
        if let error {
            text = (error as? FrameHostErrors)?.description ?? FrameHostError.wrap(error).description
            members.append(JSONNode.Member(key: "error", value: JSONNode(.string(text))))
        } else {
            text = "\(stage): takes effect at frame \(frame ?? 0)."
        }
        hub.post(
            Event(
                name: "command-answered", stage: stage, level: error == nil ? .info : .warning, text: text,
                details: JSONNode(.object(members)), time: clock.now()))
    }

    // MARK: Control thread

    /// Runs the chain to its end. `tick` is called about every 50 ms, and once at the end.
    public func run(tick: () -> Void = {}) -> Result {
        setState(.starting, "starting")
        tick()
        // On a thread of its own, so that a stage which does not come back from its `start` is named and can be left.
        let setup = ThreadState(name: "setup")
        let isStarted = Atomic<Bool>(false)
        begin([setup], isBatch: false) { [self] _ in isStarted.store(startStages(setup), ordering: .releasing) }
        let abandoned = watch([setup], tick)
        guard abandoned.isEmpty, isStarted.load(ordering: .acquiring) else { return finish(abandoned: abandoned, tick) }
        return stream(tick)
    }

    /// [setup thread] Consumers first; false when a stage failed or the run was ended before, with all that had begun
    /// stopped.
    private func startStages(_ setup: ThreadState) -> Bool {
        var begun: [StageRunner] = []
        for runner in runners.reversed() {
            guard !stop.isRaised, !drainRequested.load(ordering: .acquiring) else { break }
            begun.append(runner)
            do {
                try setup.call(.start, stage: runner.index) { try runner.instance.stage.start() }
            } catch {
                let fault = FrameHostError.wrap(error, place: runner.title)
                failures.withLock { $0.append(fault) }
                postFailure(of: runner, fault)
                break
            }
        }
        if begun.count == runners.count, failures.withLock({ $0.isEmpty }), !stop.isRaised { return true }
        for runner in begun { runner.stop(on: setup) }
        return false
    }

    private func stream(_ tick: () -> Void) -> Result {
        setState(.streaming, "streaming")
        begin(threads, isBatch: !runners.contains { $0.demand.isLive }) { [self] in bodies[$0]() }
        return finish(abandoned: watch(threads, tick), tick)
    }

    /// Starts threads, the last one first: consumers before their producers.
    ///
    /// - Parameter body: What the thread at an index does.
    private func begin(_ threads: [ThreadState], isBatch: Bool, _ body: @escaping (Int) -> Void) {
        running.count = threads.count
        for (index, thread) in threads.enumerated().reversed() {
            do {
                try StageThread.start(name: thread.name, isBatch: isBatch) {
                    CrashReport.enter(thread)
                    body(index)
                    thread.inside.store(ThreadState.Place.chainWait, ordering: .relaxed)
                    thread.finished.store(true, ordering: .releasing)
                } ended: { [running] in
                    running.oneEnded()
                }
            } catch {
                failures.withLock { $0.append(.wrap(error)) }
                thread.finished.store(true, ordering: .releasing)
                running.oneEnded()
                stop.raise()
            }
        }
    }

    /// How long after `stop` a stage may still be in its own code. Together with one look more it stays below a second.
    static let stopPatienceNs: Int64 = 800_000_000

    /// Waits for all of `threads`, looking after the run; returns the stages that did not come back.
    private func watch(_ threads: [ThreadState], _ tick: () -> Void) -> [String] {
        var starvation = StarvationWatch()
        var standstill = StandstillWatch()
        var drainDeadline: Int64?
        var stopDeadline: Int64?
        while true {
            tick()
            let isOver = isOver(within: 50_000_000)
            let now = systemNow()
            callWatch.look(at: self, threads, hub, now: now)
            if isOver { return [] }
            if drainDeadline == nil, drainRequested.load(ordering: .acquiring) {
                drainDeadline = now + drainNs
                setState(
                    .draining,
                    "draining: sources end, the rest finishes within \(text(seconds: Double(drainNs) / 1e9)) s")
                for context in contexts { context.requestEnd() }
            }
            if let drainDeadline, now >= drainDeadline, !stop.isRaised {
                let stuck = unfinished(threads)
                failures.withLock {
                    $0.append(
                        FrameHostError(
                            .exhausted,
                            what:
                                "the drain did not finish in \(text(seconds: Double(drainNs) / 1e9)) s: \(stuck.joined(separator: ", ")) still at work",
                            remedy: "Raise \"drainSeconds\" in the chain file if they need longer."))
                }
                stop.raise()
            }
            if stop.isRaised {
                if let stopDeadline, now >= stopDeadline { return abandon(threads) }
                stopDeadline = stopDeadline ?? now + Self.stopPatienceNs
                continue
            }
            starvation.look(at: self, hub)
            if let fault = standstill.look(at: self, threads) {
                failures.withLock { $0.append(fault) }
                stop.raise()
            }
        }
    }

    /// The processor's time: deadlines for people hold under a simulated clock as well.
    private func systemNow() -> Int64 { ChainClock.system.now() }

    private func isOver(within ns: Int64) -> Bool {
        let deadline = systemNow() + ns
        let wasDraining = drainRequested.load(ordering: .relaxed)
        let wasStopped = stop.isRaised
        return running.changed.locked {
            while running.count > 0, systemNow() < deadline {
                if drainRequested.load(ordering: .relaxed) != wasDraining || stop.isRaised != wasStopped { break }
                running.changed.wait(until: deadline)
            }
            return running.count == 0
        }
    }

    /// The stages whose own code the unfinished threads are in; where all of them wait for each other, the threads.
    private func unfinished(_ threads: [ThreadState]) -> [String] {
        let open = threads.filter { !$0.finished.load(ordering: .acquiring) }
        let inside = open.map { Int($0.inside.load(ordering: .relaxed)) }.filter { $0 >= 0 }
        return inside.isEmpty ? open.map(\.name) : inside.map { runners[$0].title }
    }

    private func abandon(_ threads: [ThreadState]) -> [String] {
        let stuck = unfinished(threads)
        for name in stuck {
            hub.post(
                Event(
                    name: "stage-abandoned", level: .error,
                    text:
                        "\(name) did not come back within \(Self.stopPatienceNs / 1_000_000) ms of stop: abandoned, its buffers are quarantined.",
                    time: clock.now()))
        }
        return stuck
    }

    private func finish(abandoned: [String], _ tick: () -> Void) -> Result {
        let wasCancelled = stop.isRaised
        stop.raise()
        for thread in threads { thread.closeMail() }
        for (_, queue) in queues { queue.discardAll(.stopped) }
        finishJobs(tick)
        if abandoned.isEmpty {
            for runner in runners { runner.timeFault.map { fault in failures.withLock { $0.append(fault) } } }
        }
        let found = failures.withLock { $0 }
        let faults = abandoned.isEmpty ? ledgerFaults(afterDrain: !wasCancelled && found.isEmpty) : []
        for pool in pools where pool.leaseGrowths > 0 {
            hub.post(
                Event(
                    name: "leases-grew", level: .warning,
                    text:
                        "pool \(pool.name): its table of leases grew \(pool.leaseGrowths) times, which took memory on a frame thread:"
                        + " a stage shares more frames than the hold in its StageInfo allows.",
                    time: clock.now()))
        }
        for fault in faults {
            hub.post(Event(name: "ledger-fault", level: .error, text: fault, time: clock.now()))
        }
        let result = Result(failures: found, abandoned: abandoned, ledgerFaults: faults, losses: callWatch.losses)
        setState(result.isSuccess ? .stopped : .failed, result.isSuccess ? "stopped" : "failed")
        tick()
        return result
    }

    /// Waits for what stages have left to do.
    private func finishJobs(_ tick: () -> Void) {
        guard let job = jobs.current else { return }
        setState(.finishing, "finishing: \(job.title)")
        while !jobs.waitUntilIdle(atMost: 50_000_000) { tick() }
    }

    private func setState(_ next: State, _ text: String) {
        state.withLock { $0 = next }
        hub.post(
            Event(
                name: "state", text: "chain: \(text).", details: ["state": JSONNode(.string(next.rawValue))],
                time: clock.now()))
    }

    private func stageFailed(_ runner: StageRunner, _ error: FrameHostError) {
        failures.withLock { $0.append(error) }
        postFailure(of: runner, error)
        if endsRun(runner) { drain() }
    }

    private func postFailure(of runner: StageRunner, _ error: FrameHostError) {
        hub.post(
            Event(
                name: "stage-failed", stage: runner.id, level: .error, text: error.description,
                details: ["code": JSONNode(.string(error.code.rawValue))], time: clock.now(),
                frame: runner.context.item.frame,
                pts: runner.context.item.pts))
    }

    /// What the failure of `runner` does where the chain file does not say: a full disk is no reason to end the stream
    /// beside it.
    private func endsRun(_ runner: StageRunner) -> Bool {
        if let onError = runner.onError { return onError == .stop }
        return runner.kind != .sink || !runners.contains { $0.kind == .sink && !$0.hasFailed }
    }
}

extension ChainClock {
    /// The system's monotonic clock.
    static let system = ChainClock()
}
