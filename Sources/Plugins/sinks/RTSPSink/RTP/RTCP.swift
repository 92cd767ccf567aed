// SPDX-License-Identifier: Apache-2.0

/// What a sender of RTP says of its stream (RFC 3550, 6.4.1).
struct SenderReport: Sendable, Equatable {
    var ssrc: UInt32
    var ntp: NTPTime
    /// The RTP time of the same moment as `ntp`.
    var rtpTime: UInt32
    var packetCount: UInt32
    var byteCount: UInt32
}

/// What a receiver says of one stream (RFC 3550, 6.4.2).
struct ReceptionReport: Sendable, Equatable {
    /// The source of the stream.
    var ssrc: UInt32
    /// The share of packets lost since the last report, in 1/256.
    var fractionLost: UInt8
    /// Packets lost since the beginning; 24 bits with sign.
    var packetsLost: Int32
    var highestSequenceNumber: UInt32
    /// In ticks of the stream.
    var jitter: UInt32
}

/// One packet of RTCP.
enum RTCPPacket: Sendable, Equatable {
    case senderReport(SenderReport, [ReceptionReport])
    case receiverReport(ssrc: UInt32, [ReceptionReport])
    /// SDES with a CNAME (RFC 3550, 6.5.1).
    case canonicalName(ssrc: UInt32, String)
    case bye([UInt32])
    /// Packets of applications, feedback and extended reports, which are ignored.
    case other(type: UInt8)
}

/// Compound packets of RTCP (RFC 3550, 6.1).
enum RTCP {
    private enum Kind {
        static let senderReport: UInt8 = 200
        static let receiverReport: UInt8 = 201
        static let sourceDescription: UInt8 = 202
        static let bye: UInt8 = 203
    }

    // MARK: Writing

    /// The bytes of a compound packet. `.other` has none.
    static func bytes(_ packets: [RTCPPacket]) -> [UInt8] { packets.flatMap(bytes) }

    private static func bytes(_ packet: RTCPPacket) -> [UInt8] {
        switch packet {
        case .senderReport(let report, let blocks):
            let words = [
                report.ssrc, UInt32(report.ntp.value >> 32), UInt32(truncatingIfNeeded: report.ntp.value),
                report.rtpTime,
                report.packetCount,
                report.byteCount,
            ]
            return wrap(Kind.senderReport, blocks.count, words.flatMap(bigEndian) + blocks.flatMap(bytes))
        case .receiverReport(let ssrc, let blocks):
            return wrap(Kind.receiverReport, blocks.count, bigEndian(ssrc) + blocks.flatMap(bytes))
        case .canonicalName(let ssrc, let name):
            var text = Array(name.utf8.prefix(255))
            // Cut between characters.
            while String(validating: text, as: UTF8.self) == nil { text.removeLast() }
            return wrap(Kind.sourceDescription, 1, bigEndian(ssrc) + [1, UInt8(text.count)] + text + [0])
        case .bye(let sources):
            return wrap(Kind.bye, sources.count, sources.flatMap(bigEndian))
        case .other:
            return []
        }
    }

    private static func bytes(_ block: ReceptionReport) -> [UInt8] {
        let lost = UInt32(bitPattern: block.packetsLost) & 0xff_ffff | UInt32(block.fractionLost) << 24
        return [block.ssrc, lost, block.highestSequenceNumber, block.jitter, 0, 0].flatMap(bigEndian)
    }

    private static func bigEndian(_ word: UInt32) -> [UInt8] {
        (0..<4).reversed().map { UInt8(truncatingIfNeeded: word >> (8 * $0)) }
    }

    /// The packet with its header, filled up to words of four bytes.
    private static func wrap(_ kind: UInt8, _ count: Int, _ body: [UInt8]) -> [UInt8] {
        var body = body
        while body.count % 4 != 0 { body.append(0) }
        let words = body.count / 4
        return [0x80 | UInt8(count & 31), kind, UInt8(words >> 8), UInt8(words & 255)] + body
    }

    // MARK: Reading

    /// The packets of a compound, at most 32; nil where a size or the version is wrong. Anything after that is not
    /// looked at.
    static func parse(_ bytes: some Collection<UInt8>) -> [RTCPPacket]? {
        var rest = Array(bytes)[...]
        var packets: [RTCPPacket] = []
        while !rest.isEmpty, packets.count < 32 {
            guard rest.count >= 4 else { return nil }
            let head = Array(rest.prefix(4))
            let byteCount = (Int(head[2]) << 8 | Int(head[3])) * 4
            guard head[0] >> 6 == 2, rest.count >= 4 + byteCount else { return nil }
            var body = rest.dropFirst(4).prefix(byteCount)
            rest = rest.dropFirst(4 + byteCount)
            if head[0] & 0x20 != 0 {
                // Padding: its last byte says how much (RFC 3550, 6.4.1).
                guard let padding = body.last, padding > 0, Int(padding) <= body.count else { return nil }
                body = body.dropLast(Int(padding))
            }
            guard let packet = packet(head[1], count: Int(head[0] & 31), body) else { return nil }
            packets.append(packet)
        }
        return packets
    }

    /// The first reception report of a compound packet.
    static func receptionReport(_ bytes: [UInt8]) -> ReceptionReport? {
        for case .receiverReport(_, let blocks) in parse(bytes) ?? [] where !blocks.isEmpty { return blocks[0] }
        return nil
    }

    private static func packet(_ kind: UInt8, count: Int, _ body: ArraySlice<UInt8>) -> RTCPPacket? {
        var reader = WordReader(rest: body)
        switch kind {
        case Kind.senderReport:
            guard body.count >= 24 + 24 * count else { return nil }
            let ssrc = reader.next()
            let ntp = NTPTime(value: UInt64(reader.next()) << 32 | UInt64(reader.next()))
            let report = SenderReport(
                ssrc: ssrc, ntp: ntp, rtpTime: reader.next(), packetCount: reader.next(), byteCount: reader.next())
            return .senderReport(report, reader.blocks(count))
        case Kind.receiverReport:
            guard body.count >= 4 + 24 * count else { return nil }
            return .receiverReport(ssrc: reader.next(), reader.blocks(count))
        case Kind.sourceDescription:
            guard count > 0 else { return .other(type: kind) }
            guard body.count >= 4 else { return nil }
            let ssrc = reader.next()
            // A text that is not UTF-8 (RFC 3550, 6.5) is left out. A repaired one could become too long to be written.
            guard reader.rest.first == 1, let length = reader.rest.dropFirst().first,
                reader.rest.count >= 2 + Int(length),
                let name = String(validating: reader.rest.dropFirst(2).prefix(Int(length)), as: UTF8.self)
            else {
                return .other(type: kind)
            }
            return .canonicalName(ssrc: ssrc, name)
        case Kind.bye:
            guard body.count >= 4 * count else { return nil }
            return .bye((0..<count).map { _ in reader.next() })
        default:
            return .other(type: kind)
        }
    }

    /// Reads words of four bytes. The caller has checked how many there are.
    private struct WordReader {
        var rest: ArraySlice<UInt8>

        mutating func next() -> UInt32 {
            defer { rest = rest.dropFirst(4) }
            return rest.prefix(4).reduce(0) { $0 << 8 | UInt32($1) }
        }

        mutating func blocks(_ count: Int) -> [ReceptionReport] {
            (0..<count).map { _ in
                let ssrc = next()
                let loss = next()
                let lost = Int32(bitPattern: loss << 8) >> 8
                defer { rest = rest.dropFirst(8) }
                return ReceptionReport(
                    ssrc: ssrc, fractionLost: UInt8(loss >> 24), packetsLost: lost, highestSequenceNumber: next(),
                    jitter: next())
            }
        }
    }
}
