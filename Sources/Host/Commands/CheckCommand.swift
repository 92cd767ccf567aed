// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import FrameCore

struct CheckCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check", abstract: "Checks a chain file and prints its plan.",
        discussion: """
            Opens no device and creates no file. Prints all faults at once, each with its place. A missing file, folder or font that the chain \
            names is a fault. Exit status: 0 the chain can run, 2 there are faults.
            """)

    @Argument(help: "The chain file (JSON with comments).", completion: .file(extensions: ["json"]))
    var chain: String

    @ArgumentParser.Option(
        name: .customLong("set"),
        help: ArgumentHelp("Set an option to another value. Repeatable.", valueName: "stage.option=value"))
    var settings: [String] = []

    @Flag(help: "Print the plan, or the faults, as JSON.")
    var json = false

    @OptionGroup var plugins: PluginOptions

    func run() throws {
        do {
            let request = try ChainFile.load(chain, registry: plugins.registry(), settings: settings)
            let plan = try Chain.plan(request)
            let text = PlanText(plan)
            guard json else { return Terminal.say(text.text + RuleText.section(request.rules)) }
            let rules = request.rules.map { RuleText($0).json }
            let members = (text.json.asObject ?? []).map { ($0.key, $0.value) }
            Terminal.say(
                JSONNode.object(members + (rules.isEmpty ? [] : [("rules", .array(rules))])).text(pretty: true))
        } catch {
            let sorted = (error as? FrameHostErrors).map { FrameHostErrors(ChainFile.sorted($0.errors)) }
            if json {
                let errors = sorted?.errors ?? [FrameHostError.wrap(error)]
                Terminal.say(JSONNode.object([("faults", .array(errors.map(\.json)))]).text(pretty: true))
                throw ExitCode(2)
            }
            _ = report(sorted ?? error)
            throw ExitCode(2)
        }
    }
}

extension FrameHostError {
    /// As `check --json` prints it.
    var json: JSONNode {
        .object([
            ("code", .string(code.rawValue)), ("place", .string(place.description)),
            ("file", place.file.map { .string($0) } ?? .null),
            ("line", place.position.map { .number($0.line) } ?? .null),
            ("column", place.position.map { .number($0.column) } ?? .null),
            ("path", place.path.map { .string($0) } ?? .null),
            ("argument", place.argument.map { .string($0) } ?? .null),
            ("stage", place.stage.map { .string($0) } ?? .null), ("what", .string(what)),
            ("remedy", .string(remedy)), ("cause", .string(cause)),
        ])
    }
}
