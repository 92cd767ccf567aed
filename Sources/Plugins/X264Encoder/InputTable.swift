import FrameCore

/// What an access unit repeats of the frame it was made from.
struct InputRecord {
    var pts = MediaTime.zero
    var duration = MediaTime.zero
    var capturedAt: Int64 = 0
    var sequenceNumber: UInt64 = 0
    var orientation = Orientation.up
    var isDiscontinuity = false

    init() {}

    init(_ frame: borrowing Frame) {
        pts = frame.pts
        duration = frame.duration
        capturedAt = frame.capturedAt
        sequenceNumber = frame.sequenceNumber
        orientation = frame.orientation
        isDiscontinuity = frame.isDiscontinuity
    }
}

/// The records of frames that are inside the encoder, found again by tag: B-frames come out in another order than they went in.
///
/// A ring: its size is the most frames the encoder keeps and the one it is just given, so that a tag is free again when its turn comes.
/// Allocates nothing after `init`.
struct InputTable {
    private var records: [InputRecord]
    private var isUsed: [Bool]
    private var next = 0

    init(capacity: Int) {
        records = Array(repeating: InputRecord(), count: max(capacity, 1))
        isUsed = Array(repeating: false, count: max(capacity, 1))
    }

    /// A tag for `record`, 0 or above; nil when the encoder kept more frames than it said.
    mutating func insert(_ record: InputRecord) -> Int? {
        guard !isUsed[next] else { return nil }
        defer { next = next + 1 == records.count ? 0 : next + 1 }
        records[next] = record
        isUsed[next] = true
        return next
    }

    /// The record of `tag`, whose place is free from now on; nil for a tag that is not out.
    mutating func take(_ tag: Int) -> InputRecord? {
        guard records.indices.contains(tag), isUsed[tag] else { return nil }
        isUsed[tag] = false
        return records[tag]
    }
}
