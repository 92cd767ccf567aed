// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import FrameCore
import Glibc

struct NewCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "new",
        abstract: "Writes a stage that builds, passes its test and runs as it is.",
        discussion: """
            The package is a folder NAME in the current folder, which can be anywhere. It is built against the sources of Core that belong to \
            this program: `framehost --core-path` prints their folder. docs/writing-a-plugin.md explains the parts of the package. \
            With --language it is a filter in Python (docs/python.md) or C (docs/stage-protocol.md).
            """)

    @Argument(help: "source, filter, transform, join or sink.")
    var kind: StageKind

    @Argument(help: "The stage's id in kebab-case, such as night-mode.")
    var name: String

    @ArgumentParser.Option(
        help: ArgumentHelp(
            "Name of the stage's main option, in its source, test, chain and README. Default: the template's own.",
            valueName: "name"))
    var option: String?

    @ArgumentParser.Option(help: "swift, or for a filter: python, c.")
    var language = ProgramTemplate.Language.swift

    @ArgumentParser.Option(
        help: ArgumentHelp(
            "Core's folder. Default: the one that --core-path prints.", valueName: "dir"))
    var core: String?

    func run() throws {
        do {
            let (files, nextSteps) = try template()
            try checkIDIsFree()
            guard mkdir(name, 0o755) == 0 else {
                let code = errno
                throw FrameHostError(
                    .invalidConfiguration, place: name,
                    what: code == EEXIST
                        ? "is already in this folder"
                        : "the folder cannot be created: \(String(cString: strerror(code)))",
                    remedy: code == EEXIST
                        ? "Choose another name, or move it away. Nothing was written."
                        : "Change to a folder that you may write to and that has room, and run the command again.")
            }
            for (path, text) in files {
                try makeFolders(of: "\(name)/\(path)")
                if let why = Terminal.writeFile("\(name)/\(path)", text) {
                    throw FrameHostError(
                        .callFailed, place: "\(name)/\(path)", what: "cannot be written: \(why)",
                        remedy: "Correct this cause, remove the folder '\(name)', and run the command again.")
                }
            }
            Terminal.say(nextSteps)
        } catch {
            throw report(error)
        }
    }

    private func template() throws -> (files: [(path: String, text: String)], nextSteps: String) {
        guard language != .swift else {
            let template = try PluginTemplate(kind, id: name, option: option, core: try corePath())
            return (template.files, template.nextSteps)
        }
        guard option == nil else {
            throw FrameHostError(
                .invalidConfiguration, place: "--option", what: "is for filters in Swift",
                remedy: "Leave it out: the option is a line of the file.")
        }
        let template = try ProgramTemplate(language, kind, id: name, core: try corePath())
        return (try template.files(), template.nextSteps)
    }

    /// Two plugins with the same id cannot be used together.
    private func checkIDIsFree() throws {
        let owner = PluginRegistry(pluginPaths: []).plugins.first { $0.manifest.stages.contains { $0.id == name } }
        guard let owner else { return }
        throw FrameHostError(
            .invalidConfiguration, place: "'\(name)'", what: "is already the id of a stage type of \(owner.path)",
            remedy: "Choose another name: two plugins with the same id cannot be used together.")
    }

    private func makeFolders(of path: String) throws {
        var folder = ""
        for part in path.split(separator: "/").dropLast() {
            folder += folder.isEmpty ? String(part) : "/\(part)"
            guard mkdir(folder, 0o755) == 0 || errno == EEXIST else {
                throw FrameHostError(
                    .callFailed, place: folder, what: "cannot be created: \(String(cString: strerror(errno)))",
                    remedy: "Correct this cause, remove the folder '\(name)', and run the command again.")
            }
        }
    }

    private func corePath() throws -> String {
        if let core {
            guard CoreFolder.isCore(core) else {
                throw FrameHostError(
                    .invalidConfiguration, place: "--core \(core)", what: "has no Package.swift that can be read",
                    remedy: "Name framehost's folder Sources/Core.")
            }
            return PluginRegistry.realPath(core)
        }
        if let path = CoreFolder.find() { return path }
        throw FrameHostError(
            .invalidConfiguration, what: "framehost's folder Sources/Core was not found",
            remedy:
                "Name that folder: `framehost new \(kind.rawValue) \(name) --core DIR/Sources/Core`, where DIR has framehost's sources."
        )
    }
}

extension StageKind: @retroactive ExpressibleByArgument {}
extension ProgramTemplate.Language: ExpressibleByArgument {}
