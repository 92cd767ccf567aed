// SPDX-License-Identifier: Apache-2.0

/// Decides about the H.264 that a camera gives, buffer by buffer: which buffers are passed on, and with which parameter
/// sets before them. Pure.
///
/// A buffer is an access unit with start codes (V4L2, `V4L2_PIX_FMT_H264`). Some drivers give the parameter sets in
/// buffers of their own (`V4L2_CID_MPEG_VIDEO_HEADER_MODE`), all in one or one in each; they are then put before the
/// next keyframe. After a loss nothing is passed on until a keyframe comes, since pictures that refer to a lost one are
/// broken. A keyframe needs an SPS and a PPS that belong together.
struct UnitStream {
    enum Verdict: Equatable {
        /// Pass it on, with the stream's parameter sets before it where it is a keyframe without any.
        case give(isKeyframe: Bool, needsSets: Bool)
        /// The buffer only has what may come without a picture, such as parameter sets.
        case noPicture
        /// Left out, until a keyframe comes.
        case awaitsKeyframe
        case damaged(String)

        /// Whether the buffer has a picture, passed on or not.
        var hasPicture: Bool {
            switch self {
            case .give, .awaitsKeyframe: true
            case .noPicture, .damaged: false
            }
        }
    }

    /// SPS and PPS with start codes, the newest; empty before both came, and while the PPS of a new SPS is missing.
    var sets: [UInt8] { isComplete ? collected : [] }
    /// The newest sets, perhaps an SPS whose PPS has not come, or the reverse. At most ``mostSetBytes``.
    private var collected: [UInt8] = []
    /// Whether ``collected`` has an SPS and a PPS.
    private var hasBoth = false
    /// Whether an SPS has replaced a different one of its number, and no PPS has come since: those in ``collected``
    /// belong to the old SPS. That of the new one may be lost.
    private var awaitsPPS = false
    /// How many keyframes were left out for it. Where the third one comes without a PPS too, the camera gives no other:
    /// the known ones stay valid (ITU-T H.264, 7.4.1.2.1).
    private var keyframesWithoutPPS = 0
    private var isComplete: Bool { hasBoth && !awaitsPPS }
    /// Whether other sets came after the first.
    private(set) var setsHaveChanged = false
    private(set) var awaitsKeyframe = true

    /// The most bytes of parameter sets with their start codes, in a buffer and in all. No camera comes near. Each set
    /// of a buffer is compared with each known one, so the buffer's bytes are counted first.
    static let mostSetBytes = 4096

    /// Notes that pictures were lost.
    mutating func lose() { awaitsKeyframe = true }

    /// Allocates only when the parameter sets have changed.
    mutating func look(at bytes: UnsafeRawBufferPointer) -> Verdict {
        let unit = AnnexB.look(at: bytes)
        guard unit.hasUnits else {
            lose()
            return .damaged("its \(bytes.count) bytes contain no NAL unit")
        }
        guard unit.setBytes <= Self.mostSetBytes else {
            lose()
            return .damaged("its parameter sets have \(unit.setBytes) bytes, more than \(Self.mostSetBytes)")
        }
        if unit.setBytes > 0 { takeSets(of: unit, in: bytes) }
        guard unit.hasSlice else { return unit.hasOnlyAsides ? .noPicture : .damaged("its bytes contain no picture") }
        if unit.isKeyframe, awaitsPPS {
            keyframesWithoutPPS += 1
            if keyframesWithoutPPS == 3 { awaitsPPS = false }
        }
        if unit.isKeyframe, !isComplete { lose() }
        if awaitsKeyframe {
            guard unit.isKeyframe, isComplete else { return .awaitsKeyframe }
            awaitsKeyframe = false
        }
        return .give(isKeyframe: unit.isKeyframe, needsSets: unit.isKeyframe && !unit.hasSets)
    }

    /// Takes over the parameter sets of a buffer that has some, and not too many.
    private mutating func takeSets(of unit: AnnexB.Unit, in bytes: UnsafeRawBufferPointer) {
        // A PPS with the same bytes as before also counts: it came after the new SPS.
        if unit.hasPPS { awaitsPPS = false }
        guard !AnnexB.hasOnly(collected, in: bytes) else { return }
        setsHaveChanged = setsHaveChanged || isComplete
        let news = AnnexB.parameterSets(in: bytes)
        if !unit.hasPPS, AnnexB.replacesSPS(of: collected, with: news) { (awaitsPPS, keyframesWithoutPPS) = (true, 0) }
        let all = unit.hasSets ? news : AnnexB.parameterSets(news, over: collected)
        // Where both are too many, the old ones go: otherwise no new one would ever fit.
        collected = all.count <= Self.mostSetBytes ? all : news
        hasBoth = collected.withUnsafeBytes { AnnexB.look(at: $0).hasSets }
    }
}

/// Finds NAL units with start codes (ITU-T H.264, annex B) in any bytes.
enum AnnexB {
    /// Table 7-1.
    private enum Kind {
        static let slices: ClosedRange<UInt8> = 1...5
        static let idr: UInt8 = 5
        static let sequenceParameterSet: UInt8 = 7
        static let pictureParameterSet: UInt8 = 8
        static let asides: ClosedRange<UInt8> = 6...15
    }

    struct Unit: Equatable {
        var hasUnits = false
        var hasSlice = false
        /// An IDR picture: it can be decoded alone, and no later picture refers to an earlier one.
        var isKeyframe = false
        /// Whether there is an SPS before the first slice.
        var hasSPS = false
        /// Whether there is a PPS before the first slice.
        var hasPPS = false
        /// Bytes of the SPS and PPS before the first slice, each with a start code of four bytes.
        var setBytes = 0
        var hasSets: Bool { hasSPS && hasPPS }
        /// Whether every NAL unit before the first slice is one that may come without a picture: SEI, parameter sets, delimiters,
        /// filler.
        var hasOnlyAsides = true
    }

    /// Reads only up to the start of the first slice. Allocates nothing.
    static func look(at bytes: UnsafeRawBufferPointer) -> Unit {
        var unit = Unit()
        forEach(in: bytes) { nal in
            unit.hasUnits = true
            let kind = nal[0] & 31
            if kind == Kind.sequenceParameterSet || kind == Kind.pictureParameterSet {
                unit.setBytes += 4 + nal.count
                unit.hasSPS = unit.hasSPS || kind == Kind.sequenceParameterSet
                unit.hasPPS = unit.hasPPS || kind == Kind.pictureParameterSet
            }
            guard Kind.slices.contains(kind) else {
                unit.hasOnlyAsides = unit.hasOnlyAsides && Kind.asides.contains(kind)
                return true
            }
            unit.hasSlice = true
            unit.isKeyframe = kind == Kind.idr
            return false
        }
        return unit
    }

    /// The SPS and PPS before the first slice, each with a start code of four bytes.
    static func parameterSets(in bytes: UnsafeRawBufferPointer) -> [UInt8] {
        var sets: [UInt8] = []
        forEachSet(in: bytes) { set in
            sets += [0, 0, 0, 1]
            sets += set
            return true
        }
        return sets
    }

    /// `known` with the SPS and PPS of `news`, each with a start code of four bytes.
    ///
    /// A set takes the place of the one of its kind and number. SPS come first, since a decoder reads a PPS by its SPS.
    ///
    /// - Complexity: O(sets of `known` × bytes of `news`).
    static func parameterSets(_ news: [UInt8], over known: [UInt8]) -> [UInt8] {
        var (sequences, pictures): ([UInt8], [UInt8]) = ([], [])
        func add(_ set: UnsafeRawBufferPointer) {
            if set[0] & 31 == Kind.sequenceParameterSet {
                sequences += [0, 0, 0, 1]
                sequences += set
            } else {
                pictures += [0, 0, 0, 1]
                pictures += set
            }
        }
        news.withUnsafeBytes { news in
            known.withUnsafeBytes { known in
                forEachSet(in: known) { old in
                    var isReplaced = false
                    forEachSet(in: news) { new in
                        isReplaced = haveOneNumber(old, new)
                        return !isReplaced
                    }
                    if !isReplaced { add(old) }
                    return true
                }
            }
            forEachSet(in: news) { set in
                add(set)
                return true
            }
        }
        return sequences + pictures
    }

    /// Whether `news` has an SPS with the number of a different one in `known`.
    static func replacesSPS(of known: [UInt8], with news: [UInt8]) -> Bool {
        var isReplaced = false
        news.withUnsafeBytes { news in
            known.withUnsafeBytes { known in
                forEachSet(in: news) { new in
                    guard new[0] & 31 == Kind.sequenceParameterSet else { return true }
                    forEachSet(in: known) { old in
                        isReplaced = haveOneNumber(old, new) && !new.elementsEqual(old)
                        return !isReplaced
                    }
                    return !isReplaced
                }
            }
        }
        return isReplaced
    }

    /// Whether both are of the same kind and number.
    private static func haveOneNumber(_ old: UnsafeRawBufferPointer, _ new: UnsafeRawBufferPointer) -> Bool {
        (new[0] ^ old[0]) & 31 == 0 && number(of: new) == number(of: old)
    }

    /// `seq_parameter_set_id` of an SPS or `pic_parameter_set_id` of a PPS (7.3.2.1.1, 7.3.2.2), which is ue(v) (9.1);
    /// nil where the set ends before it.
    private static func number(of set: UnsafeRawBufferPointer) -> Int? {
        // Behind the header, and in an SPS behind profile, constraints and level.
        var place = set[0] & 31 == Kind.sequenceParameterSet ? 32 : 8
        func next() -> Int? {
            guard place < set.count * 8 else { return nil }
            defer { place += 1 }
            return Int(set[place / 8] >> UInt8(7 - place % 8)) & 1
        }
        var zeros = 0
        while true {
            // The largest number of a set is 255.
            guard let bit = next(), zeros <= 8 else { return nil }
            if bit == 1 { break }
            zeros += 1
        }
        var value = 1
        for _ in 0..<zeros {
            guard let bit = next() else { return nil }
            value = 2 * value + bit
        }
        return value - 1
    }

    /// Whether `known` has each SPS and PPS before the first slice. Allocates nothing.
    ///
    /// - Complexity: O(sets of `bytes` × bytes of `known`), and once the bytes before the first slice.
    static func hasOnly(_ known: [UInt8], in bytes: UnsafeRawBufferPointer) -> Bool {
        known.withUnsafeBytes { known in
            var hasOther = false
            forEachSet(in: bytes) { set in
                var isKnown = false
                forEachSet(in: known) { one in
                    isKnown = one.elementsEqual(set)
                    return !isKnown
                }
                hasOther = !isKnown
                return isKnown
            }
            return !hasOther
        }
    }

    private static func forEachSet(in bytes: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Bool) {
        forEach(in: bytes) { nal in
            let kind = nal[0] & 31
            if Kind.slices.contains(kind) { return false }
            guard kind == Kind.sequenceParameterSet || kind == Kind.pictureParameterSet else { return true }
            return body(nal)
        }
    }

    /// Calls `body` with each NAL unit, without start code and trailing zeros, until it returns false. Of a slice only
    /// the first byte is handed over, since finding its end would take long and is not needed.
    private static func forEach(in bytes: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Bool) {
        var begin = behindStartCode(in: bytes, from: 0)
        while let first = begin, first < bytes.count {
            if Kind.slices.contains(bytes[first] & 31) {
                guard body(UnsafeRawBufferPointer(rebasing: bytes[first...first])) else { return }
            }
            begin = behindStartCode(in: bytes, from: first)
            guard !Kind.slices.contains(bytes[first] & 31) else { continue }
            var end = begin.map { $0 - 3 } ?? bytes.count
            while end > first, bytes[end - 1] == 0 { end -= 1 }
            if end > first, !body(UnsafeRawBufferPointer(rebasing: bytes[first..<end])) { return }
        }
    }

    /// Where the next NAL unit begins.
    private static func behindStartCode(in bytes: UnsafeRawBufferPointer, from start: Int) -> Int? {
        var index = start + 2
        while index < bytes.count {
            let byte = bytes[index]
            if byte > 1 {
                index += 3
            } else if byte == 1, bytes[index - 1] == 0, bytes[index - 2] == 0 {
                return index + 1
            } else {
                index += 1
            }
        }
        return nil
    }
}
