// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Loads a plugin whose manifest has passed the gate, and compares its exports with the manifest.
enum PluginLoader {
    /// Loads a plugin and returns its exports. Uses dlopen(3) with RTLD_NOW, so that a missing symbol is found now.
    /// The plugin is never unloaded.
    ///
    /// - Parameter copy: The copy that is loaded in place of the file; `plugin` has the copy's manifest.
    /// - Throws: ``FrameHostError`` `.unusablePlugin`; `.unavailable` where the machine lacks something.
    static func load(_ plugin: PluginRegistry.Plugin, from copy: PluginCopy? = nil) throws -> PluginExports {
        let path = copy?.path ?? plugin.path
        func refuse(_ what: String, _ remedy: String, cause: String = "") -> FrameHostError {
            FrameHostError(.unusablePlugin, place: plugin.path, what: what, remedy: remedy, cause: cause)
        }
        let rebuild =
            "Build it again: \(PluginGate.buildCommand(for: plugin.path, configuration: CoreIdentity.configuration))."
        errno = 0
        guard let handle = dlopen(path, RTLD_NOW | RTLD_LOCAL) else {
            let (code, cause) = (errno, reason(of: copy))
            if let shortage = Shortage.ofLoading(path, code) {
                throw FrameHostError(
                    .unavailable, place: plugin.path, what: "cannot be loaded: \(String(cString: strerror(shortage)))",
                    remedy: Shortage.remedy(shortage) ?? "", cause: cause, reason: .of(errno: shortage))
            }
            throw refuse(
                "cannot be loaded",
                "If the next line names a missing library, install it. Otherwise build the plugin again: \(PluginGate.buildCommand(for: plugin.path, configuration: CoreIdentity.configuration)).",
                cause: cause)
        }
        PluginImages.here.add(
            PluginImages.Image(bytes: (try? ELFFile(path).mappedBytes()) ?? 0, sum: copy?.sum), of: plugin.path)
        guard let symbol = dlsym(handle, PluginEntry.symbol) else {
            throw refuse(
                "does not export \(PluginEntry.symbol)",
                "Write `@c(\(PluginEntry.symbol)) public func pluginEntry() -> OpaquePointer { PluginEntry.export(…) }` in the plugin, and build it again."
            )
        }
        typealias Entry = @convention(c) () -> OpaquePointer
        let exports = PluginExports.take(unsafeBitCast(symbol, to: Entry.self)())
        let said = plugin.manifest.exports
        let given =
            exports.stages.map { "\($0.info.id) (\($0.kind.rawValue))" }
            + exports.services.map { "\($0.info.id) (service)" } + exports.encoders.map { "\($0.info.id) (encoder)" }
        guard said == given else {
            throw refuse(
                "declares \(wordList(said, "and")) in its manifest but exports \(wordList(given, "and"))",
                rebuild)
        }
        for stage in exports.stages {
            for option in stage.options where ChainKeys.stage.names.contains(option.name) {
                throw refuse(
                    "the option '\(option.name)' of '\(stage.info.id)' is a reserved key of the chain file",
                    "Give the option another name in the plugin, or tell the plugin's author.")
            }
        }
        return exports
    }

    /// `ST_NOEXEC` of statvfs(3), which C shows only with _GNU_SOURCE.
    private static let noExec: UInt = 8

    /// The dynamic linker's error, with the original's path in place of the copy's, which people do not know. Where
    /// programs may not run from the copy's folder, the text says so.
    private static func reason(of copy: PluginCopy?) -> String {
        let words = String(cString: dlerror())
        guard let copy else { return words }
        var system = statvfs()
        let isForbidden = statvfs(copy.path, &system) == 0 && system.f_flag & noExec != 0
        return words.replacing(copy.path, with: copy.original)
            + (isForbidden ? "\nSet TMPDIR to a folder from which programs may be run." : "")
    }
}
