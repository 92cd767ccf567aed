// SPDX-License-Identifier: Apache-2.0

import Foundation
import FrameSupport
import Glibc
import ServerAccess
import Testing

@testable import ControlServer
@testable import FrameCore

/// A WebSocket client that says exactly what a test wants.
final class LiveClient {
    struct Frame: Equatable {
        var opcode: UInt8
        var payload: [UInt8]
        var text: String { String(decoding: payload, as: UTF8.self) }
        /// Of a closing frame.
        var code: Int? { opcode == 8 && payload.count >= 2 ? Int(payload[0]) << 8 | Int(payload[1]) : nil }
        var reason: String { String(decoding: payload.dropFirst(2), as: UTF8.self) }
    }
    struct Fault: Error, CustomStringConvertible { var description: String }

    private let socket: Int32
    private var received: [UInt8] = []
    /// The answer to the handshake.
    private(set) var answer = ""

    /// Connects and asks for the WebSocket; `answer` says how that went.
    init(_ port: Int, fields: [String]? = nil, receiveBuffer: Int32? = nil) throws {
        socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        if var size = receiveBuffer {
            setsockopt(socket, SOL_SOCKET, SO_RCVBUF, &size, socklen_t(MemoryLayout<Int32>.size))
        }
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(UInt16(port)).bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else { throw Fault(description: "connect: \(String(cString: strerror(errno)))") }
        let fields = fields ?? Self.handshake(port)
        try send(Array((["GET /api/v1/live HTTP/1.1"] + fields + ["", ""]).joined(separator: "\r\n").utf8))
        let end: [UInt8] = [13, 10, 13, 10]
        while true {
            if let index = received.indices.first(where: { received[$0...].starts(with: end) }) {
                answer = String(decoding: received[..<index], as: UTF8.self)
                received.removeFirst(index + 4)
                return
            }
            guard try read() else { throw Fault(description: "the connection ended without an answer") }
        }
    }

    deinit { close(socket) }

    /// Sends nothing any more, and goes on reading.
    func closeSide() { shutdown(socket, Int32(SHUT_WR)) }

    static func handshake(_ port: Int, _ more: String...) -> [String] {
        [
            "Host: 127.0.0.1:\(port)", "Origin: http://127.0.0.1:\(port)", "Upgrade: websocket", "Connection: Upgrade",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13",
        ] + more
    }

    func send(_ bytes: [UInt8]) throws {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { throw Fault(description: "send: \(String(cString: strerror(errno)))") }
            rest = rest.dropFirst(count)
        }
    }

    /// A frame as a client sends it, masked unless told otherwise.
    static func frame(
        _ opcode: UInt8, _ payload: [UInt8], isLast: Bool = true, isMasked: Bool = true, reserved: UInt8 = 0
    ) -> [UInt8] {
        var frame = [(isLast ? 0x80 : 0) | reserved | opcode]
        let masked: UInt8 = isMasked ? 0x80 : 0
        if payload.count < 126 {
            frame.append(masked | UInt8(payload.count))
        } else {
            frame += [masked | 126, UInt8(payload.count >> 8), UInt8(payload.count & 255)]
        }
        let mask: [UInt8] = [0x11, 0x22, 0x33, 0x44]
        if isMasked { frame += mask }
        return frame + payload.enumerated().map { isMasked ? $1 ^ mask[$0 % 4] : $1 }
    }

    func send(_ opcode: UInt8, _ payload: [UInt8], isLast: Bool = true, isMasked: Bool = true, reserved: UInt8 = 0)
        throws
    {
        try send(Self.frame(opcode, payload, isLast: isLast, isMasked: isMasked, reserved: reserved))
    }

    /// Sends pings until the server ends the connection. Reads a little each time that it cannot send: where a receive
    /// buffer is full, Linux ignores acknowledgements too, and a client that reads nothing would not come so far.
    ///
    /// - Returns: The bytes sent.
    func askAndHardlyRead(seconds: Double) throws -> Int {
        let ping = [0x89, 0x80 | 100, 0x11, 0x22, 0x33, 0x44] + [UInt8](repeating: 7, count: 100)
        var (sent, answer) = (0, [UInt8](repeating: 0, count: 64))
        let deadline = Date() + seconds
        while Date() < deadline {
            let from = sent % ping.count
            let count = ping.withUnsafeBytes {
                Glibc.send(socket, $0.baseAddress! + from, ping.count - from, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
            }
            if count < 0, errno != EAGAIN { return sent }
            sent += max(count, 0)
            guard count < 0 else { continue }
            _ = Glibc.recv(socket, &answer, answer.count, Int32(MSG_DONTWAIT))
            usleep(1000)
        }
        throw Fault(description: "the server took \(sent) bytes of pings in \(seconds) s and is still there")
    }

    func say(_ text: String) throws { try send(1, Array(text.utf8)) }

    /// False where the connection has ended.
    private func read() throws -> Bool {
        var buffer = [UInt8](repeating: 0, count: 65536)
        let deadline = Date() + 60
        while Date() < deadline {
            var waiting = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
            guard poll(&waiting, 1, 1000) > 0 else { continue }
            let count = Glibc.recv(socket, &buffer, buffer.count, 0)
            guard count > 0 else { return false }
            received += buffer[..<count]
            return true
        }
        throw Fault(description: "nothing came for a minute")
    }

    /// The next frame; nil where the connection has ended.
    func next() throws -> Frame? {
        while true {
            if received.count >= 2 {
                var start = 2
                var size = Int(received[1] & 127)
                if size == 126, received.count >= 4 {
                    (start, size) = (4, Int(received[2]) << 8 | Int(received[3]))
                } else if size == 127, received.count >= 10 {
                    (start, size) = (10, received[2..<10].reduce(0) { $0 << 8 | Int($1) })
                } else if size >= 126 {
                    (start, size) = (10, Int.max / 2)
                }
                if received.count >= start + size {
                    let frame = Frame(opcode: received[0] & 15, payload: Array(received[start..<(start + size)]))
                    received.removeFirst(start + size)
                    return frame
                }
            }
            guard try read() else { return nil }
        }
    }

    /// The next frame of that kind.
    func next(_ opcode: UInt8) throws -> Frame {
        while let frame = try next() { if frame.opcode == opcode { return frame } }
        throw Fault(description: "the connection ended before a frame of kind \(opcode)")
    }
}

@Suite(.serialized) struct LiveSocketTests {
    @Test func answersTheHandshake() throws {
        let running = try RunningServer()
        let client = try LiveClient(running.port)
        #expect(client.answer.hasPrefix("HTTP/1.1 101 Switching Protocols\r\n"))
        // RFC 6455 §1.3.
        #expect(client.answer.lowercased().contains("sec-websocket-accept: s3pplmbitxaq9kygzzhzrbk+xoo="))
        #expect(!client.answer.lowercased().contains("sec-websocket-protocol"))
        let named = try LiveClient(
            running.port, fields: LiveClient.handshake(running.port, "Sec-WebSocket-Protocol: x, framehost.v1"))
        #expect(named.answer.lowercased().contains("sec-websocket-protocol: framehost.v1"))
        try client.say(#"{"ping":17}"#)
        #expect(try client.next(1).text.hasPrefix(#"{"pong":17,"now":"#))
        try client.send(9, [1, 2, 3])
        #expect(try client.next(10).payload == [1, 2, 3])
        try client.send(8, [3, 232])
        #expect(try client.next(8).code == 1000)
        #expect(try client.next() == nil)
    }

    /// What is refused is answered over HTTP, and the connection goes on.
    @Test(arguments: [
        (["Host: evil.example"], "421"), (["Origin: http://evil.example"], "403"), (["Origin:"], "403"),
        (["Origin: null"], "403"), (["Sec-WebSocket-Version: 12"], "426"), (["Sec-WebSocket-Key: x"], "400"),
        (["Upgrade: h2c"], "426"), (["Connection: keep-alive"], "400"),
    ]) func refusesAnOddHandshakeWithAnAnswer(change: [String], status: String) throws {
        let running = try RunningServer()
        var fields = LiveClient.handshake(running.port)
        for field in change {
            let name = field.prefix { $0 != ":" }
            fields.removeAll { $0.hasPrefix("\(name):") }
            if !field.hasSuffix(":") { fields.append(field) }
        }
        let client = try LiveClient(running.port, fields: fields)
        #expect(client.answer.hasPrefix("HTTP/1.1 \(status) "), "\(client.answer)")
    }

    @Test func demandsTheTokenWhereThereIsOne() throws {
        let running = try RunningServer { $0.token = "0123456789abcdef" }
        let hex = "30313233343536373839616263646566"
        func status(_ more: String...) throws -> String {
            let client = try LiveClient(running.port, fields: LiveClient.handshake(running.port) + more)
            return String(client.answer.dropFirst(9).prefix(3))
        }
        #expect(try status() == "401")
        #expect(try status("Sec-WebSocket-Protocol: framehost.v1") == "401")
        #expect(try status("Sec-WebSocket-Protocol: framehost.v1, framehost.token.3031") == "401")
        #expect(try status("Sec-WebSocket-Protocol: framehost.v1, framehost.token.\(hex)") == "101")
        #expect(try status("Authorization: Bearer 0123456789abcdef") == "101")
        #expect(try status("Authorization: Bearer x", "Sec-WebSocket-Protocol: framehost.token.\(hex)") == "401")
    }

    @Test func isOneAddressAmongOthers() throws {
        let running = try RunningServer()
        let client = try running.connect()
        try client.ask("GET /api/v1/live", port: running.port, "Origin: http://127.0.0.1:\(running.port)")
        let answer = try client.answer()
        #expect(answer.hasPrefix("HTTP/1.1 426 ") && answer.lowercased().contains("upgrade: websocket"))
        try client.ask("POST /api/v1/live", port: running.port, "Origin: http://127.0.0.1:\(running.port)")
        #expect(try client.answer().hasPrefix("HTTP/1.1 405 "))
    }

    @Test func sendsAPictureForEachThatWasDrawn() throws {
        let running = try RunningServer()
        let client = try LiveClient(running.port)
        try client.say(#"{"open":7,"stage":"cam","width":64}"#)
        for number in 1...5 as ClosedRange<UInt8> {
            let frame = try client.next(2)
            #expect(Array(frame.payload[..<8]) == [1, 1, 0, 7, 0, 0, 0, number])
            #expect(String(decoding: frame.payload[40...], as: UTF8.self) == "picture 64")
            try client.say(#"{"shown":7,"number":\#(number)}"#)
        }
        _ = try client.next(2)
        // Nothing comes that was not asked for.
        let asked = running.run.state.withLock { $0.asked }
        try client.say(#"{"ping":1}"#)
        #expect(try client.next()?.opcode == 1)
        #expect(running.run.state.withLock { $0.asked } == asked)
        try client.say(#"{"open":8,"stage":"nothing"}"#)
        #expect(try client.next(1).text.hasPrefix(#"{"ended":8,"error":{"what":"no such stage""#))
    }

    /// A change makes the stage bare; the viewer is told, gets nothing more, and may go on with another stage.
    @Test func aPreviewEndsWhereItsStageBecomesBare() throws {
        let running = try RunningServer()
        let client = try LiveClient(running.port)
        try client.say(#"{"open":1,"stage":"cam","width":64}"#)
        _ = try client.next(2)
        running.run.state.withLock { $0.originals = ["cam"] }
        try client.say(#"{"shown":1,"number":1}"#)
        var told: JSONNode?
        while told == nil {
            let frame = try #require(try client.next())
            #expect(frame.opcode != 2, "a picture of a bare stage")
            let node = FakeRun.node(frame.text)
            if node["ended"]?.asInt == 1 { told = node }
        }
        #expect(told?["error"]?["code"]?.asString == "forbidden")
        #expect(told?["error"]?["place"]?.asString == "cam")
        try client.say(#"{"open":2,"stage":"h264","kind":"h264"}"#)
        while running.run.state.withLock({ $0.watchers.isEmpty }) { usleep(1000) }
    }

    /// A session that ends ends its socket.
    @Test func aSocketEndsWithItsSession() throws {
        setenv("FRAMEHOST_SOCKET_USERS", "anna:watch:secret", 1)
        defer { unsetenv("FRAMEHOST_SOCKET_USERS") }
        let running = try RunningServer { $0.users = "env:FRAMEHOST_SOCKET_USERS" }
        let (web, port) = (try running.connect(), running.port)
        try web.ask("POST /api/v1/login", port: port, body: #"{"name":"anna","password":"secret"}"#)
        let text = try web.answer()
        let secret = String(text.components(separatedBy: #""session":""#).last?.prefix { $0 != "\"" } ?? "")
        let hex = secret.utf8.map { String($0, radix: 16) }.joined()
        let client = try LiveClient(
            port, fields: LiveClient.handshake(port, "Sec-WebSocket-Protocol: framehost.v1, framehost.token.\(hex)"))
        #expect(client.answer.hasPrefix("HTTP/1.1 101 "))
        try web.ask("DELETE /api/v1/login", port: port, "Authorization: Bearer \(secret)")
        _ = try web.receive { $0.contains("HTTP/1.1 204") }
        var end: LiveClient.Frame?
        while end == nil {
            let frame = try #require(try client.next())
            if frame.opcode == 8 { end = frame }
        }
        #expect(end?.code == 1008)
    }

    @Test func encodesOnceForAllWhoLook() throws {
        let running = try RunningServer()
        running.run.state.withLock { $0.givers = [] }
        let clients = try (0..<8).map { _ in try LiveClient(running.port) }
        for client in clients {
            for id in 0..<4 { try client.say(#"{"open":\#(id),"stage":"cam","width":64}"#) }
            try client.say(#"{"ping":1}"#)
            _ = try client.next(1)
        }
        running.run.state.withLock { $0.givers = ["cam"] }
        for client in clients { for _ in 0..<4 { _ = try client.next(2) } }
        let forms = running.run.state.withLock { $0.encoded }
        #expect(forms.count < 8, "\(forms.count) encodings for 32 previews")
    }

    @Test func givesEventsBehindTheLastOne() throws {
        let running = try RunningServer()
        let client = try LiveClient(running.port)
        try client.say(#"{"events":true}"#)
        while running.viewers == 0 { usleep(1000) }
        running.run.post("one", level: .info, text: "1", details: [:])
        var first = try client.next(1).text
        // The server says when it listens, before or after a client's first message.
        if first.contains("control-listening") { first = try client.next(1).text }
        #expect(first.contains(#""event":{"event":"one","text":"1"}}"#), "\(first)")
        let id = try #require(first.split(separator: #"""#).first { $0.contains("-") })
        running.run.post("two", level: .info, text: "2", details: [:])
        #expect(try client.next(1).text.contains(#""event":"two""#))
        let other = try LiveClient(running.port)
        try other.say(#"{"events":"\#(id)"}"#)
        #expect(try other.next(1).text.contains(#""event":"two""#))
    }

    @Test(arguments: [
        ("no JSON", 1007, "message: the message must be JSON with at most 64 values, 3 levels deep"),
        (
            #"{"fly":1}"#, 1007,
            "message: a message must have exactly one of open, close, pause, resume, shown, ping, events"
        ),
        (#"{"open":1,"stage":"cam","width":1}"#, 1008, "width: 'width' must be a whole number from 16 to 4096"),
    ]) func aWrongMessageIsToldAndEndsTheSocket(text: String, code: Int, reason: String) throws {
        let running = try RunningServer()
        let client = try LiveClient(running.port)
        try client.say(text)
        #expect(try client.next(1).text.hasPrefix(#"{"error":{"what":"#))
        let end = try client.next(8)
        #expect(end.code == code && end.reason == reason, "\(end.reason)")
        // Nothing it says after that is heard; its own close ends the connection, if the server has not yet.
        try? client.say(#"{"ping":1}"#)
        try? client.send(8, end.payload)
        #expect(try client.next() == nil)
    }

    @Test func oddFramesEndTheSocketWithTheirCode() throws {
        let running = try RunningServer()
        func code(_ send: (LiveClient) throws -> Void) throws -> Int? {
            let client = try LiveClient(running.port)
            try send(client)
            return try client.next(8).code
        }
        #expect(try code { try $0.send(1, [123, 125], isMasked: false) } == 1002)
        #expect(try code { try $0.send(1, [123, 125], reserved: 0x40) } == 1002)
        #expect(try code { try $0.send(0, [1]) } == 1002)
        #expect(try code { try $0.send(3, [1]) } == 1002)
        #expect(try code { try $0.send(9, [1], isLast: false) } == 1002)
        #expect(try code { try $0.send(9, [UInt8](repeating: 1, count: 200)) } == 1002)
        #expect(try code { try $0.send(2, [1]) } == 1003)
        #expect(try code { try $0.send(1, [0xff, 0xfe]) } == 1007)
        #expect(try code { try $0.send(1, [UInt8](repeating: 32, count: 17_000)) } == 1009)
        #expect(
            try code {
                try $0.send(1, [123], isLast: false)
                try $0.send(1, [125])
            } == 1002)
        #expect(
            try code { client in
                try client.send(1, [UInt8](repeating: 32, count: 9000), isLast: false)
                try client.send(0, [UInt8](repeating: 32, count: 9000))
            } == 1009)
        #expect(
            try code { client in
                try client.send(1, [123], isLast: false)
                for _ in 0..<20 { try? client.send(0, [], isLast: false) }
            } == 1009)
        // In parts is a message as good as whole.
        let client = try LiveClient(running.port)
        try client.send(1, Array(#"{"pi"#.utf8), isLast: false)
        try client.send(9, [5])
        try client.send(0, Array(#"ng":3}"#.utf8))
        #expect(try client.next(10).payload == [5])
        #expect(try client.next(1).text.hasPrefix(#"{"pong":3"#))
    }

    /// Bytes without sense, from the same seed each time: the server closes or waits, and serves others.
    @Test func outlivesBytesWithoutSense() throws {
        let running = try RunningServer()
        var seed: UInt64 = 1
        func random() -> UInt8 {
            seed = seed &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return UInt8(truncatingIfNeeded: seed >> 33)
        }
        for _ in 0..<200 {
            let client = try LiveClient(running.port)
            try client.say(#"{"open":1,"stage":"cam"}"#)
            // It may close in the middle.
            try? client.send((0..<Int(random())).map { _ in random() })
        }
        let client = try LiveClient(running.port)
        try client.say(#"{"ping":1}"#)
        #expect(try client.next(1).text.hasPrefix(#"{"pong":1"#))
        try Self.wait("all have gone") { running.server.socketCount == 1 }
    }

    private static func wait(_ what: String, seconds: Double = 120, _ condition: () -> Bool) throws {
        let deadline = Date() + seconds
        while !condition() {
            guard Date() < deadline else { throw LiveClient.Fault(description: "\(what): not within \(seconds) s") }
            usleep(1000)
        }
    }

    @Test func takesSoManySocketsAndNoMore() throws {
        let running = try RunningServer()
        var clients = try (0..<LiveProtocol.mostSockets).map { _ in try LiveClient(running.port) }
        #expect(clients.allSatisfy { $0.answer.hasPrefix("HTTP/1.1 101") })
        let refused = try LiveClient(running.port)
        #expect(refused.answer.hasPrefix("HTTP/1.1 503 "))
        clients.removeLast()
        try Self.wait("a place is free again") { running.server.socketCount < LiveProtocol.mostSockets }
        #expect(try LiveClient(running.port).answer.hasPrefix("HTTP/1.1 101"))
    }

    @Test func stopsWithOpenSocketsAndTellsThem() throws {
        // A busy machine may hold up some of several servers.
        var times: [Duration] = []
        while times.count < 5, !times.contains(where: { $0 < .seconds(1.5) }) { times.append(try Self.timeToStop()) }
        #expect(times.contains { $0 < .seconds(1.5) }, "\(times)")
    }

    private static func timeToStop() throws -> Duration {
        let running = try RunningServer()
        let clients = try (0..<8).map { _ in try LiveClient(running.port) }
        for (number, client) in clients.enumerated() {
            if number % 2 == 0 { try client.say(#"{"events":true}"#) }
            if number % 4 < 2 { try client.say(#"{"open":1,"stage":"\#(number % 4 == 0 ? "cam" : "text")"}"#) }
            try client.say(#"{"ping":1}"#)
            _ = try client.next(1)
        }
        let time = ContinuousClock().measure { running.server.stop(within: 500) }
        for client in clients { #expect(try client.next(8).code == 1001) }
        return time
    }

    @Test func previewsOpenAndCloseWithoutEnd() throws {
        let running = try RunningServer()
        let client = try LiveClient(running.port)
        for round in 0..<300 {
            let id = round % 20
            try client.say(#"{"open":\#(id),"stage":"cam","width":\#(16 + round)}"#)
            var frame = try client.next(2)
            // The second one of the preview before, which was acknowledged and closed meanwhile.
            while frame.payload[3] != UInt8(id) {
                #expect(frame.payload[3] == UInt8((round + 19) % 20) && (round - 1) % 3 > 0)
                frame = try client.next(2)
            }
            if round % 3 > 0 { try client.say(#"{"shown":\#(id),"number":1}"#) }
            try client.say(#"{"close":\#(id)}"#)
        }
        try client.say(#"{"ping":1}"#)
        #expect(try client.next(1).text.hasPrefix(#"{"pong":1"#))
    }

    /// A client that answers nothing gets one picture and no more; one that reads nothing is disconnected.
    @Test func aClientThatStopsReadingGetsNoMore() throws {
        let run = FakeRun()
        run.state.withLock { $0.padding = 1 << 20 }
        let running = try LiveServer(run, progress: 5000, ping: 100_000)
        let client = try LiveClient(running.port, receiveBuffer: 4096)
        let messages = (0..<8).map { Array(#"{"open":\#($0),"stage":"cam","width":\#(16 + $0)}"#.utf8) }
        try client.send(messages.flatMap { LiveClient.frame(1, $0) })
        try Self.wait("pictures of each are on their way") { run.state.withLock { $0.encoded.count } >= 8 }
        try Self.wait("it is closed") { running.api.viewers.withLock { $0.sockets } == 0 }
        #expect(run.state.withLock { $0.encoded.count } == 8)
        #expect(running.api.viewers.withLock { $0.previews } == 0)
    }

    /// What waits for it has a bound, though a client that takes a little makes progress.
    @Test func aClientThatAsksFasterThanItReadsIsDisconnected() throws {
        let running = try LiveServer(FakeRun(), progress: 1_000_000, ping: 1_000_000)
        let client = try LiveClient(running.port, receiveBuffer: 4096)
        let asked = try client.askAndHardlyRead(seconds: 600)
        #expect(asked > 0)
        try Self.wait("it is closed") { running.api.viewers.withLock { $0.sockets } == 0 }
    }

    /// The side that is open still could take pictures, and nothing would acknowledge them.
    @Test func aClientThatClosesItsSideIsDisconnected() throws {
        let running = try RunningServer()
        let client = try LiveClient(running.port)
        client.closeSide()
        while try client.next() != nil {}
        try Self.wait("the place is free again") { running.server.socketCount == 0 }
    }

    @Test func aClientThatAnswersNoPingIsDisconnected() throws {
        let running = try LiveServer(FakeRun(), progress: 10_000, ping: 3_000)
        let client = try LiveClient(running.port)
        let answering = try LiveClient(running.port)
        while running.api.viewers.withLock({ $0.sockets }) > 1 { try answering.send(10, try answering.next(9).payload) }
        #expect(running.api.viewers.withLock { $0.sockets } == 1)
        var pings = 0
        while let frame = try client.next() { pings += frame.opcode == 9 ? 1 : 0 }
        #expect(pings == 2)
    }
}

/// A server with its threads, whose times a test says.
final class LiveServer {
    let api: ControlAPI
    private let server: HTTPServer
    private let thread: NamedThread
    var port: Int { server.port }

    init(_ run: FakeRun, progress: Int64, ping: Int64) throws {
        var made: ControlAPI?
        let address = try #require(ListenAddress("127.0.0.1:0"))
        server = try HTTPServer(address, progress: progress, ping: ping) { port in
            let api = ControlAPI(
                control: run, gate: Gate(address: address, port: port, hosts: [], token: nil),
                pictures: PictureRequests(run), units: try! UnitFanOut(run), events: EventRing(run: "run"),
                rates: RateWatch(run))
            made = api
            return api
        }
        api = try #require(made)
        let pictures = api.pictures
        thread = try NamedThread("test") { pictures.run() }
    }

    deinit {
        api.pictures.close()
        server.stop()
        thread.end.wait(milliseconds: 2000)
    }
}
