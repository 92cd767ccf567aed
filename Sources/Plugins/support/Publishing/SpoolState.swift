// SPDX-License-Identifier: Apache-2.0

/// What a spool knows: where it reads and writes, and which numbers are acknowledged, taken or lost. A value; the files
/// are ``Spool``'s.
struct SpoolState {
    var segments: [SpoolSegments.Segment] = []
    /// The last segment, open for reading and appending; -1 where there is none yet.
    var writer: Int32 = -1
    /// The file with ``acknowledged``.
    var sentFile: Int32 = -1
    var isSentDirty = false
    var next: UInt64 = 1
    /// All events up to this number are acknowledged.
    var acknowledged: UInt64 = 0
    /// All events up to this number were taken.
    var taken: UInt64 = 0
    /// Records that are not on disk yet, in order.
    var unwritten: [SpoolRecord] = []
    /// Where the next take starts: a segment's first number, and an offset in the segment.
    var reading: (segment: UInt64, offset: Int) = (0, 0)
    /// Lines that were read after ``reading`` and not taken yet.
    var window: ArraySlice<SpoolSegments.Line> = []
    /// The number of the last line of this segment that was taken.
    var lastRead: UInt64 = 0
    /// Damaged lines and missing parts after the last record that was read.
    var suspects = 0
    /// All events up to this number were acknowledged to an earlier run.
    var sentBefore: UInt64 = 0
    /// Numbers of records that were taken and not acknowledged, and are no longer on disk.
    var held: Set<UInt64> = []
    /// Numbers that this run has counted as lost. No two ranges have a number in common.
    var gaps: [ClosedRange<UInt64>] = []
    /// The segment that was looked at last.
    var looked = 0
    /// Why the disk took nothing at the last attempt.
    var fault: String?
    var losses: [Spool.Loss: Int] = [:]

    // MARK: Numbers that are lost

    /// How many numbers there are between two that are not counted as lost.
    func missing(after low: UInt64, before high: UInt64) -> Int {
        guard high > low, high - low > 1 else { return 0 }
        let range = low + 1...high - 1
        let counted = gaps.reduce(0) { $1.overlaps(range) ? $0 + UInt64($1.clamped(to: range).count) : $0 }
        return Int(clamping: high - low - 1 - counted)
    }

    /// Counts the numbers between two as damaged.
    ///
    /// - Returns: How many of them were not counted before.
    @discardableResult
    mutating func lose(after low: UInt64, before high: UInt64) -> Int {
        let count = missing(after: low, before: high)
        guard count > 0 else { return 0 }
        losses[.damaged, default: 0] += count
        note(low + 1...high - 1)
        return count
    }

    private mutating func note(_ range: ClosedRange<UInt64>) {
        var whole = range
        gaps.removeAll { gap in
            guard gap.lowerBound <= whole.upperBound &+ 1, whole.lowerBound <= gap.upperBound &+ 1 else { return false }
            whole = min(gap.lowerBound, whole.lowerBound)...max(gap.upperBound, whole.upperBound)
            return true
        }
        gaps.append(whole)
    }

    /// Keeps the newest records of those that are only in memory.
    mutating func boundMemory(_ most: Int) {
        let surplus = unwritten.count - most
        guard surplus > 0 else { return }
        // Those that were sent from memory are not lost.
        for record in unwritten.prefix(surplus) where record.number > acknowledged {
            losses[.memoryFull, default: 0] += 1
            note(record.number...record.number)
        }
        unwritten.removeFirst(surplus)
    }

    // MARK: Reading

    mutating func read(from segment: UInt64) {
        reading = (segment, 0)
        (window, lastRead) = ([], segment - 1)
    }

    /// Counts what is missing between the last record that was read and a number, if something there was damaged: a
    /// number that nobody has written down is missing without damage.
    mutating func settle(before number: UInt64) {
        defer { suspects = 0 }
        // What was damaged before an event that an earlier run has sent was reported then.
        guard suspects > 0, number > sentBefore else { return }
        // The number of a line may be missing nowhere: a line that somebody has added, or the last one of a run.
        if lose(after: max(lastRead, taken), before: number) == 0 { losses[.damaged, default: 0] += suspects }
    }

    /// Notes that a line was read.
    ///
    /// - Returns: Its record, if it was not taken before.
    mutating func keep(_ record: SpoolRecord?) -> SpoolRecord? {
        guard let record else {
            suspects += 1
            return nil
        }
        settle(before: record.number)
        lastRead = record.number
        guard record.number > taken else { return nil }
        taken = record.number
        return record
    }

    // MARK: Files that somebody has removed

    /// Takes lines of a segment that is no longer there into memory, and counts what is missing among them.
    ///
    /// - Parameters:
    ///   - end: Its numbers are below this one.
    ///   - isWhole: Whether its lines could be read up to its end.
    mutating func takeBack(
        _ lines: [SpoolSegments.Line], of gone: SpoolSegments.Segment, below end: UInt64, isWhole: Bool
    ) {
        var (known, isDamaged) = (max(taken, gone.first - 1), false)
        for line in lines {
            guard let record = line.record else {
                isDamaged = true
                continue
            }
            if record.number > known {
                if isDamaged { lose(after: known, before: record.number) }
                known = record.number
            }
            isDamaged = false
        }
        if isDamaged || !isWhole { lose(after: known, before: end) }
        unwritten.insert(contentsOf: lines.compactMap(\.record).filter { $0.number > acknowledged }, at: 0)
        guard reading.segment >= gone.first else { return }
        suspects = 0
        read(from: gone.first)
    }

    /// Counts what was in a segment before the last that is no longer there. What of it was read is still given.
    mutating func lose(segmentAt index: Int) {
        let (segment, end) = (segments[index], segments[index + 1].first)
        var (known, bytes) = (max(taken, segment.first - 1), 0)
        if reading.segment == segment.first {
            known = max(known, lastRead, window.last { $0.record != nil }?.record?.number ?? 0)
            bytes = window.last?.end ?? reading.offset
        }
        lose(after: known, before: end)
        segments[index].bytes = bytes
    }
}
