// SPDX-License-Identifier: Apache-2.0

import Foundation
import PackagePlugin

/// Writes the `.framehost` section of an image before it is compiled: for a plugin its manifest, for Core itself the
/// fingerprint the host compares with. The work is done by `manifest-tool`.
@main
struct FramehostManifest: BuildToolPlugin {
    func createBuildCommands(context: PluginContext, target: Target) throws -> [Command] {
        guard let module = target as? SwiftSourceModuleTarget else { return [] }
        let core = try coreFolder(context)
        let coreFiles = coreFiles(in: core)
        let isCore = module.name == "FrameCore"
        let own = isCore ? [] : module.sourceFiles(withSuffix: "swift").map(\.url).sorted { $0.path < $1.path }
        let output = context.pluginWorkDirectoryURL.appending(path: "FramehostManifest.swift")
        let tool = try context.tool(named: "manifest-tool").url
        return [
            .buildCommand(
                displayName: "Writing the framehost manifest of \(module.name)",
                executable: tool,
                arguments: [isCore ? "core" : "plugin", core.path, output.path] + coreFiles + ["--"] + own.map(\.path),
                inputFiles: coreFiles.map { core.appending(path: $0) } + own + [tool],
                outputFiles: [output])
        ]
    }

    /// All that Core is made of, in whatever folder it lies: a file that is left out could change without a plugin's being
    /// refused.
    private func coreFiles(in core: URL) -> [String] {
        // Those that run while a package is built, and the text of the reference.
        let others = ["Tools/", "Plugins/", "FrameCore.docc/", "."]
        let paths = (try? FileManager.default.subpathsOfDirectory(atPath: core.path)) ?? []
        return paths.filter { path in
            [".swift", ".c", ".h"].contains { path.hasSuffix($0) } && !others.contains { path.hasPrefix($0) }
        }.sorted()
    }

    /// Core's folder, wherever the package that builds a plugin lies.
    private func coreFolder(_ context: PluginContext) throws -> URL {
        if context.package.displayName == "Core" { return context.package.directoryURL }
        var open = context.package.dependencies.map(\.package)
        while let package = open.popLast() {
            if package.displayName == "Core" { return package.directoryURL }
            open += package.dependencies.map(\.package)
        }
        throw ManifestError.noCore
    }

    enum ManifestError: Error, CustomStringConvertible {
        case noCore
        var description: String {
            "This package does not depend on the package Core: add framehost's Sources/Core to its dependencies."
        }
    }
}
