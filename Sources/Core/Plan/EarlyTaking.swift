// SPDX-License-Identifier: Apache-2.0

/// Decides from which inputs a stage of several inputs takes items before their turn, so that no such stage waits
/// for an item that another one holds up.
///
/// A *merge* here is a stage that takes the items of several inputs in the order of their time: a ``MultiSink``, a
/// ``MultiTransform`` or a ``MultiFilter``. While it waits for one input, it holds up whatever feeds the full queues of the others. Merges that
/// hold up what the next one waits for, in a circle, would wait forever. docs/design/033-kinds-of-sample.md has the
/// proof that they don't.
struct EarlyTaking {
    /// Why an input's items are taken before their turn while their producer waits for a place, or why they are not:
    /// the rows of the second table of "Stages of several inputs that wait for each other" in design 033.
    enum Leave: Equatable {
        /// No other merge can hold up what the input's items wait for: they keep their turn.
        case ownTurn
        /// Another input may be late. The items are taken early while another merge waits for an item of the same
        /// origin.
        case lateInput
        /// The items come from the source of another input, or a join before the merge needs both sources.
        case joinedSource
        /// Inputs of the merge depend on one source, through whatever stages.
        case sharedSource
        /// The merge is a filter of a live chain: pictures are better without motion than lost.
        case livePictures
    }

    /// The inputs of one merge, in the order of `from`.
    struct Inputs: Equatable {
        var leaves: [Leave]
        /// The sources, and the merges next upstream, from which the items of each input come.
        var origins: [Set<Int>]
    }

    /// The inputs of each merge, by node.
    private(set) var inputs: [Int: Inputs] = [:]

    private let topology: BudgetTopology
    private var origins: [Int: [Set<Int>]] = [:]

    init(_ topology: BudgetTopology) {
        self.topology = topology
        let merges = topology.graph.nodes.indices.filter(isMerge)
        guard !merges.isEmpty else { return }
        for node in topology.graph.nodes.indices where topology.incoming[node].count > 1 {
            origins[node] = topology.incoming[node].map { origins(of: $0) }
        }
        // What filters wait for beside pictures: they need it up to some time after a picture.
        let companions = merges.filter(isFilter).reduce(into: Set<Int>()) {
            for origins in origins[$1]!.dropFirst() { $0.formUnion(origins) }
        }
        for merge in merges { inputs[merge] = inputs(of: merge, companions) }
    }

    private func isMerge(_ node: Int) -> Bool {
        topology.incoming[node].count > 1 && !topology.graph.nodes[node].isJoin
    }

    private func inputs(of merge: Int, _ companions: Set<Int>) -> Inputs {
        let own = origins[merge]!
        if sharesSources(merge) { return Inputs(leaves: own.map { _ in .sharedSource }, origins: own) }
        let overJoins = groups { topology.graph.nodes[$0].isJoin }
        // A stage that holds up the pictures behind a filter also holds up their source. Behind a transform, it holds up
        // the sources of all inputs.
        let heldUp = isSink(merge) ? [] : isFilter(merge) ? own[0] : own.reduce(into: []) { $0.formUnion($1) }
        let overOthers = groups(beside: isSink(merge) ? [] : heldUp.union([merge])) { $0 != merge }
        let isLate = topology.incoming[merge].map(isLate)
        let leaves = own.indices.map { input -> Leave in
            let others = own.indices.filter { $0 != input }
            if others.contains(where: { meet(own[input], own[$0], overJoins) }) { return .joinedSource }
            let isCompanion = !own[input].isDisjoint(with: companions)
            let isInCircle = others.contains { (isCompanion || isLate[$0]) && meet(own[input], own[$0], overOthers) }
            return isInCircle ? .lateInput : .ownTurn
        }
        return Inputs(leaves: leaves, origins: own)
    }

    /// Whether a filter's pictures, or an input of a sink or transform, share a source with another input. A stage that has in
    /// hand an item for which the merge has no place can then hold up what the merge waits for.
    private func sharesSources(_ merge: Int) -> Bool {
        let inputs = topology.incoming[merge].map { origins(of: $0, overMerges: true) }
        return inputs.indices.contains { input in
            (input == 0 || !isFilter(merge))
                && inputs.indices.contains { $0 != input && !inputs[$0].isDisjoint(with: inputs[input]) }
        }
    }

    // MARK: Filters side by side

    /// A filter that needs motion from the same fork as a waiting filter. The fork may be waiting for a place at
    /// this filter.
    struct Rival {
        var filter: Int
        /// The queues through which pictures come to the waiting filter and not to the rival.
        var edges: [Int]
    }

    /// The filters that share a source of motion with `filter`, and lie on other ways of the pictures.
    func rivals(of filter: Int) -> [Rival] {
        guard inputs[filter] != nil, isFilter(filter) else { return [] }
        let own = companionSources(of: filter)
        return inputs.keys.sorted().compactMap { other in
            guard other != filter, isFilter(other), !own.isDisjoint(with: companionSources(of: other)),
                !topology.descendants(of: filter).contains(other), !topology.descendants(of: other).contains(filter)
            else { return nil }
            let before = pictureEdges(before: other)
            return Rival(filter: other, edges: pictureEdges(before: filter).subtracting(before).sorted())
        }
    }

    /// The sources of what a filter takes beside pictures.
    private func companionSources(of filter: Int) -> Set<Int> {
        topology.incoming[filter].dropFirst().reduce(into: []) { $0.formUnion(origins(of: $1, overMerges: true)) }
    }

    /// The edges on all ways of the pictures to a filter.
    private func pictureEdges(before filter: Int) -> Set<Int> {
        var found: Set<Int> = []
        var open = [topology.incoming[filter][0]]
        while let edge = open.popLast() {
            guard found.insert(edge).inserted else { continue }
            let node = topology.graph.edges[edge].from
            open += isMerge(node) ? [topology.incoming[node][0]] : topology.incoming[node]
        }
        return found
    }

    private func isSink(_ node: Int) -> Bool { topology.graph.nodes[node].kind == .sink }

    /// Whether it hands on the pictures of its first input. A transform of several inputs makes its own output.
    private func isFilter(_ node: Int) -> Bool { topology.graph.nodes[node].kind == .passThrough }

    /// The sources and merges from which the items on `edge` come, with no further merge between, but for transforms.
    ///
    /// - Parameter overMerges: Whether to follow the items through any merges to their sources.
    private func origins(of edge: Int, overMerges: Bool = false) -> Set<Int> {
        var found: Set<Int> = []
        var seen: Set<Int> = []
        var open = [topology.graph.edges[edge].from]
        while let node = open.popLast() {
            guard seen.insert(node).inserted else { continue }
            let isOrigin = topology.incoming[node].isEmpty || (isMerge(node) && !overMerges)
            if isOrigin { found.insert(node) }
            // A transform that cannot hand on holds up the sources of all its inputs: what waits for them waits for it.
            if !isOrigin || !isFilter(node) { open += topology.incoming[node].map { topology.graph.edges[$0].from } }
        }
        return found
    }

    /// Whether an item on `edge` may come later than one of the same time, or an earlier time, on another way from a
    /// fork. Only a row of filters that write nothing gives each item as soon as it gets it.
    private func isLate(_ edge: Int) -> Bool {
        var seen: Set<Int> = []
        var open = [edge]
        while let next = open.popLast() {
            let node = topology.graph.edges[next].from
            // A copy for a branch is made before the other branches get the item.
            if topology.outgoing[node].contains(where: { topology.graph.nodes[topology.graph.edges[$0].to].isTap }) {
                return true
            }
            guard seen.insert(node).inserted else { continue }
            if keepsBack(node), hasForkBefore(node) { return true }
            open += topology.incoming[node]
        }
        return false
    }

    private func keepsBack(_ node: Int) -> Bool {
        let stage = topology.graph.nodes[node]
        return topology.incoming[node].count > 1 || stage.kind != .passThrough || stage.modifies || stage.delay > 0
    }

    private func hasForkBefore(_ node: Int) -> Bool {
        var seen: Set<Int> = []
        var open = topology.incoming[node]
        while let next = open.popLast() {
            let before = topology.graph.edges[next].from
            if topology.outgoing[before].count > 1 { return true }
            if seen.insert(before).inserted { open += topology.incoming[before] }
        }
        return false
    }

    // MARK: Origins that stages bring together

    /// Groups the origins that stages of several inputs bring together, for the stages that `counts` accepts. The
    /// origins of one group have one number. The origins in `more` are a group too.
    private func groups(beside more: Set<Int> = [], _ counts: (Int) -> Bool) -> [Int] {
        var group = Array(topology.graph.nodes.indices)
        let together = origins.filter { counts($0.key) }.map { node, inputs in
            inputs.reduce(into: Set(isMerge(node) ? [node] : [])) { $0.formUnion($1) }
        }
        for members in together + [more] where !members.isEmpty {
            let old = Set(members.map { group[$0] })
            let one = old.min()!
            for index in group.indices where old.contains(group[index]) { group[index] = one }
        }
        return group
    }

    private func meet(_ a: Set<Int>, _ b: Set<Int>, _ group: [Int]) -> Bool {
        !Set(a.map { group[$0] }).isDisjoint(with: b.map { group[$0] })
    }
}

extension BudgetGraph {
    /// The graph in which filters delay and hold the pictures that they keep back. A filter that takes pictures
    /// only once their queue is full keeps back that whole queue. The queue keeps its length, since each further
    /// place would keep back one more picture.
    ///
    /// In a live chain such a wait ends by the clock.
    func countingPicturesBeforeFilters() -> BudgetGraph {
        guard !nodes.contains(where: \.isLive) else { return self }
        var graph = self
        for (node, inputs) in EarlyTaking(BudgetTopology(self)).inputs
        where nodes[node].kind == .passThrough && inputs.leaves[0] != .ownTurn {
            let pictures = incoming(node)[0]
            graph.nodes[node].delay += edges[pictures].capacity
            graph.nodes[node].hold += edges[pictures].capacity
            graph.edges[pictures].isFixed = true
        }
        return graph
    }
}
