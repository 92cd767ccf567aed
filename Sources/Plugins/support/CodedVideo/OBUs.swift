// SPDX-License-Identifier: Apache-2.0

/// The open bitstream units of a temporal unit of AV1 in the low-overhead format (5.2), as containers hold it.
enum OBUs {
    /// What a unit is for, as far as it matters here (6.2.2).
    private enum Kind { static let (sequenceHeader, frameHeader, frame) = (1, 3, 6) }

    struct Unit {
        var kind: Int
        /// With its header and its size.
        var whole: Range<Int>
        var payload: Range<Int>
    }

    /// Calls `body` with each unit until it returns false; returns whether all bytes that it came to make sense.
    @discardableResult
    static func forEach(in bytes: UnsafeRawBufferPointer, _ body: (Unit) -> Bool) -> Bool {
        var position = 0
        while position < bytes.count {
            let header = bytes[position]
            // obu_forbidden_bit, obu_extension_flag, obu_has_size_field (5.3.2).
            guard header & 0x80 == 0 else { return false }
            var payload = position + (header & 4 != 0 ? 2 : 1)
            var size = bytes.count - payload
            if header & 2 != 0 {
                guard let (value, next) = leb128(bytes, payload) else { return false }
                (size, payload) = (value, next)
            }
            guard size >= 0, size <= bytes.count - payload else { return false }
            let unit = Unit(
                kind: Int(header >> 3 & 15), whole: position..<payload + size, payload: payload..<payload + size)
            guard body(unit) else { return true }
            position = payload + size
        }
        return true
    }

    /// 4.10.5
    private static func leb128(_ bytes: UnsafeRawBufferPointer, _ start: Int) -> (value: Int, next: Int)? {
        var value = 0
        for index in 0..<8 where start + index < bytes.count {
            let byte = bytes[start + index]
            value |= Int(byte & 0x7F) << (7 * index)
            if byte & 0x80 == 0 { return (value, start + index + 1) }
        }
        return nil
    }

    /// The first sequence header, with its size; empty where there is none.
    static func sequenceHeader(in bytes: UnsafeRawBufferPointer) -> [UInt8] {
        var found: [UInt8] = []
        forEach(in: bytes) { unit in
            guard unit.kind == Kind.sequenceHeader else { return unit.kind != Kind.frame }
            if bytes[unit.whole.lowerBound] & 2 != 0 { found = Array(bytes[unit.whole]) }
            return false
        }
        return found
    }

    /// What the units up to the first frame say.
    struct Outline {
        var hasUnits = false
        var hasFrame = false
        /// Whether the first frame is a key frame that is shown: it resets all that later frames refer to (7.20), and nothing
        /// before it is needed. A key frame that is shown later (`show_existing_frame`) is none: its bytes lie further ahead.
        var isKey = false
        var sequenceHeaderBytes: Int?
    }

    static func outline(_ bytes: UnsafeRawBufferPointer) -> Outline {
        var outline = Outline()
        var isReduced = false
        let makesSense = forEach(in: bytes) { unit in
            outline.hasUnits = true
            guard let first = bytes[unit.payload].first else { return true }
            switch unit.kind {
            case Kind.sequenceHeader:
                outline.sequenceHeaderBytes = unit.whole.count
                // seq_profile, still_picture, reduced_still_picture_header (5.5.1).
                isReduced = first & 8 != 0
                return true
            case Kind.frameHeader, Kind.frame:
                outline.hasFrame = true
                // show_existing_frame 0, frame_type KEY_FRAME, show_frame 1 (5.9.2).
                outline.isKey = isReduced || first >> 4 == 0b0001
                return false
            default: return true
            }
        }
        outline.hasUnits = outline.hasUnits && makesSense
        return outline
    }
}
