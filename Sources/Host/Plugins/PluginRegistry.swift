// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc
import Synchronization

/// The plugins that were found: known by their manifests, and loaded only when a chain names them.
///
/// What a registry knows of the files never changes: ``reloading(_:)`` makes another registry for a rebuilt plugin.
/// [control thread; desk's thread once the chain runs] The registries of several chains share a lock. `@unchecked
/// Sendable`: everything that changes is used under that lock, except what is set before a chain runs.
final class PluginRegistry: @unchecked Sendable {
    struct Plugin {
        var path: String
        var manifest: PluginManifest

        /// Whether `name` names this plugin: the id of one of its stages, the file's name, or the path.
        func isCalled(_ name: String) -> Bool {
            path == name || path.split(separator: "/").last.map(String.init) == name
                || manifest.stages.contains { $0.id == name } || manifest.services.contains(name)
                || manifest.encoders.contains(name)
        }
    }

    private(set) var plugins: [Plugin] = []
    /// Whether plugins are loaded from copies, which pass the gate once more. The files may have changed since they
    /// were read, or be written while they are mapped.
    var loadsCopies = false
    /// With several chains: reuses the copy that was loaded last if the file's bytes are the same.
    var sharesCopies = false
    /// A copy that was loaded.
    private struct Copy {
        var sum: UInt64
        var plugin: Plugin
        var stages: [StageType]
    }

    /// The copy that was loaded last, by path of the plugin.
    private static let copies = Mutex<[String: Copy]>([:])
    private static let lock = RecursiveLock()
    /// Files that look like plugins and cannot be loaded, each with the reason.
    private(set) var skipped: [FrameHostError] = []
    /// The reasons, by the ids in the manifests of these files.
    private var refused: [String: FrameHostError] = [:]
    /// Our other libraries in the folder of the plugins: those that plugins share, and the one that fetches models.
    private static let sharedLibraries: Set<String> = ["libFrameCore.so", "libFrameNetwork.so", "libCFetch.so"]
    /// Folders that were searched, in order.
    let folders: [String]
    /// Those of `--plugin-path`.
    private let asked: [String]
    /// Ids for which ``warnOfRefused(_:)`` has warned.
    private var warned = Set<String>()
    private let gate: PluginGate
    private var loaded: [String: StageType] = [:]
    private var programs = ProgramStages()
    /// The sums of the copies that ``loaded`` comes from, by path of the plugin.
    private let sums = Mutex<[String: UInt64]>([:])
    private var loadedServices: [String: ServiceType] = [:]

    /// Searches `--plugin-path`, then `$FRAMEHOST_PLUGIN_PATH` (folders separated by colons), then the executable's
    /// folder.
    init(pluginPaths: [String], gate: PluginGate = PluginGate()) {
        let environment = getenv("FRAMEHOST_PLUGIN_PATH").map { String(cString: $0) } ?? ""
        let beside = Self.executableFolder
        self.gate = gate
        asked = pluginPaths
        var seen = Set<String>()
        folders = (pluginPaths + environment.split(separator: ":").map(String.init) + [beside])
            .filter { !$0.isEmpty && seen.insert(Self.realPath($0)).inserted }
        var files = Set<String>()
        for folder in folders {
            let isAsked = folder != beside
            guard let names = Self.list(folder) else {
                if isAsked {
                    skipped.append(
                        FrameHostError(
                            .unusablePlugin, place: folder,
                            what: "the plugin folder cannot be read: \(String(cString: strerror(errno)))",
                            remedy:
                                "Correct the folder in $FRAMEHOST_PLUGIN_PATH or --plugin-path, or make it readable."))
                }
                continue
            }
            for name in names.sorted() where name.hasSuffix(".so") && !Self.sharedLibraries.contains(name) {
                let path = "\(folder)/\(name)"
                guard files.insert(Self.realPath(path)).inserted else { continue }
                do {
                    plugins.append(Plugin(path: path, manifest: try gate.manifest(of: path)))
                } catch {
                    skip(path, .wrap(error))
                }
            }
        }
    }

    private func skip(_ path: String, _ error: FrameHostError) {
        skipped.append(error)
        guard let bytes = try? ELFFile.section(named: ".framehost", of: path),
            let manifest = try? PluginManifest(section: bytes)
        else { return }
        for id in manifest.stages.map(\.id) + manifest.services + manifest.encoders where refused[id] == nil {
            refused[id] = error
        }
    }

    /// All ids, sorted.
    var ids: [String] { Set(plugins.flatMap { $0.manifest.stages.map(\.id) }).sorted() }

    /// Faults for ids that two plugins claim.
    var conflicts: [FrameHostError] {
        ids.compactMap { id in
            let claims = plugins.filter { $0.manifest.stages.contains { $0.id == id } }
            return claims.count > 1 ? Self.conflict(id, claims.map(\.path)) : nil
        }
    }

    private static func conflict(_ id: String, _ paths: [String]) -> FrameHostError {
        FrameHostError(
            .unusablePlugin, place: paths[0],
            what: "has the id '\(id)', and so has \(paths.dropFirst().joined(separator: " and "))",
            remedy: "Remove one of these files, or give one of the plugins another id.")
    }

    /// The stage with this id, loading its plugin when first asked for, or the program that the id names; nil when no
    /// file has it.
    ///
    /// - Parameter folder: Of the chain file, from which the paths of programs go.
    /// - Throws: ``FrameHostError`` `.unusablePlugin`.
    func stage(_ id: String, folder: String = ".") throws -> StageType? {
        Self.lock.lock()
        defer { Self.lock.unlock() }
        if let program = try programs.stage(id, folder: folder, isWatched: loadsCopies) { return program }
        if let known = loaded[id] { return known }
        let claims = plugins.filter { $0.manifest.stages.contains { $0.id == id } }
        guard let plugin = claims.first else {
            if let error = refused[id] { throw error }
            return nil
        }
        guard claims.count == 1 else { throw Self.conflict(id, claims.map(\.path)) }
        let (current, stages, sum) = try load(plugin)
        sums.withLock { $0[plugin.path] = sum }
        if let index = plugins.firstIndex(where: { $0.path == plugin.path }) { plugins[index] = current }
        for stage in stages { loaded[stage.info.id] = stage }
        if loadsCopies { PluginImages.here.commitNewest(of: plugin.path) }
        return loaded[id]
    }

    /// The service with this id, loading its plugin; nil when no file has it. Services are not reloaded while a chain
    /// runs.
    ///
    /// - Throws: ``FrameHostError`` `.unusablePlugin`.
    func service(_ id: String) throws -> ServiceType? {
        Self.lock.lock()
        defer { Self.lock.unlock() }
        if let known = loadedServices[id] { return known }
        guard let plugin = try only(id, \.services) else { return nil }
        let exports = try CrashNote.during("the plugin \(plugin.path)", "being loaded") {
            try PluginLoader.load(plugin)
        }
        for service in exports.services { loadedServices[service.info.id] = service }
        return loadedServices[id]
    }

    /// Ids of services and picture encoders.
    var otherIDs: [String] {
        plugins.flatMap { $0.manifest.services + $0.manifest.encoders }.sorted()
    }

    /// The summary of the encoder with this id. Loads its plugin; nil when no file has it.
    ///
    /// - Throws: ``FrameHostError`` `.unusablePlugin`.
    func encoderSummary(of id: String) throws -> String? {
        Self.lock.lock()
        defer { Self.lock.unlock() }
        guard let plugin = try only(id, \.encoders) else { return nil }
        return try PluginLoader.load(plugin).encoders.first?.info.summary
    }

    /// The summary of a stage, service or encoder. Loads its plugin.
    ///
    /// - Throws: ``FrameHostError``.
    func summary(of item: PluginManifest.Stage) throws -> String {
        switch item.kind {
        case "service": return try service(item.id)?.info.summary ?? ""
        case "encoder":
            guard let plugin = try pictureEncoder() else { return "" }
            return try PluginLoader.load(plugin).encoders.first?.info.summary ?? ""
        default: return try stage(item.id)?.info.summary ?? ""
        }
    }

    /// The plugin with the picture encoder, which is not loaded yet; nil when there is none.
    ///
    /// - Throws: ``FrameHostError`` `.unusablePlugin` where there are several.
    func pictureEncoder() throws -> Plugin? {
        Self.lock.lock()
        defer { Self.lock.unlock() }
        return try only("picture-encoder", \.encoders)
    }

    private func only(_ id: String, _ ids: KeyPath<PluginManifest, [String]>) throws -> Plugin? {
        let claims = plugins.filter { $0.manifest[keyPath: ids].contains(id) }
        guard claims.count < 2 else { throw Self.conflict(id, claims.map(\.path)) }
        if claims.isEmpty, let error = refused[id] { throw error }
        return claims.first
    }

    /// Loads the plugin, from its present file where ``loadsCopies`` is set, and returns it with its stages and the sum
    /// of the copy.
    private func load(
        _ plugin: Plugin, reusesCopy: Bool = false
    ) throws -> (plugin: Plugin, stages: [StageType], sum: UInt64?) {
        try CrashNote.during("the plugin \(plugin.path)", "being loaded") {
            guard loadsCopies else { return (plugin, try PluginLoader.load(plugin).stages, nil) }
            let copy = try PluginCopy(of: plugin.path)
            defer { copy.remove() }
            let last = Self.copies.withLock { $0[plugin.path] }
            if sharesCopies || reusesCopy, let known = last, known.sum == copy.sum {
                try checkClaims(of: known.plugin)
                return (known.plugin, known.stages, known.sum)
            }
            var plugin = plugin
            plugin.manifest = try gate.manifest(of: plugin.path, in: copy.path)
            try checkClaims(of: plugin)
            try copy.linkLibraries()
            let stages = try PluginLoader.load(plugin, from: copy).stages
            let loaded = Copy(sum: copy.sum, plugin: plugin, stages: stages)
            Self.copies.withLock { $0[loaded.plugin.path] = loaded }
            return (plugin, stages, copy.sum)
        }
    }

    /// - Throws: ``FrameHostError`` where another file has one of its ids.
    private func checkClaims(of plugin: Plugin) throws {
        for stage in plugin.manifest.stages {
            let others = plugins.filter { $0.path != plugin.path && $0.manifest.stages.contains { $0.id == stage.id } }
            guard others.isEmpty else { throw Self.conflict(stage.id, [plugin.path] + others.map(\.path)) }
        }
    }

    // MARK: A plugin built anew

    /// A registry with the present file of the plugin `name`, which is loaded if the plugin is in use; then its sum is
    /// returned too. Also finds a file that did not exist before.
    ///
    /// - Parameters:
    ///   - name: The id of one of its stages, its file's name or its path.
    ///   - reusesCopy: Whether the copy that was loaded last is used again if the file's bytes are the same.
    /// - Throws: ``FrameHostError``; the loaded plugin then stays in use.
    func reloading(
        _ name: String, reusesCopy: Bool = false
    ) throws -> (registry: PluginRegistry, path: String, sum: UInt64?) {
        Self.lock.lock()
        defer { Self.lock.unlock() }
        let next = PluginRegistry(of: self)
        if let file = programs.file(called: name) {
            return (next, file, try next.programs.reload(file))
        }
        guard let index = next.plugins.firstIndex(where: { $0.isCalled(name) }) else {
            return try (next, next.addingNew(name), nil)
        }
        let old = next.plugins[index]
        let ids = Set(old.manifest.stages.map(\.id))
        guard ids.contains(where: { loaded[$0] != nil }) else {
            next.plugins[index].manifest = try gate.manifest(of: old.path)
            try next.checkClaims(of: next.plugins[index])
            return (next, old.path, nil)
        }
        let (plugin, stages, sum) = try next.load(old, reusesCopy: reusesCopy)
        next.plugins[index] = plugin
        for id in ids { next.loaded[id] = nil }
        for stage in stages { next.loaded[stage.info.id] = stage }
        next.sums.withLock { $0[old.path] = sum }
        return (next, old.path, sum)
    }

    private init(of other: PluginRegistry) {
        (plugins, skipped, refused) = (other.plugins, other.skipped, other.refused)
        (asked, warned) = (other.asked, other.warned)
        programs = other.programs
        (folders, gate, loaded, loadedServices) = (other.folders, other.gate, other.loaded, other.loadedServices)
        (loadsCopies, sharesCopies) = (true, other.sharesCopies)
        let known = other.sums.withLock { $0 }
        sums.withLock { $0 = known }
    }

    /// [any thread] The sum of the copy from which the plugin's stages come; nil where they come from the file itself.
    func sumInUse(of path: String) -> UInt64? {
        Self.lock.lock()
        defer { Self.lock.unlock() }
        return programs.sum(of: path) ?? sums.withLock { $0[path] }
    }

    /// Looks for a new plugin file and returns its path.
    private func addingNew(_ name: String) throws -> String {
        let now = PluginRegistry(pluginPaths: asked, gate: gate)
        if let new = now.plugins.first(where: { $0.isCalled(name) }) {
            try checkClaims(of: new)
            plugins.append(new)
            return new.path
        }
        if let fault = now.skipped.first(where: { $0.place.description.hasSuffix("/\(name)") }) ?? now.refused[name] {
            throw fault
        }
        let names = plugins.flatMap { $0.manifest.stages.map(\.id) }
        throw FrameHostError(
            .invalidConfiguration, place: name, what: "no such plugin",
            remedy: Suggestion.nearest(to: name, in: names).map { "Did you mean '\($0)'?" }
                ?? "Name one of the stage types of a plugin, or a plugin's file in \(wordList(folders, "or")).")
    }

    /// The file that has the stage with this id.
    func path(of id: String) -> String? {
        Self.lock.lock()
        defer { Self.lock.unlock() }
        return plugins.first { $0.manifest.stages.contains { $0.id == id } }?.path
    }

    /// The remedy for an unknown id: the type with that name in another program, the nearest name, or how to list what
    /// there is.
    func remedy(forUnknown id: String, nearest: (String, [String]) -> String?) -> String {
        if let remedy = FamiliarName.remedy(for: id, among: ids) { return remedy }
        if let near = nearest(id, ids) { return "Did you mean '\(near)'?" }
        if ids.isEmpty {
            return
                "Build the plugins, or name their folder with --plugin-path: none was found in \(wordList(folders, "and"))."
        }
        let count = skipped.count == 1 ? "1 file was" : "\(skipped.count) files were"
        let why = skipped.isEmpty ? "" : ", and why \(count) skipped"
        let command = (["framehost plugins"] + asked.map { "--plugin-path \($0)" }).joined(separator: " ")
        let empty = folders.first { folder in
            asked.contains(folder) && !plugins.contains { $0.path.hasPrefix("\(folder)/") }
                && !skipped.contains { "\($0.place)/".hasPrefix("\(folder)/") }
        }
        let hint =
            empty.map {
                "Build your plugin with `swift build -c release`, and name its folder .build/release with --plugin-path: \($0) has no plugin."
            } ?? "If a plugin of yours has '\(id)', name the plugin's folder with --plugin-path."
        return "\(hint) `\(command)` lists the types that were found\(why)."
    }

    /// Warns once where a file of `--plugin-path` was refused and another file has the stage with this id.
    func warnOfRefused(_ id: String) {
        // Written without the lock: whoever reads the log may be slow.
        if let warning = warningOfRefused(id) { RunLog.logger.warning("\(warning)") }
    }

    private func warningOfRefused(_ id: String) -> String? {
        Self.lock.lock()
        defer { Self.lock.unlock() }
        guard let error = refused[id],
            let plugin = plugins.first(where: { $0.manifest.stages.contains { $0.id == id } }),
            asked.contains(where: { error.place.description.hasPrefix("\($0)/") }), warned.insert(id).inserted
        else { return nil }
        return "\(error) '\(id)' comes from \(plugin.path) instead."
    }

    // MARK: Files

    static var executableFolder: String {
        let path = realPath("/proc/self/exe")
        return path.split(separator: "/", omittingEmptySubsequences: false).dropLast().joined(separator: "/")
    }

    static func realPath(_ path: String) -> String {
        guard let resolved = realpath(path, nil) else { return path }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    /// Names in a folder; nil with `errno` when it cannot be read.
    private static func list(_ folder: String) -> [String]? {
        guard let handle = opendir(folder) else { return nil }
        defer { closedir(handle) }
        var names: [String] = []
        while let entry = readdir(handle) {
            names.append(
                withUnsafePointer(to: &entry.pointee.d_name) {
                    $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
                })
        }
        return names
    }
}
