// SPDX-License-Identifier: Apache-2.0

/// Text that waits for a reader, whole lines at a time, within a bound: the state behind an ``OutputWriter``.
///
/// A line that finds no room is left out and counted. The gap is named at its place in the text, once there is room
/// again or nothing else waits. After a loss half of the room must be free before a further line is taken, so that a
/// slow reader gets long pieces with few gaps.
struct LineQueue {
    /// What the writer does next.
    enum Next: Equatable {
        case text([UInt8], OutputWriter.Stream)
        /// So many lines of the stream were left out here.
        case gap(Int, OutputWriter.Stream)
    }

    private enum Entry {
        case text([UInt8], OutputWriter.Stream, OutputWriter.Kind)
        case gap(Int, OutputWriter.Stream)
    }

    /// Lines of each stream.
    typealias Counts = OutputWriter.Counts

    private let mostBytes: Int
    private var entries: [Entry?] = []
    /// The index of the first entry that waits.
    private var head = 0
    private var bytes = 0
    private var isFull = false
    /// Lines that were left out and whose gap has no place yet.
    private var gaps = Counts()
    /// Lines that were left out since the beginning.
    private(set) var lost = Counts()

    init(mostBytes: Int) { self.mostBytes = mostBytes }

    /// Whether anything waits to be written.
    var isEmpty: Bool { head == entries.count && gaps == Counts() }

    /// Whether there is room for a line that is not too large for it.
    var hasRoom: Bool { isFull ? bytes <= mostBytes / 2 : bytes < mostBytes }

    /// Takes a text or leaves it out.
    ///
    /// A text that is larger than all of the room is taken where nothing else waits.
    mutating func offer(_ text: [UInt8], _ stream: OutputWriter.Stream, _ kind: OutputWriter.Kind) {
        switch kind {
        case .line:
            if isFull, bytes <= mostBytes / 2 { isFull = false }
            if !isFull { isFull = bytes > 0 && bytes + text.count > mostBytes }
            guard !isFull else {
                gaps[stream] += 1
                lost[stream] += 1
                return
            }
            placeGaps()
        case .answer: placeGaps()
        case .progress:
            if case .text(let last, stream, .progress)? = entries.last ?? nil, head < entries.count {
                entries.removeLast()
                bytes -= last.count
            }
            guard hasRoom, bytes + text.count <= mostBytes else { return }
        }
        entries.append(.text(text, stream, kind))
        bytes += text.count
    }

    private mutating func placeGaps() {
        for stream in OutputWriter.Stream.allCases where gaps[stream] > 0 {
            entries.append(.gap(gaps[stream], stream))
            gaps[stream] = 0
        }
    }

    /// What is to be written next; nil where nothing waits.
    mutating func take() -> Next? {
        if head == entries.count { placeGaps() }
        guard head < entries.count, let entry = entries[head] else { return nil }
        entries[head] = nil
        head += 1
        if head == entries.count || head > 1024 {
            entries.removeFirst(head)
            head = 0
        }
        switch entry {
        case .text(let text, let stream, _):
            bytes -= text.count
            return .text(text, stream)
        case .gap(let count, let stream): return .gap(count, stream)
        }
    }

    /// Lines of each stream that wait to be written.
    var unwritten: Counts {
        entries[head...].reduce(into: Counts()) { counts, entry in
            if case .text(_, let stream, let kind)? = entry, kind != .progress { counts[stream] += 1 }
        }
    }
}
