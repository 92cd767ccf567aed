// SPDX-License-Identifier: Apache-2.0

import Glibc
import Synchronization

/// Writes one sentence when code crashes, before the runtime's own long report: whose code it was, at which frame,
/// and what to do.
///
/// The signal handler writes prepared text: it takes no lock and allocates no memory (signal-safety(7)). It then
/// passes the signal on to its earlier handler (Swift's backtrace, or the default), so that the process still ends
/// by that signal.
public enum CrashReport {
    /// What the handler reads. Made once, never freed.
    private struct State: ~Copyable {
        let isWriting = Atomic<Bool>(false)
        /// The earlier handlers, by signal.
        let earlier: UnsafeMutablePointer<sigaction>
        let line: UnsafeMutablePointer<UInt8>
        var length = 0
        /// Threads that have entered, in any order; those that have ended stay.
        let threads: UnsafeMutablePointer<Unmanaged<ThreadState>?>
        let threadCount = Atomic<Int>(0)
    }

    /// The stages of one chain by their numbers. Never freed: the handler may look at any moment.
    struct Stages {
        fileprivate let table: UnsafeMutablePointer<Table>
    }

    fileprivate struct Table {
        let entries: UnsafeMutablePointer<StageEntry>
        var count = 0
        /// The beginning of each title where several chains run: `cam1: `. Empty for a single chain.
        let prefix: String
        let findPlugin: (_ use: String) -> String?
    }

    fileprivate struct StageEntry {
        var title: UnsafeMutablePointer<CChar>
        var kind: StageKind
        /// Nil once the stage has gone.
        var context: Unmanaged<StageContext>?
    }

    private static let signals = [SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE, SIGABRT]
    private static let lineBytes = 2048
    /// More than a chain of a thousand stages has.
    private static let mostThreads = 2048
    /// The most stages of a chain that can be named, including those that have gone.
    private static let mostStages = 8192
    /// The size of the stack that a handler runs on.
    private static let stackBytes = 64 << 10
    /// The places of threads that have ended.
    private static let freePlaces = Mutex<[Int]>([])
    /// Written on the control thread, before any thread that the handler could run on needs it.
    nonisolated(unsafe) private static var state: UnsafeMutablePointer<State>?

    /// [any thread] The process has crashed, and Swift's backtrace may be at work: it stops all threads by SIGUSR1, and
    /// they do not go on.
    public static var isCrashing: Bool { state?.pointee.isWriting.load(ordering: .relaxed) ?? false }

    // MARK: Getting ready

    /// [main thread, before any plugin is loaded] Installs the handler; a second call does nothing.
    public static func install() {
        guard state == nil else { return }
        let made = UnsafeMutablePointer<State>.allocate(capacity: 1)
        let earlier = UnsafeMutablePointer<sigaction>.allocate(capacity: 65)
        earlier.initialize(repeating: sigaction(), count: 65)
        let threads = UnsafeMutablePointer<Unmanaged<ThreadState>?>.allocate(capacity: mostThreads)
        threads.initialize(repeating: nil, count: mostThreads)
        made.initialize(to: State(earlier: earlier, line: .allocate(capacity: lineBytes), threads: threads))
        state = made
        CrashNote.enable()
        useOwnStack()
        var action = sigaction()
        action.__sigaction_handler.sa_sigaction = { signal, info, _ in CrashReport.handle(signal, info) }
        action.sa_flags = SA_SIGINFO | Int32(bitPattern: UInt32(SA_ONSTACK))
        for signal in signals { sigaction(signal, &action, earlier + Int(signal)) }
    }

    /// [any thread, at its start] Gives the handler a stack of its own, so that it can report an endless recursion
    /// too. `leave(_:_:)` frees it.
    public static func useOwnStack() {
        guard state != nil else { return }
        guard let memory = mmap(nil, stackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
            memory != MAP_FAILED
        else { return }
        var stack = stack_t(ss_sp: memory, ss_flags: 0, ss_size: stackBytes)
        sigaltstack(&stack, nil)
    }

    /// [stage thread, at its start] From here on a crash on this thread names the stage that the thread is in.
    ///
    /// - Returns: The place, for ``leave(_:_:)``.
    static func enter(_ thread: ThreadState) -> Int? {
        guard let state else { return nil }
        useOwnStack()
        thread.identity.store(UInt(pthread_self()), ordering: .relaxed)
        let place =
            freePlaces.withLock { $0.popLast() } ?? state.pointee.threadCount.add(1, ordering: .relaxed).oldValue
        guard place < mostThreads else { return nil }
        let earlier = state.pointee.threads[place]
        state.pointee.threads[place] = .passRetained(thread)
        earlier?.release()
        return place
    }

    /// [stage thread, at its end] Frees the place for another thread: every change of a chain has threads of its own.
    static func leave(_ thread: ThreadState, _ place: Int?) {
        guard state != nil else { return }
        thread.identity.store(0, ordering: .relaxed)
        // The entry itself stays until another thread takes the place: a handler may be reading it.
        if let place { freePlaces.withLock { $0.append(place) } }
        var stack = stack_t()
        guard sigaltstack(nil, &stack) == 0, stack.ss_flags & Int32(SS_DISABLE) == 0, stack.ss_sp != nil,
            stack.ss_size == stackBytes
        else { return }
        var none = stack_t(ss_sp: nil, ss_flags: Int32(SS_DISABLE), ss_size: 0)
        if sigaltstack(&none, nil) == 0 { munmap(stack.ss_sp, stack.ss_size) }
    }

    /// [control thread] From here on crashes on the threads of `chain`, which does not run yet, name its stages.
    ///
    /// - Parameters:
    ///   - chain: The chain.
    ///   - name: The chain's name where several chains run; nil for a single chain.
    ///   - plugin: Gives the file of a stage type, where it is known.
    public static func watch(_ chain: Chain, named name: String? = nil, plugin: @escaping (_ use: String) -> String?) {
        guard state != nil else { return }
        _ = Unmanaged.passRetained(chain)
        let table = UnsafeMutablePointer<Table>.allocate(capacity: 1)
        table.initialize(
            to: Table(
                entries: .allocate(capacity: mostStages), prefix: name.map { "\($0): " } ?? "", findPlugin: plugin))
        chain.crashStages = Stages(table: table)
        for runner in chain.runners { self.name(runner, in: chain) }
    }

    /// [control thread] Forgets a chain that was watched, so that it can be freed. The chain has ended, and none of
    /// its threads runs.
    public static func forget(_ chain: Chain) {
        guard let table = chain.crashStages?.table else { return }
        for index in 0..<table.pointee.count {
            table.pointee.entries[index].context?.release()
            table.pointee.entries[index].context = nil
        }
        chain.crashStages = nil
        Unmanaged.passUnretained(chain).release()
    }

    /// [control thread, desk's thread] From here on a crash in the code of `runner` names it. Its number is its
    /// place in the table.
    static func name(_ runner: StageRunner, in chain: Chain) {
        guard let stages = chain.crashStages, runner.number == stages.table.pointee.count, runner.number < mostStages
        else { return }
        let shown = runner.shown
        runner.crashStages = stages
        (stages.table.pointee.entries + runner.number).initialize(
            to: StageEntry(
                title: strdup(title(of: runner.id, shown.info.id, in: stages)), kind: runner.kind,
                context: .passRetained(shown.context)))
        stages.table.pointee.count += 1
    }

    /// [control thread, desk's thread] `odd (misbehave, /opt/plugins/libMisbehave.so)`, or `cam1: odd (…)` with
    /// several chains.
    static func title(of id: String, _ use: String, in stages: Stages?) -> String {
        let table = stages?.table.pointee
        return "\(table?.prefix ?? "")\(id) (\(use)\(table?.findPlugin(use).map { ", \($0)" } ?? ""))"
    }

    /// [the stage's own thread, between two items] The stage has another instance, perhaps of another kind.
    static func rename(_ runner: StageRunner, _ title: String) {
        guard let table = runner.crashStages?.table, runner.number < table.pointee.count else { return }
        let entry = table.pointee.entries + runner.number
        let earlier = entry.pointee
        entry.pointee.context = .passRetained(runner.shown.context)
        earlier.context?.release()
        guard String(cString: earlier.title) != title else { return }
        entry.pointee.title = strdup(title)
        free(earlier.title)
    }

    /// [control thread] The stage has ended; its title stays.
    static func forget(_ runner: StageRunner) {
        guard let table = runner.crashStages?.table, runner.number < table.pointee.count else { return }
        table.pointee.entries[runner.number].context?.release()
        table.pointee.entries[runner.number].context = nil
    }

    // MARK: The handler

    /// [any thread, inside a signal handler]
    private static func handle(_ signal: Int32, _ info: UnsafeMutablePointer<siginfo_t>?) {
        guard let state else { return }
        let code = errno
        let reason = info?.pointee.si_code ?? 0
        let isSent = reason <= 0
        // kill(2), sigqueue(3); what this program sends itself by abort(3) or raise(3) has another code, SI_TKILL.
        let sender = reason == SI_USER || reason == SI_QUEUE ? info?.pointee._sifields._kill.si_pid ?? 0 : getpid()
        let isFromOutside = isSent && sender != getpid()
        // A terminal that nobody reads must not keep the process: what follows takes half a minute.
        alarm(300)
        // Several threads may crash at once. Only the first writes.
        if !state.pointee.isWriting.exchange(true, ordering: .acquiring) {
            if isFromOutside { writeSent(state, signal, by: sender) } else { write(state, signal) }
        }
        if isSent, isFromOutside || signal != SIGABRT {
            // Swift's backtrace returns and relies on the fault to occur again. A signal that was sent does not
            // occur again, so the program would run on.
            var standard = sigaction()
            standard.__sigaction_handler.sa_handler = SIG_DFL
            sigaction(signal, &standard, nil)
        } else {
            sigaction(signal, state.pointee.earlier + Int(signal), nil)
        }
        errno = code
        // A processor fault occurs again when the instruction is tried again. A signal that was sent (abort, kill)
        // is sent again here.
        if isSent { raise(signal) }
    }

    /// Reports a signal from another process, which says nothing about this program's code: a person's `kill`, a
    /// service manager's watchdog.
    private static func writeSent(_ state: UnsafeMutablePointer<State>, _ signal: Int32, by process: pid_t) {
        state.pointee.length = 0
        add(state, "\nerror: the program was ended by ")
        switch signal {
        case SIGSEGV: add(state, "SIGSEGV")
        case SIGBUS: add(state, "SIGBUS")
        case SIGILL: add(state, "SIGILL")
        case SIGTRAP: add(state, "SIGTRAP")
        case SIGFPE: add(state, "SIGFPE")
        default: add(state, "SIGABRT")
        }
        if process > 0 {
            add(state, ", which process ")
            add(state, UInt64(process))
        } else {
            // pid_namespaces(7): the sender has no number here.
            add(state, ", which a process outside this container")
        }
        add(
            state,
            " sent. What was being written may be incomplete. Send SIGTERM instead: the chain then ends in order.\n")
        _ = Glibc.write(STDERR_FILENO, state.pointee.line, state.pointee.length)
    }

    private static func write(_ state: UnsafeMutablePointer<State>, _ signal: Int32) {
        state.pointee.length = 0
        let remedy: StaticString
        if let (stage, call, frame) = stage(state) {
            remedy =
                "To run without it, remove the stage from the chain. If the stage is not yours, send this and the lines that follow to its author."
            add(state, "\nerror: ")
            add(state, stage.pointee.title)
            add(state, " crashed in its call '")
            for byte in call.name(of: stage.pointee.kind).utf8 { add(state, byte: byte) }
            add(state, "'")
            if let frame {
                add(state, ", at frame ")
                add(state, frame)
            }
        } else if let note = CrashNote.text {
            remedy =
                "To run without it, leave out what is named here. If it is not yours, send this and the lines that follow to its author."
            add(state, "\nerror: the program crashed while ")
            add(state, note)
        } else {
            add(state, "\nerror: the program crashed outside the calls of its stages, in the thread '")
            addThreadName(state)
            add(state, "'")
            remedy =
                "Send this and the lines that follow to the authors of framehost, or of the plugin that started the thread."
        }
        add(state, ": ")
        switch signal {
        case SIGSEGV: add(state, "SIGSEGV, it used memory that is not mapped (or its stack overflowed)")
        case SIGBUS: add(state, "SIGBUS, it used mapped memory that its file or device does not have")
        case SIGILL, SIGTRAP:
            add(
                state,
                "a check in it failed, such as an index out of range, an overflow or a nil (Swift's own lines, above or below, may say which), or this processor lacks an instruction that it uses"
            )
        case SIGFPE: add(state, "SIGFPE, it divided a whole number by 0")
        default: add(state, "it called abort")
        }
        add(state, ". ")
        add(state, remedy)
        if hasBacktrace(state, signal) { add(state, " The backtrace can take half a minute.") }
        add(state, "\n")
        _ = Glibc.write(STDERR_FILENO, state.pointee.line, state.pointee.length)
    }

    /// Whether an earlier handler goes on, which is Swift's.
    private static func hasBacktrace(_ state: UnsafeMutablePointer<State>, _ signal: Int32) -> Bool {
        let earlier = state.pointee.earlier[Int(signal)]
        return earlier.sa_flags & SA_SIGINFO != 0 || earlier.__sigaction_handler.sa_handler != nil
    }

    /// The stage whose code this thread is in, and its frame.
    private static func stage(_ state: UnsafeMutablePointer<State>)
        -> (entry: UnsafeMutablePointer<StageEntry>, call: StageCall, frame: UInt64?)?
    {
        let own = UInt(pthread_self())
        // The newest entry first: the system may give the identity of an ended thread to a new one.
        for index in (0..<min(state.pointee.threadCount.load(ordering: .relaxed), mostThreads)).reversed() {
            guard let thread = state.pointee.threads[index] else { continue }
            let (inside, call, table) = thread._withUnsafeGuaranteedRef { thread in
                (
                    thread.identity.load(ordering: .relaxed) == own ? Int(thread.inside.load(ordering: .relaxed)) : -1,
                    thread.currentCall, thread.crashStages?.table
                )
            }
            guard let table, inside >= 0, inside < table.pointee.count else { continue }
            let entry = table.pointee.entries + inside
            return (entry, call, entry.pointee.context?._withUnsafeGuaranteedRef { $0.item.frame })
        }
        return nil
    }

    private static func add(_ state: UnsafeMutablePointer<State>, _ text: StaticString) {
        for index in 0..<text.utf8CodeUnitCount { add(state, byte: text.utf8Start[index]) }
    }

    private static func add(_ state: UnsafeMutablePointer<State>, _ text: UnsafeMutablePointer<CChar>) {
        var index = 0
        while text[index] != 0 {
            add(state, byte: UInt8(bitPattern: text[index]))
            index += 1
        }
    }

    private static func add(_ state: UnsafeMutablePointer<State>, _ number: UInt64) {
        var scale: UInt64 = 1
        while number / scale >= 10 { scale *= 10 }
        while scale > 0 {
            add(state, byte: UInt8(ascii: "0") + UInt8(truncatingIfNeeded: number / scale % 10))
            scale /= 10
        }
    }

    /// Leaves out what does not fit into the line.
    private static func add(_ state: UnsafeMutablePointer<State>, byte: UInt8) {
        guard state.pointee.length < lineBytes else { return }
        state.pointee.line[state.pointee.length] = byte
        state.pointee.length += 1
    }

    /// proc(5), comm: at most 15 bytes and a line feed.
    private static func addThreadName(_ state: UnsafeMutablePointer<State>) {
        let file = open("/proc/thread-self/comm", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return }
        defer { close(file) }
        for _ in 0..<15 {
            var byte: UInt8 = 0
            guard read(file, &byte, 1) == 1, byte != 10 else { return }
            add(state, byte: byte)
        }
    }
}
