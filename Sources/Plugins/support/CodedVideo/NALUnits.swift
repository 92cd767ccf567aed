// SPDX-License-Identifier: Apache-2.0

/// Finds the NAL units of a byte stream with start codes (H.264 and H.265, annex B).
public enum NALUnits {
    /// How far a search goes.
    public enum Extent: Sendable {
        /// All units, each with its end.
        case all
        /// The units before the first slice, and of that slice its first byte: to find a slice's end takes long.
        case untilSlice
    }

    /// Calls `body` with each unit's kind and range, without start code and trailing zero bytes, until it returns
    /// false. Empty units are left out.
    ///
    /// - Complexity: O(bytes), a look at every third byte where there is no zero; no allocation.
    public static func forEach(
        in bytes: UnsafeRawBufferPointer, _ coding: VideoCoding, _ extent: Extent,
        _ body: (NALKind, Range<Int>) -> Bool
    ) {
        var begin = behindStartCode(in: bytes, from: 0)
        while let first = begin, first < bytes.count {
            let kind = coding.kind(bytes[first])
            if case .untilSlice = extent, kind.isSlice {
                _ = body(kind, first..<first + 1)
                return
            }
            begin = behindStartCode(in: bytes, from: first)
            var end = begin.map { $0 - 3 } ?? bytes.count
            while end > first, bytes[end - 1] == 0 { end -= 1 }
            if end > first, !body(kind, first..<end) { return }
        }
    }

    /// The index behind the next `00 00 01`; nil where there is none.
    static func behindStartCode(in bytes: UnsafeRawBufferPointer, from start: Int) -> Int? {
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

    /// Puts start codes where a size of four bytes stands before each unit (ISO/IEC 14496-15 §5.3.2).
    ///
    /// - Returns: Nil where the sizes do not add up to the bytes.
    public static func withStartCodes(_ bytes: UnsafeRawBufferPointer) -> [UInt8]? {
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        var place = 0
        while place < bytes.count {
            guard bytes.count - place >= 4 else { return nil }
            let size = Int(UInt32(bigEndian: bytes.loadUnaligned(fromByteOffset: place, as: UInt32.self)))
            place += 4
            guard size > 0, size <= bytes.count - place else { return nil }
            result += [0, 0, 0, 1]
            result += bytes[place..<place + size]
            place += size
        }
        return result
    }
}
