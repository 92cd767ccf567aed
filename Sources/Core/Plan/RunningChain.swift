// SPDX-License-Identifier: Apache-2.0

/// The stages for which a change forgets the live options that commands have set.
public enum ResetScope: Sendable, Equatable {
    /// No stage.
    case none
    /// All stages.
    case all
    /// The stage with this id.
    case of(String)

    func contains(_ id: String) -> Bool {
        switch self {
        case .none: false
        case .all: true
        case .of(let one): one == id
        }
    }
}

/// A running chain as the planner of a change sees it: its stages as planned, and their memory.
///
/// It is a snapshot. The instances and contexts in it are those that run; a planner reads only what never changes in
/// them. docs/design/009-running-graph.md has the rules.
struct RunningChain {
    /// A pool by the stage that allocates from it.
    struct PoolName: Hashable {
        var stage: String
        var isCopyPool = false
    }

    struct Pool {
        /// The buffers that will be free again. The caller subtracts those that a hanging stage keeps for good.
        var size: Int
        /// `need` in the plan that the pool was made for.
        var need: Int
        /// How many buffers have their memory.
        var touched: Int
        /// Buffers that each stage may keep for as long as nothing newer comes to it, by its id.
        var keepers: [String: Int] = [:]
    }

    struct Slab {
        var byteCount: Int
        var unitCount: Int
    }

    /// A link by the ids of the stages it joins.
    private struct LinkName: Hashable {
        var from: String
        var to: String
    }

    /// The planned stages, by id.
    private(set) var stages: [String: PlannedStage] = [:]
    var pools: [PoolName: Pool] = [:]
    var slabs: [String: Slab] = [:]
    let services: ChainServices
    let layout: MetadataLayout
    let isLive: Bool
    /// As ``PlannedChain/hidden``.
    let hidden: [String: OriginalsProof.Hidden]
    /// The pool sizes and the spare buffers that the chain file asks for. Both hold as long as the chain runs.
    let buffers: [String: Int]
    let spare: Int?
    private var links: [LinkName: LinkSettings] = [:]
    private var remade: Set<String> = []
    /// Live options that commands have set, by the stage's id.
    var liveOptions: [String: [JSONNode.Member]] = [:]
    /// The stages whose live options become those of the request again.
    var resets = ResetScope.none

    /// The running chain once `planned` is applied.
    init(_ planned: PlannedChain) {
        services = planned.services
        layout = planned.layout
        isLive = planned.isLive
        spare = planned.spare
        hidden = planned.hidden
        var buffers: [String: Int] = [:]
        for stage in planned.stages {
            stages[stage.id] = stage
            buffers[stage.id] = stage.buffers
        }
        self.buffers = buffers
        let plan = planned.plan
        for pool in plan.budget.pools {
            let name = PoolName(stage: plan.stages[pool.allocator].id, isCopyPool: pool.isCopyPool)
            pools[name] = Pool(
                size: pool.size, need: pool.need, touched: min(pool.need, pool.size),
                keepers: Self.keepers(of: pool, plan.budget.graph))
        }
        for slab in plan.slabs {
            slabs[plan.stages[slab.stage].id] = Slab(byteCount: slab.byteCount, unitCount: slab.unitCount)
        }
        for link in plan.links {
            links[LinkName(from: plan.stages[link.from].id, to: plan.stages[link.to].id)] = link.settings
        }
    }

    /// By stage, the buffers that it holds, that the runner keeps for it, and that wait before it as a join.
    private static func keepers(of pool: BudgetPlan.Pool, _ graph: BudgetGraph) -> [String: Int] {
        let topology = BudgetTopology(graph)
        let givers = [pool.allocator] + pool.members.filter { graph.nodes[$0].kind == .passThrough }
        var keepers: [String: Int] = [:]
        for member in pool.members {
            let edges = topology.incoming[member].filter {
                givers.contains(graph.edges[$0].from) && !graph.edges[$0].carriesUnits
            }
            keepers[graph.nodes[member].name] = edges.reduce(0) { sum, edge in
                sum + topology.hold(member) + graph.edges[edge].keeps
                    + (topology.entersJoin[edge] ? graph.edges[edge].capacity : 0)
            }
        }
        return keepers
    }

    /// Lets the stage be made anew, whatever the request says.
    mutating func remake(_ id: String) { remade.insert(id) }

    subscript(id: String) -> PlannedStage? { stages[id] }

    /// The options to make a stage with. A stage may be made anew although its request has not changed (its plugin
    /// was rebuilt, or it has failed). It then also gets the options that commands have set since.
    func options(of request: StageRequest) -> [JSONNode.Member] {
        guard let stage = stages[request.id], stage.request.type.info.id == request.type.info.id,
            request.changedOptions(from: stage.request).isEmpty, !resets.contains(request.id)
        else { return request.options }
        return request.options.overlaid(with: liveOptions[request.id] ?? [])
    }

    /// The link between two running stages, and its request; nil where there is none.
    func link(from producer: String, to consumer: String) -> (settings: LinkSettings, asked: LinkRequest)? {
        guard let settings = links[LinkName(from: producer, to: consumer)], let stage = stages[consumer],
            let input = stage.inputIDs.firstIndex(of: producer)
        else { return nil }
        return (settings, stage.inputLinks[input])
    }

    /// The converter that was inserted between these two.
    func converter(from producer: String, to consumer: String) -> PlannedStage? {
        stages[consumer]?.inputIDs.lazy.compactMap { stages[$0] }
            .first { $0.isInserted && $0.inputIDs == [producer] }
    }

    /// The tap that copies for `consumer` what `producer` gives.
    func tap(from producer: String, for consumer: String) -> PlannedStage? {
        let before = stages[consumer]?.inputIDs.compactMap { stages[$0] } ?? []
        let behindConverters = before.filter { $0.isInserted && !$0.isTap }.flatMap(\.inputIDs).compactMap {
            stages[$0]
        }
        return (before + behindConverters).first { $0.isTap && $0.inputIDs == [producer] }
    }

    /// The running stage that matches `request`, and the live options that make it match; nil where the stage must be
    /// made anew.
    func counterpart(of request: StageRequest) -> (stage: PlannedStage, options: [JSONNode.Member])? {
        guard !remade.contains(request.id), let stage = stages[request.id], stage.request.type === request.type,
            stage.request.join == request.join, stage.request.isolation == request.isolation
        else { return nil }
        var options: [JSONNode.Member] = []
        var keys = request.changedOptions(from: stage.request)
        if resets.contains(request.id) {
            keys += (liveOptions[request.id] ?? []).map(\.key).filter { !keys.contains($0) }
        }
        for key in keys {
            guard let field = request.type.options.first(where: { $0.name == key }), field.isLive else { return nil }
            options.append(
                request.options.first { $0.key == key } ?? JSONNode.Member(key: key, value: field.defaultValue))
        }
        return (stage, options)
    }
}

extension [JSONNode.Member] {
    /// These members, with `others` in place of those with the same key.
    func overlaid(with others: [JSONNode.Member]) -> [JSONNode.Member] {
        filter { member in !others.contains { $0.key == member.key } } + others
    }
}

extension StageRequest {
    /// Names of options that differ from those of `other`; first those that are written here.
    func changedOptions(from other: StageRequest) -> [String] {
        func value(_ members: [JSONNode.Member], _ key: String) -> JSONNode? {
            members.last { $0.key == key }?.value.withoutPlaces
        }
        var keys: [String] = []
        for key in options.map(\.key) + other.options.map(\.key) where !keys.contains(key) { keys.append(key) }
        return keys.filter { value(options, $0) != value(other.options, $0) }
    }
}

extension MediaFormat {
    /// Whether a stage that was negotiated with `format` can go on with this one.
    ///
    /// Access units may have other parameter sets, another bitrate, and less reordering: a new encoder begins with a
    /// keyframe and sends its parameter sets in the stream.
    func isAsGood(as format: MediaFormat) -> Bool {
        guard case .encoded(let new) = self, case .encoded(let old) = format else { return self == format }
        return new.codec == old.codec && new.framing == old.framing && new.video == old.video
            && new.audio?.withoutBitRate == old.audio?.withoutBitRate && new.reorderDepth <= old.reorderDepth
    }
}
