// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import RTSPSink

/// Puts NAL units together again from RTP payloads, as RFC 7798 has it, and refuses what breaks its rules.
struct H265Depacketizer {
    private(set) var units: [[UInt8]] = []
    private var fragment: [UInt8]?

    mutating func add(_ payload: [UInt8]) throws {
        struct Broken: Error { var why: String }
        guard payload.count > 2 else { throw Broken(why: "a payload without a unit") }
        let type = payload[0] >> 1 & 63
        if fragment != nil, type != 49 { throw Broken(why: "a unit between fragments") }
        switch type {
        case 0...47: units.append(payload)
        case 48:
            var rest = payload.dropFirst(2)
            var count = 0
            var temporal: UInt8 = 7
            while !rest.isEmpty {
                guard rest.count > 2 else { throw Broken(why: "a cut size") }
                let size = Int(rest.removeFirst()) << 8 | Int(rest.removeFirst())
                guard size > 1, rest.count >= size else { throw Broken(why: "a cut unit") }
                units.append(Array(rest.prefix(size)))
                temporal = min(temporal, units.last![1] & 7)
                rest = rest.dropFirst(size)
                count += 1
            }
            guard count > 1, payload[1] & 7 == temporal else { throw Broken(why: "an aggregate of \(count)") }
        case 49:
            guard payload.count > 3 else { throw Broken(why: "an empty fragment") }
            let (isStart, isEnd) = (payload[2] & 0x80 != 0, payload[2] & 0x40 != 0)
            guard !(isStart && isEnd), isStart == (fragment == nil) else { throw Broken(why: "fragments out of order") }
            if isStart { fragment = [payload[0] & 0x81 | (payload[2] & 63) << 1, payload[1]] }
            fragment! += payload[3...]
            if isEnd {
                units.append(fragment!)
                fragment = nil
            }
        default: throw Broken(why: "type \(type)")
        }
    }
}

@Suite struct H265PacketizerTests {
    static let sets = NALPacketizer.Sets(
        vps: [64, 1, 0x0C, 1], sps: [66, 1, 1, 2, 3], pps: [68, 1, 0xC1])

    private static func unit(_ type: UInt8, _ temporal: UInt8, _ byteCount: Int) -> [UInt8] {
        [type << 1, temporal] + (2..<max(byteCount, 2)).map { UInt8($0 % 251) | 1 }
    }

    private static func packetizer(_ mostPacketBytes: Int) -> NALPacketizer {
        NALPacketizer(sets, mostPacketBytes: mostPacketBytes, payloadType: 96, ssrc: 1, firstSequenceNumber: 0)
    }

    @Test func givesRandomUnitsBack() throws {
        var generator = SystemRandomNumberGenerator()
        for mostPacketBytes in [64, 200, 1400] {
            var packetizer = Self.packetizer(mostPacketBytes)
            for _ in 0..<200 {
                let units = (0..<Int.random(in: 1...8, using: &generator)).map { _ in
                    Self.unit(
                        [1, 19, 21, 39, 0].randomElement()!, .random(in: 1...3),
                        [3, 40, 90, 188, 1388, 5000].randomElement()! + Int.random(in: 0...3))
                }
                var depacketizer = H265Depacketizer()
                let packets = H264PacketizerTests.packets(&packetizer, H264PacketizerTests.annexB(units))
                for (_, payload) in packets {
                    #expect(payload.count <= mostPacketBytes - RTPHeader.byteCount)
                    try depacketizer.add(payload)
                }
                #expect(depacketizer.units == units)
                #expect(packets.map(\.0.marker) == packets.indices.map { $0 == packets.count - 1 })
            }
        }
    }

    @Test func putsAllParameterSetsBeforeAKeyframeThatHasNone() throws {
        var packetizer = Self.packetizer(1400)
        let picture = Self.unit(19, 1, 300)
        var depacketizer = H265Depacketizer()
        for (_, payload) in H264PacketizerTests.packets(
            &packetizer, H264PacketizerTests.annexB([picture]), isKeyframe: true)
        {
            try depacketizer.add(payload)
        }
        #expect(depacketizer.units == [Self.sets.vps, Self.sets.sps, Self.sets.pps, picture])
    }

    @Test func describesAndReadsAStream() {
        let description = SessionDescription(
            sessionID: 7, address: "10.0.0.1", name: "door", vps: Self.sets.vps, sps: Self.sets.sps, pps: Self.sets.pps)
        #expect(description.text.contains("a=rtpmap:96 H265/90000\r\n"))
        #expect(description.text.contains("sprop-vps=QAEMAQ==; sprop-sps=QgEBAgM=; sprop-pps=RAHB"))
        #expect(SessionDescription(parsing: description.text) == description)
    }

    @Test func takesTheSetsOfAFormat() {
        let bytes = H264PacketizerTests.annexB([Self.sets.vps, Self.sets.sps, Self.sets.pps])
        #expect(NALPacketizer.sets(of: bytes, .h265) == Self.sets)
        #expect(NALPacketizer.sets(of: H264PacketizerTests.annexB([Self.sets.sps, Self.sets.pps]), .h265) == nil)
    }
}
