// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameSupport
import Glibc

/// Reads `--commands` from standard input on a thread of its own: one JSON object a line, at most 64 KiB.
///
/// The taker decides what a line may say. The end of standard input ends the reading, not the chain. Each line that was
/// read gets one answer, also where the run ends meanwhile.
final class CommandReader: Sendable {
    /// Finds the chain that a line is for.
    protocol Taker: Sendable {
        var clock: ChainClock { get }
        /// What a line must be, as a sentence that says what to write.
        var form: String { get }

        /// The command to carry out, the language that does so, and which of several chains it is.
        ///
        /// - Throws: ``FrameHostError`` where the command is not for a running chain.
        func addressed(_ command: JSONNode) throws -> (language: CommandLanguage, command: JSONNode, chain: String?)
    }

    /// How long the end of the run goes on to answer what was sent before it, ns; and how long it waits for that.
    private static let longestRest: Int64 = 200_000_000
    private static let longestEnd: Int64 = 400_000_000
    private static let mostLine = 65536

    private let taker: any Taker
    private let replies: CommandReplies
    /// Raised when the run is over: lines are answered so, and no longer carried out.
    private let isClosing = WaitableFlag()
    private let hasEnded = WaitableFlag()
    private let input: Int32
    /// Ends the wait for input.
    private let wake = PipeEnds(blocks: false)

    /// - Parameters:
    ///   - replies: Where the answers go.
    ///   - input: Where the lines come from.
    init(_ taker: any Taker, _ replies: CommandReplies, input: Int32 = STDIN_FILENO) {
        self.taker = taker
        self.replies = replies
        self.input = input
    }

    deinit { wake.close() }

    /// Begins to read.
    ///
    /// - Parameter replies: Where the answers go.
    static func start(_ taker: any Taker, _ replies: CommandReplies) -> CommandReader? {
        let reader = CommandReader(taker, replies)
        do {
            try ServiceThread.start(name: "commands", mostlyWaits: true) { reader.read() }
            return reader
        } catch {
            var fault = FrameHostError.wrap(error)
            fault.place = FaultPlace(argument: "--commands")
            RunLog.logger.critical("\(fault) framehost goes on, but reads no commands.")
            return nil
        }
    }

    /// [control thread] The run is over. Answers what was sent until now, as far as it is there, and waits for that.
    func finish() {
        isClosing.raise()
        var byte: UInt8 = 0
        _ = write(wake.write, &byte, 1)
        hasEnded.wait(until: now + Self.longestEnd)
    }

    private var now: Int64 { MonotonicTime.now() }

    // MARK: The thread

    /// Reads until the end of the input or of the run.
    func read() {
        var lines = LineBuffer(mostBytes: Self.mostLine)
        var buffer = [UInt8](repeating: 0, count: 4096)
        var end: Int64?
        defer { hasEnded.raise() }
        while true {
            if end == nil, isClosing.isRaised { end = now + min(Self.longestRest, OutputWriter.shared.timeLeft) }
            if let end {
                guard now < end, !replies.isFull, isThere(within: 0) else { return }
            } else if !isThere(within: -1) {
                continue
            }
            let count = Glibc.read(input, &buffer, buffer.count)
            // Another program that shares the pipe or terminal may have made it non-blocking, and may have read it.
            if count < 0, [EINTR, EAGAIN].contains(errno) { continue }
            guard count > 0 else {
                if count < 0 { complain(errno) }
                // The last line may have no line feed.
                if let line = lines.takeRest() { answer(line) }
                return
            }
            lines.add(buffer[..<count])
            while let line = lines.take() { answer(line) }
        }
    }

    private func complain(_ code: Int32) {
        RunLog.logger.warning(
            "--commands: standard input cannot be read: \(String(cString: strerror(code))). framehost goes on, but reads no further commands. Start it again to send more."
        )
    }

    /// Waits for input; false where there is none, or where the run has ended meanwhile.
    ///
    /// - Parameter patience: Milliseconds; -1 for any time.
    private func isThere(within patience: Int32) -> Bool {
        var files = [pollfd(fd: input, events: Int16(POLLIN), revents: 0)]
        // Without the pipe, since no descriptor was left, it looks now and then whether the run has ended.
        let hasWake = wake.isOpen
        if patience != 0, hasWake { files.append(pollfd(fd: wake.read, events: Int16(POLLIN), revents: 0)) }
        guard poll(&files, nfds_t(files.count), patience < 0 && !hasWake ? 50 : patience) > 0 else { return false }
        return files[0].revents != 0
    }

    /// Answers a line. Its number is that of the line, without empty ones.
    private func answer(_ line: LineBuffer.Line) {
        waitForRoom()
        switch line.content {
        case .tooLong:
            reply(line.number)(
                CommandAnswer(
                    stage: nil,
                    error: FrameHostError(
                        .invalidConfiguration, what: "the line is longer than \(Self.mostLine) bytes",
                        remedy: "Send one command per line, and reload a long chain from a file.")))
        case .bytes(let bytes): perform(bytes, line.number)
        }
    }

    /// Answers line `number`.
    private func reply(_ number: Int, _ tag: JSONNode? = nil, chain: String? = nil) -> CommandReply {
        { [replies, clock = taker.clock] in
            replies.add($0, number: number, tag: tag, time: clock.now(), chain: chain)
        }
    }

    /// Waits until answers have been written: who does not read them must not fill the memory.
    private func waitForRoom() { while replies.isFull, !isClosing.isRaised { usleep(2_000) } }

    private func perform(_ line: [UInt8], _ number: Int) {
        var tag: JSONNode?
        do {
            let node = try JSONReader.read(line, file: "command", remedy: taker.form)
            tag = node["tag"]
            guard !isClosing.isRaised else {
                throw FrameHostError(
                    .unavailable, what: "the run has ended",
                    remedy: "Start it again, and send the command while it runs.")
            }
            let (language, command, chain) = try taker.addressed(node)
            language.perform(command, reply: reply(number, tag, chain: chain))
        } catch {
            reply(number, tag)(CommandAnswer(stage: nil, error: error))
        }
    }
}
