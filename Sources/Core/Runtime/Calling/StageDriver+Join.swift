// SPDX-License-Identifier: Apache-2.0

/// A join, driven as its thread in a chain drives it: items come over links, and the rule says which belong together.
extension StageDriver {
    /// Hands a frame to an input of a join, as a link does.
    ///
    /// The driver calls the stage each time that the rule finds items that belong together, which may be never.
    ///
    /// - Parameters:
    ///   - frame: The frame.
    ///   - input: The input's position, from 0.
    /// - Throws: What the stage throws, what a run would end with, and `.exhausted` where 16 items wait for those of
    ///   other inputs.
    public func send(_ frame: consuming Frame, to input: Int) throws { try send(frame.release(), to: input) }

    /// Hands an access unit to an input of a join.
    public func send(_ unit: consuming AccessUnit, to input: Int) throws { try send(unit.release(), to: input) }

    /// Ends an input of a join. The join goes on or ends, as its rule says; a join that ends drains too.
    public func end(_ input: Int) throws {
        try inputQueue(input).end()
        try runJoin()
    }

    /// Lets a join by the clock (``StageDemand/outputRate``) give the picture that is due. Advance the driver's clock
    /// first.
    public func tick() throws { try runJoin() }

    /// True once the join has ended, by its rule. What is sent after that is dropped as `unmatched`.
    public var hasJoinEnded: Bool { joinIsOver }

    private func inputQueue(_ input: Int) throws -> ItemQueue {
        guard let inlet, inlet.queues.indices.contains(input) else {
            throw FrameHostError(
                .broken, what: "the stage has no join input \(input)",
                remedy:
                    "In a test of a join, use the index of a format in the StageDriver's 'inputs'; the first has index 0."
            )
        }
        return inlet.queues[input]
    }

    private func send(_ lease: consuming Lease, to input: Int) throws {
        let queue = try inputQueue(input)
        guard queue.offer(lease, mayWait: true) == nil else {
            throw FrameHostError(
                .exhausted,
                what: "input \(input) has \(queue.snapshot().depth) items that wait for those of other inputs",
                remedy: "Send to the other inputs, or end them.")
        }
        try runJoin()
    }

    /// Does what the join's thread does, without waiting.
    func runJoin() throws {
        guard let inlet else { return }
        while !joinIsOver, let taken = inlet.takeReady() {
            switch taken {
            case .items: _ = runner.merge(inlet.inputs)
            case .ended:
                joinIsOver = true
                inlet.close()
                try drain()
                inlet.leaveRest()
            case .stopped: joinIsOver = true
            default: break
            }
        }
        try check()
    }

    /// Ends every input that goes on.
    func endJoin() throws {
        guard let inlet, !joinIsOver else { return }
        for queue in inlet.queues { queue.end() }
        try runJoin()
    }

    /// Makes the queues before a join and its rule, with the functions that a plan uses.
    ///
    /// - Throws: ``FrameHostErrors`` for an impossible rule.
    static func makeInlet(
        _ request: JoinRequest, _ inputs: [MediaFormat], _ joined: JoinInputs, _ runner: StageRunner, isLive: Bool
    ) throws -> StageInlet {
        let rule = JoinRule(request, formats: inputs, rate: runner.demand.outputRate)
        guard !inputs.isEmpty else {
            throw FrameHostError(
                .invalidConfiguration, place: "inputs", what: "a join needs inputs, but the list is empty",
                remedy: "Give the StageDriver a format for each input.")
        }
        guard inputs.indices.contains(rule.lead) else {
            throw FrameHostError(
                .invalidConfiguration, place: "join.lead",
                what: "must be from 0 to \(inputs.count - 1), but is \(rule.lead)",
                remedy: "Use the index of a format in 'inputs' of the StageDriver.")
        }
        let producers = inputs.indices.map {
            JoinCheck.Producer(
                id: joined.names[$0], isEncoded: inputs[$0].encoded != nil, isLive: isLive, keepsRealTime: true,
                sources: [$0])
        }
        let faults = JoinCheck.faults(of: rule, request, at: runner.id, producers).map {
            FrameHostError(.invalidConfiguration, place: FaultPlace($0.key), what: $0.what, remedy: $0.remedy)
        }
        guard faults.isEmpty else { throw FrameHostErrors(faults) }
        let consumer = Condition()
        let queues = inputs.indices.map { input in
            let settings =
                rule.fixedLink(of: input) ?? LinkSettings(capacity: Self.mostWaitingItems)
            return ItemQueue(
                name: joined.names[input], settings: settings, room: RoomGate(stop: runner.stop), consumer: consumer,
                stop: runner.stop)
        }
        return StageInlet(runner, queues, joined, rule)
    }
}
