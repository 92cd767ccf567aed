// SPDX-License-Identifier: Apache-2.0

/// Which threads would wait for which if a chain stood still, and how far back in time each such wait leads.
///
/// A thread that stands still waits for an item (*starved*), for a place in a queue (*pushing*), for a buffer
/// (*buffer*) or until it is a frame's only holder (*alone*). Each wait is for another thread, which stands still too,
/// and so on in a circle. An arrow carries the number of frames by which the awaited item can be later than the waiting
/// one. A circle whose sum is less than zero would have to be earlier than itself, which is impossible. A chain
/// therefore never stands still when every circle has a sum less than zero, and the planner chooses capacities and pool
/// sizes accordingly. docs/design/001-budgets.md has the proof.
struct BudgetWaits {
    enum Place: Hashable {
        /// The consumer of this edge waits for an item; `late` once a stage that delays lies between here and the join
        /// that waits.
        case starved(edge: Int, late: Bool)
        /// The producer of this edge waits for a place.
        case pushing(edge: Int)
        /// The allocator of this pool waits for a buffer.
        case buffer(pool: Int)
        /// A writer without copies waits until it is its frame's only holder.
        case alone(writer: Int)
    }

    /// One thread's wait for another.
    struct Arrow {
        var to: Place
        /// By how many frames what is awaited there can be later than what is awaited here.
        var later: Int
        /// The thread that is in a call there, unless it is known already. Such a thread cannot lack input too.
        var busy: Int?
    }

    /// How many frames of a pool can be on their way, beside those that are held: its size − floor − Σ hold. At least
    /// 1.
    enum Window: Equatable {
        /// Not yet known: as if the pool were endless.
        case endless
        case frames(Int)
    }

    /// More frames than any chain holds: a link may drop any number while a stage behind it waits for its next.
    static let unbounded = 1 << 32

    let topology: BudgetTopology
    let domains: BudgetDomains
    /// The window of each pool, by index of `domains.domains`.
    var windows: [Window]
    /// Writers that get no copies and wait instead.
    var waitingWriters: Set<Int> = []
    /// Capacity of each edge; the planner raises them before it writes them down.
    var capacities: [Int]
    /// Links that drop too much and have been reported. The rest of the plan is made as if they did not drop.
    var reported: Set<Int> = []
    let rules: BudgetRules
    private let poolsOfThread: [[Int]]
    /// By node, for stages that delay frames of a single pool and hand them on: that pool.
    private let poolOfDelayed: [Int: Int]
    /// The rivals of each filter that waits for motion, by node.
    private let rivals: [Int: [EarlyTaking.Rival]]
    /// Queues on the ways to filters that wait for motion. Each further place there lets one more picture wait.
    let edgesBeforeRivals: Set<Int>

    init(_ topology: BudgetTopology, _ domains: BudgetDomains, _ rules: BudgetRules) {
        self.topology = topology
        self.domains = domains
        self.rules = rules
        windows = domains.domains.map { _ in .endless }
        capacities = topology.graph.edges.map(\.capacity)
        var poolsOfThread = [[Int]](repeating: [], count: topology.nodesOfThread.count)
        for (pool, domain) in domains.domains.enumerated() {
            poolsOfThread[topology.thread[domain.allocator]].append(pool)
        }
        self.poolsOfThread = poolsOfThread
        var poolOfDelayed: [Int: Int] = [:]
        var mixed: Set<Int> = []
        for (pool, domain) in domains.domains.enumerated() {
            for node in domain.members
            where topology.graph.nodes[node].kind == .passThrough && topology.graph.nodes[node].delay > 0 {
                if topology.incoming[node].count > 1 || poolOfDelayed.updateValue(pool, forKey: node) != nil {
                    mixed.insert(node)
                }
            }
        }
        self.poolOfDelayed = poolOfDelayed.filter { !mixed.contains($0.key) }
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
    ///
    /// - Parameter pool: The pool whose frames the circle has followed since its last `buffer`. Frames that a stage
    ///   holds *because* it delays them are counted in that pool's Σ hold already and need no places of their own.
    func arrows(from place: Place, following pool: Int?, busy: Int? = nil) -> [Arrow] {
        switch place {
        case .starved(let edge, let isLate): starved(edge, isLate, pool, busy)
        case .pushing(let edge):
            // The queue is full of older frames, and what its consumer has in hand is older still.
            inCall(topology.thread[topology.graph.edges[edge].to], -capacity(edge) - 1)
                + topology.siblings(edge).map {
                    Arrow(to: .starved(edge: $0, late: false), later: window($0) - capacity(edge))
                } + motion(before: topology.graph.edges[edge].to, -capacity(edge))
        case .buffer(let pool):
            switch windows[pool] {
            case .endless: []
            case .frames(let count): lying(ofPool: pool, -count)
            }
        case .alone(let writer): waits(forSharersOf: writer)
        }
    }

    /// A filter lets a picture wait for motion, and a rival has no place for that motion. The rival has a picture
    /// in hand. It is later than the filter's by no more than the number of pictures that can be on the filter's
    /// own way.
    private func motion(before filter: Int, _ later: Int, busy: Int? = nil) -> [Arrow] {
        (rivals[filter] ?? []).filter { topology.thread[$0.filter] != busy }.flatMap {
            inCall(topology.thread[$0.filter], later + pictures(before: $0))
        }
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
    private func starved(_ edge: Int, _ isLate: Bool, _ pool: Int?, _ busy: Int?) -> [Arrow] {
        let thread = topology.thread[topology.graph.edges[edge].from]
        let nodes = topology.nodesOfThread[thread]
        let delays = nodes.contains { topology.graph.nodes[$0].delay > 0 }
        let delay = nodes.reduce(0) { $0 + self.delay(of: $1, following: pool) }
        var found: [Arrow] = []
        let inputs = topology.inputs(ofThread: thread)
        let lead = topology.leadingInput(of: nodes[0])
        // Another input may have the item that one input of a join lacks, unless an input leads.
        let waitsForMore = (isLate || delays) && (lead.map { [$0] } ?? inputs).allSatisfy { topology.mayLack[$0] }
        // A join gives no more items than its leading input, and goes through all items of the others up to the leading
        // input's next one. No queue limits how much later that is.
        let skips = waitsForMore && (lead.map { loser(before: $0) != nil } ?? false)
        for input in awaited(inputs) where thread != busy {
            let starves = skips || (waitsForMore && losesTooMuch(input, pool))
            found.append(
                Arrow(
                    to: .starved(edge: input, late: waitsForMore),
                    later: starves ? Self.unbounded : delay + window(input)))
        }
        // It has the awaited picture and waits for motion.
        if thread != busy { found += motion(before: nodes[0], 0, busy: busy) }
        for other in topology.outputs(ofThread: thread) where other != edge && topology.canBlock(other) {
            found.append(Arrow(to: .pushing(edge: other), later: -1, busy: thread))
        }
        for own in poolsOfThread[thread] {
            let domain = domains.domains[own]
            let position = nodes.firstIndex(of: domain.allocator)! + (domain.isCopyPool ? 0 : 1)
            let behind = nodes[position...].reduce(0) { $0 + self.delay(of: $1, following: pool) }
            if let writer = waitingWriter(own) {
                // The item in hand may be newer than the awaited one, if that was dropped on its way.
                let loses = topology.inputs(ofThread: thread).contains { topology.mayLack[$0] }
                found.append(Arrow(to: .alone(writer: writer), later: loses ? Self.unbounded : behind, busy: thread))
            } else {
                found.append(Arrow(to: .buffer(pool: own), later: behind, busy: thread))
            }
        }
        return found
    }

    /// Whether a link drops too much before a stage that delays. Such a stage needs more items before it answers, and
    /// while the link's queue is full it drops any number of them. A queue that drops its oldest items has the newest
    /// without a gap. They are enough if there are more of them than one way can be behind another. The number of
    /// dropped items has no limit, so a pool cannot rely on it.
    func losesTooMuch(_ edge: Int, _ pool: Int?) -> Bool {
        guard topology.canLose(edge), !reported.contains(edge) else { return false }
        guard pool == nil, canBeLongEnough(edge) else { return rules.gaps == 0 }
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

    /// A thread has in hand what is awaited: it waits for a place, a buffer, or to be alone with its frame.
    private func inCall(_ thread: Int, _ later: Int) -> [Arrow] {
        var found: [Arrow] = []
        for edge in topology.outputs(ofThread: thread) where topology.canBlock(edge) {
            found.append(Arrow(to: .pushing(edge: edge), later: later, busy: thread))
        }
        for pool in poolsOfThread[thread] {
            found.append(
                Arrow(
                    to: waitingWriter(pool).map { .alone(writer: $0) } ?? .buffer(pool: pool), later: later,
                    busy: thread))
        }
        return found
    }

    /// Frames of a pool that a thread has in hand, or that lie in a queue before a join.
    private func lying(ofPool pool: Int, _ later: Int) -> [Arrow] {
        let domain = domains.domains[pool]
        let own = topology.thread[domain.allocator]
        var found: [Arrow] = []
        for thread in Set(domain.members.map { topology.thread[$0] }).sorted() where thread != own {
            found += inCall(thread, later)
        }
        for edge in domain.edges {
            found += topology.siblings(edge).map {
                Arrow(to: .starved(edge: $0, late: false), later: later + window($0), busy: own)
            }
            found += motion(before: topology.graph.edges[edge].to, later, busy: own)
        }
        return found
    }

    private func waits(forSharersOf writer: Int) -> [Arrow] {
        guard let sharers = domains.sharers[writer] else { return [] }
        var found: [Arrow] = []
        for thread in sharers.threads.sorted() { found += inCall(thread, 0) }
        for edge in sharers.edges.sorted() {
            if topology.canBlock(edge) { found.append(Arrow(to: .pushing(edge: edge), later: 0)) }
            found += topology.siblings(edge).map {
                Arrow(to: .starved(edge: $0, late: false), later: window($0), busy: topology.thread[writer])
            }
            found += motion(before: topology.graph.edges[edge].to, 0, busy: topology.thread[writer])
        }
        return found
    }

    private func waitingWriter(_ pool: Int) -> Int? {
        let domain = domains.domains[pool]
        return domain.isCopyPool && waitingWriters.contains(domain.allocator) ? domain.allocator : nil
    }

    private func delay(of node: Int, following pool: Int?) -> Int {
        pool != nil && poolOfDelayed[node] == pool ? 0 : topology.graph.nodes[node].delay
    }

    // MARK: Circles

    /// By how many frames at most an awaited frame of `pool` can be later than the waiting one when the pool's
    /// allocator waits; nil when there is no such circle.
    func lag(ofPool pool: Int) -> Int? {
        /// A place, the pool that is followed there (any, if it makes no difference), and the thread that was last in a
        /// call.
        struct Step: Hashable {
            var place: Place
            var pool: Int
            var busy: Int?
        }
        var best: [Step: Int] = [:]
        // First in, first out. With last in, first out the same steps would be taken again and again, each time with a
        // slightly greater sum.
        var changed: [Step] = []
        var isWaiting: Set<Step> = []
        var next = 0
        var lag: Int?
        func follow(_ arrow: Arrow, from step: Step, _ later: Int) {
            let sum = later + arrow.later
            if arrow.to == .buffer(pool: pool) {
                lag = Swift.max(lag ?? sum, sum)
                return
            }
            let target = Step(place: arrow.to, pool: step.pool, busy: arrow.busy ?? step.busy)
            if let known = best[target], known >= sum { return }
            best[target] = sum
            if isWaiting.insert(target).inserted { changed.append(target) }
        }
        let start = Step(
            place: .buffer(pool: pool), pool: followed(pool), busy: topology.thread[domains.domains[pool].allocator])
        for arrow in lying(ofPool: pool, 0) { follow(arrow, from: start, 0) }
        while next < changed.count {
            var step = changed[next]
            next += 1
            isWaiting.remove(step)
            let later = best[step]!
            if later >= Self.unbounded / 2 {
                // Everything behind this step is late by the same number.
                if leads(from: [step.place], to: .buffer(pool: pool)) { return Self.unbounded }
                continue
            }
            if case .buffer(let other) = step.place { step.pool = followed(other) }
            for arrow in arrows(from: step.place, following: step.pool, busy: step.busy) {
                follow(arrow, from: step, later)
            }
        }
        return lag
    }

    /// Pools whose frames no stage delays are followed in the same way, and share the number -1.
    private func followed(_ pool: Int) -> Int { poolOfDelayed.values.contains(pool) ? pool : -1 }

    /// Whether threads that wait at `places` can wait, in the end, for `target`.
    private func leads(from places: [Place], to target: Place) -> Bool {
        var seen: Set<Place> = []
        var open = places
        while let place = open.popLast() {
            if place == target { return true }
            guard seen.insert(place).inserted else { continue }
            open += arrows(from: place, following: nil).map(\.to)
        }
        return false
    }

    /// Whether stages that share a writer's frame can wait for the writer. Then the writer has to copy.
    func sharersWait(for writer: Int) -> Bool {
        guard let pool = domains.domains.firstIndex(where: { $0.isCopyPool && $0.allocator == writer }) else {
            return false
        }
        return leads(from: waits(forSharersOf: writer).map(\.to), to: .buffer(pool: pool))
    }

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
            self.arrows(from: places[from], following: nil).compactMap { arrow in
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
