// SPDX-License-Identifier: Apache-2.0

/// The fixed header of an RTP packet (RFC 3550, 5.1), without contributing sources or extension.
struct RTPHeader: Sendable, Equatable {
    static let byteCount = 12

    var marker = false
    var payloadType: UInt8
    var sequenceNumber: UInt16
    var timestamp: UInt32
    var ssrc: UInt32

    init(marker: Bool = false, payloadType: UInt8, sequenceNumber: UInt16, timestamp: UInt32, ssrc: UInt32) {
        self.marker = marker
        self.payloadType = payloadType
        self.sequenceNumber = sequenceNumber
        self.timestamp = timestamp
        self.ssrc = ssrc
    }

    /// Nil for fewer than 12 bytes or another version than 2.
    init?(_ bytes: some Collection<UInt8>) {
        let head = Array(bytes.prefix(Self.byteCount))
        guard head.count == Self.byteCount, head[0] >> 6 == 2 else { return nil }
        marker = head[1] & 0x80 != 0
        payloadType = head[1] & 0x7f
        sequenceNumber = UInt16(head[2]) << 8 | UInt16(head[3])
        timestamp = head[4..<8].reduce(0) { $0 << 8 | UInt32($1) }
        ssrc = head[8..<12].reduce(0) { $0 << 8 | UInt32($1) }
    }

    /// Writes the 12 bytes. Allocates nothing.
    func write(to target: UnsafeMutableRawPointer) {
        target.storeBytes(of: 0x80, as: UInt8.self)
        target.storeBytes(of: payloadType | (marker ? 0x80 : 0), toByteOffset: 1, as: UInt8.self)
        target.storeBytes(of: sequenceNumber.bigEndian, toByteOffset: 2, as: UInt16.self)
        target.storeBytes(of: timestamp.bigEndian, toByteOffset: 4, as: UInt32.self)
        target.storeBytes(of: ssrc.bigEndian, toByteOffset: 8, as: UInt32.self)
    }

    var bytes: [UInt8] {
        [UInt8](unsafeUninitializedCapacity: Self.byteCount) { buffer, count in
            write(to: UnsafeMutableRawPointer(buffer.baseAddress!))
            count = Self.byteCount
        }
    }
}
