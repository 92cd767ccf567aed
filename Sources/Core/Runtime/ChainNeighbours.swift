// SPDX-License-Identifier: Apache-2.0

/// The chains of this process that run beside each other. A change of one of them is compared with the others as chains
/// are when they are planned (``ChainClashes``): a stage that is attached does not write what another chain writes or
/// reads. docs/design/031-several-chains.md.
///
/// Safe from every thread.
public final class ChainNeighbours: Sendable {
    /// Those of the process.
    public static let shared = ChainNeighbours()

    private struct Entry {
        weak var chain: Chain?
        var serviceClaims: [(key: String, claim: StageDemand.Claim)]
    }

    /// `@unchecked Sendable`: claims are values, and chains are used by several threads anyway.
    private struct Entries: @unchecked Sendable { var list: [Entry] = [] }

    private let entries = Locked(Entries())

    /// Notes that a chain runs, or is about to, until it is freed or removed.
    ///
    /// - Parameters:
    ///   - chain: The chain.
    ///   - serviceClaims: What its services claim, by their keys in the chain file.
    public func add(_ chain: Chain, serviceClaims: [(key: String, claim: StageDemand.Claim)] = []) {
        entries.withLock { entries in
            entries.list.removeAll { $0.chain == nil }
            entries.list.append(Entry(chain: chain, serviceClaims: serviceClaims))
        }
    }

    /// Notes that a chain has ended.
    public func remove(_ chain: Chain) {
        entries.withLock { $0.list.removeAll { $0.chain == nil || $0.chain === chain } }
    }

    /// What a chain wants, with another plan, that a chain beside it has. Empty for a chain that was not added.
    func faults(of chain: Chain, to request: ChainRequest, _ plan: ChainPlan) -> [FrameHostError] {
        let all = entries.withLock { $0.list }.compactMap { entry in entry.chain.map { ($0, entry.serviceClaims) } }
        guard let own = all.first(where: { $0.0 === chain }) else { return [] }
        // No lock is held: the graph of another chain has a lock of its own.
        let others = all.filter { $0.0 !== chain }.map { other, claims in
            let graph = other.graph
            return ChainClashes.Member(graph.request, graph.plan, serviceClaims: claims)
        }
        let clashes = ChainClashes(others + [ChainClashes.Member(request, plan, serviceClaims: own.1)])
        return clashes.faults.filter { $0.chain == others.count }.map(\.error)
    }
}
