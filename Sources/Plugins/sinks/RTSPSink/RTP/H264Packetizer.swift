// SPDX-License-Identifier: Apache-2.0

import CodedVideo

/// Splits an access unit into RTP packets of at most `mostPacketBytes`. Each follows the four bytes that make it an
/// interleaved frame.
///
/// Small NAL units are sent alone, neighbours are joined (STAP-A), large ones are cut (FU-A). A keyframe without
/// parameter sets gets them in front. The marker bit is set on the last packet. All packets of a unit lie one after the
/// other. A TCP reader gets them as they are, a UDP reader the parts between the interleaving headers. There are two
/// steps, so that the caller can take memory of the right size in between: ``plan(_:isKeyframe:)``, then
/// ``write(_:timestamp:to:packets:)`` with the same unit.
///
/// - SeeAlso: RFC 6184, 5.6 to 5.8; RFC 2326, 10.12.
struct H264Packetizer: Sendable {
    /// Dollar sign, channel, 16 bits of size.
    static let interleavingBytes = 4

    /// Where a packet lies in the written bytes, without its interleaving header.
    struct Extent: Sendable, Equatable {
        var offset: Int
        var byteCount: Int
        var end: Int { offset + byteCount }
    }

    private struct Unit: Sendable {
        /// In the parameter sets rather than in the access unit.
        var isParameterSet: Bool
        var offset: Int
        var byteCount: Int
    }

    private enum Shape: Sendable { case single, aggregate, fragments }

    /// Units that are sent together, or one that is cut.
    private struct Group: Sendable {
        var shape: Shape
        var firstUnit: Int
        var unitCount: Int
        /// Bytes of payload; for a cut unit those of all its fragments.
        var payloadBytes: Int
        var packetCount: Int
    }

    /// The first SPS and the first PPS of a format's parameter sets, without start codes; nil without one of them.
    static func sets(of bytes: [UInt8]) -> (sps: [UInt8], pps: [UInt8])? {
        let known = ParameterSets(bytes, .h264)
        guard let sps = known.first(.sequenceParameterSet), let pps = known.first(.pictureParameterSet), sps.count >= 4
        else { return nil }
        return (sps, pps)
    }

    let mostPacketBytes: Int
    let payloadType: UInt8
    let ssrc: UInt32
    /// The sequence number of the next packet.
    private(set) var sequenceNumber: UInt16
    /// SPS and PPS, one after the other.
    private let parameterSets: [UInt8]
    private let parameterUnits: [Unit]
    // Reused from unit to unit.
    private var units: [Unit] = []
    private var groups: [Group] = []

    private var mostPayloadBytes: Int { mostPacketBytes - RTPHeader.byteCount }

    /// - Parameter mostPacketBytes: RTP header and payload; at least 64.
    init(
        sps: [UInt8], pps: [UInt8], mostPacketBytes: Int, payloadType: UInt8, ssrc: UInt32, firstSequenceNumber: UInt16
    ) {
        precondition((64...65_000).contains(mostPacketBytes), "a packet has 64 to 65,000 bytes")
        self.mostPacketBytes = mostPacketBytes
        self.payloadType = payloadType
        self.ssrc = ssrc
        sequenceNumber = firstSequenceNumber
        parameterSets = sps + pps
        parameterUnits = [
            Unit(isParameterSet: true, offset: 0, byteCount: sps.count),
            Unit(isParameterSet: true, offset: sps.count, byteCount: pps.count),
        ]
        units.reserveCapacity(256)
        groups.reserveCapacity(256)
    }

    /// Bytes that ``write(_:timestamp:to:packets:)`` will write; 0 when there is no NAL unit in it. Allocates nothing
    /// once warm.
    ///
    /// - Parameter unit: One access unit with start codes.
    mutating func plan(_ unit: UnsafeRawBufferPointer, isKeyframe: Bool) -> (packetCount: Int, byteCount: Int) {
        units.removeAll(keepingCapacity: true)
        groups.removeAll(keepingCapacity: true)
        var hasParameterSets = false
        NALUnits.forEach(in: unit, .h264, .all) { kind, range in
            hasParameterSets = hasParameterSets || kind == .sequenceParameterSet
            units.append(Unit(isParameterSet: false, offset: range.lowerBound, byteCount: range.count))
            return true
        }
        guard !units.isEmpty else { return (0, 0) }
        if isKeyframe, !hasParameterSets { units.insert(contentsOf: parameterUnits, at: 0) }
        group()
        var packetCount = 0
        var byteCount = 0
        for group in groups {
            packetCount += group.packetCount
            byteCount += group.payloadBytes
        }
        return (packetCount, byteCount + packetCount * (Self.interleavingBytes + RTPHeader.byteCount))
    }

    private mutating func group() {
        var index = 0
        while index < units.count {
            if units[index].byteCount > mostPayloadBytes {
                // Each fragment repeats the type in two bytes, and the unit's own header byte is left out.
                let rest = units[index].byteCount - 1
                let perPacket = mostPayloadBytes - 2
                let packetCount = (rest + perPacket - 1) / perPacket
                groups.append(
                    Group(
                        shape: .fragments, firstUnit: index, unitCount: 1, payloadBytes: rest + 2 * packetCount,
                        packetCount: packetCount)
                )
                index += 1
                continue
            }
            var end = index + 1
            var joined = 1 + 2 + units[index].byteCount
            while end < units.count, joined + 2 + units[end].byteCount <= mostPayloadBytes {
                joined += 2 + units[end].byteCount
                end += 1
            }
            groups.append(
                end == index + 1
                    ? Group(
                        shape: .single, firstUnit: index, unitCount: 1, payloadBytes: units[index].byteCount,
                        packetCount: 1)
                    : Group(
                        shape: .aggregate, firstUnit: index, unitCount: end - index, payloadBytes: joined,
                        packetCount: 1))
            index = end
        }
    }

    /// Writes the packets of the unit that was planned.
    ///
    /// - Parameters:
    ///   - unit: The same bytes as in ``plan(_:isKeyframe:)``.
    ///   - target: As many bytes as that has returned.
    ///   - packets: Emptied, then filled with where each packet lies.
    mutating func write(
        _ unit: UnsafeRawBufferPointer, timestamp: UInt32, to target: UnsafeMutableRawBufferPointer,
        packets: inout [Extent]
    ) {
        packets.removeAll(keepingCapacity: true)
        guard let base = target.baseAddress else { return }
        var sequenceNumber = sequenceNumber
        var position = 0
        /// Writes both headers of the next packet, and returns where its payload goes.
        func begin(payloadBytes: Int, isLast: Bool) -> UnsafeMutableRawPointer {
            let packetBytes = RTPHeader.byteCount + payloadBytes
            let head = base + position
            head.storeBytes(of: 0x24, as: UInt8.self)
            head.storeBytes(of: 0, toByteOffset: 1, as: UInt8.self)
            head.storeBytes(of: UInt16(packetBytes).bigEndian, toByteOffset: 2, as: UInt16.self)
            RTPHeader(
                marker: isLast, payloadType: payloadType, sequenceNumber: sequenceNumber, timestamp: timestamp,
                ssrc: ssrc
            )
            .write(to: head + Self.interleavingBytes)
            packets.append(Extent(offset: position + Self.interleavingBytes, byteCount: packetBytes))
            sequenceNumber &+= 1
            position += Self.interleavingBytes + packetBytes
            return head + Self.interleavingBytes + RTPHeader.byteCount
        }
        parameterSets.withUnsafeBytes { sets in
            func bytes(_ unitIndex: Int) -> UnsafeRawBufferPointer {
                let found = units[unitIndex]
                return UnsafeRawBufferPointer(
                    rebasing: (found.isParameterSet ? sets : unit)[found.offset..<found.offset + found.byteCount])
            }
            for (index, group) in groups.enumerated() {
                let isLast = index == groups.count - 1
                switch group.shape {
                case .single:
                    let source = bytes(group.firstUnit)
                    begin(payloadBytes: source.count, isLast: isLast).copyMemory(
                        from: source.baseAddress!, byteCount: source.count)
                case .aggregate:
                    var cursor = begin(payloadBytes: group.payloadBytes, isLast: isLast)
                    let head = cursor
                    cursor += 1
                    var forbidden: UInt8 = 0
                    var importance: UInt8 = 0
                    for unitIndex in group.firstUnit..<group.firstUnit + group.unitCount {
                        let source = bytes(unitIndex)
                        forbidden |= source[0] & 0x80
                        importance = max(importance, source[0] & 0x60)
                        cursor.storeBytes(of: UInt16(source.count).bigEndian, as: UInt16.self)
                        (cursor + 2).copyMemory(from: source.baseAddress!, byteCount: source.count)
                        cursor += 2 + source.count
                    }
                    head.storeBytes(of: forbidden | importance | 24, as: UInt8.self)
                case .fragments:
                    let source = bytes(group.firstUnit)
                    var done = 1
                    for fragment in 0..<group.packetCount {
                        let count = min(mostPayloadBytes - 2, source.count - done)
                        let isEnd = fragment == group.packetCount - 1
                        let payload = begin(payloadBytes: count + 2, isLast: isLast && isEnd)
                        payload.storeBytes(of: source[0] & 0xe0 | 28, as: UInt8.self)
                        let flags: UInt8 = (fragment == 0 ? 0x80 : 0) | (isEnd ? 0x40 : 0)
                        payload.storeBytes(of: flags | source[0] & 31, toByteOffset: 1, as: UInt8.self)
                        (payload + 2).copyMemory(from: source.baseAddress! + done, byteCount: count)
                        done += count
                    }
                }
            }
        }
        self.sequenceNumber = sequenceNumber
    }
}
