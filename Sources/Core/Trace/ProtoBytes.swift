// SPDX-License-Identifier: Apache-2.0

/// Writes messages of Protocol Buffers: numbers, texts, and messages within messages.
///
/// - SeeAlso: Protocol Buffers, "Encoding".
struct ProtoBytes {
    private(set) var bytes: [UInt8] = []
    var count: Int { bytes.count }

    mutating func reserve(_ count: Int) { bytes.reserveCapacity(count) }
    mutating func clear() { bytes.removeAll(keepingCapacity: true) }
    mutating func cut(to count: Int) { bytes.removeLast(bytes.count - count) }

    /// Seven bits a byte, the lowest first.
    private mutating func varint(_ value: UInt64) {
        var left = value
        while left >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: left) | 0x80)
            left >>= 7
        }
        bytes.append(UInt8(left))
    }

    private mutating func tag(_ field: Int, _ wireType: UInt64) { varint(UInt64(field) << 3 | wireType) }

    /// `uint64`, `uint32`, `bool`, an enumeration; `int64` by its bits.
    mutating func number(_ field: Int, _ value: UInt64) {
        tag(field, 0)
        varint(value)
    }

    mutating func number(_ field: Int, _ value: Int64) { number(field, UInt64(bitPattern: value)) }

    mutating func fixed64(_ field: Int, _ value: UInt64) {
        tag(field, 1)
        for byte in 0..<8 { bytes.append(UInt8(truncatingIfNeeded: value >> (8 * UInt64(byte)))) }
    }

    mutating func text(_ field: Int, _ value: String) {
        tag(field, 2)
        varint(UInt64(value.utf8.count))
        bytes.append(contentsOf: value.utf8)
    }

    /// A message, which `body` writes.
    mutating func message(_ field: Int, _ body: (inout ProtoBytes) -> Void) {
        tag(field, 2)
        let place = bytes.count
        bytes.append(0)
        body(&self)
        var length = bytes.count - place - 1
        var further: [UInt8] = []
        // Most are shorter than 128 bytes, and their length is one byte.
        while length >= 0x80 {
            further.append(UInt8(length & 0x7f))
            length >>= 7
        }
        guard !further.isEmpty else { return bytes[place] = UInt8(length) }
        further.append(UInt8(length))
        for index in further.indices.dropLast() { further[index] |= 0x80 }
        bytes.replaceSubrange(place...place, with: further)
    }
}
