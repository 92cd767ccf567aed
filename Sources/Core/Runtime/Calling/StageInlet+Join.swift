// SPDX-License-Identifier: Apache-2.0

/// What a join's inlet does with the items that it takes.
extension StageInlet {
    /// More ticks than a clock that runs lets pass; a simulated one may leap, and counts are added up.
    private static let mostMissed = 1 << 40

    /// With the lock held: takes what the matcher names, and unlocks.
    func give() {
        guard let matcher = decider.matcher else { return condition.unlock() }
        inputs.lead = matcher.leadOfTaken
        for index in queues.indices where matcher.takes(index) { inputs.put(queues[index].popLocked(), at: index) }
        condition.unlock()
        var isIncomplete = false
        for index in queues.indices {
            let isMissing = count(index, repeats: matcher.repeats(index))
            if isMissing { isIncomplete = true }
            if inputs.isNew(index), matcher.rule.keeps(index) { inputs.keep(at: index) }
        }
        guard isIncomplete else { return }
        for index in queues.indices where inputs.isNew(index) { inputs.counts[index].incomplete.add() }
    }

    /// With the lock held: takes the oldest items where a tick asks for them, and unlocks.
    func give(at time: Int64, missed: Int, takesHeads: Bool) {
        if takesHeads {
            for index in queues.indices where heads[index].head != nil {
                inputs.put(queues[index].popLocked(), at: index)
            }
        }
        condition.unlock()
        // Nobody misses pictures of a join that gives none.
        if missed > 0, !stage.isPaused, !stage.hasFailed {
            let lost = min(missed, Self.mostMissed)
            stage.counters.made.add(lost)
            stage.countDrop(.missed, lost)
        }
        inputs.beginTick(at: time, number: ticks, missed: missed)
        ticks &+= 1
        for index in queues.indices {
            if decider.hasEnded(index, heads[index], at: time) { inputs.setEnded(index) }
            _ = count(index, repeats: true)
            if takesHeads { inputs.keep(at: index) }
        }
    }

    /// Counts what an input gives: a new item, or else the last one again. True where it has neither, and goes on.
    private func count(_ index: Int, repeats: Bool) -> Bool {
        let counts = inputs.counts + index
        if inputs.isNew(index) {
            counts.pointee.given.add()
        } else if repeats, inputs.repeatLast(at: index) {
            counts.pointee.repeated.add()
        } else if heads[index].isExhausted {
            counts.pointee.missingAfterEnd.add()
        } else {
            counts.pointee.missing.add()
            return true
        }
        return false
    }

    /// [without the lock] An item is the newest of its input at the next tick, so far.
    func keep(_ lease: consuming Lease, of input: Int) {
        decider.took(input, lease.record.pointee.header)
        // Another one came before the tick.
        if inputs.isNew(input) { countUnmatched(of: input) }
        inputs.put(lease, at: input)
        inputs.keep(at: input)
    }

    /// [without the lock] An item matches nothing.
    func leaveOut(_ lease: consuming Lease, of input: Int) {
        countUnmatched(of: input)
        if decider.matcher?.rule.keeps(input) ?? false { inputs.keep(lease, at: input) } else { _ = consume lease }
        stage.warnOfUnmatched(input)
    }

    private func countUnmatched(of input: Int) {
        stage.counters.taken.add()
        stage.countDrop(.unmatched)
        inputs.counts[input].unmatched.add()
    }

    /// Lets go of items that were taken and not given: they came behind the last tick, or the run was stopped.
    func leaveRest() {
        for index in 0..<inputs.count where inputs.isNew(index) {
            stage.counters.taken.add()
            stage.countDrop(stage.stop.isRaised ? .stopped : .unmatched)
            inputs.counts[index].unmatched.add()
        }
        inputs.releaseAll()
        inputs.releaseKept()
    }

    /// Takes nothing more. A producer that waits for a place goes on at once, and everything that is offered is
    /// dropped.
    func close() { for queue in queues { queue.close(.unmatched) } }
}
