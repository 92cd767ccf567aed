// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Foundation
import Glibc
import ServerAccess
import Synchronization
import Testing

@testable import RTSPSink

/// The stage with its server, driven by hand, before clients over plain sockets.
@Suite(.serialized) struct RTSPSinkTests {
    static let video = VideoFormat(.i420, width: 64, height: 64, frameRate: Rational(30), timeBase: TimeBase(1, 90_000))
    static let format = MediaFormat.encoded(
        EncodedFormat(
            codec: .h264, framing: .annexB,
            parameterSets: H264PacketizerTests.annexB([H264PacketizerTests.sps, H264PacketizerTests.pps]), video: video,
            bitrateKbps: 500))

    /// Below those that the kernel hands out (`ip_local_port_range`, ip(7)), so that no client and no other test is
    /// given it once it is free again.
    static func freePort() -> Int {
        while true {
            // None twice in this process: it is free until its stage listens, and another test would be given it.
            let port = UInt16(15_000 + nextPort.wrappingAdd(1, ordering: .relaxed).oldValue % 5000)
            let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
            defer { close(socket) }
            let storage = SocketAddressStorage(IPAddress("127.0.0.1")!, port: port, isIPv6: false)
            if bind(socket, storage.generic, storage.byteCount) == 0 { return Int(port) }
        }
    }

    /// The tests of the whole program have those below 15000.
    private static let nextPort = Atomic(Int.random(in: 0..<5000))

    /// A stage on a free port, and what it was sent. Its clock stands still: a keyframe is never too long ago unless
    /// the test says so.
    private final class Stage {
        let clock: ManualClock
        let driver: StageDriver<RTSPSink>
        let port: Int
        let url: String
        var count = 0

        init(
            _ options: String = "", port: Int? = nil, path: String = "/live",
            clock: ManualClock = ManualClock(at: 5_000_000_000), makesKeyframes: Bool = true
        )
            throws
        {
            self.clock = clock
            let port = port ?? RTSPSinkTests.freePort()
            self.port = port
            url = "rtsp://127.0.0.1:\(port)\(path)"
            let text = #"{ "port": \#(port), "path": "\#(path)" \#(options.isEmpty ? "" : ", " + options) }"#
            driver = try StageDriver(
                RTSPSink.self, options: text, input: RTSPSinkTests.format, makesKeyframes: makesKeyframes, clock: clock)
        }

        deinit { try? driver.stop() }

        /// One access unit of one slice, whose bytes tell its number.
        @discardableResult
        func send(isKeyframe: Bool = false, byteCount: Int = 3000) throws -> [UInt8] {
            let unit: [UInt8] =
                [isKeyframe ? 0x65 : 0x41, UInt8(count & 0x7f) | 0x80] + H264PacketizerTests.unit(1, byteCount - 2)
            try driver.send(
                driver.makeAccessUnit(
                    H264PacketizerTests.annexB([unit]), pts: MediaTime(nanoseconds: Int64(count) * 33_366_667),
                    isKeyframe: isKeyframe))
            count += 1
            return unit
        }

        /// What the stage says of itself and its readers.
        func figures() throws -> JSONNode? {
            try driver.command("readers")
            return events("readers").first?.details
        }

        func events(_ name: String) -> [Event] { driver.takeEvents().filter { $0.name == name } }

        /// Waits for an event that a loop posts.
        func event(_ name: String) -> Event? {
            for _ in 0..<6000 {
                if let event = events(name).first { return event }
                usleep(10_000)
            }
            return nil
        }

        /// Lets time pass until kept units are too old for who joins now.
        func outwaitTheKeyframe() { clock.advance(to: clock.now() + 300_000_000) }
    }

    static let sets = [H264PacketizerTests.sps, H264PacketizerTests.pps]

    // MARK: Playing

    @Test(arguments: ["0-1", "6-7"]) func playsOverTheConnection(channels: String) throws {
        let stage = try Stage()
        let client = try RTSPTestClient(port: stage.port)
        let key = try stage.send(isKeyframe: true)
        let answer = try client.play(stage.url, transport: "RTP/AVP/TCP;unicast;interleaved=\(channels)")
        #expect(answer.status == 200)
        let others = try (0..<50).map { _ in try stage.send() }
        let report = try client.frame()
        #expect(report.channel == UInt8(channels.suffix(1)))
        guard case .senderReport = RTCP.parse(report.payload)?.first else {
            Issue.record("the first packet is no sender report")
            return
        }
        let units = try client.units(51)
        #expect(units[0] == Self.sets + [key])
        #expect(Array(units[1...]) == others.map { [$0] })
    }

    @Test func playsOverDatagrams() throws {
        let stage = try Stage()
        let receivers = try (0..<2).map { _ in try DatagramReceiver() }
        var keys: [[UInt8]] = []
        for receiver in receivers {
            let client = try RTSPTestClient(port: stage.port)
            keys.append(try stage.send(isKeyframe: true))
            try client.play(stage.url, transport: "RTP/AVP;unicast;client_port=\(receiver.port)-\(receiver.port + 1)")
            receiver.client = client
        }
        let others = try (0..<20).map { try stage.send(byteCount: 500 + 4000 * ($0 % 3)) }
        // The first one's keyframe, the second one's, and what followed.
        #expect(try receivers[0].units(22) == [Self.sets + [keys[0]], Self.sets + [keys[1]]] + others.map { [$0] })
        #expect(try receivers[1].units(21) == [Self.sets + [keys[1]]] + others.map { [$0] })
        let answer = try receivers[0].client?.say("TEARDOWN", stage.url)
        #expect(answer?.status == 200)
        let last = try stage.send()
        #expect(try receivers[1].units(1) == [[last]])
        #expect(throws: RTSPTestClient.Fault.self) { try receivers[0].units(1, seconds: 1) }
    }

    @Test func tellsWhereTheFirstPacketStands() throws {
        let stage = try Stage()
        try stage.send(isKeyframe: true)
        try stage.send()
        let client = try RTSPTestClient(port: stage.port)
        let info = try #require(try client.play(stage.url).headers["RTP-Info"].flatMap(RTPInfo.init))
        _ = try client.frame()
        let header = try #require(RTPHeader(try client.frame().payload))
        #expect(
            info
                == RTPInfo(
                    url: "\(stage.url)/trackID=0", sequenceNumber: header.sequenceNumber, rtpTime: header.timestamp))
    }

    @Test func startsWithTheNextKeyframeWhereTheLastIsTooLongAgo() throws {
        let stage = try Stage()
        let clients = try (0..<3).map { _ in try RTSPTestClient(port: stage.port) }
        // A keyframe too long ago is of no use.
        try stage.send(isKeyframe: true)
        stage.outwaitTheKeyframe()
        try stage.send()
        for client in clients {
            let info = try client.play(stage.url).headers["RTP-Info"]
            #expect(info == "url=\(stage.url)/trackID=0")
        }
        try stage.send()
        let key = try stage.send(isKeyframe: true)
        for client in clients { #expect(try client.units(1) == [Self.sets + [key]]) }
    }

    // MARK: Where nobody makes keyframes

    /// However long ago the keyframe was: the chain's clock has nothing to do with it.
    @Test func joinersHaveAllSinceTheLastKeyframe() throws {
        let stage = try Stage(#""stuckSeconds": 300"#, makesKeyframes: false)
        try stage.send()
        let key = try stage.send(isKeyframe: true, byteCount: 200_000)
        var others = try (0..<120).map { _ in try stage.send(byteCount: 20_000) }
        stage.outwaitTheKeyframe()
        let clients = try (0..<3).map { _ in try RTSPTestClient(port: stage.port) }
        for client in clients {
            let info = try client.play(stage.url).headers["RTP-Info"]
            #expect(info?.contains("seq=") == true && info?.contains("rtptime=") == true)
        }
        // What comes while they catch up comes once, and in its place.
        others += try (0..<30).map { _ in try stage.send(byteCount: 500) }
        let expected = [Self.sets + [key]] + others.map { [$0] }
        for client in clients {
            let isAll = try client.units(expected.count) == expected
            #expect(isAll)
        }
        let last = try stage.send()
        for client in clients { #expect(try client.units(1) == [[last]]) }
        let figures = try #require(try stage.figures()?["keptGroup"])
        #expect(figures["joinedAtOnce"]?.asInt == 3 && figures["joinedWaiting"]?.asInt == 0)
        #expect(figures["bytes"]?.asInt ?? 0 > 2_600_000)
    }

    /// In several steps, and altogether less than the kernel keeps for a socket that is not read.
    @Test func joinersOverDatagramsHaveAllSinceTheLastKeyframe() throws {
        let stage = try Stage(makesKeyframes: false)
        let key = try stage.send(isKeyframe: true, byteCount: 20_000)
        var others = try (0..<40).map { _ in try stage.send(byteCount: 1200) }
        stage.outwaitTheKeyframe()
        let receivers = try (0..<2).map { _ in try DatagramReceiver() }
        for receiver in receivers {
            let client = try RTSPTestClient(port: stage.port)
            try client.play(stage.url, transport: "RTP/AVP;unicast;client_port=\(receiver.port)-\(receiver.port + 1)")
            receiver.client = client
        }
        others += try (0..<10).map { _ in try stage.send(byteCount: 500) }
        let expected = [Self.sets + [key]] + others.map { [$0] }
        for receiver in receivers {
            let isAll = try receiver.units(expected.count) == expected
            #expect(isAll)
        }
        let next = try stage.send(isKeyframe: true)
        for receiver in receivers { #expect(try receiver.units(1) == [Self.sets + [next]]) }
    }

    @Test func aReaderThatCatchesUpSlowlyGoesOnWithTheNextKeyframe() throws {
        let stage = try Stage(#""stuckSeconds": 300"#, makesKeyframes: false)
        let key = try stage.send(isKeyframe: true)
        // More than the connection takes.
        for _ in 0..<100 { try stage.send(byteCount: 100_000) }
        let client = try RTSPTestClient(port: stage.port, receiveBuffer: 4096)
        try client.play(stage.url)
        var units = try client.units(1)
        let next = try stage.send(isKeyframe: true)
        let last = try stage.send()
        while units.last != [last] { units += try client.units(1) }
        let isFromBoth = units.first == Self.sets + [key] && units.suffix(2) == [Self.sets + [next], [last]]
        #expect(isFromBoth)
        #expect((3..<102).contains(units.count))
        try stage.driver.command("readers")
        let reader = stage.event("readers")?.details["readers"]?.asArray?.first
        #expect(reader?["droppedUnits"]?.asInt == 103 - units.count)
    }

    @Test func closesAReaderThatTakesNothingWhileItCatchesUp() throws {
        let stage = try Stage(#""stuckSeconds": 1"#, makesKeyframes: false)
        try stage.send(isKeyframe: true)
        for _ in 0..<100 { try stage.send(byteCount: 100_000) }
        let client = try RTSPTestClient(port: stage.port, receiveBuffer: 4096)
        try client.play(stage.url)
        #expect(stage.event("client-left")?.details["why"]?.asString == "stuck")
    }

    @Test func joinersWaitForTheNextKeyframeWhereTheyAreToOrMust() throws {
        let told = try Stage(#""joinAt": "nextKeyframe""#, makesKeyframes: false)
        let short = try Stage(#""keptSeconds": 1"#, makesKeyframes: false)
        let small = try Stage(#""keptMegabytes": 0.1"#, makesKeyframes: false)
        for stage in [told, short, small] {
            try stage.send(isKeyframe: true)
            for _ in 0..<40 { try stage.send() }
            stage.outwaitTheKeyframe()
            let client = try RTSPTestClient(port: stage.port)
            #expect(try client.play(stage.url).headers["RTP-Info"]?.contains("seq=") == false)
            try stage.send()
            let key = try stage.send(isKeyframe: true)
            #expect(try client.units(1) == [Self.sets + [key]])
        }
        #expect(told.events("group-too-large").isEmpty)
        #expect(try told.figures()?["keptGroup"] == nil)
        #expect(
            short.events("group-too-large").map(\.text) == [
                "Keyframes are more than 1.0 s apart: readers that join between them may have to wait for the next one. Raise 'keptSeconds', or encode with more keyframes."
            ])
        #expect(
            small.events("group-too-large").map(\.text) == [
                "Keyframes are more than 0.1 MB apart: readers that join between them may have to wait for the next one. Raise 'keptMegabytes', or encode with more keyframes."
            ])
        let figures = try small.figures()?["keptGroup"]
        #expect(figures?["tooLarge"]?.asInt == 1 && figures?["joinedWaiting"]?.asInt == 1)
    }

    /// What a player has had does not come a second time.
    @Test func goesOnWithTheNextKeyframeAfterAPause() throws {
        let stage = try Stage(makesKeyframes: false)
        try stage.send(isKeyframe: true)
        let client = try RTSPTestClient(port: stage.port)
        try client.play(stage.url)
        _ = try client.units(1)
        #expect(try client.say("PAUSE", stage.url).status == 200)
        try stage.send()
        #expect(try client.say("PLAY", stage.url).status == 200)
        try stage.send()
        let key = try stage.send(isKeyframe: true)
        #expect(try client.units(1) == [Self.sets + [key]])
    }

    @Test func thePlanCountsWhatIsKeptForJoiners() throws {
        let limits = GroupStore.Limits(seconds: 3, megabytes: 5)
        let kept = #""keptSeconds": 3, "keptMegabytes": 5"#
        #expect(try Stage(kept, makesKeyframes: false).driver.stage.demand.ownBytes == limits.byteCount)
        #expect(try Stage(kept).driver.stage.demand.ownBytes == 0)
        let told = try Stage(#""joinAt": "nextKeyframe""#, makesKeyframes: false)
        #expect(told.driver.stage.demand.ownBytes == 0)
    }

    // MARK: Pausing

    @Test func pausesAndGoesOnWithAKeyframe() throws {
        let stage = try Stage()
        try stage.send(isKeyframe: true)
        let client = try RTSPTestClient(port: stage.port)
        try client.play(stage.url)
        _ = try client.units(1)
        #expect(try client.say("PAUSE", stage.url).status == 200)
        try stage.send()
        #expect(try client.say("GET_PARAMETER", stage.url).status == 200)
        #expect(client.frames.isEmpty)
        stage.outwaitTheKeyframe()
        #expect(try client.say("PLAY", stage.url).status == 200)
        try stage.send()
        let key = try stage.send(isKeyframe: true)
        #expect(try client.units(1) == [Self.sets + [key]])
    }

    @Test func reportsTimesOfTheSameTick() throws {
        let clock = ManualClock(at: 5_000_000_000)
        let stage = try Stage(clock: clock)
        try stage.send(isKeyframe: true)
        let client = try RTSPTestClient(port: stage.port)
        try client.play(stage.url)
        _ = try client.frame()
        // PTS 0, which the first unit had when the clock stood at 5 s.
        let base = try #require(RTPHeader(try client.frame().payload)).timestamp
        for step in 1...3 {
            clock.advance(to: 5_000_000_000 + Int64(step) * 6_012_345_678)
            try stage.send()
            var found = try client.frame()
            while found.channel == 0 { found = try client.frame() }
            guard case .senderReport(let report, _) = RTCP.parse(found.payload)?.first else {
                Issue.record("no sender report at \(step)")
                return
            }
            let moment = report.ntp.unixNanoseconds - 5_000_000_000
            let ticks = Int64(Int32(bitPattern: report.rtpTime &- base))
            #expect(abs(RTPClock.ticks(ofNanoseconds: moment) - ticks) <= 1)
            #expect(abs(moment - Int64(step) * 6_012_345_678) < 6_000)
            #expect(report.packetCount > 0)
        }
    }

    // MARK: Options

    @Test(arguments: [
        ("noslash", "must begin with a slash", #"Write "/noslash"."#),
        ("", "must begin with a slash", #"Write it like "/live"."#),
        ("/", "must have a name", #"Write it like "/live"."#),
        ("/a%20b", "must not contain ? or %", "Leave them out."),
        ("/a?b", "must not contain ? or %", "Leave them out."),
        ("/a/", "must not end with a slash", "Leave that slash out."),
        ("/a//b", "must not have two slashes in a row", "Write one slash there."),
        (
            "/a/trackID=1", "cannot be the path of a stream",
            "Use letters and digits, and do not end it with a name such as trackID=1, which stands for a track."
        ),
    ]) func saysWhichRuleAPathBreaks(path: String, rule: String, remedy: String) {
        var options = RTSPSinkOptions()
        options.path = path
        let faults = #expect(throws: OptionFaults.self) { try options.validate() }
        #expect(faults?.faults.map(\.what) == ["'path' \"\(path)\" \(rule)"])
        #expect(faults?.faults.map(\.remedy) == [remedy])
    }

    @Test(arguments: AuthenticationScheme.allCases)
    func saysThatAnAuthenticationWithoutUsersChecksNothing(scheme: AuthenticationScheme) throws {
        var options = RTSPSinkOptions()
        options.authentication = scheme
        let faults = #expect(throws: OptionFaults.self) { try options.validate() }
        #expect(
            faults?.faults.map(\.what) == [
                "'authentication' needs 'users': without them every client may play, and no password is checked"
            ])
        options.users = "env:RTSP_USERS"
        try options.validate()
    }

    // MARK: Several

    @Test func opensUDPPortsForTheFirstStreamThatMayUseThem() throws {
        let one = try Stage(#""transport": "tcp""#)
        let server = try #require(ServerRegistry.shared.server(port: one.port))
        #expect(server.serverPorts == nil)
        let two = try Stage(port: one.port, path: "/two")
        #expect(server.serverPorts != nil)
        let receiver = try DatagramReceiver()
        let transport = "RTP/AVP;unicast;client_port=\(receiver.port)-\(receiver.port + 1)"
        let refused = try RTSPTestClient(port: one.port)
        #expect(try refused.say("SETUP", "\(one.url)/trackID=0", [("Transport", transport)]).status == 461)
        let client = try RTSPTestClient(port: one.port)
        let key = try two.send(isKeyframe: true)
        try client.play(two.url, transport: transport)
        receiver.client = client
        #expect(try receiver.units(1) == [Self.sets + [key]])
        for stage in [one, two] { try stage.driver.stop() }
    }

    @Test func servesSeveralPathsOnOnePort() throws {
        let one = try Stage()
        let two = try Stage(port: one.port, path: "/two")
        for stage in [one, two] {
            let key = try stage.send(isKeyframe: true)
            let client = try RTSPTestClient(port: one.port)
            try client.play(stage.url)
            #expect(try client.units(1) == [Self.sets + [key]])
        }
        let fault = #expect(throws: FrameHostError.self) { try Stage(port: one.port, path: "/two") }
        #expect(
            "\(fault!)" == "path: port \(one.port) already has a stream '/two'. Give each stage a 'path' of its own.")
        let other = #expect(throws: FrameHostError.self) {
            try Stage(#""address": "127.0.0.1""#, port: one.port, path: "/three")
        }
        #expect(other?.what == "port \(one.port) is already served with another address or certificate")
        for option in [#""sessionSeconds": 30"#, #""maxConnectionsPerAddress": 3"#] {
            let differing = #expect(throws: FrameHostError.self) { try Stage(option, port: one.port, path: "/three") }
            #expect(
                differing?.what
                    == "port \(one.port) is already served with another 'sessionSeconds' or 'maxConnectionsPerAddress'"
            )
            #expect(differing?.remedy.contains(#""sessionSeconds": 60 and "maxConnectionsPerAddress": 256"#) == true)
        }
        try two.driver.stop()
        let client = try RTSPTestClient(port: one.port)
        #expect(try client.say("DESCRIBE", two.url).status == 404)
        #expect(try client.say("DESCRIBE", one.url).status == 200)
    }

    @Test func saysThatAPortIsTaken() throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        defer { close(listener) }
        let port = Self.freePort()
        let storage = SocketAddressStorage(IPAddress("127.0.0.1")!, port: UInt16(port), isIPv6: false)
        bind(listener, storage.generic, storage.byteCount)
        listen(listener, 1)
        let fault = #expect(throws: FrameHostError.self) { try Stage(port: port) }
        #expect(
            "\(fault!)" == "port: port \(port) is in use by another program. End that program, or set another 'port'.")
    }

    // MARK: Coming and going

    @Test func tellsOfClientsThatComeAndGo() throws {
        let stage = try Stage()
        let serving = stage.events("serving")
        #expect(serving.first?.details["urls"]?.asArray?.contains { $0.asString == stage.url } == true)
        try stage.send(isKeyframe: true)
        var client: RTSPTestClient? = try RTSPTestClient(port: stage.port)
        try client?.play(stage.url)
        let joined = try #require(stage.event("client-joined"))
        #expect(joined.text == "127.0.0.1 plays /live over TCP.")
        try stage.driver.command("readers")
        #expect(stage.event("readers")?.details["readers"]?.asArray?.first?["transport"]?.asString == "tcp")
        // Gone without a word.
        client = nil
        let left = try #require(stage.event("client-left"))
        #expect(left.details["why"]?.asString == "closed")
        #expect(left.details["address"]?.asString == "127.0.0.1")
    }

    @Test func saysByeAndClosesAtTheEndOfTheStream() throws {
        let stage = try Stage()
        try stage.send(isKeyframe: true)
        let client = try RTSPTestClient(port: stage.port)
        try client.play(stage.url)
        _ = try client.units(1)
        try stage.driver.stop()
        let bye = RTCP.parse(try client.frame().payload)
        guard case .bye = bye?.last else {
            Issue.record("\(String(describing: bye))")
            return
        }
        #expect(client.isClosed())
        #expect(throws: RTSPTestClient.Fault.self) { try RTSPTestClient(port: stage.port) }
    }

    @Test func closesAReaderThatTakesNothingWhileOthersGetAll() throws {
        // Something is dropped before it is found to be stuck, though a busy machine may send little meanwhile.
        let stage = try Stage(#""queueSeconds": 0.1, "stuckSeconds": 10"#)
        try stage.send(isKeyframe: true)
        let frozen = try RTSPTestClient(port: stage.port, receiveBuffer: 4096)
        try frozen.play(stage.url)
        let client = try RTSPTestClient(port: stage.port)
        try client.play(stage.url)
        _ = try client.units(1)
        let deadline = Date() + 180
        var left: Event?
        var sent = 0
        while left == nil, Date() < deadline {
            let unit = try stage.send(isKeyframe: sent % 10 == 0, byteCount: 40_000)
            sent += 1
            let got = try client.units(1)
            #expect(got.first?.last == unit)
            left = stage.events("client-left").first
            usleep(10_000)
        }
        #expect(left?.details["why"]?.asString == "stuck")
        #expect((1..<sent).contains(left?.details["droppedUnits"]?.asInt ?? 0))
    }

    // MARK: Hostile

    @Test func readsRequestsByteByByteAndInOneGo() throws {
        let stage = try Stage()
        let client = try RTSPTestClient(port: stage.port)
        for byte in client.request("OPTIONS", stage.url) { client.write([byte]) }
        #expect(try client.answer().status == 200)
        client.write((0..<40).flatMap { _ in client.request("OPTIONS", "*") })
        for number in 2...41 { #expect(try client.answer().headers["CSeq"] == String(number)) }
    }

    @Test(arguments: [
        ("OPTIONS\0 * RTSP/1.0\r\n\r\n", 400), ("GET / HTTP/1.1\r\n\r\n", 405),
        (String(repeating: "A", count: 5000), 414),
        ("OPTIONS * RTSP/1.0\r\nCSeq: 1\r\nContent-Length: 99999999\r\n\r\n", 413),
        ("OPTIONS * RTSP/1.0\r\nX: " + String(repeating: "x", count: 20_000), 400),
    ]) func refusesAndCloses(text: String, status: Int) throws {
        let stage = try Stage()
        let client = try RTSPTestClient(port: stage.port)
        client.write(Array(text.utf8))
        #expect(try client.answer().status == status)
        #expect(client.isClosed())
    }

    @Test func closesAClientThatTakesNoAnswers() throws {
        let stage = try Stage()
        let client = try RTSPTestClient(port: stage.port, receiveBuffer: 4096)
        let flood = (0..<200).flatMap { _ in client.request("DESCRIBE", stage.url) }
        var limit = timeval(tv_sec: 1, tv_usec: 0)
        setsockopt(client.socket, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        var isRefused = false
        let deadline = Date() + 60
        while !isRefused, Date() < deadline {
            let sent = flood.withUnsafeBytes { send(client.socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            isRefused = sent < 0 && errno != EAGAIN
        }
        #expect(isRefused)
        let other = try RTSPTestClient(port: stage.port)
        #expect(try other.say("OPTIONS", stage.url).status == 200)
    }

    @Test func endsAnUnfinishedRequest() throws {
        let stage = try Stage()
        let client = try RTSPTestClient(port: stage.port)
        client.write(Array("OPTIONS * RTSP/1.0\r\nCSeq: ".utf8))
        // A byte now and then, for longer than a request may take: it does not buy time.
        for _ in 0..<600 where !client.hasNews(milliseconds: 100) { client.write([49]) }
        #expect(client.isClosed())
    }

    @Test func asksForUsersFromTheEnvironment() throws {
        setenv("RTSP_TEST_USERS", "Mufasa:Circle Of Life", 1)
        let stage = try Stage(#""users": "env:RTSP_TEST_USERS""#)
        let client = try RTSPTestClient(port: stage.port)
        let asked = try client.say("DESCRIBE", stage.url)
        #expect(asked.status == 401)
        let nonce = Authorization.parameters(String((asked.headers["WWW-Authenticate"] ?? "").dropFirst(7)))?.first {
            $0.name == "nonce"
        }?
        .value
        let header = AccessTests.digest(.digest, uri: stage.url, nonce: nonce ?? "", method: "DESCRIBE")
        #expect(try client.say("DESCRIBE", stage.url, [("Authorization", header)]).status == 200)
        let fault = #expect(throws: FrameHostError.self) { try Stage(#""users": "env:RTSP_TEST_NOBODY""#) }
        #expect(fault?.what == "the environment variable 'RTSP_TEST_NOBODY' is not set")
    }
}
