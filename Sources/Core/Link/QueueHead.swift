// SPDX-License-Identifier: Apache-2.0

/// What a stage of several inputs sees of the queue before one of them.
struct QueueHead: Equatable {
    /// PTS of the oldest item, nanoseconds; nil when there is none.
    var head: Int64?
    /// The time by which the oldest item is ordered among those of other inputs, nanoseconds; nil when there is none.
    var orderTime: Int64?
    /// No item with a PTS up to this one will come any more; `.min` when nothing is known.
    var nothingUpTo = Int64.min
    /// No item follows what lies in the queue.
    var hasEnded = false
    /// Whether its items may be taken before their turn, because its producer waits for a place or an item was turned
    /// away there.
    var isPressed = false
    /// Whether its items are never taken before their turn. The queue does not know this; the stage's rules do.
    var keepsTurn = false

    /// Ended, and all its items are taken.
    var isExhausted: Bool { hasEnded && head == nil }

    /// Puts its item behind those of other inputs that are up to `nanoseconds` later.
    mutating func delay(by nanoseconds: Int64) {
        guard let orderTime else { return }
        let (later, isTooLate) = orderTime.addingReportingOverflow(nanoseconds)
        self.orderTime = isTooLate ? .max : later
    }
}

extension [QueueHead] {
    /// A bit for each input without items that a join waits for, where it can decide nothing.
    ///
    /// - Parameter lead: The input whose items the join gives; nil where none leads.
    func awaited(lead: Int? = nil) -> UInt64 {
        if let lead, self[lead].head == nil, !self[lead].hasEnded { return 1 << UInt64(lead & 63) }
        var earliest = Int64.max
        for input in self { if let head = input.head { earliest = Swift.min(earliest, head) } }
        var bits: UInt64 = 0
        for index in indices {
            let isAwaited = self[index].head == nil && !self[index].hasEnded && self[index].nothingUpTo < earliest
            if isAwaited { bits |= 1 << UInt64(index & 63) }
        }
        return bits
    }
}
