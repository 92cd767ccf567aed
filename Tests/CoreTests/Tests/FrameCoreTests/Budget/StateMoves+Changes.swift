@testable import FrameCore

/// Changes of the graph, as the runner makes them: a queue is closed at any moment, all else happens between two items of
/// the thread that it concerns.
extension StateMoves {
    func change(_ state: State, _ changes: GraphChanges) {
        let left = state[layout.changesLeft]
        if left >= 0x80, let coming = changes.swap?.coming {
            // The second half of a change, at the next item of that thread: nothing else comes between.
            actor = StateLayout.finisher
            attach(state, coming, changes) { $0 & 0x7F }
            return
        }
        guard left > 0 else { return }
        actor = StateLayout.changeActor
        if let going = changes.swap?.going { detach(state, going, changes) { ($0 - 1) | 0x80 } }
        for node in layout.nodes.indices {
            if changes.kinds.contains(.detach) { detach(state, node, changes) { $0 - 1 } }
            if changes.kinds.contains(.attach) { attach(state, node, changes) { $0 - 1 } }
            guard state[layout.nodes[node].condition] & Condition.presence == 0, isBetweenItems(state, node) else {
                continue
            }
            let mode = layout.mode(of: node, state)
            if changes.kinds.contains(.pause), mode == 0 { pause(state, node, changes) }
            if changes.kinds.contains(.resume), mode != 0 { set(state, node, mode: 0) }
            if changes.kinds.contains(.replace) { replace(state, node, changes) }
        }
    }

    /// All stages that run on the thread of `node` are.
    private func isBetweenItems(_ state: State, _ node: Int) -> Bool {
        let head = layout.head(of: node, state)
        return layout.nodesOfThread[layout.nodes[node].thread].allSatisfy {
            state[layout.nodes[$0].phase] == 0 || layout.head(of: $0, state) != head
        }
    }

    // MARK: Branches

    /// What is offered from now on is dropped, and the branch ends behind what it has.
    private func detach(_ state: State, _ root: Int, _ changes: GraphChanges, left: (UInt8) -> UInt8) {
        let branch = changes.branch(of: root)
        guard state[layout.nodes[root].condition] & Condition.presence == 0,
            branch.count < layout.nodes.count
        else { return }
        let cuts = changes.entrances(of: root).filter { !layout.isCut($0, state) }
        for edge in cuts where layout.queues[edge].capacity == 0 && !isBetweenItems(state, root) { return }
        let next = copy(state)
        for node in branch where next[layout.nodes[node].condition] & Condition.presence == 0 {
            next[layout.nodes[node].condition] |= Condition.leaves
        }
        for edge in cuts {
            next[layout.queues[edge].cut] = 1
            next[layout.queues[edge].upTo] = StateLayout.none
            next[layout.queues[edge].skips] = 0
        }
        next[layout.changesLeft] = left(next[layout.changesLeft])
        record(next)
    }

    /// A branch begins with nothing. Where it has several producers' threads each would open its link in its own time;
    /// such a branch stays away.
    private func attach(_ state: State, _ root: Int, _ changes: GraphChanges, left: (UInt8) -> UInt8) {
        let branch = changes.branch(of: root)
        let cuts = changes.entrances(of: root)
        guard branch.allSatisfy({ state[layout.nodes[$0].condition] & Condition.presence == Condition.isGone }),
            let producer = cuts.first.map({ layout.graph.edges[$0].from }),
            state[layout.nodes[producer].condition] & Condition.presence == 0
        else { return }
        let head = layout.head(of: producer, state)
        guard isBetweenItems(state, producer),
            cuts.allSatisfy({ layout.head(of: layout.graph.edges[$0].from, state) == head })
        else { return }
        let next = copy(state)
        for node in branch {
            next[layout.nodes[node].condition] = 0
            for edge in layout.nodes[node].inputs { next[layout.queues[edge].cut] = 0 }
        }
        next[layout.changesLeft] = left(next[layout.changesLeft])
        record(next)
    }

    /// [the thread of a branch that leaves, which has taken all there was] A stage answers what it has inside, the first
    /// one first; then all let go of what they keep.
    func end(_ state: State, _ head: Int) {
        let members = layout.nodesOfThread[layout.nodes[head].thread].filter { layout.head(of: $0, state) == head }
        let next = copy(state)
        for member in members where isFilled(next, member) { return drain(next, member) }
        for member in members {
            let entry = layout.nodes[member]
            if layout.changes?.fault != .keepsWhatWasDetached { letGoKept(next, member) }
            for last in entry.last { if let last { next[last] = StateLayout.none } }
            next[entry.condition] = Condition.isGone
            for edge in entry.inputs where layout.queues[edge].capacity > 0 {
                // A join ends with its leading input: whoever waits to hand it another goes on.
                let queue = layout.queues[edge]
                next[queue.cut] = 1
                next[queue.upTo] = StateLayout.none
                next[queue.skips] = 0
                for index in 0..<queue.capacity { next[queue.first + index] = StateLayout.none }
            }
        }
        record(next)
    }

    // MARK: Stages

    private func pause(_ state: State, _ node: Int, _ changes: GraphChanges) {
        let entry = layout.nodes[node]
        let isFilter = entry.kind == .passThrough && !entry.isJoin && layout.graph.nodes[node].delay == 0
        if isFilter { set(state, node, mode: Condition.passes) }
        if entry.kind == .source || changes.mayDrop(node) { set(state, node, mode: Condition.drops) }
    }

    private func set(_ state: State, _ node: Int, mode: UInt8) {
        let next = copy(state)
        next[layout.nodes[node].condition] = mode
        next[layout.changesLeft] -= 1
        record(next)
    }

    /// The old instance answers what it has inside, or drops it; what it kept comes back.
    private func replace(_ state: State, _ node: Int, _ changes: GraphChanges) {
        let entry = layout.nodes[node]
        let dropping = copy(state)
        dropping[layout.changesLeft] -= 1
        guard isFilled(state, node) else {
            letGoKept(dropping, node)
            return record(dropping)
        }
        let draining = copy(dropping)
        draining[entry.condition] |= Condition.drains
        drain(draining, node)
        guard changes.mayDrop(node) else { return }
        let newest = dropping[entry.inside + length(dropping, entry.inside, entry.insideCount) - 1]
        for index in 0..<entry.insideCount { dropping[entry.inside + index] = StateLayout.none }
        letGoKept(dropping, node)
        if changes.fault != .replacesInSilence { tellNothing(dropping, node, upTo: newest) }
        record(dropping)
    }

    private func isFilled(_ state: State, _ node: Int) -> Bool {
        layout.nodes[node].insideCount > 0 && state[layout.nodes[node].inside] != StateLayout.none
    }

    private func drain(_ state: State, _ node: Int) {
        let entry = layout.nodes[node]
        state[entry.answers] = UInt8(length(state, entry.inside, entry.insideCount))
        answer(state, node)
    }

    /// The call that drained has ended.
    func settle(_ state: State, _ node: Int) {
        let entry = layout.nodes[node]
        guard state[entry.condition] & Condition.drains != 0 else { return }
        state[entry.condition] &= ~Condition.drains
        letGoKept(state, node)
    }

    private func letGoKept(_ state: State, _ node: Int) {
        let entry = layout.nodes[node]
        let all = max(entry.inputs.count, 1) * entry.hold
        if layout.changes?.fault == .keepsWhatWasReplaced {
            for index in 0..<min(all, entry.hold) where state[entry.leaked + index] == StateLayout.none {
                state[entry.leaked + index] = state[entry.kept + index]
            }
        }
        for index in 0..<all { state[entry.kept + index] = StateLayout.none }
        for index in 0..<entry.floor { state[entry.refs + index] = StateLayout.none }
    }

    /// An item ends at a paused stage, which does not see it.
    func letGo(_ state: State, _ node: Int, _ item: UInt8) {
        if layout.changes?.fault != .pausesInSilence { tellNothing(state, node, upTo: item) }
        state[layout.nodes[node].answers] = 0
        proceed(state, node)
    }
}
