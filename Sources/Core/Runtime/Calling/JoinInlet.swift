// SPDX-License-Identifier: Apache-2.0

/// What a join's thread does: it takes from several queues, which share one lock.
extension Worker {
    func runJoin(_ join: StageRunner, _ inlet: JoinInlet) {
        loop: while !stop.isRaised {
            state.inside.store(ThreadState.Place.chainWait, ordering: .relaxed)
            state.readMail()
            switch inlet.take() {
            case .items: if !merge(join, inlet.inputs) { break loop }
            case .nothing(let pts): join.output?.announceNothing(upTo: pts)
            case .mail: continue
            case .ended:
                inlet.close()
                state.readRest()
                // Some sources may have no consumer left.
                join.onJoinEnd?(join)
                join.drain()
                join.output?.end()
                break loop
            case .stopped: break loop
            }
        }
        inlet.leaveRest()
    }
}

extension Worker {
    private func merge(_ join: StageRunner, _ inputs: JoinInputs) -> Bool {
        guard let trace = state.trace else { return join.merge(inputs) }
        trace.begin(.merge, stage: join.number, frame: inputs.sequenceNumber)
        defer { trace.end() }
        inputs.note(in: trace)
        return join.merge(inputs)
    }
}

extension [ItemQueue] {
    /// [consumer's thread] Sleeps until one of these queues, the inputs of one stage, has news, or until `instant`
    /// of the chain clock. The lock is held before and after.
    func wait(until instant: Int64?, as stage: StageRunner) {
        let condition = self[0].consumer
        for queue in self { queue.setConsumerSleeps(true) }
        Spinner.fallAsleep()
        if let instant {
            let inside = stage.thread.enterWait(ThreadState.Place.outsideWait, for: .time)
            stage.clock.wait(until: instant, on: condition)
            stage.thread.leaveWait(inside)
        } else {
            condition.wait()
        }
        Spinner.wakeUp()
        for queue in self { queue.setConsumerSleeps(false) }
    }
}

/// Takes from the queues of a join what ``JoinMatcher`` says. Belongs to the join's thread.
final class JoinInlet {
    enum Found {
        /// The items are in `inputs`.
        case items
        /// From now on the join gives nothing whose time is at most this one.
        case nothing(Int64)
        case mail
        case ended
        case stopped
    }

    let inputs: JoinInputs
    private let join: StageRunner
    let queues: [ItemQueue]
    private let rule: JoinRule
    private var matcher: JoinMatcher
    /// Decides for a join by the clock; nil where ``JoinMatcher`` decides.
    private var beat: JoinBeat?
    /// The same, where the times of the inputs are the clock.
    private var times: JoinTimes?
    /// When ``beat`` wants to be asked again.
    private var asksAgain: Int64?
    /// The stage's active input, asked for between two calls, without the lock.
    private var active: Int?
    private var ticks: UInt64 = 0
    private let stop: StopSignal

    init(_ join: StageRunner, _ queues: [ItemQueue], _ inputs: JoinInputs, _ rule: JoinRule, stop: StopSignal) {
        self.join = join
        self.queues = queues
        self.inputs = inputs
        self.rule = rule
        self.stop = stop
        matcher = JoinMatcher(rule)
        if let rate = join.demand.outputRate, rule.followsTimes {
            times = JoinTimes(rate: rate, inputs: queues.count, whenEnded: rule.whenEnded)
            inputs.followsTimes = true
        } else {
            beat = rule.period.map { JoinBeat(period: $0, whenEnded: rule.whenEnded) }
        }
    }

    /// Waits until the matcher can say what belongs together. Before that it takes only items that match nothing.
    func take() -> Found {
        let condition = queues[0].consumer
        if beat != nil { active = join.activeInput }
        condition.lock()
        while true {
            if let found = takeLocked(condition) { return found }
            queues.wait(until: asksAgain, as: join)
        }
    }

    /// As ``take()``, but gives nil where that would wait.
    func takeReady() -> Found? {
        let condition = queues[0].consumer
        if beat != nil { active = join.activeInput }
        condition.lock()
        if let found = takeLocked(condition) { return found }
        condition.unlock()
        return nil
    }

    /// With the lock held: returns what was found and unlocks. Returns nil, still locked, when nothing can be decided
    /// yet.
    private func takeLocked(_ condition: Condition) -> Found? {
        while true {
            if stop.isRaised {
                condition.unlock()
                return .stopped
            }
            if let found = takeMail(condition, ifUrgent: true) { return found }
            for index in queues.indices { matcher.inputs[index] = queues[index].shown }
            if beat != nil { return tickLocked(condition) }
            if times != nil {
                if let found = followLocked(condition) { return found }
                guard isFollowing else { return takeMail(condition) }
                continue
            }
            switch matcher.next() {
            case .merge:
                inputs.lead = matcher.leadOfTaken
                for index in queues.indices where matcher.takes(index) {
                    inputs.put(queues[index].popLocked(), at: index)
                }
                condition.unlock()
                complete()
                return .items
            case .drop(let index):
                let lease = queues[index].popLocked()
                condition.unlock()
                leaveOut(lease, of: index)
                condition.lock()
                if let found = takeMail(condition) { return found }
            case .end:
                condition.unlock()
                return .ended
            case .wait:
                // Stages behind may wait to hear what cannot come any more.
                let upTo = matcher.givesNothingUpTo
                if join.output?.announcesGaps ?? false, upTo != .max, upTo != .min, queues[0].noteAnnounced(upTo) {
                    condition.unlock()
                    return .nothing(upTo)
                }
                return takeMail(condition)
            }
        }
    }

    /// With the lock held: unlocks where there are messages to read. They come last, so that they hold up no items,
    /// unless they are urgent; the join's thread looks for them before each item.
    private func takeMail(_ condition: Condition, ifUrgent: Bool = false) -> Found? {
        guard queues[0].takeInterrupt(ifUrgent: ifUrgent) else { return nil }
        condition.unlock()
        return .mail
    }

    /// As ``takeLocked(_:)``, where the clock decides.
    private func tickLocked(_ condition: Condition) -> Found? {
        if let rate = join.demand.outputRate { beat!.set(period: rate.period) }
        switch beat!.next(now: join.clock.now(), inputs: matcher.inputs, active: active) {
        case .end:
            condition.unlock()
            return .ended
        case .wait(let instant):
            asksAgain = instant
            return takeMail(condition)
        case .tick(let instant, let missed):
            for index in queues.indices where matcher.inputs[index].head != nil {
                inputs.put(queues[index].popLocked(), at: index)
            }
            condition.unlock()
            inputs.beginTick(at: instant, number: ticks, missed: missed)
            ticks &+= 1
            completeTick()
            return .items
        }
    }

    /// Whether ``followLocked(_:)`` has taken an item, so that there may be more to do.
    private var isFollowing = false

    /// As ``takeLocked(_:)``, where the times of the inputs decide. Takes one item at most where it returns nil, still locked.
    private func followLocked(_ condition: Condition) -> Found? {
        if let rate = join.demand.outputRate { times!.set(rate: rate) }
        isFollowing = false
        switch times!.next(matcher.inputs) {
        case .end:
            condition.unlock()
            return .ended
        case .wait:
            guard let due = times!.due, join.output?.announcesGaps ?? false, queues[0].noteAnnounced(due &- 1) else {
                return nil
            }
            condition.unlock()
            return .nothing(due &- 1)
        case .take(let index):
            isFollowing = true
            let lease = queues[index].popLocked()
            condition.unlock()
            let record = lease.record
            times!.took(
                index, at: record.pointee.header.pts.nanoseconds, duration: record.pointee.header.duration.nanoseconds)
            // Another one came before the tick.
            if inputs.isNew(index) { countUnmatched(of: index) }
            inputs.put(lease, at: index)
            inputs.keep(at: index)
            condition.lock()
            return takeMail(condition)
        case .tick(let time):
            condition.unlock()
            inputs.beginTick(at: time, number: ticks, missed: 0)
            ticks &+= 1
            for index in queues.indices {
                if times!.hasEnded(index, matcher.inputs[index], at: time) { inputs.setEnded(index) }
                countTick(index, isNew: inputs.isNew(index))
            }
            return .items
        }
    }

    private func completeTick() {
        for index in queues.indices {
            if matcher.inputs[index].isExhausted { inputs.setEnded(index) }
            let isNew = matcher.inputs[index].head != nil
            countTick(index, isNew: isNew)
            if isNew { inputs.keep(at: index) }
        }
    }

    /// Counts what an input gives to a tick: a new item, or the last one again.
    private func countTick(_ index: Int, isNew: Bool) {
        if isNew {
            inputs.counts[index].given.add()
        } else if inputs.repeatLast(at: index) {
            inputs.counts[index].repeated.add()
        } else if matcher.inputs[index].isExhausted {
            inputs.counts[index].missingAfterEnd.add()
        } else {
            inputs.counts[index].missing.add()
        }
    }

    /// Counts the items that are there, and repeats the last item of each input that has none.
    private func complete() {
        var isIncomplete = false
        for index in queues.indices where !matcher.takes(index) {
            if matcher.repeats(index), inputs.repeatLast(at: index) {
                inputs.counts[index].repeated.add()
            } else if matcher.inputs[index].isExhausted {
                inputs.counts[index].missingAfterEnd.add()
            } else {
                inputs.counts[index].missing.add()
                isIncomplete = true
            }
        }
        for index in queues.indices where matcher.takes(index) {
            inputs.counts[index].given.add()
            if isIncomplete { inputs.counts[index].incomplete.add() }
            if rule.keeps(index) { inputs.keep(at: index) }
        }
    }

    private func leaveOut(_ lease: consuming Lease, of input: Int) {
        countUnmatched(of: input)
        if rule.keeps(input) { inputs.keep(lease, at: input) } else { _ = consume lease }
        join.warnOfUnmatched(input)
    }

    private func countUnmatched(of input: Int) {
        join.taken.add()
        join.countDrop(.unmatched)
        inputs.counts[input].unmatched.add()
    }

    /// Lets go of items that were taken and not given: they came behind the last tick, or the run was stopped.
    func leaveRest() {
        for index in queues.indices where inputs.isNew(index) {
            join.taken.add()
            join.countDrop(stop.isRaised ? .stopped : .unmatched)
            inputs.counts[index].unmatched.add()
        }
        inputs.releaseAll()
        inputs.releaseKept()
    }

    /// Takes nothing more. A producer that waits for a place goes on at once, and everything that is offered is
    /// dropped.
    func close() { for queue in queues { queue.close(.unmatched) } }
}

extension Chain {
    /// [join's thread] A join has ended, and its inputs are closed. Sources that feed no other stage end.
    func joinEnded(_ join: StageRunner) {
        endedJoins.withLock { _ = $0.insert(join.number) }
        endSourcesWithoutReaders()
    }

    /// [join's thread, control thread] Ends sources that feed only joins which have ended: those that have since lost
    /// their other readers, too.
    func endSourcesWithoutReaders() {
        let ended = endedJoins.withLock { $0 }
        let graph = graph
        guard !ended.isEmpty, !graph.isProvisional else { return }
        let isOver = graph.runners.map { ended.contains($0.number) }
        for source in graph.plan.sourcesWithoutReaders(isOver) { graph.runners[source].shown.context.requestEnd() }
    }
}

extension ChainPlan {
    /// Sources all of whose consumers have ended.
    ///
    /// - Parameter ended: Whether each stage has ended, by its index.
    func sourcesWithoutReaders(_ ended: [Bool]) -> [Int] {
        // Stages are in topological order, so going backwards visits consumers before their producers.
        var isOver = ended
        for stage in stages.indices.reversed() where !isOver[stage] {
            let readers = links.filter { $0.from == stage }.map(\.to)
            isOver[stage] = !readers.isEmpty && readers.allSatisfy { isOver[$0] }
        }
        return stages.indices.filter { stages[$0].kind == .source && isOver[$0] }
    }
}
