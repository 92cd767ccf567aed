// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import FrameCore
import Glibc

/// The command line `framehost`.
struct FrameHost: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "framehost",
        abstract: "Runs a chain of video stages described in a JSON file.",
        discussion: """
            `framehost chain.json` is short for `framehost run chain.json`. `framehost --core-path` prints the folder of the sources that \
            plugins are built against, `framehost --python-path` that of the Python package.
            """,
        version: "framehost 0.1.0 (Core \(hostIdentity))",
        subcommands: [
            RunCommand.self, BatchCommand.self, CheckCommand.self, PluginsCommand.self, DescribeCommand.self,
            SchemaCommand.self,
            NewCommand.self, ModelsCommand.self, DevicesCommand.self, CtlCommand.self, SnapshotCommand.self,
            TopCommand.self, GraphCommand.self, LatencyCommand.self, RecordingsCommand.self,
        ],
        defaultSubcommand: RunCommand.self)
}

@main
struct Main {
    /// Exit status: 0 ended normally, 1 failed while running, 2 command line or chain file wrong.
    static func main() {
        if let status = StageProcess.run(CommandLine.arguments) { exit(status) }
        StandardOutput.fillGaps()
        StandardOutput.keepForProgram()
        CrashReport.install()
        signal(SIGPIPE, SIG_IGN)
        // Sent when another program breaks a read lease at the moment it is asked for (PluginCopy).
        signal(SIGIO, SIG_IGN)
        // With the signal ignored, a limit of file sizes (ulimit -f) is an error of the write, which recorders handle.
        signal(SIGXFSZ, SIG_IGN)
        let arguments = Array(CommandLine.arguments.dropFirst())
        if arguments == ["-v"] {
            Terminal.say(FrameHost.configuration.version)
            exit(Terminal.status(0))
        }
        if arguments == ["--core-path"] || arguments == ["--python-path"] {
            do {
                Terminal.say(arguments == ["--core-path"] ? try CoreFolder.path() : try PythonFolder.path())
                exit(Terminal.status(0))
            } catch {
                exit(report(error).rawValue)
            }
        }
        // Faults of the command line go to the log too, and they occur before the command line has been read.
        for (index, argument) in arguments.enumerated() {
            let next = index + 1 < arguments.count ? arguments[index + 1] : ""
            if argument == "--log-format=json" || (argument == "--log-format" && next == "json") {
                RunLog.format = .json
            }
        }
        if arguments.isEmpty {
            exit(
                report(
                    FrameHostError(
                        .invalidConfiguration, place: "framehost", what: "needs a chain file or a command",
                        remedy:
                            "Write `framehost chain.json` to run a chain, or `framehost --help` to list the commands.")
                ).rawValue)
        }
        if let fault = CommandWord(arguments).fault { exit(report(fault).rawValue) }
        do {
            var command = try FrameHost.parseAsRoot()
            try command.run()
            exit(Terminal.status(0))
        } catch let error as ExitCode {
            ProgramEnd.afterRun(error.rawValue)
        } catch let errors as FrameHostErrors {
            exit(report(errors).rawValue)
        } catch {
            let text = FrameHost.fullMessage(for: error)
            if FrameHost.exitCode(for: error) == .success {
                // As it is: a shell's completions too.
                Terminal.write(text + "\n", to: .output)
                exit(Terminal.status(0))
            }
            RunLog.logger.critical("\(text)")
            exit(2)
        }
    }
}
