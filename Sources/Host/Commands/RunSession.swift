// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc
import Synchronization

/// One run of a chain in this process: signals, time limit, figures, exit status.
///
/// The main thread waits for signals, a control thread plans and runs the chain and ends the process. `@unchecked
/// Sendable`: all but `chain` is the control thread's alone.
final class RunSession: @unchecked Sendable {
    /// What planning gives.
    struct Planned {
        var chain: Chain
        var document: ChainDocument
        var services: RunServices
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
    /// The line to the batch whose worker this is.
    private let supervision: Supervision?
    /// Standard streams that were a terminal when the run began.
    private let terminals = (0...2 as ClosedRange<Int32>).filter { isatty($0) == 1 }
    /// Nil where no service manager asks.
    private let service = ServiceNotify.ofEnvironment()
    private let document = Mutex<ChainDocument?>(nil)
    /// Nil until it is planned.
    private let chain = Mutex<Chain?>(nil)
    private let snapshots = Mutex<Snapshots?>(nil)

    /// - Parameters:
    ///   - plan: Checks and plans; its faults end the process with status 2.
    ///   - replies: Answers for `display` to show.
    ///   - readsCommands: Whether standard input has commands.
    ///   - trace: Where a trace goes, and how large it may be; the chain is then planned for one.
    ///   - isWatching: The chain file is read again whenever it changes.
    ///   - isWatchingPlugins: Plugins are loaded again whenever their files change.
    ///   - signalSnapshots: What SIGUSR1 asks for.
    ///   - supervision: The line to the batch whose worker this is.
    init(
        display: RunDisplay, replies: CommandReplies, readsCommands: Bool, seconds: Double?, statsPath: String?,
        trace: (path: String, mostBytes: Int)?, isWatching: Bool, isWatchingPlugins: Bool,
        signalSnapshots: SignalSnapshots, supervision: Supervision?,
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
        self.supervision = supervision
    }

    /// Runs the chain and ends the process with its exit status.
    func run() -> Never {
        var signals = sigset_t()
        sigemptyset(&signals)
        for signal in [SIGINT, SIGTERM, SIGHUP, SIGUSR1] { sigaddset(&signals, signal) }
        // Blocked here and so in every thread made from now on, those that libraries make while planning too: signals
        // reach `sigwait` alone.
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        startControlThread()
        waitForSignals(signals)
    }

    private func startControlThread() {
        var handle = pthread_t()
        let context = Unmanaged.passRetained(self).toOpaque()
        let result = pthread_create(
            &handle, nil,
            { context in
                Unmanaged<RunSession>.fromOpaque(context!).takeRetainedValue().control()
            }, context)
        guard result == 0 else {
            RunLog.logger.critical("no thread could be started: \(String(cString: strerror(result))).")
            exit(1)
        }
    }

    /// [main thread] SIGHUP: the chain file is read again, unless it says that the terminal has gone. SIGUSR1: pictures are
    /// taken. Other signals, the first: drain. Second: stop. Third: end the process. Before there is a chain, nothing is open: the first ends it.
    /// Once all stages have ended the first of these that comes gives up what they have left to do.
    private func waitForSignals(_ signals: sigset_t) -> Never {
        var signals = signals
        var count = 0
        var isGivingUp = false
        while true {
            var signal: Int32 = 0
            guard sigwait(&signals, &signal) == 0 else { continue }
            if signal == SIGHUP, reload() { continue }
            if signal == SIGUSR1 {
                takeSnapshots()
                continue
            }
            count += 1
            guard let chain = chain.withLock({ $0 }) else {
                RunLog.logger.notice("Stopped before the chain was ready to run.")
                _exit(1)
            }
            if chain.currentState == .finishing, !isGivingUp {
                isGivingUp = true
                chain.cancel()
                continue
            }
            guard count < 3, !isGivingUp else {
                RunLog.logger.error("ended by the third signal; what was being written may be incomplete.")
                _exit(1)
            }
            if count == 1 {
                chain.drain()
            } else {
                chain.cancel()
            }
        }
    }

    /// [main thread] Nothing before there is a chain.
    private func takeSnapshots() {
        guard !signalSnapshots.isEmpty else {
            RunLog.logger.warning(
                "SIGUSR1 takes pictures, but no stage was named for it. Start with --snapshot-on-signal STAGE=FILE.")
            return
        }
        guard let chain = chain.withLock({ $0 }), let snapshots = snapshots.withLock({ $0 }) else { return }
        signalSnapshots.take(snapshots) { [replies, clock = chain.clock] in
            replies.add($0, number: 0, tag: nil, time: clock.now())
        }
    }

    /// [any thread] Has the chain file read again; false where SIGHUP says that the terminal has gone, or nothing runs.
    private func reload() -> Bool {
        guard terminals.allSatisfy({ isatty($0) == 1 }), let chain = chain.withLock({ $0 }),
            let document = document.withLock({ $0 })
        else { return false }
        service?.reloadBegins()
        document.reload(chain) { [replies, service, clock = chain.clock] in
            service?.reloadEnded($0)
            replies.add($0, number: 0, tag: nil, time: clock.now())
        }
        return true
    }

    /// [any thread]
    private func reload(_ chain: Chain, _ document: ChainDocument) {
        document.reload(chain) { [replies, clock = chain.clock] in
            replies.add($0, number: 0, tag: nil, time: clock.now())
        }
    }

    // MARK: Control thread

    private func control() -> Never {
        CrashReport.useOwnStack()
        let planned: Planned
        let encoder: EncoderLoader
        var pluginWatch: PluginWatch?
        do {
            planned = try plan()
            let chain = planned.chain
            encoder = EncoderLoader(try planned.document.pictureEncoder())
            if isWatchingPlugins { pluginWatch = try PluginWatch() }
            if let statsPath, let fault = chain.fault(ofWriting: statsPath, as: "--stats") { throw fault }
            if let fault = signalSnapshots.fault(in: chain.plan) { throw fault }
            if let trace { try chain.openTrace(trace.path, as: "--trace", mostBytes: trace.mostBytes) }
        } catch {
            exit(reportBeforeRun(error).rawValue)
        }
        let (chain, document) = (planned.chain, planned.document)
        supervision?.planned(chain)
        self.document.withLock { $0 = document }
        self.chain.withLock { $0 = chain }
        var watch = FileWatch(document.path)
        let snapshots = Snapshots(chain: chain, encoder: encoder)
        self.snapshots.withLock { $0 = snapshots }
        let language = CommandLanguage(chain: chain, document: document, snapshots: snapshots)
        if readsCommands { CommandReader.start(language, replies) }
        if !planned.services.isEmpty {
            // The first who listens gets what happened while planning.
            display.update(chain)
            do {
                try planned.services.start(
                    HostControl(chain: chain, document: document, language: language, encoder: encoder))
            } catch {
                display.update(chain)
                planned.services.stop()
                chain.discardTrace()
                exit(report(error).rawValue)
            }
        }
        // The first who listens gets what happened while planning.
        display.update(chain)
        let rules = RuleRunner(chain: chain, language: language)
        let start = chain.clock.now()
        let limit = seconds.map { start + MediaTime(seconds: $0).nanoseconds }
        var result = chain.run { [self] in
            if let limit, chain.currentState == .streaming, chain.clock.now() >= limit { chain.drain() }
            if isWatching, watch.hasChanged(now: chain.clock.now()) { reload(chain, document) }
            for path in pluginWatch?.changed(now: chain.clock.now()) ?? [] {
                document.reloadPlugin(path, chain) { [replies, clock = chain.clock] in
                    replies.add($0, number: 0, tag: nil, time: clock.now())
                }
            }
            rules.tick()
            display.update(chain)
            supervision?.tick(chain)
            service?.look(chain)
        }
        let elapsed = Double(chain.clock.now() - start) / 1e9
        // Answers that come at the very end are judged too.
        let isQuiet = snapshots.finish()
        result.failures += rules.finish()
        service?.ended(isSuccess: result.isSuccess)
        planned.services.stop()
        display.finish(chain, result, elapsed: elapsed)
        supervision?.ended(chain)
        var failed = !result.isSuccess
        if let statsPath,
            let refusal = chain.files.write(
                statsPath, chain.figuresWithPlugins.text(pretty: true) + "\n", as: "--stats")
        {
            RunLog.logger.critical("--stats: \(refusal.fault(statsPath))")
            failed = true
        }
        // A stage may still be inside native code, so no destructors run.
        if !result.abandoned.isEmpty { _exit(1) }
        // Nor beside a thread that writes a picture.
        if !isQuiet { _exit(failed ? 1 : 0) }
        exit(failed ? 1 : 0)
    }
}
