// SPDX-License-Identifier: Apache-2.0

import FrameNetwork

/// The packets of one access unit, as they go out to every reader.
///
/// Written by one thread while nobody else has it, read by event loops from then on: the invariant behind
/// `@unchecked Sendable`. That thread is the stage's, or the loop of a reader that catches up.
final class MediaBlock: QueuedUnit, @unchecked Sendable {
    /// Packets of equal size that the kernel cuts from one send (`UDP_SEGMENT`, udp(7)). The last may be shorter.
    struct Run {
        var firstPacket: Int
        var packetCount: Int
        var segmentBytes: Int
    }

    /// The kernel's bounds: `UDP_MAX_SEGMENTS`, and the largest datagram.
    static let mostSegments = 64
    static let mostRunBytes = 65_000

    /// Rises by one from block to block of a stream.
    private(set) var index: UInt64 = 0
    private(set) var isKeyframe = false
    private(set) var firstSequenceNumber: UInt16 = 0
    private(set) var timestamp: UInt32 = 0
    /// Interleaved frames one after the other, on channel 0. A sender report, if there is one, is the last and on
    /// channel 1.
    private(set) var buffer = ByteBuffer()
    private(set) var packets: [H264Packetizer.Extent]
    private(set) var runs: [Run]
    /// Of the packets, without the sender report.
    private(set) var mediaByteCount = 0
    /// Where the sender report lies.
    private(set) var report: H264Packetizer.Extent?

    /// - Parameter mostPackets: How many packets fit without growing.
    init(mostPackets: Int = 64) {
        packets = []
        runs = []
        packets.reserveCapacity(mostPackets)
        runs.reserveCapacity(mostPackets)
    }

    var byteCount: Int { buffer.readableBytes }

    /// [stage thread] Fills the block anew. Allocates only where it has to grow, or where a reader still has the old
    /// bytes.
    ///
    /// - Parameters:
    ///   - reservedBytes: How many bytes to make room for where it has to grow: those of the stream's largest unit, so
    ///     that blocks seldom grow.
    ///   - report: A compound RTCP packet that is sent behind the unit.
    func fill(
        index: UInt64, isKeyframe: Bool, unit: UnsafeRawBufferPointer, plannedBytes: Int, reservedBytes: Int = 0,
        timestamp: UInt32, report: [UInt8]?,
        packetizer: inout H264Packetizer
    ) {
        self.index = index
        self.isKeyframe = isKeyframe
        self.timestamp = timestamp
        firstSequenceNumber = packetizer.sequenceNumber
        buffer.clear(minimumCapacity: max(plannedBytes, reservedBytes) + 128)
        buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: plannedBytes) { target in
            packetizer.write(
                unit, timestamp: timestamp, to: UnsafeMutableRawBufferPointer(rebasing: target[..<plannedBytes]),
                packets: &packets)
            return plannedBytes
        }
        mediaByteCount = plannedBytes
        findRuns()
        self.report = report.map { report in
            buffer.writeMultipleIntegers(UInt8(0x24), UInt8(1), UInt16(report.count))
            defer { buffer.writeBytes(report) }
            return H264Packetizer.Extent(offset: buffer.writerIndex, byteCount: report.count)
        }
    }

    /// [network loop] Copies a unit of a kept group. ``findPackets()`` must follow.
    func copy(_ unit: GroupStore.Unit, _ bytes: UnsafeRawBufferPointer) {
        (index, isKeyframe) = (unit.index, unit.isKeyframe)
        (timestamp, firstSequenceNumber) = (unit.timestamp, unit.firstSequenceNumber)
        buffer.clear(minimumCapacity: bytes.count)
        buffer.writeBytes(bytes)
        mediaByteCount = bytes.count
        report = nil
    }

    /// [network loop] Finds the packets in the copied bytes, each behind the four bytes of its interleaved frame.
    func findPackets() {
        packets.removeAll(keepingCapacity: true)
        buffer.withUnsafeReadableBytes { bytes in
            var offset = 0
            while bytes.count - offset >= H264Packetizer.interleavingBytes {
                let byteCount = Int(bytes[offset + 2]) << 8 | Int(bytes[offset + 3])
                offset += H264Packetizer.interleavingBytes
                packets.append(H264Packetizer.Extent(offset: offset, byteCount: byteCount))
                offset += byteCount
            }
        }
        findRuns()
    }

    /// The block as a unit of the kept group, for ``copy(_:_:)``.
    var keptUnit: GroupStore.Unit {
        GroupStore.Unit(
            index: index, offset: 0, byteCount: mediaByteCount, timestamp: timestamp,
            firstSequenceNumber: firstSequenceNumber, isKeyframe: isKeyframe)
    }

    private func findRuns() {
        runs.removeAll(keepingCapacity: true)
        for (index, packet) in packets.enumerated() {
            if let last = runs.last, packets[index - 1].byteCount == last.segmentBytes,
                packet.byteCount <= last.segmentBytes,
                last.packetCount < Self.mostSegments, (last.packetCount + 1) * last.segmentBytes <= Self.mostRunBytes
            {
                runs[runs.count - 1].packetCount += 1
            } else {
                runs.append(Run(firstPacket: index, packetCount: 1, segmentBytes: packet.byteCount))
            }
        }
    }

    /// The bytes for a TCP reader with these channels: the shared bytes for channels 0 and 1, which nearly all readers
    /// have, or else a copy.
    func interleaved(on channels: TransportSpec.Pair<UInt8>) -> ByteBuffer {
        guard channels.rtp != 0 || channels.rtcp != 1 else { return buffer }
        var copy = ByteBuffer(bytes: buffer.readableBytesView)
        for packet in packets { copy.setInteger(channels.rtp, at: packet.offset - 3) }
        if let report { copy.setInteger(channels.rtcp, at: report.offset - 3) }
        return copy
    }
}

/// Blocks that are used again once no reader has them. [stage thread]
struct BlockRing {
    private var blocks: [MediaBlock]
    private var position = 0

    init(count: Int) { blocks = (0..<count).map { _ in MediaBlock() } }

    /// A block that nothing else uses: one of the ring, or a new one in its place where slow readers still use it.
    mutating func next() -> MediaBlock {
        position = (position + 1) % blocks.count
        if !isKnownUniquelyReferenced(&blocks[position]) { blocks[position] = MediaBlock() }
        return blocks[position]
    }
}
