// SPDX-License-Identifier: Apache-2.0

/// Makes RTP packets of units of sound: AAC by RFC 3640, mode AAC-hbr, Opus by RFC 7587, G.711 and G.726 by RFC 3551, 4.5.14
/// and 4.5.4, or MP3 by RFC 2250, 3.5.
///
/// A packet has one unit, or two of AAC (``firstBytes``). An AAC unit larger than a packet is cut; the marker bit is
/// on the packet that ends it. Opus is never cut, since its payload format has no fragments: a unit larger than a
/// packet is sent in a larger one. G.711 and G.726 are cut between samples, each packet with the time of its first one. MP3 is cut
/// where a frame is larger than a packet, which then says where in the frame it lies.
///
/// - SeeAlso: RFC 3640, 3.2 and 3.3.6; RFC 7587, 4.2.
struct SoundPacketizer: UnitPacketizer {
    enum Form: Sendable, Equatable {
        case aac
        case opus
        /// A sample of each channel is a tick of RTP's clock.
        case g711(bytesPerTick: Int)
        /// Eight codes of this many bits are as many bytes. Encoders make units of half a second, which clients would have
        /// to wait for: a packet has 40 ms at most.
        case g726(bits: Int)
        case mp3
    }

    /// `AU-headers-length` and one `AU-header` of 13 bits of size and 3 bits of index.
    static let headerBytes = 4
    /// The header of MP3: 16 bits that are 0, and where in the frame the packet lies.
    static let mp3HeaderBytes = 4
    /// The largest unit of G.711, of G.726, and of MP3.
    static let mostOtherBytes = 65_535
    /// Groups of eight codes of G.726 in a packet: 320 samples of 8000 Hz.
    static let mostG726Groups = 40
    /// The size of each further `AU-header`.
    static let furtherHeaderBytes = 2
    /// The largest size that 13 bits can hold.
    static let mostUnitBytes = 8191
    /// The largest unit of Opus: 120 ms in frames of 2.5 ms of at most 1275 bytes each (RFC 6716, 3.2.5).
    static let mostOpusBytes = 48 * 1275 + 50
    /// The channel for which interleaved frames are written; a TCP reader with another channel gets a copy.
    static let channel: UInt8 = 2

    let form: Form
    let mostPacketBytes: Int
    let payloadType: UInt8
    let ssrc: UInt32
    private(set) var sequenceNumber: UInt16
    /// The size of the first unit where two units of AAC, one after the other, are planned and written as one; nil
    /// for a single unit. Both must fit into one packet: ``fits(_:and:)``.
    var firstBytes: Int?

    /// - Parameter mostPacketBytes: RTP header and payload; at least 64.
    init(_ form: Form, mostPacketBytes: Int, payloadType: UInt8, ssrc: UInt32, firstSequenceNumber: UInt16) {
        precondition((64...65_000).contains(mostPacketBytes), "a packet has 64 to 65,000 bytes")
        self.form = form
        self.mostPacketBytes = mostPacketBytes
        self.payloadType = payloadType
        self.ssrc = ssrc
        sequenceNumber = firstSequenceNumber
    }

    /// Whether two units of these sizes go into one packet.
    func fits(_ first: Int, and second: Int) -> Bool {
        form == .aac && first > 0 && second > 0
            && RTPHeader.byteCount + Self.headerBytes + Self.furtherHeaderBytes + first + second <= mostPacketBytes
    }

    /// Bytes of headers before the part of a unit in each packet.
    private var overhead: Int {
        switch form {
        case .aac: Self.headerBytes + (firstBytes == nil ? 0 : Self.furtherHeaderBytes)
        case .mp3: Self.mp3HeaderBytes
        case .opus, .g711, .g726: 0
        }
    }

    /// The most bytes of a unit in one packet.
    private var mostPartBytes: Int {
        let room = mostPacketBytes - RTPHeader.byteCount - overhead
        switch form {
        case .aac, .mp3: return room
        case .opus: return Self.mostOpusBytes
        case .g711(let bytesPerTick): return max(room / bytesPerTick, 1) * bytesPerTick
        case .g726(let bits): return min(room / bits, Self.mostG726Groups) * bits
        }
    }

    private var mostBytes: Int {
        switch form {
        case .aac: Self.mostUnitBytes
        case .opus: Self.mostOpusBytes
        case .g711, .g726, .mp3: Self.mostOtherBytes
        }
    }

    mutating func plan(_ unit: UnsafeRawBufferPointer, isKeyframe: Bool) -> (packetCount: Int, byteCount: Int) {
        guard (1...mostBytes).contains(unit.count) else { return (0, 0) }
        let packetCount = (unit.count + mostPartBytes - 1) / mostPartBytes
        let perPacket = NALPacketizer.interleavingBytes + RTPHeader.byteCount + overhead
        return (packetCount, unit.count + packetCount * perPacket)
    }

    mutating func write(
        _ unit: UnsafeRawBufferPointer, timestamp: UInt32, to target: UnsafeMutableRawBufferPointer,
        packets: inout [NALPacketizer.Extent]
    ) {
        packets.removeAll(keepingCapacity: true)
        guard let base = target.baseAddress, let source = unit.baseAddress else { return }
        var position = 0
        var done = 0
        while done < unit.count {
            let count = min(mostPartBytes, unit.count - done)
            let packetBytes = RTPHeader.byteCount + overhead + count
            let head = base + position
            head.storeBytes(of: 0x24, as: UInt8.self)
            head.storeBytes(of: Self.channel, toByteOffset: 1, as: UInt8.self)
            head.storeBytes(of: UInt16(packetBytes).bigEndian, toByteOffset: 2, as: UInt16.self)
            let packet = head + NALPacketizer.interleavingBytes
            var time = timestamp
            if case .g711(let bytesPerTick) = form { time &+= UInt32(truncatingIfNeeded: done / bytesPerTick) }
            if case .g726(let bits) = form { time &+= UInt32(truncatingIfNeeded: done / bits * 8) }
            RTPHeader(
                // RFC 7587, 4.1 and RFC 3551, 4.1: elsewhere the marker would say that speech begins.
                marker: form == .aac && done + count == unit.count, payloadType: payloadType,
                sequenceNumber: sequenceNumber, timestamp: time, ssrc: ssrc
            )
            .write(to: packet)
            if form == .mp3 {
                packet.storeBytes(of: UInt32(done).bigEndian, toByteOffset: RTPHeader.byteCount, as: UInt32.self)
            } else if form == .aac {
                // 16 bits for each unit; each fragment says how large the whole unit is (RFC 3640, 3.2.3).
                func write(_ value: Int, at offset: Int) {
                    packet.storeBytes(
                        of: UInt16(value).bigEndian, toByteOffset: RTPHeader.byteCount + offset, as: UInt16.self)
                }
                write(firstBytes == nil ? 16 : 32, at: 0)
                write((firstBytes ?? unit.count) << 3, at: 2)
                if let firstBytes { write((unit.count - firstBytes) << 3, at: 4) }
            }
            (packet + RTPHeader.byteCount + overhead).copyMemory(from: source + done, byteCount: count)
            packets.append(
                NALPacketizer.Extent(offset: position + NALPacketizer.interleavingBytes, byteCount: packetBytes))
            sequenceNumber &+= 1
            position += NALPacketizer.interleavingBytes + packetBytes
            done += count
        }
    }
}
