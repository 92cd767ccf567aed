// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameSupport
import Glibc
import Synchronization

/// One run of a chain in this process: signals, time limit, figures, exit status.
///
/// The main thread waits for signals. A control thread plans and runs the chain and ends the process. With several
/// chains, ``ChainsSession`` prepares and performs each run, and has the signals and the exit status. `@unchecked
/// Sendable`: only the control thread uses what is not behind a lock.
final class RunSession: @unchecked Sendable {
    /// What planning gives.
    struct Planned {
        var chain: Chain
        var document: ChainDocument
        var services: RunServices
    }

    /// A chain that is ready to run.
    struct Prepared {
        var planned: Planned
        var encoder: EncoderLoader
        var lookout: PluginLookout?
    }

    /// How the run went.
    struct Ending: Sendable {
        /// The exit status.
        var status: Int32
        /// Whether destructors may run: no stage is inside native code, and no thread writes a picture.
        var mayUnwind = true
        /// One sentence each.
        var faults: [String] = []
        var captured = 0
        var dropped = 0
        /// As `--stats` writes them.
        var figures: JSONNode?
    }

    private let plan: () throws -> Planned
    private let display: RunDisplay
    private let replies: CommandReplies
    private let readsCommands: Bool
    private let seconds: Double?
    private let statsPath: String?
    private let trace: (path: String, mostBytes: Int)?
    private let isWatching: Bool
    private let isWatchingPlugins: Bool
    private let signalSnapshots: SignalSnapshots
    /// The connection to the batch, where this is one of its workers.
    private let connection: BatchConnection?
    private let acceptsDamaged: Bool
    /// Standard streams that were a terminal when the run began.
    private let terminals = (0...2 as ClosedRange<Int32>).filter { isatty($0) == 1 }
    /// Nil where no service manager asks, and for one of several chains.
    private let service: SystemdNotify?
    private let document = Mutex<ChainDocument?>(nil)
    /// Nil until it is planned.
    private let chain = Mutex<Chain?>(nil)
    private let snapshots = Mutex<Snapshots?>(nil)
    private let language = Mutex<CommandLanguage?>(nil)
    private let watchedFile: WatchedChainFile
    private let watchedPlugins: WatchedPlugins

    /// - Parameters:
    ///   - plan: Checks and plans; its faults end the process with status 2.
    ///   - replies: Answers for `display` to show.
    ///   - readsCommands: Whether standard input has commands.
    ///   - trace: Where a trace goes, and how large it may be; the chain is then planned for one.
    ///   - isWatching: Whether the chain file is read again whenever it changes.
    ///   - isWatchingPlugins: Whether plugins are loaded again whenever their files change.
    ///   - signalSnapshots: What SIGUSR1 asks for.
    ///   - service: The service manager that is told only of this chain; nil where there is none.
    ///   - connection: The connection to the batch, where this is one of its workers.
    ///   - acceptsDamaged: Whether a run whose inputs gave less than they promise still succeeds.
    init(
        display: RunDisplay, replies: CommandReplies, readsCommands: Bool, seconds: Double?, statsPath: String?,
        trace: (path: String, mostBytes: Int)?, isWatching: Bool, isWatchingPlugins: Bool,
        signalSnapshots: SignalSnapshots, service: SystemdNotify? = SystemdNotify.ofEnvironment(),
        connection: BatchConnection? = nil, acceptsDamaged: Bool = false,
        plan: @escaping () throws -> Planned
    ) {
        self.plan = plan
        self.display = display
        self.replies = replies
        self.readsCommands = readsCommands
        self.seconds = seconds
        self.statsPath = statsPath
        self.trace = trace
        self.isWatching = isWatching
        self.isWatchingPlugins = isWatchingPlugins
        self.signalSnapshots = signalSnapshots
        self.connection = connection
        // The batch judges its inputs itself.
        self.acceptsDamaged = acceptsDamaged || connection != nil
        self.service = service
        watchedFile = WatchedChainFile(replies)
        watchedPlugins = WatchedPlugins(replies)
    }

    /// Runs the chain and ends the process with its exit status.
    func run() -> Never {
        // Signals reach only `sigwait`. A worker of a batch must not end successfully with half a clip, so signals end
        // it.
        let signals = BlockedSignals.block(connection == nil ? [SIGINT, SIGTERM, SIGHUP, SIGUSR1] : [SIGUSR1])
        Terminal.begin(hasEvents: display.hasEvents)
        startControlThread()
        waitForSignals(signals)
    }

    private func startControlThread() {
        do { try NamedThread.start("control") { self.control() } } catch {
            RunLog.logger.critical("no thread could be started: \(error). \(NoThread.remedy)")
            ProgramEnd.afterRun(1)
        }
    }

    /// How long services and readers have together once the chain has ended and the program was told to end, ns.
    private static let endPatience = Int64(RunServices.patience + 100) * 1_000_000

    /// What is said when a signal ends the process at once.
    static let endedBySignal =
        "A further signal ended the program at once. What was being written may be incomplete."

    /// [main thread] SIGHUP reloads the chain file, unless the terminal has gone. SIGUSR1 takes pictures. Of the other
    /// signals the first drains, the second stops, the third ends the process. Before there is a chain the first ends
    /// the process. Once all stages have ended, the first gives up the jobs that are left.
    private func waitForSignals(_ signals: sigset_t) -> Never {
        var signals = signals
        var count = 0
        var isGivingUp = false
        while true {
            let signal = BlockedSignals.wait(for: &signals)
            if signal == SIGHUP, reload() { continue }
            if signal == SIGUSR1 {
                takeSnapshots()
                continue
            }
            count += 1
            OutputWriter.shared.hurry()
            guard let chain = chain.withLock({ $0 }) else {
                RunLog.logger.notice("Stopped before the chain was ready to run.")
                ProgramEnd.atOnce(1)
            }
            if chain.currentState == .finishing, !isGivingUp {
                isGivingUp = true
                chain.cancel()
                continue
            }
            guard count < 3, !isGivingUp else {
                RunLog.logger.error("\(Self.endedBySignal)")
                ProgramEnd.atOnce(1)
            }
            if count == 1 {
                chain.drain()
            } else {
                chain.cancel()
            }
        }
    }

    /// [main thread]
    private func takeSnapshots() {
        guard !signalSnapshots.isEmpty else {
            RunLog.logger.warning("\(SignalSnapshots.nobodyAsked)")
            return
        }
        takeSignalSnapshots()
    }

    /// [any thread] Does nothing before there is a chain.
    func takeSignalSnapshots() {
        guard let chain = chain.withLock({ $0 }), let snapshots = snapshots.withLock({ $0 }) else {
            guard !signalSnapshots.isEmpty else { return }
            return RunLog.logger.warning("\(SignalSnapshots.tooEarly)")
        }
        signalSnapshots.take(snapshots) { [replies, clock = chain.clock] in
            replies.add($0, number: 0, tag: nil, time: clock.now())
        }
    }

    /// [any thread] Reloads the chain file; false where SIGHUP means that the terminal has gone, or where no chain
    /// runs.
    private func reload() -> Bool {
        guard terminals.allSatisfy({ isatty($0) == 1 }) else { return false }
        // A chain that is tried again is read anew each time.
        if isWaiting.withLock({ $0 }), chain.withLock({ $0 }) == nil {
            RunLog.logger.notice("The chain file is read at the next try.")
            service?.reloadBegins()
            service?.reloadEnded(CommandAnswer(stage: nil, frame: 0))
            return true
        }
        return reload { [service] in
            service?.reloadEnded($0)
        } begins: {
            service?.reloadBegins()
        }
    }

    /// [any thread] Reloads the chain file, since SIGHUP asks for it; false where no chain runs.
    ///
    /// - Parameter ended: Called once, on any thread, unless the result is false.
    func reload(_ ended: @escaping CommandReply, begins: () -> Void = {}) -> Bool {
        guard let chain = chain.withLock({ $0 }), let document = document.withLock({ $0 }) else { return false }
        begins()
        document.reload(
            chain,
            reply: { [replies, clock = chain.clock, weak chain] answer in
                let said = answer.ofReload("the chain file", chain, whenBusy: "Send SIGHUP again later.")
                ended(answer.isBusy ? said : answer)
                replies.add(said, number: 0, tag: nil, time: clock.now())
            })
        return true
    }

    /// [any thread] Loads a watched plugin from its file, which has changed.
    func reloadPlugin(_ path: String) {
        watchedPlugins.reload(path, chain.withLock { $0 }, document.withLock { $0 })
    }

    /// [thread of the lookout] Tries those reloads of watched plugins again that are due.
    func retryPlugins() {
        guard let chain = chain.withLock({ $0 }), let document = document.withLock({ $0 }) else { return }
        watchedPlugins.retry(chain, document)
    }

    /// [any thread] The chain; nil before it is prepared and after ``letGo()``.
    var runningChain: Chain? { chain.withLock { $0 } }

    /// [any thread] The language that takes the chain's commands; nil before the chain runs and after ``letGo()``.
    var runningLanguage: CommandLanguage? { language.withLock { $0 } }

    // MARK: Control thread

    private func control() -> Never {
        CrashReport.useOwnStack()
        let prepared: Prepared
        do {
            prepared = try prepareWaiting()
        } catch {
            ProgramEnd.afterRun(reportBeforeRun(error).rawValue)
        }
        take(prepared)
        let ending = perform(prepared)
        // A stage may still be inside native code, and a thread may write a picture: no destructors run.
        ProgramEnd.afterRun(ending.status, mayUnwind: ending.mayUnwind)
    }

    /// Whether the chain could not be prepared yet, and is tried again.
    private let isWaiting = Locked(false)

    /// [control thread] Prepares again and again while a stage waits for what it needs (``FrameHostError/isAwaited``).
    private func prepareWaiting() throws -> Prepared {
        let clock = ChainClock()
        let begin = clock.now()
        var retry = ChainRetry()
        let isOver = WaitableFlag()
        defer { isOver.raise() }
        while true {
            do {
                let prepared = try prepare()
                if retry.due != 0 {
                    let waited = (clock.now() - begin) / 1_000_000
                    RunLog.logger.notice("What was waited for is there after \(waited) ms. The chain begins.")
                }
                return prepared
            } catch {
                // Once it waits, it also waits for a file that is being edited.
                guard connection == nil, retry.due != 0 || ChainRetry.isAway(error, isAskedFor: true) else {
                    connection?.failed(error)
                    throw error
                }
                let isFirst = retry.due == 0
                isWaiting.withLock { $0 = true }
                let news = retry.failed(error, now: clock.now())
                for reason in news { RunLog.logger.warning("\(reason) \(ChainRetry.promise)") }
                if isFirst, let service {
                    let status = ChainStatus(
                        state: .recovering,
                        stages: [
                            ChainStatus.Stage(
                                id: "chain", state: .recovering, reason: retry.reasons.joined(separator: " "))
                        ],
                        problems: [])
                    // A restart would not help. Planning may take longer than the manager waits for a sign of life.
                    _ = Background.start {
                        repeat { service.look(at: status, isFlowing: true) } while !isOver.wait(milliseconds: 250)
                    }
                }
                while clock.now() < retry.due {
                    if let seconds, clock.now() - begin >= MediaTime(seconds: seconds).nanoseconds { throw error }
                    MonotonicTime.sleep(seconds: 0.05)
                }
            }
        }
    }

    /// [control thread] Checks and plans, and opens nothing but the trace.
    ///
    /// - Throws: ``FrameHostErrors``.
    func prepare() throws -> Prepared {
        let planned = try plan()
        let chain = planned.chain
        let encoder = EncoderLoader(try planned.document.pictureEncoder())
        let lookout = isWatchingPlugins ? try PluginLookout() : nil
        if let statsPath, let fault = chain.fault(ofWriting: statsPath, as: "--stats") { throw fault }
        if let statsPath, let fault = StatsFile.fault(ofReplacing: statsPath) { throw fault }
        if let fault = signalSnapshots.fault(in: chain.plan) { throw fault }
        if let trace {
            try chain.openTrace(trace.path, as: "--trace", mostBytes: trace.mostBytes)
            Leftovers.shared.add(file: trace.path)
        }
        return Prepared(planned: planned, encoder: encoder, lookout: lookout)
    }

    /// [any thread] From here on signals and commands reach the chain.
    func take(_ prepared: Prepared) {
        if let trace { Leftovers.shared.forget(file: trace.path) }
        document.withLock { $0 = prepared.planned.document }
        chain.withLock { $0 = prepared.planned.chain }
    }

    /// [any thread] The chain has ended and no thread uses it. Its memory is freed with its last owner.
    func letGo() {
        let chain = chain.withLock { chain in
            defer { chain = nil }
            return chain
        }
        document.withLock { $0 = nil }
        snapshots.withLock { $0 = nil }
        language.withLock { $0 = nil }
        if let chain {
            ChainNeighbours.shared.remove(chain)
            CrashReport.forget(chain)
        }
    }

    /// [control thread] Runs the chain to its end.
    ///
    /// - Parameter keepsFigures: Whether the ending has the figures.
    func perform(_ prepared: Prepared, keepsFigures: Bool = false) -> Ending {
        let planned = prepared.planned
        let (chain, document) = (planned.chain, planned.document)
        connection?.planned(chain)
        var watch = document.watch
        let snapshots = Snapshots(chain: chain, encoder: prepared.encoder)
        self.snapshots.withLock { $0 = snapshots }
        let language = CommandLanguage(chain: chain, document: document, snapshots: snapshots)
        self.language.withLock { $0 = language }
        if let refusal = start(prepared, language) { return refusal }
        let commands = readsCommands ? CommandReader.start(language, replies) : nil
        let rules = RuleRunner(chain: chain, language: language)
        let start = chain.clock.now()
        let limit = seconds.map { start + MediaTime(seconds: $0).nanoseconds }
        var result = chain.run { [self] in
            if let limit, chain.currentState == .streaming, chain.clock.now() >= limit { chain.drain() }
            if isWatching { watchedFile.look(&watch, chain, document) }
            rules.tick()
            language.tick()
            display.update(chain)
            connection?.tick(chain)
            service?.look(chain)
        }
        let elapsed = Double(chain.clock.now() - start) / 1e9
        OutputWriter.shared.endBegins(within: Self.endPatience)
        // Answers that come at the very end are judged too.
        prepared.lookout?.stop()
        let isQuiet = snapshots.finish()
        result.failures += rules.finish()
        if let fault = signalSnapshots.fault { result.failures.append(fault) }
        let traceFault = chain.traceFault
        service?.ended(isSuccess: result.isSuccess && traceFault == nil)
        let leftBehind = planned.services.stop { commands?.finish() }
        let shortfalls = acceptsDamaged ? [] : chain.inputAccounts.compactMap(\.account.shortfall)
        display.finish(chain, result, shortfalls: shortfalls, leftBehind: leftBehind, elapsed: elapsed)
        connection?.ended(chain)
        connection?.failed(FrameHostErrors(result.failures))
        var failed = !result.isSuccess || !shortfalls.isEmpty
        if let traceFault {
            display.complain(traceFault)
            failed = true
        }
        if let statsPath, let fault = StatsFile.write(chain.figuresWithPlugins, to: statsPath, chain.files) {
            RunLog.logger.critical("\(fault)")
            failed = true
        }
        var ending = Ending(
            status: failed ? 1 : 0, mayUnwind: result.abandoned.isEmpty && isQuiet && leftBehind.isEmpty)
        ending.faults =
            result.failures.map(\.description)
            + result.abandoned.map { "\($0) did not return from a call after the stop, and was abandoned." }
            + result.ledgerFaults + result.losses + shortfalls.map { "\($0)." }
        if let traceFault { ending.faults.append(traceFault.description) }
        let progress = chain.progress
        (ending.captured, ending.dropped) = (progress.captured, progress.dropped)
        if keepsFigures { ending.figures = chain.figuresWithPlugins }
        return ending
    }

    /// Starts what runs beside the chain. Nil where all of it has started.
    private func start(_ prepared: Prepared, _ language: CommandLanguage) -> Ending? {
        let (planned, encoder) = (prepared.planned, prepared.encoder)
        let (chain, document) = (planned.chain, planned.document)
        if !planned.services.isEmpty {
            // The first listener gets the events of planning: that must be the display.
            display.update(chain)
            do {
                try planned.services.start(
                    HostControl(chain: chain, document: document, language: language, encoder: encoder))
            } catch {
                display.update(chain)
                planned.services.stop()
                chain.discardTrace()
                return Ending(status: display.refuse(error).rawValue, faults: Self.sentences(error))
            }
        }
        // The first listener gets the events of planning: that must be the display.
        display.update(chain)
        do {
            try prepared.lookout?.start { [weak self] changed in
                for path in changed { self?.reloadPlugin(path) }
                self?.retryPlugins()
            }
        } catch {
            planned.services.stop()
            chain.discardTrace()
            return Ending(status: display.refuse(error).rawValue, faults: Self.sentences(error))
        }
        return nil
    }

    private static func sentences(_ error: any Error) -> [String] {
        ((error as? FrameHostErrors)?.errors ?? [.wrap(error)]).map(\.description)
    }
}
