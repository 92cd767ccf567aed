// SPDX-License-Identifier: Apache-2.0

/// The rate of events over the last second before the newest: the number of intervals divided by their time.
///
/// A ring of `capacity` times, made once. With more events than that within a second, the rate is that of the shorter
/// time that they span. Times that do not rise (a loop back to the start, a repeated time stamp) begin a new window.
package struct RateWindow {
    /// In nanoseconds.
    package let span: Int64
    private var times: [Int64]
    private var first = 0
    package private(set) var count = 0

    package init(span: Int64 = 1_000_000_000, capacity: Int = 1024) {
        precondition(capacity >= 2 && span > 0, "a rate needs two times and a span")
        self.span = span
        times = Array(repeating: 0, count: capacity)
    }

    private var newest: Int64 { times[(first + count - 1) % times.count] }

    /// O(1) on average; allocates nothing.
    package mutating func add(_ time: Int64) {
        if count > 0, time <= newest { count = 0 }
        if count == times.count { removeFirst() }
        times[(first + count) % times.count] = time
        count += 1
        // The interval that crosses the border of the window stays: without it, slow rates would have none.
        while count > 2, time - times[(first + 1) % times.count] >= span { removeFirst() }
    }

    private mutating func removeFirst() {
        first = (first + 1) % times.count
        count -= 1
    }

    /// Per second; nil before the second event, and when the newest is all there is.
    package var rate: Double? {
        guard count > 1 else { return nil }
        return Double(count - 1) * 1e9 / Double(newest - times[first])
    }
}
