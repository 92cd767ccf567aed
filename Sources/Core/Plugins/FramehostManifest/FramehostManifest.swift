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
        let coreFiles =
            ["Package.swift"]
            + [
                "JSON", "Options", "Errors", "Events", "Files", "Media", "Pool", "Link", "Stage", "Service", "Rules",
                "Plan",
                "Runtime",
                "Support", "Trace", "FrameSupport",
            ].flatMap { folder in
                let names =
                    (try? FileManager.default.contentsOfDirectory(atPath: core.appending(path: folder).path)) ?? []
                return names.filter { $0.hasSuffix(".swift") }.sorted().map { "\(folder)/\($0)" }
            }
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
