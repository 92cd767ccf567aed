// SPDX-License-Identifier: Apache-2.0

import Foundation
import FrameSupport
import Glibc
import ServerAccess
import Testing

@testable import ControlServer
@testable import FrameCore

/// A server on a port of its own over a fake run.
final class RunningServer {
    let run: FakeRun
    let server: ControlServer
    let port: Int

    init(_ change: (inout ControlServerOptions) -> Void = { _ in }, folder: String = "/") throws {
        run = FakeRun(folder: folder)
        var options = ControlServerOptions()
        options.listen = "127.0.0.1:0"
        change(&options)
        try options.validate()
        server = ControlServer(options: options)
        // The host's own listener, which is there before any service.
        let first = run.hub.subscribe()
        defer { _ = first }
        try server.start(run)
        let posted = run.state.withLock { $0.posted.first ?? "" }
        let digits = posted.split(separator: #""port":"#).last.map { $0.prefix { $0.isNumber } } ?? ""
        port = try #require(Int(digits), "\(posted)")
    }

    deinit { server.stop(within: 500) }

    /// A connection to it.
    func connect() throws -> Client { try Client(port) }
}

/// A TCP client that says exactly what a test wants.
final class Client {
    private let socket: Int32
    private var received: [UInt8] = []

    struct Fault: Error, CustomStringConvertible { var description: String }

    init(_ port: Int, receiveBuffer: Int32? = nil) throws {
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
    }

    deinit { close(socket) }

    func send(_ text: String) throws {
        var bytes = Array(text.utf8)[...]
        while !bytes.isEmpty {
            let count = bytes.withUnsafeBytes {
                Glibc.send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard count > 0 else { throw Fault(description: "send: \(String(cString: strerror(errno)))") }
            bytes = bytes.dropFirst(count)
        }
    }

    /// Nothing more is sent; answers are still read.
    func endSending() throws {
        guard shutdown(socket, Int32(SHUT_WR)) == 0 else {
            throw Fault(description: "shutdown: \(String(cString: strerror(errno)))")
        }
    }

    /// Takes so many bytes and lets them go; false where the connection ends before.
    func skip(_ count: Int, each: Int, pause microseconds: UInt32) -> Bool {
        var left = count
        var buffer = [UInt8](repeating: 0, count: each)
        while left > 0 {
            let count = Glibc.recv(socket, &buffer, min(each, left), 0)
            guard count > 0 else { return false }
            left -= count
            usleep(microseconds)
        }
        return true
    }

    /// A request of this host with further lines.
    func ask(_ line: String, port: Int, _ fields: String..., body: String = "") throws {
        var text = "\(line) HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\n"
        for field in fields { text += "\(field)\r\n" }
        if !body.isEmpty { text += "Content-Type: application/json\r\nContent-Length: \(body.utf8.count)\r\n" }
        try send("\(text)\r\n\(body)")
    }

    /// Reads until `isEnough`, or the connection ends.
    ///
    /// - Returns: All that was received; nil when neither came within a minute.
    func receive(until isEnough: (String) -> Bool = { _ in false }) throws -> String {
        let deadline = Date() + 60
        var buffer = [UInt8](repeating: 0, count: 65536)
        while true {
            let text = String(decoding: received, as: UTF8.self)
            if isEnough(text) { return text }
            var waiting = pollfd(fd: socket, events: Int16(POLLIN), revents: 0)
            guard Date() < deadline else { throw Fault(description: "nothing more came after: \(text.suffix(500))") }
            guard poll(&waiting, 1, 1000) > 0 else { continue }
            let count = Glibc.recv(socket, &buffer, buffer.count, 0)
            guard count > 0 else { return text }
            received += buffer[..<count]
        }
    }

    /// Until a whole answer with a length is there.
    func answer() throws -> String {
        let text = try receive { text in
            guard let end = text.range(of: "\r\n\r\n") else { return false }
            let head = text[..<end.lowerBound].lowercased()
            guard let length = head.range(of: "content-length: ") else { return true }
            let digits = head[length.upperBound...].prefix { $0.isNumber }
            return text[end.upperBound...].utf8.count >= Int(digits) ?? 0
        }
        received = []
        return text
    }
}

@Suite(.serialized) struct ControlServerTests {
    @Test func answersSeveralRequestsOnAConnection() throws {
        let running = try RunningServer()
        let client = try running.connect()
        for _ in 0..<3 {
            try client.ask("GET /healthz", port: running.port)
            let answer = try client.answer()
            #expect(answer.hasPrefix("HTTP/1.1 200 OK\r\n"))
            #expect(answer.lowercased().contains("x-content-type-options: nosniff"))
            #expect(answer.hasSuffix(#"{"healthy":true,"state":"streaming","problems":[]}"# + "\n"))
        }
        try client.ask("POST /api/v1/stages/cam/pause", port: running.port, body: #"{"drop":true}"#)
        #expect(try client.answer().contains(#""frame":42"#))
        try client.ask("HEAD /metrics", port: running.port)
        let head = try client.receive { $0.contains("\r\n\r\n") }
        #expect(head.hasPrefix("HTTP/1.1 200") && head.hasSuffix("\r\n\r\n"))
    }

    @Test func tellsWhereItListens() throws {
        let running = try RunningServer()
        #expect(
            running.run.state.withLock { $0.posted } == [
                #"control-listening {"url":"http://127.0.0.1:\#(running.port)/","port":\#(running.port),"needsToken":false}"#
            ])
    }

    /// NIO closes the connection where an upgrade is offered to an upgrade handler that refuses it.
    @Test(arguments: ["h2c", "websocket", "TLS/1.0"])
    func answersAClientThatOffersAnUpgrade(protocol name: String) throws {
        let running = try RunningServer()
        let client = try running.connect()
        try client.ask(
            "GET /healthz", port: running.port, "Connection: Upgrade, HTTP2-Settings", "Upgrade: \(name)",
            "HTTP2-Settings: AAMAAABkAAQCAAAAAAIAAAAA")
        #expect(try client.answer().hasPrefix("HTTP/1.1 200 OK\r\n"))
    }

    @Test(arguments: [
        ("GET /healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n", "421"),
        ("GET /healthz HTTP/1.0\r\n\r\n", "421"), ("GET /healthz HTTP/1.1\r\n\r\n", "400"),
        ("GET /healthz HTTP/1.1\r\nHost: PLACE\r\nHost: evil.example\r\n\r\n", "400"),
        ("GET /healthz HTTP/1.1\r\nHost: PLACE\r\nhost: PLACE\r\n\r\n", "400"),
        ("GET http://PLACE/healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n", "400"),
        ("GET http://evil.example/healthz HTTP/1.1\r\nHost: PLACE\r\n\r\n", "400"),
        ("GET http://evil.example/healthz HTTP/1.1\r\nHost: evil.example\r\n\r\n", "421"),
        ("GET http://you@PLACE/healthz HTTP/1.1\r\nHost: PLACE\r\n\r\n", "400"),
        ("GET https://PLACE/healthz HTTP/1.1\r\nHost: PLACE\r\n\r\n", "400"),
        ("GET /healthz HTTP/1.1\r\nFramehost-Malformed: no\r\nHost: evil.example\r\n\r\n", "421"),
        ("GET /healthz HTTP/1.1\r\nHost: PLACE\r\nOrigin: http://evil.example\r\n\r\n", "403"),
        ("PUT /api/v1/chain HTTP/1.1\r\nHost: PLACE\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\n{}", "415"),
        ("GET /\u{0}x HTTP/1.1\r\nHost: PLACE\r\n\r\n", "400"), ("nonsense\r\n\r\n", "400"),
        ("GET /healthz HTTP/1.1\r\nHost: PLACE\r\nX: \(String(repeating: "x", count: 70_000))\r\n\r\n", "400"),
        ("GET /\(String(repeating: "a", count: 9000)) HTTP/1.1\r\nHost: PLACE\r\n\r\n", "400"),
    ]) func refusesOddRequests(request: String, status: String) throws {
        let running = try RunningServer()
        let client = try running.connect()
        try client.send(request.replacingOccurrences(of: "PLACE", with: "127.0.0.1:\(running.port)"))
        let version = request.contains("HTTP/1.0") ? "1.0" : "1.1"
        #expect(try client.answer().hasPrefix("HTTP/\(version) \(status) "))
    }

    /// RFC 9112 §3.2.2: every server has to take it.
    @Test(arguments: ["http://PLACE/healthz", "HTTP://PLACE/healthz?"]) func takesATargetInAbsoluteForm(
        target: String
    ) throws {
        let running = try RunningServer()
        let place = "127.0.0.1:\(running.port)"
        let client = try running.connect()
        for _ in 0..<2 {
            try client.ask("GET \(target.replacingOccurrences(of: "PLACE", with: place))", port: running.port)
            #expect(try client.answer().hasPrefix("HTTP/1.1 200 "))
        }
        try client.send("GET http://\(place)/healthz HTTP/1.0\r\n\r\n")
        #expect(try client.receive().hasPrefix("HTTP/1.0 200 "))
    }

    /// Asks again and again, for a minute at most.
    private static func answer(until isMeant: (String) -> Bool, _ ask: () throws -> String) rethrows -> String {
        let deadline = Date() + 60
        while true {
            let answer = try ask()
            if isMeant(answer) || Date() > deadline { return answer }
        }
    }

    /// As `printf … | nc -N` asks.
    @Test func answersAClientThatHasClosedItsSide() throws {
        let running = try RunningServer()
        for path in ["/healthz", "/metrics", "/api/v1/stages/cam/picture"] {
            // No picture within a second is an answer too.
            let answer = try Self.answer(until: { !$0.hasPrefix("HTTP/1.1 204 ") }) {
                let client = try running.connect()
                try client.ask("GET \(path)", port: running.port)
                try client.endSending()
                return try client.receive()
            }
            #expect(answer.hasPrefix("HTTP/1.1 200 OK\r\n") && !answer.hasSuffix("\r\n\r\n"), "\(path): \(answer)")
        }
        // Several, and a stream, which then ends.
        let answer = try Self.answer(until: { $0.components(separatedBy: "picture 0").count == 4 }) {
            let client = try running.connect()
            try client.ask("GET /healthz", port: running.port)
            try client.ask("GET /api/v1/stages/cam/pictures?rate=60&count=3", port: running.port)
            try client.endSending()
            return try client.receive()
        }
        #expect(answer.components(separatedBy: "HTTP/1.1 200 OK").count == 3)
        #expect(answer.hasSuffix("--framehost--\r\n\r\n0\r\n\r\n"), "\(answer.suffix(100))")
        // Half a request is none.
        let half = try running.connect()
        try half.send(
            "POST /api/v1/stages/cam/pause HTTP/1.1\r\nHost: 127.0.0.1:\(running.port)\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{}"
        )
        try half.endSending()
        #expect(!(try half.receive()).contains(" 200 "))
        #expect(running.run.commands == [])
    }

    @Test func endsTheConnectionWhereTheClientWishesIt() throws {
        let running = try RunningServer()
        let host = "Host: 127.0.0.1:\(running.port)"
        for request in [
            "GET /healthz HTTP/1.0\r\n\(host)", "GET /healthz HTTP/1.0\r\n\(host)\r\nConnection: keep-alive",
            "GET /healthz HTTP/1.1\r\n\(host)\r\nConnection: Close",
            "GET /healthz HTTP/1.1\r\n\(host)\r\nConnection: TE, close",
        ] {
            let client = try running.connect()
            try client.send("\(request)\r\n\r\n")
            let answer = try client.receive()
            #expect(answer.contains(" 200 OK\r\n") && answer.hasSuffix("}\n"), "\(answer)")
            #expect(answer.lowercased().components(separatedBy: "connection: close").count == 2, "\(answer)")
        }
        // What HTTP/1.0 does not know is not sent to it.
        let client = try running.connect()
        try client.send("GET /api/v1/stages/cam/pictures?rate=60&count=2 HTTP/1.0\r\n\(host)\r\n\r\n")
        let answer = try client.receive()
        #expect(answer.hasPrefix("HTTP/1.0 200 OK\r\n") && !answer.lowercased().contains("chunked"))
        #expect(answer.contains("\r\n\r\n--framehost\r\n") && answer.hasSuffix("\r\n--framehost--\r\n"))
    }

    @Test func refusesALongBodyWithAnAnswer() throws {
        let running = try RunningServer()
        let announced = try running.connect()
        try announced.send(
            "PUT /api/v1/chain HTTP/1.1\r\nHost: 127.0.0.1:\(running.port)\r\nContent-Type: application/json\r\nContent-Length: 99999999\r\n\r\n{"
        )
        #expect(try announced.answer().hasPrefix("HTTP/1.1 413 "))
        let chunked = try running.connect()
        try chunked.send(
            "PUT /api/v1/chain HTTP/1.1\r\nHost: 127.0.0.1:\(running.port)\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
        )
        let chunk = "10000\r\n" + String(repeating: " ", count: 65536) + "\r\n"
        // It may close in the middle.
        for _ in 0..<20 { try? chunked.send(chunk) }
        #expect(try chunked.answer().hasPrefix("HTTP/1.1 413 "))
        #expect(running.run.commands == [])
    }

    @Test func asksForABodyThatIsOfferedFirst() throws {
        let running = try RunningServer()
        let client = try running.connect()
        try client.send(
            "PATCH /api/v1/stages/text/options HTTP/1.1\r\nHost: 127.0.0.1:\(running.port)\r\nContent-Type: application/json\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
        )
        let go = try client.receive { $0.contains("\r\n\r\n") }
        #expect(go == "HTTP/1.1 100 Continue\r\n\r\n")
        try client.send("{}")
        #expect(try client.receive { $0.contains(#""frame":42"#) }.contains("HTTP/1.1 200 OK"))
    }

    @Test func demandsItsTokenFromAFile() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "control-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try Data("0123456789abcdef\nsecond line\n".utf8).write(to: folder.appending(path: "token"))
        let running = try RunningServer({ $0.tokenFile = "token" }, folder: folder.path)
        let client = try running.connect()
        try client.ask("GET /healthz", port: running.port)
        let refused = try client.answer()
        #expect(refused.hasPrefix("HTTP/1.1 401 ") && refused.lowercased().contains("www-authenticate: bearer"))
        try client.ask("GET /healthz", port: running.port, "Authorization: Bearer 0123456789abcdef")
        #expect(try client.answer().hasPrefix("HTTP/1.1 200 "))
        #expect(throws: FrameHostError.self) { try RunningServer({ $0.tokenFile = "nothing" }, folder: folder.path) }
    }

    @Test func saysThatItsPortIsTaken() throws {
        let running = try RunningServer()
        let error = #expect(throws: FrameHostError.self) {
            try RunningServer { $0.listen = "127.0.0.1:\(running.port)" }
        }
        #expect(
            error?.description
                == "listen: 127.0.0.1:\(running.port) is in use by another program. End that program, or set another port. Port 0 takes any free port."
        )
    }

    @Test func givesEventsAsTheyHappen() throws {
        let running = try RunningServer()
        let client = try running.connect()
        try client.ask("GET /api/v1/events", port: running.port)
        _ = try client.receive { $0.contains("retry: 2000\n\n") }
        running.run.post("recording-did-start", level: .info, text: "rec: begins.", details: [:])
        let text = try client.receive { $0.contains("recording-did-start") && $0.hasSuffix("\n\n\r\n") }
        #expect(text.contains("Content-Type: text/event-stream"))
        #expect(text.contains(#"data: {"event":"recording-did-start","text":"rec: begins."}"#))
        #expect(text.contains("\nid: "))
    }

    @Test func givesPicturesUntilTheViewerHasEnough() throws {
        let running = try RunningServer()
        let client = try running.connect()
        try client.ask("GET /api/v1/stages/cam/pictures?rate=60&count=4", port: running.port)
        let text = try client.receive { $0.contains("--framehost--") }
        #expect(text.components(separatedBy: "picture 0").count == 5)
        // The connection goes on.
        try client.ask("GET /healthz", port: running.port)
        #expect(try client.receive { $0.contains(#""healthy":true"#) }.contains(#""healthy":true"#))
    }

    @Test func stopsWithinASecondWhoeverIsConnected() throws {
        // Its parts: 0.2 s for answers under way, 0.5 s for the loop, 0.3 s for each thread. A busy machine may hold up
        // some of several servers.
        var times: [Duration] = []
        while times.count < 5, !times.contains(where: { $0 < .seconds(1.5) }) { times.append(try Self.timeToStop()) }
        #expect(times.contains { $0 < .seconds(1.5) }, "\(times)")
    }

    private static func timeToStop() throws -> Duration {
        let running = try RunningServer()
        let clients = try (0..<20).map { _ in try running.connect() }
        for (number, client) in clients.enumerated() {
            switch number % 4 {
            case 0: try client.ask("GET /api/v1/events", port: running.port)
            case 1: try client.ask("GET /api/v1/stages/cam/pictures?rate=60", port: running.port)
            case 2: try client.send("PUT /api/v1/chain HTTP/1.1\r\nHost: 127.0.0.1:\(running.port)\r\n")
            default: break
            }
        }
        _ = try clients[0].receive { $0.contains("retry") }
        _ = try clients[1].receive { $0.contains("picture 0") }
        let clock = ContinuousClock()
        let time = clock.measure { running.server.stop(within: 500) }
        for client in clients { _ = try client.receive() }
        #expect(throws: Client.Fault.self) { try running.connect() }
        return time
    }

    @Test func aThousandIdleListenersDoNotHurt() throws {
        let running = try RunningServer()
        // One after the other: of those that have not asked yet, 64 stay.
        let clients = try (0..<1000).map { _ in
            let client = try running.connect()
            try client.ask("GET /api/v1/events", port: running.port)
            _ = try client.receive { $0.contains("retry") }
            return client
        }
        #expect(running.viewers == 1000)
        let other = try running.connect()
        try other.ask("GET /healthz", port: running.port)
        #expect(try other.answer().hasPrefix("HTTP/1.1 200 "))
        running.run.post("news", level: .info, text: "for all", details: [:])
        for client in clients { #expect(try client.receive { $0.contains("for all") }.contains("for all")) }
    }

    @Test func aListenerThatGoesIsForgotten() throws {
        let running = try RunningServer()
        do {
            let client = try running.connect()
            try client.ask("GET /api/v1/events", port: running.port)
            _ = try client.receive { $0.contains("retry") }
            #expect(running.viewers == 1)
        }
        let deadline = Date() + 120
        while running.viewers > 0, Date() < deadline { usleep(1000) }
        #expect(running.viewers == 0)
    }

    /// Of events as of pictures: what a client does not take is not kept for it for long.
    @Test(arguments: ["/api/v1/stages/cam/pictures?rate=60", "/api/v1/events"])
    func disconnectsAClientThatStopsReading(path: String) throws {
        let run = FakeRun()
        run.state.withLock { $0.padding = 1 << 20 }
        let (server, api) = try Self.server(run, progress: 200, connections: 100)
        defer { server.stop() }
        let thread = try NamedThread("test") { api.pictures.run() }
        defer {
            api.pictures.close()
            thread.end.wait(milliseconds: 2000)
        }
        let client = try Client(server.port, receiveBuffer: 4096)
        try client.ask("GET \(path)", port: server.port)
        let begun = try client.receive { $0.contains("picture 0") || $0.contains("retry") }
        #expect(begun.contains("picture 0") || begun.contains("retry"))
        let deadline = Date() + 120
        func watching() -> Int { api.viewers.withLock { $0.events + $0.pictures } }
        let text = String(repeating: "x", count: 60_000)
        while watching() > 0, Date() < deadline {
            if path.hasSuffix("events") { api.events.append("\"\(text)\"") }
            usleep(1000)
        }
        #expect(watching() == 0)
    }

    /// It takes all of a picture, for which it needs several times as long as a client may take nothing for.
    @Test func keepsAClientThatIsSlow() throws {
        let run = FakeRun()
        run.state.withLock { $0.padding = 24 << 20 }
        let (server, api) = try Self.server(run, progress: 1000, connections: 100)
        defer { server.stop() }
        let thread = try NamedThread("test") { api.pictures.run() }
        defer {
            api.pictures.close()
            thread.end.wait(milliseconds: 2000)
        }
        // A busy machine may keep a client from reading for longer than that.
        for _ in 0..<10 {
            let client = try Client(server.port, receiveBuffer: 64 << 10)
            try client.ask("GET /api/v1/stages/cam/pictures?count=1", port: server.port)
            if client.skip(24 << 20, each: 64 << 10, pause: 5000) { return }
        }
        Issue.record("it was cut off each time")
    }

    private static func server(_ run: FakeRun, progress: Int64, connections: Int) throws -> (
        HTTPServer, ControlAPI
    ) {
        var made: ControlAPI?
        let address = try #require(ListenAddress("127.0.0.1:0"))
        var limits = ConnectionBook<ObjectIdentifier>.Limits()
        limits.all = connections
        let server = try HTTPServer(address, progress: progress, limits: limits) { port in
            let api = ControlAPI(
                control: run, gate: Gate(address: address, port: port, hosts: [], token: nil),
                pictures: PictureRequests(run), units: try! UnitFanOut(run), events: EventRing(run: "run"),
                rates: RateWatch(run))
            made = api
            return api
        }
        return (server, try #require(made))
    }

    /// More connections than there is room for are answered, not left to wait.
    @Test func turnsAwayWhatItHasNoRoomFor() throws {
        let (server, _) = try Self.server(FakeRun(), progress: 10_000, connections: 2)
        defer { server.stop() }
        do {
            let clients = try (0..<2).map { _ in
                let client = try Client(server.port)
                try client.ask("GET /healthz", port: server.port)
                #expect(try client.answer().hasPrefix("HTTP/1.1 200 "))
                return client
            }
            defer { withExtendedLifetime(clients) {} }
            let third = try Client(server.port)
            let answer = try third.receive()
            #expect(answer.hasPrefix("HTTP/1.1 503 Service Unavailable\r\n"))
            #expect(answer.hasSuffix(#""code":"exhausted"}}"# + "\n"))
        }
        // There is room again once they have gone.
        let deadline = Date() + 120
        while Date() < deadline {
            let client = try Client(server.port)
            try client.ask("GET /healthz", port: server.port)
            if try client.answer().hasPrefix("HTTP/1.1 200 ") { return }
        }
        Issue.record("no connection was taken within 120 s")
    }

    /// Of one address, idle connections without the token push out only each other.
    @Test func whoHasTheTokenGetsInBesideAThousandIdleStrangers() throws {
        let running = try RunningServer { $0.token = "0123456789abcdef" }
        let owner = try running.connect()
        func ask(_ client: Client) throws {
            try client.ask("GET /healthz", port: running.port, "Authorization: Bearer 0123456789abcdef")
            #expect(try client.answer().hasPrefix("HTTP/1.1 200 "))
        }
        try ask(owner)
        let strangers = try (0..<1000).map { _ in try running.connect() }
        try ask(owner)
        try ask(running.connect())
        // The first of them have made room.
        #expect(try strangers[0].receive() == "")
        withExtendedLifetime(strangers) {}
    }

    /// A hundred clients ask for a picture and read nothing: they share one copy, and the sum is limited.
    @Test func picturesOnTheirWayHaveALimit() throws {
        let run = FakeRun()
        run.state.withLock { $0.padding = 20 << 20 }
        let (server, api) = try Self.server(run, progress: 10_000, connections: 200)
        defer { server.stop() }
        let thread = try NamedThread("test") { api.pictures.run() }
        defer {
            api.pictures.close()
            thread.end.wait(milliseconds: 2000)
        }
        var clients: [Client] = []
        for _ in 0..<12 {
            clients += try (0..<8).map { _ in try Client(server.port, receiveBuffer: 4096) }
            for client in clients.suffix(8) { try client.ask("GET /api/v1/stages/cam/picture", port: server.port) }
            usleep(20_000)
            #expect(api.memory.used <= AnswerMemory.usual)
        }
        // Once those that read nothing have lost their connections, there is room again.
        let deadline = Date() + 60
        while Date() < deadline {
            let client = try Client(server.port)
            try client.ask("GET /api/v1/stages/cam/picture", port: server.port)
            let answer = try client.receive { $0.hasPrefix("HTTP/1.1 200 ") || $0.hasSuffix("}\n") }
            if answer.hasPrefix("HTTP/1.1 200 ") { return withExtendedLifetime(clients) {} }
            #expect(answer.contains("what clients have not read yet takes up all 64 MB"))
            usleep(200_000)
        }
        Issue.record("there was no room for a minute")
    }
}

extension RunningServer {
    var viewers: Int { server.viewerCount }
}
