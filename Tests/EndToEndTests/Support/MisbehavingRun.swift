// SPDX-License-Identifier: Apache-2.0

/// A run with stages that do not do their part (Tests/Plugins/Misbehave).
struct MisbehavingRun {
    let workspace: Workspace
    private let framehost: Program
    private let plugins: String

    init() throws {
        workspace = try Workspace()
        framehost = try Program.framehost
        plugins = try PluginBuild.misbehave().path
    }

    /// Starts the chain; its input ends at once unless commands are asked for.
    func start(_ chain: String, _ arguments: [String]) throws -> RunningProgram {
        try workspace.write("chain.json", chain)
        let program = try framehost.start(
            ["chain.json", "--plugin-path", plugins] + arguments, folder: workspace.folder.path)
        if !arguments.contains("--commands") { program.closeInput() }
        return program
    }
}
