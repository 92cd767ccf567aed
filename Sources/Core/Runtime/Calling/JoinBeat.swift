// SPDX-License-Identifier: Apache-2.0

/// Decides when a join by the clock gives its next picture: a value without locks, threads or items.
///
/// The loop (``StageInlet``) tells it the time and what each queue shows, asks ``next(now:inputs:active:)``, does what
/// it says and asks again. docs/design/017-clocked-joins.md.
struct JoinBeat {
    enum Action: Equatable {
        /// Nothing is due before this instant of the chain clock; nil where an item must come first.
        case wait(until: Int64?)
        /// The picture of this instant is due. `missed` pictures before it were left out, because the join could not
        /// give them in time.
        case tick(at: Int64, missed: Int)
        /// No item follows.
        case end
    }

    /// From one tick to the next, nanoseconds; greater than 0. A new instance may have another period.
    private(set) var period: Int64
    private let whenEnded: JoinEnd
    /// The time of the next tick; nil before the first.
    private var due: Int64?
    /// Ticks in a row at which the picture of the active input was there before the tick was due. The beat follows an
    /// input of this rate within half a tick, which takes eight steps. An input that is early for longer has a higher
    /// rate, and then only the clock counts.
    private var earlyTicks = 0
    private static let mostEarlyTicks = 12

    /// - Parameter period: As ``period``; values below 1 count as 1 nanosecond.
    init(period: Int64, whenEnded: JoinEnd) {
        self.period = max(period, 1)
        self.whenEnded = whenEnded
    }

    mutating func set(period: Int64) { self.period = max(period, 1) }

    /// - Parameters:
    ///   - now: Chain clock, nanoseconds.
    ///   - active: The input whose pictures are given as they come.
    mutating func next(now: Int64, inputs: [QueueHead], active: Int?) -> Action {
        if hasEnded(inputs) { return .end }
        if due != nil, hasClosed(inputs) {
            // No further item will come, so the tick of this one is given at once.
            let last = max(now, due!)
            due = last &+ period
            return .tick(at: last, missed: 0)
        }
        guard let due else {
            var isFirst = false
            for input in inputs where input.head != nil { isFirst = true }
            guard isFirst else { return .wait(until: nil) }
            self.due = now &+ period
            return .tick(at: now, missed: 0)
        }
        var opens = due
        var isBeat = false
        if let active, inputs.indices.contains(active), !inputs[active].isExhausted {
            isBeat = inputs[active].head != nil
            opens = isBeat ? due &- period / 2 : due &+ period / 2
            if isBeat, earlyTicks >= Self.mostEarlyTicks { (opens, isBeat) = (due, false) }
        } else {
            earlyTicks = 0
        }
        guard now >= opens else { return .wait(until: opens) }
        // The picture was late, or came from another input than before: the beat follows the input again.
        if let active, inputs.indices.contains(active), inputs[active].head == nil { earlyTicks = 0 }
        // As unsigned numbers any two instants have a distance without overflow.
        let late = now > due ? UInt64(bitPattern: now &- due) / UInt64(period) : 0
        let missed = Int(clamping: late)
        let tick = due &+ Int64(clamping: late) &* period
        var step = period
        if isBeat {
            earlyTicks = now &- opens < period / 8 ? earlyTicks + 1 : 0
            // Moves slowly towards the beat of the input, so that a picture that is late now and then has little
            // effect.
            let most = period / 16
            step = period &+ min(max((now &- tick) / 8, -most), most)
        }
        self.due = tick &+ step
        return .tick(at: tick, missed: missed)
    }

    /// Whether every input has ended. Last items may still lie in the queues.
    private func hasClosed(_ inputs: [QueueHead]) -> Bool {
        for input in inputs where !input.hasEnded { return false }
        return true
    }

    private func hasEnded(_ inputs: [QueueHead]) -> Bool {
        switch whenEnded {
        case .lead: return inputs.first?.isExhausted ?? true
        case .first:
            for input in inputs where input.isExhausted { return true }
            return false
        case .last:
            for input in inputs where !input.isExhausted { return false }
            return true
        }
    }
}
