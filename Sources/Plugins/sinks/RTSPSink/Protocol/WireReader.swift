// SPDX-License-Identifier: Apache-2.0

/// Cuts the bytes of an RTSP connection into requests and interleaved frames, whether they come few or many at a time.
///
/// ``Limits`` bounds every size, and each byte is looked at a fixed number of times, however the input is cut.
/// Nothing can be read after a fault, since the start of the next message is unknown.
struct WireReader: Sendable {
    /// The most a client may send in one piece.
    struct Limits: Sendable {
        /// Request line and all header fields together.
        var headBytes = 16 << 10
        var requestLineBytes = 4 << 10
        var fieldCount = 100
        var bodyBytes = 16 << 10
        /// A larger interleaved frame is skipped: clients send only RTCP.
        var frameBytes = 4 << 10
        /// Bytes that are neither frame nor message and are skipped between two messages. The firmware of some cameras
        /// and recorders emits them.
        var strayBytes = 1 << 10
    }

    enum Item: Sendable, Equatable {
        case request(RTSPRequest)
        /// A response of the client. The server sends no requests, so it is ignored.
        case response
        /// An interleaved frame (RFC 2326, 10.12).
        case frame(channel: UInt8, payload: [UInt8])
        /// No more can be read from this connection.
        case fault(RTSPStatus, String)
    }

    private enum State {
        case idle
        case head
        case body(RTSPRequest?, byteCount: Int)
        case frame(channel: UInt8, byteCount: Int)
        case skip(byteCount: Int)
        /// After an HTTP request: only the reader of that request knows what follows.
        case raw
        case broken
    }

    private let limits: Limits
    private var state = State.idle
    private var buffer: [UInt8] = []
    /// The first byte that was not used yet.
    private var start = 0
    /// The head has no empty line before this index.
    private var scanned = 0
    private var strayCount = 0

    init(limits: Limits = Limits()) { self.limits = limits }

    /// Bytes that wait for the rest of their message; at most about the largest limit.
    var pendingByteCount: Int { buffer.count - start }

    /// True between messages, and once HTTP is spoken.
    var isIdle: Bool {
        switch state {
        case .idle: pendingByteCount == 0
        case .raw: true
        default: false
        }
    }

    /// The bytes that came after an HTTP request, each given only once.
    mutating func takeRaw() -> [UInt8] {
        guard case .raw = state else { return [] }
        defer {
            buffer = []
            start = 0
        }
        return Array(buffer[start...])
    }

    /// Adds bytes that have come.
    mutating func append(_ bytes: UnsafeRawBufferPointer) {
        if case .broken = state { return }
        if start > 0, start == buffer.count || start > 4096 {
            buffer.removeSubrange(..<start)
            scanned = max(scanned - start, 0)
            start = 0
        }
        buffer.append(contentsOf: bytes)
    }

    mutating func append(_ bytes: [UInt8]) { bytes.withUnsafeBytes { append($0) } }

    /// The next whole item; nil until more has come.
    mutating func next() -> Item? {
        while true {
            switch state {
            case .idle:
                guard begin() else { return nil }
            case .head:
                switch readHead() {
                case .incomplete: return nil
                case .bodyFollows: continue
                case .fault(let status, let text): return fail(status, text)
                }
            case .body(let request, let byteCount):
                guard buffer.count - start >= byteCount else { return nil }
                state = .idle
                defer { start += byteCount }
                guard var request else { return .response }
                request.body = Array(buffer[start..<start + byteCount])
                if request.version.hasPrefix("HTTP/") { state = .raw }
                return .request(request)
            case .frame(let channel, let byteCount):
                guard buffer.count - start >= byteCount else { return nil }
                state = .idle
                defer { start += byteCount }
                return .frame(channel: channel, payload: Array(buffer[start..<start + byteCount]))
            case .skip(let byteCount):
                let skipped = min(byteCount, buffer.count - start)
                start += skipped
                state = skipped == byteCount ? .idle : .skip(byteCount: byteCount - skipped)
                if skipped < byteCount { return nil }
            case .raw, .broken:
                return nil
            }
        }
    }

    /// Finds out what comes next; false when more bytes are needed.
    private mutating func begin() -> Bool {
        while start < buffer.count {
            switch buffer[start] {
            case 13, 10:
                // Empty lines before a message are tolerated (RFC 2616, 4.1).
                start += 1
            case 0x24:
                guard buffer.count - start >= 4 else { return false }
                let byteCount = Int(buffer[start + 2]) << 8 | Int(buffer[start + 3])
                let channel = buffer[start + 1]
                start += 4
                strayCount = 0
                state =
                    byteCount > limits.frameBytes
                    ? .skip(byteCount: byteCount) : .frame(channel: channel, byteCount: byteCount)
                return true
            case 33...126:
                scanned = start
                strayCount = 0
                state = .head
                return true
            default:
                start += 1
                strayCount += 1
                if strayCount > limits.strayBytes {
                    // It is read as a head at once, which refuses it.
                    state = .head
                    scanned = start
                    return true
                }
            }
        }
        return false
    }

    private enum HeadProgress {
        case incomplete
        case bodyFollows
        case fault(RTSPStatus, String)
    }

    private mutating func readHead() -> HeadProgress {
        if strayCount > limits.strayBytes { return .fault(.badRequest, "the data is not RTSP") }
        guard let end = endOfHead() else {
            let byteCount = buffer.count - start
            if byteCount > limits.headBytes {
                return .fault(.badRequest, "the header is larger than \(limits.headBytes) bytes")
            }
            if byteCount > limits.requestLineBytes, !buffer[start...].prefix(limits.requestLineBytes).contains(10) {
                return .fault(.urlTooLong, "the request line is longer than \(limits.requestLineBytes) bytes")
            }
            return .incomplete
        }
        guard end - start <= limits.headBytes else {
            return .fault(.badRequest, "the header is larger than \(limits.headBytes) bytes")
        }
        let head = buffer[start..<end]
        start = end
        switch MessageHead.parse(head, limits: limits) {
        case .fault(let status, let text): return .fault(status, text)
        case .request(let request, let byteCount):
            state = .body(request, byteCount: byteCount)
        case .response(let byteCount):
            state = .body(nil, byteCount: byteCount)
        }
        return .bodyFollows
    }

    /// The index after the empty line that ends the head.
    private mutating func endOfHead() -> Int? {
        var index = scanned
        while index < buffer.count {
            guard buffer[index] == 10 else {
                index += 1
                continue
            }
            var next = index + 1
            if next < buffer.count, buffer[next] == 13 { next += 1 }
            guard next < buffer.count else { break }
            if buffer[next] == 10 { return next + 1 }
            index += 1
        }
        scanned = index
        return nil
    }

    private mutating func fail(_ status: RTSPStatus, _ text: String) -> Item {
        state = .broken
        buffer = []
        start = 0
        return .fault(status, text)
    }
}
