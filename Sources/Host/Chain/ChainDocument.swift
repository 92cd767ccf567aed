// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Synchronization

/// The running chain, written as a chain file: the file as it was read, with what commands have changed since.
///
/// Each change is a whole new document that is read and checked like a file. It becomes the present one once the chain
/// runs that way. [desk's thread; made on the control thread]
final class ChainDocument: @unchecked Sendable {
    let path: String
    private let registryBox: Mutex<PluginRegistry>
    /// Replaced whenever a plugin was reloaded.
    private var registry: PluginRegistry {
        get { registryBox.withLock { $0 } }
        set { registryBox.withLock { $0 = newValue } }
    }
    private let settings: [String]
    private let frameLimit: Int?
    private let ownStreams: [ChainRequest.OwnStream]
    private let root: Mutex<JSONNode>
    /// Tells of changes of the file since it was read.
    let watch: FileWatch
    private let changeCount = Atomic<Int>(0)
    /// Ids of the file's stages when the run started.
    let firstIDs: Set<String>

    /// - Parameters:
    ///   - settings: Values of `--set`. They hold for every file that is read in this run.
    ///   - common: Values of `--set` for several chains. Each holds in every chain that has its stage.
    ///   - ownStreams: Standard streams that the program uses itself for all of this run.
    /// - Throws: ``FrameHostErrors``.
    init(
        path: String, registry: PluginRegistry, settings: [String], common: [String] = [], frameLimit: Int?,
        ownStreams: [ChainRequest.OwnStream] = []
    ) throws {
        self.path = path
        registryBox = Mutex(registry)
        self.frameLimit = frameLimit
        self.ownStreams = ownStreams
        // What is saved while the file is read, or after that, is a change.
        watch = FileWatch(path)
        let first = try ChainFile.read(path)
        let ids = Self.ids(first)
        firstIDs = ids
        // Of several values for one option, the last one holds.
        self.settings = common.filter { ids.contains(String($0.prefix { $0 != "." })) } + settings
        root = Mutex(first)
    }

    /// The request of the present document.
    ///
    /// - Throws: ``FrameHostErrors``.
    func request() throws -> ChainRequest { try request(present, isChange: false) }

    /// [control thread before the chain runs] The plugin with the picture encoder, which is not loaded yet; nil
    /// when there is none.
    ///
    /// - Throws: ``FrameHostError`` where there are several.
    func pictureEncoder() throws -> PluginRegistry.Plugin? { try registry.pictureEncoder() }

    /// [desk's thread; control thread before the chain runs] The file of the plugin that has the stage type
    /// `id`.
    func plugin(of id: String) -> String? { registry.path(of: id) }

    private static func ids(_ root: JSONNode) -> Set<String> {
        Set((root["stages"]?.asArray ?? []).enumerated().map { ChainFile.id(of: $1, $0) })
    }

    /// What stands for the file's name in the places of faults where a command contains the chain itself.
    static let inlineFile = "chain"

    var present: JSONNode { root.withLock { $0 } }

    /// The document for clients: with the values of `--set`, without the options of services, which may be secret, and
    /// with addresses as ``Address`` shows them.
    ///
    /// - Parameter live: Options that were set while it runs, by the stage's id.
    func shown(with live: [String: [JSONNode.Member]]) -> JSONNode {
        var shown = present.withoutPlaces
        for key in ChainFile.services.keys where shown[key] != nil { shown = shown.setting(key, [:]) }
        let given = settings.compactMap(SettingReader.parts)
        let stages = (shown["stages"]?.asArray ?? []).enumerated().map { index, stage in
            let id = ChainFile.id(of: stage, index)
            let asStarted = given.filter { $0.stage == id }
                .reduce(stage) { $0.setting($1.option, $1.value.withoutPlaces) }
            return (live[id] ?? []).reduce(asStarted) { $0.setting($1.key, $1.value.withoutPlaces) }
        }
        return shown.setting("stages", JSONNode(.array(stages))).hidingAddressValues
    }

    /// Restores what ``shown(with:)`` has left out in a document that comes from there and was edited: a service that
    /// it leaves out, or has without options, stays as it is, and so does an address that is as it was shown.
    func withHiddenParts(_ root: JSONNode) -> JSONNode {
        guard var members = root.restoringAddresses(of: present).asObject else { return root }
        for service in present.asObject ?? [] where ChainFile.services[service.key] != nil {
            guard root[service.key] == nil || root[service.key]?.asObject?.isEmpty == true else { continue }
            members.removeAll { $0.key == service.key }
            members.append(service)
        }
        return JSONNode(.object(members), place: root.place)
    }

    /// Makes `next` the present document: the chain runs that way now.
    func commit(_ next: JSONNode) {
        root.withLock { $0 = next }
        countChange()
    }

    /// [any thread] How often the chain was changed by its file or by commands. A plugin that was reloaded leaves the
    /// document as it is and does not count.
    var changes: Int { changeCount.load(ordering: .acquiring) }

    /// [any thread] Counts a change that leaves the document as it is: options that were set.
    func countChange() { changeCount.wrappingAdd(1, ordering: .acquiringAndReleasing) }

    /// Whether the present document is the chain file as it is on disk.
    var isAsItsFile: Bool { (try? read(nil))?.withoutPlaces == present.withoutPlaces }

    /// [any thread] The sum of the plugin's file from which this chain's stages come; nil where they do not come from
    /// a copy.
    func sumInUse(of path: String) -> UInt64? { registry.sumInUse(of: path) }

    /// - Parameters:
    ///   - file: The file that the text comes from, for the places of faults.
    ///   - plugins: Used in place of the present registry.
    ///   - isChange: False before the chain runs.
    ///   - isOwnFile: Whether the text is that of the chain file on disk.
    func request(
        _ root: JSONNode, file: String? = nil, plugins: PluginRegistry? = nil, isChange: Bool = true,
        isOwnFile: Bool = false
    ) throws -> ChainRequest {
        try checkServices(root, file: file)
        if isChange, !isOwnFile { try checkPrograms(root, file: file) }
        var reader = ChainFile(name: file ?? path, registry: plugins ?? registry, isChange: isChange)
        // A setting for a detached stage is ignored. One for a stage that never existed is a fault.
        let ids = Self.ids(root)
        let known = settings.filter { setting in
            let id = String(setting.prefix { $0 != "." })
            return ids.contains(id) || !firstIDs.contains(id) || (file != nil && file != Self.inlineFile)
        }
        do {
            var request = try reader.request(from: root, folder: ChainFile.folder(of: path), settings: known)
            request.frameLimit = frameLimit
            if file == Self.inlineFile { request.ownName = ChainRequest(file: path, folder: "", stages: []).name }
            request.ownStreams = ownStreams
            return request
        } catch let faults as FrameHostErrors {
            throw FrameHostErrors(ChainFile.sorted(faults.errors))
        }
    }

    /// [any thread] Reads the chain file again and changes the chain to it, all or nothing.
    ///
    /// - Parameter check: Called on the desk's thread before anything is read; what it throws is the answer.
    func reload(_ chain: Chain, check: @escaping () throws -> Void = {}, reply: @escaping CommandReply) {
        var next: JSONNode?
        chain.change(stage: nil, resetting: .all) { [self] _ in
            try check()
            let root = try read(nil)
            next = root
            return try request(root, isOwnFile: true)
        } committed: { [self] in
            if let next { commit(next) }
        } reply: {
            reply($0)
        }
    }

    /// [any thread] Loads the plugin `name` from its present file, and replaces its running stages.
    /// docs/design/011-hot-swap.md.
    ///
    /// - Parameters:
    ///   - isWatched: Whether the program asks, and tries again where the chain has no time for the change.
    ///   - loaded: Called on the desk's thread with the sum of the copy that was loaded.
    func reloadPlugin(
        _ name: String, _ chain: Chain, isWatched: Bool = false, loaded: @escaping (UInt64) -> Void = { _ in },
        reply: @escaping CommandReply
    ) {
        var next: (registry: PluginRegistry, path: String, sum: UInt64?)?
        chain.change(stage: nil) { [self] _ in
            // No image is ever unloaded, so that each attempt would add one.
            let reloaded = try registry.reloading(name, reusesCopy: isWatched)
            next = reloaded
            if let sum = reloaded.sum { loaded(sum) }
            return try request(present, plugins: reloaded.registry)
        } committed: { [self] in
            guard let next else { return }
            registry = next.registry
            PluginImages.here.commitNewest(of: next.path)
        } details: {
            guard let next else { return [] }
            return [
                JSONNode.Member(key: "plugin", value: .string(next.path)),
                JSONNode.Member(key: "images", value: .number(PluginImages.here.count(of: next.path))),
            ]
        } reply: { [self, weak chain] answer in
            let present = self.present
            let placed = answer.placed { Self.named($0, in: present) }
            reply(placed.ofReload("the plugin", chain, whenBusy: isWatched ? CommandAnswer.triesAgain : nil))
        }
    }

    // MARK: Edits

    /// Reads the chain file as it is on disk now, or another file.
    ///
    /// - Throws: ``FrameHostErrors``.
    func read(_ file: String?) throws -> JSONNode { try ChainFile.read(file ?? path, takesPipes: false) }

    /// The document with further stages, the first of which takes the output of `producer`.
    ///
    /// - Parameters:
    ///   - stages: As in a chain file. The first may name further inputs in `from`, beside `producer`.
    ///   - copies: Whether the branch gets copies in buffers of its own.
    func attaching(_ stages: [JSONNode], at producer: String, copies: Bool) throws -> JSONNode {
        var list = try explicitStages()
        guard list.contains(where: { $0["id"]?.asString == producer }) else { throw unknown(producer) }
        guard !stages.isEmpty else {
            throw FrameHostError(
                .invalidConfiguration, place: "stages", what: "the list is empty",
                remedy: "Name at least a sink: { \"use\": \"null-sink\" }.")
        }
        for (index, stage) in stages.enumerated() {
            var stage = stage.withoutPlaces
            if index == 0 {
                if stage["from"]?.asArray?.contains(.string(producer)) != true {
                    if let from = stage["from"], from != .string(producer) {
                        throw FrameHostError(
                            .invalidConfiguration, place: "stages[0].from",
                            what: "the branch is attached at '\(producer)', which 'from' does not name",
                            remedy: "Leave 'from' out, or name another stage in \"at\".")
                    }
                    stage = stage.setting("from", .string(producer))
                }
                if copies, stage["link"] == nil || stage["link"]?.asObject != nil {
                    stage = stage.setting("link", (stage["link"] ?? [:]).setting("copy", .bool(true)))
                }
            }
            list.append(stage)
        }
        return try replacingStages(list)
    }

    /// Translates a place in the changed chain `root` into one in the command `attach`: `stages[0].size`. In that chain
    /// the command's stages are the last ones.
    static func place(_ place: FaultPlace, inAttaching stages: [JSONNode], _ root: JSONNode) -> FaultPlace {
        guard let (index, rest) = stage(in: place) else { return place }
        let first = (root["stages"]?.asArray?.count ?? 0) - stages.count
        guard index >= first else { return named(place, in: root) }
        let given = index == first ? stages.first : nil
        if let given, rest == ".link.copy", given["link"]?["copy"] == nil { return Self.place(place, in: "copy") }
        // Only a list in `from` says more than "at".
        let isAt = index == first && rest == ".from" && given?["from"]?.asArray == nil
        return Self.place(place, in: isAt ? "at" : "stages[\(index - first)]\(rest)")
    }

    /// Translates a place in the changed chain `root` into one in the command `replace`: `with.size`.
    static func place(_ place: FaultPlace, inReplacing id: String, with other: JSONNode, _ root: JSONNode)
        -> FaultPlace
    {
        guard let (index, rest) = stage(in: place), let changed = root["stages"]?.asArray,
            changed.indices.contains(index)
        else { return place }
        let key = rest.dropFirst().prefix { $0 != "." && $0 != "[" }
        // Members that the command does not have come from the chain.
        let isGiven = key.isEmpty || other[String(key)] != nil
        guard ChainFile.id(of: changed[index], index) == id, isGiven else { return named(place, in: root) }
        return Self.place(place, in: "with\(rest)")
    }

    /// A place in the running chain `root` that names its stage by its id. Commands may have changed the list of stages
    /// since the file was read, so an index could lead to another stage of the file, or to none.
    static func named(_ place: FaultPlace, in root: JSONNode) -> FaultPlace {
        guard let (index, rest) = stage(in: place), let stages = root["stages"]?.asArray,
            stages.indices.contains(index)
        else { return place }
        var named = place
        (named.file, named.position, named.path, named.title) = (nil, nil, nil, nil)
        named.words = [ChainFile.id(of: stages[index], index) + rest, place.words].filter { !$0.isEmpty }
            .joined(separator: ": ")
        return named
    }

    /// The index of a place's stage, and the rest of the path: 3 and `.size` of `stages[3].size`.
    private static func stage(in place: FaultPlace) -> (index: Int, rest: String)? {
        guard place.argument == nil, let path = place.path, path.hasPrefix("stages["),
            let end = path.firstIndex(of: "]"), let index = Int(path.dropFirst("stages[".count).prefix { $0 != "]" })
        else { return nil }
        return (index, String(path[path.index(after: end)...]))
    }

    private static func place(_ place: FaultPlace, in path: String) -> FaultPlace {
        var place = place
        (place.file, place.position, place.path, place.title) = (nil, nil, path, nil)
        return place
    }

    /// The document without the branch that begins with `id`.
    func detaching(_ id: String) throws -> JSONNode {
        let list = try explicitStages()
        guard list.contains(where: { $0["id"]?.asString == id }) else { throw unknown(id) }
        let stays = Self.stages(in: list, without: id)
        guard !stays.isEmpty else {
            throw FrameHostError(
                .invalidConfiguration, place: FaultPlace(id),
                what: "nothing would be left: every other stage comes after '\(id)'",
                remedy: "End the run with the command \"drain\".")
        }
        if let (producer, reader) = Self.unreadOutput(in: stays, of: list) {
            let detach = Self.detachable(from: producer, in: list).map { "Detach '\($0)' instead, attach" } ?? "Attach"
            throw FrameHostError(
                .invalidConfiguration, place: FaultPlace(id),
                what: "no other stage takes the output of '\(producer)'",
                remedy: "\(detach) another branch after '\(producer)' first, or replace '\(reader)'.")
        }
        return try replacingStages(stays)
    }

    /// The stages that stay when the branch that begins with `id` is removed.
    private static func stages(in list: [JSONNode], without id: String) -> [JSONNode] {
        var gone: Set<String> = [id]
        var hasGrown = true
        while hasGrown {
            hasGrown = false
            for stage in list where !gone.contains(stage["id"]?.asString ?? "") {
                guard inputs(of: stage).contains(where: gone.contains) else { continue }
                gone.insert(stage["id"]?.asString ?? "")
                hasGrown = true
            }
        }
        return list.filter { !gone.contains($0["id"]?.asString ?? "") }
    }

    /// A stage of `stays` whose output no other stage would take, and the stage of `list` that takes it now.
    private static func unreadOutput(in stays: [JSONNode], of list: [JSONNode]) -> (producer: String, reader: String)? {
        let ids = Set(stays.compactMap { $0["id"]?.asString })
        let isRead = Set(stays.flatMap(Self.inputs))
        for stage in list where !ids.contains(stage["id"]?.asString ?? "") {
            for producer in inputs(of: stage) where ids.contains(producer) && !isRead.contains(producer) {
                return (producer, stage["id"]?.asString ?? "")
            }
        }
        return nil
    }

    /// `id`, or the nearest stage before it that can be detached; nil where there is none.
    private static func detachable(from id: String, in list: [JSONNode]) -> String? {
        var id = id
        var seen = Set<String>()
        while seen.insert(id).inserted {
            let stays = stages(in: list, without: id)
            guard let (producer, _) = unreadOutput(in: stays, of: list) else { return stays.isEmpty ? nil : id }
            id = producer
        }
        return nil
    }

    /// The document with another stage in place of `id`. Input and link stay where `stage` does not say otherwise.
    func replacing(_ id: String, with stage: JSONNode) throws -> JSONNode {
        var list = try explicitStages()
        guard let index = list.firstIndex(where: { $0["id"]?.asString == id }) else { throw unknown(id) }
        guard stage.asObject != nil else {
            throw FrameHostError(
                .invalidConfiguration, place: "with", what: "expected an object, found \(stage.kindName)",
                remedy: "Write \"with\": { \"use\": \"…\" }.")
        }
        if let other = stage["id"], other.withoutPlaces != .string(id) {
            throw FrameHostError(
                .invalidConfiguration, place: "with.id", what: "the new stage must keep the id '\(id)'",
                remedy: "Leave 'id' out: 'replace' cannot change it.")
        }
        // Whoever edits what the control server shows sends addresses back as they were shown.
        var next = stage.withoutPlaces.restoringAddresses(of: list[index]).setting("id", .string(id))
        // What a join says of its inputs holds for another join, and for nothing else.
        let use = next["use"]?.asString ?? list[index]["use"]?.asString ?? ""
        let isJoin = (try? registry.stage(use, folder: ChainFile.folder(of: path)))?.kind == .join
        for key in ChainKeys.stage.names where next[key] == nil && key != "note" && (isJoin || key != "join") {
            if let kept = list[index][key] { next = next.setting(key, kept) }
        }
        list[index] = next
        return try replacingStages(list)
    }

    private func replacingStages(_ stages: [JSONNode]) throws -> JSONNode {
        present.setting("stages", JSONNode(.array(stages)))
    }

    /// The present stages, each with an explicit `id` and, unless it is a source, `from`: the stage before it in the
    /// list may be removed.
    private func explicitStages() throws -> [JSONNode] {
        let stages = present["stages"]?.asArray ?? []
        let ids = stages.enumerated().map { ChainFile.id(of: $1, $0) }
        return try stages.enumerated().map { index, stage in
            var stage = stage.setting("id", .string(ids[index]))
            let use = stage["use"]?.asString ?? ""
            let type = try registry.stage(use, folder: ChainFile.folder(of: path))
            if stage["from"] == nil, index > 0, type?.kind != .source {
                stage = stage.setting("from", .string(ids[index - 1]))
            }
            return stage
        }
    }

    private static func inputs(of stage: JSONNode) -> [String] {
        let names = stage["from"]?.asString.map { [$0] } ?? stage["from"]?.asArray?.compactMap(\.asString) ?? []
        return names.map { String($0.prefix { $0 != "." }) }
    }

    private func unknown(_ id: String) -> FrameHostError {
        let ids = (present["stages"]?.asArray ?? []).enumerated().map { ChainFile.id(of: $1, $0) }
        return FrameHostError(
            .invalidConfiguration, place: id, what: "no such stage",
            remedy: Suggestion.nearest(to: id, in: ids).map { "Did you mean '\($0)'?" }
                ?? "The chain has \(quotedList(ids, "and")).", reason: .noSuchStage)
    }
}

extension JSONNode {
    /// The object with `value` as the member `key`, which replaces an existing one.
    fileprivate func setting(_ key: String, _ value: JSONNode) -> JSONNode {
        var members = asObject ?? []
        if let index = members.firstIndex(where: { $0.key == key }) {
            members[index].value = value
        } else {
            members.append(Member(key: key, value: value))
        }
        return JSONNode(.object(members), place: place)
    }
}
