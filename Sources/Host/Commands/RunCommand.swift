import ArgumentParser
import FrameCore
import Glibc

struct RunCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "run", abstract: "Runs a chain until its sources end.",
        discussion: """
            SIGINT (ctrl-C) or SIGTERM lets the chain finish what is under way; a second one stops it at once, files are still closed; a \
            third one ends the process. Exit status: 0 ended normally, 1 failed while running, 2 command line or chain file wrong.
            """)

    @Argument(help: "The chain file (JSON with comments).", completion: .file(extensions: ["json"]))
    var chain: String

    @ArgumentParser.Option(
        name: .customLong("set"), help: ArgumentHelp("Another value for an option. Repeatable.", valueName: "stage.option=value"))
    var settings: [String] = []

    @ArgumentParser.Option(name: .customLong("for"), help: ArgumentHelp("Drain after so many seconds of streaming.", valueName: "seconds"))
    var seconds: Double?

    @ArgumentParser.Option(help: "End each source after so many frames.")
    var frames: Int?

    @ArgumentParser.Option(help: ArgumentHelp("Write the run's figures to this file, as JSON; measures each stage's time.", valueName: "file"))
    var stats: String?

    @Flag(help: "Say nothing but warnings and errors.")
    var quiet = false

    @Flag(help: "Write events to standard output, a JSON object a line.")
    var events = false

    @Flag(help: "Read commands from standard input, a JSON object a line; answers go to standard output.")
    var commands = false

    @OptionGroup var plugins: PluginOptions

    func validate() throws {
        if let seconds, !(seconds > 0 && seconds.isFinite) {
            throw ValidationError("--for \(seconds): a time above 0 is meant. Write for example --for 10.")
        }
        if let frames, frames < 1 { throw ValidationError("--frames \(frames): a count of 1 or more is meant.") }
    }

    func run() throws {
        let replies = commands ? CommandReplies() : nil
        let display = RunDisplay(quiet: quiet, jsonEvents: events || commands, onlyAnswers: commands && !events, replies: replies)
        RunSession(display: display, replies: replies, seconds: seconds, statsPath: stats, plan: plan).run()
    }

    /// [control thread] Everything is checked, nothing is opened.
    private func plan() throws -> Chain {
        do {
            try checkFile()
            var request = try ChainFile.load(chain, registry: plugins.registry, settings: settings)
            request.frameLimit = frames
            return try Chain(request, timed: stats != nil)
        } catch let error as FrameHostErrors {
            throw FrameHostErrors(ChainFile.sorted(error.errors))
        }
    }

    /// `framehost chek x.json` reads as a chain file named `chek`: say what was probably meant.
    private func checkFile() throws {
        guard access(chain, F_OK) != 0, !chain.contains("/"), !chain.contains(".") else { return }
        let names = FrameHost.configuration.subcommands.compactMap { $0.configuration.commandName }
        guard let near = Suggestion.nearest(to: chain, in: names) else { return }
        throw FrameHostError(
            .invalidConfiguration, place: chain, what: "no such command and no such file", remedy: "Did you mean 'framehost \(near)'?")
    }
}
