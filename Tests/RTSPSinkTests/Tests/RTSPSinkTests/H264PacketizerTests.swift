// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import RTSPSink

/// Puts NAL units together again from RTP payloads, as RFC 6184 has it, and refuses what breaks its rules.
struct H264Depacketizer {
    private(set) var units: [[UInt8]] = []
    private var fragment: [UInt8]?

    mutating func add(_ payload: [UInt8]) throws {
        struct Broken: Error { var why: String }
        guard let first = payload.first else { throw Broken(why: "an empty payload") }
        if fragment != nil, first & 31 != 28 { throw Broken(why: "a unit between fragments") }
        switch first & 31 {
        case 1...23: units.append(payload)
        case 24:
            var rest = payload.dropFirst()
            var count = 0
            var importance: UInt8 = 0
            while !rest.isEmpty {
                guard rest.count > 2 else { throw Broken(why: "a cut size") }
                let size = Int(rest.removeFirst()) << 8 | Int(rest.removeFirst())
                guard size > 0, rest.count >= size else { throw Broken(why: "a cut unit") }
                units.append(Array(rest.prefix(size)))
                importance = max(importance, units.last![0] & 0x60)
                rest = rest.dropFirst(size)
                count += 1
            }
            guard count > 1, importance == first & 0x60 else {
                throw Broken(why: "an aggregate of \(count), importance \(first & 0x60)")
            }
        case 28:
            guard payload.count > 2 else { throw Broken(why: "an empty fragment") }
            let (isStart, isEnd) = (payload[1] & 0x80 != 0, payload[1] & 0x40 != 0)
            guard payload[1] & 0x20 == 0, !(isStart && isEnd) else { throw Broken(why: "flags \(payload[1])") }
            guard isStart == (fragment == nil) else { throw Broken(why: "fragments out of order") }
            if isStart { fragment = [first & 0xe0 | payload[1] & 31] }
            fragment! += payload[2...]
            if isEnd {
                units.append(fragment!)
                fragment = nil
            }
        default: throw Broken(why: "type \(first & 31)")
        }
    }
}

@Suite struct H264PacketizerTests {
    static let sps: [UInt8] = [0x67, 0x64, 0x00, 0x1f, 0xac]
    static let pps: [UInt8] = [0x68, 0xeb, 0xe3]

    static func unit(_ head: UInt8, _ byteCount: Int) -> [UInt8] {
        [head] + (1..<max(byteCount, 1)).map { UInt8($0 % 251) | 1 }
    }

    static func annexB(_ units: [[UInt8]]) -> [UInt8] {
        units.enumerated().flatMap { ($0 == 0 ? [0, 0, 0, 1] : [0, 0, 1]) + $1 }
    }

    static func packetizer(_ mostPacketBytes: Int = 112, first: UInt16 = 0xfffe) -> NALPacketizer {
        NALPacketizer(
            NALPacketizer.Sets(sps: sps, pps: pps), mostPacketBytes: mostPacketBytes, payloadType: 96, ssrc: 0xabcd,
            firstSequenceNumber: first)
    }

    /// Headers and payloads of the packets of one unit; checks the interleaving headers on the way.
    static func packets(_ packetizer: inout NALPacketizer, _ stream: [UInt8], isKeyframe: Bool = false) -> [(
        RTPHeader, [UInt8]
    )] {
        stream.withUnsafeBytes { bytes in
            let plan = packetizer.plan(bytes, isKeyframe: isKeyframe)
            var target = [UInt8](repeating: 0xee, count: plan.byteCount)
            var extents: [NALPacketizer.Extent] = []
            target.withUnsafeMutableBytes { packetizer.write(bytes, timestamp: 777, to: $0, packets: &extents) }
            #expect(extents.count == plan.packetCount)
            #expect(extents.last?.end ?? 0 == target.count)
            var begin = 0
            return extents.map { extent in
                let size = [UInt8(extent.byteCount >> 8), UInt8(extent.byteCount & 255)]
                #expect(Array(target[begin..<extent.offset]) == [0x24, 0] + size)
                begin = extent.end
                return (RTPHeader(target[extent.offset...])!, Array(target[(extent.offset + 12)..<extent.end]))
            }
        }
    }

    struct Case: Sendable, CustomStringConvertible {
        var name: String
        var units: [[UInt8]]
        var isKeyframe = false
        /// The payload's type of each packet.
        var types: [UInt8]
        var description: String { name }
    }

    /// Payloads of at most 100 bytes.
    static let cases = [
        Case(name: "one small unit", units: [unit(0x41, 20)], types: [1]),
        Case(name: "one that fits exactly", units: [unit(0x41, 100)], types: [1]),
        Case(name: "one byte too many", units: [unit(0x41, 101)], types: [28, 28]),
        Case(name: "fragments that fit exactly", units: [unit(0x61, 1 + 3 * 98)], types: [28, 28, 28]),
        Case(name: "neighbours", units: [unit(0x06, 10), unit(0x41, 30), unit(0x41, 40)], types: [24]),
        Case(name: "neighbours that do not fit", units: [unit(0x41, 60), unit(0x41, 60)], types: [1, 1]),
        Case(
            name: "a keyframe gets its parameter sets", units: [unit(0x65, 250)], isKeyframe: true,
            types: [24, 28, 28, 28]),
        Case(name: "a keyframe that has them", units: [sps, pps, unit(0x65, 50)], isKeyframe: true, types: [24]),
        Case(
            name: "slices", units: [unit(0x41, 300), unit(0x41, 20), unit(0x41, 20), unit(0x41, 200)],
            types: [28, 28, 28, 28, 24, 28, 28, 28]),
    ]

    @Test(arguments: cases) func packsAsRFC6184Says(test: Case) throws {
        var packetizer = Self.packetizer()
        let packets = Self.packets(&packetizer, Self.annexB(test.units), isKeyframe: test.isKeyframe)
        #expect(packets.map { $0.1[0] & 31 } == test.types)
        var depacketizer = H264Depacketizer()
        for (index, (header, payload)) in packets.enumerated() {
            #expect(
                header
                    == RTPHeader(
                        marker: index == packets.count - 1, payloadType: 96, sequenceNumber: 0xfffe &+ UInt16(index),
                        timestamp: 777,
                        ssrc: 0xabcd))
            #expect(payload.count <= 100)
            try depacketizer.add(payload)
        }
        let hasOwn = test.units.contains { $0[0] & 31 == 7 }
        #expect(depacketizer.units == (test.isKeyframe && !hasOwn ? [Self.sps, Self.pps] : []) + test.units)
        #expect(packetizer.sequenceNumber == 0xfffe &+ UInt16(packets.count))
    }

    @Test func givesRandomUnitsBack() throws {
        var generator = SystemRandomNumberGenerator()
        for mostPacketBytes in [64, 200, 1400] {
            var packetizer = Self.packetizer(mostPacketBytes)
            for _ in 0..<200 {
                let units = (0..<Int.random(in: 1...8, using: &generator)).map { _ in
                    Self.unit(
                        [0x41, 0x65, 0x06, 0x01].randomElement()!,
                        [3, 40, 90, 188, 1388, 5000].randomElement()! + Int.random(in: 0...3))
                }
                var depacketizer = H264Depacketizer()
                for (_, payload) in Self.packets(&packetizer, Self.annexB(units)) { try depacketizer.add(payload) }
                #expect(depacketizer.units == units)
            }
        }
    }

    @Test(arguments: [[], [0, 0, 1], [0, 0, 0, 1, 0, 0, 1], [1, 2, 3], [0, 0]] as [[UInt8]]) func makesNothingOfNothing(
        stream: [UInt8]
    ) {
        var packetizer = Self.packetizer()
        #expect(Self.packets(&packetizer, stream, isKeyframe: true).isEmpty)
    }

    @Test func takesTheFirstSetsOfAFormat() {
        #expect(
            NALPacketizer.sets(of: Self.annexB([Self.sps, Self.pps])).map { [$0.sps, $0.pps] } == [
                Self.sps, Self.pps,
            ])
        #expect(NALPacketizer.sets(of: Self.annexB([Self.pps])) == nil)
    }
}
