// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Finds the sources of this program's Core, against which plugins are built.
enum CoreFolder {
    /// ``installed`` is relative to the folder of an installed program. ``ofTree`` is relative to a folder above a
    /// program that was built in its tree.
    private static let installed = "../../share/framehost/Core"
    private static let ofTree = "Sources/Core"

    /// - Parameter program: The executable's folder.
    /// - Returns: nil where there is none.
    static func find(from program: String = PluginRegistry.executableFolder) -> String? {
        let beside = "\(program)/\(installed)"
        if isCore(beside) { return PluginRegistry.realPath(beside) }
        var folder = program
        while !folder.isEmpty {
            if isCore("\(folder)/\(ofTree)") { return "\(folder)/\(ofTree)" }
            folder = folder.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
        }
        return nil
    }

    /// Whether this program is in an installed tree, not where it was built.
    static var isInstalled: Bool { isCore("\(PluginRegistry.executableFolder)/\(installed)") }

    static func isCore(_ folder: String) -> Bool { access("\(folder)/Package.swift", R_OK) == 0 }

    /// The folder for `--core-path`.
    ///
    /// - Throws: ``FrameHostError``.
    static func path() throws -> String {
        if let path = find() { return path }
        throw FrameHostError(
            .invalidConfiguration, place: PluginRegistry.executableFolder,
            what:
                "the sources of Core were not found: not in \(installed) from this folder, and not in \(ofTree) of any folder above it",
            remedy: "Install framehost again, or run the program in the tree where it was built.")
    }
}
