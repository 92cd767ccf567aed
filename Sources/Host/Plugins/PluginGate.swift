// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Decides from a file's bytes whether it may be loaded: nothing of a plugin runs before it has passed.
///
/// Strict on purpose (docs/design/003-plugin-gate.md): a plugin compiled against another Core calls the wrong methods.
struct PluginGate {
    /// This program's side of the comparison.
    var interface = PluginEntry.interfaceVersion
    var compiler = CoreIdentity.compiler
    var configuration = CoreIdentity.configuration
    var core = CoreIdentity.fingerprint

    /// The manifest of a plugin that fits.
    ///
    /// - Parameter copy: The copy that is read in place of the file.
    /// - Throws: ``FrameHostError`` `.unusablePlugin`: a sentence with the command that repairs it.
    func manifest(of path: String, in copy: String? = nil) throws -> PluginManifest {
        func refuse(_ what: String, _ remedy: String) -> FrameHostError {
            FrameHostError(.unusablePlugin, place: path, what: what, remedy: remedy)
        }
        let command = Self.buildCommand(for: path, configuration: configuration)
        let rebuild = "Build it again: \(command)."
        let bytes: [UInt8]
        do { bytes = try ELFFile.section(named: ".framehost", of: copy ?? path) } catch {
            throw refusal(of: error, path, rebuild, command)
        }
        let manifest: PluginManifest
        do {
            manifest = try PluginManifest(section: bytes)
        } catch {
            switch error {
            case .wrongMagic:
                throw refuse("its section .framehost does not start with \(PluginManifest.magic)", rebuild)
            case .damaged(let line): throw refuse("its manifest is damaged at '\(line)'", rebuild)
            }
        }
        guard manifest.interface == interface else {
            let older = manifest.interface < interface
            throw refuse(
                "has plugin interface \(manifest.interface), this framehost has \(interface): the \(older ? "plugin" : "program") is older",
                older ? rebuild : Self.hostRebuild(configuration))
        }
        guard manifest.compiler == compiler else {
            throw refuse(
                "was compiled by Swift \(manifest.compiler), this framehost by Swift \(compiler)",
                "Build it again with Swift \(compiler): \(command).")
        }
        guard manifest.configuration == configuration else {
            throw refuse(
                "is a \(manifest.configuration) build, but this framehost is a \(configuration) build",
                "Build it with `\(command)`, and name \(Self.buildFolder(for: path, configuration: configuration)) with --plugin-path."
            )
        }
        guard manifest.core == core else {
            // Fingerprints say that the sources differ, not which are older.
            throw refuse(
                "was built against another Core (\(manifest.core.prefix(12)), this framehost has \(core.prefix(12)))",
                "\(rebuild) If it is refused again, \(Self.remedyOfOtherCore(configuration))")
        }
        return manifest
    }

    /// Why a file has no manifest.
    private func refusal(of fault: ELFFile.Fault, _ path: String, _ rebuild: String, _ command: String)
        -> FrameHostError
    {
        func refuse(_ what: String, _ remedy: String) -> FrameHostError {
            FrameHostError(.unusablePlugin, place: path, what: what, remedy: remedy)
        }
        switch fault {
        case .unreadable(EACCES):
            return refuse("the file cannot be read: Permission denied", "Make it readable: chmod a+r \(path).")
        case .unreadable(ENOENT):
            var status = stat()
            guard lstat(path, &status) == 0 else { return refuse("the file no longer exists", rebuild) }
            return refuse("the link's target does not exist", "Build the target, or remove the link: rm \(path).")
        case .unreadable(let number):
            return FrameHostError(
                .unusablePlugin, place: path, what: "the file cannot be read: \(String(cString: strerror(number)))",
                remedy: Shortage.remedy(number) ?? rebuild, reason: .of(errno: number))
        case .noRegularFile:
            return refuse("must be a regular file", "Remove it from the plugin folder.")
        case .notELF:
            return refuse(
                "is not a shared library (it does not start with the ELF magic)",
                "Remove it: rm \(path).")
        case .otherKind:
            return refuse("is not a 64-bit little-endian shared library", rebuild)
        case .otherMachine:
            return refuse("was built for another processor", rebuild)
        case .truncated:
            return refuse("is cut short: its section table points past its end", rebuild)
        case .noSection:
            return refuse(
                "is a library but not a framehost plugin: it has no section .framehost",
                "Add `plugins: [.plugin(name: \"FramehostManifest\", package: \"Core\")]` to its target and run \(command), or remove it from the plugin folder."
            )
        }
    }

    private static func remedyOfOtherCore(_ configuration: String) -> String {
        CoreFolder.isInstalled
            ? "framehost is the older one. \(hostRebuild(configuration))"
            : "compare the Core folder in its Package.swift with `framehost --core-path`: where they differ, correct Package.swift; where they are the same, build framehost again in its folder: swift build -c \(configuration)."
    }

    private static func hostRebuild(_ configuration: String) -> String {
        CoreFolder.isInstalled
            ? "Install the newer framehost, or build the plugin against the Core of this one: `framehost --core-path` prints its folder."
            : "Build framehost again in its folder: swift build -c \(configuration)."
    }

    /// `swift build -c release --package-path DIR` with the package the file was built in, where its path tells.
    static func buildCommand(for path: String, configuration: String) -> String {
        let folder = packageFolder(of: path)
        return "swift build -c \(configuration)" + (folder.isEmpty ? "" : " --package-path \(folder)")
    }

    /// `DIR/.build/release`, where that command puts the plugin.
    private static func buildFolder(for path: String, configuration: String) -> String {
        let folder = packageFolder(of: path)
        return (folder.isEmpty ? "" : "\(folder)/") + ".build/\(configuration)"
    }

    /// The folder of the package that the file was built in; empty where its path does not tell.
    private static func packageFolder(of path: String) -> String {
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        guard let build = parts.lastIndex(of: ".build") else { return "" }
        return parts[..<build].joined(separator: "/")
    }
}
