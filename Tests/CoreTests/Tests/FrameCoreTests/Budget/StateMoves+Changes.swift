// SPDX-License-Identifier: Apache-2.0

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
        if left >> 3 > 0 {
            actor = StateLayout.finisher
            return open(state, Int(left >> 3) - 1, changes)
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

    /// A branch begins with nothing. Where several threads feed it, each lets its link begin between two of its items,
    /// consumers before producers; what is offered there is turned away, and the branch knows, until all links are opened
    /// at once: see ``open(_:_:_:)``.
    private func attach(_ state: State, _ root: Int, _ changes: GraphChanges, left: (UInt8) -> UInt8) {
        let branch = changes.branch(of: root)
        let cuts = changes.entrances(of: root)
        guard branch.allSatisfy({ state[layout.nodes[$0].condition] & Condition.presence == Condition.isGone }),
            let producer = cuts.first.map({ layout.graph.edges[$0].from }),
            state[layout.nodes[producer].condition] & Condition.presence == 0
        else { return }
        let head = layout.head(of: producer, state)
        let isOfSeveral = !cuts.allSatisfy { layout.head(of: layout.graph.edges[$0].from, state) == head }
        guard isOfSeveral || isBetweenItems(state, producer),
            cuts.allSatisfy({ state[layout.nodes[layout.graph.edges[$0].from].condition] & Condition.presence == 0 }),
            !isOfSeveral || cuts.allSatisfy({ layout.queues[$0].capacity > 0 })
        else { return }
        let next = copy(state)
        if isOfSeveral {
            for node in branch {
                next[layout.nodes[node].condition] = 0
                for edge in layout.nodes[node].inputs where !cuts.contains(edge) { next[layout.queues[edge].cut] = 0 }
            }
            next[layout.changesLeft] = left(next[layout.changesLeft]) | UInt8(root + 1) << 3
            return record(next)
        }
        for node in branch {
            next[layout.nodes[node].condition] = 0
            for edge in layout.nodes[node].inputs { next[layout.queues[edge].cut] = 0 }
        }
        next[layout.changesLeft] = left(next[layout.changesLeft])
        record(next)
    }

    /// One step of an attachment that has begun: the link that is the next to begin does, or all are opened.
    private func open(_ state: State, _ root: Int, _ changes: GraphChanges) {
        let links = changes.entrances(of: root).sorted { layout.graph.edges[$0].from > layout.graph.edges[$1].from }
        let next = copy(state)
        if let edge = links.first(where: { layout.isAway($0, state) }) {
            guard isBetweenItems(state, layout.graph.edges[edge].from) else { return }
            next[layout.queues[edge].cut] = 2
            let awaited = oldestOnTheWay(next, to: layout.graph.edges[edge].from)
            if awaited > 0, changes.fault != .opensInSilence { note(next, edge, 2 * awaited - 1) }
        } else {
            for edge in links { next[layout.queues[edge].cut] = 0 }
            next[layout.changesLeft] &= 0x87
        }
        record(next)
    }

    /// Time of the oldest item that `node` may still give.
    private func oldestOnTheWay(_ state: State, to node: Int) -> Int {
        var oldest = 32
        var open = [node]
        while let next = open.popLast() {
            let entry = layout.nodes[next]
            var bytes = [state[entry.out]] + items(state, entry.inside, entry.insideCount)
            for input in 0..<max(entry.inputs.count, 1) { bytes.append(state[entry.hand + input]) }
            for edge in entry.inputs {
                bytes += items(state, layout.queues[edge].first, layout.queues[edge].capacity)
                open.append(layout.graph.edges[edge].from)
            }
            if entry.kind == .source { bytes.append(state[entry.next]) }
            for byte in bytes where byte != StateLayout.none { oldest = min(oldest, Int(byte & 31)) }
        }
        return oldest
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
        next[layout.nodes[node].condition] = next[layout.nodes[node].condition] & ~Condition.mode | mode
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
        if changes.fault != .replacesInSilence { tellLoss(dropping, node, upTo: newest) }
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

    /// What ended at a stage that delays was the last before the next item that it takes: a join that matches by time need
    /// not wait for news of that one.
    private func tellLoss(_ state: State, _ node: Int, upTo item: UInt8) {
        let isKnown = layout.nodes[node].delay > 0 && layout.changes?.fault != .tellsOnlyWhatEnded
        tell(state, node, known: 2 * Int(item & 31) + (isKnown ? 1 : 0))
    }

    /// An item ends at a paused stage, which does not see it; so does what the stage has inside, whose answers come too
    /// late from then on.
    func letGo(_ state: State, _ node: Int, _ item: UInt8) {
        let entry = layout.nodes[node]
        if entry.delay > 0 {
            for index in 0..<entry.insideCount { state[entry.inside + index] = StateLayout.none }
        }
        if layout.changes?.fault != .pausesInSilence { tellLoss(state, node, upTo: item) }
        state[layout.nodes[node].answers] = 0
        proceed(state, node)
    }
}
