// SPDX-License-Identifier: Apache-2.0

internal import CStageLink
import Glibc
import Synchronization

/// One process of an isolated stage, as the host sees it: started by the ``Supervisor``, called by the stage's thread.
///
/// `@unchecked Sendable`: who uses what is said beside each property.
final class StageLink: @unchecked Sendable {
    /// How far it has come. It only goes on, and ends in `gone`.
    enum State {
        case made
        /// A program has told what it is, and which version of the protocol it speaks.
        case described(JSONNode, version: Int)
        /// The stage is made and has negotiated.
        case negotiated(StageDemand, notes: [(text: String, isWarning: Bool)])
        /// Its frames may come.
        case ready
        case gone(Death)
    }

    /// Why it is gone.
    struct Death {
        /// What the process did, after its stage's name: `ended by signal 11 (Segmentation fault)`.
        var what: String
        /// What it wrote last, to standard output or standard error.
        var lastWords: [String] = []
        /// Faults that it told itself, of the stage's making, negotiation or start.
        var refusal: FrameHostErrors?

        /// For people, as one sentence without its full stop.
        var text: String {
            what + (lastWords.isEmpty ? "" : ". It wrote last: \(lastWords.joined(separator: " / "))")
        }
    }

    /// What came of a call.
    enum Answer {
        case reply(fh_reply)
        /// The process is gone, or is to be ended for the reason.
        case failed(String?)
        /// The run was stopped meanwhile. The process is still at the call.
        case stopped
    }

    /// Nil where the process is framehost itself, with a plugin.
    private let program: StageProgram?
    private let info: StageInfo?
    private let sandbox: IsolationRequest.Sandbox
    private let control: SharedBlock
    private let head: OpaquePointer
    let buffers: SharedBlock
    let bufferCount: Int
    private let calls: UnsafeMutablePointer<UInt32>
    private let replies: UnsafeMutablePointer<UInt32>
    private let asked: UnsafeMutablePointer<fh_call>
    private let answered: UnsafeMutablePointer<fh_reply>
    /// Text or metadata of a call, and of a reply.
    let callText: UnsafeMutablePointer<UInt8>
    let replyText: UnsafeMutablePointer<UInt8>
    // [stage thread]
    private var callCount: UInt32 = 0
    /// A bit for each buffer that the stage still reads.
    private(set) var heldBits: UInt64 = 0
    private(set) var isFirstCall = true

    // [isolation thread]
    private(set) var pid: pid_t = 0
    private(set) var process: Int32 = -1
    private(set) var socket: Int32 = -1
    private(set) var output: Int32 = -1
    private var line: [UInt8] = []
    private var words: [String] = []
    /// Why it is being killed; nil where it ends by itself.
    private var reason: String?
    private var refusal: FrameHostErrors?
    private var budget = MessageBudget()

    private let condition = Condition()
    // Under `condition`.
    private var stateNow = State.made
    private let isGoneFlag = Atomic(false)
    private let wasReadyFlag = Atomic(false)
    /// Whether it may end without a reason: its stage is over.
    let isLeaving = Atomic(false)
    /// [isolation thread] Gets what the process says, beside its state.
    let hear: @Sendable (JSONNode) -> Void
    /// [isolation thread] Called once for each state.
    let changed: @Sendable (StageLink) -> Void

    /// Makes the memory; nothing runs yet.
    ///
    /// - Parameter type: The stage that the process will run.
    /// - Throws: ``FrameHostError`` `.exhausted`.
    convenience init(
        _ format: VideoFormat, bufferCount: Int, of type: StageType, _ sandbox: IsolationRequest.Sandbox,
        hear: @escaping @Sendable (JSONNode) -> Void,
        changed: @escaping @Sendable (StageLink) -> Void
    ) throws {
        let layout = BufferLayout(format)
        try self.init(
            type.program, type.info, sandbox, bufferBytes: layout.byteCount, bufferCount: bufferCount, hear: hear,
            changed: changed)
        fh_control_begin(
            head, UInt32(bufferCount), UInt64(layout.byteCount), format.pixelFormat.rawValue, UInt32(format.width),
            UInt32(format.height))
        for (plane, offset) in layout.offsets.enumerated() {
            fh_control_add_plane(
                head,
                fh_plane(
                    offset: UInt64(offset), stride: UInt32(layout.strides[plane]),
                    rows: UInt32(format.pixelFormat.rows(plane: plane, height: format.height)),
                    row_bytes: UInt32(format.pixelFormat.rowBytes(plane: plane, width: format.width)), reserved: 0))
        }
    }

    /// A link to a program that is only asked what it is.
    ///
    /// - Throws: ``FrameHostError`` `.exhausted`.
    convenience init(_ program: StageProgram) throws {
        try self.init(program, nil, .usual, bufferBytes: 0, bufferCount: 0, hear: { _ in }, changed: { _ in })
    }

    private init(
        _ program: StageProgram?, _ info: StageInfo?, _ sandbox: IsolationRequest.Sandbox, bufferBytes: Int,
        bufferCount: Int,
        hear: @escaping @Sendable (JSONNode) -> Void, changed: @escaping @Sendable (StageLink) -> Void
    ) throws {
        control = try SharedBlock("framehost control", byteCount: Int(fh_control_bytes))
        buffers = try SharedBlock("framehost frames", byteCount: max(bufferBytes * bufferCount, 1))
        (self.program, self.info, self.sandbox, self.bufferCount) = (program, info, sandbox, bufferCount)
        (self.hear, self.changed) = (hear, changed)
        head = OpaquePointer(control.base)
        (calls, replies) = (fh_calls(head, 0), fh_replies(head, 0))
        (asked, answered) = (fh_call_of(head, 0), fh_reply_of(head, 0))
        callText = fh_call_text(head, 0)
        replyText = fh_reply_text(head, 0)
    }

    static var version: Int { Int(FH_LINK_VERSION) }

    deinit {
        for file in [process, socket, output] where file >= 0 { Glibc.close(file) }
    }

    private static func close(_ file: inout Int32) {
        if file >= 0 { Glibc.close(file) }
        file = -1
    }

    // MARK: State

    /// [any thread]
    var state: State { condition.locked { stateNow } }
    /// [any thread]
    var isGone: Bool { isGoneFlag.load(ordering: .acquiring) }
    /// [any thread] Whether frames may come to it, or might before it went.
    var wasReady: Bool { wasReadyFlag.load(ordering: .acquiring) }

    private func become(_ state: State) {
        condition.locked {
            // A program that has told what it is may end: its answer stands.
            if case .described = stateNow { return }
            stateNow = state
            condition.broadcast()
        }
        changed(self)
    }

    /// [control thread, setup thread] Waits until it has come so far, or is gone.
    ///
    /// - Parameter isRaised: Asked ten times a second; true ends the wait.
    func wait(seconds: Double, unless isRaised: () -> Bool = { false }, for isSo: (State) -> Bool) -> State {
        let end = MonotonicTime.now() + Int64(seconds * 1e9)
        return condition.locked {
            while !isSo(stateNow), MonotonicTime.now() < end, !isRaised() {
                if case .gone = stateNow { break }
                condition.wait(until: min(end, MonotonicTime.now() + 100_000_000))
            }
            return stateNow
        }
    }

    // MARK: Calls

    /// [stage thread] Where buffer `index` begins.
    func buffer(_ index: Int, byteCount: Int) -> UnsafeMutableRawPointer { buffers.base + index * byteCount }

    /// [stage thread] A buffer that the stage does not read any more; nil where it keeps all.
    var freeBuffer: Int? { (0..<bufferCount).first { heldBits & (1 << UInt64($0)) == 0 } }

    /// [stage thread] Asks the process, and waits for its answer, its end, or the deadline.
    ///
    /// Whoever writes into the counters from the other side wins nothing but the deadline: only the exact number answers.
    func call(
        _ operation: fh_op, buffer: Int = 0, item: fh_item = fh_item(), textBytes: Int = 0, nanoseconds: Int64,
        stop: StopSignal? = nil
    ) -> Answer {
        guard !isGone else { return .failed(nil) }
        asked.pointee = fh_call(
            op: operation.rawValue, buffer: UInt32(buffer), text_bytes: UInt32(textBytes), reserved: 0, item: item)
        let before = callCount
        callCount &+= 1
        fh_store(calls, callCount)
        fh_wake(calls)
        var end = MonotonicTime.now() &+ nanoseconds
        var patience = Patience(nanoseconds)
        while true {
            let count = fh_load(replies)
            if count == callCount { break }
            if count != before { return .failed("it counted its answers wrongly") }
            if isGone { return .failed(nil) }
            if stop?.isRaised == true { return .stopped }
            let left = end &- MonotonicTime.now()
            guard left > 0 else {
                // Not its fault, if it is one process of too many on this machine.
                guard patience.mayWait(for: pid) else {
                    return .failed("it did not answer within \(nanoseconds / 1_000_000) ms")
                }
                end &+= nanoseconds
                continue
            }
            // Short, since the end of the process or of the run may be noted between the looks and the wait.
            fh_wait(replies, count, min(left, 10_000_000))
        }
        isFirstCall = false
        // Once, since the other side may write at any time.
        let reply = answered.pointee
        guard reply.text_bytes <= UInt32(FH_LINK_TEXT) else {
            return .failed("it answered with a text that is too long")
        }
        heldBits = reply.held
        return .reply(reply)
    }

    /// [stage thread] The text of a reply, read once.
    func text(of reply: fh_reply) -> JSONNode? {
        let bytes = Array(UnsafeBufferPointer(start: replyText, count: Int(reply.text_bytes)))
        return bytes.isEmpty ? nil : try? JSONReader.read(bytes, file: "stage")
    }

    /// [stage thread] Puts a text beside the next call; false where it is too long.
    func write(_ node: JSONNode) -> Int? {
        let bytes = Array(node.text().utf8)
        guard bytes.count <= Int(FH_LINK_TEXT) else { return nil }
        callText.update(from: bytes, count: bytes.count)
        return bytes.count
    }

    // MARK: The process

    /// [isolation thread] Starts it. A thread that ends would take the process with it (prctl(2), PR_SET_PDEATHSIG).
    func start(_ make: JSONNode) {
        var ends: [Int32] = [-1, -1]
        let kind = Int32(SOCK_SEQPACKET.rawValue | SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, kind, 0, &ends) == 0 else { return fall(errno, "socketpair") }
        var said: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &said) == 0 else {
            let code = errno
            for end in ends { Glibc.close(end) }
            return fall(code, "socketpair")
        }
        // All are 16 or more then, so that dup2 overwrites none.
        let given = [ends[1], control.file, buffers.file].map { fcntl($0, F_DUPFD_CLOEXEC, 16) }
        let voice = fcntl(said[1], F_DUPFD_CLOEXEC, 16)
        Glibc.close(ends[1])
        Glibc.close(said[1])
        (socket, output) = (ends[0], said[0])
        for file in [socket, output] { _ = fcntl(file, F_SETFL, O_NONBLOCK) }
        defer { for file in given + [voice] where file >= 0 { Glibc.close(file) } }
        guard given.allSatisfy({ $0 >= 0 }), voice >= 0 else { return fall(errno, "fcntl") }
        let code = spawn(given, voice)
        guard code == 0 else { return fall(code, "posix_spawn") }
        fh_control_set_starts(head, make["starts"]?.asBool == true ? 1 : 0)
        process = fh_process(pid)
        guard process >= 0 else { return end("its process cannot be watched: \(String(cString: strerror(errno)))") }
        _ = fcntl(process, F_SETFD, FD_CLOEXEC)
        say(make)
    }

    private func spawn(_ given: [Int32], _ voice: Int32) -> Int32 {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, voice, 1)
        posix_spawn_file_actions_adddup2(&actions, voice, 2)
        for (number, file) in zip([FH_LINK_SOCKET, FH_LINK_CONTROL, FH_LINK_BUFFERS], given) {
            posix_spawn_file_actions_adddup2(&actions, file, Int32(number))
        }
        Descriptors.close(from: Int32(FH_LINK_BUFFERS) + 1, in: &actions)
        // A program is started by framehost too, which ties it to this process first.
        let arguments =
            ["stage-child", String(getpid()), sandbox.rawValue] + (program.map { ["--"] + $0.arguments } ?? [])
        var variables = program?.environment ?? [:]
        // A backtrace takes seconds, in which a crashed process would seem to hang.
        variables["SWIFT_BACKTRACE"] = "enable=no"
        return OwnProgram.spawn(arguments, variables: variables, &actions, pid: &pid)
    }

    private func fall(_ code: Int32, _ call: String) {
        refusal = FrameHostErrors([
            FrameHostError(
                .exhausted, what: "no process can be started for it: \(call): \(String(cString: strerror(code)))",
                remedy: "Raise the limits of processes and open files (ulimit -u, ulimit -n), or isolate fewer stages.",
                reason: .of(errno: code))
        ])
        isOver("could not be started")
    }

    /// [isolation thread]
    func say(_ message: JSONNode) {
        let bytes = Array(message.text().utf8)
        guard bytes.count <= Int(FH_LINK_MESSAGE) else {
            return end("its options are longer than \(FH_LINK_MESSAGE) bytes")
        }
        let sent = SystemCall.retrying { send(socket, bytes, bytes.count, Int32(MSG_NOSIGNAL)) }
        if sent < 0 { end("it cannot be spoken to: \(String(cString: strerror(errno)))") }
    }

    /// [isolation thread] Kills it, for this reason.
    func end(_ why: String?) {
        if reason == nil { reason = why }
        if pid > 0, !isGone { kill(pid, SIGKILL) }
        if pid == 0 || process < 0 { isOver(why ?? "was ended") }
    }

    /// [isolation thread] Reads what it says and writes, and notes its end.
    func look(socket isSocket: Bool, output isOutput: Bool, process isOver: Bool) {
        if isSocket || isOver { readSocket() }
        if isOutput || isOver { readOutput() }
        if isOver { reap() }
    }

    private func readSocket() {
        var bytes = [UInt8](repeating: 0, count: Int(FH_LINK_MESSAGE))
        for _ in 0..<64 {
            let count = SystemCall.retrying { recv(socket, &bytes, bytes.count, Int32(MSG_DONTWAIT)) }
            // Closed: nothing comes any more, and poll(2) would tell it again and again.
            if count == 0 { Self.close(&socket) }
            guard count > 0 else { break }
            guard let message = try? JSONReader.read(Array(bytes[..<count]), file: "stage") else {
                return end("it said what is not JSON")
            }
            take(message)
        }
    }

    private func take(_ message: JSONNode) {
        if let words = message["describe"] {
            guard case .made = state else { return end("it told what it is twice") }
            become(.described(words, version: message["version"]?.asInt ?? 0))
        } else if let words = message["negotiated"] {
            let asked =
                if let program, let info { LinkWords.demand(of: info, program) } else { LinkWords.demand(words) }
            guard case .made = state, let demand = asked else {
                return end("it negotiated what cannot be")
            }
            let notes = (message["notes"]?.asArray ?? []).prefix(100).compactMap { note in
                note["text"]?.asString.map { (text: $0, isWarning: note["isWarning"]?.asBool ?? false) }
            }
            become(.negotiated(demand, notes: notes))
        } else if message["ready"] != nil {
            guard case .negotiated = state else { return end("it was ready before it had negotiated") }
            wasReadyFlag.store(true, ordering: .releasing)
            become(.ready)
        } else if message["faults"] != nil {
            refusal = refusal ?? LinkWords.faults(message)
        } else {
            let (isHeard, lost) = budget.take()
            if lost > 0 { hear(["lost": .number(lost)]) }
            if isHeard { hear(message) }
        }
    }

    private func readOutput() {
        var bytes = [UInt8](repeating: 0, count: 4096)
        for _ in 0..<64 {
            let count = SystemCall.retrying { read(output, &bytes, bytes.count) }
            if count == 0 { Self.close(&output) }
            guard count > 0 else { break }
            for byte in bytes[..<count] {
                if byte == 10 { endLine() } else if line.count < 400 { line.append(byte) }
            }
        }
    }

    private func endLine() {
        let text = String(decoding: line, as: UTF8.self).printable()
        line.removeAll(keepingCapacity: true)
        guard text.contains(where: { !$0.isWhitespace }) else { return }
        words.append(text)
        if words.count > 3 { words.removeFirst() }
    }

    private func reap() {
        // What it has started is of its group, whose number is its own until it is waited for.
        kill(-pid, SIGKILL)
        var status: Int32 = 0
        let result = SystemCall.retrying { waitpid(pid, &status, WNOHANG) }
        guard result != 0 else { return }
        endLine()
        let signal = status & 0x7f
        isOver(
            reason.map { "was ended, because \($0)" }
                ?? (signal != 0
                    ? "ended by signal \(signal) (\(String(cString: strsignal(signal))))"
                    : "ended with status \((status >> 8) & 0xff)"))
    }

    private func isOver(_ what: String) {
        guard !isGoneFlag.exchange(true, ordering: .acquiringAndReleasing) else { return }
        Self.close(&process)
        Self.close(&socket)
        Self.close(&output)
        fh_wake(replies)
        become(.gone(Death(what: what, lastWords: words, refusal: refusal)))
    }
}
