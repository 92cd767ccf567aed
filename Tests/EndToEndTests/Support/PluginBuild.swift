// SPDX-License-Identifier: Apache-2.0

import Foundation

/// Plugin packages that tests build: each once in a test run, in a folder below `.build` that the next run finds again.
enum PluginBuild {
    /// The faulty plugins, release.
    static func misbehave() throws -> URL { try misbehaveResult.get() }
    /// examples/plugins/mirror, release.
    static func mirror() throws -> URL { try mirrorResult.get() }

    private static let misbehaveResult = Result { try build(Repository.misbehave, scratch: "misbehave") }
    private static let mirrorResult = Result { try build(Repository.mirror, scratch: "mirror") }

    /// Images of Tests/Fixtures/plugins/swap, release: version 1, version 2, and version 3 with another layout of its
    /// metadata.
    static func swap() throws -> [Int: Data] { try swapResult.get() }

    private static let swapResult = Result { try buildSwap() }

    private static func buildSwap() throws -> [Int: Data] {
        let package = scratch("swap-package")
        let files = FileManager.default
        if files.fileExists(atPath: package.path) { try files.removeItem(at: package) }
        try files.createDirectory(at: package, withIntermediateDirectories: true)
        for name in ["Package.swift", "Sources"] {
            try files.copyItem(at: Repository.swap.appending(path: name), to: package.appending(path: name))
        }
        try edit(package.appending(path: "Package.swift"), "../../../../Sources/Core", Repository.core.path)
        let source = package.appending(path: "Sources/SwapPlugin/Build.swift")
        var images: [Int: Data] = [:]
        for version in 1...3 {
            if version > 1 { try edit(source, "version: Int32 = \(version - 1)", "version: Int32 = \(version)") }
            if version == 3 {
                try edit(source, "    var gain: Int32", "    var further: Int32 = 0\n    var gain: Int32")
            }
            let folder = try build(package, scratch: "swap")
            images[version] = try Data(contentsOf: folder.appending(path: "libSwapPlugin.so"))
        }
        return images
    }

    private static func edit(_ file: URL, _ old: String, _ new: String) throws {
        let text = try String(contentsOf: file, encoding: .utf8)
        guard text.contains(old) else { throw TestFault("\(file.path) has no '\(old)'") }
        try text.replacingOccurrences(of: old, with: new).write(to: file, atomically: true, encoding: .utf8)
    }

    static func scratch(_ name: String) -> URL { Repository.root.appending(path: ".build/end-to-end/\(name)") }

    /// Builds a package in release; gives the folder with its libraries.
    static func build(_ package: URL, scratch name: String) throws -> URL {
        let outcome = try swift("build", "-c", "release", package: package, scratch: name)
        guard outcome.status == 0 else {
            throw TestFault("\(package.path) does not build:\n\(outcome.output)\n\(outcome.error)")
        }
        return scratch(name).appending(path: "release")
    }

    /// `swift VERB …` for a package, as a person would call it there.
    static func swift(_ verb: String, _ arguments: String..., package: URL, scratch name: String) throws -> Outcome {
        guard let path = Tool(name: "swift").path else { throw TestFault("swift is not in PATH") }
        return try Program(URL(fileURLWithPath: path)).run(
            [verb, "--package-path", package.path, "--scratch-path", scratch(name).path] + arguments, timeout: 1500)
    }
}
