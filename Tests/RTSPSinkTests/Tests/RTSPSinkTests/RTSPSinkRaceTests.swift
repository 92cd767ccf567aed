// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Glibc
import ServerAccess
import Testing

@testable import RTSPSink

/// Clients that ask for opposite things on several connections at once, and streams that end together: real threads,
/// over loopback.
@Suite(.serialized) struct RTSPSinkRaceTests {
    private static func readers(_ driver: StageDriver<RTSPSink>) throws -> Int? {
        try driver.command("readers")
        return driver.takeEvents().last { $0.name == "readers" }?.details["readers"]?.asArray?.count
    }

    /// PLAY on one connection against TEARDOWN, PAUSE or another SETUP on another: each round once left a reader that
    /// no session owned in about one of two thousand.
    @Test(.timeLimit(.minutes(60)), arguments: ["TEARDOWN", "PAUSE", "SETUP"])
    func leavesNoReaderBehindWhereTwoConnectionsDisagree(
        against: String
    ) throws {
        let port = RTSPSinkTests.freePort()
        let driver = try StageDriver(RTSPSink.self, options: #"{ "port": \#(port) }"#, input: RTSPSinkTests.format)
        let url = "rtsp://127.0.0.1:\(port)/live"
        let transport = ("Transport", "RTP/AVP;unicast;client_port=5000-5001")
        let (one, other) = (try RTSPTestClient(port: port), try RTSPTestClient(port: port))
        for round in 0..<1500 {
            let setUp = try one.say("SETUP", "\(url)/trackID=0", [transport])
            let session = setUp.headers["Session"].flatMap { SessionHeader($0)?.id } ?? ""
            #expect(setUp.status == 200)
            // Together: neither waits for an answer.
            one.write(one.request("PLAY", url, [("Session", session)]))
            if round % 3 == 1 { usleep(UInt32(round % 200)) }
            other.write(other.request(against, url, [("Session", session), transport]))
            _ = try one.answer()
            _ = try other.answer()
            // Whoever has it now ends it.
            other.write(other.request("TEARDOWN", url, [("Session", session)]))
            _ = try other.answer()
        }
        // What loops still have to do for it is done before they are asked.
        #expect(try Self.readers(driver) == 0)
        try driver.stop()
        let leftWithStream = driver.takeEvents().filter {
            $0.name == "client-left" && $0.details["why"]?.asString == "streamEnded"
        }
        #expect(leftWithStream.isEmpty)
    }

    /// Each stream gave its readers 0.4 s of grace under the lock that the next one needed: twelve took five seconds.
    @Test func streamsOfOnePortSayGoodbyeSideBySide() throws {
        let port = RTSPSinkTests.freePort()
        let count = 12
        var drivers: [StageDriver<RTSPSink>] = []
        var clients: [RTSPTestClient] = []
        let receivers = try (0..<count).map { _ in try DatagramReceiver() }
        for (number, receiver) in receivers.enumerated() {
            drivers.append(
                try StageDriver(
                    RTSPSink.self, options: #"{ "port": \#(port), "path": "/s\#(number)" }"#,
                    input: RTSPSinkTests.format))
            clients.append(try RTSPTestClient(port: port))
            try clients[number].play(
                "rtsp://127.0.0.1:\(port)/s\(number)",
                transport: "RTP/AVP;unicast;client_port=\(receiver.port)-\(receiver.port + 1)")
        }
        let begin = Date()
        let ends = Locked<[Date]>([])
        let stoppers = drivers.map { driver in
            let box = Unchecked(driver)
            let thread = Thread {
                try? box.value.stop()
                ends.withLock { $0.append(Date()) }
            }
            thread.start()
            return thread
        }
        while stoppers.contains(where: { !$0.isFinished }), Date().timeIntervalSince(begin) < 180 { usleep(5000) }
        // One after the other each needs 0.9 s more than the one before.
        let times = ends.withLock { $0.sorted() }
        let steps = zip(times, times.dropFirst()).map { $1.timeIntervalSince($0) }
        #expect(steps.count == count - 1 && steps.contains { $0 < 0.4 }, "\(steps)")
        for client in clients { #expect(client.isClosed()) }
        #expect(throws: RTSPTestClient.Fault.self) { try RTSPTestClient(port: port) }
    }

    private struct Unchecked<Value>: @unchecked Sendable {
        let value: Value
        init(_ value: Value) { self.value = value }
    }

    /// A stream that begins on the port of one that is just ending waits for it.
    @Test func aPortThatIsBeingClosedIsWaitedFor() throws {
        let port = RTSPSinkTests.freePort()
        for _ in 0..<5 {
            let first = try StageDriver(RTSPSink.self, options: #"{ "port": \#(port) }"#, input: RTSPSinkTests.format)
            let client = try RTSPTestClient(port: port)
            try client.play("rtsp://127.0.0.1:\(port)/live")
            let box = Unchecked(first)
            let thread = Thread { try? box.value.stop() }
            thread.start()
            while !thread.isFinished { usleep(1000) }
            let second = try StageDriver(RTSPSink.self, options: #"{ "port": \#(port) }"#, input: RTSPSinkTests.format)
            #expect(try RTSPTestClient(port: port).say("OPTIONS", "*").status == 200)
            try second.stop()
        }
    }

    @Test func saysThatPasswordsAreTried() throws {
        setenv("RTSP_TEST_LOGINS", "anna:secret", 1)
        let port = RTSPSinkTests.freePort()
        let driver = try StageDriver(
            RTSPSink.self,
            options: #"{ "port": \#(port), "users": "env:RTSP_TEST_LOGINS", "authentication": "basic" }"#,
            input: RTSPSinkTests.format)
        let url = "rtsp://127.0.0.1:\(port)/live"
        let begin = Date()
        for _ in 0..<5 {
            let client = try RTSPTestClient(port: port)
            for number in 1...6 {
                let wrong = Authorization.basic(name: "anna", password: "guess\(number)").text
                #expect(try client.say("DESCRIBE", url, [("Authorization", wrong)]).status == 401)
            }
            #expect(client.isClosed())
        }
        try driver.stop()
        let events = driver.takeEvents().filter { $0.name == "login-failed" }
        #expect(events.reduce(0) { $0 + ($1.details["failures"]?.asInt ?? 0) } == 30)
        // At once, every ten seconds, and at the end.
        #expect(events.count <= 2 + Int(Date().timeIntervalSince(begin) / 10))
        let last = try #require(events.last)
        #expect(last.level == .warning)
        #expect(last.details["address"]?.asString == "127.0.0.1")
        #expect(last.details["path"]?.asString == "/live")
        #expect(last.details["failuresInAll"]?.asInt == 30)
        #expect(last.text.hasPrefix("127.0.0.1 failed to log in to /live "))
        #expect(!last.text.contains("guess"))
    }

    /// How long the server's lock was held at most, with five hundred connections and a client that sends headers as
    /// large as they may be. The figure is the machine's; what is bounded is what is looked at meanwhile
    /// (RequestValuesTests).
    @Test func measuresTheLongestHoldOfTheLock() throws {
        let port = RTSPSinkTests.freePort()
        let driver = try StageDriver(RTSPSink.self, options: #"{ "port": \#(port) }"#, input: RTSPSinkTests.format)
        let crowd = try (0..<500).map { _ in try RTSPTestClient(port: port) }
        for client in crowd { _ = try client.say("OPTIONS", "*") }
        let server = try #require(ServerRegistry.shared.server(port: port))
        let before = server.longestHold
        let client = crowd[0]
        let url = "rtsp://127.0.0.1:\(port)/live"
        for _ in 0..<200 {
            // 15 kB: refused, with 400.
            let large = String(repeating: "RTP/AVP;unicast;client_port=1-2,", count: 460)
            #expect(try client.say("SETUP", url, [("Transport", large)]).status == 400)
            let many = Array(repeating: "RTP/AVP/TCP;interleaved=300-301", count: 16).joined(separator: ",")
            #expect(try client.say("SETUP", url, [("Transport", many)]).status == 461)
        }
        print(
            "longest hold of the lock: \(before / 1000) µs with 500 connections, \(server.longestHold / 1000) µs after 400 large requests"
        )
        #expect(server.longestHold > 0)
        try driver.stop()
    }
}
