// SPDX-License-Identifier: Apache-2.0

/// NAL units of an access unit with start codes (ITU-T H.264, annex B).
enum AnnexB {
    /// NAL unit types, table 7-1.
    private enum Kind {
        static let slices: ClosedRange<UInt8> = 1...5
        static let idr: UInt8 = 5
        static let sequenceParameterSet: UInt8 = 7
        static let pictureParameterSet: UInt8 = 8
    }

    /// The index of the next NAL unit's first byte; nil when there is none.
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

    /// Whether there is a NAL unit at all, and whether the picture is an IDR picture.
    ///
    /// An IDR picture can be decoded alone, and no picture after it refers to one before it. Reads only as far as
    /// the first slice's first byte.
    static func look(at bytes: UnsafeRawBufferPointer) -> (hasUnits: Bool, isKeyframe: Bool) {
        var begin = behindStartCode(in: bytes, from: 0)
        var hasUnits = false
        while let first = begin, first < bytes.count {
            hasUnits = true
            let kind = bytes[first] & 31
            if Kind.slices.contains(kind) { return (true, kind == Kind.idr) }
            begin = behindStartCode(in: bytes, from: first)
        }
        return (hasUnits, false)
    }

    /// The SPS and PPS before the first slice, each with a start code of four bytes; empty unless there are both.
    static func parameterSets(in bytes: UnsafeRawBufferPointer) -> [UInt8] {
        var sets: [UInt8] = []
        var kinds: Set<UInt8> = []
        forEachParameterSet(in: bytes) { set in
            sets += [0, 0, 0, 1]
            sets += set
            kinds.insert(set[0] & 31)
            return true
        }
        return kinds.count == 2 ? sets : []
    }

    /// Whether `known`, as ``parameterSets(in:)`` gave it, has each SPS and PPS before the first slice.
    static func hasOnly(_ known: [UInt8], in bytes: UnsafeRawBufferPointer) -> Bool {
        known.withUnsafeBytes { known in
            var hasOther = false
            forEachParameterSet(in: bytes) { set in
                var isKnown = false
                forEachParameterSet(in: known) { one in
                    isKnown = one.elementsEqual(set)
                    return !isKnown
                }
                hasOther = !isKnown
                return isKnown
            }
            return !hasOther
        }
    }

    /// Calls `body` with each SPS and PPS before the first slice, without start code and trailing zeros, until it
    /// returns false. Allocates nothing.
    private static func forEachParameterSet(
        in bytes: UnsafeRawBufferPointer, _ body: (UnsafeRawBufferPointer) -> Bool
    ) {
        var begin = behindStartCode(in: bytes, from: 0)
        while let first = begin, first < bytes.count {
            let kind = bytes[first] & 31
            // Slices are long, and no set of this picture follows them.
            if Kind.slices.contains(kind) { return }
            begin = behindStartCode(in: bytes, from: first)
            guard kind == Kind.sequenceParameterSet || kind == Kind.pictureParameterSet else { continue }
            var end = begin.map { $0 - 3 } ?? bytes.count
            while end > first, bytes[end - 1] == 0 { end -= 1 }
            if end > first, !body(UnsafeRawBufferPointer(rebasing: bytes[first..<end])) { return }
        }
    }
}
