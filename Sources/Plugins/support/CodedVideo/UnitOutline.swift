// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// What an access unit is, as far as its first slice tells, of AV1 its first frame.
public struct UnitOutline: Sendable, Equatable {
    /// Whether there is a NAL unit at all.
    public private(set) var hasUnits = false
    /// Whether there is a picture.
    public private(set) var hasSlice = false
    /// Whether decoding can begin here.
    public private(set) var entry: AccessUnit.Entry = .none
    /// How the picture stands to the entry before it.
    public private(set) var place: NALKind.Place = .shown
    /// Whether there are a sequence and a picture parameter set before the first slice, and of H.265 a video parameter
    /// set; of AV1, a sequence header. True where the coding has none.
    public var hasSets: Bool { kinds.isComplete }
    /// The bytes of the parameter sets before the first slice, each with a start code of four bytes; of AV1, of the sequence header.
    public private(set) var setBytes = 0
    /// Whether every unit before the first slice is one that may come without a picture: messages, parameter sets,
    /// delimiters, filler.
    public private(set) var hasOnlyAsides = true
    private var kinds: ParameterSets.Kinds

    /// Reads as far as the first slice's first byte. Allocates nothing.
    public init(_ bytes: UnsafeRawBufferPointer, _ coding: VideoCoding) {
        var outline = Self(kinds: ParameterSets.Kinds(coding))
        NALUnits.forEach(in: bytes, coding, .untilSlice) { kind, range in
            outline.take(kind, byteCount: range.count)
            return true
        }
        self = outline
    }

    /// The same for any coding. A JPEG is told by its first marker (ISO/IEC 10918-1, B.1.1.3).
    public init(_ bytes: UnsafeRawBufferPointer, _ coding: UnitCoding) {
        switch coding {
        case .nal(let coding): self.init(bytes, coding)
        case .jpeg:
            self.init(kinds: ParameterSets.Kinds(needed: 0))
            hasUnits = bytes.count > 2 && bytes[0] == 0xFF && bytes[1] == 0xD8
            (hasSlice, entry) = (hasUnits, hasUnits ? .clean : .none)
        case .av1:
            self.init(kinds: ParameterSets.Kinds(needed: 0b010))
            let outline = OBUs.outline(bytes)
            (hasUnits, hasSlice) = (outline.hasUnits, outline.hasFrame)
            entry = outline.hasUnits && outline.isKey ? .clean : .none
            if let count = outline.sequenceHeaderBytes {
                kinds.insert(.sequenceParameterSet)
                setBytes = count
            }
        }
    }

    private init(kinds: ParameterSets.Kinds) { self.kinds = kinds }

    private mutating func take(_ kind: NALKind, byteCount: Int) {
        hasUnits = true
        switch kind {
        case .slice(let entry, let place): (hasSlice, self.entry, self.place) = (true, entry, place)
        case .videoParameterSet, .sequenceParameterSet, .pictureParameterSet:
            kinds.insert(kind)
            setBytes += 4 + byteCount
        case .message, .aside: break
        case .other: hasOnlyAsides = false
        }
    }

    /// Whether there is a parameter set of this kind before the first slice.
    public func has(_ kind: NALKind) -> Bool { kinds.has(kind) }
}
