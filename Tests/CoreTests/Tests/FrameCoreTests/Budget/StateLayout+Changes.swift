// SPDX-License-Identifier: Apache-2.0

@testable import FrameCore

/// What a state says of the changes there were: who runs, on which thread, and who may rest.
extension StateLayout {
    typealias State = UnsafeMutablePointer<UInt8>

    /// Who makes changes; and who has to finish one that has begun, which is counted on.
    static let changeActor: UInt8 = 63
    static let finisher: UInt8 = 62

    func isCut(_ edge: Int, _ state: State) -> Bool { changes != nil && state[queues[edge].cut] != 0 }

    /// Nobody behind hears of what is dropped there.
    func isAway(_ edge: Int, _ state: State) -> Bool { changes != nil && state[queues[edge].cut] == 1 }

    func mode(of node: Int, _ state: State) -> UInt8 {
        changes == nil ? 0 : state[nodes[node].condition] & Condition.mode
    }

    /// Of the thread that `node` runs on now: a branch that ran inline and was taken away ends on a thread of its own.
    func head(of node: Int, _ state: State) -> Int {
        var head = node
        while let caller = nodes[head].caller, !isCut(nodes[head].inputs[0], state) { head = caller }
        return head
    }

    func isHead(_ node: Int, _ state: State) -> Bool { changes != nil && head(of: node, state) == node }

    func actor(of node: Int, _ state: State) -> UInt8 {
        let head = head(of: node, state)
        return UInt8(nodes[head].caller == nil ? nodes[head].thread : threadCount + head)
    }

    func actorName(_ actor: Int) -> String {
        actor < threadCount
            ? threadName(actor) : actor == Self.finisher ? "desk" : graph.nodes[actor - threadCount].name
    }

    /// Nothing is on an edge whose consumer leaves, and nothing comes.
    func hasEnded(edge: Int, _ state: State) -> Bool {
        guard changes != nil, state[nodes[graph.edges[edge].to].condition] & Condition.leaves != 0 else { return false }
        if queues[edge].capacity > 0, state[queues[edge].first] != Self.none { return false }
        return isCut(edge, state) || state[nodes[graph.edges[edge].from].condition] & Condition.isGone != 0
    }

    /// The branch was taken away, and has taken all there was.
    func hasEnded(_ node: Int, _ state: State) -> Bool {
        if let lead = nodes[node].lead { return hasEnded(edge: lead, state) }
        return nodes[node].inputs.allSatisfy { hasEnded(edge: $0, state) }
    }

    // MARK: Who may rest

    /// Which news come out of a stage for ever.
    private enum News {
        case items
        /// That there are none.
        case nothing
        /// Neither: a source is paused.
        case none
    }

    /// Threads that may not be idle for ever in this state, a bit each: all but those of branches that are gone, those
    /// behind a stage that lets nothing by, and where a source rests all that waits for it at a join.
    func threadsThatMustMove(_ state: State) -> UInt64 {
        guard changes != nil else { return (1 << UInt64(threadCount)) - 1 }
        var taken: [News] = []
        var given: [News] = []
        var rests = Set<Int>()
        for (index, node) in nodes.enumerated() {
            let news = node.inputs.map { given[graph.edges[$0].from] }
            var takes: News
            if node.inputs.isEmpty {
                takes = mode(of: index, state) == 0 ? .items : .none
            } else if !node.isJoin {
                takes = news[0]
            } else if let lead = node.lead, node.match == .newest {
                takes = news[node.inputs.firstIndex(of: lead)!]
            } else if news.contains(where: { $0 == .none }) {
                takes = .none
            } else if let lead = node.lead {
                takes = news[node.inputs.firstIndex(of: lead)!]
            } else {
                takes = news.contains { $0 == .items } ? .items : .nothing
            }
            taken.append(takes)
            let drops = mode(of: index, state) == Condition.drops
            given.append(takes == .items && drops && node.kind != .source ? .nothing : takes)
            guard takes == .none, node.isJoin else { continue }
            // Whoever feeds such a join may wait at it for good, and with them all that they feed.
            rests.formUnion(nodes.indices.filter { changes!.branch(of: $0).contains(index) })
        }
        for node in rests { rests.formUnion(changes!.branch(of: node)) }
        var must: UInt64 = 0
        for (index, node) in nodes.enumerated() where isHead(index, state) {
            let presence = state[node.condition] & Condition.presence
            if presence == Condition.isGone { continue }
            if presence == Condition.leaves || (taken[index] == .items && !rests.contains(index)) {
                must |= 1 << UInt64(actor(of: index, state))
            }
        }
        return must
    }
}
