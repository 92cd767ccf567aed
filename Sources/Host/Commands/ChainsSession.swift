// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc
import Synchronization

/// A run of several chains in this process: signals, starts, what is shown of all, exit status.
///
/// The main thread waits for signals. The thread `chains` plans all chains, starts one after the other and looks
/// after them. Each chain has a control thread of its own. docs/design/031-several-chains.md. `@unchecked
/// Sendable`: only the thread `chains` uses what is not behind a lock.
final class ChainsSession: @unchecked Sendable {
    /// What the command line asks of all chains.
    struct Settings {
        var skipsWrong = false
        var readsCommands = false
        var statsPath: String?
        var watchesPlugins = false
        /// Whether standard output has JSON lines.
        var hasEvents = false
        /// Whether SIGUSR1 takes pictures of any chain.
        var takesPictures = false
        /// How long each chain may take (`--for`).
        var seconds: Double?
    }

    private typealias Entry = ChainsEntry

    /// What signals have asked for.
    private struct Stopping {
        var signals = 0
        var isGivingUp = false
        /// Whether all chains have been planned once.
        var isUnderWay = false
        /// Chains that have been handed to their control threads.
        var started: [Entry] = []
    }

    /// How long a chain that is being started may hold up the next one, µs, and how often that is looked at.
    private static let startPatience: useconds_t = 250_000
    private static let startLook: useconds_t = 2_000
    /// Time between two looks at the chains, µs.
    private static let pause: useconds_t = 50_000
    /// Time between two looks at the states for the service manager, ns.
    private static let noticePause: Int64 = 250_000_000

    private let settings: Settings
    private let display: ChainsDisplay
    private let replies: CommandReplies
    private let planning: () throws -> ChainsPlanning
    private let make: (ChainsPlanning, Int) -> RunSession
    /// Standard streams that were a terminal when the run began.
    private let terminals = (0...2 as ClosedRange<Int32>).filter { isatty($0) == 1 }
    private let service = SystemdNotify.ofEnvironment()
    private let stopping = Mutex(Stopping())
    private let clock = ChainClock()
    private var nextNotice = Int64.min
    /// When a signal was first seen by the thread `chains`.
    private var stopSeen: Int64?

    /// - Parameters:
    ///   - replies: Answers to commands, for `display` to show.
    ///   - planning: Looks for plugins.
    ///   - make: Makes the run of the chain with this index. The run plans nothing yet.
    init(
        _ settings: Settings, display: ChainsDisplay, replies: CommandReplies,
        planning: @escaping () throws -> ChainsPlanning, make: @escaping (ChainsPlanning, Int) -> RunSession
    ) {
        self.settings = settings
        self.display = display
        self.replies = replies
        self.planning = planning
        self.make = make
    }

    /// Runs the chains and ends the process with its exit status.
    func run() -> Never {
        // Only `sigwait` gets these signals.
        let signals = BlockedSignals.block([SIGINT, SIGTERM, SIGHUP, SIGUSR1])
        Terminal.begin(hasEvents: settings.hasEvents)
        do {
            try ServiceThread.start(name: "chains") { self.control() }
        } catch {
            ProgramEnd.afterRun(report(error).rawValue)
        }
        waitForSignals(signals)
    }

    // MARK: Main thread

    /// [main thread] SIGHUP reloads all chains, and SIGUSR1 takes pictures. Of other signals, the first drains, the
    /// second stops, and the third ends the process. ``RunSession`` does the same for one chain.
    private func waitForSignals(_ signals: sigset_t) -> Never {
        var signals = signals
        while true {
            let signal = BlockedSignals.wait(for: &signals)
            if signal == SIGHUP, reload() { continue }
            if signal == SIGUSR1 {
                takeSnapshots()
                continue
            }
            stop()
        }
    }

    /// Chains that have not ended. Their endings tell, since a run keeps its chain where a stage is still inside
    /// its own code.
    /// chain.
    private static func live(_ entries: [Entry]) -> [Chain] {
        entries.filter { entry in entry.ending.withLock { $0 == nil } }.compactMap(\.run.runningChain)
    }

    private func stop() {
        OutputWriter.shared.hurry()
        let (count, started, isUnderWay, wasGivingUp) = stopping.withLock { stopping in
            stopping.signals += 1
            let live = Self.live(stopping.started)
            let givesUp = !live.isEmpty && live.allSatisfy { $0.currentState == .finishing }
            defer { stopping.isGivingUp = stopping.isGivingUp || givesUp }
            return (stopping.signals, stopping.started, stopping.isUnderWay, stopping.isGivingUp)
        }
        guard !started.isEmpty || isUnderWay else {
            RunLog.logger.notice("Stopped before the chains were ready to run.")
            ProgramEnd.atOnce(1)
        }
        guard count < 3, !wasGivingUp else {
            RunLog.logger.error("\(RunSession.endedBySignal)")
            ProgramEnd.atOnce(1)
        }
        let live = Self.live(started)
        // Files that are being finished are given up only when nothing else is left to end.
        let finishing = live.filter { $0.currentState == .finishing }
        for chain in finishing.count == live.count ? live : live.filter({ $0.currentState != .finishing }) {
            if count == 1, chain.currentState != .finishing { chain.drain() } else { chain.cancel() }
        }
    }

    /// Returns false where SIGHUP means that the terminal has gone, or where no chain runs.
    private func reload() -> Bool {
        guard terminals.allSatisfy({ isatty($0) == 1 }) else { return false }
        let runs = stopping.withLock { $0.started.map(\.run) }
        let open = Locked((count: 1, refused: CommandAnswer?.none))
        let ended: CommandReply = { [service] answer in
            let last = open.withLock { open -> CommandAnswer? in
                open.count -= 1
                if !answer.isDone { open.refused = answer }
                return open.count == 0 ? open.refused ?? answer : nil
            }
            if let last { service?.reloadEnded(last) }
        }
        service?.reloadBegins()
        var count = 0
        for run in runs {
            open.withLock { $0.count += 1 }
            if run.reload(ended) { count += 1 } else { open.withLock { $0.count -= 1 } }
        }
        ended(CommandAnswer(stage: nil, frame: 0))
        // The files of chains that are tried again are read anew each time.
        return count > 0 || stopping.withLock { $0.isUnderWay }
    }

    private func takeSnapshots() {
        guard settings.takesPictures else { return RunLog.logger.warning("\(SignalSnapshots.nobodyAsked)") }
        for run in stopping.withLock({ $0.started.map(\.run) }) { run.takeSignalSnapshots() }
    }

    // MARK: The thread `chains`

    private func control() -> Never {
        CrashReport.useOwnStack()
        let prepared: (entries: [Entry], lookout: PluginLookout?)
        do {
            prepared = try prepare()
        } catch {
            ProgramEnd.afterRun(reportBeforeRun(error).rawValue)
        }
        let entries = prepared.entries
        let running = entries.filter { !$0.isWrong }
        do {
            try prepared.lookout?.start { changed in
                for entry in running {
                    for path in changed { entry.run.reloadPlugin(path) }
                    entry.run.retryPlugins()
                }
            }
        } catch {
            for entry in entries { entry.prepared?.planned.chain.discardTrace() }
            ProgramEnd.afterRun(report(error).rawValue)
        }
        let commands =
            settings.readsCommands
            ? CommandReader.start(
                ChainsCommands(running.map { entry in (entry.chain.name, { entry.run.runningLanguage }) }), replies)
            : nil
        let begin = clock.now()
        stopping.withLock { $0.isUnderWay = true }
        for entry in running {
            start(entry)
            waitForStart(of: entry, begin, running)
        }
        while running.contains(where: { !hasEnded($0) }) {
            usleep(Self.pause)
            look(running, begin)
            giveUpAwaited(running)
        }
        prepared.lookout?.stop()
        commands?.finish()
        finish(entries, begin)
    }

    /// Plans all chains.
    ///
    /// - Throws: ``FrameHostErrors`` of all chains. With ``Settings/skipsWrong``, only where no chain can be run or a
    ///   `--set` fits no chain.
    private func prepare() throws -> (entries: [Entry], lookout: PluginLookout?) {
        if let path = settings.statsPath, let fault = StatsFile.fault(ofReplacing: path) { throw fault }
        let planning = try self.planning()
        let lookout = settings.watchesPlugins ? try PluginLookout() : nil
        var faults: [FrameHostError] = []
        var entries: [Entry] = []
        for (index, chain) in planning.list.chains.enumerated() {
            let entry = Entry(chain, index, make(planning, index))
            entries.append(entry)
            do {
                let prepared = try entry.run.prepare()
                entry.prepared = prepared
                if let path = settings.statsPath,
                    let fault = prepared.planned.chain.fault(ofWriting: path, as: "--stats")
                {
                    throw fault
                }
            } catch let away as ChainAway {
                entry.away = away
            } catch {
                // An empty trace would be in the way of the next try.
                entry.prepared?.planned.chain.discardTrace()
                entry.prepared = nil
                faults += planning.faults(error, of: index)
                entry.isWrong = true
            }
        }
        let ofAll = planning.faultsOfSettings
        let isHopeless = !settings.skipsWrong || !entries.contains { !$0.isWrong } || !ofAll.isEmpty
        if !(faults + ofAll).isEmpty, isHopeless {
            for entry in entries { entry.prepared?.planned.chain.discardTrace() }
            throw FrameHostErrors(Self.unique(ofAll + faults))
        }
        for fault in Self.unique(faults) { RunLog.logger.error("\(fault)") }
        for entry in entries where entry.isWrong {
            RunLog.logger.error("'\(entry.chain.path)' is left out (--skip-wrong).")
        }
        // A plugin that an attached branch names may have been rebuilt since the registry read it.
        planning.registry.loadsCopies = true
        return (entries, lookout)
    }

    /// The faults without repetitions: several chains may have the same one.
    private static func unique(_ faults: [FrameHostError]) -> [FrameHostError] {
        var seen = Set<String>()
        return faults.filter { seen.insert($0.description).inserted }
    }

    /// Starts a chain, unless a signal has come.
    private func start(_ entry: Entry) {
        if let away = entry.away { return start(entry, away) }
        guard let prepared = entry.prepared else { return }
        entry.prepared = nil
        guard takes(prepared, entry) else {
            entry.isUnwanted = true
            entry.ending.withLock { $0 = RunSession.Ending(status: 0) }
            return entry.isOver.withLock { $0 = true }
        }
        let start = Entry.Handover(prepared)
        let isStarted = startThread(of: entry) { entry.run.perform(start.take(), keepsFigures: $0) }
        if !isStarted { prepared.planned.chain.discardTrace() }
    }

    /// Starts the control thread of a chain that is away. It plans the chain until it can run, so that no other chain
    /// waits for that.
    private func start(_ entry: Entry, _ away: ChainAway) {
        entry.away = nil
        var retry = ChainRetry()
        fail(entry, away, &retry)
        let first = retry
        startThread(of: entry) { self.awaitChain(entry, first, keepsFigures: $0) }
    }

    /// From here on signals and commands reach the chain. False where a signal has come: a signal is for all chains.
    private func takes(_ prepared: RunSession.Prepared, _ entry: Entry) -> Bool {
        let isWanted = stopping.withLock { stopping in
            guard stopping.signals == 0 else { return false }
            entry.run.take(prepared)
            stopping.started.append(entry)
            return true
        }
        if !isWanted { prepared.planned.chain.discardTrace() }
        return isWanted
    }

    @discardableResult
    private func startThread(
        of entry: Entry, _ run: @escaping @Sendable (_ keepsFigures: Bool) -> RunSession.Ending
    ) -> Bool {
        do {
            try ServiceThread.start(name: entry.chain.name) { [keepsFigures = settings.statsPath != nil] in
                CrashReport.useOwnStack()
                let ending = run(keepsFigures)
                entry.ending.withLock { $0 = ending }
                if ending.mayUnwind { entry.run.letGo() }
                entry.isOver.withLock { $0 = true }
            }
            return true
        } catch {
            display.say(.error, "\(FrameHostError.wrap(error))", chain: entry.chain.name)
            entry.ending.withLock { $0 = RunSession.Ending(status: 1, faults: ["\(FrameHostError.wrap(error))"]) }
            entry.run.letGo()
            entry.isOver.withLock { $0 = true }
            return false
        }
    }

    /// [thread `chains`, control thread of the chain] Says why a chain is away.
    private func fail(_ entry: Entry, _ away: ChainAway, _ retry: inout ChainRetry) {
        for reason in retry.failed(away.faults, now: clock.now()) {
            display.say(.warning, "\(reason) \(ChainRetry.promise)", chain: entry.chain.name)
        }
        let reasons = retry.reasons
        entry.awayReasons.withLock { $0 = reasons }
    }

    /// [control thread of the chain] Plans a chain until what it needs is there, and runs it.
    private func awaitChain(_ entry: Entry, _ first: ChainRetry, keepsFigures: Bool) -> RunSession.Ending {
        var retry = first
        let begin = clock.now()
        while true {
            while clock.now() < retry.due {
                let isLate = settings.seconds.map { clock.now() - begin >= MediaTime(seconds: $0).nanoseconds } ?? false
                guard !isLate, stopping.withLock({ $0.signals == 0 }) else {
                    display.say(
                        .error, "The chain ends without having begun: something is still away.", chain: entry.chain.name
                    )
                    return RunSession.Ending(status: 1, faults: retry.reasons)
                }
                usleep(Self.pause)
            }
            do {
                let prepared = try entry.run.prepare()
                guard takes(prepared, entry) else { continue }
                entry.awayReasons.withLock { $0 = [] }
                let waited = (clock.now() - begin) / 1_000_000
                display.say(
                    .notice, "What was away is there after \(waited) ms. The chain begins.", chain: entry.chain.name)
                return entry.run.perform(prepared, keepsFigures: keepsFigures)
            } catch let away as ChainAway {
                fail(entry, away, &retry)
            } catch {
                // Its file may be just being edited.
                let faults = (error as? FrameHostErrors) ?? FrameHostErrors([.wrap(error)])
                fail(entry, ChainAway(faults: faults), &retry)
            }
        }
    }

    private func waitForStart(of entry: Entry, _ begin: Int64, _ running: [Entry]) {
        for _ in 0..<Self.startPatience / Self.startLook {
            if let chain = entry.run.runningChain, [.stopped, .starting].contains(chain.currentState), !hasEnded(entry)
            {
                usleep(Self.startLook)
            } else {
                break
            }
        }
        look(running, begin)
    }

    /// How long after a signal a chain is waited for that is just being tried again, nanoseconds: a device or server that does
    /// not answer may take much longer.
    private static let awaitedPatience: Int64 = 1_000_000_000

    /// Leaves chains that are being tried again to themselves once the program is told to end. They have nothing open that
    /// could be finished.
    private func giveUpAwaited(_ running: [Entry]) {
        let (signals, started) = stopping.withLock { ($0.signals, $0.started) }
        guard signals > 0 else { return }
        let now = clock.now()
        let since = stopSeen ?? now
        stopSeen = since
        guard now - since > Self.awaitedPatience else { return }
        for entry in running where !hasEnded(entry) && !started.contains(where: { $0 === entry }) {
            let reasons = entry.awayReasons.withLock { $0 }
            entry.ending.withLock { $0 = $0 ?? RunSession.Ending(status: 1, faults: reasons) }
            entry.isOver.withLock { $0 = true }
        }
    }

    private func hasEnded(_ entry: Entry) -> Bool { entry.isOver.withLock { $0 } }

    /// Shows answers and the progress, and tells the service manager.
    private func look(_ running: [Entry], _ begin: Int64, isLast: Bool = false) {
        let now = clock.now()
        display.update(replies, now: now, isLast: isLast)
        let isTold = service != nil && now >= nextNotice
        guard isTold || display.isDue(now: now, begin: begin) else { return }
        let members = running.map { entry in
            let ending = entry.ending.withLock { $0 }
            let chain = ending == nil ? entry.run.runningChain : nil
            let progress = chain?.progress
            let failed = ending.map { $0.status != 0 } ?? false
            let away = ending == nil ? entry.awayReasons.withLock { $0 } : []
            let none = ChainStatus(
                state: ending == nil ? .starting : failed ? .failed : .stopped, stages: [],
                problems: ending?.faults ?? (away.isEmpty ? ["The chain is starting."] : away))
            return ChainsDisplay.Member(
                status: ChainsStatus.Member(
                    name: entry.chain.name, status: chain?.status ?? none, isFlowing: (progress?.captured ?? 0) > 0,
                    hasEnded: ending != nil, isAway: !away.isEmpty),
                captured: progress?.captured ?? ending?.captured ?? 0,
                dropped: progress?.dropped ?? ending?.dropped ?? 0)
        }
        display.showProgress(members, now: now, begin: begin)
        guard isTold, let service else { return }
        nextNotice = now + Self.noticePause
        let all = ChainsStatus(members.map(\.status), age: now - begin)
        service.look(at: all.status, isFlowing: all.isFlowing)
    }

    private func finish(_ entries: [Entry], _ begin: Int64) -> Never {
        let endings = entries.map { entry in entry.ending.withLock { $0 } }
        look([], begin, isLast: true)
        let failed = zip(entries, endings).filter { entry, ending in !entry.isWrong && ending?.status ?? 0 != 0 }
            .map { $0.0.chain.name }
        let leftOut = entries.filter(\.isWrong).map(\.chain.name)
        let isSuccess = failed.isEmpty && leftOut.isEmpty
        var status: Int32 = isSuccess ? 0 : 1
        service?.ended(isSuccess: isSuccess)
        display.finish(count: entries.count, failed: failed, leftOut: leftOut)
        if let path = settings.statsPath,
            let fault = StatsFile.write(
                .object([("chains", .array(zip(entries, endings).map { $0.figures($1) }))]), to: path, RunFiles())
        {
            RunLog.logger.critical("\(fault)")
            status = 1
        }
        ProgramEnd.afterRun(status, mayUnwind: endings.allSatisfy { $0?.mayUnwind ?? true })
    }
}
