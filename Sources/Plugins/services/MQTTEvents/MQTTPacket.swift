// SPDX-License-Identifier: Apache-2.0

import Publishing

/// The packets that a client sends. Pure.
///
/// - SeeAlso: MQTT 3.1.1 (OASIS), chapter 3.
enum MQTTPacket {
    /// The last will. It is retained, and sent with QoS 1.
    struct Will {
        var topic: String
        var payload: String
    }

    /// A session that the broker keeps over connections.
    static func connect(client: String, keepAliveSeconds: Int, will: Will, name: String?, password: String?) -> [UInt8]
    {
        // The will: there, QoS 1, retained.
        let flags: UInt8 = 0b0010_1100 | (name == nil ? 0 : 0b1000_0000) | (password == nil ? 0 : 0b0100_0000)
        var body = text("MQTT") + [4, flags] + two(UInt16(clamping: keepAliveSeconds))
        body += text(client) + text(will.topic) + text(will.payload)
        for more in [name, password].compactMap({ $0 }) { body += text(more) }
        return packet(0x10, body)
    }

    /// With QoS 1.
    static func publish(_ payload: String, to topic: String, retained: Bool, id: UInt16) -> [UInt8] {
        packet(retained ? 0x33 : 0x32, text(topic) + two(id) + Array(payload.utf8))
    }

    /// The bit of a first byte that says: this may have come before.
    static let again: UInt8 = 8

    /// With QoS 1.
    static func subscribe(_ topic: String, id: UInt16) -> [UInt8] { packet(0x82, two(id) + text(topic) + [1]) }

    static func acknowledge(_ id: UInt16) -> [UInt8] { packet(0x40, two(id)) }

    static let ping: [UInt8] = [0xC0, 0]
    static let disconnect: [UInt8] = [0xE0, 0]

    private static func packet(_ first: UInt8, _ body: [UInt8]) -> [UInt8] {
        var (length, header) = (body.count, [first])
        repeat {
            let digit = UInt8(truncatingIfNeeded: length & 127)
            length >>= 7
            header.append(length > 0 ? digit | 128 : digit)
        } while length > 0
        return header + body
    }

    private static func two(_ number: UInt16) -> [UInt8] { [UInt8(number >> 8), UInt8(number & 255)] }

    private static func text(_ text: String) -> [UInt8] {
        let bytes = Array(text.utf8.prefix(65_535))
        return two(UInt16(bytes.count)) + bytes
    }
}

/// Takes apart what a broker sends to a client that subscribes with QoS 1. Keeps at most
/// ``mostKeptBytes`` of a packet, whatever its length. Pure.
///
/// - SeeAlso: MQTT 3.1.1 (OASIS), section 2.2 and chapter 3.
struct MQTTParser {
    enum Piece: Equatable {
        /// The answer to CONNECT; 0 is yes.
        case connected(UInt8)
        /// The broker has a message of ours.
        case acknowledged(UInt16)
        case subscribed
        case pong
        /// A message; `id` where the broker wants it acknowledged. Nil is the payload of one that was too long to keep.
        case message(topic: [UInt8], payload: [UInt8]?, id: UInt16?)
    }

    /// Bytes of a packet that are kept: topic and id of any message have room.
    static let mostKeptBytes = 2 + 65_535 + 2

    private enum State {
        case header
        /// A packet with this first byte, of which so many bytes follow.
        case body(UInt8, length: Int)
        /// The rest of a message that is too long to keep.
        case skipping(left: Int)
    }

    private var state = State.header
    private var buffer: [UInt8] = []
    private var begin = 0

    mutating func append(_ bytes: [UInt8]) {
        buffer.removeFirst(begin)
        begin = 0
        buffer += bytes
    }

    /// The next piece; nil where more bytes are needed.
    ///
    /// - Throws: ``ServerFault`` where a broker must not send this.
    mutating func next() throws(ServerFault) -> Piece? {
        while true {
            let left = buffer.count - begin
            switch state {
            case .header:
                guard let (first, length, size) = try header() else { return nil }
                try Self.check(first, length)
                begin += size
                state = .body(first, length: length)
            case .body(let first, let length):
                let kept = min(length, Self.mostKeptBytes)
                guard left >= kept else { return nil }
                let body = buffer[begin..<begin + kept]
                begin += kept
                state = length > kept ? .skipping(left: length - kept) : .header
                return try Self.piece(first, body, isWhole: length == kept)
            case .skipping(let rest):
                let count = min(left, rest)
                begin += count
                state = count == rest ? .header : .skipping(left: rest - count)
                guard count == rest else { return nil }
            }
        }
    }

    /// The first byte, the length of what follows the header, and the header's own.
    private func header() throws(ServerFault) -> (UInt8, Int, Int)? {
        let bytes = buffer[begin...].prefix(5)
        guard let first = bytes.first else { return nil }
        var length = 0
        for (index, byte) in bytes.dropFirst().enumerated() {
            guard index < 4 else { break }
            length |= Int(byte & 127) << (7 * index)
            if byte < 128 { return (first, length, index + 2) }
        }
        guard bytes.count < 5 else { throw Self.wrong }
        return nil
    }

    private static let wrong = ServerFault("what answers does not speak MQTT 3.1.1")

    /// Every packet but a message has one length (of SUBACK for one topic, too).
    private static func check(_ first: UInt8, _ length: Int) throws(ServerFault) {
        let isRight =
            switch first {
            case 0x20, 0x40: length == 2
            case 0x90: length == 3
            case 0xD0: length == 0
            case 0x30...0x3F: length >= 2 && first & 6 != 6
            default: false
            }
        guard isRight else { throw wrong }
    }

    private static func piece(
        _ first: UInt8, _ body: ArraySlice<UInt8>, isWhole: Bool
    ) throws(ServerFault) -> Piece {
        let bytes = Array(body)
        switch first {
        case 0x20: return .connected(bytes[1])
        case 0x40: return .acknowledged(UInt16(bytes[0]) << 8 | UInt16(bytes[1]))
        case 0x90: return .subscribed
        case 0xD0: return .pong
        default:
            let end = 2 + (Int(bytes[0]) << 8 | Int(bytes[1]))
            let needsID = first & 6 != 0
            guard bytes.count >= end + (needsID ? 2 : 0) else { throw wrong }
            let id = needsID ? UInt16(bytes[end]) << 8 | UInt16(bytes[end + 1]) : nil
            let payload = Array(bytes[(end + (needsID ? 2 : 0))...])
            return .message(topic: Array(bytes[2..<end]), payload: isWhole ? payload : nil, id: id)
        }
    }
}
