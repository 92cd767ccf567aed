// SPDX-License-Identifier: Apache-2.0

/// How long a Matroska or WebM file must be, by the size of its segment: the element that has all that follows the
/// file's head. libavformat reads the size, but does not say it.
///
/// - SeeAlso: RFC 8794 (EBML), 4 and 5; RFC 9559 (Matroska), 5.1.
struct MatroskaSegment: Equatable {
    /// The file offset behind its last byte.
    let end: Int64

    /// - Parameter head: The file's first bytes; some hundred suffice.
    /// - Returns: nil where the size is not known, as in a recording that was not finished.
    init?(head: [UInt8]) {
        var rest = head[...]
        guard Self.identifier(&rest) == 0x1A45_DFA3, let skipped = Self.size(&rest), skipped < Int64(rest.count),
            case _ = rest.removeFirst(Int(skipped)), Self.identifier(&rest) == 0x1853_8067,
            let size = Self.size(&rest)
        else { return nil }
        let (end, isTooMuch) = Int64(rest.startIndex).addingReportingOverflow(size)
        guard !isTooMuch else { return nil }
        self.end = end
    }

    /// An element's identifier, with the bits that say its length.
    private static func identifier(_ rest: inout ArraySlice<UInt8>) -> UInt32? {
        guard let first = rest.first, first.leadingZeroBitCount < 4 else { return nil }
        let length = first.leadingZeroBitCount + 1
        guard rest.count >= length else { return nil }
        defer { rest = rest.dropFirst(length) }
        return rest.prefix(length).reduce(0) { $0 << 8 | UInt32($1) }
    }

    /// An element's size; nil also where all its bits are set, which means that it is unknown.
    private static func size(_ rest: inout ArraySlice<UInt8>) -> Int64? {
        guard let first = rest.first, first != 0 else { return nil }
        let length = first.leadingZeroBitCount + 1
        guard rest.count >= length else { return nil }
        let bits = rest.prefix(length).reduce(UInt64(0)) { $0 << 8 | UInt64($1) } & (1 << UInt64(7 * length) - 1)
        rest = rest.dropFirst(length)
        return bits == 1 << UInt64(7 * length) - 1 ? nil : Int64(bits)
    }
}
