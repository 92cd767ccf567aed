// SPDX-License-Identifier: Apache-2.0

/// What a join sees of the queue before one of its inputs.
struct QueueHead: Equatable {
    /// PTS of the oldest item, nanoseconds; nil when there is none.
    var head: Int64?
    /// No item with a PTS up to this one will come any more; `.min` when nothing is known.
    var nothingUpTo = Int64.min
    /// No item follows what lies in the queue.
    var hasEnded = false

    /// Ended, and all its items are taken.
    var isExhausted: Bool { hasEnded && head == nil }
}
