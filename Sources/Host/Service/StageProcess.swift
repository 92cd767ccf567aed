// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// `framehost stage-child PARENT SANDBOX [-- PROGRAM …]`: the process of an isolated stage, which the host starts and nobody else.
enum StageProcess {
    /// [main thread] Runs the stage, if the command line asks for one; nil if it asks for something else.
    static func run(_ arguments: [String]) -> Int32? {
        guard arguments.count >= 4, arguments[1] == "stage-child", let parent = Int32(arguments[2]) else { return nil }
        if arguments.count > 5, arguments[4] == "--" {
            return StageChild.become(Array(arguments.dropFirst(5)), parent: parent, sandbox: arguments[3])
        }
        guard arguments.count == 4 else { return nil }
        signal(SIGPIPE, SIG_IGN)
        return StageChild.run(parent: parent, sandbox: arguments[3]) { path, id in
            let plugin = PluginRegistry.Plugin(path: path, manifest: try PluginGate().manifest(of: path))
            guard let type = try PluginLoader.load(plugin).stages.first(where: { $0.info.id == id }) else {
                throw FrameHostError(.unusablePlugin, place: path, what: "has no stage '\(id)' any more")
            }
            return type
        }
    }
}
