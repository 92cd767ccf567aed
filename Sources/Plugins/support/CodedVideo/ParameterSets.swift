// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The parameter sets of a stream: SPS and PPS, of H.265 also VPS.
public struct ParameterSets: Sendable, Hashable {
    /// Each with a start code of four bytes, as ``EncodedFormat/parameterSets`` has them.
    public private(set) var bytes: [UInt8]
    public let coding: VideoCoding

    /// What a format knows.
    ///
    /// - Parameter bytes: Parameter sets alone, with start codes.
    public init(_ bytes: [UInt8], _ coding: VideoCoding) { (self.bytes, self.coding) = (bytes, coding) }

    /// Those before the first slice of an access unit with start codes.
    public init(in unit: UnsafeRawBufferPointer, _ coding: VideoCoding) {
        var bytes: [UInt8] = []
        Self.forEach(in: unit, coding) { _, set in
            Self.append(set, to: &bytes)
            return true
        }
        self.init(bytes, coding)
    }

    /// Whether there is one of each kind that a decoder needs.
    public var isComplete: Bool { bytes.withUnsafeBytes { UnitOutline($0, coding).hasSets } }

    /// The first set of a kind, without its start code; nil where there is none.
    public func first(_ kind: NALKind) -> [UInt8]? {
        bytes.withUnsafeBytes { bytes in
            var found: [UInt8]?
            Self.forEach(in: bytes, coding) { one, set in
                if one == kind { found = Array(set) }
                return found == nil
            }
            return found
        }
    }

    /// Whether each set before the first slice of `unit` is one of these. Allocates nothing.
    ///
    /// - Complexity: O(sets of `unit` × bytes of these), and once the bytes before the first slice.
    public func hasAll(in unit: UnsafeRawBufferPointer) -> Bool {
        bytes.withUnsafeBytes { known in
            var hasOther = false
            Self.forEach(in: unit, coding) { _, set in
                var isKnown = false
                Self.forEach(in: known, coding) { _, one in
                    isKnown = one.elementsEqual(set)
                    return !isKnown
                }
                hasOther = !isKnown
                return isKnown
            }
            return !hasOther
        }
    }

    /// These with `news`: a set takes the place of the one of its kind and number.
    ///
    /// They stand in the order in which a decoder reads them, since a PPS is read by its SPS and that by its VPS.
    ///
    /// - Complexity: O(sets of these × bytes of `news`).
    public func replaced(by news: ParameterSets) -> ParameterSets {
        var parts: (video: [UInt8], sequence: [UInt8], picture: [UInt8]) = ([], [], [])
        func add(_ kind: NALKind, _ set: UnsafeRawBufferPointer) {
            switch kind {
            case .videoParameterSet: Self.append(set, to: &parts.video)
            case .sequenceParameterSet: Self.append(set, to: &parts.sequence)
            default: Self.append(set, to: &parts.picture)
            }
        }
        forEachPair(with: news) { kind, old, new in
            if new == nil { add(kind, old) }
            return true
        }
        news.bytes.withUnsafeBytes { bytes in
            Self.forEach(in: bytes, coding) { kind, set in
                add(kind, set)
                return true
            }
        }
        return ParameterSets(parts.video + parts.sequence + parts.picture, coding)
    }

    /// Whether `news` has a sequence parameter set with the number of a different one of these.
    public func isSequenceReplaced(by news: ParameterSets) -> Bool {
        var isReplaced = false
        forEachPair(with: news) { kind, old, new in
            if kind == .sequenceParameterSet, let new { isReplaced = !old.elementsEqual(new) }
            return !isReplaced
        }
        return isReplaced
    }

    /// Calls `body` with each of these and the first of `news` of its kind and number, until it returns false.
    private func forEachPair(
        with news: ParameterSets, _ body: (NALKind, UnsafeRawBufferPointer, UnsafeRawBufferPointer?) -> Bool
    ) {
        bytes.withUnsafeBytes { known in
            news.bytes.withUnsafeBytes { news in
                Self.forEach(in: known, coding) { kind, old in
                    var partner: UnsafeRawBufferPointer?
                    Self.forEach(in: news, coding) { other, new in
                        if other == kind, number(of: old, kind) == number(of: new, kind) { partner = new }
                        return partner == nil
                    }
                    return body(kind, old, partner)
                }
            }
        }
    }

    /// The number of a set; nil where the set ends before it. Nothing in the bytes is trusted.
    ///
    /// H.264 7.3.2.1.1 and 7.3.2.2; H.265 7.3.2.1, 7.3.2.2.1, 7.3.2.3.1 and, of what stands before it in an SPS, 7.3.3.
    private func number(of set: UnsafeRawBufferPointer, _ kind: NALKind) -> Int? {
        // The longest way to a number: an SPS of H.265 with seven sub-layers.
        var bits = BitReader(set.dropFirst(coding.headerBytes).prefix(128))
        let number: Int
        switch (coding, kind) {
        case (.h265, .videoParameterSet): number = bits.read(4)
        case (.h265, .sequenceParameterSet):
            bits.skip(4)
            let subLayers = bits.read(3)
            bits.skip(1 + 96)
            var rest = 0
            for _ in 0..<subLayers { rest += (bits.readFlag() ? 88 : 0) + (bits.readFlag() ? 8 : 0) }
            bits.skip((subLayers > 0 ? 2 * (8 - subLayers) : 0) + rest)
            number = bits.readCount()
        case (.h264, .sequenceParameterSet):
            bits.skip(24)
            number = bits.readCount()
        default: number = bits.readCount()
        }
        return bits.isExhausted ? nil : number
    }

    private static func append(_ set: UnsafeRawBufferPointer, to bytes: inout [UInt8]) {
        bytes += [0, 0, 0, 1]
        bytes += set
    }

    /// Calls `body` with each parameter set before the first slice until it returns false. Allocates nothing.
    private static func forEach(
        in bytes: UnsafeRawBufferPointer, _ coding: VideoCoding, _ body: (NALKind, UnsafeRawBufferPointer) -> Bool
    ) {
        NALUnits.forEach(in: bytes, coding, .untilSlice) { kind, range in
            !kind.isParameterSet || body(kind, UnsafeRawBufferPointer(rebasing: bytes[range]))
        }
    }

    /// Which kinds there are.
    struct Kinds: Sendable, Hashable {
        private let needed: UInt8
        private var present: UInt8 = 0

        init(needed: UInt8) { self.needed = needed }
        init(_ coding: VideoCoding) { self.init(needed: coding == .h265 ? 0b111 : 0b110) }

        private static func bit(_ kind: NALKind) -> UInt8 {
            switch kind {
            case .videoParameterSet: 1
            case .sequenceParameterSet: 2
            case .pictureParameterSet: 4
            default: 0
            }
        }

        mutating func insert(_ kind: NALKind) { present |= Self.bit(kind) }
        func has(_ kind: NALKind) -> Bool { present & Self.bit(kind) != 0 }
        var isComplete: Bool { present & needed == needed }
    }
}
