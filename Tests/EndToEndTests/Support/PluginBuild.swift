// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc

/// Plugin packages that tests build: each once in a test run, all in one folder below `.build`, where Core is built once
/// for all of them and the next run finds it again. `make test-core` builds in the same folder.
enum PluginBuild {
    /// The faulty plugins, release.
    static func misbehave() throws -> URL { try misbehaveResult.get() }
    /// examples/plugins/mirror, release.
    static func mirror() throws -> URL { try mirrorResult.get() }

    private static let misbehaveResult = Result { try build(Repository.misbehave) }
    private static let mirrorResult = Result { try build(Repository.mirror) }

    /// Images of Tests/Fixtures/plugins/swap, release: version 1, version 2, and version 3 with another layout of its
    /// metadata.
    static func swap() throws -> [Int: Data] { try swapResult.get() }

    private static let swapResult = Result { try buildSwap() }

    private static func buildSwap() throws -> [Int: Data] {
        let package = folder.appending(path: "swap-package")
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
            let folder = try build(package)
            images[version] = try Data(contentsOf: folder.appending(path: "libSwapPlugin.so"))
        }
        return images
    }

    private static func edit(_ file: URL, _ old: String, _ new: String) throws {
        let text = try String(contentsOf: file, encoding: .utf8)
        guard text.contains(old) else { throw TestFault("\(file.path) has no '\(old)'") }
        try text.replacingOccurrences(of: old, with: new).write(to: file, atomically: true, encoding: .utf8)
    }

    static let folder = Repository.root.appending(path: ".build/end-to-end")

    /// Builds a package in release; gives a folder with its own libraries alone.
    ///
    /// - Parameters:
    ///   - scratch: The folder of builds; packages with another Core need another.
    ///   - isOptimised: Whether the code is optimised, which takes most of the time that another Core takes.
    static func build(_ package: URL, scratch: String = "builds", isOptimised: Bool = true) throws -> URL {
        let flags = isOptimised ? [] : ["-Xswiftc", "-Onone"]
        let outcome = try swift("build", ["-c", "release"] + flags, package: package, scratch: scratch)
        guard outcome.status == 0 else {
            throw TestFault("\(package.path) does not build:\n\(outcome.output)\n\(outcome.error)")
        }
        return try libraries(of: package, "release", scratch: scratch)
    }

    /// What a build of `package` has made, in a folder of its own.
    static func libraries(of package: URL, _ configuration: String, scratch: String = "builds") throws -> URL {
        let files = FileManager.default
        let target = folder.appending(path: "\(scratch)-\(package.lastPathComponent)/.build/\(configuration)")
        try files.createDirectory(at: target, withIntermediateDirectories: true)
        for module in try files.contentsOfDirectory(atPath: package.appending(path: "Sources").path) {
            let name = "lib\(module).so"
            let built = folder.appending(path: "\(scratch)/\(configuration)/\(name)")
            guard files.fileExists(atPath: built.path) else { continue }
            // By rename: another process of tests may have the old one open.
            let new = target.appending(path: "\(name).\(getpid())")
            try files.copyItem(at: built, to: new)
            guard rename(new.path, target.appending(path: name).path) == 0 else {
                throw TestFault("\(new.path) cannot be renamed")
            }
        }
        return target
    }

    /// `swift VERB …` for a package, as a person would call it there, but at a lower priority: a compiler on each
    /// processor would starve the cameras and players of other tests, which have deadlines.
    static func swift(_ verb: String, _ arguments: [String] = [], package: URL, scratch: String = "builds") throws
        -> Outcome
    {
        guard let path = Tool(name: "swift").path else { throw TestFault("swift is not in PATH") }
        // Without its cache, or SwiftPM takes the plan of the package that was built before for this one's.
        return try Program(URL(fileURLWithPath: "/usr/bin/nice")).run(
            [
                "-n", "10", path, verb, "--package-path", package.path, "--scratch-path",
                folder.appending(path: scratch).path,
                "--disable-build-manifest-caching",
            ] + arguments, timeout: 1500)
    }
}
