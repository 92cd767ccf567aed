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

    /// - Throws: ``FrameHostErrors`` for folders of `--plugin-path` that cannot be read. A folder of
    ///   `$FRAMEHOST_PLUGIN_PATH`, which may be set for several machines, only counts as skipped.
    func registry() throws -> PluginRegistry {
        let faults = pluginPath.compactMap { folder -> FrameHostError? in
            guard let handle = opendir(folder) else {
                let code = errno
                return FrameHostError(
                    .invalidConfiguration, place: "--plugin-path \(folder)",
                    what: code == ENOENT ? "does not exist" : "cannot be read: \(String(cString: strerror(code)))",
                    remedy: code == ENOENT
                        ? "Build your plugin first (`swift build -c release`), or name another folder."
                        : "Name a folder with plugins.")
            }
            closedir(handle)
            return nil
        }
        guard faults.isEmpty else { throw FrameHostErrors(faults) }
        return PluginRegistry(pluginPaths: pluginPath)
    }
}

/// Prints each fault on a line, and returns the exit status that follows from them.
func report(_ error: any Error) -> ExitCode {
    let errors = (error as? FrameHostErrors)?.errors ?? [FrameHostError.wrap(error)]
    for error in errors { RunLog.logger.critical("\(error)") }
    let isConfiguration = errors.allSatisfy { $0.code == .invalidConfiguration || $0.code == .unusablePlugin }
    return ExitCode(isConfiguration ? 2 : 1)
}

/// The same for faults from before a run: nothing has run, and `check` ends with status 2 for them too.
func reportBeforeRun(_ error: any Error) -> ExitCode {
    _ = report(error)
    return ExitCode(2)
}
