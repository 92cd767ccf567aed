// SPDX-License-Identifier: Apache-2.0

import Publishing

/// A message of a NATS server.
struct NATSMessage: Equatable {
    var subject: String
    /// `NATS/1.0` with a status, and fields; empty where there are none.
    var headers: [UInt8] = []
    var body: [UInt8] = []

    /// The status of ``headers``: 503 where nobody takes what was sent.
    var status: Int? {
        guard headers.starts(with: Array("NATS/1.0 ".utf8)) else { return nil }
        return Int(String(decoding: headers.dropFirst(9).prefix(3), as: UTF8.self))
    }
}

/// Takes apart what a NATS server sends. Every size is bounded, and no number reaches arithmetic unchecked. Pure.
///
/// - SeeAlso: docs.nats.io, "NATS Client Protocol"; of its messages INFO, MSG, HMSG, PING, PONG, +OK and -ERR come to a
///   client.
struct NATSParser {
    enum Piece: Equatable {
        case info([UInt8])
        case ping
        case pong
        case ok
        /// A fault that the server names, in words that may be shown.
        case fault(String)
        case message(NATSMessage)
        /// A message of more than ``mostMessageBytes`` to this subject. Its text was not kept.
        case tooLarge(String)
    }

    /// The longest line. INFO names all servers of a cluster; a server's own limit for the others is 4 KiB.
    static let mostLineBytes = 65_536
    /// The largest message that is kept. The largest that is expected holds an event (``EventText/mostBytes``) in
    /// base64.
    static let mostMessageBytes = 1 << 20
    /// The largest message that may be announced: no server can be set to take larger ones (`max_payload`).
    static let mostAnnouncedBytes = 64 << 20

    private enum State {
        case line
        /// A message whose line has come; `total` bytes and a line end follow, the first `headers` of them headers.
        case message(String, headers: Int, total: Int)
        /// The same; so many bytes are still to be left out.
        case skipping(String, left: Int)
    }

    private var state = State.line
    private var buffer: [UInt8] = []
    /// How much of ``buffer`` has been taken, and how much was searched for the end of a line.
    private var (begin, searched) = (0, 0)

    mutating func append(_ bytes: [UInt8]) {
        if begin == buffer.count {
            (buffer, begin, searched) = (bytes, 0, 0)
        } else {
            buffer.removeFirst(begin)
            (begin, searched) = (0, searched - begin)
            buffer += bytes
        }
    }

    /// The next piece; nil where more bytes are needed.
    ///
    /// - Throws: ``ServerFault`` where this is not what a NATS server sends.
    mutating func next() throws(ServerFault) -> Piece? {
        while true {
            let left = buffer.count - begin
            switch state {
            case .line:
                guard let end = buffer[max(searched, begin)...].firstIndex(of: 10) else {
                    searched = buffer.count
                    guard left <= Self.mostLineBytes else { throw Self.longLine }
                    return nil
                }
                guard end - begin <= Self.mostLineBytes else { throw Self.longLine }
                let line = buffer[begin..<end]
                (begin, searched) = (end + 1, end + 1)
                if let piece = try take(line.last == 13 ? line.dropLast() : line) { return piece }
            case .message(let subject, let headers, let total):
                guard left >= total + 2 else { return nil }
                let middle = begin + headers
                let message = NATSMessage(
                    subject: subject, headers: Array(buffer[begin..<middle]),
                    body: Array(buffer[middle..<begin + total]))
                guard buffer[begin + total] == 13, buffer[begin + total + 1] == 10 else {
                    throw ServerFault("the server sent a message that is longer than it had announced")
                }
                begin += total + 2
                (state, searched) = (.line, begin)
                return .message(message)
            case .skipping(let subject, let rest):
                let count = min(left, rest)
                begin += count
                guard count == rest else {
                    state = .skipping(subject, left: rest - count)
                    return nil
                }
                (state, searched) = (.line, begin)
                return .tooLarge(subject)
            }
        }
    }

    private static let longLine = ServerFault("the server sent a line of more than \(mostLineBytes >> 10) KiB")

    private mutating func take(_ line: ArraySlice<UInt8>) throws(ServerFault) -> Piece? {
        let space = line.firstIndex { $0 == 32 || $0 == 9 } ?? line.endIndex
        let rest = line[space...].drop { $0 == 32 || $0 == 9 }
        switch String(decoding: line[..<space].prefix(8), as: UTF8.self).uppercased() {
        case "INFO": return .info(Array(rest))
        case "PING": return .ping
        case "PONG": return .pong
        case "+OK": return .ok
        case "-ERR":
            let bare = rest.count > 1 && rest.first == 39 && rest.last == 39 ? rest.dropFirst().dropLast() : rest
            return .fault(ServerFault.words(bare))
        case "MSG":
            let parts = rest.split { $0 == 32 || $0 == 9 }
            guard parts.count == 3 || parts.count == 4 else { throw Self.wrong }
            try expect(parts[0], headers: 0, total: Self.size(parts[parts.count - 1]))
        case "HMSG":
            let parts = rest.split { $0 == 32 || $0 == 9 }
            guard parts.count == 4 || parts.count == 5 else { throw Self.wrong }
            let (headers, total) = (try Self.size(parts[parts.count - 2]), try Self.size(parts[parts.count - 1]))
            guard headers <= total else { throw Self.wrong }
            try expect(parts[0], headers: headers, total: total)
        default: throw Self.wrong
        }
        return nil
    }

    private static let wrong = ServerFault("what answers does not speak NATS's protocol")

    private mutating func expect(_ subject: ArraySlice<UInt8>, headers: Int, total: Int) throws(ServerFault) {
        let subject = String(decoding: subject.prefix(256), as: UTF8.self)
        state =
            total <= Self.mostMessageBytes
            ? .message(subject, headers: headers, total: total) : .skipping(subject, left: total + 2)
    }

    private static func size(_ digits: ArraySlice<UInt8>) throws(ServerFault) -> Int {
        guard (1...9).contains(digits.count), digits.allSatisfy({ (48...57).contains($0) }),
            let size = Int(String(decoding: digits, as: UTF8.self)), size <= mostAnnouncedBytes
        else {
            throw ServerFault(
                "the server announced a message of '\(ServerFault.words(digits.prefix(20)))' bytes, and NATS has none of more than \(mostAnnouncedBytes >> 20) MiB"
            )
        }
        return size
    }
}
