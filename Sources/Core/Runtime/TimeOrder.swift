// SPDX-License-Identifier: Apache-2.0

/// Decides which of several inputs a stage takes from next, so that items come in the order of their time: a value
/// without locks or threads. docs/design/033-kinds-of-sample.md.
struct TimeOrder {
    /// What an input shows.
    struct Input: Equatable {
        /// The time of the item that waits longest there, nanoseconds; nil while there is none.
        var time: Int64?
        /// Its producer waits for a place, or an item was turned away there.
        var isPressed = false
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
    /// Whether an input is waited for only while no producer of another waits for a place: where two inputs come from one
    /// source, that could keep the first from ever getting an item.
    let heedsPressure: Bool
    var inputs: [Input]
    /// Inputs that were waited for in vain: until they give an item again nobody waits for them.
    private var isSilent: [Bool]
    /// Since when an item has waited for an input without one; nil while none does.
    private var waitsSince: Int64?

    init(count: Int, longestWait: Int64?, heedsPressure: Bool) {
        self.longestWait = longestWait
        self.heedsPressure = heedsPressure
        inputs = [Input](repeating: Input(), count: count)
        isSilent = [Bool](repeating: false, count: count)
    }

    /// - Parameter now: The chain clock's time, nanoseconds.
    mutating func next(now: Int64) -> Decision {
        var lowest: Int?
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
        guard isAwaited, !(heedsPressure && isPressed) else {
            waitsSince = nil
            return .take(lowest)
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
