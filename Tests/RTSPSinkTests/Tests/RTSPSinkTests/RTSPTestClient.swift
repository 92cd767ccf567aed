// SPDX-License-Identifier: Apache-2.0

import Glibc

@testable import RTSPSink
import ServerAccess

/// A client over a plain, blocking socket, with a time limit for each read.
final class RTSPTestClient {
    struct Answer {
        var status: Int
        var headers: HeaderFields
        var body: [UInt8]
    }

    enum Item {
        case answer(Answer)
        case frame(channel: UInt8, payload: [UInt8])
    }

    struct Fault: Error { var what: String }

    let socket: Int32
    private var received: [UInt8] = []
    private var sequence = 0
    /// Frames that came while an answer was awaited.
    private(set) var frames: [(channel: UInt8, payload: [UInt8])] = []
    var session = ""

    init(port: Int, address: String = "127.0.0.1", receiveBuffer: Int32? = nil) throws {
        socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        if var size = receiveBuffer {
            setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        }
        var limit = timeval(tv_sec: 60, tv_usec: 0)
        setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        let storage = SocketAddressStorage(IPAddress(address)!, port: UInt16(port), isIPv6: false)
        guard connect(socket, storage.generic, storage.byteCount) == 0 else {
            throw Fault(what: "connect: \(String(cString: strerror(errno)))")
        }
    }

    deinit { close(socket) }

    // MARK: Saying

    func write(_ bytes: [UInt8]) {
        _ = bytes.withUnsafeBytes { send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
    }

    func request(_ method: String, _ url: String, _ headers: [(String, String)] = []) -> [UInt8] {
        sequence += 1
        return RTSPRequest(method, url, headers: HeaderFields([("CSeq", String(sequence))] + headers)).bytes
    }

    /// Says something and waits for its answer.
    @discardableResult
    func say(_ method: String, _ url: String, _ headers: [(String, String)] = []) throws -> Answer {
        write(request(method, url, headers + (session.isEmpty ? [] : [("Session", session)])))
        return try answer()
    }

    /// DESCRIBE, SETUP, PLAY; the answer to PLAY.
    @discardableResult
    func play(_ url: String, transport: String = "RTP/AVP/TCP;unicast;interleaved=0-1") throws -> Answer {
        try say("DESCRIBE", url)
        let setUp = try say("SETUP", "\(url)/trackID=0", [("Transport", transport)])
        guard let header = setUp.headers["Session"].flatMap(SessionHeader.init) else {
            throw Fault(what: "SETUP: \(setUp.status)")
        }
        session = header.id
        return try say("PLAY", url)
    }

    // MARK: Hearing

    func answer() throws -> Answer {
        while true {
            switch try next() {
            case .answer(let answer): return answer
            case .frame(let channel, let payload): frames.append((channel, payload))
            }
        }
    }

    /// The next interleaved frame.
    func frame() throws -> (channel: UInt8, payload: [UInt8]) {
        if !frames.isEmpty { return frames.removeFirst() }
        guard case .frame(let channel, let payload) = try next() else {
            throw Fault(what: "an answer where a frame was awaited")
        }
        return (channel, payload)
    }

    /// The NAL units of the next `count` access units, each ended by its marker bit.
    func units(_ count: Int) throws -> [[[UInt8]]] {
        var units: [[[UInt8]]] = []
        var depacketizer = H264Depacketizer()
        while units.count < count {
            let (channel, payload) = try frame()
            guard channel % 2 == 0, let header = RTPHeader(payload) else { continue }
            try depacketizer.add(Array(payload[12...]))
            guard header.marker else { continue }
            units.append(depacketizer.units)
            depacketizer = H264Depacketizer()
        }
        return units
    }

    /// Whether anything comes, the end of the connection too, within this time.
    func hasNews(milliseconds: Int32) -> Bool {
        var one = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
        return poll(&one, 1, milliseconds) > 0
    }

    /// True when the server closes the connection before anything else comes.
    func isClosed() -> Bool { (try? next()) == nil && wasClosed }
    private var wasClosed = false

    private func next() throws -> Item {
        while true {
            if let item = try take() { return item }
            var buffer = [UInt8](repeating: 0, count: 65536)
            let count = recv(socket, &buffer, buffer.count, 0)
            if count == 0 || count < 0 && errno == ECONNRESET {
                wasClosed = true
                throw Fault(what: "the server has closed")
            }
            guard count > 0 else { throw Fault(what: "nothing came: \(String(cString: strerror(errno)))") }
            received += buffer[..<count]
        }
    }

    private func take() throws -> Item? {
        if received.first == 0x24 {
            guard received.count >= 4 else { return nil }
            let byteCount = Int(received[2]) << 8 | Int(received[3])
            guard received.count >= 4 + byteCount else { return nil }
            defer { received.removeFirst(4 + byteCount) }
            return .frame(channel: received[1], payload: Array(received[4..<4 + byteCount]))
        }
        guard let end = received.firstRange(of: Array("\r\n\r\n".utf8)) else { return nil }
        let lines = String(decoding: received[..<end.lowerBound], as: UTF8.self).split(separator: "\r\n")
        let words = lines.first?.split(separator: " ") ?? []
        guard words.count >= 2, let status = Int(words[1]) else { throw Fault(what: "no answer: \(lines.first ?? "")") }
        let headers = HeaderFields(
            lines.dropFirst().compactMap { line in
                line.firstIndex(of: ":").map { (String(line[..<$0]), ASCII.trimmed(line[line.index(after: $0)...])) }
            })
        let byteCount = headers["Content-Length"].flatMap { Int($0) } ?? 0
        guard received.count >= end.upperBound + byteCount else { return nil }
        defer { received.removeFirst(end.upperBound + byteCount) }
        return .answer(
            Answer(status: status, headers: headers, body: Array(received[end.upperBound..<end.upperBound + byteCount]))
        )
    }
}
