// SPDX-License-Identifier: Apache-2.0

/// How many buffers each pool of a chain gets: `min`, `need` with its parts, and the size itself. The rules and their
/// proof are in docs/design/001-budgets.md.
struct PoolSizes {
    private let topology: BudgetTopology
    /// The graph, with the queues as raised.
    private let graph: BudgetGraph
    private let rules: BudgetRules
    private let written: [Int: Int]
    private let writtenForCopies: [Int: Int]
    private let spare: PoolSpare

    /// - Parameters:
    ///   - graph: The graph, with the queues as raised.
    ///   - written: The buffers of a node's output pool that the chain file asks for.
    ///   - writtenForCopies: The same for copy pools.
    init(
        _ domains: BudgetDomains, _ graph: BudgetGraph, _ rules: BudgetRules, written: [Int: Int],
        writtenForCopies: [Int: Int], spare: PoolSpare
    ) {
        topology = domains.topology
        self.graph = graph
        self.rules = rules
        self.written = written
        self.writtenForCopies = writtenForCopies
        self.spare = spare
    }

    func pool(_ domain: BudgetDomains.Domain) -> BudgetPlan.Pool {
        let shares = shares(domain)
        let need = shares.reduce(rules.need) { $0 + $1.count }
        let written = (domain.isCopyPool ? writtenForCopies : written)[domain.allocator]
        return BudgetPlan.Pool(
            allocator: domain.allocator, isCopyPool: domain.isCopyPool, members: domain.members,
            floor: floor(domain), min: topology.hasJoins || domain.isCopyPool ? need : min(domain), need: need,
            size: written ?? need + spare.count, shares: shares)
    }

    private func floor(_ domain: BudgetDomains.Domain) -> Int {
        domain.isCopyPool ? 0 : graph.nodes[domain.allocator].floor
    }

    /// `hold` is per input: a join may keep that many of each input that carries this pool's buffers.
    private func holds(_ domain: BudgetDomains.Domain) -> [(node: Int, count: Int)] {
        let own = domain.isCopyPool ? [(domain.allocator, topology.hold(domain.allocator))] : []
        return own + domain.members.map { ($0, topology.hold($0) * domain.inputs[$0]!) }
    }

    /// The parts of `need`: everything that can have a buffer at the same time.
    private func shares(_ domain: BudgetDomains.Domain) -> [BudgetPlan.Share] {
        let node = graph.nodes[domain.allocator]
        let holds = holds(domain)
        var shares: [BudgetPlan.Share] = []
        func add(_ what: String, _ count: Int) {
            if count > 0 { shares.append(BudgetPlan.Share(what: what, count: count)) }
        }
        add("floor of \(node.name)", floor(domain))
        add("threads", Set(([domain.allocator] + domain.members).map { topology.thread[$0] }).count)
        // Under `exact` a join's items have one time, and thus are one buffer. Otherwise they can be different ones.
        for member in domain.members where graph.nodes[member].isJoin && graph.nodes[member].match != .exact {
            add("further inputs of \(graph.nodes[member].name)", domain.inputs[member]! - 1)
        }
        for member in holds { add("workers of \(graph.nodes[member.node].name)", graph.nodes[member.node].workers) }
        if !domain.isCopyPool { add("workers of \(node.name)", node.workers) }
        for edge in domain.edges {
            add("queue before \(graph.nodes[graph.edges[edge].to].name)", graph.edges[edge].capacity)
        }
        for member in holds { add("kept by \(graph.nodes[member.node].name)", member.count) }
        // The runner keeps them, to give them again.
        for edge in domain.edges {
            add("last picture for \(graph.nodes[graph.edges[edge].to].name)", graph.edges[edge].keeps)
        }
        return shares
    }

    /// With fewer buffers than this a chain without joins can stop for good: all are held, and none is on its way.
    private func min(_ domain: BudgetDomains.Domain) -> Int {
        let floor = floor(domain)
        let held = holds(domain).reduce(0) { $0 + $1.count }
        return 1 + rules.base + (floor > 0 ? floor + rules.floor : 0) + (held > 0 ? held + rules.hold : 0)
    }
}

/// How many buffers each pool gets beside `need`, so that a branch can be attached while the chain runs. A pool does
/// not grow, so what the branch holds must be there before.
public enum PoolSpare: Sendable, Equatable {
    /// None.
    case none
    /// As many as the chain file says.
    case buffers(Int)
    /// For a live chain, what the simplest branch needs anywhere: a queue of two and a thread.
    case computed

    /// A queue of ``LinkPlanner/usualPlaces`` and the frame in hand of the thread behind it.
    static let ofOneQueue = LinkPlanner.usualPlaces + 1

    fileprivate var count: Int {
        switch self {
        case .none: 0
        case .buffers(let count): count
        case .computed: Self.ofOneQueue
        }
    }
}
