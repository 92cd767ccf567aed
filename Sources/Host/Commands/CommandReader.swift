import FrameCore
import Glibc

/// Reads `--commands` from standard input on a thread of its own: one JSON object a line, at most 64 KiB.
///
/// `{"stage":"rec","command":"start"}`, `{"stage":"h264","set":{"bitrateKbps":3000}}`, `{"command":"drain"}`,
/// `{"command":"figures"}`; a member `tag` comes back in the answer. The end of standard input ends the reading, not
/// the chain.
enum CommandReader {
    private final class Context: @unchecked Sendable {
        let chain: Chain
        let replies: CommandReplies
        init(_ chain: Chain, _ replies: CommandReplies) {
            self.chain = chain
            self.replies = replies
        }
    }

    /// - Parameter replies: What the chain does not answer itself.
    static func start(_ chain: Chain, _ replies: CommandReplies) {
        var handle = pthread_t()
        let context = Unmanaged.passRetained(Context(chain, replies)).toOpaque()
        let result = pthread_create(
            &handle, nil,
            { context in
                CommandReader.read(Unmanaged<Context>.fromOpaque(context!).takeRetainedValue())
                return nil
            }, context)
        if result != 0 {
            Terminal.complain("--commands: no thread could be started: \(String(cString: strerror(result))).")
        }
    }

    /// Commands without a stage.
    private static let chainCommands = ["drain", "figures"]

    private static func read(_ context: Context) {
        var line: [UInt8] = []
        var number = 0
        var buffer = [UInt8](repeating: 0, count: 4096)
        var isTooLong = false
        while true {
            let count = Glibc.read(STDIN_FILENO, &buffer, buffer.count)
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { break }
            for byte in buffer[..<count] {
                guard byte == 10 else {
                    if line.count < 65536 { line.append(byte) } else { isTooLong = true }
                    continue
                }
                if isTooLong {
                    number += 1
                    context.replies.refuse(
                        "the line is longer than 65536 bytes", "Send one command a line.", AnswerOrder.tag(number, nil))
                } else if line.contains(where: { $0 != 32 && $0 != 9 && $0 != 13 }) {
                    number += 1
                    perform(line, number, context.chain, context.replies)
                }
                line.removeAll(keepingCapacity: true)
                isTooLong = false
            }
        }
        if !line.isEmpty, !isTooLong { perform(line, number + 1, context.chain, context.replies) }
    }

    private static func perform(_ line: [UInt8], _ number: Int, _ chain: Chain, _ replies: CommandReplies) {
        let node: JSONNode
        let plain = AnswerOrder.tag(number, nil)
        do {
            node = try JSONReader.read(line, file: "command")
        } catch {
            return replies.refuse(String(describing: error), "", plain)
        }
        guard let members = node.asObject else {
            return replies.refuse(
                "expected an object, found \(node.kindName)", "Write {\"stage\":\"…\",\"command\":\"…\"}.", plain)
        }
        let tag = AnswerOrder.tag(number, node["tag"])
        let known: Set<String> = ["stage", "command", "set", "tag", "arguments"]
        if let odd = members.first(where: { !known.contains($0.key) }) {
            return replies.refuse(
                "'\(odd.key)' is no key of a command", "Use \"stage\", \"command\" or \"set\", \"arguments\", \"tag\".",
                tag)
        }
        if node["command"]?.asString == "drain", node["stage"] == nil {
            replies.acceptDrain(tag)
            return chain.drain()
        }
        if node["command"]?.asString == "figures", node["stage"] == nil { return replies.askFigures(tag) }
        if let command = node["command"]?.asString, node["stage"] == nil {
            let near = Suggestion.nearest(to: command, in: chainCommands).map { "Did you mean '\($0)'?" }
            return replies.refuse(
                "the chain has no command '\(command)'",
                near ?? "It has 'drain' and 'figures'; name a stage in \"stage\" for one of its own.", tag)
        }
        guard let stage = node["stage"]?.asString else {
            return replies.refuse("'stage' is missing", "Write {\"stage\":\"…\",\"command\":\"…\"}.", tag)
        }
        if let command = node["command"]?.asString, node["set"] == nil {
            chain.send(stage: stage, command: command, arguments: node["arguments"] ?? [:], tag: tag)
        } else if let members = node["set"]?.asObject, node["command"] == nil {
            chain.set(stage: stage, options: members, tag: tag)
        } else {
            replies.refuse(
                "neither 'command' nor 'set' is given as it should be",
                "Write \"command\": \"name\" or \"set\": { \"option\": value }.", tag)
        }
    }
}
