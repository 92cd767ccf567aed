// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import FrameCore
import Glibc

struct ModelsCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "models",
        abstract: "Lists and fetches models that stages use and framehost does not include.",
        subcommands: [List.self, Fetch.self], defaultSubcommand: List.self)

    struct List: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "list",
            abstract: "Lists known models: purpose, licence, hash, and whether they are installed.",
            discussion: "Exit status: 1 when a file with a model's name has the wrong hash or cannot be read.")

        @Flag(help: "Print JSON.")
        var json = false

        func run() throws {
            do {
                let shelf = ModelShelf(folders: .ofProcess(), library: try FetchLibrary())
                let found = KnownModel.all.map { ($0, shelf.state(of: $0)) }
                Terminal.say(
                    json
                        ? ModelsText(found, shelf.folders).json.text(pretty: true)
                        : ModelsText(found, shelf.folders).text)
                let isAllWell = found.allSatisfy { state in
                    switch state.1 {
                    case .missing, .right: true
                    case .wrong, .unreadable: false
                    }
                }
                if !isAllWell { throw ExitCode(1) }
            } catch let status as ExitCode {
                throw status
            } catch {
                throw report(error)
            }
        }
    }

    struct Fetch: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "fetch",
            abstract: "Fetches a model into a data folder, from its publisher or from a folder, and checks its hash.",
            discussion: """
                Uses only HTTPS. To continue an interrupted transfer, run the command again. No file is replaced. SSL_CERT_FILE names a file \
                of certificate authorities to use instead of the system's, and https_proxy names a proxy.
                """)

        @Argument(help: "The model's name, as `framehost models` lists it.")
        var name: String?

        @ArgumentParser.Option(
            help: ArgumentHelp("Fetch the model from this folder or address instead.", valueName: "folder or https://…")
        )
        var from: String?

        @ArgumentParser.Option(
            help: ArgumentHelp(
                "Put the model into this folder. Default: $FRAMEHOST_DATA, or the user's data folder.",
                valueName: "folder"))
        var to: String?

        func run() throws {
            do {
                let model = try Self.model(name)
                let fetch = ModelFetch(
                    model: model, origin: try ModelFetch.origin(from, of: model), folder: try Self.folder(to),
                    library: try FetchLibrary(),
                    authorities: FetchLibrary.authorities)
                let (path, isNew) = try fetch.run()
                Terminal.say("\(isNew ? "Fetched" : "Already there"): \(path) (SHA-256 correct).")
            } catch {
                throw report(error)
            }
        }

        private static func model(_ name: String?) throws -> KnownModel {
            let names = KnownModel.all.map(\.name)
            guard let name else {
                throw FrameHostError(
                    .invalidConfiguration, place: "fetch", what: "the model's name is missing",
                    remedy: "Name \(wordList(names, "or")).")
            }
            if let model = KnownModel.all.first(where: { $0.name == name || $0.fileName == name }) { return model }
            // Each is for another OpenCV: none is suggested where two are equally near.
            let near = Suggestion.nearest(to: name, in: names)
            let isOnlyOne = near == Suggestion.nearest(to: name, in: names.reversed())
            throw FrameHostError(
                .invalidConfiguration, place: name, what: "no such model",
                remedy: (isOnlyOne ? near : nil).map { "Did you mean '\($0)'?" }
                    ?? "Name \(wordList(names, "or")): `framehost models` says which one is for which OpenCV.")
        }

        /// The first data folder, which is the user's own unless $FRAMEHOST_DATA names another.
        private static func folder(_ to: String?) throws -> String {
            if let to { return to.count > 1 && to.hasSuffix("/") ? String(to.dropLast()) : to }
            guard getenv("FRAMEHOST_DATA") != nil || getenv("XDG_DATA_HOME") != nil || getenv("HOME") != nil,
                let folder = DataFolders.ofProcess().folders.first
            else {
                throw FrameHostError(
                    .invalidConfiguration, place: "fetch", what: "your data folder is unknown: HOME is not set",
                    remedy: "Name one with --to.")
            }
            return folder
        }
    }
}

/// Known models as people and programs read them.
struct ModelsText {
    private let models: [(model: KnownModel, state: ModelShelf.State)]
    private let folders: DataFolders

    init(_ models: [(KnownModel, ModelShelf.State)], _ folders: DataFolders) {
        self.models = models.map { (model: $0.0, state: $0.1) }
        self.folders = folders
    }

    var text: String {
        models.map { entry in
            let model = entry.model
            return """
                \(model.name)  \(Self.words(entry.state))
                  \(model.purpose). \(model.licence).
                  \(model.fileName), \(Terminal.bytes(model.byteCount)), SHA-256 \(model.sha256)
                  \(model.url)

                """
        }.joined(separator: "\n") + "\nLooked in: \(folders.folders.joined(separator: ", "))"
            + (models.contains { $0.state == .missing } ? "\n`framehost models fetch NAME` fetches one." : "")
    }

    private static func words(_ state: ModelShelf.State) -> String {
        switch state {
        case .missing: "is not installed"
        case .right(let path): "is installed: \(path), hash correct"
        case .wrong(let path, let sha256): "has the WRONG HASH: \(path) has \(sha256); move it away and fetch the model"
        case .unreadable(let path, let why):
            "cannot be read: \(path): \(why); make it readable, or move it away and fetch the model"
        }
    }

    var json: JSONNode {
        .object([
            ("models", .array(models.map { json($0.model, $0.state) })),
            ("folders", .array(folders.folders.map { .string($0) })),
        ])
    }

    private func json(_ model: KnownModel, _ state: ModelShelf.State) -> JSONNode {
        let word =
            switch state {
            case .missing: "missing"
            case .right: "right"
            case .wrong: "wrong hash"
            case .unreadable: "unreadable"
            }
        return .object([
            ("name", .string(model.name)), ("purpose", .string(model.purpose)), ("licence", .string(model.licence)),
            ("file", .string(model.fileName)),
            ("bytes", .number(model.byteCount)), ("sha256", .string(model.sha256)), ("url", .string(model.url)),
            ("found", state.path.map { .string($0) } ?? .null), ("state", .string(word)),
        ])
    }
}
