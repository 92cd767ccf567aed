// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc

/// Closes what the new program would inherit. glibc has it from 2.34 on, and Swift's Glibc does not show it.
@_silgen_name("posix_spawn_file_actions_addclosefrom_np") private func addCloseFrom(
    _ actions: UnsafeMutablePointer<posix_spawn_file_actions_t>, _ first: Int32
) -> Int32

/// A program that runs: what it says is collected while a test waits for something.
final class RunningProgram {
    let pid: pid_t
    private let name: String
    private let begin = Date()
    private var input: Int32
    private var readers: [Int32]
    private var texts: [[UInt8]] = [[], []]
    private var status: Int?
    private var processorSeconds = 0.0
    private var framesAsked = 0
    private var commandsSent = 0
    /// Whether what it says is read: false is a pager that was stopped.
    var (readsOutput, readsError) = (true, true)
    private static let spawning = NSLock()

    init(_ executable: String, _ arguments: [String], environment: [String: String], folder: String?, onTerminal: Bool)
        throws
    {
        name = ([executable.split(separator: "/").last.map(String.init) ?? executable] + arguments).joined(
            separator: " ")
        // A program that has gone must not take the tests with it.
        signal(SIGPIPE, SIG_IGN)
        // One at a time: no program may inherit the pipes of another, or that one's end is never seen.
        Self.spawning.lock()
        defer { Self.spawning.unlock() }
        let (stdinRead, stdinWrite) = try Self.pipe()
        let (stdoutRead, stdoutWrite) = try Self.pipe()
        let (stderrRead, stderrWrite) = onTerminal ? try Self.terminal() : try Self.pipe()
        input = stdinWrite
        readers = [stdoutRead, stderrRead]
        defer { for file in [stdinRead, stdoutWrite, stderrWrite] { close(file) } }

        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for (number, file) in [stdinRead, stdoutWrite, stderrWrite].enumerated() {
            posix_spawn_file_actions_adddup2(&actions, file, Int32(number))
        }
        // Sockets that libraries of other tests opened without close-on-exec: a copy would keep a connection open that
        // its server has closed.
        _ = addCloseFrom(&actions, 3)

        // Signals as in a fresh shell, and a group of its own, so that all of it can be killed.
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var all = sigset_t()
        sigfillset(&all)
        posix_spawnattr_setsigdefault(&attributes, &all)
        var none = sigset_t()
        sigemptyset(&none)
        posix_spawnattr_setsigmask(&attributes, &none)
        posix_spawnattr_setpgroup(&attributes, 0)
        posix_spawnattr_setflags(
            &attributes, Int16(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP))

        var variables = ProcessInfo.processInfo.environment
        variables["FRAMEHOST_PLUGIN_PATH"] = nil
        for (key, value) in environment { variables[key] = value }
        let command = (folder.map { ["/usr/bin/env", "-C", $0] } ?? []) + [executable] + arguments
        let argv: [UnsafeMutablePointer<CChar>?] = command.map { strdup($0) } + [nil]
        let envp: [UnsafeMutablePointer<CChar>?] = variables.map { strdup("\($0)=\($1)") } + [nil]
        defer { for pointer in argv + envp { free(pointer) } }
        var pid = pid_t()
        let result = posix_spawn(&pid, command[0], &actions, &attributes, argv, envp)
        self.pid = pid
        guard result == 0 else { throw TestFault("\(name) cannot be run: \(String(cString: strerror(result)))") }
    }

    deinit {
        if status == nil {
            kill(-pid, SIGKILL)
            var raw: Int32 = 0
            waitpid(pid, &raw, 0)
        }
        for file in readers + [input] where file >= 0 { close(file) }
    }

    private static func pipe() throws -> (read: Int32, write: Int32) {
        var ends: [Int32] = [0, 0]
        guard Glibc.pipe(&ends) == 0 else { throw TestFault("no pipe: \(String(cString: strerror(errno)))") }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        return (ends[0], ends[1])
    }

    /// The two ends of a pseudo terminal.
    private static func terminal() throws -> (read: Int32, write: Int32) {
        // ptsname(3) and unlockpt(3) are not in Swift's Glibc; these are what they do.
        let (unlock, number): (UInt, UInt) = (0x4004_5431, 0x8004_5430)  // TIOCSPTLCK, TIOCGPTN
        let ours = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
        var value: Int32 = 0
        guard ours >= 0, ioctl(ours, unlock, &value) == 0, ioctl(ours, number, &value) == 0 else {
            throw TestFault("no pseudo terminal: \(String(cString: strerror(errno)))")
        }
        let theirs = open("/dev/pts/\(value)", O_RDWR | O_NOCTTY | O_CLOEXEC)
        guard theirs >= 0 else { throw TestFault("no pseudo terminal: \(String(cString: strerror(errno)))") }
        return (ours, theirs)
    }

    // MARK: Talking with it

    var output: String { String(decoding: texts[0], as: UTF8.self) }
    var error: String { String(decoding: texts[1], as: UTF8.self) }

    func write(_ text: String) throws {
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes { Glibc.write(input, $0.baseAddress, $0.count) }
            if count < 0, errno == EINTR { continue }
            guard count > 0 else {
                throw TestFault("\(name) does not read its input: \(String(cString: strerror(errno)))")
            }
            bytes = bytes.dropFirst(count)
        }
    }

    func closeInput() {
        if input >= 0 { close(input) }
        input = -1
    }

    /// As a reader that goes, such as `head`.
    func closeOutput() {
        close(readers[0])
        readers[0] = -1
    }

    func send(_ signal: Int32) {
        // Once it was waited for, another program may have its number.
        if status == nil { kill(pid, signal) }
    }

    /// Collects what it says for a while.
    func listen(seconds: Double) { pump(until: Date() + seconds) { false } }

    /// Waits until it has said `text`.
    func waitForOutput(_ text: String, timeout: Double = 180) throws { try wait(for: text, in: 0, timeout) }

    func waitForError(_ text: String, timeout: Double = 180) throws { try wait(for: text, in: 1, timeout) }

    /// Waits until it has said so many lines.
    func waitForLines(_ count: Int, timeout: Double = 180) throws {
        let isThere = { [self] in texts[0].count { $0 == UInt8(ascii: "\n") } >= count }
        pump(until: Date() + timeout, isThere)
        guard isThere() else { throw TestFault("\(name) did not say \(count) lines within \(timeout) s.\n\(said)") }
    }

    /// Asks a program with `--commands` for its figures until its sources have given so many frames: time that is
    /// counted in frames.
    func waitForFrames(_ count: Int, timeout: Double = 240) throws {
        let deadline = Date() + timeout
        while Date() < deadline {
            if try frames(timeout: max(1, deadline.timeIntervalSinceNow)) >= count { return }
            listen(seconds: 0.05)
        }
        throw TestFault("\(name) did not come to frame \(count) within \(timeout) s.\n\(said)")
    }

    /// How many frames the sources of a program with `--commands` have given: 0 before it knows.
    func frames(timeout: Double = 240) throws -> Int {
        framesAsked += 1
        let tag = "frames \(framesAsked)"
        try write("{ \"command\": \"figures\", \"tag\": \"\(tag)\" }\n")
        return try waitForAnswer(tag, timeout: timeout)["frame"].int ?? 0
    }

    /// Waits for the answer to the command with that tag, to the end of its line.
    private func waitForAnswer(_ tag: String, timeout: Double) throws -> JSON {
        let tag = #""tag":"\#(tag)""#
        try waitForOutput(tag, timeout: timeout)
        pump(until: Date() + timeout) { [self] in texts[0].last == UInt8(ascii: "\n") }
        let line = output.split(separator: "\n").last { $0.contains(tag) }
        return try line.map { try JSON(parsing: String($0)) } ?? JSON(nil)
    }

    /// Sends a command to a program with `--commands --events`, and gives its answer. A stage that gets no processor
    /// for a second refuses a change as a whole and gives no snapshot: then the command is sent again.
    ///
    /// - Parameter command: A JSON object without a tag: each time it has one of its own.
    func sendPatiently(_ command: String, timeout: Double = 180) throws -> JSON {
        guard let end = command.lastIndex(of: "}") else { throw TestFault("'\(command)' is no JSON object") }
        var refusal = ""
        for _ in 0..<20 {
            commandsSent += 1
            let tag = "sent \(commandsSent)"
            try write("\(command[..<end]), \"tag\": \"\(tag)\" }\n")
            let answer = try waitForAnswer(tag, timeout: timeout)
            refusal = answer["error"].string ?? ""
            guard refusal.contains("gave no picture within") || refusal.contains("so nothing was changed") else {
                return answer
            }
        }
        throw TestFault("\(name) refused '\(command)' 20 times: \(refusal)\n\(said)")
    }

    /// Waits until so many commands have been answered, those of `waitForFrames` and `sendPatiently` not counted.
    func waitForAnswers(_ count: Int, timeout: Double = 180) throws {
        let isThere = { [self] in
            output.split(separator: "\n").count {
                $0.contains(#""event":"command-answered""#) && !$0.contains(#""tag":"frames "#)
                    && !$0.contains(#""tag":"sent "#)
            } >= count
        }
        pump(until: Date() + timeout, isThere)
        guard isThere() else {
            throw TestFault("\(name) did not answer \(count) commands within \(timeout) s.\n\(said)")
        }
    }

    /// Waits until the program takes signals itself: before that one ends it as it ends any process.
    func waitUntilItTakesSignals(timeout: Double = 180) throws {
        let deadline = Date() + timeout
        while Date() < deadline {
            // proc(5): the mask of any thread but the one in sigwait, for which the kernel shows what it waits for as
            // open.
            let threads = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(pid)/task")) ?? []
            let isBlocked = threads.contains { thread in
                let status = (try? String(contentsOfFile: "/proc/\(pid)/task/\(thread)/status", encoding: .utf8)) ?? ""
                let line = status.split(separator: "\n").first { $0.hasPrefix("SigBlk:") }
                guard
                    let mask = line.flatMap({ UInt64($0.dropFirst(7).trimmingCharacters(in: .whitespaces), radix: 16) })
                else { return false }
                return mask >> (SIGINT - 1) & 1 == 1
            }
            if isBlocked { return }
            usleep(2000)
        }
        throw TestFault("\(name) did not block SIGINT within \(timeout) s.\n\(said)")
    }

    private func wait(for text: String, in index: Int, _ timeout: Double) throws {
        let wanted = Array(text.utf8)
        let isThere = { [self] in texts[index].contains(wanted) }
        pump(until: Date() + timeout, isThere)
        guard isThere() else { throw TestFault("\(name) did not say '\(text)' within \(timeout) s.\n\(said)") }
    }

    private var said: String { "Standard output: \(output.suffix(4000))\nStandard error: \(error.suffix(4000))" }

    /// Waits for its end, doing something ten times a second until then.
    func finish(timeout: Double = 180, _ repeatedly: () -> Void) throws -> Outcome {
        let deadline = Date() + timeout
        while status == nil, Date() < deadline {
            pump(until: Date() + 0.1) { false }
            reap()
            if status == nil { repeatedly() }
        }
        return try finish(timeout: max(0.1, deadline.timeIntervalSinceNow))
    }

    /// Waits for its end.
    func finish(timeout: Double = 180) throws -> Outcome {
        let deadline = Date() + timeout
        pump(until: deadline) { false }
        while status == nil, Date() < deadline {
            reap()
            if status == nil { usleep(2000) }
        }
        guard let status else {
            kill(-pid, SIGKILL)
            throw TestFault("\(name) did not end within \(timeout) s and was killed.\n\(said)")
        }
        return Outcome(
            status: status, output: output, error: error, seconds: Date().timeIntervalSince(begin),
            processorSeconds: processorSeconds)
    }

    /// Waits for its end, and reads nothing meanwhile.
    ///
    /// - Returns: The exit status; nil where it did not end.
    func waitForEnd(seconds: Double) -> Int? {
        let deadline = Date() + seconds
        while isRunning, Date() < deadline { usleep(2000) }
        return status
    }

    /// Whether it has not ended yet.
    var isRunning: Bool {
        reap()
        return status == nil
    }

    private func reap() {
        guard status == nil else { return }
        var raw: Int32 = 0
        var usage = rusage()
        guard wait4(pid, &raw, WNOHANG, &usage) == pid else { return }
        for time in [usage.ru_utime, usage.ru_stime] {
            processorSeconds += Double(time.tv_sec) + Double(time.tv_usec) / 1e6
        }
        let signal = Int(raw & 0x7f)
        status = signal == 0 ? Int(raw >> 8 & 0xff) : 128 + signal
    }

    /// Reads until both ends are closed, the time has come, or `isEnough`.
    private func pump(until deadline: Date, _ isEnough: () -> Bool) {
        var buffer = [UInt8](repeating: 0, count: 65536)
        while !isEnough() {
            let left = deadline.timeIntervalSinceNow
            let open = readers.indices.filter { readers[$0] >= 0 && [readsOutput, readsError][$0] }
            guard left > 0, !open.isEmpty else { return }
            var polls = open.map { pollfd(fd: readers[$0], events: Int16(POLLIN), revents: 0) }
            guard poll(&polls, nfds_t(polls.count), Int32(min(left * 1000 + 1, 200))) > 0 else { continue }
            for (poll, index) in zip(polls, open) where poll.revents != 0 {
                let count = read(readers[index], &buffer, buffer.count)
                if count > 0 {
                    texts[index] += buffer[..<count]
                } else if count == 0 || errno != EINTR {
                    // A terminal says EIO once nobody has it open.
                    close(readers[index])
                    readers[index] = -1
                }
            }
        }
    }
}

extension RunningProgram {
    /// How many changes it has refused as a whole since a stage got no processor for a second.
    var refusals: Int {
        output.split(separator: "\n").count {
            $0.contains(#""event":"command-answered""#) && $0.contains(", so nothing was changed")
        }
    }
}
