import FrameCore
import Glibc

/// Reads `--commands` from standard input on a thread of its own: one JSON object a line, at most 64 KiB.
///
/// `{"stage":"rec","command":"start"}`, `{"stage":"h264","set":{"bitrateKbps":3000}}`, `{"command":"drain"}`; a member `tag` comes back in the
/// answer. The end of standard input ends the reading, not the chain.
enum CommandReader {
    private final class Context: @unchecked Sendable {
        let chain: Chain
        init(_ chain: Chain) { self.chain = chain }
    }

    static func start(_ chain: Chain) {
        var handle = pthread_t()
        let context = Unmanaged.passRetained(Context(chain)).toOpaque()
        let result = pthread_create(
            &handle, nil,
            { context in
                CommandReader.read(Unmanaged<Context>.fromOpaque(context!).takeRetainedValue().chain)
                return nil
            }, context)
        if result != 0 { Terminal.complain("--commands: no thread could be started: \(String(cString: strerror(result))).") }
    }

    private static func read(_ chain: Chain) {
        var line: [UInt8] = []
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
                    refuse("the line is longer than 65536 bytes", "Send one command a line.")
                } else if line.contains(where: { $0 != 32 && $0 != 9 && $0 != 13 }) {
                    perform(line, chain)
                }
                line.removeAll(keepingCapacity: true)
                isTooLong = false
            }
        }
        if !line.isEmpty, !isTooLong { perform(line, chain) }
    }

    private static func perform(_ line: [UInt8], _ chain: Chain) {
        let node: JSONNode
        do {
            node = try JSONReader.read(line, file: "command")
        } catch {
            return refuse(String(describing: error), "")
        }
        let tag = node["tag"]
        let known: Set<String> = ["stage", "command", "set", "tag", "arguments"]
        if let odd = node.asObject?.first(where: { !known.contains($0.key) }) {
            return refuse("'\(odd.key)' is no key of a command", "Use \"stage\", \"command\" or \"set\", \"arguments\", \"tag\".", tag)
        }
        if node["command"]?.asString == "drain", node["stage"] == nil { return chain.drain() }
        guard let stage = node["stage"]?.asString else {
            return refuse("'stage' is missing", "Write {\"stage\":\"…\",\"command\":\"…\"}.", tag)
        }
        if let command = node["command"]?.asString, node["set"] == nil {
            chain.send(stage: stage, command: command, arguments: node["arguments"] ?? [:], tag: tag)
        } else if let members = node["set"]?.asObject, node["command"] == nil {
            chain.set(stage: stage, options: members, tag: tag)
        } else {
            refuse("neither 'command' nor 'set' is given as it should be", "Write \"command\": \"name\" or \"set\": { \"option\": value }.", tag)
        }
    }

    private static func refuse(_ what: String, _ remedy: String, _ tag: JSONNode? = nil) {
        var members: [(key: String, value: JSONNode)] = [("event", "command-answered"), ("ok", false)]
        if let tag { members.append(("tag", tag)) }
        members.append(("error", .string(remedy.isEmpty ? what : "\(what). \(remedy)")))
        Terminal.say(JSONNode.object(members).text())
    }
}
