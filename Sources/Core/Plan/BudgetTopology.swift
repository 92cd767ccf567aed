/// A budget graph with its neighbourhoods and threads looked up once: what the rules ask for again and again.
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
    let hasJoins: Bool
    /// For each edge whether an item that another branch carries can be missing on it.
    private(set) var mayLack: [Bool] = []
    /// The most items that all stages together have accepted and not answered.
    let totalDelay: Int

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
            if outgoing[node].count > 1 { hasForkBefore[node] = true }
            if hasForkBefore[node] { for edge in outgoing[node] { hasForkBefore[graph.edges[edge].to] = true } }
        }
        self.outgoing = outgoing
        self.incoming = incoming
        self.thread = thread
        self.nodesOfThread = nodesOfThread
        self.hasForkBefore = hasForkBefore
        isLiveThread = nodesOfThread.map { incoming[$0[0]].isEmpty && graph.nodes[$0[0]].isLive }
        entersJoin = graph.edges.map { graph.nodes[$0.to].isJoin && incoming[$0.to].count > 1 }
        hasJoins = entersJoin.contains(true)
        totalDelay = graph.nodes.reduce(0) { $0 + $1.delay }
        // A join gives what any of its inputs had.
        mayLack = [Bool](repeating: false, count: graph.edges.count)
        for node in graph.nodes.indices {
            let lacking = incoming[node].filter { mayLack[$0] }.count
            let lacks = lacking > 0 && (lacking == incoming[node].count || !graph.nodes[node].isJoin)
            for edge in outgoing[node] { mayLack[edge] = lacks || canLose(edge) }
        }
    }

    /// True when the producer of `edge` can stand still there.
    func canBlock(_ edge: Int) -> Bool {
        let link = graph.edges[edge]
        return link.capacity > 0 && link.policy.canBlock && !isLiveThread[thread[link.from]]
    }

    /// True when an item can be lost on `edge` that another branch still carries.
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

    /// Other inputs of the join that `edge` enters; none when it enters no join.
    func siblings(_ edge: Int) -> [Int] {
        guard entersJoin[edge] else { return [] }
        return incoming[graph.edges[edge].to].filter { $0 != edge }
    }

    /// Input buffers a node keeps, at most, for each input. One that hands on the buffers it got has those it delays
    /// among them.
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
