// SPDX-License-Identifier: Apache-2.0

/// The blocks whose sound has not left the encoder yet, oldest first, in memory of a fixed size.
///
/// A packet answers the blocks that end in it. Where more blocks come than there is room for, because they are
/// tiny, the newest two become one.
struct PendingBlocks {
    private struct Entry {
        /// The number of the sample after its last one.
        var end: Int64
        /// When its first sample was captured, nanoseconds of the chain clock.
        var capturedAt: Int64
    }

    private var ring: [Entry]
    private var first = 0
    private(set) var count = 0

    init(capacity: Int) { ring = Array(repeating: Entry(end: 0, capturedAt: 0), count: capacity) }

    /// Adds a block whose samples end before sample `end`.
    ///
    /// - Returns: False where it was joined to the one before: it will not be answered by itself.
    mutating func add(end: Int64, capturedAt: Int64) -> Bool {
        guard count < ring.count else {
            ring[(first + count - 1) % ring.count].end = end
            return false
        }
        ring[(first + count) % ring.count] = Entry(end: end, capturedAt: capturedAt)
        count += 1
        return true
    }

    /// When the oldest block was captured.
    var oldestCapture: Int64? { count > 0 ? ring[first].capturedAt : nil }

    /// Removes the blocks that end at sample `end` or before, and gives their number.
    mutating func finish(upTo end: Int64) -> Int {
        var finished = 0
        while count > 0, ring[first].end <= end {
            first = (first + 1) % ring.count
            count -= 1
            finished += 1
        }
        return finished
    }
}
