// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Glibc

/// Reads a chain file into a ``ChainRequest``: keys, ids and links. The stages read their options themselves.
///
/// Collects all faults. Control thread.
struct ChainFile: ChainPartReader {
    /// More stages than any chain needs. Each costs a context and perhaps a thread.
    static let mostStages = 1000
    /// Services, by their key in the chain file.
    static let services = [
        "control": "control-server", "mqtt": "mqtt-events", "nats": "nats-events", "onvif": "onvif",
        "webhook": "webhook",
    ]
    private static let beginning = "Start with { \"stages\": [ … ] }."

    let name: String
    private let registry: PluginRegistry
    /// Whether the request changes a chain that runs. Faults that only a plan finds are then left to the plan of
    /// the change, which knows which stages stay. A plan of the file alone would find that a recorder's file is in
    /// use, by the recorder that runs.
    private let isChange: Bool
    /// Of the chain file.
    private var folder = "."
    var faults: [FrameHostError] = []
    /// Options whose text names a variable that the environment does not have, by index of the stage. Their values are
    /// not checked any further.
    private var unknownValues: [Int: Set<String>] = [:]

    init(name: String, registry: PluginRegistry, isChange: Bool = false) {
        self.name = name
        self.registry = registry
        self.isChange = isChange
    }

    /// Reads the file at `path` and applies `--set`.
    ///
    /// - Parameter settings: `stage.option=value` each.
    /// - Throws: ``FrameHostErrors``.
    static func load(_ path: String, registry: PluginRegistry, settings: [String]) throws -> ChainRequest {
        let root = try read(path)
        var reader = ChainFile(name: path, registry: registry)
        return try reader.request(from: root, folder: folder(of: path), settings: settings)
    }

    /// The text of the file at `path` as a tree.
    ///
    /// - Parameter takesPipes: False while a chain runs, since reading would wait for the pipe's writer.
    /// - Throws: ``FrameHostErrors``.
    static func read(_ path: String, takesPipes: Bool = true) throws -> JSONNode {
        if path == "-" || path.firstRange(of: "://") != nil {
            throw FrameHostErrors([
                FrameHostError(
                    .invalidConfiguration, place: FaultPlace(file: path),
                    what: path == "-" ? "is not a file" : "is an address, but a chain is read from a file",
                    remedy: path == "-"
                        ? "Name the chain file, or /dev/stdin for standard input."
                        : "Download it first, and name the file."
                )
            ])
        }
        do {
            return try JSONReader.read(
                path: path, form: "chain file", remedy: Self.beginning, takesPipes: takesPipes)
        } catch let found as FrameHostErrors {
            // A chain file that cannot be opened counts as a wrong command line: exit status 2.
            throw FrameHostErrors(
                found.errors.map { fault in
                    var fault = fault
                    fault.code = .invalidConfiguration
                    return fault
                })
        }
    }

    /// The folder of the file that `path` leads to. A folder below the current one is written relative to it, since
    /// people read it that way.
    static func folder(of path: String) -> String {
        let parts = PluginRegistry.realPath(path).split(separator: "/", omittingEmptySubsequences: false).dropLast()
        let folder = parts.joined(separator: "/")
        let current = PluginRegistry.realPath(".")
        if folder.isEmpty || folder == current { return "." }
        return folder.hasPrefix(current + "/") ? String(folder.dropFirst(current.utf8.count + 1)) : folder
    }

    mutating func request(from root: JSONNode, folder: String, settings: [String]) throws -> ChainRequest {
        Address.hideSecrets(of: root)
        for setting in settings { Address.hideSecrets(of: .string(String(setting.drop { $0 != "=" }.dropFirst()))) }
        guard root.asObject != nil else {
            fault(root, "", "expected an object, found \(root.kindName)", Self.beginning)
            throw FrameHostErrors(faults)
        }
        self.folder = folder
        var request = ChainRequest(file: name, folder: folder, stages: [])
        read(root, "", as: ChainKeys.chain, into: &request, further: Self.services.keys.sorted())
        request.ownPlaces["spare"] = root["spare"]?.place
        guard let list = root["stages"] else { throw FrameHostErrors(faults) }
        guard let nodes = list.asArray, !nodes.isEmpty else {
            fault(
                list, "stages",
                list.asArray != nil ? "the list is empty" : "expected a list of stages, found \(list.kindName)",
                "Write at least a source and a sink.")
            throw FrameHostErrors(faults)
        }
        guard nodes.count <= Self.mostStages else {
            fault(
                list, "stages", "\(nodes.count) stages are more than the limit of \(Self.mostStages)",
                "Split the chain.")
            throw FrameHostErrors(faults)
        }
        let ids = readIDs(nodes)
        var links = LinkReader(name: name, ids: ids, stageCount: nodes.count)
        var settingReader = SettingReader(name: name, ids: ids)
        let changes = settingReader.read(settings)
        faults += settingReader.faults
        for (index, node) in nodes.enumerated() {
            if let stage = readStage(node, index, &links, changes: changes[index] ?? []) {
                request.stages.append(stage)
            }
        }
        let isComplete = request.stages.count == nodes.count
        links.addFurtherOutputs(complete: isComplete, &request)
        faults += links.faults
        readBuffers(root["buffers"], ids: ids, &request)
        if let on = root["on"] {
            var rules = RuleReader(name: name, ids: Set(ids.keys), stages: request.stages)
            request.rules = rules.read(on)
            faults += rules.faults
        }
        for (key, id) in Self.services.sorted(by: { $0.key < $1.key }) { readService(key, id, root[key], &request) }
        let registry = UncheckedRegistry(registry: self.registry)
        request.converter = { try registry.registry.stage("convert") }
        try throwFaults(isPlannable: request.stages.count == nodes.count && !links.hasBrokenFrom && !isChange, request)
        return request
    }

    /// Only the control thread uses the registry, within the planner's call.
    private struct UncheckedRegistry: @unchecked Sendable { let registry: PluginRegistry }

    /// Adds the faults that the plan finds to those of keys and links, so that one `check` shows all.
    private mutating func throwFaults(isPlannable: Bool, _ request: ChainRequest) throws {
        guard !faults.isEmpty else { return }
        var found: [FrameHostError] = []
        func collect(_ body: () throws -> Void) {
            do { try body() } catch { found += (error as? FrameHostErrors)?.errors ?? [.wrap(error)] }
        }
        if isPlannable {
            collect { _ = try Chain.plan(request) }
        } else {
            for stage in request.stages { collect { try stage.checkOptions(file: name) } }
        }
        throw FrameHostErrors(Self.sorted(faults + found.filter { !comesFromAnUnknownValue($0) }))
    }

    /// Whether a fault comes from a value whose variable is missing. Such a value says nothing about its option, nor
    /// about the stage as a whole. Faults of the stage's other options stay.
    private func comesFromAnUnknownValue(_ fault: FrameHostError) -> Bool {
        unknownValues.contains { index, keys in
            let stage = "stages[\(index)]"
            guard let path = fault.place.path, path.hasPrefix(stage) else { return false }
            let rest = path.dropFirst(stage.count)
            guard rest.hasPrefix(".") else { return true }
            return keys.contains { rest == ".\($0)" || rest.hasPrefix(".\($0).") || rest.hasPrefix(".\($0)[") }
        }
    }

    /// The faults in the order of the file; those of one place in the order in which they were found.
    static func sorted(_ faults: [FrameHostError]) -> [FrameHostError] {
        let inOrder = faults.enumerated().sorted { a, b in
            if a.element.place.precedes(b.element.place) { return true }
            return !b.element.place.precedes(a.element.place) && a.offset < b.offset
        }
        .map(\.element)
        // Outputs of one stage have its options, and so the same faults.
        var result: [FrameHostError] = []
        var said: Set<String> = []
        for fault in inOrder where !fault.isConsequence && said.insert(fault.description).inserted {
            result.append(fault)
        }
        for fault in inOrder where fault.isConsequence && said.insert(fault.description).inserted {
            let cause = result.lastIndex { owner($0) == owner(fault) } ?? result.indices.last
            result.insert(fault, at: cause.map { $0 + 1 } ?? 0)
        }
        return result
    }

    /// The stage that a fault's place is in: `stages[2]`, or `--set cam`.
    private static func owner(_ fault: FrameHostError) -> String {
        let place = fault.place
        return String((place.path ?? place.argument ?? place.description).prefix { $0 != "." })
    }

    // MARK: Top level

    private mutating func readService(_ key: String, _ id: String, _ node: JSONNode?, _ request: inout ChainRequest) {
        guard let node else { return }
        guard let members = node.asObject else {
            let isAddress = key == "control" && node.asString != nil
            return fault(
                node, key, "expected an object, found \(node.kindName)",
                isAddress ? "Write { \"listen\": \(node.text()) }." : "Write { } for the defaults.")
        }
        do {
            guard let type = try registry.service(id) else {
                let folders = registry.folders.joined(separator: ", ")
                return fault(
                    node, key, "no plugin has the service '\(id)'",
                    "Put its plugin into a folder that is searched (\(folders)), or name another folder with --plugin-path."
                )
            }
            let count = faults.count
            let options = members.map { member in
                var member = member
                member.value = expanded(member.value, "\(key).\(member.key)")
                return member
            }
            guard faults.count == count else { return }
            let service = ServiceRequest(key: key, type: type, options: options, file: name)
            // The services of a chain that runs are unchanged, but their files may have gone since they were read.
            if !isChange {
                try CrashNote.during("the service '\(key)'", "being checked") {
                    try service.make().check(folder: request.folder)
                }
            }
            request.services.append(service)
        } catch {
            for found in (error as? FrameHostErrors)?.errors ?? [.wrap(error)] {
                var found = found
                if found.place.file == nil {
                    let option = found.option ?? found.place.words
                    let member = members.last { $0.key == option }
                    found.place = FaultPlace(
                        file: name, position: member?.keyPlace ?? node.place,
                        path: member == nil ? key : "\(key).\(option)")
                }
                faults.append(found)
            }
        }
    }

    private mutating func readBuffers(_ node: JSONNode?, ids: [String: Int], _ request: inout ChainRequest) {
        guard let node else { return }
        guard let members = node.asObject else {
            return fault(
                node, "buffers", "expected an object, found \(node.kindName)", "Write { \"STAGE\": COUNT }.")
        }
        for member in members {
            let path = JSONPath().appending("buffers").appending(member.key).description
            request.ownPlaces[path] = member.value.place
            guard let index = ids[member.key] else {
                fault(
                    member.keyPlace, path, "no such stage",
                    didYouMean(member.key, in: ids.keys.sorted(), else: "Name a stage of this chain."))
                continue
            }
            do throws(OptionFault) { request.buffers[index] = try ChainKeys.buffers.read(member.value) } catch {
                fault(member.value, path, error.what, error.remedy)
            }
        }
    }

    /// Reads the ids, and notes the index of each. A stage without an id is named after its `use`.
    private mutating func readIDs(_ nodes: [JSONNode]) -> [String: Int] {
        var ids: [String: Int] = [:]
        for (index, node) in nodes.enumerated() {
            let id = Self.id(of: node, index)
            if let given = node["id"] {
                if given.asString == nil {
                    fault(
                        given, "stages[\(index)].id", "expected a string, found \(given.kindName)",
                        "Write a name.")
                    continue
                }
                if !Self.isValidID(id) {
                    fault(
                        given, "stages[\(index)].id",
                        "'\(id)' must consist of 1 to 64 letters (a to z, A to Z), digits, '-' or '_'",
                        "Choose another id.")
                }
            }
            if let first = ids[id] {
                // Commands may have changed the list of stages, and their senders do not see its indices.
                fault(
                    node["id"]?.place ?? node.place, "stages[\(index)].id",
                    "'\(id)' is already the id of \(isChange ? "another stage" : "stages[\(first)]")",
                    node["id"] == nil
                        ? "Give this stage an \"id\": without one, its id is its \"use\"."
                        : "Give each stage an id of its own.")
            } else {
                ids[id] = index
            }
        }
        return ids
    }

    static func id(of node: JSONNode, _ index: Int) -> String {
        if let id = node["id"]?.asString { return id }
        guard let use = node["use"]?.asString else { return "stage\(index)" }
        return ProgramStages.id(of: use) ?? use
    }

    static func isValidID(_ id: String) -> Bool {
        (1...64).contains(id.utf8.count)
            && id.utf8.allSatisfy {
                (48...57).contains($0) || (65...90).contains($0) || (97...122).contains($0) || $0 == 45 || $0 == 95
            }
    }

    // MARK: One stage

    private mutating func readStage(
        _ node: JSONNode, _ index: Int, _ links: inout LinkReader, changes: [SettingReader.Setting]
    )
        -> StageRequest?
    {
        let path = "stages[\(index)]"
        var own = ChainKeys.Stage()
        guard read(node, path, as: ChainKeys.stage, into: &own), let members = node.asObject else { return nil }
        let type = readUse(node["use"], path)
        // Faults of the other keys are listed even where the plugin is unknown.
        let from = links.readFrom(node["from"], path, index, isSource: type?.info.input == StageInfo.Media.none)
        let link = links.readLink(node["link"], path)
        let join = links.readJoin(node["join"], path, from)
        faults += links.faults
        links.faults = []
        guard let type else { return nil }
        var stage = StageRequest(
            id: Self.id(of: node, index), type: type, from: from, link: link, join: join, onError: own.onError,
            isUnread: own.isUnread, fileIndex: index, place: node.place)
        stage.ownPlaces = ownPlaces(node)
        stage.isOriginal = own.isOriginal
        stage.isolation = readIsolation(node["isolate"], "\(path).isolate", of: type)
        var options = members.filter { !ChainKeys.stage.names.contains($0.key) }
        options.removeAll { member in
            guard let meant = Self.keyMeant(by: member.key, of: type) else { return false }
            fault(
                member.keyPlace, "\(path).\(member.key)", "no such option", "Did you mean \(meant)?",
                unknown: member.key)
            return true
        }
        options = options.map { member in
            var member = member
            // A missing variable in a value that --set replaces is not a fault.
            guard !changes.contains(where: { $0.member.key == member.key }) else { return member }
            let count = faults.count
            member.value = expanded(member.value, "\(path).\(member.key)")
            if faults.count > count { unknownValues[index, default: []].insert(member.key) }
            return member
        }
        for (member, setting) in changes {
            options.removeAll { $0.key == member.key }
            options.append(member)
            stage.settings[member.key] = "--set \(SettingReader.shown(setting))"
        }
        stage.options = options
        return stage
    }

    /// The key beside the options that `key` probably means, as a stage has it: `'from'`,
    /// `"link": { "whenFull": … }`. Nil for an option, or where an option is as near.
    private static func keyMeant(by key: String, of type: StageType) -> String? {
        let options = type.options.map(\.name)
        guard !options.contains(key) else { return nil }
        var further: [(key: String, text: String)] = []
        func add(_ keys: [String], in owner: String? = nil) {
            for key in keys where !options.contains(key) {
                further.append((key, owner.map { "\"\($0)\": { \"\(key)\": … }" } ?? "'\(key)'"))
            }
        }
        let isFed = type.info.input != .none
        let isJoin = type.kind == .join
        add(ChainKeys.stage.names.filter { (isFed || !["from", "link"].contains($0)) && (isJoin || $0 != "join") })
        if isFed { add(ChainKeys.link.names, in: "link") }
        if isJoin { add(ChainKeys.join.names, in: "join") }
        let near = Suggestion.nearest(to: key, in: options.sorted() + further.map(\.key))
        return further.first { $0.key == near }?.text
    }

    private mutating func readIsolation(_ node: JSONNode?, _ path: String, of type: StageType) -> IsolationRequest? {
        guard let node else { return nil }
        guard node.asBool != false else {
            if type.program != nil {
                fault(node, path, "'\(type.info.id)' always has a process of its own", "Leave 'isolate' out.")
            }
            return nil
        }
        var isolation = IsolationRequest()
        if node.asBool == nil { read(node, path, as: ChainKeys.isolation, into: &isolation) }
        isolation.plugin = registry.path(of: type.info.id) ?? ""
        return isolation
    }

    /// The places of the keys that are not options, and of the members of `link`.
    private func ownPlaces(_ node: JSONNode) -> [String: TextPlace] {
        var places: [String: TextPlace] = [:]
        for member in node.asObject ?? [] where ChainKeys.stage.names.contains(member.key) {
            places[member.key] = member.value.place
        }
        for key in ["link", "join", "isolate"] {
            for part in node[key]?.asObject ?? [] { places["\(key).\(part.key)"] = part.value.place }
        }
        return places
    }

    private mutating func readUse(_ node: JSONNode?, _ path: String) -> StageType? {
        guard let use = node else { return nil }
        guard let plugin = use.asString else {
            fault(
                use, "\(path).use", "expected a string, found \(use.kindName)",
                "Name a stage type: `framehost plugins` lists them.")
            return nil
        }
        do {
            if let found = try registry.stage(plugin, folder: folder) {
                registry.warnOfRefused(plugin)
                return found
            }
            if registry.otherIDs.contains(plugin) {
                let key = Self.services.first { $0.value == plugin }?.key
                fault(
                    use, "\(path).use", "'\(plugin)' is \(key == nil ? "not a stage" : "a service, not a stage")",
                    key.map { "Write \"\($0)\": { … } beside \"stages\"." }
                        ?? "Name a stage type: `framehost plugins` lists them.")
                return nil
            }
            fault(
                use, "\(path).use", "no stage type '\(plugin)'",
                registry.remedy(forUnknown: plugin, nearest: Suggestion.nearest))
        } catch {
            faults.append(
                .wrap(error, place: FaultPlace(file: name, position: use.place, path: "\(path).use")))
        }
        return nil
    }
}
