import ArgumentParser
import Glibc

/// The command line `framehost`.
struct FrameHost: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "framehost",
        abstract: "Runs a chain of video stages described in a JSON file.",
        discussion: "`framehost chain.json` is short for `framehost run chain.json`.",
        version: "framehost 0.1.0 (Core \(hostIdentity))",
        subcommands: [
            RunCommand.self, CheckCommand.self, PluginsCommand.self, DescribeCommand.self, SchemaCommand.self, NewCommand.self, ModelsCommand.self,
        ],
        defaultSubcommand: RunCommand.self)
}

@main
struct Main {
    /// Exit status: 0 ended normally, 1 failed while running, 2 command line or chain file wrong.
    static func main() {
        signal(SIGPIPE, SIG_IGN)
        do {
            var command = try FrameHost.parseAsRoot()
            try command.run()
        } catch let error as ExitCode {
            exit(error.rawValue)
        } catch {
            let text = FrameHost.fullMessage(for: error)
            if FrameHost.exitCode(for: error) == .success {
                print(text)
                exit(0)
            }
            Terminal.complain(text)
            exit(2)
        }
    }
}
