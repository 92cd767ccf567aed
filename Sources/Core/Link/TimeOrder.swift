// SPDX-License-Identifier: Apache-2.0

/// Decides which of several inputs a stage takes from next, so that items come in the order of their time: a value
/// without locks or threads. docs/design/033-kinds-of-sample.md.
struct TimeOrder {
    enum Decision: Equatable {
        case take(Int)
        /// Nothing can be taken before an input changes, or before this moment of the clock.
        case wait(until: Int64?)
        case end
    }

    /// How long an item waits in all for inputs that have none, nanoseconds; nil means without limit.
    var longestWait: Int64?
    var inputs: [QueueHead]
    /// Whether the item that was decided on last came in its turn: no input that is waited for gives an earlier one.
    private(set) var isInTurn = true
    /// Inputs that the stage has waited for in vain. It waits for them again once they are about as far as the
    /// others.
    private var isSilent: [Bool]
    /// By input: since when its oldest item has waited for an input that has none; nil while it does not wait.
    private var waitsSince: [Int64?]
    /// By input: the time of the item that was taken last.
    private var taken: [Int64?]

    init(count: Int, longestWait: Int64?) {
        self.longestWait = longestWait
        inputs = [QueueHead](repeating: QueueHead(), count: count)
        isSilent = [Bool](repeating: false, count: count)
        waitsSince = [Int64?](repeating: nil, count: count)
        taken = [Int64?](repeating: nil, count: count)
    }

    /// A bit for each input that an item of another input, or the end of the stage, waits for.
    var awaited: UInt64 {
        guard inputs.contains(where: { $0.orderTime != nil || $0.hasEnded }) else { return 0 }
        return inputs.indices.reduce(0) { bits, index in
            let isAwaited = inputs[index].orderTime == nil && !inputs[index].hasEnded && !isSilent[index]
            return isAwaited ? bits | 1 << UInt64(index & 63) : bits
        }
    }

    /// - Parameter now: The chain clock's time, nanoseconds.
    mutating func next(now: Int64) -> Decision {
        isInTurn = true
        var lowest: Int?
        var lowestOutOfTurn: Int?
        var isAwaited = false
        var isPressed = false
        var isOver = true
        for index in inputs.indices {
            let input = inputs[index]
            if let time = input.orderTime {
                isOver = false
                if isSilent[index], !isFarBehind(time, index) { isSilent[index] = false }
                if input.isPressed { isPressed = true }
                if lowest.map({ time < inputs[$0].orderTime! }) ?? true { lowest = index }
                if !input.keepsTurn, lowestOutOfTurn.map({ time < inputs[$0].orderTime! }) ?? true {
                    lowestOutOfTurn = index
                }
            } else {
                waitsSince[index] = nil
                if !input.hasEnded {
                    isOver = false
                    if !isSilent[index] { isAwaited = true }
                }
            }
        }
        if isOver { return .end }
        guard let lowest else { return .wait(until: nil) }
        guard isAwaited else { return take(lowest) }
        if isPressed, let lowestOutOfTurn {
            isInTurn = false
            return take(lowestOutOfTurn)
        }
        guard let longestWait else { return .wait(until: nil) }
        var since = now
        for index in inputs.indices where inputs[index].orderTime != nil {
            if waitsSince[index] == nil { waitsSince[index] = now }
            since = min(since, waitsSince[index]!)
        }
        let (until, isNever) = since.addingReportingOverflow(longestWait)
        guard !isNever, now >= until else { return .wait(until: isNever ? nil : until) }
        for index in inputs.indices where inputs[index].orderTime == nil && !inputs[index].hasEnded {
            isSilent[index] = true
        }
        return take(lowest)
    }

    private mutating func take(_ index: Int) -> Decision {
        waitsSince[index] = nil
        taken[index] = inputs[index].orderTime
        return .take(index)
    }

    /// Whether the items of other inputs would wait for this input in vain again, because it is more than
    /// ``longestWait`` behind one of them.
    private func isFarBehind(_ time: Int64, _ index: Int) -> Bool {
        guard let longestWait else { return false }
        return taken.indices.contains { other in
            guard other != index, let otherTime = taken[other] else { return false }
            let (behind, isTooMuch) = otherTime.subtractingReportingOverflow(time)
            return isTooMuch ? otherTime > time : behind > longestWait
        }
    }
}
