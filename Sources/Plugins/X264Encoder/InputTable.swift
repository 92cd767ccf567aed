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

/// The records of frames that are inside the encoder, found again by tag: B-frames come out in another order than they
/// went in.
///
/// As many places as the encoder has frames inside at most, with the one it is just given. Allocates nothing after
/// `init`.
struct InputTable {
    private var records: [InputRecord]
    /// Tags that are not out; the first `freeCount` count.
    private var free: [Int]
    private var freeCount: Int
    private var isOut: [Bool]

    init(capacity: Int) {
        records = Array(repeating: InputRecord(), count: capacity)
        free = Array((0..<capacity).reversed())
        freeCount = capacity
        isOut = Array(repeating: false, count: capacity)
    }

    /// A tag for `record`, 0 or above; nil when the encoder has more frames inside than it said.
    mutating func insert(_ record: InputRecord) -> Int? {
        guard freeCount > 0 else { return nil }
        freeCount -= 1
        let tag = free[freeCount]
        records[tag] = record
        isOut[tag] = true
        return tag
    }

    /// The record of `tag`, whose place is free from now on; nil for a tag that is not out.
    mutating func take(_ tag: Int) -> InputRecord? {
        guard records.indices.contains(tag), isOut[tag] else { return nil }
        isOut[tag] = false
        free[freeCount] = tag
        freeCount += 1
        return records[tag]
    }
}
