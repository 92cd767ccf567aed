// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Takes from the queues of a ``MultiSink``, ``MultiTransform`` or ``MultiFilter`` what ``TimeOrder`` says, under their one
/// lock. Belongs to the stage's thread.
final class MergeInlet {
    enum Taken: ~Copyable {
        case item(Lease, Int)
        /// No picture up to this time will come.
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

    /// Which items are taken before their turn, where their producer waits for a place.
    struct Rules {
        /// For each input, whether its items may be taken early.
        var leaves: [EarlyTaking.Leave]
        /// The other stages of several inputs that can hold up what this one waits for.
        var fellows: [Fellow] = []
    }

    /// Another stage of several inputs.
    struct Fellow {
        let awaited: AwaitedInputs
        /// For each input of this stage, the bits of the other's inputs whose items come from the same origin.
        let inputs: [UInt64]
    }

    let queues: [ItemQueue]
    /// [stage thread] Whether the item that was taken last came in its turn.
    var isInTurn: Bool { order.isInTurn }
    /// What this stage waits for.
    let awaited: AwaitedInputs
    // Under the queues' lock.
    private var rules: Rules
    private let stage: StageRunner
    private let isLive: Bool
    private var order: TimeOrder
    private let stop: StopSignal

    /// - Parameters:
    ///   - queues: In the order of `from`. They share one condition.
    ///   - isLive: Whether the chain is live.
    init(_ stage: StageRunner, _ queues: [ItemQueue], isLive: Bool, stop: StopSignal) {
        self.stage = stage
        self.queues = queues
        self.stop = stop
        awaited = AwaitedInputs(queues[0])
        rules = Rules(leaves: queues.map { _ in .ownTurn })
        self.isLive = isLive
        order = TimeOrder(count: queues.count, longestWait: isLive ? Self.longestWait : nil)
    }

    /// [any thread] Sets other rules, as the chain's structure asks for.
    func set(_ rules: Rules) {
        queues[0].consumer.locked { self.rules = rules }
        queues[0].interrupt()
    }

    /// Waits for the item whose turn it is.
    func take() -> Taken {
        // Another instance may wait for another time.
        let longestWait =
            stage.asMultiFilter?.longestWait.nanoseconds ?? stage.asMultiTransform?.longestWait.nanoseconds
            ?? Self.longestWait
        let idleTime = isLive ? stage.asMultiTransform?.idleTime?.nanoseconds : nil
        let condition = queues[0].consumer
        condition.lock()
        if isLive { order.longestWait = longestWait }
        while true {
            if stop.isRaised {
                awaited.show(0)
                condition.unlock()
                return .stopped
            }
            if queues[0].takeInterrupt(ifUrgent: true) {
                condition.unlock()
                return .interrupted
            }
            for index in queues.indices { order.inputs[index] = shown(index) }
            if let filter = stage.asMultiFilter {
                // Pictures wait for what is measured up to `lookAhead` after them, that moment included.
                order.inputs[0].delay(by: filter.lookAhead.nanoseconds &+ 1)
                if order.inputs[0].time == nil, let pts = queues[0].takeNothing() {
                    condition.unlock()
                    return .nothing(upTo: pts)
                }
            }
            let now = stage.clock.now()
            switch order.next(now: now) {
            case .take(let index):
                awaited.show(0)
                let lease = queues[index].popLocked()
                condition.unlock()
                return .item(lease, index)
            case .end:
                awaited.show(0)
                condition.unlock()
                return .ended
            case .wait(let instant):
                if awaited.show(order.awaited), !rules.fellows.isEmpty {
                    // The others look again before this one sleeps.
                    let fellows = rules.fellows
                    condition.unlock()
                    for fellow in fellows { fellow.awaited.queue.interrupt() }
                    condition.lock()
                    continue
                }
                // Last: messages without an end must hold up no items, and the others see what this one waits for.
                if queues[0].takeInterrupt() {
                    condition.unlock()
                    return .interrupted
                }
                if let idleTime, now >= idleTime {
                    condition.unlock()
                    return .idle
                }
                queues.wait(until: idleTime.map { min($0, instant ?? $0) } ?? instant, as: stage)
            }
        }
    }

    /// With the lock held: what an input shows, by the rules.
    private func shown(_ index: Int) -> TimeOrder.Input {
        var input = queues[index].shownInOrder
        switch rules.leaves[index] {
        case .ownTurn: (input.isPressed, input.keepsTurn) = (false, true)
        case .lateInput:
            if input.isPressed { input.isPressed = rules.fellows.contains { $0.awaited.has($0.inputs[index]) } }
        case .joinedSource, .sharedSource, .livePictures: break
        }
        return input
    }
}

/// The inputs for which a stage with several inputs waits while its other inputs have items. Any thread may look.
final class AwaitedInputs: Sendable {
    /// The first queue of the stage.
    let queue: ItemQueue
    private let bits = Atomic<UInt64>(0)

    init(_ queue: ItemQueue) { self.queue = queue }

    /// [the stage's thread] Shows a bit for each awaited input; true where the bits have changed.
    @discardableResult
    func show(_ bits: UInt64) -> Bool {
        guard self.bits.load(ordering: .relaxed) != bits else { return false }
        self.bits.store(bits, ordering: .releasing)
        return true
    }

    /// Whether the stage waits for one of these inputs.
    func has(_ bits: UInt64) -> Bool { self.bits.load(ordering: .acquiring) & bits != 0 }
}

extension RunningGraph {
    /// [the thread that makes or changes the graph] Tells each stage of several inputs which items it takes before their
    /// turn.
    func setMergeRules() {
        var inlets: [Int: MergeInlet] = [:]
        for worker in workers {
            guard case .merge(let inlet) = worker.input else { continue }
            inlets[runners.firstIndex { $0 === worker.head }!] = inlet
        }
        guard !inlets.isEmpty else { return }
        if planned.isLive {
            // Every wait ends by the clock.
            for (place, inlet) in inlets {
                let leave: EarlyTaking.Leave =
                    runners[place].kind == .filter
                    ? .livePictures : plan.inputsHaveOneOrigin(place) ? .sharedSource : .ownTurn
                inlet.set(MergeInlet.Rules(leaves: inlet.queues.map { _ in leave }))
            }
            return
        }
        let taking = EarlyTaking(BudgetTopology(plan.budget.graph))
        for (place, inlet) in inlets {
            let own = taking.inputs[place]!
            let fellows = inlets.keys.sorted().filter { $0 != place }.map { other in
                MergeInlet.Fellow(
                    awaited: inlets[other]!.awaited,
                    inputs: own.origins.map { origins in
                        taking.inputs[other]!.origins.enumerated().reduce(0) { bits, input in
                            origins.isDisjoint(with: input.element) ? bits : bits | 1 << UInt64(input.offset & 63)
                        }
                    })
            }
            inlet.set(
                MergeInlet.Rules(
                    leaves: own.leaves, fellows: fellows.filter { $0.inputs.contains { $0 != 0 } }))
        }
    }
}

extension Worker {
    /// [worker thread] Hands a ``MultiSink`` or ``MultiTransform`` the items of all its inputs.
    func runMerge(_ stage: StageRunner, _ inlet: MergeInlet) {
        while true {
            state.inside.store(ThreadState.Place.chainWait, ordering: .relaxed)
            state.readMail()
            switch inlet.take() {
            case .item(let lease, let index): if !stage.take(lease, from: index, isInTurn: inlet.isInTurn) { return }
            case .idle: if !stage.giveWhileIdle() { return }
            case .interrupted: continue
            case .nothing: continue
            case .ended:
                state.readRest()
                stage.drain()
                stage.output?.end()
                return
            case .stopped: return
            }
        }
    }

    /// [worker thread] Takes pictures through the run that begins with a ``MultiFilter``, and hands it the items of its
    /// further inputs.
    func runCompanions(_ inlet: MergeInlet) {
        while true {
            state.inside.store(ThreadState.Place.chainWait, ordering: .relaxed)
            state.readMail()
            guard let run else { return }
            switch inlet.take() {
            case .item(let lease, let index):
                let goesOn = index == 0 ? run.receive(lease) : head.takeCompanion(lease, from: index)
                if !goesOn { return }
            case .nothing(let pts): run.announceNothing(upTo: pts, after: -1)
            case .interrupted: continue
            case .idle: continue
            case .ended:
                state.readRest()
                return run.end()
            case .stopped: return
            }
        }
    }
}
