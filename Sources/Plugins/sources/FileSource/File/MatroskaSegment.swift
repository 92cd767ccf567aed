// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The segment of a Matroska or WebM file, the element that has all that follows the file's head: how long it must be, and
/// where its clusters are damaged. libavformat reads on behind such a place, and says nothing.
///
/// - SeeAlso: RFC 8794 (EBML), 4 and 5; RFC 9559 (Matroska), 5.1.
struct MatroskaSegment: Equatable {
    /// The file offset of its first element.
    let begin: Int64
    /// The file offset behind its last byte; nil where the size is not known, as in a recording that was not finished.
    let end: Int64?

    /// - Parameter head: The file's first bytes; some hundred suffice.
    /// - Returns: nil where there is no segment.
    init?(head: [UInt8]) {
        var rest = head[...]
        guard EBML.identifier(&rest) == 0x1A45_DFA3, case .known(let skipped)? = EBML.size(&rest),
            skipped < Int64(rest.count), case _ = rest.removeFirst(Int(skipped)),
            EBML.identifier(&rest) == EBML.segment, let size = EBML.size(&rest)
        else { return nil }
        begin = Int64(rest.startIndex)
        switch size {
        case .unknown: end = nil
        case .known(let size):
            let (end, isTooMuch) = begin.addingReportingOverflow(size)
            guard !isTooMuch else { return nil }
            self.end = end
        }
    }

    /// A walk through the headers of all elements down to the blocks, which finds the places that are no elements.
    ///
    /// Of a segment whose size is known, each byte must belong to an element. Otherwise the recording was not finished:
    /// where its last part is damaged, it may as well have ended there.
    func walk(in file: FileBytes) -> any ContainerWalk {
        MatroskaWalk(file, from: begin, to: min(end ?? file.count, file.count), isFinished: end != nil)
    }
}

/// One walk through a segment.
private struct MatroskaWalk: ContainerWalk {
    private let file: FileBytes
    private let end: Int64
    private let isFinished: Bool
    private(set) var gaps: [FileGap] = []

    private var offset: Int64
    /// Nanoseconds of a tick of clusters and blocks.
    private var scale: Int64 = 1_000_000
    /// Where the cluster that is walked through ends; nil outside of clusters, `Int64.max` where that is not known.
    private var clusterEnd: Int64?
    private var clusterTicks: Int64 = 0
    /// The time of the last block.
    private var last: MediaTime?
    /// Whether a gap waits for the time of the cluster behind it.
    private var isGapOpen = false

    /// A hostile file ends the walk here. Ten hours of pictures and sound have fewer.
    private static let mostElements = 10_000_000
    private static let elementsOfStep = 10_000
    private var count = 0

    init(_ file: FileBytes, from begin: Int64, to end: Int64, isFinished: Bool) {
        self.file = file
        offset = begin
        self.end = end
        self.isFinished = isFinished
    }

    mutating func step() -> Bool {
        count += Self.elementsOfStep
        return run() && count < Self.mostElements
    }

    /// False at the end.
    private mutating func run() -> Bool {
        for _ in 0..<Self.elementsOfStep {
            guard offset < end else { return false }
            if let clusterEnd, offset >= clusterEnd { self.clusterEnd = nil }
            guard let element = EBML.Element(in: file, at: offset) else {
                // The end of a file that was cut off may have a part of a header.
                if end - offset < 12, end == file.count { return false }
                guard recover() else { return false }
                continue
            }
            // Another recording was appended.
            if element.id == EBML.head || element.id == EBML.segment { return false }
            guard take(element) else {
                guard recover() else { return false }
                continue
            }
        }
        return true
    }

    /// Goes into a cluster or over any other element; false where it cannot be there.
    private mutating func take(_ element: EBML.Element) -> Bool {
        if EBML.topLevel.contains(element.id), clusterEnd == nil || clusterEnd == .max {
            return takeTopLevel(element)
        }
        guard let next = element.end, let clusterEnd else { return isFollowed(element) && skip(element) }
        guard next <= clusterEnd else { return false }
        guard EBML.ofCluster.contains(element.id) else { return isFollowed(element) && skip(element) }
        switch element.id {
        case EBML.timestamp:
            clusterTicks = element.number
            if isGapOpen {
                gaps[gaps.count - 1].end = time(clusterTicks)
                isGapOpen = false
            }
        case EBML.simpleBlock, EBML.blockGroup:
            if let ticks = element.blockTicks {
                let time = time(clusterTicks.plus(Int64(ticks)))
                last = max(last ?? time, time)
            }
        default: break
        }
        return skip(element)
    }

    private mutating func takeTopLevel(_ element: EBML.Element) -> Bool {
        if element.id == EBML.cluster {
            clusterEnd = element.end ?? .max
            offset = element.content
            return true
        }
        guard let next = element.end else { return false }
        if element.id == EBML.info { readScale(element.content, next) }
        clusterEnd = nil
        offset = next
        return true
    }

    private mutating func skip(_ element: EBML.Element) -> Bool {
        guard let next = element.end else { return false }
        offset = next
        return true
    }

    /// Whether an element that is not known is one: another that is known, or the end, must come behind it.
    private func isFollowed(_ element: EBML.Element) -> Bool {
        guard let next = element.end, next <= min(clusterEnd ?? end, end) else { return false }
        if next == end || next == clusterEnd { return true }
        return EBML.Element(in: file, at: next).map { EBML.isKnown($0.id) } ?? false
    }

    private mutating func readScale(_ begin: Int64, _ end: Int64) {
        var offset = begin
        for _ in 0..<100 where offset < end {
            guard let element = EBML.Element(in: file, at: offset), let next = element.end else { return }
            if element.id == EBML.timestampScale { scale = max(element.number, 1) }
            offset = next
        }
    }

    private func time(_ ticks: Int64) -> MediaTime {
        let (nanoseconds, overflows) = ticks.multipliedReportingOverflow(by: scale)
        return MediaTime(nanoseconds: overflows ? .max >> 2 : min(max(nanoseconds, .min >> 2), .max >> 2))
    }

    /// Notes a gap, and goes to the next cluster; false where there is none.
    private mutating func recover() -> Bool {
        let here = offset
        if let clusterEnd, clusterEnd > here, clusterEnd < end, isTopLevel(at: clusterEnd) {
            offset = clusterEnd
        } else {
            let next = file.first(of: [EBML.cluster, EBML.cues, EBML.tags], from: here + 4, before: end) {
                isTopLevel(at: $0)
            }
            guard let next else {
                if isFinished { gaps.append(FileGap(begin: last, end: nil)) }
                return false
            }
            offset = next
        }
        clusterEnd = nil
        if !isGapOpen { gaps.append(FileGap(begin: last, end: nil)) }
        isGapOpen = true
        return true
    }

    private func isTopLevel(at offset: Int64) -> Bool {
        guard let element = EBML.Element(in: file, at: offset), EBML.topLevel.contains(element.id) else { return false }
        guard element.id == EBML.cluster else { return element.end.map { $0 <= file.count } ?? false }
        return EBML.Element(in: file, at: element.content).map { EBML.ofCluster.contains($0.id) } ?? false
    }
}

/// The elements of EBML (RFC 8794) as far as Matroska's clusters need them.
private enum EBML {
    static let head: UInt32 = 0x1A45_DFA3
    static let segment: UInt32 = 0x1853_8067
    static let info: UInt32 = 0x1549_A966
    static let timestampScale: UInt32 = 0x2AD7B1
    static let cluster: UInt32 = 0x1F43_B675
    static let cues: UInt32 = 0x1C53_BB6B
    static let tags: UInt32 = 0x1254_C367
    static let timestamp: UInt32 = 0xE7
    static let simpleBlock: UInt32 = 0xA3
    static let blockGroup: UInt32 = 0xA0
    private static let block: UInt32 = 0xA1
    private static let void: UInt32 = 0xEC
    private static let checksum: UInt32 = 0xBF

    /// What may stand in a segment: seek head, info, tracks, clusters, cues, attachments, chapters, tags.
    static let topLevel: Set<UInt32> = [
        0x114D_9B74, info, 0x1654_AE6B, cluster, cues, 0x1941_A469, 0x1043_A770, tags,
    ]
    /// What may stand in a cluster: its time, blocks, its position, the previous one's size, silent tracks, encrypted
    /// blocks.
    static let ofCluster: Set<UInt32> = [timestamp, simpleBlock, blockGroup, 0xA7, 0xAB, 0x5854, 0xAF, void, checksum]

    static func isKnown(_ id: UInt32) -> Bool { topLevel.contains(id) || ofCluster.contains(id) }

    enum Size: Equatable {
        case known(Int64)
        /// All bits are set.
        case unknown
    }

    /// An element's identifier, with the bits that say its length.
    static func identifier(_ rest: inout ArraySlice<UInt8>) -> UInt32? {
        guard let first = rest.first, first.leadingZeroBitCount < 4 else { return nil }
        let length = first.leadingZeroBitCount + 1
        guard rest.count >= length else { return nil }
        defer { rest = rest.dropFirst(length) }
        return rest.prefix(length).reduce(0) { $0 << 8 | UInt32($1) }
    }

    static func size(_ rest: inout ArraySlice<UInt8>) -> Size? {
        guard let first = rest.first, first != 0 else { return nil }
        let length = first.leadingZeroBitCount + 1
        guard rest.count >= length else { return nil }
        let bits = rest.prefix(length).reduce(UInt64(0)) { $0 << 8 | UInt64($1) } & (1 << UInt64(7 * length) - 1)
        rest = rest.dropFirst(length)
        return bits == 1 << UInt64(7 * length) - 1 ? .unknown : .known(Int64(bits))
    }

    struct Element {
        let id: UInt32
        /// The file offset of its content.
        let content: Int64
        /// The file offset behind it; nil where its size is not known. It may lie behind the file.
        let end: Int64?
        /// The first bytes of its content, and perhaps of what follows it: enough for the head of a block in a group.
        private let beginning: ArraySlice<UInt8>

        init?(in file: FileBytes, at offset: Int64) {
            var rest = file.read(at: offset, most: 40)[...]
            guard let id = EBML.identifier(&rest), let size = EBML.size(&rest) else { return nil }
            self.id = id
            content = offset + Int64(rest.startIndex)
            beginning = rest
            end = if case .known(let size) = size { content.plus(size) } else { nil }
        }

        /// Its content as an unsigned number; 0 where it is none.
        var number: Int64 {
            guard let end, (1...8).contains(end - content), beginning.count >= end - content else { return 0 }
            let value = beginning.prefix(Int(end - content)).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
            return Int64(exactly: value) ?? .max
        }

        /// The time of a block, relative to its cluster's.
        var blockTicks: Int16? {
            var rest = beginning
            if id == blockGroup {
                guard EBML.identifier(&rest) == block, EBML.size(&rest) != nil else { return nil }
            }
            guard EBML.size(&rest) != nil, rest.count >= 2 else { return nil }
            return Int16(bitPattern: rest.prefix(2).reduce(0) { $0 << 8 | UInt16($1) })
        }
    }
}
