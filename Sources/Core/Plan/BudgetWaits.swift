// SPDX-License-Identifier: Apache-2.0

/// Which threads would wait for which if a chain stood still while no thread waits for a buffer, and how far back in time
/// each such wait leads.
///
/// A thread that stands still waits for an item (*starved*) or for a place in a queue (*pushing*). Each wait is for
/// another thread, which stands still too, and so on in a circle. An arrow carries the number of frames by which the
/// awaited item can be later than the waiting one. A circle whose sum is less than zero would have to be earlier than
/// itself, which is impossible. A chain therefore never stands still when every circle has a sum less than zero, and the
/// planner chooses the lengths of queues accordingly. docs/design/001-budgets.md has the proof.
struct BudgetWaits {
    enum Place: Hashable {
        /// The consumer of this edge waits for an item; `late` once a stage that delays lies between here and the join
        /// that waits.
        case starved(edge: Int, late: Bool)
        /// The producer of this edge waits for a place.
        case pushing(edge: Int)
    }

    /// One thread's wait for another.
    struct Arrow {
        var to: Place
        /// By how many frames what is awaited there can be later than what is awaited here.
        var later: Int
    }

    /// More frames than any chain holds: a link may drop any number while a stage behind it waits for its next.
    static let unbounded = 1 << 32

    let topology: BudgetTopology
    /// Capacity of each edge; the planner raises them before it writes them down.
    var capacities: [Int]
    /// Links that drop too much and have been reported. The rest of the plan is made as if they did not drop.
    var reported: Set<Int> = []
    let rules: BudgetRules
    /// The rivals of each filter that waits for motion, by node.
    private let rivals: [Int: [EarlyTaking.Rival]]
    /// Queues on the ways to filters that wait for motion. Each further place there lets one more picture wait.
    let edgesBeforeRivals: Set<Int>

    init(_ topology: BudgetTopology, _ rules: BudgetRules) {
        self.topology = topology
        self.rules = rules
        capacities = topology.graph.edges.map(\.capacity)
        // In a live chain a filter's wait for motion ends by the clock.
        if topology.graph.nodes.contains(where: \.isLive) {
            rivals = [:]
        } else {
            let taking = EarlyTaking(topology)
            rivals = taking.inputs.keys.reduce(into: [:]) { $0[$1] = taking.rivals(of: $1) }
        }
        edgesBeforeRivals = rivals.values.joined().reduce(into: []) { $0.formUnion($1.edges) }
    }

    // MARK: Arrows

    /// The places that a thread which stands still at `place` can wait for, and by how much these are later.
    func arrows(from place: Place) -> [Arrow] {
        switch place {
        case .starved(let edge, let isLate): starved(edge, isLate)
        case .pushing(let edge):
            // The queue is full of older frames, and what its consumer has in hand is older still.
            inCall(topology.thread[topology.graph.edges[edge].to], -capacity(edge) - 1)
                + topology.siblings(edge).map {
                    Arrow(to: .starved(edge: $0, late: false), later: window($0) - capacity(edge))
                } + motion(before: topology.graph.edges[edge].to, -capacity(edge))
        }
    }

    /// A filter lets a picture wait for motion, and a rival has no place for that motion. The rival has a picture
    /// in hand. It is later than the filter's by no more than the number of pictures that can be on the filter's
    /// own way.
    private func motion(before filter: Int, _ later: Int) -> [Arrow] {
        (rivals[filter] ?? []).flatMap { inCall(topology.thread[$0.filter], later + pictures(before: $0)) }
    }

    /// How many pictures can be on the ways that lead to a filter and not to its rival.
    private func pictures(before rival: EarlyTaking.Rival) -> Int {
        rival.edges.reduce(0) { sum, edge in
            let node = topology.graph.nodes[topology.graph.edges[edge].to]
            return sum + capacities[edge] + (capacities[edge] > 0 ? 1 : 0) + node.hold + node.delay
        }
    }

    private func capacity(_ edge: Int) -> Int { capacities[edge] - rules.capacity }
    private func window(_ edge: Int) -> Int { max(0, topology.window(edge) + rules.window) }

    /// The thread before `edge` has not given what is awaited: it lacks input itself, or it waits with that frame or an
    /// older one.
    private func starved(_ edge: Int, _ isLate: Bool) -> [Arrow] {
        let thread = topology.thread[topology.graph.edges[edge].from]
        let nodes = topology.nodesOfThread[thread]
        let delay = nodes.reduce(0) { $0 + topology.graph.nodes[$1].delay }
        let lag = nodes.reduce(0) { $0 + topology.graph.nodes[$1].lag }
        let inputs = topology.inputs(ofThread: thread)
        let lead = topology.leadingInput(of: nodes[0])
        // Another input may have the item that one input of a join lacks, unless an input leads.
        let waitsForMore = (isLate || delay > 0) && (lead.map { [$0] } ?? inputs).allSatisfy { topology.mayLack[$0] }
        // A join gives no more items than its leading input, and goes through all items of the others up to the leading
        // input's next one. No queue limits how much later that is.
        let skips = waitsForMore && (lead.map { loser(before: $0) != nil } ?? false)
        let starving = awaited(inputs).map { input in
            let isEndless = skips || (waitsForMore && losesTooMuch(input))
            return Arrow(
                to: .starved(edge: input, late: waitsForMore),
                later: isEndless ? Self.unbounded : delay + lag + window(input))
        }
        // It waits with the awaited item or an older one: for motion, or for a place on another branch.
        let others = topology.outputs(ofThread: thread).filter { $0 != edge && topology.canBlock($0) }
        return starving + motion(before: nodes[0], 0) + others.map { Arrow(to: .pushing(edge: $0), later: -1) }
    }

    /// Whether a link drops too much before a stage that delays. Such a stage needs more items before it answers, and
    /// while the link's queue is full it drops any number of them. A queue that drops its oldest items has the newest
    /// without a gap. They are enough if there are more of them than one way can be behind another. The number of
    /// dropped items has no limit, so only a queue can help, not a pool.
    func losesTooMuch(_ edge: Int) -> Bool {
        guard topology.canLose(edge), !reported.contains(edge) else { return false }
        guard canBeLongEnough(edge) else { return rules.gaps == 0 }
        return capacities[edge] - rules.gaps <= topology.totalLag
    }

    /// Whether any queue of a link that drops is long enough before a stage that delays. A queue that drops its newest
    /// items has older ones, which the join may have gone past. A queue that a keyframe empties has nothing to give.
    func canBeLongEnough(_ edge: Int) -> Bool {
        switch topology.graph.edges[edge].policy {
        case .dropOldest: true
        case .dropNewest: rules.newest < 0
        case .wait, .latest, .dropToKeyframe: false
        }
    }

    /// The first unreported link, from `edge` upstream, that can cause an item that another branch carries to be
    /// missing on `edge`.
    func loser(before edge: Int) -> Int? {
        var open = [edge]
        var seen: Set<Int> = []
        while let next = open.popLast() {
            guard topology.mayLack[next], seen.insert(next).inserted else { continue }
            if topology.canLose(next), !reported.contains(next) { return next }
            let node = topology.graph.edges[next].from
            open += topology.leadingInput(of: node).map { [$0] } ?? topology.incoming[node]
        }
        return nil
    }

    /// For the circle of a fault, the link that drops items which a join with a leading input would need for a stage
    /// behind it.
    func loser(on circle: [Place]) -> Int? {
        for case .starved(let edge, true) in circle {
            guard let lead = topology.leadingInput(of: topology.graph.edges[edge].to) else { continue }
            if let found = loser(before: lead) { return found }
        }
        return nil
    }

    /// A join waits for any of its inputs. A stage that takes items from several inputs as they come waits for all of
    /// them, so one is enough to follow.
    private func awaited(_ inputs: [Int]) -> ArraySlice<Int> {
        guard let first = inputs.first else { return [] }
        return topology.entersJoin[first] ? topology.awaited(topology.graph.edges[first].to)[...] : inputs[..<1]
    }

    /// A thread has in hand what is awaited: it waits for a place.
    private func inCall(_ thread: Int, _ later: Int) -> [Arrow] {
        topology.outputs(ofThread: thread).filter(topology.canBlock).map { Arrow(to: .pushing(edge: $0), later: later) }
    }

    // MARK: Circles

    /// A circle of starved and pushing threads whose sum is at least 0, with that sum; nil when there is none.
    func badCircle() -> (places: [Place], sum: Int)? {
        guard topology.hasJoins else { return nil }
        var places: [Place] = []
        var index: [Place: Int] = [:]
        for edge in topology.graph.edges.indices where topology.graph.edges[edge].capacity > 0 {
            for place in [
                Place.starved(edge: edge, late: false), .starved(edge: edge, late: true), .pushing(edge: edge),
            ] {
                index[place] = places.count
                places.append(place)
            }
        }
        let arrows: [(from: Int, to: Int, later: Int)] = places.indices.flatMap { from in
            self.arrows(from: places[from]).compactMap { arrow in
                index[arrow.to].map { (from, $0, arrow.later) }
            }
        }
        // A sum of 0 is bad too. So each arrow is multiplied by one more than the number of places, and 1 is added.
        let scale = places.count + 1
        var best = [Int](repeating: 0, count: places.count)
        var cameFrom = [(place: Int, later: Int)?](repeating: nil, count: places.count)
        for round in 0...places.count {
            var changed: Int?
            for arrow in arrows {
                let value = best[arrow.from] + arrow.later * scale + 1
                guard value > best[arrow.to] else { continue }
                best[arrow.to] = value
                cameFrom[arrow.to] = (arrow.from, arrow.later)
                changed = arrow.to
            }
            guard var place = changed else { return nil }
            guard round == places.count else { continue }
            for _ in places { place = cameFrom[place]!.place }
            var circle: [Place] = []
            var sum = 0
            let start = place
            repeat {
                circle.append(places[place])
                sum += cameFrom[place]!.later
                place = cameFrom[place]!.place
            } while place != start
            return (circle.reversed(), sum)
        }
        return nil
    }
}
