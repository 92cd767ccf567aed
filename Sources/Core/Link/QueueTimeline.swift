// SPDX-License-Identifier: Apache-2.0

/// Places the items of a queue on a time line without gaps, so that the queue's span is what its items last. While sound
/// was paused, or a microphone was away, nothing came that could fill the queue.
///
/// A value without locks. Times come from files and other people's stages, so no sum of them may overflow.
struct QueueTimeline {
    /// An item this much later than the end of the one before follows a gap, even where nobody marked it, nanoseconds.
    /// Smaller holes may be the jitter of times.
    private static let leastGap: Int64 = 1_000_000_000

    /// Where the last item ends; nil before the first.
    private var end: Int64?
    /// Start of the last item.
    private var last: Int64 = 0
    /// From one item to the next, for items that do not say how long they last.
    private var step: Int64 = 0
    /// The sum of all gaps so far.
    private var gaps: Int64 = 0

    /// Where the next item lies on the line. Nothing lies before the first one of an empty queue.
    mutating func place(of header: borrowing ItemHeader, isFirst: Bool) -> Int64 {
        if isFirst { (end, gaps) = (nil, 0) }
        return header.queueTime.nanoseconds &- gaps &- gap(before: header)
    }

    /// The item is the newest now.
    mutating func add(_ header: borrowing ItemHeader) {
        let time = header.queueTime.nanoseconds
        let gap = gap(before: header)
        gaps = gaps &+ gap
        let (distance, isTooFar) = time.subtractingReportingOverflow(last)
        if end != nil, gap == 0, !isTooFar, distance > 0 { step = distance }
        let duration = header.duration.nanoseconds
        (last, end) = (time, time &+ (duration > 0 ? duration : step))
    }

    private func gap(before header: borrowing ItemHeader) -> Int64 {
        guard let end else { return 0 }
        let (gap, isTooFar) = header.queueTime.nanoseconds.subtractingReportingOverflow(end)
        // A clock that was set back makes a gap too.
        if header.isDiscontinuity { return isTooFar ? 0 : gap }
        guard !isTooFar, header.duration > .zero, gap > Self.leastGap else { return 0 }
        return gap
    }
}

/// What makes a queue full.
enum QueueBound: UInt8, Sendable {
    case items = 1
    case bytes, time

    /// The key of `link` in the chain file that sets it.
    var key: String {
        switch self {
        case .items: "queue"
        case .bytes: "megabytes"
        case .time: "seconds"
        }
    }
}
