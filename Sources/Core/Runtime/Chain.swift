// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization

/// A planned chain, which can be run once.
///
/// ```swift
/// let chain = try Chain(request)          // checks everything, opens nothing
/// print(chain.plan.notes)
/// let result = chain.run()                // on the control thread, until it ends
/// ```
public final class Chain: @unchecked Sendable {
    /// The clock that all stages read.
    public let clock: ChainClock
    /// What runs at this moment; see ``RunningGraph``.
    let graphBox: Locked<RunningGraph>
    /// What all its stages share.
    let services: ChainServices
    var stop: StopSignal { services.stop }
    var hub: EventHub { services.events }
    var jobs: JobQueue { services.jobs }
    /// Creates and replaces files in this run.
    public var files: RunFiles { services.files }
    /// How long a drain may take, nanoseconds.
    var drainNs: Int64 {
        let seconds = graphBox.withLock(\.request.drainSeconds)
        return Int64(seconds * 1e9)
    }
    /// What reads files for the chain beside its stages: the host (the chain file) and the services.
    private let fileReaders: [FileClashes.Reader]
    private let heldFiles = Locked(ReadFiles())
    let isTimed: Bool
    /// Nil where no trace is kept.
    let tracer: Tracer?
    // For the control thread only; see ``openTrace(_:as:mostBytes:)``.
    var traceFile: TraceFile?
    var tracePath = ""
    let running = RunningThreads()
    /// Starts each thread of the run; replaced in tests, before the chain runs.
    var startThread: ThreadStart = { try CountedThread.start(name: $0, isBatch: $1, body: $2, ended: $3) }
    /// [desk's thread] Called between the answers of the threads and the commit of a change; replaced in tests.
    var willCommit: () -> Void = {}
    /// Figures of calls that took too long, by the stage's number.
    let callFigures: Locked<[Int: CallWatch.Figures]>
    /// The last answer of ``HealthWatch``.
    let health: Locked<ChainStatus>
    // Used only by the control thread.
    var callWatch = CallWatch()
    var healthWatch = HealthWatch()
    var dropWatch = DropWatch()
    let changes = ChangeDesk()
    /// [desk's thread]
    let lateParts = LateParts()
    /// Sentences about stages and links that were removed.
    let departedFaults = Locked<[String]>([])
    let abandonedBranches = Locked<[String]>([])
    /// Numbers of joins that have ended before their inputs.
    let endedJoins = Locked<Set<Int>>([])
    let restarts = Restarts()
    /// Stages are judged under this lock.
    let judgements = Locked(Judgements())
    /// Stages that a change is about to start, and the contexts of instances that it is to put into others. They are not in
    /// the graph yet.
    let starting = Locked<(runners: [StageRunner], contexts: [StageContext])>(([], []))
    let liveOptions = Locked(LiveOptions())
    /// Figures of the rules, which the host that carries them out sets; nil without rules.
    public let ruleFigures = Locked<JSONNode?>(nil)
    /// For the crash handler; nil where crashes are not reported. Set before the chain runs.
    var crashStages: CrashReport.Stages?
    /// Threads on which replaced instances end.
    let endings = Locked<[ThreadState]>([])

    // Requests from any thread.
    let drainRequested = Atomic<Bool>(false)
    private let stopRequested = Atomic<Bool>(false)
    /// When the run began, by the chain clock.
    private let startedAt = Atomic<Int64>(0)
    private let state = Locked<State>(.stopped)
    let failures = Locked<[FrameHostError]>([])

    /// Where a run is.
    public enum State: String, Sendable {
        /// The chain does not run.
        case stopped
        /// Stages are being started.
        case starting
        /// Frames flow.
        case streaming
        /// The sources have ended, and what is under way finishes.
        case draining
        /// All stages have ended, and the jobs that they left are under way.
        case finishing
        /// The run has failed.
        case failed
    }

    /// How a run ended.
    public struct Result: Sendable {
        /// The errors, in the order in which they happened; empty for a run without fault.
        public var failures: [FrameHostError]
        /// Ids of the stages that did not return from a call. The process should end without waiting for them.
        public var abandoned: [String]
        /// One sentence for each place where the ledger does not balance: a bug of a stage or of framehost.
        public var ledgerFaults: [String]
        /// One sentence for each call of a live chain that took so long that frames were lost.
        public var losses: [String] = []
        /// Where a live chain lost items for want of a place, and which stage was too slow: a sentence for each
        /// place, the worst first. This is not a failure: a live chain may lose items.
        public var drops: [String] = []

        /// Whether all went well.
        public var isSuccess: Bool { failures.isEmpty && abandoned.isEmpty && ledgerFaults.isEmpty && losses.isEmpty }
    }

    /// Plans a chain, and opens nothing. All faults are found at once.
    ///
    /// - Parameters:
    ///   - request: The chain as its file asks for it.
    ///   - clock: The clock that all stages read.
    ///   - timed: Whether the run measures each stage's time per item (one clock read per boundary).
    ///   - traced: Whether the run can write a trace: ``openTrace(_:as:mostBytes:)``.
    /// - Throws: ``FrameHostErrors``.
    public init(
        _ request: ChainRequest, clock: ChainClock = ChainClock(), timed: Bool = false, traced: Bool = false
    ) throws {
        let planned = try ChainPlanner(request, clock: clock).plan()
        self.clock = clock
        services = planned.services
        fileReaders = FileClashes.readers(beside: request)
        isTimed = timed
        tracer = traced ? Tracer(clock: clock) : nil
        let assembly = try GraphAssembly(
            planned, request: request, running: nil, timed: timed, tracer: tracer, frameLimit: request.frameLimit)
        assembly.graph.setMergeRules()
        graphBox = Locked(assembly.graph)
        callFigures = callWatch.figures
        health = healthWatch.status
        for runner in assembly.newRunners { adopt(runner) }
        tracer?.follow(assembly.graph)
    }

    /// Makes this chain hear of the stage's failures.
    func adopt(_ runner: StageRunner) {
        runner.onFailure = { [unowned self] in self.stageFailed($0, $1) }
        runner.onJoinEnd = { [unowned self] in self.joinEnded($0) }
    }

    // MARK: What runs

    /// [control thread, and the desk's after a change] Holds the files that the chain reads until the chain has
    /// gone. A recorder with a pattern, in this process or another, then neither replaces nor removes them, even
    /// where their reader has ended.
    func holdReadFiles() {
        let readers = fileReaders.map { ($0.demand, "framehost") } + plan.stages.map { ($0.demand, $0.id) }
        heldFiles.withLock { held in
            // A file that its reader itself puts another in place of is not held: that would be refused.
            for (demand, name) in readers {
                for path in demand.readsFiles where !demand.writesFiles.contains(path) { held.add(path, as: name) }
            }
        }
    }

    /// [any thread] What runs at this moment.
    var graph: RunningGraph { graphBox.withLock { $0 } }
    /// [any thread] The plan of what runs now.
    public var plan: ChainPlan { graph.plan }
    var runners: [StageRunner] { graph.runners }
    var queues: [RunningGraph.Queued] { graph.queues }
    var pools: [FramePool] { graph.pools }
    var slabs: [Slab] { graph.slabs }

    /// Says why the program should not write a file beside the run, such as its figures. The file may be the chain
    /// file, belong to a stage, or not be writable. Nil when nothing is in the way. Writes nothing.
    ///
    /// - Parameters:
    ///   - path: The file to write.
    ///   - option: What names the file: `--stats`.
    public func fault(ofWriting path: String, as option: String) -> FrameHostError? {
        var own = StageDemand()
        own.writesFiles = [path]
        let clash = FileClashes(plan.stages.map(\.demand) + fileReaders.map(\.demand) + [own]).clashes.first {
            $0.writer == plan.stages.count + fileReaders.count
        }
        if let clash {
            let reader = clash.other - plan.stages.count
            let who =
                reader < 0
                ? "is used by '\(plan.stages[clash.other].id)'"
                : fileReaders[reader].service.map { "is read by '\($0)'" } ?? "is the chain file"
            return FrameHostError(
                .invalidConfiguration, place: option, what: "'\(path)' \(who)", remedy: "Name another file.")
        }
        guard var fault = files.refusalOfWriting(path)?.fault(path) else { return nil }
        (fault.code, fault.place) = (.invalidConfiguration, FaultPlace(argument: option))
        return fault
    }

    /// Plans a chain without making pools and queues.
    ///
    /// - Throws: ``FrameHostErrors``.
    public static func plan(_ request: ChainRequest, clock: ChainClock = ChainClock()) throws -> ChainPlan {
        try ChainPlanner(request, clock: clock).plan().plan
    }

    // MARK: Any thread

    /// [any thread] Ends the sources and lets what is under way finish. While the chain is ``State/finishing``, gives
    /// up the jobs that are left.
    ///
    /// - Parameter keepingJobs: Gives up no jobs: nobody has asked for that.
    public func drain(keepingJobs: Bool = false) {
        if !keepingJobs, currentState == .finishing { jobs.cancel() }
        drainRequested.store(true, ordering: .releasing)
        running.changed.locked { running.changed.broadcast() }
    }

    /// [any thread] Stops the run: ends every wait at once. Stages still close what they opened, and the jobs that they
    /// leave are done. While the chain is ``State/finishing``, gives up these jobs.
    public func cancel() {
        if currentState == .finishing { jobs.cancel() }
        stopRequested.store(true, ordering: .releasing)
        stop.raise()
        running.changed.locked { running.changed.broadcast() }
    }

    /// [any thread] Where the run is.
    public var currentState: State { state.withLock { $0 } }

    /// [any thread] Whether the chain still takes changes. It takes none once it ends, whatever the reason.
    public var takesChanges: Bool { !changes.isClosed }

    /// [any thread] The job that is under way, how far it is (0...1), and how many jobs follow; nil when there is none.
    /// See ``StageContext/addJob(_:_:)``.
    public var currentJob: (title: String, fraction: Double, following: Int)? { jobs.current }

    /// [any thread] Listens to all events from now on. The first listener also gets the events since the chain was
    /// planned.
    ///
    /// - Parameter capacity: Events that wait for this listener before it loses the oldest.
    public func subscribe(capacity: Int = EventSubscription.capacity) -> EventSubscription {
        hub.subscribe(capacity: capacity)
    }

    /// [any thread] Gives an event of the host or of a service to all listeners.
    public func post(_ event: Event) { hub.post(event) }

    // MARK: Control thread

    /// [control thread] Runs the chain to its end, and calls `tick` about every 50 ms and once at the end.
    public func run(tick: () -> Void = {}) -> Result {
        startedAt.store(clock.now(), ordering: .releasing)
        beginTrace()
        holdReadFiles()
        setState(.starting, "starting")
        tick()
        // Stages start on a thread of their own, so that a stage that does not return from `start` can be named and
        // abandoned.
        let setup = ThreadState(name: "setup")
        let isStarted = Atomic<Bool>(false)
        begin([(setup, { [self] in isStarted.store(startStages(setup), ordering: .releasing) })], isBatch: false)
        let abandoned = watch({ [setup] }, tick)
        guard abandoned.isEmpty, isStarted.load(ordering: .acquiring) else { return finish(abandoned: abandoned, tick) }
        return stream(tick)
    }

    /// [setup thread] Starts consumers first. Returns false when a stage failed, or when the run was ended before; then
    /// every stage that had begun is stopped.
    private func startStages(_ setup: ThreadState) -> Bool {
        let runners = self.runners
        var begun: [StageRunner] = []
        var isCut = false
        for runner in runners.reversed() {
            guard !stop.isRaised, !drainRequested.load(ordering: .acquiring) else { break }
            begun.append(runner)
            do {
                try setup.call(.start, stage: runner.number) { try runner.instance.stage.start() }
            } catch {
                let fault = FrameHostError.wrap(error, place: FaultPlace(stage: runner.id, title: runner.title))
                // The stage waited for something, and the run was ended.
                if fault.code == .stopped, stop.isRaised || drainRequested.load(ordering: .acquiring) {
                    isCut = true
                    break
                }
                failures.withLock { $0.append(fault) }
                postFailure(of: runner, fault)
                break
            }
        }
        if begun.count == runners.count, !isCut, failures.withLock({ $0.isEmpty }), !stop.isRaised { return true }
        for runner in begun { runner.stop(on: setup) }
        return false
    }

    private func stream(_ tick: () -> Void) -> Result {
        setState(.streaming, "streaming")
        begin(stageThreads: graph.stageThreads)
        changes.open { try beginChanges($0, $1) }
        dropWatch.begin(now: systemNow())
        let threads = { [self] in graph.everyStageThread.map(\.state) + changes.threads + endings.withLock { $0 } }
        var abandoned = watch(threads, tick)
        changes.close()
        // A change may have begun since the last look: it has as long as a drain.
        while abandoned.isEmpty, !isOver(within: 0) {
            drain(keepingJobs: true)
            abandoned = watch(threads, tick)
        }
        return finish(abandoned: abandoned, tick)
    }

    /// Waits for all of `threads` and watches the run meanwhile. Returns the stages that did not return.
    private func watch(_ threadsNow: () -> [ThreadState], _ tick: () -> Void) -> [String] {
        var starvation = StarvationWatch()
        var standstill = StandstillWatch()
        var drainDeadline: Int64?
        var stopDeadline: Int64?
        var nextSourceLook: Int64 = 0
        var suspended: Int64 = 0
        while true {
            tick()
            let begin = systemNow()
            let isOver = isOver(within: Self.lookNs)
            let now = systemNow()
            // No stage can have worked while the whole process was suspended.
            if now - begin > Self.lateLookNs { suspended += now - begin - Self.lookNs }
            let awake = now - suspended
            let threads = threadsNow()
            callWatch.look(at: self, threads, hub, now: now)
            healthWatch.look(at: self, now: now) { callWatch.hanging(in: graph, for: HealthWatch.hangNs, now: now) }
            dropWatch.look(at: self, now: now)
            tendLeavingBranches(now: awake)
            if isOver { return [] }
            for number in restarts.due(now: now) { restart(number) }
            judgeLateFailures(now: now)
            if now >= nextSourceLook {
                nextSourceLook = now + 1_000_000_000
                endSourcesWithoutReaders()
                // The last healthy sink may have ended.
                judgements.withLock { if !$0.isOpen { endRunIfItMust() } }
            }
            // Nothing flows any more: a change that is still being made has as long as a drain.
            if changes.threads.contains(where: running.isOnly) { drain(keepingJobs: true) }
            if drainDeadline == nil, drainRequested.load(ordering: .acquiring) {
                drainDeadline = awake + drainNs
                setState(
                    .draining,
                    "draining: the sources end, and the rest has \(text(seconds: Double(drainNs) / 1e9)) s to finish")
                changes.close()
            }
            if drainDeadline != nil { requestEnds() }
            if let drainDeadline, awake >= drainDeadline, !stop.isRaised {
                failures.withLock { $0.append(unfinishedDrain(threads)) }
                stop.raise()
            }
            if stop.isRaised {
                if let stopDeadline, awake >= stopDeadline { return abandoned(threads) }
                stopDeadline = stopDeadline ?? awake + Self.stopPatienceNs
                continue
            }
            starvation.look(at: self, hub)
            if let fault = standstill.look(at: self, threads) {
                failures.withLock { $0.append(fault) }
                stop.raise()
            }
        }
    }

    /// Tells every stage that the run ends, at each look while it drains: a change that is under way may still put a new
    /// stage, another instance or a stage that would have left into the chain.
    private func requestEnds() {
        // Sources last: a stage that sees an input end asks its context whether the run ends.
        for isSource in [false, true] {
            for runner in graph.everyRunner where (runner.kind == .source) == isSource {
                runner.shown.context.requestEnd()
            }
        }
        let (runners, contexts) = starting.withLock { $0 }
        for context in contexts + runners.map(\.shown.context) { context.requestEnd() }
    }

    /// From one look of the control thread to the next, nanoseconds.
    private static let lookNs: Int64 = 50_000_000
    /// After a wait this much longer than a look's the process was suspended, or the machine was too busy, nanoseconds.
    private static let lateLookNs: Int64 = 500_000_000

    /// The system's time: deadlines for people hold under a simulated clock too.
    func systemNow() -> Int64 { ChainClock.system.now() }

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

    func setState(_ next: State, _ text: String) {
        state.withLock { $0 = next }
        hub.post(
            Event(
                name: "state", text: "chain: \(text).", details: ["state": JSONNode(.string(next.rawValue))],
                time: clock.now()))
    }

    private func stageFailed(_ runner: StageRunner, _ error: FrameHostError) {
        var error = error
        if let pts = error.place.pts { error.place.sinceStart = sinceStart(pts) }
        let fault = error
        if runner.isLettingGo {
            // Another instance takes its place now.
            if runner.onError != .restart { failures.withLock { $0.append(fault) } }
        } else {
            judgeOrKeep(runner, fault)
        }
        postFailure(of: runner, error)
    }

    /// How long after the start of the run `pts` is, where all sources are live and so all times are the clock's;
    /// otherwise nil.
    private func sinceStart(_ pts: MediaTime) -> MediaTime? {
        let start = startedAt.load(ordering: .acquiring)
        guard pts.nanoseconds >= start, runners.allSatisfy({ $0.kind != .source || $0.shown.demand.isLive }) else {
            return nil
        }
        return MediaTime(nanoseconds: pts.nanoseconds - start)
    }

    private func postFailure(of runner: StageRunner, _ error: FrameHostError) {
        hub.post(
            Event(
                name: "stage-failed", stage: runner.id, level: .error, text: error.description,
                details: ["code": JSONNode(.string(error.code.rawValue))], time: clock.now(),
                frame: runner.shown.context.item.frame,
                pts: runner.shown.context.item.pts))
    }
}

extension ChainClock {
    /// The system's monotonic clock.
    static let system = ChainClock()
}
