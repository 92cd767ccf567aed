// SPDX-License-Identifier: Apache-2.0

import FrameNetwork

/// The packets of one access unit, of pictures or of sound, as they go out to every reader.
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
    private(set) var medium = Medium.pictures
    private(set) var isKeyframe = false
    private(set) var firstSequenceNumber: UInt16 = 0
    private(set) var timestamp: UInt32 = 0
    /// When it is shown or heard, in ticks of the pictures' clock.
    private(set) var pictureTime: UInt32 = 0
    /// How many blocks of sound came before.
    private(set) var soundsBefore: UInt64 = 0
    /// Interleaved frames one after the other: the sender report of the other medium and of its own, where they are
    /// due, then the packets. Pictures are on channel 0 and their reports on 1, sound on 2 and its reports on 3.
    private(set) var buffer = ByteBuffer()
    private(set) var packets: [NALPacketizer.Extent]
    private(set) var runs: [Run]
    /// Bytes of the packets, which lie at the end, without the sender reports.
    private(set) var mediaByteCount = 0
    /// Where the sender report of each medium lies.
    private(set) var reports = PerMedium<NALPacketizer.Extent?>(nil)
    /// Where the frames of its own medium begin.
    private var ownOffset = 0

    /// The channels that ``buffer`` is written for.
    static let usualChannels = PerMedium(
        pictures: TransportSpec.Pair<UInt8>(0, 1),
        sound: TransportSpec.Pair(SoundPacketizer.channel, SoundPacketizer.channel + 1))

    /// - Parameter mostPackets: How many packets fit without growing.
    init(mostPackets: Int = 64) {
        packets = []
        runs = []
        packets.reserveCapacity(mostPackets)
        runs.reserveCapacity(mostPackets)
    }

    var byteCount: Int { buffer.readableBytes }
    var standsAlone: Bool { medium == .sound }

    /// Its packets with their interleaving headers.
    func withMediaBytes<Result>(_ body: (UnsafeRawBufferPointer) throws -> Result) rethrows -> Result {
        try buffer.withUnsafeReadableBytes { bytes in
            try body(UnsafeRawBufferPointer(rebasing: bytes[(bytes.count - mediaByteCount)...]))
        }
    }

    /// [stage thread] Fills the block anew. Allocates only where it has to grow, or where a reader still has the old
    /// bytes.
    ///
    /// - Parameters:
    ///   - reservedBytes: How many bytes to make room for where it has to grow: those of the stream's largest unit, so
    ///     that blocks seldom grow.
    ///   - pictureTime: In the pictures' clock; nil for the same as `timestamp`.
    ///   - report: A compound RTCP packet of its medium, which is sent before the unit.
    ///   - otherReport: The same for the other medium.
    func fill(
        index: UInt64, isKeyframe: Bool, unit: UnsafeRawBufferPointer, plannedBytes: Int, reservedBytes: Int = 0,
        timestamp: UInt32, report: [UInt8]?, packetizer: inout some UnitPacketizer, medium: Medium = .pictures,
        pictureTime: UInt32? = nil, soundsBefore: UInt64 = 0, otherReport: [UInt8]? = nil
    ) {
        self.index = index
        self.medium = medium
        self.isKeyframe = isKeyframe
        self.timestamp = timestamp
        self.pictureTime = pictureTime ?? timestamp
        self.soundsBefore = soundsBefore
        firstSequenceNumber = packetizer.sequenceNumber
        buffer.clear(minimumCapacity: max(plannedBytes, reservedBytes) + 256)
        reports = PerMedium(nil)
        reports[medium.other] = otherReport.map { write($0, Self.usualChannels[medium.other].rtcp) }
        ownOffset = buffer.writerIndex
        reports[medium] = report.map { write($0, Self.usualChannels[medium].rtcp) }
        let mediaOffset = buffer.writerIndex
        buffer.writeWithUnsafeMutableBytes(minimumWritableBytes: plannedBytes) { target in
            packetizer.write(
                unit, timestamp: timestamp, to: UnsafeMutableRawBufferPointer(rebasing: target[..<plannedBytes]),
                packets: &packets)
            return plannedBytes
        }
        if mediaOffset > 0 { for index in packets.indices { packets[index].offset += mediaOffset } }
        mediaByteCount = plannedBytes
        findRuns()
    }

    /// Writes a report as an interleaved frame; returns where it lies.
    private func write(_ report: [UInt8], _ channel: UInt8) -> NALPacketizer.Extent {
        buffer.writeMultipleIntegers(UInt8(0x24), channel, UInt16(report.count))
        defer { buffer.writeBytes(report) }
        return NALPacketizer.Extent(offset: buffer.writerIndex, byteCount: report.count)
    }

    /// [network loop] Copies a unit of a kept group. ``findPackets()`` must follow.
    func copy(_ unit: GroupStore.Unit, _ bytes: UnsafeRawBufferPointer) {
        (index, isKeyframe) = (unit.index, unit.isKeyframe)
        (timestamp, firstSequenceNumber) = (unit.timestamp, unit.firstSequenceNumber)
        (medium, pictureTime, soundsBefore) = (unit.medium, unit.time, unit.soundsBefore)
        buffer.clear(minimumCapacity: bytes.count)
        buffer.writeBytes(bytes)
        mediaByteCount = bytes.count
        (reports, ownOffset) = (PerMedium(nil), 0)
    }

    /// [network loop] Finds the packets in the copied bytes, each behind the four bytes of its interleaved frame.
    func findPackets() {
        packets.removeAll(keepingCapacity: true)
        buffer.withUnsafeReadableBytes { bytes in
            var offset = 0
            while bytes.count - offset >= NALPacketizer.interleavingBytes {
                let byteCount = Int(bytes[offset + 2]) << 8 | Int(bytes[offset + 3])
                offset += NALPacketizer.interleavingBytes
                packets.append(NALPacketizer.Extent(offset: offset, byteCount: byteCount))
                offset += byteCount
            }
        }
        findRuns()
    }

    /// The block as a unit of the kept group, for ``copy(_:_:)``.
    var keptUnit: GroupStore.Unit {
        GroupStore.Unit(
            index: index, offset: 0, byteCount: mediaByteCount, timestamp: timestamp,
            firstSequenceNumber: firstSequenceNumber, isKeyframe: isKeyframe, medium: medium, pictureTime: pictureTime,
            soundsBefore: soundsBefore)
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

    /// The bytes for a TCP reader with these channels, without the report of a medium that it has not set up. Nearly
    /// all readers have the usual channels and share the bytes; others get a copy.
    func interleaved(on channels: PerMedium<TransportSpec.Pair<UInt8>?>) -> ByteBuffer {
        let (own, other) = (channels[medium], channels[medium.other])
        let lacksOther = other == nil && ownOffset > 0
        let isUsual =
            (own == nil || own == Self.usualChannels[medium])
            && (other == nil || ownOffset == 0 || other == Self.usualChannels[medium.other])
        if isUsual { return lacksOther ? buffer.getSlice(at: ownOffset, length: byteCount - ownOffset)! : buffer }
        var copy = ByteBuffer(bytes: buffer.readableBytesView)
        if let own { for packet in packets { copy.setInteger(own.rtp, at: packet.offset - 3) } }
        for one in Medium.allCases {
            guard let report = reports[one], let pair = channels[one] else { continue }
            copy.setInteger(pair.rtcp, at: report.offset - 3)
        }
        if lacksOther { copy.moveReaderIndex(to: ownOffset) }
        return copy
    }
}

extension MediaBlock {
    /// The sender report of a medium as an interleaved frame on this channel; nil where none is due with this block.
    func interleavedReport(of medium: Medium, on channel: UInt8) -> ByteBuffer? {
        guard let report = reports[medium] else { return nil }
        let header = NALPacketizer.interleavingBytes
        guard var frame = buffer.getSlice(at: report.offset - header, length: header + report.byteCount) else {
            return nil
        }
        frame.setInteger(channel, at: 1)
        return frame
    }
}

/// Blocks that are used again once no reader has them. [stage thread]
struct BlockRing {
    private var blocks: [MediaBlock]
    private var position = 0

    private let mostPackets: Int

    /// - Parameter mostPackets: How many packets fit into a block without growing.
    init(count: Int, mostPackets: Int = 64) {
        self.mostPackets = mostPackets
        blocks = (0..<count).map { _ in MediaBlock(mostPackets: mostPackets) }
    }

    /// A block that nothing else uses: one of the ring, or a new one in its place where slow readers still use it.
    mutating func next() -> MediaBlock {
        position = (position + 1) % blocks.count
        if !isKnownUniquelyReferenced(&blocks[position]) { blocks[position] = MediaBlock(mostPackets: mostPackets) }
        return blocks[position]
    }
}
