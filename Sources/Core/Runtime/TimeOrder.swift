// SPDX-License-Identifier: Apache-2.0

/// Decides which of several inputs a stage takes from next, so that items come in the order of their time: a value
/// without locks or threads. docs/design/033-kinds-of-sample.md.
struct TimeOrder {
    /// What an input shows.
    struct Input: Equatable {
        /// The time of the item that waits longest there, nanoseconds; nil while there is none.
        var time: Int64?
        /// Its producer waits for a place, or an item was turned away there, and its items may be taken before their turn
        /// for that reason.
        var isPressed = false
        /// No item of it is taken before its turn.
        var keepsTurn = false
        /// No item follows those that wait.
        var hasEnded = false

        /// Puts its item behind those of other inputs that are up to so much later, nanoseconds.
        mutating func delay(by nanoseconds: Int64) {
            guard let time else { return }
            let (later, isTooLate) = time.addingReportingOverflow(nanoseconds)
            self.time = isTooLate ? .max : later
        }
    }

    enum Decision: Equatable {
        case take(Int)
        /// Nothing can be taken before an input changes, or before this moment of the clock.
        case wait(until: Int64?)
        case end
    }

    /// How long the items of other inputs wait for an input that has none, nanoseconds; nil for as long as it takes.
    let longestWait: Int64?
    var inputs: [Input]
    /// Inputs that were waited for in vain: until they give an item again nobody waits for them.
    private var isSilent: [Bool]
    /// Since when an item has waited for an input without one; nil while none does.
    private var waitsSince: Int64?

    init(count: Int, longestWait: Int64?) {
        self.longestWait = longestWait
        inputs = [Input](repeating: Input(), count: count)
        isSilent = [Bool](repeating: false, count: count)
    }

    /// A bit for each input that an item of another one waits for, or the end of the stage.
    var awaited: UInt64 {
        guard inputs.contains(where: { $0.time != nil || $0.hasEnded }) else { return 0 }
        return inputs.indices.reduce(0) { bits, index in
            let isAwaited = inputs[index].time == nil && !inputs[index].hasEnded && !isSilent[index]
            return isAwaited ? bits | 1 << UInt64(index & 63) : bits
        }
    }

    /// - Parameter now: The chain clock's time, nanoseconds.
    mutating func next(now: Int64) -> Decision {
        var lowest: Int?
        var lowestOutOfTurn: Int?
        var isAwaited = false
        var isPressed = false
        var isOver = true
        for index in inputs.indices {
            let input = inputs[index]
            if let time = input.time {
                isOver = false
                isSilent[index] = false
                if input.isPressed { isPressed = true }
                if lowest.map({ time < inputs[$0].time! }) ?? true { lowest = index }
                if !input.keepsTurn, lowestOutOfTurn.map({ time < inputs[$0].time! }) ?? true {
                    lowestOutOfTurn = index
                }
            } else if !input.hasEnded {
                isOver = false
                if !isSilent[index] { isAwaited = true }
            }
        }
        if isOver { return .end }
        guard let lowest else {
            waitsSince = nil
            return .wait(until: nil)
        }
        guard isAwaited else {
            waitsSince = nil
            return .take(lowest)
        }
        if isPressed, let lowestOutOfTurn {
            waitsSince = nil
            return .take(lowestOutOfTurn)
        }
        guard let longestWait else { return .wait(until: nil) }
        let since = waitsSince ?? now
        waitsSince = since
        let (until, isNever) = since.addingReportingOverflow(longestWait)
        guard !isNever, now >= until else { return .wait(until: isNever ? nil : until) }
        for index in inputs.indices where inputs[index].time == nil && !inputs[index].hasEnded {
            isSilent[index] = true
        }
        waitsSince = nil
        return .take(lowest)
    }
}
