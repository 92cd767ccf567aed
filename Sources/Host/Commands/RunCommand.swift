// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import FrameCore
import Glibc

struct RunCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run", abstract: "Runs a chain, or several, until their sources end.",
        discussion: """
            Several chains run independently: if one fails, the others go on. The program ends when the last one ends, with status 1 if any \
            failed. If one of them is wrong, none is run, unless --skip-wrong leaves it out.

            SIGINT (ctrl-C) or SIGTERM lets the chain finish what is under way. A second one stops it at once and still closes its files. A \
            third one ends the process. SIGHUP reloads the chain file. SIGUSR1 takes the pictures of --snapshot-on-signal. Exit status: 0 \
            ended normally, 1 failed while starting or running, for example because a port is in \
            use, 2 nothing was run: the command line or the chain \
            file is wrong, or a file, folder or font that it names is missing. A crash ends the process by its signal.
            """)

    @Argument(
        help: ArgumentHelp(
            "The chain file (JSON with comments). Several, or a folder with *.json files, run in one process.",
            valueName: "chain"), completion: .file(extensions: ["json"]))
    var chains: [String]

    @ArgumentParser.Option(
        name: .customLong("set"),
        help: ArgumentHelp(
            "Set an option to another value, in every chain that has the stage. To set it in one of several chains, write chain:stage.option=value. Repeatable.",
            valueName: "stage.option=value"))
    var settings: [String] = []

    @ArgumentParser.Option(
        name: .customLong("for"), parsing: .unconditional,
        help: ArgumentHelp(
            "End the sources this many seconds after the chain starts, and finish what is under way.",
            valueName: "seconds"),
        transform: NumberOption.seconds(0.001...1e9, example: 10))
    var seconds: Double?

    @ArgumentParser.Option(
        parsing: .unconditional, help: "End each source after this many frames.",
        transform: NumberOption.whole(1...Int.max))
    var frames: Int?

    @ArgumentParser.Option(
        help: ArgumentHelp(
            "Measure each stage's time, and write the run's figures to this file as JSON. Figures of an earlier run are replaced, any other file is kept.",
            valueName: "file"))
    var stats: String?

    @ArgumentParser.Option(
        help: ArgumentHelp(
            "Write a trace of what each thread does to this file, for ui.perfetto.dev. The file must not exist.",
            valueName: "file"))
    var trace: String?

    @ArgumentParser.Option(
        parsing: .unconditional,
        help: ArgumentHelp("End the trace at this many megabytes. Default: 1024.", valueName: "number"),
        transform: NumberOption.whole(1...1_000_000))
    var traceMegabytes: Int = 1024

    @Flag(help: "Leave out those of several chains that are wrong, instead of running none. The exit status is then 1.")
    var skipWrong = false

    @Flag(help: "Succeed although a file gave fewer pictures than it promises. Otherwise the exit status is 1.")
    var acceptDamaged = false

    @Flag(help: "Print only warnings and errors.")
    var quiet = false

    @Flag(name: .shortAndLong, help: "Print more: also the details that stages log for troubleshooting.")
    var verbose = false

    @ArgumentParser.Option(
        name: .customLong("log-format"),
        help: ArgumentHelp(
            "How to write the log to standard error: text for people, json for log collectors.", valueName: "text|json")
    )
    var logFormat = LogFormat.text

    @Flag(help: "Write events to standard output, one JSON object per line.")
    var events = false

    @Flag(help: "Read commands from standard input, one JSON object per line. Answers go to standard output.")
    var commands = false

    @Flag(help: "Reload the chain file whenever it changes, as SIGHUP does.")
    var watch = false

    @Flag(help: "Reload plugins whenever their files are rebuilt, as the command reload-plugin does.")
    var watchPlugins = false

    @ArgumentParser.Option(
        name: .customLong("snapshot-on-signal"),
        help: ArgumentHelp(
            "On each SIGUSR1, write the stage's next picture to a file: to this one, then to file-0002 and so on. With several chains, write chain:stage=file. Repeatable.",
            valueName: "stage=file"))
    var signalSnapshots: [String] = []

    /// Set by `framehost batch`.
    @ArgumentParser.Option(name: .customLong(BatchConnection.option), help: .private)
    var supervised: Int32?

    /// Set by `framehost batch --parts`.
    @ArgumentParser.Option(name: .customLong(PartRequest.option), help: .private)
    var part: PartRequest?

    @OptionGroup var plugins: PluginOptions

    func validate() throws {
        if verbose, quiet {
            throw ValidationError("--verbose and --quiet contradict each other. Leave one of them out.")
        }
        for text in signalSnapshots where SignalSnapshots.Request(text) == nil {
            throw ValidationError(
                "--snapshot-on-signal \(text): must be a stage's id, '=' and a file that ends in .jpg, .jpeg or .png. Write for example --snapshot-on-signal camera=now.jpg."
            )
        }
        if let trace, trace == stats {
            throw ValidationError("--trace and --stats name the same file. Give each a file of its own.")
        }
    }

    func run() throws {
        RunLog.format = logFormat
        let list = try ChainList(chains)
        if list.isSeveral { runSeveral(list, try list.share(signalSnapshots, of: Self.pictures, ends: ["="])) }
        let replies = CommandReplies()
        let display = RunDisplay(
            quiet: quiet, verbose: verbose, jsonEvents: events || commands, onlyAnswers: commands && !events,
            replies: replies)
        let connection: BatchConnection?
        do { connection = try supervised.map { try BatchConnection($0) } } catch { throw reportBeforeRun(error) }
        RunSession(
            display: display, replies: replies, readsCommands: commands, seconds: seconds,
            statsPath: stats, trace: trace.map { ($0, traceMegabytes * 1_000_000) }, isWatching: watch,
            isWatchingPlugins: watchPlugins,
            signalSnapshots: SignalSnapshots(
                signalSnapshots.compactMap { SignalSnapshots.Request($0) }, folder: Self.currentFolder),
            connection: connection, acceptsDamaged: acceptDamaged,
            plan: { try plan(chains[0]) }
        ).run()
    }

    private static var currentFolder: String {
        guard let path = getcwd(nil, 0) else { return "." }
        defer { free(path) }
        return String(cString: path)
    }

    private var ownStreams: [ChainRequest.OwnStream] { StandardStreams.ofRun(events: events, commands: commands) }

    /// [control thread] Everything is checked, nothing is opened.
    private func plan(_ chain: String) throws -> RunSession.Planned {
        do {
            let registry = try plugins.registry()
            registry.loadsCopies = watchPlugins
            let document = try ChainDocument(
                path: chain, registry: registry, settings: settings, frameLimit: frames, ownStreams: ownStreams)
            var request = try document.request()
            if let part { request = try part.applied(to: request, registry) }
            if supervised != nil {
                // The batch knows what its other workers take.
                request.memory = AvailableMemory(bytes: .max)
                // A stage that starts anew leaves a gap in the output, or a second file. The batch tries the whole input
                // again instead.
                for index in request.stages.indices { request.stages[index].onError = .stop }
            }
            let services = try RunServices(request.services)
            let chain = try PlanPatience.during {
                try Chain(request, timed: stats != nil || !services.isEmpty, traced: trace != nil)
            }
            // A batch knows its outputs by its records, and they are the same bytes whenever they are made.
            chain.files.isReproducible = supervised != nil
            // A plugin that an attached branch names may have been rebuilt since the registry read it.
            registry.loadsCopies = true
            CrashReport.watch(chain, plugin: document.plugin)
            return RunSession.Planned(chain: chain, document: document, services: services)
        } catch let error as FrameHostErrors {
            throw FrameHostErrors(ChainFile.sorted(error.errors))
        }
    }

    // MARK: Several chains

    private static let pictures = "--snapshot-on-signal"

    private func runSeveral(_ list: ChainList, _ pictures: ChainList.Share) -> Never {
        let replies = CommandReplies()
        let line = ProgressLine()
        let asked = ChainsSession.Settings(
            skipsWrong: skipWrong, readsCommands: commands, statsPath: stats, watchesPlugins: watchPlugins,
            hasEvents: events || commands, takesPictures: !pictures.own.isEmpty,
            seconds: seconds)
        ChainsSession(
            asked, display: ChainsDisplay(quiet: quiet, showsAnswers: events || commands, line: line),
            replies: replies,
            planning: {
                if let request = pictures.common.first {
                    throw FrameHostError(
                        .invalidConfiguration, place: FaultPlace(argument: "\(Self.pictures) \(request)"),
                        what: "must name the chain that has the stage",
                        remedy: "Write for example \(Self.pictures) \(list.chains[0].name):\(request).")
                }
                let registry = try plugins.registry()
                (registry.loadsCopies, registry.sharesCopies) = (watchPlugins, true)
                return try ChainsPlanning(
                    list, registry: registry, settings: settings, frameLimit: frames, ownStreams: ownStreams)
            }, make: { session($0, $1, pictures.own[$1] ?? [], line) }
        ).run()
    }

    /// The run of one of several chains.
    private func session(_ planning: ChainsPlanning, _ index: Int, _ pictures: [String], _ line: ProgressLine)
        -> RunSession
    {
        let name = planning.list.chains[index].name
        let replies = CommandReplies()
        let display = RunDisplay(
            quiet: quiet, verbose: verbose, jsonEvents: events || commands, onlyAnswers: commands && !events,
            replies: replies, name: name, line: line)
        return RunSession(
            display: display, replies: replies, readsCommands: false, seconds: seconds, statsPath: nil,
            trace: trace.map { (ChainList.path($0, of: name), traceMegabytes * 1_000_000) }, isWatching: watch,
            isWatchingPlugins: false,
            signalSnapshots: SignalSnapshots(
                pictures.compactMap { SignalSnapshots.Request($0) }, folder: Self.currentFolder),
            service: nil, acceptsDamaged: acceptDamaged, plan: { try plan(planning, index) })
    }

    /// [thread `chains`, control thread of a chain that was away] Plans a chain as a single one is planned, with what the chains before it leave.
    private func plan(_ planning: ChainsPlanning, _ index: Int) throws -> RunSession.Planned {
        let document = try planning.document(of: index)
        let request = try planning.request(of: document)
        let services = try RunServices(request.services)
        let chain: Chain
        do { chain = try Chain(request, timed: stats != nil || !services.isEmpty, traced: trace != nil) } catch {
            guard ChainRetry.isAway(error, isAskedFor: false) else { throw error }
            throw ChainAway(faults: FrameHostErrors(planning.faults(error, of: index)))
        }
        try planning.add(request, chain.plan, services)
        ChainNeighbours.shared.add(chain, serviceClaims: services.claims)
        CrashReport.watch(chain, named: planning.list.chains[index].name, plugin: document.plugin)
        return RunSession.Planned(chain: chain, document: document, services: services)
    }
}
