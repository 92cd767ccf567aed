// SPDX-License-Identifier: Apache-2.0

/// A budget graph whose neighbours and threads are looked up once, since the rules ask for them again and again.
struct BudgetTopology {
    let graph: BudgetGraph
    /// For each node the edges that leave it, and those that enter it, in the order of the graph.
    let outgoing: [[Int]]
    let incoming: [[Int]]
    /// For each node its thread; for each thread its nodes in the order an item meets them.
    let thread: [Int]
    let nodesOfThread: [[Int]]
    /// For each thread whether a live source runs on it: such a thread drops where others wait.
    let isLiveThread: [Bool]
    /// For each node whether another branch can carry items that do not come through it.
    let hasForkBefore: [Bool]
    /// For each edge whether its consumer is a join, that is, waits for its other inputs too.
    let entersJoin: [Bool]
    /// Whether the chain has a join, also one of a single input.
    let hasJoins: Bool
    /// For each edge whether an item that another branch carries can be missing on it because a link dropped it.
    private(set) var mayLack: [Bool] = []
    /// The same, because a link or a stage dropped it.
    private(set) var mayMiss: [Bool] = []
    /// The most items by which one way can be behind another: those that all stages together can have accepted and not
    /// yet answered, and one for each join that waits for the news of an item past its window.
    private(set) var totalLag = 0

    init(_ graph: BudgetGraph) {
        self.graph = graph
        var outgoing = [[Int]](repeating: [], count: graph.nodes.count)
        var incoming = outgoing
        for (index, edge) in graph.edges.enumerated() {
            outgoing[edge.from].append(index)
            incoming[edge.to].append(index)
        }
        let thread = graph.threads()
        var nodesOfThread = [[Int]](repeating: [], count: (thread.max() ?? -1) + 1)
        for node in graph.nodes.indices { nodesOfThread[thread[node]].append(node) }
        let sources = incoming.filter(\.isEmpty).count
        var hasForkBefore = [Bool](repeating: sources > 1, count: graph.nodes.count)
        for node in graph.nodes.indices {
            if outgoing[node].count(where: { !graph.nodes[graph.edges[$0].to].isTap }) > 1 {
                hasForkBefore[node] = true
            }
            if hasForkBefore[node] { for edge in outgoing[node] { hasForkBefore[graph.edges[edge].to] = true } }
        }
        self.outgoing = outgoing
        self.incoming = incoming
        self.thread = thread
        self.nodesOfThread = nodesOfThread
        self.hasForkBefore = hasForkBefore
        isLiveThread = nodesOfThread.map { incoming[$0[0]].isEmpty && graph.nodes[$0[0]].isLive }
        entersJoin = graph.edges.map { graph.nodes[$0.to].isJoin && incoming[$0.to].count > 1 }
        hasJoins = graph.nodes.contains(where: \.isJoin)
        mayLack = [Bool](repeating: false, count: graph.edges.count)
        mayMiss = mayLack
        for node in graph.nodes.indices {
            let lacks = self.lacks(node, mayLack)
            let canDrop = self.canDrop(node)
            let misses = self.lacks(node, mayMiss) || canDrop
            for edge in outgoing[node] {
                mayLack[edge] = lacks || canLose(edge)
                mayMiss[edge] = misses || canLose(edge)
            }
        }
        totalLag = graph.nodes.indices.reduce(0) { sum, node in
            sum + graph.nodes[node].delay + graph.nodes[node].lag + (incoming[node].map { window($0) }.max() ?? 0)
        }
    }

    /// Whether a stage may drop an item that another branch carries. Not where the stage or one behind it delays: such
    /// a stage needs more items before it answers, and no declaration says how many are dropped.
    private func canDrop(_ node: Int) -> Bool {
        incoming[node].contains { hasForkBefore[graph.edges[$0].from] } && graph.nodes[node].delay == 0
            && !descendants(of: node).contains { graph.nodes[$0].delay > 0 }
    }

    /// Whether a node lacks items. A join gives the items of its leading input; a join without one gives those of any
    /// input.
    private func lacks(_ node: Int, _ mayLack: [Bool]) -> Bool {
        if let lead = leadingInput(of: node) { return mayLack[lead] }
        let lacking = incoming[node].filter { mayLack[$0] }.count
        return lacking > 0 && (lacking == incoming[node].count || !graph.nodes[node].isJoin)
    }

    /// The edge of a join's leading input; nil for a join that waits for equal times, and for other stages.
    func leadingInput(of node: Int) -> Int? {
        guard graph.nodes[node].isJoin, graph.nodes[node].match != .exact, incoming[node].count > 1,
            !graph.nodes[node].isClocked
        else { return nil }
        return incoming[node][graph.nodes[node].lead]
    }

    /// The inputs of `node` on which it can wait while others have items. A join can wait on all, on the leading one
    /// only, or on none.
    func awaited(_ node: Int) -> [Int] {
        if graph.nodes[node].isClocked { return [] }
        guard incoming[node].count > 1, graph.nodes[node].isJoin else { return incoming[node] }
        if graph.nodes[node].match == .newest, let lead = leadingInput(of: node) { return [lead] }
        return incoming[node]
    }

    /// By how many items the item that a join awaits on `edge` may be later than the item that it has. Under
    /// `nearest` it is not enough to know that an item was dropped, since another one could lie in the window.
    func window(_ edge: Int) -> Int {
        let node = graph.nodes[graph.edges[edge].to]
        return entersJoin[edge] && node.match == .nearest && mayMiss[edge] ? 1 : 0
    }

    /// Whether the producer of `edge` can stand still there.
    func canBlock(_ edge: Int) -> Bool {
        let link = graph.edges[edge]
        return link.capacity > 0 && link.policy.canBlock && !isLiveThread[thread[link.from]]
    }

    /// Whether an item can be lost on `edge` that another branch still carries.
    func canLose(_ edge: Int) -> Bool {
        let link = graph.edges[edge]
        return link.capacity > 0 && !canBlock(edge) && hasForkBefore[link.from]
    }

    /// The queues a thread takes from: several for a join, none for a source.
    func inputs(ofThread thread: Int) -> [Int] { incoming[nodesOfThread[thread][0]] }
    /// The queues a thread gives to.
    func outputs(ofThread thread: Int) -> [Int] {
        nodesOfThread[thread].flatMap { outgoing[$0].filter { graph.edges[$0].capacity > 0 } }
    }

    /// Whether `edge` is an input of which a join takes the newest item, led by another input or by the clock. An item
    /// there waits for no particular item, and counts as held.
    func isNewest(_ edge: Int) -> Bool {
        let node = graph.edges[edge].to
        if graph.nodes[node].isClocked { return true }
        return graph.nodes[node].match == .newest && leadingInput(of: node).map { $0 != edge } ?? false
    }

    /// Other inputs on which the join that `edge` enters can wait while an item lies there; none when it enters no
    /// join.
    func siblings(_ edge: Int) -> [Int] {
        guard entersJoin[edge], !isNewest(edge) else { return [] }
        return awaited(graph.edges[edge].to).filter { $0 != edge }
    }

    /// The most input buffers that a node keeps, for each input. A node that hands on its input buffers keeps those
    /// that it delays too.
    func hold(_ node: Int) -> Int {
        let hold = graph.nodes[node].hold
        return graph.nodes[node].kind == .passThrough ? max(hold, graph.nodes[node].delay) : hold
    }

    /// Nodes that can be reached from `node`, without itself.
    func descendants(of node: Int) -> Set<Int> {
        var found: Set<Int> = []
        var open = [node]
        while let next = open.popLast() {
            for edge in outgoing[next] where found.insert(graph.edges[edge].to).inserted {
                open.append(graph.edges[edge].to)
            }
        }
        return found
    }
}
