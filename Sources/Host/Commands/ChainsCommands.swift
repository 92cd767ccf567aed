// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Commands of several chains in one process: each names its chain, `"chain": "cam1"`. [any thread]
struct ChainsCommands: CommandReader.Taker {
    /// The language of each chain, by the chain's name; nil while the chain does not run.
    private let languages: [(name: String, language: @Sendable () -> CommandLanguage?)]
    let clock = ChainClock()
    let form = "Write an object, such as {\"chain\":\"…\",\"command\":\"drain\"}."

    init(_ languages: [(name: String, language: @Sendable () -> CommandLanguage?)]) { self.languages = languages }

    func addressed(_ command: JSONNode) throws -> (language: CommandLanguage, command: JSONNode, chain: String?) {
        guard let members = command.asObject else {
            throw FrameHostError(
                .invalidConfiguration, what: "expected an object, found \(command.kindName)",
                remedy: form)
        }
        let names = languages.map(\.name)
        guard let name = command["chain"]?.asString else {
            throw FrameHostError(
                .invalidConfiguration,
                what: command["chain"].map { "'chain' must be the name of a chain, but is \($0.kindName)" }
                    ?? "'chain' is missing",
                remedy:
                    "Name the chain that the command is for, \(Self.listed(names, "or")): \"chain\": \"\(names.first ?? "")\"."
            )
        }
        guard let entry = languages.first(where: { $0.name == name }) else {
            throw FrameHostError(
                .invalidConfiguration, place: "chain", what: "no chain has the name '\(name)'",
                remedy: Suggestion.nearest(to: name, in: names).map { "Did you mean '\($0)'?" }
                    ?? "Name \(Self.listed(names, "or")).")
        }
        guard let language = entry.language() else {
            throw FrameHostError(
                .unavailable, place: FaultPlace(name), what: "the chain has not started yet, or has ended",
                remedy: "Wait until it has started, or run it again if it has ended.")
        }
        return (language, JSONNode(.object(members.filter { $0.key != "chain" }), place: command.place), name)
    }

    /// `'a', 'b' and 'c'`; of more than ten names the first nine, and that there are more.
    ///
    /// - Parameter last: The word before the last one.
    static func listed(_ names: [String], _ last: String) -> String {
        guard names.count > 10 else { return quotedList(names, last) }
        let rest = last == "or" ? "another chain" : "\(names.count - 9) more"
        return wordList(names.prefix(9).map { "'\($0)'" } + [rest], last)
    }
}
