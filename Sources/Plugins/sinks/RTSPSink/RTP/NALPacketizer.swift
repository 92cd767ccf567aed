// SPDX-License-Identifier: Apache-2.0

import CodedVideo

/// Splits an access unit into RTP packets of at most `mostPacketBytes`. Each follows the four bytes that make it an
/// interleaved frame.
///
/// Small NAL units are sent alone, neighbours are joined (STAP-A; H.265: AP), large ones are cut (FU-A; H.265: FU). A keyframe without
/// parameter sets gets them in front. The marker bit is set on the last packet. All packets of a unit lie one after the
/// other. A TCP reader gets them as they are, a UDP reader the parts between the interleaving headers. There are two
/// steps, so that the caller can take memory of the right size in between: ``plan(_:isKeyframe:)``, then
/// ``write(_:timestamp:to:packets:)`` with the same unit.
///
/// - SeeAlso: RFC 6184, 5.6 to 5.8; RFC 7798, 4.4.1 to 4.4.3; RFC 2326, 10.12.
struct NALPacketizer: Sendable {
    /// The parameter sets of a stream, each without its start code.
    struct Sets: Sendable, Equatable {
        /// Empty for H.264.
        var vps: [UInt8] = []
        var sps: [UInt8]
        var pps: [UInt8]

        /// Whether it is H.265 though no VPS is known.
        var isH265 = false

        var coding: VideoCoding { isH265 || !vps.isEmpty ? .h265 : .h264 }
    }

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

    /// The first parameter set of each kind of a format; nil without one of them.
    static func sets(of bytes: [UInt8], _ coding: VideoCoding = .h264) -> Sets? {
        // A stream that was planned before it was there says them itself.
        guard !bytes.isEmpty else { return Sets(sps: [], pps: [], isH265: coding == .h265) }
        let known = ParameterSets(bytes, coding)
        guard let sps = known.first(.sequenceParameterSet), let pps = known.first(.pictureParameterSet), sps.count >= 4
        else { return nil }
        guard coding == .h265 else { return Sets(sps: sps, pps: pps) }
        return known.first(.videoParameterSet).map { Sets(vps: $0, sps: sps, pps: pps) }
    }

    let mostPacketBytes: Int
    let payloadType: UInt8
    let ssrc: UInt32
    /// The sequence number of the next packet.
    private(set) var sequenceNumber: UInt16
    private let coding: VideoCoding
    /// All parameter sets, one after the other.
    private let parameterSets: [UInt8]
    private let parameterUnits: [Unit]
    // Reused from unit to unit.
    private var units: [Unit] = []
    private var groups: [Group] = []

    private var mostPayloadBytes: Int { mostPacketBytes - RTPHeader.byteCount }
    /// What stands before the bytes of each fragment.
    private var fragmentHeaderBytes: Int { coding.headerBytes + 1 }

    /// - Parameter mostPacketBytes: RTP header and payload; at least 64.
    init(
        _ sets: Sets, mostPacketBytes: Int, payloadType: UInt8, ssrc: UInt32, firstSequenceNumber: UInt16
    ) {
        precondition((64...65_000).contains(mostPacketBytes), "a packet has 64 to 65,000 bytes")
        self.mostPacketBytes = mostPacketBytes
        self.payloadType = payloadType
        self.ssrc = ssrc
        sequenceNumber = firstSequenceNumber
        coding = sets.coding
        parameterSets = sets.vps + sets.sps + sets.pps
        var offset = 0
        parameterUnits = [sets.vps, sets.sps, sets.pps].filter { !$0.isEmpty }.map { set in
            defer { offset += set.count }
            return Unit(isParameterSet: true, offset: offset, byteCount: set.count)
        }
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
        NALUnits.forEach(in: unit, coding, .all) { kind, range in
            hasParameterSets = hasParameterSets || kind == .sequenceParameterSet
            // What is shorter than a header is no unit.
            guard range.count >= coding.headerBytes else { return true }
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
                // Each fragment repeats the header and one byte with the type, and the unit's own header is left out.
                let rest = units[index].byteCount - coding.headerBytes
                let perPacket = mostPayloadBytes - fragmentHeaderBytes
                let packetCount = (rest + perPacket - 1) / perPacket
                groups.append(
                    Group(
                        shape: .fragments, firstUnit: index, unitCount: 1,
                        payloadBytes: rest + fragmentHeaderBytes * packetCount,
                        packetCount: packetCount)
                )
                index += 1
                continue
            }
            var end = index + 1
            var joined = coding.headerBytes + 2 + units[index].byteCount
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
        var (sequenceNumber, position) = (sequenceNumber, 0)
        /// Writes both headers of the next packet, and returns where its payload goes.
        func begin(payloadBytes: Int, isLast: Bool) -> UnsafeMutableRawPointer {
            let packetBytes = RTPHeader.byteCount + payloadBytes
            let head = base + position
            writeHeaders(packetBytes, sequenceNumber, timestamp, isLast: isLast, to: head)
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
                    cursor += coding.headerBytes
                    var header = AggregateHeader(coding)
                    for unitIndex in group.firstUnit..<group.firstUnit + group.unitCount {
                        let source = bytes(unitIndex)
                        header.add(source)
                        cursor.storeBytes(of: UInt16(source.count).bigEndian, as: UInt16.self)
                        (cursor + 2).copyMemory(from: source.baseAddress!, byteCount: source.count)
                        cursor += 2 + source.count
                    }
                    header.write(to: head)
                case .fragments:
                    let source = bytes(group.firstUnit)
                    var done = coding.headerBytes
                    for fragment in 0..<group.packetCount {
                        let count = min(mostPayloadBytes - fragmentHeaderBytes, source.count - done)
                        let isEnd = fragment == group.packetCount - 1
                        let payload = begin(payloadBytes: count + fragmentHeaderBytes, isLast: isLast && isEnd)
                        let flags: UInt8 = (fragment == 0 ? 0x80 : 0) | (isEnd ? 0x40 : 0)
                        writeFragmentHeader(flags, of: source, to: payload)
                        (payload + fragmentHeaderBytes).copyMemory(from: source.baseAddress! + done, byteCount: count)
                        done += count
                    }
                }
            }
        }
        self.sequenceNumber = sequenceNumber
    }

    private func writeHeaders(
        _ packetBytes: Int, _ sequenceNumber: UInt16, _ timestamp: UInt32, isLast: Bool,
        to head: UnsafeMutableRawPointer
    ) {
        head.storeBytes(of: 0x24, as: UInt8.self)
        head.storeBytes(of: 0, toByteOffset: 1, as: UInt8.self)
        head.storeBytes(of: UInt16(packetBytes).bigEndian, toByteOffset: 2, as: UInt16.self)
        RTPHeader(
            marker: isLast, payloadType: payloadType, sequenceNumber: sequenceNumber, timestamp: timestamp,
            ssrc: ssrc
        )
        .write(to: head + Self.interleavingBytes)
    }

    private func writeFragmentHeader(
        _ flags: UInt8, of source: UnsafeRawBufferPointer, to payload: UnsafeMutableRawPointer
    ) {
        switch coding {
        case .h264:
            payload.storeBytes(of: source[0] & 0xe0 | 28, as: UInt8.self)
            payload.storeBytes(of: flags | source[0] & 31, toByteOffset: 1, as: UInt8.self)
        case .h265:
            payload.storeBytes(of: source[0] & 0x81 | 49 << 1, as: UInt8.self)
            payload.storeBytes(of: source[1], toByteOffset: 1, as: UInt8.self)
            payload.storeBytes(of: flags | source[0] >> 1 & 63, toByteOffset: 2, as: UInt8.self)
        }
    }
}

/// The header of a packet that joins several units: of what their own headers say, the most that holds for all.
private struct AggregateHeader {
    private let coding: VideoCoding
    private var forbidden: UInt8 = 0
    /// H.264: `nal_ref_idc`, the highest.
    private var importance: UInt8 = 0
    /// H.265: `nuh_layer_id` and `nuh_temporal_id_plus1`, the lowest of each.
    private var layer: UInt8 = 63
    private var temporal: UInt8 = 7

    init(_ coding: VideoCoding) { self.coding = coding }

    mutating func add(_ unit: UnsafeRawBufferPointer) {
        forbidden |= unit[0] & 0x80
        switch coding {
        case .h264: importance = max(importance, unit[0] & 0x60)
        case .h265:
            layer = min(layer, (unit[0] & 1) << 5 | unit[1] >> 3)
            temporal = min(temporal, unit[1] & 7)
        }
    }

    /// RFC 6184, 5.7.1; RFC 7798, 4.4.2.
    func write(to head: UnsafeMutableRawPointer) {
        switch coding {
        case .h264: head.storeBytes(of: forbidden | importance | 24, as: UInt8.self)
        case .h265:
            head.storeBytes(of: forbidden | 48 << 1 | layer >> 5, as: UInt8.self)
            head.storeBytes(of: layer << 3 | temporal, toByteOffset: 1, as: UInt8.self)
        }
    }
}
