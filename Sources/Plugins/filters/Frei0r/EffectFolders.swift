// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Where effects are installed, and what lies there.
struct EffectFolders {
    /// Searched in this order.
    let paths: [String]

    /// The folders of `FREI0R_PATH` (separated by colons), then those the frei0r specification names, then those of
    /// Debian and Fedora.
    init(environment: (String) -> String? = { name in getenv(name).map { String(cString: $0) } }) {
        let named = (environment("FREI0R_PATH") ?? "").split(separator: ":").map(String.init)
        let home = environment("HOME").map { ["\($0)/.frei0r-1/lib"] } ?? []
        paths =
            named + home + [
                "/usr/local/lib/frei0r-1", "/usr/lib/frei0r-1", "/usr/lib/x86_64-linux-gnu/frei0r-1",
                "/usr/lib/aarch64-linux-gnu/frei0r-1",
                "/usr/lib64/frei0r-1",
            ]
    }

    /// Names of all effects (files `NAME.so`, also one folder deeper, where vendors have theirs) with their paths,
    /// sorted, each once.
    var effects: [(name: String, path: String)] {
        var found: [String: String] = [:]
        for folder in paths {
            for entry in Self.entries(of: folder) {
                if entry.hasSuffix(".so") {
                    found[String(entry.dropLast(3))] = found[String(entry.dropLast(3))] ?? "\(folder)/\(entry)"
                } else {
                    for inner in Self.entries(of: "\(folder)/\(entry)") where inner.hasSuffix(".so") {
                        found[String(inner.dropLast(3))] =
                            found[String(inner.dropLast(3))] ?? "\(folder)/\(entry)/\(inner)"
                    }
                }
            }
        }
        return found.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    private static func entries(of folder: String) -> [String] {
        guard let directory = opendir(folder) else { return [] }
        defer { closedir(directory) }
        var names: [String] = []
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if !name.hasPrefix(".") { names.append(name) }
        }
        return names.sorted()
    }

    /// Accepts only a path into one of the folders. A library is code: only the person who sets up the machine may
    /// bring it, not a chain file.
    private func pathInFolders(_ path: String) throws -> String {
        guard let real = Self.realPath(path) else {
            throw FrameHostError(
                .unavailable, place: "effect", what: "'\(path)' cannot be used: \(String(cString: strerror(errno)))",
                remedy: "Correct the path, or name an installed effect.")
        }
        guard paths.contains(where: { folder in Self.realPath(folder).map { real.hasPrefix($0 + "/") } ?? false })
        else {
            throw FrameHostError(
                .invalidConfiguration, place: "effect", what: "'\(path)' must be in a folder of frei0r effects",
                remedy:
                    "Move the file to ~/.frei0r-1/lib and correct the path, or add its folder to the environment variable FREI0R_PATH."
            )
        }
        return real
    }

    private static func realPath(_ path: String) -> String? {
        guard let resolved = realpath(path, nil) else { return nil }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    /// The library of an effect.
    ///
    /// - Parameters:
    ///   - name: As its file is called, in upper or lower case; or a path, which has a slash and leads into one of
    ///     the folders.
    ///   - resolve: Makes a path absolute.
    /// - Throws: ``FrameHostError`` that names the nearest effect, or all.
    func path(of name: String, resolve: (String) -> String) throws -> String {
        if name.contains("/") { return try pathInFolders(resolve(name)) }
        let effects = effects
        if let known = effects.first(where: { $0.name.lowercased() == name.lowercased() }) { return known.path }
        guard !effects.isEmpty else {
            throw FrameHostError(
                .unavailable, place: "effect", what: "no frei0r effects are installed",
                remedy:
                    "Install the package frei0r-plugins, or set the environment variable FREI0R_PATH to the folder of the effects.",
                cause: "Looked in " + paths.joined(separator: ", "))
        }
        let names = effects.map(\.name)
        guard !name.isEmpty else {
            throw FrameHostError(
                .invalidConfiguration, place: "effect", what: "no effect is set",
                remedy: "Set \"effect\" to one of those listed below.",
                cause: Self.list(names))
        }
        let near = Suggestion.nearest(to: name, in: names)
        throw FrameHostError(
            .invalidConfiguration, place: "effect",
            what: "no effect '\(name)' is installed",
            remedy: near.map { "Did you mean '\($0)'?" } ?? "Use one of those listed below.",
            cause: near == nil ? Self.list(names) : "")
    }

    /// The library of an effect as ``StageDemand/readsFiles``; without a library what the option names.
    func files(of name: String, _ context: StageContext) -> [String] {
        if let path = try? path(of: name, resolve: context.resolve) { return [path] }
        return name.contains("/") ? context.filesRead(name) : []
    }

    /// Lines of at most 120 characters.
    private static func list(_ names: [String]) -> String {
        var lines = [""]
        for name in names {
            if lines[lines.count - 1].count + name.count > 118 { lines.append("") }
            lines[lines.count - 1] += lines[lines.count - 1].isEmpty ? name : ", \(name)"
        }
        return lines.joined(separator: ",\n")
    }
}
