// SPDX-License-Identifier: Apache-2.0

/// One thread of a running chain: where its items come from, the run it takes them through, its mailbox.
///
/// `@unchecked Sendable`: from its start on only the thread itself changes it, between two items ([stage thread]).
final class StageThread: @unchecked Sendable {
    /// Where the items come from.
    enum Input {
        case source
        case queue(ItemQueue)
        case several(StageInlet)
        /// None: the run was on a thread that stays, and this stage thread only ends it.
        case none

        var queues: [ItemQueue] {
            switch self {
            case .source, .none: []
            case .queue(let queue): [queue]
            case .several(let inlet): inlet.queues
            }
        }
    }

    /// The stage that takes the items first; the thread ends with it.
    let head: StageRunner
    let state: ThreadState
    let input: Input
    /// A source ends after this many items.
    let frameLimit: Int
    /// The run that takes the items of a queue; nil for a source and a join, which hand on through their outputs.
    @exclusivity(unchecked) private(set) var run: InlineRun?
    /// Stages whose code runs on this thread, in the order of the plan. The control thread may read them while another
    /// thread still lets go of a branch that leaves.
    var members: [StageRunner] { memberBox.withLock { $0 } }
    private let memberBox: Locked<[StageRunner]>

    /// Ends the waits of the head. Each stage behind it has a signal of its own, which ``raiseStop()`` raises too.
    var stop: StopSignal { head.stop }

    init(head: StageRunner, input: Input, frameLimit: Int) {
        self.head = head
        self.input = input
        self.frameLimit = frameLimit
        memberBox = Locked([])
        state = ThreadState(name: "\(head.kind == .source ? "src" : "stg"):\(head.id)")
        if let first = input.queues.first {
            state.interrupt = { first.interrupt(isUrgent: $0) }
        } else {
            state.interrupt = { [unowned head] _ in head.shown.context.wake() }
        }
        state.stop = head.stop
        if case .queue(let queue) = input { state.input = queue }
        if case .several(let inlet) = input, head.kind == .join { head.inputs = inlet.inputs }
    }

    /// A stage thread that ends stages that leave another thread.
    ///
    /// - Parameter run: The run that is ended first; nil where the members hold nothing any more.
    init(ending run: InlineRun?, members: [StageRunner]) {
        head = members[0]
        input = .none
        frameLimit = 0
        self.run = run
        memberBox = Locked(members)
        state = ThreadState(name: "end:\(head.id)")
    }

    /// [once the thread that the members leave has let go of them] Makes them members of this stage thread.
    func adoptMembers() {
        for member in members { member.thread = state }
    }

    /// [stage thread, between two items; any thread before it runs or after it has let go] Takes over another run and
    /// other members.
    func rewire(run: InlineRun?, members: [StageRunner]) {
        self.run = run
        memberBox.withLock { $0 = members }
    }

    /// [any thread] Ends every wait of this thread, in each of its stages.
    func raiseStop() {
        for member in members {
            member.stop.raise()
            member.shown.context.stop.raise()
        }
    }

    /// [stage thread] Runs from the first item to the end.
    func work() {
        switch input {
        case .source: runSource()
        case .queue(let queue): runQueue(queue)
        case .several(let inlet): runInlet(inlet)
        case .none: if let run { run.end() } else { endQueues() }
        }
        stopMembers()
    }

    private func runSource() {
        var priority = ThreadPriority()
        // Stages that run inline behind give their last pictures on this thread, like any other picture.
        defer { priority.restore() }
        while !stop.isRaised, !head.context.isEnded, head.counters.made.value < frameLimit {
            state.readMail()
            if head.demand.isUrgent != (priority.outcome != nil) { setPriority(&priority) }
            if head.isPaused || head.hasFailed {
                head.context.waitForMail(of: state)
                continue
            }
            guard let progress = produce() else { break }
            // A failed source waits for its mail: it is started anew, or its judgement ends it.
            if head.hasFailed { continue }
            if progress == .ended { break }
        }
        priority.restore()
        guard !stop.isRaised else { return }
        state.readRest()
        head.output?.end()
    }

    private func produce() -> SourceProgress? {
        guard let trace = state.trace else { return head.produce() }
        trace.begin(.produce, stage: head.number, frame: UInt64(head.counters.made.value))
        defer { trace.end() }
        return head.produce()
    }

    /// [stage thread] Sets the priority that the present source asks for. Its replacement may ask for another.
    private func setPriority(_ priority: inout ThreadPriority) {
        guard head.demand.isUrgent else { return priority.restore() }
        priority.raise()
        guard let text = priority.outcome?.notice else { return }
        head.context.post("usual-priority", text: text)
    }

    private func runQueue(_ queue: ItemQueue) {
        while true {
            state.inside.store(ThreadState.Place.chainWait, ordering: .relaxed)
            state.readMail()
            guard let run else { return }
            switch queue.take() {
            case .item(let lease): if !run.receive(lease) { return }
            case .nothing(let pts): run.announceNothing(upTo: pts, after: -1)
            case .interrupted: continue
            case .ended:
                state.readRest()
                return run.end()
            case .stopped: return
            }
        }
    }

    /// Hands the stage what its inlet takes. A ``MultiFilter`` is the first stage of a run, which takes its pictures.
    private func runInlet(_ inlet: StageInlet) {
        defer { inlet.leaveRest() }
        let isJoin = head.kind == .join
        while true {
            state.inside.store(ThreadState.Place.chainWait, ordering: .relaxed)
            state.readMail()
            switch inlet.take() {
            case .items: if !merge(inlet.inputs) { return }
            case .item(let lease, let index, let isInTurn):
                let goesOn: Bool
                if let run {
                    goesOn = index == 0 ? run.receive(lease) : head.takeCompanion(lease, from: index)
                } else {
                    goesOn = head.take(lease, from: index, isInTurn: isInTurn)
                }
                if !goesOn { return }
            case .nothing(let pts):
                if let run {
                    run.announceNothing(upTo: pts, after: -1)
                } else {
                    head.output?.announceNothing(upTo: pts)
                }
            case .idle: if !head.giveWhileIdle() { return }
            case .interrupted: continue
            case .ended:
                if isJoin { inlet.close() }
                state.readRest()
                // Some sources may have no consumer left.
                if isJoin { head.onJoinEnd?(head) }
                if let run { return run.end() }
                head.drain()
                head.output?.end()
                return
            case .stopped: return
            }
        }
    }

    private func merge(_ inputs: JoinInputs) -> Bool {
        guard let trace = state.trace else { return head.merge(inputs) }
        trace.begin(.merge, stage: head.number, frame: inputs.sequenceNumber)
        defer { trace.end() }
        inputs.note(in: trace)
        return head.merge(inputs)
    }

    /// Ends the queues behind stages from the middle of a run. The stages behind them on the same thread stay, or are
    /// among them.
    private func endQueues() {
        for member in members { for link in member.output?.links ?? [] { link.queue?.end() } }
    }

    private func stopMembers() {
        for member in members { member.stop(on: state) }
        state.hasLetGo.store(true, ordering: .releasing)
        state.closeMail()
    }
}
