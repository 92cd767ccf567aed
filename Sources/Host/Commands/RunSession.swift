import FrameCore
import Glibc
import Synchronization

/// One run of a chain in this process: signals, time limit, figures, exit status.
///
/// The main thread waits for signals, a control thread runs the chain and ends the process. `@unchecked Sendable`: the display is the
/// control thread's alone until `isFinished`.
final class RunSession: @unchecked Sendable {
    private let chain: Chain
    private let display: RunDisplay
    private let seconds: Double?
    private let statsPath: String?
    private let isFinished = Atomic<Bool>(false)
    private let isStopping = Atomic<Bool>(false)

    init(chain: Chain, display: RunDisplay, seconds: Double?, statsPath: String?) {
        self.chain = chain
        self.display = display
        self.seconds = seconds
        self.statsPath = statsPath
    }

    /// Runs the chain and ends the process with its exit status.
    func run() -> Never {
        var signals = sigset_t()
        sigemptyset(&signals)
        for signal in [SIGINT, SIGTERM, SIGHUP] { sigaddset(&signals, signal) }
        // Blocked here and so in every thread made from now on: they reach `sigwait` alone.
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
            Terminal.complain("no thread could be started: \(String(cString: strerror(result))).")
            exit(1)
        }
    }

    /// [main thread] First signal: drain. Second: stop. Third: end the process.
    private func waitForSignals(_ signals: sigset_t) -> Never {
        var signals = signals
        var count = 0
        while true {
            var signal: Int32 = 0
            guard sigwait(&signals, &signal) == 0 else { continue }
            count += 1
            switch count {
            case 1: chain.drain()
            case 2:
                chain.cancel()
                watchStop()
            default: _exit(1)
            }
        }
    }

    /// [main thread] The control thread reports stages that do not come back; only its own setup can keep it from doing so.
    private func watchStop() {
        for _ in 0..<30 {
            usleep(50_000)
            if chain.stageInSetup == nil { return }
        }
        if let stage = chain.stageInSetup {
            Terminal.complain("\(stage) is still starting 1 s after stop: abandoned.")
            _exit(1)
        }
    }

    // MARK: Control thread

    private func control() -> Never {
        let start = chain.clock.now()
        let limit = seconds.map { start + Int64($0 * 1e9) }
        let result = chain.run { [self] in
            if let limit, chain.clock.now() >= limit { chain.drain() }
            display.update(chain)
        }
        display.finish(chain, result, elapsed: Double(chain.clock.now() - start) / 1e9)
        var failed = !result.isSuccess
        if let statsPath, let why = Terminal.writeFile(statsPath, chain.statistics.text(pretty: true) + "\n") {
            Terminal.complain("\(statsPath): the figures could not be written: \(why). Name a file in a folder you may write to with --stats.")
            failed = true
        }
        // A stage may still be inside native code, so no destructors run.
        if !result.abandoned.isEmpty { _exit(1) }
        exit(failed ? 1 : 0)
    }
}
