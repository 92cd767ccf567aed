import FrameCore
import Glibc

/// Reads `--commands` from standard input on a thread of its own: one JSON object a line, at most 64 KiB.
///
/// What a line may say is ``CommandLanguage``'s. The end of standard input ends the reading, not the chain.
enum CommandReader {
    private final class Context: @unchecked Sendable {
        let language: CommandLanguage
        init(_ language: CommandLanguage) { self.language = language }
    }

    static func start(_ language: CommandLanguage) {
        var handle = pthread_t()
        let context = Unmanaged.passRetained(Context(language)).toOpaque()
        let result = pthread_create(
            &handle, nil,
            { context in
                CommandReader.read(Unmanaged<Context>.fromOpaque(context!).takeRetainedValue().language)
                return nil
            }, context)
        if result != 0 {
            Terminal.complain("--commands: no thread could be started: \(String(cString: strerror(result))).")
        }
    }

    private static func read(_ language: CommandLanguage) {
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
                    language.replies.refuse(
                        "the line is longer than 65536 bytes", "Send one command a line.", AnswerOrder.tag(number, nil))
                } else if line.contains(where: { $0 != 32 && $0 != 9 && $0 != 13 }) {
                    number += 1
                    perform(line, number, language)
                }
                line.removeAll(keepingCapacity: true)
                isTooLong = false
            }
        }
        if !line.isEmpty, !isTooLong { perform(line, number + 1, language) }
    }

    private static func perform(_ line: [UInt8], _ number: Int, _ language: CommandLanguage) {
        do {
            language.perform(try JSONReader.read(line, file: "command"), number)
        } catch {
            language.replies.refuse(String(describing: error), "", AnswerOrder.tag(number, nil))
        }
    }
}
