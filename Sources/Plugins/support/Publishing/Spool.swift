// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameSupport
import Glibc

/// Events that wait for their server: on disk, bounded in bytes, in the order in which they happened.
///
/// One thread appends, one takes and acknowledges. Survives the end of the process at any moment, a damaged file, and a
/// full disk. docs/design/029-event-publishers.md has its form on disk.
package final class Spool: Sendable {
    /// Records that are kept in memory while the disk takes nothing.
    package static let mostUnwritten = 1024
    /// Bytes that are read at once: room for several of the longest lines.
    private static let windowBytes = 1 << 20

    private let folder: SpoolFolder
    private let disk: SpoolSegments
    private let mostBytes: Int
    private let segmentBytes: Int
    private let state: Locked<SpoolState>
    /// Rings when there is something to take.
    package let doorbell = Doorbell()

    /// Opens the spool that an earlier run has left, or a new one.
    ///
    /// - Parameter mostBytes: At least 65,536; all segments together are never larger.
    /// - Throws: ``FrameHostError`` where the folder cannot be read.
    package init(_ folder: SpoolFolder, mostBytes: Int) throws {
        self.folder = folder
        disk = SpoolSegments(folder: folder)
        self.mostBytes = max(mostBytes, 65_536)
        segmentBytes = min(max(self.mostBytes / 8, 4096), 4 << 20)
        state = Locked(SpoolState())
        try state.withLock { try open(&$0) }
    }

    deinit {
        state.withLock { state in
            if state.writer >= 0 { close(state.writer) }
            if state.sentFile >= 0 { close(state.sentFile) }
        }
    }

    // MARK: For whoever asks [any thread]

    /// Events that are not acknowledged.
    package var waitingCount: Int {
        state.withLock { Int(clamping: $0.next - 1 - min($0.acknowledged, $0.next - 1)) }
    }

    /// The folder.
    package var folderPath: String { folder.path }

    /// Why events are only in memory; nil while the disk takes them.
    package var fault: String? { state.withLock { $0.fault } }

    /// Bytes on disk.
    package var diskBytes: Int { state.withLock { $0.segments.reduce(0) { $0 + $1.bytes } } }

    /// What was lost since the last call.
    package func takeLosses() -> [Loss: Int] {
        state.withLock { state in
            defer { state.losses = [:] }
            return state.losses.filter { $0.value > 0 }
        }
    }

    /// [when no other thread uses it any longer] Counts what the next run will not find: events that are only in memory,
    /// or with a server that has not acknowledged them.
    package func countLeft() {
        state.withLock { state in
            write(&state)
            state.losses[.spoolFull, default: 0] += state.held.count
            state.losses[.notWritten, default: 0] += state.unwritten.count { $0.number > state.acknowledged }
            (state.held, state.unwritten) = ([], [])
        }
    }

    package func count(_ loss: Loss, _ count: Int = 1) {
        guard count > 0 else { return }
        state.withLock { $0.losses[loss, default: 0] += count }
    }

    // MARK: Appending [spool thread]

    /// Writes and syncs events. What the disk does not take stays in memory.
    ///
    /// - Parameter make: Makes each event's record from its number; nil where its text is too large.
    package func append<Item>(_ items: [Item], _ make: (Item, UInt64) -> SpoolRecord?) {
        state.withLock { state in
            for item in items {
                guard let record = make(item, state.next) else {
                    state.losses[.tooLarge, default: 0] += 1
                    continue
                }
                state.unwritten.append(record)
                state.next += 1
            }
            write(&state)
        }
        doorbell.ring()
    }

    /// Writes what is only in memory, and the number that is acknowledged.
    package func flush() { state.withLock { write(&$0) } }

    /// Looks whether somebody has removed files of the spool. What was in the last segment is written again, and what is
    /// lost is counted. It is for every second or so.
    package func look() {
        state.withLock { state in
            if !disk.isWhole(state) { write(&state) }
            loseRemoved(&state)
            var status = stat()
            guard state.sentFile >= 0, fstat(state.sentFile, &status) == 0, status.st_nlink == 0 else { return }
            close(state.sentFile)
            state.sentFile = -1
            save(&state)
        }
    }

    private func write(_ state: inout SpoolState) {
        // What was sent from memory needs no place on disk. After a fault the newest record is written all the same:
        // only a write shows that the disk takes records again.
        let newest = state.fault == nil ? nil : state.unwritten.last
        state.unwritten.removeAll { $0.number <= state.acknowledged }
        if state.unwritten.isEmpty, let newest { state.unwritten = [newest] }
        var (fault, removals) = (String?.none, 0)
        while fault == nil {
            if !disk.isWhole(state) { recover(&state) }
            guard let first = state.unwritten.first else { break }
            fault = prepare(&state, for: first)
            guard fault == nil else { break }
            var bytes: [UInt8] = []
            var count = 0
            let begin = state.segments[state.segments.count - 1].bytes
            for record in state.unwritten {
                let line = record.line
                if count > 0, begin + bytes.count + line.count > segmentBytes { break }
                bytes += line
                count += 1
            }
            makeRoom(&state, bytes.count)
            fault = write(bytes, at: begin, &state)
            guard fault == nil else { break }
            // Only what has a name on the disk is kept there.
            guard disk.isWhole(state, with: begin + bytes.count) else {
                removals += 1
                if removals == 3 { fault = "somebody removes its files" }
                continue
            }
            state.segments[state.segments.count - 1].bytes = begin + bytes.count
            state.unwritten.removeFirst(count)
        }
        state.boundMemory(Self.mostUnwritten)
        if state.isSentDirty, state.sentFile >= 0 {
            fdatasync(state.sentFile)
            state.isSentDirty = false
        }
        state.fault = fault
    }

    /// Opens a segment for a record where there is none, or the last is full.
    private func prepare(_ state: inout SpoolState, for record: SpoolRecord) -> String? {
        if let last = state.segments.last, state.writer >= 0, last.bytes < segmentBytes { return nil }
        if state.writer >= 0 { close(state.writer) }
        state.writer = -1
        var damaged: UInt64?
        if let last = state.segments.last, last.bytes < segmentBytes {
            state.writer = Glibc.open(disk.path(last.first), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
            guard state.writer >= 0 || errno == ENOENT else { return disk.reason() }
            if state.writer >= 0, disk.isWhole(state) { return nil }
            damaged = last.first
            recover(&state)
        }
        let first = state.unwritten.first?.number ?? record.number
        if let reason = folder.renew() { return reason }
        let flags = O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK
        let file = Glibc.open(disk.path(first), flags, 0o600)
        guard file >= 0 else { return disk.reason() }
        state.writer = file
        state.segments.append(SpoolSegments.Segment(first: first, bytes: 0))
        if let damaged, damaged != first { unlink(disk.path(damaged)) }
        // The name must survive a loss of power as the records do.
        let folderFile = Glibc.open(folder.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        if folderFile >= 0 {
            fsync(folderFile)
            close(folderFile)
        }
        removeSent(&state)
        return nil
    }

    /// Takes the records of the last segment, whose file somebody has removed, replaced or cut, back into memory. The
    /// descriptor still has them.
    private func recover(_ state: inout SpoolState) {
        let gone = state.segments.removeLast()
        var bytes: [UInt8] = []
        if state.writer >= 0 {
            bytes = disk.read(state.writer, from: 0, count: gone.bytes) ?? []
            close(state.writer)
            state.writer = -1
        }
        let end = state.unwritten.first?.number ?? state.next
        let lines = disk.lines(bytes, at: 0, of: gone.first, below: end)
        state.takeBack(lines, of: gone, below: end, isWhole: bytes.count == gone.bytes)
    }

    /// Counts what was in segments before the last whose files are gone. A part of a large spool at a time.
    private func loseRemoved(_ state: inout SpoolState) {
        for _ in 0..<min(max(state.segments.count - 1, 0), 64) {
            state.looked = state.looked + 1 < state.segments.count - 1 ? state.looked + 1 : 0
            let segment = state.segments[state.looked]
            guard segment.bytes > 0, segment.first >= state.reading.segment,
                access(disk.path(segment.first), F_OK) != 0, errno == ENOENT
            else { continue }
            state.lose(segmentAt: state.looked)
        }
    }

    private func write(_ bytes: [UInt8], at offset: Int, _ state: inout SpoolState) -> String? {
        var code = bytes.withUnsafeBytes { Transfer.write($0, to: state.writer, at: Int64(offset)) }
        if code == 0, fdatasync(state.writer) != 0 { code = errno }
        guard code == 0 else {
            // Half a line would be taken for a damaged one. Where even this fails, it is overwritten next time.
            ftruncate(state.writer, offset)
            return String(cString: strerror(code))
        }
        return nil
    }

    /// Removes the oldest segments until this many more bytes fit, but never the last segment.
    private func makeRoom(_ state: inout SpoolState, _ bytes: Int) {
        while state.segments.count > 1, state.segments.reduce(0, { $0 + $1.bytes }) + bytes > mostBytes {
            countLost(&state)
            remove(first: &state)
        }
    }

    /// Counts what is lost with the first segment.
    private func countLost(_ state: inout SpoolState) {
        let (segment, end) = (state.segments[0], state.segments[1].first)
        let known = max(state.acknowledged, state.taken)
        guard let bytes = disk.read(segment.first, from: 0, count: segment.bytes), bytes.count == segment.bytes else {
            let from = max(segment.first - 1, state.acknowledged, min(state.taken, end - 1))
            state.losses[.spoolFull, default: 0] += state.missing(after: from, before: end)
            return
        }
        // Up to where it was read; what was damaged there is counted.
        let done =
            state.reading.segment == segment.first
            ? state.reading.offset : state.reading.segment > segment.first ? segment.bytes : 0
        if bytes.last != 10, done < bytes.count { state.losses[.damaged, default: 0] += 1 }
        for line in disk.lines(bytes, at: 0, of: segment.first, below: end) {
            switch line.record?.number {
            case let number? where number > known: state.losses[.spoolFull, default: 0] += 1
            // The sender has it; the server may acknowledge it yet.
            case let number? where number > state.acknowledged: state.held.insert(number)
            case nil where line.offset >= done: state.losses[.damaged, default: 0] += 1
            default: break
            }
        }
    }

    // MARK: Taking and acknowledging [sending thread]

    /// The next records. Each one is given once, and none that is acknowledged.
    package func take(most: Int) -> [SpoolRecord] {
        state.withLock { state in
            var records: [SpoolRecord] = []
            while records.count < most {
                let before = state.reading
                readOn(&state, into: &records, most: most)
                if state.reading == before { break }
            }
            if records.count < most, isAtEnd(state) {
                state.settle(before: state.unwritten.first?.number ?? state.next)
                for record in state.unwritten where record.number > state.taken && records.count < most {
                    records.append(record)
                    state.taken = record.number
                }
            }
            return records
        }
    }

    /// Notes that the server has all events up to `number`.
    package func acknowledge(through number: UInt64) {
        state.withLock { state in
            guard number > state.acknowledged else { return }
            state.acknowledged = number
            state.taken = max(state.taken, number)
            if !state.held.isEmpty { state.held = state.held.filter { $0 > number } }
            save(&state)
            removeSent(&state)
        }
    }

    private func save(_ state: inout SpoolState) {
        if state.sentFile < 0 {
            state.sentFile = Glibc.open("\(folder.path)/sent", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        }
        guard state.sentFile >= 0 else { return }
        let text = SpoolRecord.sent(state.acknowledged)
        _ = text.withUnsafeBytes { pwrite(state.sentFile, $0.baseAddress!, $0.count, 0) }
        state.isSentDirty = true
    }

    private func isAtEnd(_ state: SpoolState) -> Bool {
        guard let last = state.segments.last else { return true }
        // The segment that was read may be one that is no longer there.
        return state.reading.segment > last.first
            || (state.reading.segment == last.first && state.reading.offset >= last.bytes)
    }

    /// Takes what was read of a segment, reads on, or moves to the next segment.
    private func readOn(_ state: inout SpoolState, into records: inout [SpoolRecord], most: Int) {
        guard let index = state.segments.firstIndex(where: { $0.first >= state.reading.segment }) else { return }
        let segment = state.segments[index]
        if segment.first != state.reading.segment {
            state.read(from: segment.first)
        }
        guard !state.window.isEmpty || state.reading.offset < segment.bytes else {
            guard index + 1 < state.segments.count else { return }
            state.settle(before: state.segments[index + 1].first)
            state.read(from: state.segments[index + 1].first)
            return
        }
        if state.window.isEmpty {
            let next = index + 1 < state.segments.count ? state.segments[index + 1].first : state.next
            fillWindow(segment, below: next, &state)
        }
        while records.count < most, let line = state.window.popFirst() {
            state.reading.offset = line.end
            if let record = state.keep(line.record) { records.append(record) }
        }
    }

    /// Reads lines of a segment from where it was read up to. What is looked at is what is taken, whoever writes into
    /// the file meanwhile.
    private func fillWindow(_ segment: SpoolSegments.Segment, below next: UInt64, _ state: inout SpoolState) {
        let offset = state.reading.offset
        let wanted = min(Self.windowBytes, segment.bytes - offset)
        guard let bytes = disk.read(segment.first, from: offset, count: wanted) else {
            // Where no descriptor was free, the next look may have one. What the disk can no longer give is
            // skipped.
            guard errno == EIO else { return }
            state.suspects += 1
            state.reading.offset += min(wanted, 4096)
            return
        }
        if bytes.count < wanted, segment.first == state.segments.last?.first, !disk.isWhole(state) {
            return recover(&state)
        }
        guard bytes.contains(10) else {
            // No line ends within these bytes, or the file is shorter than it was.
            state.suspects += 1
            state.reading.offset = bytes.count < wanted ? segment.bytes : offset + bytes.count
            return
        }
        let all = disk.lines(bytes, at: offset, of: segment.first, after: state.lastRead, below: next)
        // Whether a number is the spool's own, the lines behind it tell.
        let isWhole = offset + wanted == segment.bytes
        let count = isWhole ? all.count : max(all.count { $0.offset < offset + wanted / 2 }, 1)
        state.window = all.prefix(count)
        // Nothing but empty lines.
        if all.isEmpty { state.reading.offset = offset + (bytes.lastIndex(of: 10) ?? 0) + 1 }
    }

    /// Removes segments whose records are all acknowledged. The last one stays, since its numbers are continued.
    private func removeSent(_ state: inout SpoolState) {
        while state.segments.count > 1, state.segments[1].first - 1 <= state.acknowledged { remove(first: &state) }
    }

    private func remove(first state: inout SpoolState) {
        unlink(disk.path(state.segments.removeFirst().first))
        let first = state.segments.first?.first ?? 0
        state.gaps.removeAll { $0.upperBound < first }
    }

    // MARK: Opening

    private func open(_ state: inout SpoolState) throws {
        state.segments = try disk.numbers().map { number in
            var status = stat()
            let size = stat(disk.path(number), &status) == 0 ? Int(status.st_size) : 0
            if size > SpoolSegments.mostSegmentBytes { state.losses[.damaged, default: 0] += 1 }
            return SpoolSegments.Segment(first: number, bytes: min(size, SpoolSegments.mostSegmentBytes))
        }
        state.sentFile = Glibc.open("\(folder.path)/sent", O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        if state.sentFile >= 0 { state.acknowledged = disk.sent(state.sentFile) }
        state.next = state.acknowledged + 1
        if let last = state.segments.last {
            let (end, number) = try disk.mend(last)
            state.segments[state.segments.count - 1].bytes = end
            state.next = max(state.next, last.first, number + 1)
            state.writer = Glibc.open(disk.path(last.first), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        }
        state.taken = state.acknowledged
        state.sentBefore = state.acknowledged
        state.reading = (state.segments.first?.first ?? 0, 0)
        removeSent(&state)
    }
}
