import FrameCore
import Glibc

/// The plugins that are there: known from their manifests, loaded only when a chain names them.
final class PluginRegistry {
    struct Plugin {
        var path: String
        var manifest: PluginManifest
    }

    private(set) var plugins: [Plugin] = []
    /// Files that look like plugins and may not be loaded, each with its sentence.
    private(set) var skipped: [FrameHostError] = []
    /// Of these, by the id of each stage that their manifest names.
    private var refused: [String: FrameHostError] = [:]
    /// Of ours, beside the plugins: what they share, and what fetches models.
    private static let sharedLibraries: Set<String> = ["libFrameCore.so", "libFrameNetwork.so", "libCFetch.so"]
    /// Folders that were searched, in order.
    let folders: [String]
    private var loaded: [String: StageType] = [:]

    /// Looks into `--plugin-path`, then `$FRAMEHOST_PLUGIN_PATH` (folders with colons between), then beside the
    /// executable.
    init(pluginPaths: [String], gate: PluginGate = PluginGate()) {
        let environment = getenv("FRAMEHOST_PLUGIN_PATH").map { String(cString: $0) } ?? ""
        let beside = Self.executableFolder
        var gate = gate
        if gate.corePath.isEmpty { gate.corePath = "\(beside)/libFrameCore.so" }
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
                            remedy: "Name an existing folder."))
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
        for stage in manifest.stages where refused[stage.id] == nil { refused[stage.id] = error }
    }

    /// All ids, sorted.
    var ids: [String] { Set(plugins.flatMap { $0.manifest.stages.map(\.id) }).sorted() }

    /// Ids that two plugins claim, as sentences.
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
            remedy: "Keep one of them, or give one another id.")
    }

    /// The stage with this id, loading its plugin when first asked for; nil when no file has it.
    ///
    /// - Throws: ``FrameHostError`` `.unusablePlugin`.
    func stage(_ id: String) throws -> StageType? {
        if let known = loaded[id] { return known }
        let claims = plugins.filter { $0.manifest.stages.contains { $0.id == id } }
        guard let plugin = claims.first else {
            if let error = refused[id] { throw error }
            return nil
        }
        guard claims.count == 1 else { throw Self.conflict(id, claims.map(\.path)) }
        let stages = try CrashNote.during("the plugin \(plugin.path) was being loaded") {
            try PluginLoader.load(plugin)
        }
        for stage in stages { loaded[stage.info.id] = stage }
        return loaded[id]
    }

    /// The file that has the stage with this id.
    func path(of id: String) -> String? { plugins.first { $0.manifest.stages.contains { $0.id == id } }?.path }

    /// A sentence for an id that nobody has: the nearest name, or what there is.
    func remedy(forUnknown id: String, nearest: (String, [String]) -> String?) -> String {
        if let near = nearest(id, ids) { return "Did you mean '\(near)'?" }
        if ids.isEmpty {
            return
                "No plugin was found in \(folders.joined(separator: ", ")): build them, or name their folder with --plugin-path."
        }
        let count = skipped.count == 1 ? "1 file was" : "\(skipped.count) files were"
        let why = skipped.isEmpty ? "" : ", and why \(count) skipped"
        return "Known are \(ids.joined(separator: ", ")); `framehost plugins` says from where\(why)."
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
