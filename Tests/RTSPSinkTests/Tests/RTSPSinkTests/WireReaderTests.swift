// SPDX-License-Identifier: Apache-2.0

import ServerAccess
import Testing

@testable import RTSPSink

@Suite struct WireReaderTests {
    typealias Item = WireReader.Item

    static func read(_ bytes: [UInt8], step: Int? = nil, limits: WireReader.Limits = WireReader.Limits()) -> [Item] {
        var reader = WireReader(limits: limits)
        var items: [Item] = []
        var rest = bytes[...]
        while !rest.isEmpty {
            reader.append(Array(rest.prefix(step ?? bytes.count)))
            rest = rest.dropFirst(step ?? bytes.count)
            while let item = reader.next() { items.append(item) }
        }
        return items
    }

    static func read(_ text: String, step: Int? = nil) -> [Item] { read(Array(text.utf8), step: step) }

    struct Vector: Sendable, CustomStringConvertible {
        var name: String
        var request: RTSPRequest
        var description: String { name }
    }

    static let vectors = [
        Vector(name: "no field", request: RTSPRequest("OPTIONS", "*")),
        Vector(
            name: "FFmpeg's DESCRIBE",
            request: RTSPRequest(
                "DESCRIBE", "rtsp://127.0.0.1:8554/live",
                headers: HeaderFields([("Accept", "application/sdp"), ("CSeq", "2"), ("User-Agent", "Lavf59.27.100")]))),
        Vector(
            name: "a body",
            request: RTSPRequest(
                "SET_PARAMETER", "rtsp://h/live", headers: HeaderFields([("CSeq", "7"), ("Content-Length", "9")]),
                body: Array("a: b\r\n\r\nc".utf8))),
        Vector(
            name: "a dollar in a field",
            request: RTSPRequest(
                "PLAY", "rtsp://h/$", headers: HeaderFields([("CSeq", "3"), ("Session", "$12345678")]))),
    ]

    @Test(arguments: vectors, [1, 2, 7, 4096]) func readsWhatItWrites(vector: Vector, step: Int) {
        #expect(
            Self.read(vector.request.bytes + vector.request.bytes, step: step) == [
                .request(vector.request), .request(vector.request),
            ])
    }

    @Test(arguments: [1, 3, 4096]) func readsFramesBetweenRequests(step: Int) {
        let request = RTSPRequest("OPTIONS", "*", headers: HeaderFields([("CSeq", "1")]))
        let bytes = [0x24, 1, 0, 3, 9, 0x24, 7] + request.bytes + [0x24, 255, 0, 0] + request.bytes
        #expect(
            Self.read(bytes, step: step) == [
                .frame(channel: 1, payload: [9, 0x24, 7]), .request(request), .frame(channel: 255, payload: []),
                .request(request),
            ])
    }

    @Test func toleratesBareLineFeedsEmptyLinesAndFolding() {
        let items = Self.read("\r\n\r\nOPTIONS * RTSP/1.0\nCSeq: 1\nX-Long: a\n  b\n\tc\nEmpty:\n\n")
        let fields = HeaderFields([("CSeq", "1"), ("X-Long", "a b c"), ("Empty", "")])
        #expect(items == [.request(RTSPRequest("OPTIONS", "*", headers: fields))])
    }

    @Test func leavesOutResponsesOfTheClient() {
        let items = Self.read("RTSP/1.0 200 OK\r\nCSeq: 1\r\nContent-Length: 3\r\n\r\nabcOPTIONS * RTSP/1.0\r\n\r\n")
        #expect(items == [.response, .request(RTSPRequest("OPTIONS", "*"))])
    }

    /// Hikvision's firmware puts stray bytes between interleaved frames.
    @Test func skipsStrayBytesButNotForEver() {
        let request = RTSPRequest("OPTIONS", "*")
        #expect(Self.read([0, 1, 200, 31] + request.bytes) == [.request(request)])
        let items = Self.read([UInt8](repeating: 0x80, count: 2000) + request.bytes)
        #expect(items == [.fault(.badRequest, "the data is not RTSP")])
    }

    @Test func skipsFramesLargerThanClientsSend() {
        let request = RTSPRequest("OPTIONS", "*")
        for step in [1, 1000, 100_000] {
            #expect(
                Self.read([0x24, 1, 0xff, 0xff] + [UInt8](repeating: 0x24, count: 0xffff) + request.bytes, step: step)
                    == [
                        .request(request)
                    ])
        }
    }

    static let faults: [(String, RTSPStatus)] = [
        ("OPTIONS *\r\n\r\n", .badRequest),
        ("OPTIONS\0 * RTSP/1.0\r\n\r\n", .badRequest),
        ("OPTIONS * RTSP/1.0\r\nCSeq 1\r\n\r\n", .badRequest),
        ("OPTIONS * RTSP/1.0\r\n: 1\r\n\r\n", .badRequest),
        ("OPTIONS * RTSP/1.0\r\n folded first\r\n\r\n", .badRequest),
        ("OPTIONS * RTSP/1.0\r\nContent-Length: -1\r\n\r\n", .badRequest),
        ("OPTIONS * RTSP/1.0\r\nContent-Length: 99999999999999999999\r\n\r\n", .badRequest),
        ("OPTIONS * RTSP/1.0\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", .badRequest),
        ("OPTIONS * RTSP/1.0\r\nContent-Length: 70000\r\n\r\n", .requestTooLarge),
        ("GET /" + String(repeating: "a", count: 5000) + " RTSP/1.0\r\n\r\n", .urlTooLong),
        ("GET /" + String(repeating: "a", count: 5000), .urlTooLong),
        ("OPTIONS * RTSP/1.0\r\nX: " + String(repeating: "a", count: 65536) + "\r\n\r\n", .badRequest),
        ("OPTIONS * RTSP/1.0\r\nX: " + String(repeating: "a", count: 65536), .badRequest),
        ("OPTIONS * RTSP/1.0\r\n" + String(repeating: "X: 1\r\n", count: 10_000) + "\r\n", .badRequest),
    ]

    @Test(arguments: faults.indices, [1, 100_000]) func refusesOnceAndForGood(index: Int, step: Int) throws {
        let items = Self.read(Self.faults[index].0 + "OPTIONS * RTSP/1.0\r\n\r\n", step: step)
        try #require(items.count == 1)
        guard case .fault(let status, let text) = items[0] else {
            Issue.record("\(items)")
            return
        }
        #expect(status == Self.faults[index].1)
        #expect(!text.isEmpty)
    }

    @Test func keepsNoMoreThanItsLimits() {
        var reader = WireReader()
        for _ in 0..<100_000 {
            reader.append(Array("OPTIONS * RTSP/1.0\r\nCSeq: 1\r\n\r\n".utf8) + [0x24, 0, 0, 1, 5])
            while reader.next() != nil {}
            #expect(reader.isIdle)
        }
        reader.append([UInt8](repeating: 65, count: 5000))
        _ = reader.next()
        reader.append([UInt8](repeating: 65, count: 1 << 20))
        #expect(reader.pendingByteCount == 0)
    }

    // MARK: RTSP through HTTP

    /// The length of a tunnel's POST is made up (32767 by most); what follows is Base64, not RTSP.
    @Test(arguments: [1, 7, 1000]) func stopsReadingBehindAnHTTPRequest(step: Int) {
        var reader = WireReader()
        let text = "POST /live HTTP/1.0\r\nx-sessioncookie: a\r\nContent-Length: 32767\r\n\r\nT1BUSU9OUw=="
        let bytes = Array(text.utf8)
        var items: [WireReader.Item] = []
        var raw: [UInt8] = []
        for first in stride(from: 0, to: bytes.count, by: step) {
            reader.append(Array(bytes[first..<min(first + step, bytes.count)]))
            while let item = reader.next() { items.append(item) }
            raw += reader.takeRaw()
        }
        guard case .request(let request)? = items.first, items.count == 1 else {
            Issue.record("\(items)")
            return
        }
        #expect(request.version == "HTTP/1.0")
        #expect(request.headers["x-sessioncookie"] == "a")
        #expect(String(decoding: raw, as: UTF8.self) == "T1BUSU9OUw==")
        #expect(reader.isIdle)
    }

    /// Requests are coded one by one, so padding stands between them; writes cut them anywhere.
    @Test(arguments: [1, 2, 3, 5, 1000]) func decodesBase64HoweverItIsCut(step: Int) {
        let requests = (1...5).map {
            "OPTIONS * RTSP/1.0\r\nCSeq: \($0)\r\n" + String(repeating: "x", count: $0) + ": y\r\n\r\n"
        }
        let coded = Array(requests.map { Base64.encode(Array($0.utf8)) + "\r\n" }.joined().utf8)
        var stream = Base64Stream()
        var decoded: [UInt8] = []
        for first in stride(from: 0, to: coded.count, by: step) {
            #expect(coded[first..<min(first + step, coded.count)].withUnsafeBytes { stream.decode($0, into: &decoded) })
        }
        #expect(String(decoding: decoded, as: UTF8.self) == requests.joined())
        #expect(stream.isIdle)
    }

    @Test(arguments: ["T1B-", "=AAA", "A===", "AA=A", "AAA==", "T1BU\0"]) func findsWhatIsNoBase64(text: String) {
        var stream = Base64Stream()
        var decoded: [UInt8] = []
        let isTaken = Array(text.utf8).withUnsafeBytes { stream.decode($0, into: &decoded) }
        #expect(!isTaken || !stream.isIdle)
    }
}
