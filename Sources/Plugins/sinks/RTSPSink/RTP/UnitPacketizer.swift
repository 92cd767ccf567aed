// SPDX-License-Identifier: Apache-2.0

/// Splits the access units of one medium into RTP packets, each behind the four bytes that make it an interleaved frame.
///
/// There are two steps, so that the caller can take memory of the right size in between: ``plan(_:isKeyframe:)``, then
/// ``write(_:timestamp:to:packets:)`` with the same unit. Neither allocates anything once warm.
protocol UnitPacketizer: Sendable {
    /// The sequence number of the next packet.
    var sequenceNumber: UInt16 { get }

    /// How many packets the unit takes, and their bytes; 0 for a unit that cannot be sent.
    mutating func plan(_ unit: UnsafeRawBufferPointer, isKeyframe: Bool) -> (packetCount: Int, byteCount: Int)

    /// Writes the packets of the unit that was planned.
    ///
    /// - Parameters:
    ///   - target: As many bytes as were planned.
    ///   - packets: Emptied, then filled with where each packet lies.
    mutating func write(
        _ unit: UnsafeRawBufferPointer, timestamp: UInt32, to target: UnsafeMutableRawBufferPointer,
        packets: inout [NALPacketizer.Extent])
}

extension NALPacketizer: UnitPacketizer {}
