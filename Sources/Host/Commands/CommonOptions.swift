import ArgumentParser
import FrameCore

/// Where to look for plugins: options that every command has.
struct PluginOptions: ParsableArguments {
    @ArgumentParser.Option(name: .customLong("plugin-path"), help: ArgumentHelp("A folder with plugins, before all others. Repeatable.", valueName: "dir"))
    var pluginPath: [String] = []

    var registry: PluginRegistry { PluginRegistry(pluginPaths: pluginPath) }
}

/// Prints every fault a line and ends with the status that follows from them.
func report(_ error: any Error) -> ExitCode {
    let errors = (error as? FrameHostErrors)?.errors ?? [FrameHostError.wrap(error)]
    for error in errors { Terminal.complain(error.description) }
    let isConfiguration = errors.allSatisfy { $0.code == .invalidConfiguration || $0.code == .unusablePlugin }
    return ExitCode(isConfiguration ? 2 : 1)
}
