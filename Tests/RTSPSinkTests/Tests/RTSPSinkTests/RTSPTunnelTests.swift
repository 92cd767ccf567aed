// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Glibc
import ServerAccess
import Testing

@testable import RTSPSink

/// RTSP through HTTP over real sockets: a GET that hears, a POST that speaks.
@Suite(.serialized) struct RTSPTunnelTests {
    private final class Tunnel {
        let output: RTSPTestClient
        var input: RTSPTestClient
        let port: Int
        static func head(_ method: String, _ cookie: String) -> [UInt8] {
            Array(
                ("\(method) /live HTTP/1.0\r\nUser-Agent: test\r\nx-sessioncookie: \(cookie)\r\nAccept: application/x-rtsp-tunnelled\r\n"
                    + (method == "POST"
                        ? "Content-Type: application/x-rtsp-tunnelled\r\nContent-Length: 32767\r\n" : "") + "\r\n").utf8
            )
        }

        init(port: Int, cookie: String = "abc") throws {
            self.port = port
            output = try RTSPTestClient(port: port)
            output.write(Self.head("GET", cookie))
            let status = try output.answer().status
            guard status == 200 else { throw RTSPTestClient.Fault(what: "GET: \(status)") }
            input = try RTSPTestClient(port: port)
            input.write(Self.head("POST", cookie))
        }

        /// - Parameter step: So many bytes of Base64 in one write.
        func say(_ method: String, _ url: String, _ headers: [(String, String)] = [], step: Int = 1000) throws
            -> RTSPTestClient.Answer
        {
            let fields = headers + (output.session.isEmpty ? [] : [("Session", output.session)])
            let coded = Array(Base64.encode(output.request(method, url, fields)).utf8)
            for first in stride(from: 0, to: coded.count, by: step) {
                input.write(Array(coded[first..<min(first + step, coded.count)]))
            }
            return try output.answer()
        }

        func play(_ url: String) throws {
            _ = try say("DESCRIBE", url)
            let setUp = try say(
                "SETUP", "\(url)/trackID=0", [("Transport", "RTP/AVP/TCP;unicast;interleaved=0-1")], step: 5)
            output.session = setUp.headers["Session"].flatMap { SessionHeader($0)?.id } ?? ""
            #expect(try say("PLAY", url).status == 200)
        }
    }

    private static func stage(_ options: String = "") throws -> (driver: StageDriver<RTSPSink>, port: Int, url: String)
    {
        let port = RTSPSinkTests.freePort()
        let driver = try StageDriver(
            RTSPSink.self, options: #"{ "port": \#(port)\#(options) }"#, input: RTSPSinkTests.format)
        return (driver, port, "rtsp://127.0.0.1:\(port)/live")
    }

    private static func send(_ driver: StageDriver<RTSPSink>, isKeyframe: Bool) throws -> [UInt8] {
        let unit: [UInt8] = [isKeyframe ? 0x65 : 0x41] + H264PacketizerTests.unit(1, 2998)
        try driver.send(
            driver.makeAccessUnit(
                H264PacketizerTests.annexB([unit]), pts: MediaTime(nanoseconds: 0), isKeyframe: isKeyframe))
        return unit
    }

    @Test func playsThroughIt() throws {
        let (driver, port, url) = try Self.stage()
        defer { try? driver.stop() }
        let key = try Self.send(driver, isKeyframe: true)
        let tunnel = try Tunnel(port: port)
        try tunnel.play(url)
        #expect(try tunnel.output.units(1).first?.last == key)
        let next = try Self.send(driver, isKeyframe: false)
        #expect(try tunnel.output.units(1) == [[next]])
        #expect(try tunnel.say("TEARDOWN", url, step: 1).status == 200)
        #expect(driver.takeEvents().contains { $0.name == "client-joined" })
    }

    /// A new POST goes on where the old one was left.
    @Test func goesOnWithAnotherPOST() throws {
        let (driver, port, url) = try Self.stage()
        defer { try? driver.stop() }
        let tunnel = try Tunnel(port: port)
        try tunnel.play(url)
        tunnel.input = try RTSPTestClient(port: port)
        tunnel.input.write(Tunnel.head("POST", "abc"))
        #expect(try tunnel.say("GET_PARAMETER", url).status == 200)
    }

    @Test func asksForPasswordsAsOnAnyConnection() throws {
        setenv("RTSP_TUNNEL_USERS", "anna:secret", 1)
        let (driver, port, url) = try Self.stage(#", "users": "env:RTSP_TUNNEL_USERS", "authentication": "basic""#)
        defer { try? driver.stop() }
        let tunnel = try Tunnel(port: port)
        #expect(try tunnel.say("DESCRIBE", url).status == 401)
        let right = ("Authorization", Authorization.basic(name: "anna", password: "secret").text)
        #expect(try tunnel.say("DESCRIBE", url, [right]).status == 200)
        for number in 1...6 {
            let wrong = ("Authorization", Authorization.basic(name: "anna", password: "\(number)").text)
            #expect(try tunnel.say("DESCRIBE", url, [wrong]).status == 401)
        }
        // Closed after six, and both of it.
        #expect(tunnel.output.isClosed())
        #expect(tunnel.input.isClosed())
    }

    @Test func endsAGETWithoutItsPOST() throws {
        let (driver, port, _) = try Self.stage()
        defer { try? driver.stop() }
        let client = try RTSPTestClient(port: port)
        client.write(Tunnel.head("GET", "abc"))
        #expect(try client.answer().status == 200)
        #expect(client.isClosed())
        // Its cookie is free again.
        _ = try Tunnel(port: port)
    }

    @Test func closesBothWhereWhatComesIsNoBase64() throws {
        let (driver, port, url) = try Self.stage()
        defer { try? driver.stop() }
        let tunnel = try Tunnel(port: port)
        #expect(try tunnel.say("OPTIONS", url).status == 200)
        tunnel.input.write(Array("!!!!".utf8))
        #expect(try tunnel.output.answer().status == 400)
        #expect(tunnel.output.isClosed())
        #expect(tunnel.input.isClosed())
    }

    /// Both on one connection, which once was a use after free in live555; and a POST that nobody waits for.
    @Test func bearsWithTunnelsThatAreNone() throws {
        let (driver, port, url) = try Self.stage()
        defer { try? driver.stop() }
        let both = try RTSPTestClient(port: port)
        both.write(Tunnel.head("GET", "one"))
        #expect(try both.answer().status == 200)
        both.write(Tunnel.head("POST", "one"))
        both.write([UInt8](repeating: 65, count: 4000))
        #expect(both.isClosed())
        let lost = try RTSPTestClient(port: port)
        lost.write(Tunnel.head("POST", "two"))
        #expect(try lost.answer().status == 400)
        #expect(lost.isClosed())
        #expect(try RTSPTestClient(port: port).say("OPTIONS", url).status == 200)
    }

    /// Megabytes of requests through a tunnel whose answers nobody takes: it is closed, and the others do not notice.
    @Test func closesATunnelThatFloods() throws {
        let (driver, port, url) = try Self.stage()
        defer { try? driver.stop() }
        let tunnel = try Tunnel(port: port)
        let coded = Array(Base64.encode((0..<300).flatMap { _ in tunnel.output.request("DESCRIBE", url) }).utf8)
        var limit = timeval(tv_sec: 1, tv_usec: 0)
        setsockopt(tunnel.input.socket, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        var isRefused = false
        let begin = Date()
        while !isRefused, Date().timeIntervalSince(begin) < 60 {
            let sent = coded.withUnsafeBytes {
                Glibc.send(tunnel.input.socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            isRefused = sent < 0 && errno != EAGAIN
        }
        #expect(isRefused)
        #expect(try RTSPTestClient(port: port).say("OPTIONS", url).status == 200)
    }
}
