// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The fragments of an MP4 or MOV file, and where one that was there is missing.
///
/// Each fragment has a number (`mfhd`) and says when its pictures are decoded (`tfdt`, `trun`). A time without pictures is
/// no gap, and neither is a number that was left out: recorders pause, and packagers number as they like. Where both come
/// together, a fragment is missing. Bytes between fragments that are no box are a gap too. Indexes in front (`sidx`) promise
/// a length, and one at the end (`mfra`) promises a fragment at each of its places. What was cut off at the end of a file without either is not missed:
/// such a recording is whole up to there.
///
/// - SeeAlso: ISO/IEC 14496-12, 8.8 (fragments), 8.16.3 (`sidx`).
struct MovieFragments: ContainerWalk {
    /// What the walk through the file finds, in the order of the file.
    enum Item: Equatable {
        /// Times are in ticks of the track, `rest` is the duration of the fragment's last picture. nil: the fragment has
        /// no pictures of the track, or does not say their times.
        case fragment(number: UInt32, pictures: Pictures?)
        /// Bytes that are no box, with boxes behind them.
        case damage
        /// A header: what follows is another recording.
        case header
    }

    struct Pictures: Equatable {
        /// The file offset of the fragment.
        var offset: Int64 = 0
        var begin: Int64
        var end: Int64
        var rest: Int64
    }

    private(set) var items: [Item] = []
    /// The file offsets of fragments that the index at the end has.
    private(set) var places: [Int64] = []
    /// The earliest and the latest time of the indexes in front, in ticks of the track: they may count from another zero
    /// than the fragments do, so only the time between them is known.
    private var indexed: (first: Int64, last: Int64)?
    private let timeBase: TimeBase
    private let file: FileBytes
    private let track: UInt32
    private var defaultDuration: Int64 = 0

    /// A hostile file ends the walk here. A day in fragments of one picture has fewer.
    private static let mostBoxes = 10_000_000
    private static let boxesOfStep = 1000
    private var count = 0
    private var offset: Int64 = 0
    private static let mostMoof = 1 << 24

    /// A walk through the boxes of the file, which reads the headers of its fragments.
    ///
    /// - Parameters:
    ///   - track: The track's number in the file.
    ///   - timeBase: The track's tick.
    init(_ file: FileBytes, track: UInt32, timeBase: TimeBase) {
        self.file = file
        self.track = track
        self.timeBase = timeBase
    }

    // MARK: Boxes

    private struct Box {
        var type: UInt32
        var payload: Int64
        var end: Int64
    }

    private static func code(_ text: StaticString) -> UInt32 {
        text.withUTF8Buffer { $0.reduce(0) { $0 << 8 | UInt32($1) } }
    }
    private static let (moov, moof, mdat, mfra) = (code("moov"), code("moof"), code("mdat"), code("mfra"))
    private static let sidx = code("sidx")

    /// The box at an offset; nil where the bytes are none. A box may end behind the file.
    private func box(at offset: Int64) -> Box? {
        let bytes = file.read(at: offset, most: 16)
        guard bytes.count >= 8 else { return nil }
        var reader = BoxReader(bytes[...])
        guard let size = reader.number(4), let type = reader.number(4).map({ UInt32($0) }),
            (0..<4).allSatisfy({ (0x20..<0x7f).contains(type >> (8 * $0) & 0xff) })
        else { return nil }
        switch size {
        case 0: return Box(type: type, payload: offset + 8, end: max(file.count, offset + 8))
        case 1:
            guard let large = reader.number(8), large >= 16 else { return nil }
            let (end, isTooMuch) = offset.addingReportingOverflow(large)
            return isTooMuch ? nil : Box(type: type, payload: offset + 16, end: end)
        default: return size >= 8 ? Box(type: type, payload: offset + 8, end: offset + size) : nil
        }
    }

    mutating func step() -> Bool {
        count += Self.boxesOfStep
        for _ in 0..<Self.boxesOfStep {
            guard file.count - offset >= 8 else { return false }
            guard let box = box(at: offset), take(box) else {
                // Nothing but the rest of a recording, or room that was reserved for it, needs no box.
                let next = file.first(of: [Self.moof, Self.mdat, Self.mfra], from: offset + 5, before: file.count) {
                    self.box(at: $0 - 4).map { $0.end <= file.count && $0.end - $0.payload > 8 } ?? false
                }
                guard let next else { return false }
                items.append(.damage)
                offset = next - 4
                continue
            }
            offset = box.end
        }
        return count < Self.mostBoxes
    }

    /// Reads a box; false where its content is damaged.
    private mutating func take(_ box: Box) -> Bool {
        guard [Self.moov, Self.moof, Self.sidx, Self.mfra].contains(box.type), box.end <= file.count else {
            return true
        }
        let size = box.end - box.payload
        switch box.type {
        case Self.moov:
            items.append(.header)
            if size <= Self.mostMoof { takeHeader(file.read(at: box.payload, most: Int(size))) }
        case Self.moof:
            guard size <= Self.mostMoof else { return true }
            guard let fragment = fragment(file.read(at: box.payload, most: Int(size)), at: box.payload - 8) else {
                return false
            }
            items.append(fragment)
        default:
            if size <= Self.mostMoof { takeIndex(box.type, file.read(at: box.payload, most: Int(size))) }
        }
        return true
    }

    private mutating func takeHeader(_ bytes: [UInt8]) {
        var moov = BoxReader(bytes[...])
        while let mvex = moov.box() {
            guard mvex.type == Self.code("mvex") else { continue }
            var boxes = mvex.content
            while let box = boxes.box() {
                var trex = box.content
                guard box.type == Self.code("trex"), trex.skip(4), trex.number(4) == Int64(track), trex.skip(4),
                    let duration = trex.number(4)
                else { continue }
                defaultDuration = duration
            }
        }
    }

    /// nil where the boxes do not fill it, or it has no number.
    private func fragment(_ bytes: [UInt8], at offset: Int64) -> Item? {
        var moof = BoxReader(bytes[...])
        var number: UInt32?
        var pictures: Pictures?
        while let box = moof.box() {
            var content = box.content
            if box.type == Self.code("mfhd"), content.skip(4) { number = content.number(4).map { UInt32($0) } }
            if box.type == Self.code("traf"), let found = self.pictures(&content) {
                pictures = Pictures(
                    offset: offset, begin: pictures?.begin ?? found.begin, end: found.end, rest: found.rest)
            }
        }
        guard let number, moof.isAtEnd else { return nil }
        return .fragment(number: number, pictures: pictures)
    }

    private func pictures(_ traf: inout BoxReader) -> Pictures? {
        var duration = defaultDuration
        var (begin, end): (Int64?, Int64) = (nil, 0)
        var last: Int64?
        while let found = traf.box() {
            var box = found.content
            switch found.type {
            case Self.code("tfhd"):
                guard let flags = box.number(4), box.number(4) == Int64(track) else { return nil }
                if flags & 1 != 0, !box.skip(8) { return nil }
                if flags & 2 != 0, !box.skip(4) { return nil }
                if flags & 8 != 0 { duration = box.number(4) ?? 0 }
            case Self.code("tfdt"):
                guard let flags = box.number(4), let time = box.number(flags >> 24 == 1 ? 8 : 4) else { return nil }
                (begin, end) = (time, time)
            case Self.code("trun"):
                guard let flags = box.number(4), let count = box.number(4) else { return nil }
                if flags & 1 != 0, !box.skip(4) { return nil }
                if flags & 4 != 0, !box.skip(4) { return nil }
                let others = [0x200, 0x400, 0x800].count { flags & $0 != 0 } * 4
                guard flags & 0x100 != 0 else {
                    end = end.plus(count.multipliedReportingOverflow(by: duration).partialValue)
                    if count > 0 { last = duration }
                    continue
                }
                for _ in 0..<count {
                    guard let ticks = box.number(4), box.skip(others) else { return nil }
                    end = end.plus(ticks)
                    last = ticks
                }
            default: break
            }
        }
        guard let begin, let last, begin >= 0, end >= begin else { return nil }
        return Pictures(begin: begin, end: end, rest: last)
    }

    private mutating func takeIndex(_ type: UInt32, _ bytes: [UInt8]) {
        var reader = BoxReader(bytes[...])
        if type == Self.sidx { return takeSegments(&reader) }
        while let box = reader.box() {
            var tfra = box.content
            guard box.type == Self.code("tfra"), let flags = tfra.number(4), tfra.number(4) == Int64(track),
                let sizes = tfra.number(4), let count = tfra.number(4)
            else { continue }
            let wide = flags >> 24 == 1 ? 8 : 4
            let others = Int(sizes >> 4 & 3) + Int(sizes >> 2 & 3) + Int(sizes & 3) + 3
            for _ in 0..<count {
                guard tfra.skip(wide), let place = tfra.number(wide), tfra.skip(others) else { break }
                places.append(place)
            }
        }
    }

    private mutating func takeSegments(_ sidx: inout BoxReader) {
        guard let flags = sidx.number(4), sidx.number(4) == Int64(track), let scale = sidx.number(4), scale > 0,
            scale == Int64(timeBase.denominator), timeBase.numerator == 1
        else { return }
        let wide = flags >> 24 == 0 ? 4 : 8
        guard var end = sidx.number(wide), case _ = promise(end), sidx.skip(wide + 2), let count = sidx.number(2) else {
            return
        }
        for _ in 0..<count {
            guard sidx.skip(4), let duration = sidx.number(4), sidx.skip(4) else { return }
            end = end.plus(duration)
        }
        promise(end)
    }

    private mutating func promise(_ tick: Int64) {
        indexed = indexed.map { (min($0.first, tick), max($0.last, tick)) } ?? (tick, tick)
    }

    // MARK: Gaps

    var gaps: [FileGap] {
        Self.gaps(
            items, length: indexed.map { $0.last.minus($0.first) } ?? 0, places: places, timeBase: timeBase)
    }

    /// - Parameters:
    ///   - length: From the first picture to the last by the indexes in front, in ticks; 0 where there is none.
    ///   - places: The file offsets of fragments that the index at the end has.
    static func gaps(_ items: [Item], length: Int64 = 0, places: [Int64] = [], timeBase: TimeBase) -> [FileGap] {
        let fragments = items.compactMap { if case .fragment(_, let pictures) = $0 { pictures } else { nil } }
        guard let first = fragments.first?.begin else { return [] }
        func time(_ tick: Int64) -> MediaTime? { timeBase.possibleTime(ofTicks: tick) }
        let step = usualStep(items)
        var gaps: [FileGap] = []
        var last: Pictures?
        var number: UInt32?
        // Bytes that are no box, or a number that was left out, since the last picture.
        var (isDamaged, hasJumped) = (false, false)
        for item in items {
            switch item {
            case .header: (last, number, isDamaged, hasJumped) = (nil, nil, false, false)
            case .damage: isDamaged = true
            case .fragment(let next, let pictures):
                if let number, next > number, next - number > step { hasJumped = true }
                number = next
                guard let pictures else { continue }
                let hole = last.map { pictures.begin - $0.end > $0.rest / 2 } ?? false
                if isDamaged || (hasJumped && hole) {
                    gaps.append(FileGap(begin: last.flatMap { time($0.end) }, end: time(pictures.begin)))
                }
                (last, isDamaged, hasJumped) = (pictures, false, false)
            }
        }
        if isDamaged {
            gaps.append(FileGap(begin: last.flatMap { time($0.end) }, end: nil))
        } else if let last {
            let tolerance = timeBase.ticks(of: MediaTime(seconds: 0.25)).plus(last.rest.plus(last.rest))
            if length > last.end.minus(first).plus(tolerance) { gaps.append(FileGap(begin: time(last.end), end: nil)) }
        }
        if gaps.isEmpty, items.count(where: { $0 == .header }) == 1, let gap = gap(places, fragments, time) {
            gaps.append(gap)
        }
        return gaps
    }

    /// The first place of the index at the end that has no fragment. Where none of its places is right, the file was
    /// changed in front, and it says nothing.
    private static func gap(_ places: [Int64], _ fragments: [Pictures], _ time: (Int64) -> MediaTime?) -> FileGap? {
        let there = Set(fragments.map(\.offset))
        guard places.contains(where: there.contains), let missing = places.first(where: { !there.contains($0) }) else {
            return nil
        }
        let before = fragments.last { $0.offset < missing }
        return FileGap(begin: before.flatMap { time($0.end) }, end: nil)
    }

    /// By how much the number rises from one fragment to the next: by 1, unless each of several steps is larger, since
    /// some packagers count the fragments of several files together.
    private static func usualStep(_ items: [Item]) -> UInt32 {
        var (steps, number): ([UInt32], UInt32?) = ([], nil)
        for case .fragment(let next, _) in items {
            if let number, next > number { steps.append(next - number) }
            number = next
        }
        return steps.count >= 3 ? steps.min() ?? 1 : 1
    }
}

/// Reads numbers and boxes from the content of a box.
private struct BoxReader {
    private var rest: ArraySlice<UInt8>

    init(_ bytes: ArraySlice<UInt8>) { rest = bytes }

    var isAtEnd: Bool { rest.isEmpty }

    /// A number of at most eight bytes; nil where it is not there or is above `Int64.max`.
    mutating func number(_ size: Int) -> Int64? {
        guard rest.count >= size else { return nil }
        let value = rest.prefix(size).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        rest = rest.dropFirst(size)
        return Int64(exactly: value)
    }

    mutating func skip(_ size: Int) -> Bool {
        guard rest.count >= size else { return false }
        rest = rest.dropFirst(size)
        return true
    }

    /// The next box and its content; nil at the end, and where there is none, which leaves the reader before it.
    mutating func box() -> (type: UInt32, content: BoxReader)? {
        var inside = self
        guard let size = inside.number(4), let type = inside.number(4), size >= 8, size <= Int64(rest.count) else {
            return nil
        }
        let content = rest.prefix(Int(size)).dropFirst(8)
        rest = rest.dropFirst(Int(size))
        return (UInt32(type), BoxReader(content))
    }
}
