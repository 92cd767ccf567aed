// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Commands of several chains in one process: each names its chain, `"chain": "cam1"`. [any thread]
struct ChainsCommands: CommandReader.Taker {
    /// The language of each chain, by the chain's name; nil while the chain does not run.
    private let languages: [(name: String, language: @Sendable () -> CommandLanguage?)]
    let clock = ChainClock()
    let form = "Write {\"chain\":\"…\",\"stage\":\"…\",\"command\":\"…\"}."

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
                .invalidConfiguration, what: "'chain' must be the name of the chain that the command is for",
                remedy: "Name one of \(Self.listed(names)): \"chain\": \"\(names.first ?? "")\".")
        }
        guard let entry = languages.first(where: { $0.name == name }) else {
            throw FrameHostError(
                .invalidConfiguration, place: "chain", what: "no chain '\(name)'",
                remedy: Suggestion.nearest(to: name, in: names).map { "Did you mean '\($0)'?" }
                    ?? "Name one of \(Self.listed(names)).")
        }
        guard let language = entry.language() else {
            throw FrameHostError(
                .unavailable, place: FaultPlace(name), what: "the chain does not run",
                remedy: "Send the command while it runs.")
        }
        return (language, JSONNode(.object(members.filter { $0.key != "chain" }), place: command.place), name)
    }

    /// The first ten names.
    static func listed(_ names: [String]) -> String {
        names.prefix(10).map { "'\($0)'" }.joined(separator: ", ") + (names.count > 10 ? " …" : "")
    }
}
