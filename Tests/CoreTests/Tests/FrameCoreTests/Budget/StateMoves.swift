// SPDX-License-Identifier: Apache-2.0

import Glibc

@testable import FrameCore

/// What can happen next in a state of a small chain: every step of every thread, with every choice a stage has.
final class StateMoves {
    typealias State = UnsafeMutablePointer<UInt8>
    typealias Condition = StateLayout.Condition

    /// Where a node is in its call.
    enum Phase: UInt8 {
        case idle
        /// Waits until it may write: alone with the frame, or with a copy.
        case writable
        /// Waits for a buffer of its own pool.
        case lease
        /// Hands on, branch by branch.
        case push
        /// The consumer behind an inline link works.
        case callee
        /// Is about to return.
        case busy
    }

    static let none = StateLayout.none
    let layout: StateLayout
    private let leases: UnsafeMutablePointer<Int>
    private let leaseSlots: Int
    let times: UnsafeMutablePointer<Int>
    private let timeSlots: Int
    private var scratch: [State] = []
    private var used = 0
    private var results: [(state: State, actor: UInt8)] = []
    var actor: UInt8 = 0
    /// Pools whose allocator finds no buffer in the state expanded last.
    private(set) var waited: Set<Int> = []
    /// A state had more times than fit.
    private(set) var overflow = false

    init(_ layout: StateLayout) {
        self.layout = layout
        leases = layout.leases.baseAddress!
        leaseSlots = layout.leases.count
        times = layout.times.baseAddress!
        timeSlots = layout.times.count
    }

    deinit { for state in scratch { state.deallocate() } }

    var count: Int { results.count }
    subscript(_ index: Int) -> State { results[index].state }
    func actor(_ index: Int) -> UInt8 { results[index].actor }

    func copy(_ state: State) -> State {
        if used == scratch.count { scratch.append(.allocate(capacity: layout.byteCount)) }
        memcpy(scratch[used], state, layout.byteCount)
        used += 1
        return scratch[used - 1]
    }

    /// Finds all steps from `state`; they stay valid until the next call.
    ///
    /// - Parameter oneThread: Only those of one thread that can move: enough to find every state in which nothing can,
    ///   where no step can take another thread's step away (``StateLayout/isOrderless``).
    func expand(_ state: State, oneThread: Bool) {
        used = 0
        results.removeAll(keepingCapacity: true)
        waited.removeAll(keepingCapacity: true)
        for thread in layout.nodesOfThread.indices.reversed() {
            actor = UInt8(thread)
            for node in layout.nodesOfThread[thread] {
                if layout.changes != nil { actor = layout.actor(of: node, state) }
                expand(state, node: node)
            }
            if oneThread, !results.isEmpty { return }
        }
        if let changes = layout.changes { change(state, changes) }
    }

    private func expand(_ state: State, node: Int) {
        let entry = layout.nodes[node]
        switch Phase(rawValue: state[entry.phase])! {
        case .idle:
            guard entry.caller == nil || layout.isHead(node, state), isIdle(threadOf: node, state) else { return }
            if layout.changes != nil {
                let condition = state[entry.condition]
                if condition & Condition.isGone != 0 { return }
                if condition & Condition.leaves != 0, layout.hasEnded(node, state) { return end(state, node) }
                if entry.kind == .source, condition & Condition.mode != 0 { return }
            }
            if entry.kind == .source {
                lease(state, node)
            } else if entry.isJoin {
                takeAll(state, node)
            } else if let merge = entry.merge {
                takeInOrder(state, node, merge)
            } else {
                for (input, edge) in entry.inputs.enumerated() where state[layout.queues[edge].first] != Self.none {
                    let next = copy(state)
                    next[entry.hand + input] = pop(next, edge)
                    enter(next, node)
                }
            }
        case .writable: makeWritable(state, node)
        case .lease: lease(state, node)
        case .push: push(state, node)
        case .busy: endCall(copy(state), node)
        case .callee: return
        }
    }

    func isIdle(thread: Int, _ state: State) -> Bool {
        for node in layout.nodesOfThread[thread] where state[layout.nodes[node].phase] != 0 { return false }
        return true
    }

    private func isIdle(threadOf node: Int, _ state: State) -> Bool {
        let thread = layout.nodes[node].thread
        guard layout.changes != nil else { return isIdle(thread: thread, state) }
        let head = layout.head(of: node, state)
        for member in layout.nodesOfThread[thread] where state[layout.nodes[member].phase] != 0 {
            if layout.head(of: member, state) == head { return false }
        }
        return true
    }

    // MARK: Lists: filled from the front, the rest is `none`

    func length(_ state: State, _ first: Int, _ most: Int) -> Int {
        var count = 0
        while count < most, state[first + count] != Self.none { count += 1 }
        return count
    }

    private func removeFirst(_ state: State, _ first: Int, _ most: Int) -> UInt8 {
        let item = state[first]
        for index in 0..<(most - 1) { state[first + index] = state[first + index + 1] }
        state[first + most - 1] = Self.none
        return item
    }

    func pop(_ state: State, _ edge: Int) -> UInt8 {
        removeFirst(state, layout.queues[edge].first, layout.queues[edge].capacity)
    }

    // MARK: Pools

    private func freeBuffers(_ state: State, _ pool: Int) -> Int {
        let offsets = leases
        let count = leaseSlots
        let wanted = UInt8(pool)
        var used: UInt32 = 0
        var index = 0
        while index < count {
            let item = state[offsets[index]]
            if item &>> 5 == wanted { used |= 1 &<< UInt32(item & 31) }
            index &+= 1
        }
        return layout.pools[pool].size - used.nonzeroBitCount
    }

    private func leaseCount(_ state: State, _ item: UInt8) -> Int {
        var found = 0
        var index = 0
        while index < leaseSlots {
            if state[leases[index]] == item { found &+= 1 }
            index &+= 1
        }
        return found
    }

    /// A source gives its next frame, or an allocator answers with a frame of its own: both need a buffer.
    private func lease(_ state: State, _ node: Int, skipping: Int = 0) {
        let entry = layout.nodes[node]
        if let pool = entry.pool {
            guard freeBuffers(state, pool) > 0 else {
                waited.insert(pool)
                return
            }
        } else if entry.kind != .source {
            return
        }
        let next = copy(state)
        let time: UInt8
        if entry.kind == .source {
            if skipping < entry.skips { lease(state, node, skipping: skipping + 1) }
            time = (state[entry.next] & 31) + UInt8(skipping)
            next[entry.next] += UInt8(skipping + 1)
        } else {
            time = removeFirst(next, entry.inside, entry.insideCount) & 31
            next[entry.answers] -= 1
        }
        let item = UInt8((entry.pool ?? StateLayout.unitPool) << 5) | time
        guard entry.floor > 0 else {
            emit(next, node, item)
            return
        }
        // It may go on referring to any of the frames it gave.
        var candidates = items(next, entry.refs, entry.floor)
        candidates.append(item)
        for chosen in 0..<(1 << candidates.count) where chosen.nonzeroBitCount <= entry.floor {
            let choice = copy(next)
            write(choice, entry.refs, entry.floor, candidates, chosen)
            emit(choice, node, item)
        }
    }

    private func makeWritable(_ state: State, _ node: Int) {
        let entry = layout.nodes[node]
        let item = state[entry.hand]
        if leaseCount(state, item) == 1 {
            begin(copy(state), node)
        } else if let pool = entry.copyPool {
            guard freeBuffers(state, pool) > 0 else {
                waited.insert(pool)
                return
            }
            let next = copy(state)
            next[entry.hand] = UInt8(pool << 5) | (item & 31)
            begin(next, node)
        }
    }

    // MARK: Calls

    /// A join takes the items of the earliest time, once each input has one or is known to have none of that time.
    private func takeAll(_ state: State, _ node: Int) {
        let entry = layout.nodes[node]
        if let lead = entry.lead { return takeLed(state, node, lead) }
        var earliest: UInt8 = 32
        for edge in entry.inputs {
            let head = state[layout.queues[edge].first]
            if head != Self.none { earliest = min(earliest, head & 31) }
        }
        guard earliest < 32 else { return }
        for edge in entry.inputs where state[layout.queues[edge].first] == Self.none {
            if layout.hasEnded(edge: edge, state) { continue }
            let upTo = state[layout.queues[edge].upTo]
            guard upTo != Self.none, upTo & 31 >= earliest else { return }
        }
        let next = copy(state)
        for (input, edge) in entry.inputs.enumerated() {
            let head = next[layout.queues[edge].first]
            if head != Self.none, head & 31 == earliest { hand(next, node, input, pop(next, edge)) }
        }
        enter(next, node)
    }

    /// An item of an input comes into the join's hand; its last one is kept besides where it may be given again.
    private func hand(_ state: State, _ node: Int, _ input: Int, _ item: UInt8) {
        let entry = layout.nodes[node]
        state[entry.hand + input] = item
        if let last = entry.last[input] { state[last] = item }
    }

    /// A join with an input that leads: as ``JoinMatcher``.
    private func takeLed(_ state: State, _ node: Int, _ lead: Int) {
        let entry = layout.nodes[node]
        func head(_ edge: Int) -> UInt8? {
            let item = state[layout.queues[edge].first]
            return item == Self.none ? nil : item & 31
        }
        let time = head(lead)
        if entry.match == .nearest {
            for (input, edge) in entry.inputs.enumerated() where edge != lead {
                guard let item = head(edge) else { continue }
                let isTooEarly = time.map { item < $0 } ?? knowsPast(item, state, lead)
                guard isTooEarly else { continue }
                let next = copy(state)
                let lost = pop(next, edge)
                if let last = entry.last[input] { next[last] = lost }
                return record(next)
            }
        }
        guard let time else { return }
        if entry.match == .nearest {
            for edge in entry.inputs where head(edge) == nil && !knowsPast(time, state, edge) { return }
        }
        let next = copy(state)
        for (input, edge) in entry.inputs.enumerated() {
            guard let item = head(edge) else { continue }
            if entry.match == .newest || item == time { hand(next, node, input, pop(next, edge)) }
        }
        enter(next, node)
    }

    /// Nothing up to `time`, nor anything that is as near to it, will come on an empty queue.
    private func knowsPast(_ time: UInt8, _ state: State, _ edge: Int) -> Bool {
        if layout.hasEnded(edge: edge, state) { return true }
        let upTo = state[layout.queues[edge].upTo]
        guard upTo != Self.none else { return false }
        return upTo & 31 > time || (upTo & 31 == time && upTo & 0xE0 == StateLayout.afterTime)
    }

    func enter(_ state: State, _ node: Int) {
        let entry = layout.nodes[node]
        let mode = layout.mode(of: node, state)
        let copies = mode != Condition.passes || layout.changes?.fault != .pausedWriterSharesOn
        guard entry.modifies, mode != Condition.drops, copies else {
            begin(state, node)
            return
        }
        state[entry.phase] = Phase.writable.rawValue
        record(state)
    }

    /// The stage's own code: it decides what it keeps and how many items it answers.
    private func begin(_ state: State, _ node: Int) {
        let entry = layout.nodes[node]
        let inputs = max(entry.inputs.count, 1)
        let hand = items(state, entry.hand, inputs)
        let mode = layout.mode(of: node, state)
        if mode == Condition.drops {
            let leading = entry.lead.map { state[entry.hand + entry.inputs.firstIndex(of: $0)!] } ?? hand[0]
            return letGo(state, node, leading)
        }
        if mode == Condition.passes {
            state[entry.inside] = hand[0]
            state[entry.answers] = 1
            return proceed(state, node)
        }
        guard entry.kind != .sink else {
            choose(state, node, left: 0)
            return
        }
        let leading = entry.lead.map { state[entry.hand + entry.inputs.firstIndex(of: $0)!] } ?? hand[0]
        if entry.mayDrop { drop(copy(state), node, leading) }
        // A join that hands on the buffers it got may take any of its inputs for that; items of other times than the
        // leading one it does not hand on.
        let candidates =
            entry.kind != .passThrough
            ? [UInt8(StateLayout.unitPool << 5) | (leading & 31)]
            : entry.match == .newest ? [leading] : Set(hand).sorted()
        for item in candidates {
            let accepted = candidates.count == 1 ? state : copy(state)
            let count = length(accepted, entry.inside, entry.insideCount)
            accepted[entry.inside + count] = item
            for left in 0...min(entry.delay, count + 1) where entry.delay > 0 || left == 0 {
                let answering = copy(accepted)
                answering[entry.answers] = UInt8(count + 1 - left)
                choose(answering, node, left: left)
            }
        }
    }

    /// The stage answers with nothing, and who waits behind it is told.
    func drop(_ state: State, _ node: Int, _ item: UInt8) {
        tellNothing(state, node, upTo: item)
        state[layout.nodes[node].answers] = 0
        choose(state, node, left: 0)
    }

    /// Who waits behind the stage is told that up to the time of `item` nothing comes; not where a stage that runs
    /// inline behind has something inside.
    func tellNothing(_ state: State, _ node: Int, upTo item: UInt8) {
        tell(state, node, known: 2 * Int(item & 31))
    }

    /// - Parameter known: As ``emptyUpTo(_:_:besidesQueue:)`` gives it.
    func tell(_ state: State, _ node: Int, known: Int) {
        guard known >= 0 else { return }
        for edge in layout.nodes[node].outputs where !layout.isAway(edge, state) {
            if layout.queues[edge].capacity > 0 {
                if emptyUpTo(state, edge, besidesQueue: true) < known { note(state, edge, known) }
                continue
            }
            let next = layout.graph.edges[edge].to
            let entry = layout.nodes[next]
            if entry.insideCount > 0, state[entry.inside] != Self.none { continue }
            tell(state, next, known: known)
        }
    }

    func note(_ state: State, _ edge: Int, _ known: Int) {
        let mark = known & 1 == 1 ? StateLayout.afterTime : UInt8(StateLayout.unitPool << 5)
        state[layout.queues[edge].upTo] = mark | UInt8(known >> 1)
    }

    /// Every set of frames the stage may keep; `left` of the items inside stay unanswered.
    private func choose(_ state: State, _ node: Int, left: Int) {
        let entry = layout.nodes[node]
        guard entry.hold > 0 else {
            proceed(state, node)
            return
        }
        chooseInput(state, node, left: left, input: 0)
    }

    private func chooseInput(_ state: State, _ node: Int, left: Int, input: Int) {
        let entry = layout.nodes[node]
        // Of what a filter takes beside pictures it keeps none.
        guard input < (entry.merge?.isFilter == true ? 1 : max(entry.inputs.count, 1)) else {
            proceed(state, node)
            return
        }
        let first = entry.kept + input * entry.hold
        var candidates = items(state, first, entry.hold)
        var most = entry.hold
        if entry.kind == .passThrough, !entry.isJoin {
            // What it delays it holds; what it answers it may go on sharing.
            let inside = items(state, entry.inside, entry.insideCount)
            for item in inside.dropLast(left) where !candidates.contains(item) { candidates.append(item) }
            for item in inside.suffix(left) { candidates.removeAll { $0 == item } }
            most -= left
        } else if state[entry.hand + input] != Self.none, !candidates.contains(state[entry.hand + input]) {
            candidates.append(state[entry.hand + input])
        } else if state[entry.hand + input] == Self.none, input < entry.last.count, let last = entry.last[input],
            state[last] != Self.none, !candidates.contains(state[last])
        {
            candidates.append(state[last])
        }
        candidates.removeAll { Int($0 >> 5) == StateLayout.unitPool }
        for chosen in 0..<(1 << candidates.count) where chosen.nonzeroBitCount <= most {
            let choice = copy(state)
            write(choice, first, entry.hold, candidates, chosen)
            chooseInput(choice, node, left: left, input: input + 1)
        }
    }

    func proceed(_ state: State, _ node: Int) {
        let entry = layout.nodes[node]
        if entry.kind == .passThrough { for input in entry.inputs.indices { state[entry.hand + input] = Self.none } }
        if entry.kind == .sink || (state[entry.answers] == 0 && entry.kind != .passThrough) {
            state[entry.phase] = Phase.busy.rawValue
            record(state)
        } else {
            answer(state, node)
        }
    }

    func answer(_ state: State, _ node: Int) {
        let entry = layout.nodes[node]
        guard state[entry.answers] > 0 else {
            endCall(state, node)
            return
        }
        if entry.kind == .allocator {
            state[entry.phase] = Phase.lease.rawValue
            record(state)
            return
        }
        state[entry.answers] -= 1
        emit(state, node, removeFirst(state, entry.inside, entry.insideCount))
    }

    private func emit(_ state: State, _ node: Int, _ item: UInt8) {
        let entry = layout.nodes[node]
        var mask: UInt8 = 0
        for (branch, edge) in entry.outputs.enumerated()
        where layout.queues[edge].capacity > 0 && !layout.isAway(edge, state) { mask |= 1 << UInt8(branch) }
        state[entry.out] = item
        guard mask != 0 else { return call(state, node) }
        state[entry.phase] = Phase.push.rawValue
        state[entry.mask] = mask
        record(state)
    }

    /// All queues have the item: at last the consumer that runs inline gets it.
    private func call(_ state: State, _ node: Int) {
        let entry = layout.nodes[node]
        let inline = entry.outputs.first { layout.queues[$0].capacity == 0 && !layout.isCut($0, state) }
        guard let inline else { return emitted(state, node) }
        let consumer = layout.graph.edges[inline].to
        state[entry.phase] = Phase.callee.rawValue
        state[layout.nodes[consumer].hand] = state[entry.out]
        state[entry.out] = Self.none
        enter(state, consumer)
    }

    private func emitted(_ state: State, _ node: Int) {
        let entry = layout.nodes[node]
        state[entry.out] = Self.none
        if entry.kind == .source { endCall(state, node) } else { answer(state, node) }
    }

    func endCall(_ state: State, _ node: Int) {
        let entry = layout.nodes[node]
        for input in 0..<max(entry.inputs.count, 1) { state[entry.hand + input] = Self.none }
        state[entry.phase] = Phase.idle.rawValue
        if layout.changes != nil { settle(state, node) }
        if let caller = entry.caller, !layout.isCut(entry.inputs[0], state) {
            emitted(state, caller)
        } else {
            record(state)
        }
    }

    // MARK: Links

    private func push(_ state: State, _ node: Int) {
        let entry = layout.nodes[node]
        if entry.isOnLiveThread {
            // Never waits, so all branches are served at once.
            for isKeyframe in entry.kind == .encoder ? [false, true] : [false] {
                let next = copy(state)
                for edge in entry.outputs where layout.queues[edge].capacity > 0 {
                    offer(next, edge, state[entry.out], mayWait: false, isKeyframe: isKeyframe)
                }
                next[entry.mask] = 0
                call(next, node)
            }
            return
        }
        for (branch, edge) in entry.outputs.enumerated() where state[entry.mask] >> UInt8(branch) & 1 == 1 {
            for isKeyframe in layout.graph.edges[edge].policy == .dropToKeyframe ? [false, true] : [false] {
                let next = copy(state)
                guard offer(next, edge, state[entry.out], mayWait: true, isKeyframe: isKeyframe) else { continue }
                next[entry.mask] &= ~(1 << UInt8(branch))
                if next[entry.mask] == 0 { call(next, node) } else { record(next) }
            }
        }
    }

    /// As ``ItemQueueState`` decides; false when the producer has to wait.
    @discardableResult
    private func offer(_ state: State, _ edge: Int, _ item: UInt8, mayWait: Bool, isKeyframe: Bool) -> Bool {
        if layout.isCut(edge, state), layout.changes?.fault != .closedQueueWaits {
            if !layout.isAway(edge, state), layout.changes?.fault != .opensInSilence {
                note(state, edge, 2 * Int(item & 31) + 1)
            }
            return true
        }
        let queue = layout.queues[edge]
        let count = length(state, queue.first, queue.capacity)
        let isFull = count == queue.capacity
        if !isFull, state[queue.skips] == 0 {
            state[queue.first + count] = item
            return true
        }
        switch layout.graph.edges[edge].policy {
        case .wait:
            if mayWait { return false }
            reject(state, queue, item)
        case .dropNewest:
            reject(state, queue, item)
        case .dropOldest, .latest:
            _ = pop(state, edge)
            state[queue.first + queue.capacity - 1] = item
        case .dropToKeyframe:
            guard isKeyframe else {
                state[queue.skips] = 1
                reject(state, queue, item)
                return true
            }
            state[queue.skips] = 0
            if isFull { for index in 0..<queue.capacity { state[queue.first + index] = Self.none } }
            state[queue.first + length(state, queue.first, queue.capacity)] = item
        }
        return true
    }

    func reject(_ state: State, _ queue: StateLayout.Queue, _ item: UInt8) {
        state[queue.upTo] = UInt8(StateLayout.unitPool << 5) | (item & 31)
    }

    /// Idle threads tell those behind them what will not come; a join that waits tells what none of its inputs has.
    private func announce(_ state: State) {
        for thread in layout.nodesOfThread.indices {
            var nodes = layout.nodesOfThread[thread]
            let first = nodes[0]
            if layout.changes != nil { nodes.removeAll { layout.head(of: $0, state) != first } }
            let head = layout.nodes[nodes[0]]
            guard !head.inputs.isEmpty, isIdle(threadOf: nodes[0], state) else { continue }
            if layout.changes != nil, state[head.condition] & Condition.presence != 0 { continue }
            guard nodes.allSatisfy({ layout.nodes[$0].insideCount == 0 || state[layout.nodes[$0].inside] == Self.none })
            else { continue }
            var known = 64
            // Of a filter with several inputs the pictures count.
            let inputs = head.merge?.isFilter == true ? Array(head.inputs.prefix(1)) : head.inputs
            for edge in head.lead.map({ [$0] }) ?? inputs {
                known = min(known, emptyUpTo(state, edge, besidesQueue: false))
            }
            if !head.isJoin, inputs.contains(where: { state[layout.queues[$0].first] != Self.none }) { continue }
            guard known >= 0 else { continue }
            guard known < 62 else { continue }
            for node in nodes {
                for edge in layout.nodes[node].outputs
                where layout.queues[edge].capacity > 0 && !layout.isAway(edge, state)
                    && emptyUpTo(state, edge, besidesQueue: true) < known
                { note(state, edge, known) }
            }
        }
    }

    /// Up to which time nothing is in a queue or will come to it, doubled, and one more for what lies just after it; −1
    /// when nothing is known.
    func emptyUpTo(_ state: State, _ edge: Int, besidesQueue: Bool) -> Int {
        let head = state[layout.queues[edge].first]
        if head != Self.none, !besidesQueue { return 2 * Int(head & 31) - 1 }
        let upTo = state[layout.queues[edge].upTo]
        return upTo == Self.none ? -1 : 2 * Int(upTo & 31) + (upTo & 0xE0 == StateLayout.afterTime ? 1 : 0)
    }

    // MARK: Lists of frames

    func items(_ state: State, _ first: Int, _ most: Int) -> [UInt8] {
        var found: [UInt8] = []
        for index in 0..<most where state[first + index] != Self.none { found.append(state[first + index]) }
        return found
    }

    private func write(_ state: State, _ first: Int, _ most: Int, _ candidates: [UInt8], _ chosen: Int) {
        var position = first
        for (index, item) in candidates.enumerated() where chosen >> index & 1 == 1 {
            // Kept sorted: a set.
            var place = position
            while place > first, state[place - 1] > item {
                state[place] = state[place - 1]
                place -= 1
            }
            state[place] = item
            position += 1
        }
        while position < first + most {
            state[position] = Self.none
            position += 1
        }
    }

    // MARK: One form for equal states

    func record(_ state: State) {
        if layout.canLose { announce(state) }
        renumber(state)
        results.append((state, actor))
    }

    /// Only the order of the times matters: they become 0, 1, 2 …
    private func renumber(_ state: State) {
        let offsets = times
        let count = timeSlots
        var present: UInt32 = 0
        var index = 0
        while index < count {
            let item = state[offsets[index]]
            if item != 0xFF { present |= 1 &<< UInt32(item & 31) }
            index &+= 1
        }
        let distinct = present.nonzeroBitCount
        if distinct > StateLayout.mostTimes { overflow = true }
        if layout.canLose {
            for offset in layout.announcements where state[offset] != Self.none {
                // The latest present time that is not later says the same.
                let time = UInt32(state[offset] & 31)
                let notLater = present & (UInt32.max >> (31 - time))
                let rank = notLater.nonzeroBitCount
                let isAfter =
                    layout.hasWindows
                    && (state[offset] & 0xE0 == StateLayout.afterTime || present >> time & 1 == 0)
                let mark = isAfter ? StateLayout.afterTime : UInt8(StateLayout.unitPool << 5)
                state[offset] = rank == 0 ? Self.none : mark | UInt8(rank - 1)
            }
        }
        guard present & (present &+ 1) != 0 else { return }
        index = 0
        while index < count {
            let offset = offsets[index]
            let item = state[offset]
            if item != 0xFF {
                let earlier = present & ((1 &<< UInt32(item & 31)) &- 1)
                state[offset] = item & 0xE0 | UInt8(truncatingIfNeeded: earlier.nonzeroBitCount)
            }
            index &+= 1
        }
    }
}
