// SPDX-License-Identifier: Apache-2.0

/// Takes from the queues before a stage of several inputs what its decider says, under their one lock. Belongs to the
/// stage's thread.
final class StageInlet {
    enum Taken: ~Copyable {
        /// The items that belong together are in ``StageInlet/inputs``.
        case items
        /// The item whose turn it is, and its input.
        case item(Lease, Int, isInTurn: Bool)
        /// No item up to this time will come.
        case nothing(upTo: Int64)
        /// A transform's ``MultiTransform/idleTime`` has come.
        case idle
        /// There is something else for the stage's thread to do, such as a command.
        case interrupted
        case ended
        case stopped
    }

    /// In a live chain a sink waits no longer than this for an input without items.
    static let longestWait: Int64 = 1_000_000_000

    /// In the order of `from`. They share one condition.
    let queues: [ItemQueue]
    /// What a join is handed; empty where the stage takes its items one by one.
    let inputs: JoinInputs
    /// What this stage waits for.
    let awaited: AwaitedInputs
    let stage: StageRunner
    var decider: InletDecider
    /// What the queues have shown last.
    var heads: [QueueHead]
    var ticks: UInt64 = 0
    let condition: Condition
    private let isLive: Bool
    /// Asked for between two calls, without the lock.
    private var wishes = InletDecider.Wishes()
    /// When the decider wants to be asked again.
    private var asksAgain: Int64?
    // Under the queues' lock.
    private var rules: MergeRules

    private init(
        _ stage: StageRunner, _ queues: [ItemQueue], _ inputs: JoinInputs, _ decider: consuming InletDecider,
        isLive: Bool
    ) {
        self.stage = stage
        self.queues = queues
        self.inputs = inputs
        self.decider = decider
        self.isLive = isLive
        heads = queues.map { _ in QueueHead() }
        condition = queues[0].consumer
        awaited = AwaitedInputs(queues[0])
        rules = MergeRules(leaves: queues.map { _ in .ownTurn })
    }

    /// The inlet of a join.
    convenience init(_ join: StageRunner, _ queues: [ItemQueue], _ inputs: JoinInputs, _ rule: JoinRule) {
        inputs.followsTimes = rule.followsTimes && join.demand.outputRate != nil
        self.init(join, queues, inputs, InletDecider(rule, rate: join.demand.outputRate), isLive: false)
    }

    /// The inlet of a ``MultiSink``, ``MultiTransform`` or ``MultiFilter``.
    ///
    /// - Parameter isLive: Whether the chain is live.
    convenience init(inOrder stage: StageRunner, _ queues: [ItemQueue], isLive: Bool) {
        let order = TimeOrder(count: queues.count, longestWait: nil)
        self.init(stage, queues, JoinInputs(names: []), .order(order), isLive: isLive)
    }

    /// [any thread] Sets other rules, as the chain's structure asks for.
    func set(_ rules: MergeRules) {
        condition.locked { self.rules = rules }
        queues[0].interrupt()
    }

    /// Waits until the decider can say what is taken. Before that it takes only what goes to no stage at once.
    func take() -> Taken {
        ask()
        condition.lock()
        while true {
            if let taken = takeLocked() { return taken }
            sleep()
        }
    }

    /// As ``take()``, but gives nil where that would wait.
    func takeReady() -> Taken? {
        ask()
        condition.lock()
        if let taken = takeLocked() { return taken }
        condition.unlock()
        return nil
    }

    /// Another instance may want something else.
    private func ask() {
        switch decider {
        case .matcher: break
        case .beat:
            wishes.rate = stage.demand.outputRate
            wishes.active = stage.activeInput
        case .times: wishes.rate = stage.demand.outputRate
        case .order:
            let (filter, transform) = (stage.instance.multiFilter, stage.instance.multiTransform)
            wishes.lookAhead = filter?.lookAhead.nanoseconds
            guard isLive else { return }
            let longestWait = filter?.longestWait ?? transform?.longestWait
            wishes.longestWait = longestWait?.nanoseconds ?? Self.longestWait
            wishes.idleTime = transform?.idleTime?.nanoseconds
        }
    }

    /// With the lock held: returns what was taken and unlocks. Returns nil, still locked, when nothing can be decided yet.
    private func takeLocked() -> Taken? {
        while true {
            if stage.stop.isRaised {
                awaited.show(0)
                return unlock(.stopped)
            }
            if queues[0].takeInterrupt(ifUrgent: true) { return unlock(.interrupted) }
            for index in queues.indices { heads[index] = shown(index) }
            if wishes.lookAhead != nil, heads[0].orderTime == nil, let pts = queues[0].takeNothing() {
                return unlock(.nothing(upTo: pts))
            }
            switch decider.next(heads, wishes, stage.clock) {
            case .wait(let until, let nothingUpTo, let inputs):
                // Stages behind may wait to hear what cannot come any more.
                if let nothingUpTo, stage.output?.announcesGaps ?? false, queues[0].noteAnnounced(nothingUpTo) {
                    return unlock(.nothing(upTo: nothingUpTo))
                }
                if awaited.show(inputs), !rules.fellows.isEmpty {
                    wakeFellows()
                    continue
                }
                // Last: messages without an end must hold up no items, and the others see what this stage waits for.
                // The thread looks for its messages before each item.
                if queues[0].takeInterrupt() { return unlock(.interrupted) }
                asksAgain = until
                guard let idleTime = wishes.idleTime else { return nil }
                if stage.clock.now() >= idleTime { return unlock(.idle) }
                asksAgain = min(idleTime, until ?? idleTime)
                return nil
            case .give:
                awaited.show(0)
                give()
                return .items
            case .tick(let time, let missed, let takesHeads):
                awaited.show(0)
                give(at: time, missed: missed, takesHeads: takesHeads)
                return .items
            case .keep(let index): release(index) { keep($0, of: index) }
            case .leaveOut(let index): release(index) { leaveOut($0, of: index) }
            case .take(let index, let isInTurn):
                awaited.show(0)
                return unlock(.item(queues[index].popLocked(), index, isInTurn: isInTurn))
            case .end:
                awaited.show(0)
                return unlock(.ended)
            }
            if queues[0].takeInterrupt() { return unlock(.interrupted) }
        }
    }

    private func unlock(_ taken: consuming Taken) -> Taken {
        condition.unlock()
        return taken
    }

    /// With the lock held: takes the oldest item of an input, and does something with it without the lock.
    private func release(_ index: Int, _ body: (consuming Lease) -> Void) {
        let lease = queues[index].popLocked()
        condition.unlock()
        body(lease)
        condition.lock()
    }

    /// With the lock held: what an input shows, by the rules.
    private func shown(_ index: Int) -> QueueHead {
        var head = queues[index].shown
        switch rules.leaves[index] {
        case .ownTurn: (head.isPressed, head.keepsTurn) = (false, true)
        case .lateInput:
            if head.isPressed { head.isPressed = rules.fellows.contains { $0.awaited.has($0.inputs[index]) } }
        case .joinedSource, .sharedSource, .livePictures: break
        }
        // Pictures wait for what is measured up to `lookAhead` after them, that moment included.
        if index == 0, let lookAhead = wishes.lookAhead { head.delay(by: lookAhead &+ 1) }
        return head
    }

    /// With the lock held before and after: the others look again before this stage sleeps.
    private func wakeFellows() {
        let fellows = rules.fellows
        condition.unlock()
        for fellow in fellows { fellow.awaited.queue.interrupt() }
        condition.lock()
    }

    /// With the lock held before and after: sleeps until an input has news, or the decider wants to be asked again.
    private func sleep() {
        for queue in queues { queue.setConsumerSleeps(true) }
        Spinner.fallAsleep()
        if let asksAgain {
            let inside = stage.thread.enterWait(ThreadState.Place.outsideWait, for: .time)
            stage.clock.wait(until: asksAgain, on: condition)
            stage.thread.leaveWait(inside)
        } else {
            condition.wait()
        }
        Spinner.wakeUp()
        for queue in queues { queue.setConsumerSleeps(false) }
    }
}
