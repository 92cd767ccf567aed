// SPDX-License-Identifier: Apache-2.0

import Publishing
import Testing

@testable import MQTTEvents

/// What a broker, or whoever answers in its place, may send to `mqtt-events`, and what it is sent.
@Suite struct MQTTParserTests {
    private static func read(_ bytes: [UInt8], step: Int = .max) throws -> [MQTTParser.Piece] {
        var (parser, pieces) = (MQTTParser(), [MQTTParser.Piece]())
        var rest = bytes[...]
        while !rest.isEmpty {
            parser.append(Array(rest.prefix(step)))
            rest = rest.dropFirst(step)
            while let piece = try parser.next() { pieces.append(piece) }
        }
        return pieces
    }

    @Test func readsTheSameInPiecesOfAnySize() throws {
        let topic: [UInt8] = [0, 3] + Array("a/b".utf8)
        let bytes: [UInt8] =
            [0x20, 2, 0, 0, 0x40, 2, 1, 2, 0x90, 3, 0xFF, 0xFF, 1, 0xD0, 0]
            + [0x31, 7] + topic + Array("hi".utf8) + [0x32, 7] + topic + [0, 9]
        let pieces: [MQTTParser.Piece] = [
            .connected(0), .acknowledged(258), .subscribed, .pong,
            .message(topic: Array("a/b".utf8), payload: Array("hi".utf8), id: nil),
            .message(topic: Array("a/b".utf8), payload: [], id: 9),
        ]
        for step in 1...bytes.count { #expect(try Self.read(bytes, step: step) == pieces) }
    }

    @Test(
        arguments: [
            [0x20, 3, 0, 0, 0], [0x20, 0xFF, 0xFF, 0xFF, 0x7F], [0x40, 0], [0x90, 0xFF, 0xFF, 0xFF, 0x7F],
            [0xD0, 1, 0],
            [0x30, 1, 0], [0x30, 0xFF, 0xFF, 0xFF, 0xFF, 1], [0x36, 4, 0, 0, 0, 1], [0x30, 2, 0, 1],
            [0x32, 3, 0, 0, 1],
            [0x50, 2, 0, 1], [0x10, 0], [0, 0], Array("HTTP/1.1".utf8),
        ] as [[UInt8]]) func refusesWhatNoBrokerSends(bytes: [UInt8])
    {
        #expect(throws: ServerFault("what answers does not speak MQTT 3.1.1")) { try Self.read(bytes) }
    }

    /// The longest packet of the protocol, 256 MiB, is announced; a part of it is enough.
    @Test func keepsNoMoreThanTheBeginningOfALongMessage() throws {
        var parser = MQTTParser()
        parser.append([0x32, 0xFF, 0xFF, 0xFF, 0x7F, 0, 1, 97, 0, 5])
        #expect(try parser.next() == nil)
        var pieces: [MQTTParser.Piece] = []
        for _ in 0..<64 {
            parser.append([UInt8](repeating: 0, count: 65_536))
            while let piece = try parser.next() { pieces.append(piece) }
        }
        #expect(pieces == [.message(topic: [97], payload: nil, id: 5)])
        // What follows a message that is left out is read.
        let long = [0x30, 0x80, 0x80, 0x08] + [UInt8](repeating: 0, count: 1 << 17) + [0xD0, 0]
        #expect(try Self.read(long, step: 1000) == [.message(topic: [], payload: nil, id: nil), .pong])
    }

    @Test func livesThroughAnyBytes() {
        var random = SplitRandom(state: 38)
        let kinds: [UInt8] = [0x20, 0x30, 0x32, 0x34, 0x3F, 0x40, 0x90, 0xD0]
        for _ in 0..<5000 {
            let bytes = (0..<Int.random(in: 1...6, using: &random)).flatMap { _ -> [UInt8] in
                let count = Int.random(in: 0...12, using: &random)
                let length = Bool.random(using: &random) ? count : Int.random(in: 0...127, using: &random)
                return [kinds.randomElement(using: &random)!, UInt8(length)]
                    + (0..<count).map { _ in UInt8.random(in: 0...255, using: &random) & 3 }
            }
            for piece in (try? Self.read(bytes, step: Int.random(in: 1...20, using: &random))) ?? [] {
                if case .message(let topic, _, _) = piece { #expect(topic.count <= bytes.count) }
            }
        }
    }

    @Test func writesPacketsAsTheStandardHasThem() {
        #expect(
            MQTTPacket.connect(
                client: "c", keepAliveSeconds: 15, will: MQTTPacket.Will(topic: "w", payload: "off"), name: "n",
                password: "p")
                == [0x10, 27, 0, 4] + Array("MQTT".utf8) + [4, 0xEC, 0, 15, 0, 1, 99, 0, 1, 119, 0, 3]
                + Array("off".utf8) + [0, 1, 110, 0, 1, 112])
        #expect(MQTTPacket.publish("hi", to: "t", retained: true, id: 258) == [0x33, 7, 0, 1, 116, 1, 2, 104, 105])
        #expect(MQTTPacket.subscribe("t", id: 65_535) == [0x82, 6, 0xFF, 0xFF, 0, 1, 116, 1])
        let long = MQTTPacket.publish(String(repeating: "x", count: 200_000), to: "t", retained: false, id: 1)
        #expect(Array(long.prefix(4)) == [0x32, 0xC5, 0x9A, 0x0C])
        #expect(long.count == 4 + 200_005)
    }
}
