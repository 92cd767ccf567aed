// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import FrameCore
import FrameSupport
import Glibc

struct BatchCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "batch", abstract: "Runs a chain once for each of many files.",
        discussion: """
            In the chain, ${input} is the input file, ${output} the file to write, ${name} the input's name without folder and ending. An output \
            appears in the folder of --out when it is complete, with a record below .framehost that says what it was made from. An output whose \
            record is still correct is not made again: to continue after an interruption, or to share the work with other batches, run the same \
            command again. A file is done when each picture that it promises has arrived. SIGINT (ctrl-C) and SIGTERM stop the batch. Exit \
            status: 0 all files are done or given up, 1 some were set aside, left or made of damaged files, 2 nothing could be started.
            """)

    @Argument(help: "The chain file (JSON with comments).", completion: .file(extensions: ["json"]))
    var chain: String

    @Argument(
        help: "Files, folders, patterns in quotation marks ('clips/*.mov'); - for names on standard input.",
        completion: .file())
    var inputs: [String] = []

    @ArgumentParser.Option(
        help: ArgumentHelp("Read names of inputs from a file, one on each line. Repeatable.", valueName: "file"))
    var list: [String] = []

    @ArgumentParser.Option(
        name: .customLong("out"), help: ArgumentHelp("The folder of the outputs.", valueName: "dir"),
        completion: .directory)
    var out: String

    @ArgumentParser.Option(help: ArgumentHelp("The ending of the outputs' names.", valueName: ".mp4"))
    var ending = ".mp4"

    @ArgumentParser.Option(
        help: ArgumentHelp("Outputs keep the folders that their inputs have below this one.", valueName: "dir"),
        completion: .directory)
    var base: String?

    @ArgumentParser.Option(
        name: .customLong("set"),
        help: ArgumentHelp("Set an option to another value. Repeatable.", valueName: "stage.option=value"))
    var settings: [String] = []

    @ArgumentParser.Option(
        parsing: .unconditional,
        help:
            "Number of files to process at once. Default: one per processor, fewer if memory is short; with --on, 1 in each task.",
        transform: NumberOption.whole(1...1024))
    var jobs: Int?

    @ArgumentParser.Option(
        parsing: .unconditional,
        help: "How often to try a file whose worker fails, before it is set aside. Default: 3.",
        transform: NumberOption.whole(1...1000))
    var attempts: Int = 3

    @Flag(help: "Retry files that were set aside.")
    var retry = false

    @Flag(
        help:
            "Keep the outputs of damaged or incomplete files. Every summary names them, and the exit status stays 1."
    )
    var acceptDamaged = false

    @ArgumentParser.Option(
        help: ArgumentHelp(
            "Give up a file, until it changes: the batch leaves it out, every summary names it, and it no longer counts against the exit status. The name of the input or of its output. Repeatable.",
            valueName: "name"))
    var giveUp: [String] = []

    @ArgumentParser.Option(
        help: ArgumentHelp(
            "How to detect that an input has changed: by its size and modification time, or by its content.",
            valueName: "time|sha256"))
    var identity = InputIdentity.Kind.time

    @ArgumentParser.Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Take over the files of a batch on another machine if it has shown no sign of life for this long. Default: 60.",
            valueName: "seconds"), transform: NumberOption.seconds(1...86_400, example: 120))
    var lease: Double = 60

    @ArgumentParser.Option(
        parsing: .unconditional,
        help: ArgumentHelp(
            "Divide each file into parts of this many seconds, which several workers process. A file shorter than two parts is not divided. Choose a multiple of the encoder's keyframeSeconds.",
            valueName: "seconds"), transform: BatchCommand.partLength)
    var parts: Double?

    @ArgumentParser.Option(
        help: ArgumentHelp("Process only every N-th file, starting with the i-th.", valueName: "i/N"))
    var shard: String?

    @ArgumentParser.Option(
        help: ArgumentHelp(
            "Write the result of each file to a report, as JSON or CSV. Repeatable.", valueName: "file.json|.csv"))
    var report: [String] = []

    @ArgumentParser.Option(
        help: ArgumentHelp(
            "Run the batch on a cluster: each task processes a part of the files, and a last task writes the report.",
            valueName: "slurm|ray|kubernetes"))
    var on: BatchEngine?

    @OptionGroup(title: "With --on") var engine: EngineOptions

    @Flag(help: "Print only warnings and errors.")
    var quiet = false

    @Flag(name: .shortAndLong, help: "Print a line for each file.")
    var verbose = false

    @ArgumentParser.Option(
        name: .customLong("log-format"),
        help: ArgumentHelp(
            "How to write the log to standard error: text for people, json for log collectors.", valueName: "text|json")
    )
    var logFormat = LogFormat.text

    @OptionGroup var plugins: PluginOptions

    func validate() throws {
        if inputs.isEmpty, list.isEmpty {
            throw ValidationError(
                "no input is named. Name files or folders after the chain file, or a file of names with --list.")
        }
        if inputs.filter({ $0 == "-" }).count + list.filter({ $0 == "-" }).count > 1 {
            throw ValidationError("standard input is named more than once. Write - once.")
        }
        if wholeEnding.count < 2 || wholeEnding.contains("/") || BatchFiles.safe(wholeEnding) != wholeEnding {
            throw ValidationError(
                "--ending \"\(ending)\": must be the ending of a file's name, such as .mp4, without /, %, {, }, $ or control characters. Write for example --ending .mkv."
            )
        }
        if shard != nil, wholeShard == nil {
            throw ValidationError(
                "--shard \(shard!): must be two numbers i/N with N from 1 to 1000000 and i from 1 to N. Write for example --shard 3/40."
            )
        }
        for path in report where BatchReport(path) == nil {
            throw ValidationError("--report \(path): must end in .json or .csv.")
        }
        if verbose, quiet {
            throw ValidationError("--verbose and --quiet contradict each other. Leave one of them out.")
        }
        if on != nil, shard != nil {
            throw ValidationError(
                "--shard and --on cannot be used together: with --on, each task gets a shard of its own. Leave --shard out."
            )
        }
        try engine.check(on)
    }

    /// Reads `--parts`.
    static let partLength = NumberOption.seconds(1...86_400, example: 60)

    private var wholeEnding: String { ending.hasPrefix(".") ? ending : "." + ending }

    /// `--shard`: the index of this shard's first unit, and the number of shards.
    private var wholeShard: (first: Int, of: Int)? {
        guard let shard else { return (0, 1) }
        let numbers = shard.split(separator: "/", omittingEmptySubsequences: false).map { Int($0) }
        guard numbers.count == 2, let first = numbers[0], let count = numbers[1], count >= 1, count <= 1_000_000,
            (1...count).contains(first)
        else { return nil }
        return (first - 1, count)
    }

    func run() throws {
        RunLog.format = logFormat
        do {
            let (work, folder, trial) = try prepare()
            if let on {
                do { return try dispatch(on, work, trial) } catch {
                    work.owner.end()
                    folder.removeEmpty()
                    throw error
                }
            }
            let status = try BatchRun.run(
                work, folder, jobs: jobs ?? Processors.usable, isQuiet: quiet, isVerbose: verbose,
                reports: report.compactMap { BatchReport($0) })
            throw ExitCode(status)
        } catch let code as ExitCode {
            throw code
        } catch {
            throw reportBeforeRun(error)
        }
    }

    // MARK: Before it begins

    private func prepare() throws -> (BatchWork, BatchFolder, ChainTrial) {
        let root = try ChainFile.read(chain)
        try checkVariables(root)
        var units = BatchUnits(ending: wholeEnding, base: base, current: BatchFolder.current)
        let folder = try BatchFolder(out)
        do {
            for input in inputs where input != "-" {
                units.add(argument: input, skipping: FileIdentity(path: folder.out))
            }
            for path in list + inputs.filter({ $0 == "-" }) { units.add(list: path) }
            units.finish()
            if !units.faults.isEmpty { throw FrameHostErrors(units.faults) }
            guard units.count > 0 else {
                throw noUnits(folder, otherFiles: units.passedOver)
            }
            let abandoned = try givenUp(in: units)
            try checkReports()
            let registry = try plugins.registry()
            let digest = try FetchLibrary()
            let common =
                settings.flatMap { ["--set", $0] } + plugins.pluginPath.flatMap { ["--plugin-path", $0] } + [chain]
            let reads = try ReadFiles(ofChain: common, units, in: folder)
            let identity = try ChainIdentity(
                root, settings: settings, parts: parts, registry: registry, reads: reads, self.identity, digest)
            let trial = ChainTrial(
                root: root, settings: settings, arguments: common + (parts.map { ["--parts", "\($0)"] } ?? []),
                folder: folder)
            try trial.check(units)
            if !reads.isKnown {
                RunLog.logger.warning(
                    "the files that the chain reads beside its input are not known, because a stage could not say: outputs are not made again where such a file changes."
                )
            }
            let owner = try BatchOwner(in: folder.owners, lease: lease)
            try folder.checkLinks(owner)
            for unit in abandoned {
                let path = units.path(unit, current: BatchFolder.current)
                try BatchUnitFolder(out: folder.out, name: units.output(unit), key: "").givenUp.write(
                    path, path.flatMap { try? InputIdentity($0, self.identity, digest) })
            }
            let work = BatchWork(
                units: units, out: folder.out, current: BatchFolder.current, chainFile: chain, chain: identity,
                stamps: FileStamps([chain] + identity.images + reads.common, self.identity, digest),
                identity: self.identity, attempts: attempts, isRetrying: retry,
                acceptsDamaged: acceptDamaged,
                arguments: [
                    "run", "--quiet", "--log-format", "json", "--\(BatchConnection.option)",
                    "\(WorkerProcess.lineNumber)",
                ]
                    + common,
                owner: owner, gate: MemoryGate(), tally: BatchTally(keepsResults: !report.isEmpty),
                queue: BatchQueue(unitCount: units.count, shard: wholeShard ?? (0, 1)), parts: parts)
            return (work, folder, trial)
        } catch {
            folder.removeEmpty()
            throw error
        }
    }

    /// Refuses reports that cannot be written, or would overwrite what the batch reads.
    private func checkReports() throws {
        for path in report where !BatchFolder.canWrite(path) {
            let code = errno
            throw FrameHostError(
                .invalidConfiguration, place: FaultPlace(argument: "--report \(path)"),
                what: "cannot be written: \(String(cString: strerror(code)))",
                remedy: code == ENOENT
                    ? "Create its folder, or name a file in another one."
                    : "Name a file that this user may write, in a folder that this user may write to.")
        }
        for path in report {
            guard let file = FileIdentity(path: path),
                let other = ([chain] + list).first(where: { FileIdentity(path: $0) == file })
            else { continue }
            throw FrameHostError(
                .invalidConfiguration, place: FaultPlace(argument: "--report \(path)"),
                what: other == path
                    ? "the batch reads this file, and the report would overwrite it"
                    : "this is \(other), which the batch reads, and the report would overwrite it",
                remedy: "Name another file.")
        }
    }

    /// The units that `--give-up` names.
    ///
    /// - Throws: ``FrameHostErrors`` if no unit has one of these names.
    private func givenUp(in units: BatchUnits) throws -> Set<Int> {
        var found = Set<Int>()
        var faults: [FrameHostError] = []
        for name in giveUp {
            let whole = name.hasPrefix("/") ? name : "\(BatchFolder.current)/\(name)"
            let named = (0..<units.count).filter {
                units.output($0) == name || units.shownInput($0) == name
                    || units.path($0, current: BatchFolder.current) == whole
            }
            found.formUnion(named)
            guard named.isEmpty else { continue }
            faults.append(
                FrameHostError(
                    .invalidConfiguration, place: FaultPlace(argument: "--give-up \(name)"),
                    what: "no input of this batch has that name, and no output",
                    remedy:
                        "Write the name as the batch prints it, such as \(units.shownInput(0)), and name the inputs as before."
                ))
        }
        guard faults.isEmpty else { throw FrameHostErrors(faults) }
        return found
    }

    /// Says why none of the names on the command line is an input.
    ///
    /// - Parameter otherFiles: Files in the folders that are not clips.
    private func noUnits(_ folder: BatchFolder, otherFiles: Int) -> FrameHostError {
        if let itself = inputs.first(where: { FileIdentity(path: $0) == FileIdentity(path: folder.out) }) {
            return FrameHostError(
                .invalidConfiguration, place: itself, what: "is the folder of --out, which cannot be an input too",
                remedy: "Name another folder with --out.")
        }
        let folders = inputs.filter { $0 != "-" }
        guard !folders.isEmpty else {
            return FrameHostError(
                .invalidConfiguration, place: list.first.map { "--list \($0)" } ?? "standard input",
                what: "must name at least one file, but names none",
                remedy: "Write the name of an input on each line.")
        }
        let others = otherFiles == 1 ? "1 other file" : "\(otherFiles) other files"
        return FrameHostError(
            .invalidConfiguration, place: folders.joined(separator: ", "),
            what: otherFiles == 0 ? "there are no clips" : "there are no clips, only \(others)",
            remedy:
                "Name a folder with clips (.mp4, .mov, .mkv and other endings of video files), or name the files themselves: their endings do not matter then."
        )
    }

    /// - Throws: ``FrameHostErrors`` if the chain would read or write the same file every time.
    private func checkVariables(_ root: JSONNode) throws {
        let names = ChainIdentity.variables(in: root.withoutPlaces.text() + settings.joined(separator: "\n"))
        let missing = [
            ("input", "Write \"path\": \"${input}\" at the source."),
            ("output", "Write \"path\": \"${output}\" at the recorder."),
        ].filter { !names.contains($0.0) }
        // Each worker would start the service, and only one worker can have its port or folder.
        let services = ChainFile.services.keys.sorted().compactMap { key in root[key].map { (key, $0) } }
        guard services.isEmpty else {
            throw FrameHostErrors(
                services.map { key, node in
                    FrameHostError(
                        .invalidConfiguration, place: FaultPlace(file: chain, position: node.place, path: key),
                        what: "a batch starts several workers, and each would start '\(key)', but only one of them can",
                        remedy: "Remove '\(key)' from the chain, or use another chain for batches.")
                })
        }
        guard missing.isEmpty else {
            throw FrameHostErrors(
                missing.map {
                    FrameHostError(
                        .invalidConfiguration, place: FaultPlace(file: chain), what: "the chain has no ${\($0.0)}",
                        remedy: $0.1)
                })
        }
    }

    // MARK: On a cluster

    private func dispatch(_ on: BatchEngine, _ work: BatchWork, _ trial: ChainTrial) throws {
        let atOnce = jobs ?? 1
        var needs = EngineNeeds()
        if engine.cores == nil || engine.memory == nil {
            guard let found = try trial.needs(work.units) else {
                let tried =
                    switch work.units.count {
                    case 1: "the only file cannot"
                    case 2: "neither of the files can"
                    default: "neither the first, the middle nor the last file can"
                    }
                throw FrameHostError(
                    .invalidMedia, place: FaultPlace(argument: "--on \(on.rawValue)"),
                    what: "the cores and the memory that a task needs cannot be determined, because \(tried) be read",
                    remedy:
                        "Repair or replace \(work.units.count == 1 ? "the file" : "one of these files"), or give the cores and the memory yourself, such as --cores 2 --memory 1000 (in MiB)."
                )
            }
            needs = found
        }
        let names = ChainIdentity.variables(in: trial.root.withoutPlaces.text() + settings.joined(separator: "\n"))
            .subtracting(ChainIdentity.ownVariables)
        func whole(_ path: String) -> String { path.hasPrefix("/") ? path : "\(work.current)/\(path)" }
        var options = ["--ending", wholeEnding, "--attempts", "\(attempts)", "--identity", identity.rawValue]
        options += ["--lease", "\(lease)", "--jobs", "\(atOnce)", "--log-format", logFormat.rawValue]
        for setting in settings { options += ["--set", setting] }
        if acceptDamaged { options.append("--accept-damaged") }
        if let parts { options += ["--parts", "\(parts)"] }
        for folder in plugins.pluginPath { options += ["--plugin-path", whole(folder)] }
        if quiet { options.append("--quiet") }
        let dispatch = try BatchDispatch(
            on, work, chain: whole(chain), needs: needs, filesAtOnce: atOnce, options: engine, arguments: options,
            isRetrying: retry, variables: names, reports: report.map(whole))
        // With Ray, another program replaces this one.
        work.owner.end()
        try dispatch.start(isQuiet: quiet)
    }
}

extension InputIdentity.Kind: ExpressibleByArgument {}
