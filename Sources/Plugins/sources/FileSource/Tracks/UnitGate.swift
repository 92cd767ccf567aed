// SPDX-License-Identifier: Apache-2.0

import CodedVideo
import FrameCore

/// Which access units of a live stream are given: from an entry on, but for the leading pictures that cannot be decoded
/// there. A pure value.
struct UnitGate {
    enum Verdict {
        case given(UnitOutline)
        /// It cannot be decoded by who begins here.
        case leftOut
        /// It has no NAL unit, or is larger than there is room for.
        case damaged
    }

    /// Whether nothing is given before an entry.
    private(set) var isClosed = true
    private var leading = LeadingPictures()

    /// Nothing is given before the next entry.
    mutating func close() { isClosed = true }
    /// The unit that was looked at is given.
    mutating func open() { isClosed = false }

    /// Looks at the next unit, with start codes.
    ///
    /// - Parameter mostBytes: How many bytes there is room for.
    mutating func look(at bytes: UnsafeRawBufferPointer, _ coding: UnitCoding, mostBytes: Int) -> Verdict {
        let outline = UnitOutline(bytes, coding)
        guard outline.hasUnits, bytes.count <= mostBytes else {
            if outline.hasUnits { close() }
            return .damaged
        }
        if isClosed, outline.entry == .none { return .leftOut }
        return leading.leavesOut(outline, begins: isClosed) ? .leftOut : .given(outline)
    }
}

extension Output {
    /// [stage thread] An access unit with a copy of the bytes of a packet, behind parameter sets where there are some.
    func makeAccessUnit(of bytes: UnsafeRawBufferPointer, behind sets: [UInt8]) throws -> AccessUnit {
        var unit = try makeAccessUnit(byteCount: sets.count + bytes.count)
        unit.withMutableBytes { target in
            target.copyBytes(from: sets)
            UnsafeMutableRawBufferPointer(rebasing: target[sets.count...]).copyMemory(from: bytes)
        }
        return unit
    }
}
