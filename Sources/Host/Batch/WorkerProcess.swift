// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// One `framehost run` for one attempt, from its start to its end. [slot]
///
/// The worker is in a process group of its own, so that ctrl-C reaches only the batch. It has one end of a socket
/// (``BatchConnection``). The batch reads the log of the worker, which is JSON.
final class WorkerProcess {
    /// How an attempt went.
    struct Outcome {
        /// The reason of a failure; nil if the attempt went well.
        var fault: String?
        /// Whether another attempt would end the same way.
        var isFinal = false
        /// Whether the batch ended the worker.
        var isStopped = false
        /// The length of the input in seconds, if the batch ended the worker to divide the input.
        var dividedLength: Double?
        /// Whether the fault is one of this machine at this moment, and not of the input. Such a fault is not noted in
        /// the unit's folder.
        var isOfMachine = false
        var frames = 0
        var mediaSeconds = 0.0
        /// The first warnings of the worker.
        var warnings: [String] = []
        /// What the sources of the worker did not give of their inputs, as sentences without the full stop.
        var lacks: [String] = []
        /// What the chain lost on the way, although it is not meant to lose anything there. Sentences likewise.
        var drops: [String] = []
        /// What the sources of the worker say of their inputs, by the id of the stage.
        var accounts: JSONNode = .object([])
    }

    private let pid: pid_t
    private let line: Int32
    private let log: Int32
    private var lineText: [UInt8] = []
    private var logText: [UInt8] = []
    private var outcome = Outcome()
    private var errors: [String] = []
    /// Lines that are not part of the worker's log, such as prints of libraries.
    private var other: [String] = []
    private var planned: Int?
    private var length = 0.0
    private var hasIndex = false
    private var isGoing = false
    /// The reason of the fault that ended the worker, if the worker gave one.
    private var reason: FrameHostError.Reason?

    private static let mostWords = 20

    /// - Parameters:
    ///   - arguments: Without the program's name.
    ///   - variables: Variables of the environment, which replace others of the same name.
    ///   - owner: The owner's file. The worker inherits this descriptor, so that the lock lasts. -1 for none.
    ///   - output: The descriptor for the standard output of the worker; -1 to discard it.
    /// - Throws: ``FrameHostError`` if the process cannot be started.
    init(arguments: [String], variables: [(String, String)], owner: Int32, output: Int32 = -1) throws {
        var ends: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else {
            throw Self.cannot(errno)
        }
        // Not a pipe: pipe(2) cannot set close-on-exec at once, so a worker of another slot could inherit the pipe.
        var pipes: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &pipes) == 0 else {
            let code = errno
            for end in ends { close(end) }
            throw Self.cannot(code)
        }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        // All descriptors are 16 or more then, so that dup2 overwrites none.
        let (socket, said) = (fcntl(ends[1], F_DUPFD_CLOEXEC, 16), fcntl(pipes[1], F_DUPFD_CLOEXEC, 16))
        let (lock, written) = (fcntl(owner, F_DUPFD_CLOEXEC, 16), fcntl(output, F_DUPFD_CLOEXEC, 16))
        guard socket >= 0, said >= 0, owner < 0 || lock >= 0, output < 0 || written >= 0 else {
            let code = errno
            for file in ends + pipes + [socket, said, lock, written] where file >= 0 { close(file) }
            throw Self.cannot(code)
        }
        if written >= 0 {
            posix_spawn_file_actions_adddup2(&actions, written, 1)
        } else {
            posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0)
        }
        posix_spawn_file_actions_adddup2(&actions, said, 2)
        posix_spawn_file_actions_adddup2(&actions, socket, Self.lineNumber)
        if lock >= 0 { posix_spawn_file_actions_adddup2(&actions, lock, Self.lineNumber + 1) }
        Descriptors.close(from: Self.lineNumber + (lock >= 0 ? 2 : 1), in: &actions)
        var pid = pid_t()
        let result = OwnProgram.spawn(arguments, variables: Dictionary(variables) { $1 }, &actions, pid: &pid)
        for file in [ends[1], pipes[1], socket, said, lock, written] where file >= 0 { close(file) }
        guard result == 0 else {
            close(ends[0])
            close(pipes[0])
            throw Self.cannot(result)
        }
        self.pid = pid
        (line, log) = (ends[0], pipes[0])
        for file in [line, log] { _ = fcntl(file, F_SETFL, O_NONBLOCK) }
    }

    /// The worker's descriptor of the connection.
    static let lineNumber: Int32 = 3

    private static func cannot(_ code: Int32) -> FrameHostError {
        FrameHostError(
            .exhausted, place: "batch", what: "no worker could be started: \(String(cString: strerror(code)))",
            remedy: "Use fewer --jobs, or raise the limits of processes and open files (ulimit -u, ulimit -n).")
    }

    /// Reads what the worker says until the worker has ended.
    ///
    /// - Parameters:
    ///   - isStopping: Asked a few times a second; true ends the worker at once.
    ///   - hears: Gets each new number of frames.
    ///   - waits: Called once if the worker has to wait for memory.
    ///   - divides: Asked once, before the worker goes, with the length of the input in seconds and whether the input
    ///     lists all its pictures. True ends the worker.
    func finish(
        _ gate: MemoryGate, isStopping: () -> Bool, hears: (Int) -> Void, waits: (Int) -> Void,
        divides: (_ length: Double, _ hasIndex: Bool) -> Bool = { _, _ in false }
    ) -> Outcome {
        var (isLineOpen, isLogOpen) = (true, true)
        var hasWaited = false
        while isLineOpen || isLogOpen {
            var polls = [
                pollfd(fd: isLineOpen ? line : -1, events: Int16(POLLIN), revents: 0),
                pollfd(fd: isLogOpen ? log : -1, events: Int16(POLLIN), revents: 0),
            ]
            _ = poll(&polls, 2, 100)
            if isStopping() {
                outcome.isStopped = true
                kill(-pid, SIGKILL)
                break
            }
            if polls[0].revents != 0 { isLineOpen = take(line, &lineText) { hear($0, hears) } }
            if polls[1].revents != 0 { isLogOpen = take(log, &logText) { read($0) } }
            // A process that the worker started may keep the other end of the log open.
            if !isLineOpen, polls[1].revents == 0 { isLogOpen = false }
            if planned != nil, !isGoing, !hasWaited, divides(length, hasIndex) {
                outcome.dividedLength = length
                kill(-pid, SIGKILL)
                break
            }
            if let planned, !isGoing {
                switch gate.ask(planned) {
                case .go:
                    isGoing = true
                    var byte = UInt8(ascii: "g")
                    _ = send(line, &byte, 1, Int32(MSG_NOSIGNAL))
                case .wait:
                    if !hasWaited { waits(planned) }
                    hasWaited = true
                case .never:
                    (outcome.isFinal, outcome.isOfMachine) = (true, true)
                    let (needed, isTooMuch) = planned.addingReportingOverflow(MemoryGate.baseBytes)
                    errors = [
                        "a worker needs \(AvailableMemory.text(isTooMuch ? planned : needed)) of memory for this file, but all workers together may use only \(AvailableMemory.text(gate.bytes ?? 0)). Run the batch again when more memory is free, or on a machine with more memory."
                    ]
                    kill(-pid, SIGKILL)
                    isLineOpen = false
                    isLogOpen = false
                }
            }
        }
        close(line)
        close(log)
        if isGoing, let planned { gate.giveBack(planned) }
        var status: Int32 = 0
        _ = SystemCall.retrying { waitpid(pid, &status, 0) }
        judge(status)
        return outcome
    }

    private func judge(_ status: Int32) {
        guard !outcome.isStopped, outcome.dividedLength == nil else { return }
        let signal = status & 0x7f
        let code = (status >> 8) & 0xff
        if signal == 0, code == 0 { return }
        let words = errors.isEmpty ? other.suffix(3) : errors.prefix(3)
        let said = words.joined(separator: " ")
        if reason == .outOfResources { outcome.isOfMachine = true }
        if !outcome.isFinal { outcome.isFinal = signal == 0 && code == 2 }
        if !errors.isEmpty, outcome.isFinal || signal == 0 {
            outcome.fault = said
        } else if signal != 0 {
            let remedy = signal == SIGKILL ? " If dmesg reports that memory ran out, use fewer --jobs." : ""
            outcome.fault =
                "the worker was ended by signal \(signal) (\(String(cString: strsignal(signal))))"
                + (said.isEmpty ? "." + remedy : ": \(said)")
        } else {
            outcome.fault = "the worker ended with status \(code)" + (said.isEmpty ? " and said nothing." : ": \(said)")
        }
    }

    /// Reads the lines that are there; false at the end.
    private func take(_ file: Int32, _ text: inout [UInt8], _ each: ([UInt8]) -> Void) -> Bool {
        var buffer = [UInt8](repeating: 0, count: 1 << 14)
        let count = Glibc.read(file, &buffer, buffer.count)
        if count < 0 { return errno == EAGAIN || errno == EINTR }
        if count == 0 {
            if !text.isEmpty { each(text) }
            text = []
            return false
        }
        text += buffer[..<count]
        while let end = text.firstIndex(of: UInt8(ascii: "\n")) {
            each(Array(text[..<end]))
            text.removeSubrange(...end)
        }
        // None of our lines is that long.
        if text.count > 1 << 20 { text = [] }
        return true
    }

    private func hear(_ bytes: [UInt8], _ hears: (Int) -> Void) {
        guard let words = try? JSONReader.read(bytes, file: "worker") else { return }
        if planned == nil, let bytes = words["bytes"]?.asInt, bytes >= 0 { planned = bytes }
        if let seconds = words["length"]?.asDouble, seconds > 0 { length = seconds }
        if let index = words["hasIndex"]?.asBool { hasIndex = index }
        if let frames = words["frames"]?.asInt, frames >= outcome.frames, frames < 1 << 40 {
            hears(frames - outcome.frames)
            outcome.frames = frames
        }
        if let word = words["reason"]?.asString { reason = FrameHostError.Reason(rawValue: word) }
        if let lacks = words["lacks"]?.asArray { outcome.lacks = lacks.compactMap(\.asString) }
        if let drops = words["drops"]?.asArray { outcome.drops = drops.compactMap(\.asString) }
        if let accounts = words["accounts"], accounts.asObject != nil { outcome.accounts = accounts }
        if let seconds = words["mediaSeconds"]?.asDouble, seconds >= 0 { outcome.mediaSeconds = seconds }
    }

    /// A line of the worker's log.
    private func read(_ bytes: [UInt8]) {
        guard bytes.first == UInt8(ascii: "{"), let words = try? JSONReader.read(bytes, file: "worker"),
            let message = words["message"]?.asString
        else {
            other.append(String(decoding: bytes.prefix(500), as: UTF8.self))
            if other.count > Self.mostWords { other.removeFirst() }
            return
        }
        let stage = words["stage"]?.asString.map { "\($0): " } ?? ""
        let text = message.hasPrefix(stage) ? message : stage + message
        switch words["level"]?.asString {
        case "error", "critical": if errors.count < Self.mostWords { errors.append(text) }
        case "warning": if outcome.warnings.count < Self.mostWords { outcome.warnings.append(text) }
        default: break
        }
    }
}
