// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import FrameCore
import Glibc

/// The first word of a command line. Without this check `framehost chekc x.json` would be read as a chain file named
/// `chekc` with one argument too many.
struct CommandWord {
    private let arguments: [String]

    init(_ arguments: [String]) { self.arguments = arguments }

    /// A fault that suggests what was probably meant; nil where the first word is a command, or may be a file.
    var fault: FrameHostError? {
        if let fault = chainAsFolder { return fault }
        let names = FrameHost.configuration.subcommands.compactMap { $0.configuration.commandName }
        if arguments.first == "help", arguments.count > 1, !arguments[1].hasPrefix("-"),
            !(names + ["help"]).contains(arguments[1])
        {
            return fault(
                arguments[1], "no such command",
                Suggestion.nearest(to: arguments[1], in: names).map { "Did you mean 'framehost help \($0)'?" }
                    ?? "Name one of the commands: \(wordList(names, "or")).")
        }
        guard let word = arguments.first, !word.isEmpty, !(names + ["help"]).contains(word) else { return nil }
        if word.hasPrefix("-") { return late(names) }
        guard !word.contains("/"), !word.contains("."), access(word, F_OK) != 0 else { return nil }
        if let near = Suggestion.nearest(to: word, in: names) {
            return fault(word, "no such command and no such file", "Did you mean 'framehost \(near)'?")
        }
        return fault(
            word, "no such command and no such file",
            "Name a chain file that exists, or one of the commands: \(wordList(names, "or")).")
    }

    /// A fault that places a command behind its options first: `--plugin-path DIR describe night-mode` would be read as
    /// two chain files. A word right behind an option may be its value, such as a file that is not there yet.
    private func late(_ names: [String]) -> FrameHostError? {
        let found = zip(arguments, arguments.dropFirst()).first { before, word in
            names.contains(word) && !before.hasPrefix("-") && access(word, F_OK) != 0
        }
        guard let command = found?.1 else { return nil }
        let options = arguments.contains { $0.hasPrefix("--plugin-path") } ? " --plugin-path DIR" : ""
        return fault(command, "the command must come first", "Write `framehost \(command) …\(options)`.")
    }

    /// A fault of a last `--plugin-path chain.json`: the folder was forgotten, and the parser would find no chain.
    private var chainAsFolder: FrameHostError? {
        let takesChain = ["run", "batch", "check", "graph"].contains(arguments[0]) || arguments[0].hasPrefix("-")
        var status = stat()
        guard takesChain, arguments.count > 1, arguments[arguments.count - 2] == "--plugin-path",
            let file = arguments.last, file.hasSuffix(".json"), stat(file, &status) == 0,
            status.st_mode & S_IFMT == S_IFREG
        else { return nil }
        return fault("--plugin-path \(file)", "is a file, not a folder", "Write `--plugin-path DIR \(file)`.")
    }

    private func fault(_ word: String, _ what: String, _ remedy: String) -> FrameHostError {
        FrameHostError(.invalidConfiguration, place: word, what: what, remedy: remedy)
    }
}
