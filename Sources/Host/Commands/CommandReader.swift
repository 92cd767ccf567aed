// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Reads `--commands` from standard input on a thread of its own: one JSON object a line, at most 64 KiB.
///
/// The taker decides what a line may say. The end of standard input ends the reading, not the chain.
enum CommandReader {
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

    private final class Context: @unchecked Sendable {
        let taker: any Taker
        let replies: CommandReplies

        init(_ taker: any Taker, _ replies: CommandReplies) {
            self.taker = taker
            self.replies = replies
        }

        /// Answers line `number`.
        func reply(_ number: Int, _ tag: JSONNode? = nil, chain: String? = nil) -> CommandReply {
            { [replies, clock = taker.clock] in
                replies.add($0, number: number, tag: tag, time: clock.now(), chain: chain)
            }
        }

        /// Waits until answers have been written: who does not read them must not fill the memory.
        func waitForRoom() { while replies.isFull { usleep(2_000) } }

        func perform(_ line: [UInt8], _ number: Int) {
            var tag: JSONNode?
            do {
                let node = try JSONReader.read(line, file: "command", remedy: taker.form)
                tag = node["tag"]
                let (language, command, chain) = try taker.addressed(node)
                language.perform(command, reply: reply(number, tag, chain: chain))
            } catch {
                reply(number, tag)(CommandAnswer(stage: nil, error: error))
            }
        }
    }

    /// - Parameter replies: Where the answers go.
    static func start(_ taker: any Taker, _ replies: CommandReplies) {
        var handle = pthread_t()
        let context = Unmanaged.passRetained(Context(taker, replies)).toOpaque()
        let result = pthread_create(
            &handle, nil,
            { context in
                CommandReader.read(Unmanaged<Context>.fromOpaque(context!).takeRetainedValue())
                return nil
            }, context)
        if result != 0 {
            RunLog.logger.critical(
                "--commands: no thread could be started: \(String(cString: strerror(result))). framehost goes on, but reads no commands. Raise the limit of processes (ulimit -u, or TasksMax= of a service), or end other programs, and start framehost again."
            )
        }
    }

    private static func read(_ context: Context) {
        var line: [UInt8] = []
        var number = 0
        var buffer = [UInt8](repeating: 0, count: 4096)
        var isTooLong = false
        func end() {
            context.waitForRoom()
            if isTooLong {
                number += 1
                context.reply(number)(
                    CommandAnswer(
                        stage: nil,
                        error: FrameHostError(
                            .invalidConfiguration, what: "the line is longer than 65536 bytes",
                            remedy: "Send one command per line, and reload a long chain from a file.")))
            } else if line.contains(where: { $0 != 32 && $0 != 9 && $0 != 13 }) {
                number += 1
                context.perform(line, number)
            }
            line.removeAll(keepingCapacity: true)
            isTooLong = false
        }
        while true {
            let count = Glibc.read(STDIN_FILENO, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            for byte in buffer[..<count] {
                if byte == 10 {
                    end()
                } else if line.count < 65536 {
                    line.append(byte)
                } else {
                    isTooLong = true
                }
            }
        }
        // The last line may have no line feed.
        end()
    }
}
