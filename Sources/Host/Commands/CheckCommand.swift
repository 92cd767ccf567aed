// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import FrameCore

struct CheckCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "check", abstract: "Checks a chain file, or several, and prints the plan.",
        discussion: """
            Captures nothing and creates no file; opens cameras and sound cards only to ask what they can do. Prints all faults at once, each \
            with its place. A missing file, folder or font that the chain names is a fault. Several chains are checked together, as \
            `framehost run` would run them. Faults then include a file, port or device that two chains would use, \
            and too little memory for all of them. Exit \
            status: 0 no fault was found, 2 there are faults. Whether another program uses a port shows only in a run.
            """)

    @Argument(
        help: ArgumentHelp(
            "The chain file (JSON with comments). Several, or a folder with *.json files, are checked together.",
            valueName: "chain"), completion: .file(extensions: ["json"]))
    var chains: [String]

    @ArgumentParser.Option(
        name: .customLong("set"),
        help: ArgumentHelp(
            "Set an option to another value, in every chain that has the stage. To set it in one of several chains, write chain:stage.option=value. Repeatable.",
            valueName: "stage.option=value"))
    var settings: [String] = []

    @Flag(help: "Print the plan, or the faults, as JSON.")
    var json = false

    @ArgumentParser.Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Also check whether a batch can divide the source's file into parts of this many seconds, and at what cost.",
            valueName: "seconds"), transform: BatchCommand.partLength)
    var parts: Double?

    /// Set by `framehost batch`: prints only which files the stages read.
    @Flag(name: .customLong(CheckCommand.readsOption), help: .private)
    var readsFiles = false

    static let readsOption = "reads-files"

    @OptionGroup var plugins: PluginOptions

    func run() throws {
        var isSeveral = false
        do {
            let list = try ChainList(chains)
            isSeveral = list.isSeveral
            if isSeveral { return try checkSeveral(list) }
            if readsFiles {
                let paths = try ChainFile.load(chains[0], registry: plugins.registry(), settings: settings).filesRead()
                return Terminal.say(JSONNode.object([("readsFiles", .array(paths.map { .string($0) }))]).text())
            }
            let (request, plan, cost) = try PlanPatience.during {
                let registry = try plugins.registry()
                let request = try ChainFile.load(chains[0], registry: registry, settings: settings)
                let plan = try Chain.plan(request)
                return (request, plan, try parts.map { try PartCost($0, request, registry) })
            }
            guard json else { return Terminal.say(text(request, plan) + (cost.map { "\n\($0.text)" } ?? "")) }
            let more = cost.map { [("parts", $0.json)] } ?? []
            Terminal.say(JSONNode.object(members(request, plan) + more).text(pretty: true))
        } catch {
            let sorted = (error as? FrameHostErrors).map { faults in
                // Faults of several chains are already in the order of the chains.
                isSeveral ? faults : FrameHostErrors(ChainFile.sorted(faults.errors))
            }
            if json {
                let errors = sorted?.errors ?? [FrameHostError.wrap(error)]
                Terminal.say(JSONNode.object([("faults", .array(errors.map(\.json)))]).text(pretty: true))
                throw ExitCode(2)
            }
            _ = report(sorted ?? error)
            throw ExitCode(2)
        }
    }

    private func text(_ request: ChainRequest, _ plan: ChainPlan) -> String {
        PlanText(plan).text + RuleText.section(request.rules)
    }

    private func members(_ request: ChainRequest, _ plan: ChainPlan) -> [(String, JSONNode)] {
        let rules = request.rules.map { RuleText($0).json }
        return (PlanText(plan).json.asObject ?? []).map { ($0.key, $0.value) }
            + (rules.isEmpty ? [] : [("rules", .array(rules))])
    }

    /// Plans the chains one after the other, each with what those before it leave, as a run does.
    private func checkSeveral(_ list: ChainList) throws {
        if parts != nil {
            throw FrameHostError(
                .invalidConfiguration, place: FaultPlace(argument: "--parts"),
                what: "is only for a single chain file, not for several or a folder",
                remedy: "Check the chain files one after the other.")
        }
        let planning = try ChainsPlanning(list, registry: plugins.registry(), settings: settings)
        var faults: [FrameHostError] = []
        var checked: [(chain: ChainList.Chain, request: ChainRequest, plan: ChainPlan)] = []
        for (index, chain) in list.chains.enumerated() {
            do {
                let request = try planning.request(of: planning.document(of: index))
                let plan = try Chain.plan(request)
                try planning.add(request, plan, RunServices(request.services))
                checked.append((chain, request, plan))
            } catch {
                faults += planning.faults(error, of: index)
            }
        }
        faults = planning.faultsOfSettings + faults
        guard faults.isEmpty else { throw FrameHostErrors(faults) }
        guard json else {
            let parts = checked.map { "\($0.chain.path):\n\(text($0.request, $0.plan))" }
            let bytes = Terminal.bytes(planning.memoryBytes)
            let all =
                list.chains.count == 1
                ? "1 chain needs \(bytes) of memory." : "\(list.chains.count) chains need \(bytes) of memory together."
            return Terminal.say((parts + [all]).joined(separator: "\n"))
        }
        let chains = checked.map { entry in
            JSONNode.object(
                [("chain", .string(entry.chain.name)), ("file", .string(entry.chain.path))]
                    + members(entry.request, entry.plan))
        }
        Terminal.say(
            JSONNode.object([("chains", .array(chains)), ("memoryBytes", .number(planning.memoryBytes))])
                .text(pretty: true))
    }
}

extension FrameHostError {
    /// The fault as `check --json` prints it.
    var json: JSONNode {
        .object([
            ("code", .string(code.rawValue)), ("place", .string(place.description)),
            ("file", place.file.map { .string($0.hidingAddresses()) } ?? .null),
            ("line", place.position.map { .number($0.line) } ?? .null),
            ("column", place.position.map { .number($0.column) } ?? .null),
            ("path", place.path.map { .string($0) } ?? .null),
            ("argument", place.argument.map { .string($0.hidingAddresses()) } ?? .null),
            ("stage", place.stage.map { .string($0) } ?? .null), ("what", .string(what)),
            ("remedy", .string(remedy)), ("cause", .string(cause)),
            ("reason", reason.map { .string($0.rawValue) } ?? .null),
            ("option", option.map { .string($0) } ?? .null),
        ])
    }
}
