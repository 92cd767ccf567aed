// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import FrameCore
import Glibc

/// The first word of a command line. Without this check `framehost chekc x.json` would be read as a chain file named
/// `chekc` with one argument too many.
struct CommandWord {
    private let arguments: [String]

    init(_ arguments: [String]) { self.arguments = arguments }

    /// A fault that suggests the command that was probably meant; nil where the word is a command, or may be a file.
    var fault: FrameHostError? {
        let names = FrameHost.configuration.subcommands.compactMap { $0.configuration.commandName }
        guard let word = arguments.first, !word.isEmpty, !word.hasPrefix("-"), !(names + ["help"]).contains(word) else {
            return nil
        }
        guard !word.contains("/"), !word.contains("."), access(word, F_OK) != 0 else { return nil }
        if let near = Suggestion.nearest(to: word, in: names) {
            return fault(word, "no such command and no such file", "Did you mean 'framehost \(near)'?")
        }
        guard let second = arguments.dropFirst().first, !second.hasPrefix("-") else { return nil }
        return fault(
            word, "no such command",
            "The commands are \(names.joined(separator: ", ")); `framehost --help` describes them."
        )
    }

    private func fault(_ word: String, _ what: String, _ remedy: String) -> FrameHostError {
        FrameHostError(.invalidConfiguration, place: word, what: what, remedy: remedy)
    }
}
