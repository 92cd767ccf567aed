// SPDX-License-Identifier: Apache-2.0

import ArgumentParser
import FrameCore
import Glibc

/// Where to look for plugins: options that every command has.
struct PluginOptions: ParsableArguments {
    @ArgumentParser.Option(
        name: .customLong("plugin-path"),
        help: ArgumentHelp("A folder with plugins, before all others. Repeatable.", valueName: "dir"))
    var pluginPath: [String] = []

    /// - Throws: ``FrameHostErrors`` for folders of `--plugin-path` that cannot be read. One of
    ///   `$FRAMEHOST_PLUGIN_PATH`, which may be meant for other machines too, is among the skipped instead.
    func registry() throws -> PluginRegistry {
        let faults = pluginPath.compactMap { folder -> FrameHostError? in
            guard let handle = opendir(folder) else {
                return FrameHostError(
                    .invalidConfiguration, place: "--plugin-path \(folder)",
                    what: "cannot be read: \(String(cString: strerror(errno)))",
                    remedy: "Name a folder with plugins.")
            }
            closedir(handle)
            return nil
        }
        guard faults.isEmpty else { throw FrameHostErrors(faults) }
        return PluginRegistry(pluginPaths: pluginPath)
    }
}

/// Prints every fault a line and ends with the status that follows from them.
func report(_ error: any Error) -> ExitCode {
    let errors = (error as? FrameHostErrors)?.errors ?? [FrameHostError.wrap(error)]
    for error in errors { RunLog.logger.critical("\(error)") }
    let isConfiguration = errors.allSatisfy { $0.code == .invalidConfiguration || $0.code == .unusablePlugin }
    return ExitCode(isConfiguration ? 2 : 1)
}

/// The same for what was found before a run, whatever it is: nothing was run, and `check` says 2 to it as well.
func reportBeforeRun(_ error: any Error) -> ExitCode {
    _ = report(error)
    return ExitCode(2)
}
