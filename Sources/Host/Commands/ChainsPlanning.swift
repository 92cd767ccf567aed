// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// What several chains share while they are planned: plugins, the memory that is left, and what only one chain can
/// have.
///
/// docs/design/031-several-chains.md. A chain that was away is planned again on its own thread: what changes is behind a
/// lock. [any thread]
final class ChainsPlanning: Sendable {
    let list: ChainList
    let registry: PluginRegistry
    private let settings: ChainList.Share
    private let frameLimit: Int?
    private let ownStreams: [ChainRequest.OwnStream]
    private let memory = AvailableMemory.now()
    private let state = Locked(State())

    private struct State {
        var takenBytes = 0
        var members: [ChainClashes.Member] = []
        /// Ids of the stages in all files that could be read.
        var ids = Set<String>()
        /// The files that could be read.
        var read = Set<Int>()
    }

    /// - Parameter settings: `--set`, as it was written.
    /// - Throws: ``FrameHostErrors``.
    init(
        _ list: ChainList, registry: PluginRegistry, settings: [String], frameLimit: Int? = nil,
        ownStreams: [ChainRequest.OwnStream] = []
    ) throws {
        self.list = list
        self.registry = registry
        self.frameLimit = frameLimit
        self.ownStreams = ownStreams
        self.settings = try list.share(settings, of: "--set", ends: [".", "="])
        for setting in self.settings.common where SettingReader.parts(of: setting) == nil {
            throw FrameHostError(
                .invalidConfiguration, place: FaultPlace(argument: "--set \(SettingReader.shown(setting))"),
                what: "must have the form stage.option=value or chain:stage.option=value",
                remedy: "Write for example --set h264.bitrateKbps=2500.")
        }
    }

    /// - Throws: ``FrameHostErrors``: the file cannot be read.
    func document(of chain: Int) throws -> ChainDocument {
        let document = try ChainDocument(
            path: list.chains[chain].path, registry: registry, settings: settings.own[chain] ?? [],
            common: settings.common, frameLimit: frameLimit, ownStreams: ownStreams)
        let ids = document.firstIDs
        state.withLock { state in
            state.read.insert(chain)
            state.ids.formUnion(ids)
        }
        return document
    }

    /// The request of a chain, with the memory that the chains before it leave.
    ///
    /// - Throws: ``FrameHostErrors``.
    func request(of document: ChainDocument) throws -> ChainRequest {
        var request = try document.request()
        request.memory = memory?.left(besideOtherChains: memoryBytes)
        return request
    }

    /// Adds a planned chain.
    ///
    /// - Throws: ``FrameHostErrors`` when it claims a file, device or port that an earlier chain has.
    func add(_ request: ChainRequest, _ plan: ChainPlan, _ services: RunServices) throws {
        let member = ChainClashes.Member(request, plan, serviceClaims: services.claims)
        let clashes = state.withLock { state in
            let clashes = ChainClashes(state.members + [member]).faults.map(\.error)
            if clashes.isEmpty {
                state.members.append(member)
                let (sum, overflow) = state.takenBytes.addingReportingOverflow(plan.memoryBytes)
                state.takenBytes = overflow ? .max : sum
            }
            return clashes
        }
        guard clashes.isEmpty else { throw FrameHostErrors(ChainFile.sorted(clashes)) }
    }

    /// Bytes of all plans.
    var memoryBytes: Int { state.withLock { $0.takenBytes } }

    /// `--set` for stages that no chain has: known once all files have been read.
    var faultsOfSettings: [FrameHostError] {
        let (read, ids) = state.withLock { ($0.read.count, $0.ids) }
        guard read == list.chains.count else { return [] }
        return settings.common.compactMap { setting in
            guard let stage = SettingReader.parts(of: setting)?.stage, !ids.contains(stage) else { return nil }
            return FrameHostError(
                .invalidConfiguration, place: FaultPlace(argument: "--set \(SettingReader.shown(setting))"),
                what: "no chain has a stage '\(stage)'",
                remedy: Suggestion.nearest(to: stage, in: ids.sorted()).map { "Did you mean '\($0)'?" }
                    ?? "Name the id of a stage of one of the chains.")
        }
    }

    /// The faults of one chain, each with its place. A fault of the command line, or without a file, names the
    /// chain.
    func faults(_ error: any Error, of chain: Int) -> [FrameHostError] {
        let found = (error as? FrameHostErrors)?.errors ?? [FrameHostError.wrap(error)]
        return ChainFile.sorted(found).map { fault in
            guard fault.place.argument != nil || fault.place.file == nil else { return fault }
            var fault = fault
            let place = fault.place.description
            fault.place = FaultPlace(words: list.chains[chain].name + (place.isEmpty ? "" : ": \(place)"))
            return fault
        }
    }
}
