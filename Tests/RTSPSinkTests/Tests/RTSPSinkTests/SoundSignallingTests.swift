// SPDX-License-Identifier: Apache-2.0

import Synchronization
import Testing

@testable import RTSPSink
import ServerAccess

private let second: Int64 = 1_000_000_000

/// Sessions of a path with pictures and sound.
@Suite struct SoundSignallingTests {
    /// A client of one address, on any connection.
    private final class Client {
        var signalling: Signalling
        var actions: [SignallingAction] = []
        static let address = IPAddress("192.168.1.7")!

        init(carriesUDP: Bool = true) {
            let counter = Atomic<UInt64>(0)
            let numbers = Numbers(counter)
            signalling = Signalling(policy: SessionPolicy(serverPorts: .init(8000, 8001))) { numbers.next() }
            var description = SessionDescription(
                sessionID: 1, address: "", name: "live", sps: RTSPHeaderTests.sps, pps: RTSPHeaderTests.pps)
            var path = ServedPath(description: description, ssrc: 0xabcd)
            signalling.setPath("/mute", path)
            description.sound = SoundDescription(codec: .opus(isStereo: true))
            path.description = description
            path.soundSSRC = 0xef01
            signalling.setPath("/live", path)
            path.description.hasPictures = false
            signalling.setPath("/radio", path)
            connect(1)
        }

        func connect(_ id: ConnectionID) {
            _ = signalling.open(id, peer: Self.address, local: .loopback, isSecure: false, now: 0)
        }

        @discardableResult
        func say(
            _ method: String, _ target: String = "rtsp://h/live", _ headers: [(String, String)] = [],
            on id: ConnectionID = 1
        ) -> RTSPResponse {
            let request = RTSPRequest(method, target, headers: HeaderFields([("CSeq", "1")] + headers))
            actions = signalling.handle(request, from: id, now: 0)
            for action in actions {
                switch action {
                case .respond(let response), .play(_, let response), .pause(_, let response): return response
                default: continue
                }
            }
            Issue.record("no answer")
            return RTSPResponse(.badRequest)
        }

        /// SETUP of a track.
        func setUp(
            _ track: Int, _ transport: String, session: String? = nil, on id: ConnectionID = 1, path: String = "/live"
        ) -> (status: RTSPStatus, session: String, transport: TransportSpec?) {
            let response = say(
                "SETUP", "rtsp://h\(path)/trackID=\(track)",
                [("Transport", transport)] + (session.map { [("Session", $0)] } ?? []), on: id)
            return (
                response.status, response.headers["Session"].flatMap { SessionHeader($0)?.id } ?? "",
                response.headers["Transport"].flatMap { TransportSpec($0) }
            )
        }

        var order: PlayOrder? {
            for case .play(let order, _) in actions { return order }
            return nil
        }
    }

    private final class Numbers: Sendable {
        private let counter: Atomic<UInt64>
        init(_ counter: consuming Atomic<UInt64>) { self.counter = counter }
        func next() -> UInt64 { counter.wrappingAdd(0x9e37_79b9_7f4a_7c15, ordering: .relaxed).newValue }
    }

    private static let tcp = "RTP/AVP/TCP;unicast;interleaved="
    private static let udp = "RTP/AVP;unicast;client_port="

    @Test func setsUpBothOnOneConnection() {
        let client = Client()
        let pictures = client.setUp(0, Self.tcp + "0-1")
        #expect(pictures.transport?.interleaved == .init(0, 1) && pictures.transport?.ssrc == 0xabcd)
        let sound = client.setUp(1, Self.tcp + "2-3", session: pictures.session)
        #expect(sound.status == .ok && sound.session == pictures.session)
        #expect(sound.transport?.interleaved == .init(2, 3) && sound.transport?.ssrc == 0xef01)
        #expect(client.signalling.sessions.count == 1)
        #expect(client.say("PLAY", "rtsp://h/live/", [("Session", sound.session)]).status == .ok)
        #expect(client.order?.transports.media == [.pictures, .sound])
        #expect(client.order?.transports.channels == PerMedium(pictures: .init(0, 1), sound: .init(2, 3)))
        #expect(client.order?.controlURL(of: .sound) == "rtsp://h/live/trackID=1")
        // One reader, however many media.
        #expect(client.signalling.readerCount(of: "/live") == 1)
        #expect(
            client.setUp(1, Self.tcp + "4-5", session: sound.session).status == .notValidInThisState,
            "it plays already")
        #expect(client.say("TEARDOWN", "rtsp://h/live", [("Session", sound.session)]).status == .ok)
        #expect(client.signalling.sessions.isEmpty)
    }

    @Test func setsUpBothOverDatagrams() {
        let client = Client()
        let id = client.setUp(1, Self.udp + "5002-5003").session
        #expect(client.setUp(0, Self.udp + "5000-5001", session: id).status == .ok)
        let transports = client.signalling.sessions[id]?.transports
        #expect(transports?.media == [.pictures, .sound])
        #expect(
            [5000, 5001, 5002, 5003, 5004].map { transports?.medium(onPort: $0) } == [
                .pictures, .pictures, .sound, .sound, nil,
            ])
        // A datagram from either is a sign of life.
        for port in 5000...5003 as ClosedRange<UInt16> {
            #expect(client.signalling.heard(from: .init(address: Client.address, port: port), now: second) == id)
        }
        #expect(client.signalling.endpoints.count == 4)
        client.say("TEARDOWN", "rtsp://h/live", [("Session", id)])
        #expect(client.signalling.endpoints.isEmpty)
    }

    @Test func setsUpEitherAlone() {
        for (track, medium) in [(0, Medium.pictures), (1, .sound)] {
            let client = Client()
            let id = client.setUp(track, Self.tcp + "0-1").session
            client.say("PLAY", "rtsp://h/live", [("Session", id)])
            #expect(client.order?.transports.media == [medium])
        }
    }

    @Test func oneMustBeNamedWhereThereAreTwo() {
        let client = Client()
        #expect(client.say("SETUP", "rtsp://h/live", [("Transport", Self.tcp + "0-1")]).status == .aggregateNotAllowed)
        #expect(client.say("SETUP", "rtsp://h/mute", [("Transport", Self.tcp + "0-1")]).status == .ok)
        #expect(client.setUp(2, Self.tcp + "0-1").status == .notFound)
        #expect(client.setUp(1, Self.tcp + "0-1", path: "/mute").status == .notFound)
    }

    @Test func soundAloneIsTheStreamsOneTrack() {
        let client = Client()
        for target in ["rtsp://h/radio", "rtsp://h/radio/trackID=1"] {
            let response = client.say("SETUP", target, [("Transport", Self.tcp + "0-1")])
            #expect(response.status == .ok)
            #expect(response.headers["Transport"]?.contains("ssrc=0000EF01") == true, "\(response.headers)")
        }
        #expect(client.setUp(0, Self.tcp + "0-1", path: "/radio").status == .notFound)
    }

    @Test func aMediumGetsChannelsThatTheOtherDoesNotHave() {
        let client = Client()
        let id = client.setUp(0, Self.tcp + "0-1").session
        // The other's, half of them, and none named.
        for asked in [Self.tcp + "0-1", Self.tcp + "1-2", "RTP/AVP/TCP;unicast"] {
            #expect(client.setUp(1, asked, session: id).transport?.interleaved == .init(2, 3))
        }
        // Its own again.
        #expect(client.setUp(0, Self.tcp + "0-1", session: id).transport?.interleaved == .init(0, 1))
        #expect(client.signalling.sessions[id]?.transports.media == [.pictures, .sound])
    }

    @Test(arguments: ["5000-5001", "5001-5002", "4999-5000"]) func noPortIsOfBoth(ports: String) {
        let client = Client()
        let id = client.setUp(0, Self.udp + "5000-5001").session
        #expect(client.setUp(1, Self.udp + ports, session: id).status == .unsupportedTransport)
        #expect(client.signalling.sessions[id]?.transports.media == [.pictures])
        #expect(client.signalling.endpoints.count == 2)
    }

    /// After a failure over UDP within the session: each medium is set up over TCP.
    @Test func anotherWayForOneMediumSetsUpTheSessionAnew() {
        let client = Client()
        let id = client.setUp(0, Self.udp + "5000-5001").session
        _ = client.setUp(1, Self.udp + "5002-5003", session: id)
        #expect(client.setUp(0, Self.tcp + "0-1", session: id).status == .ok)
        #expect(client.signalling.sessions[id]?.transports.media == [.pictures])
        #expect(client.signalling.endpoints.isEmpty)
        #expect(client.setUp(1, Self.tcp + "2-3", session: id).status == .ok)
        #expect(client.signalling.sessions[id]?.transports.media == [.pictures, .sound])
    }

    @Test func aMediumThatTheSessionLacksDoesNotEndTheOther() {
        let client = Client()
        let id = client.setUp(0, Self.tcp + "0-1").session
        #expect(client.setUp(1, Self.udp + "5002-5003", session: id).status == .unsupportedTransport)
        #expect(client.signalling.sessions[id]?.transports.media == [.pictures])
        #expect(client.signalling.endpoints.isEmpty)
        #expect(client.setUp(1, Self.tcp + "2-3", session: id).status == .ok)
    }

    @Test func tearsDownBothOrNeither() {
        let client = Client()
        let id = client.setUp(0, Self.tcp + "0-1").session
        _ = client.setUp(1, Self.tcp + "2-3", session: id)
        let status = client.say("TEARDOWN", "rtsp://h/live/trackID=1", [("Session", id)]).status
        #expect(status == .onlyAggregateAllowed)
        #expect(client.signalling.sessions[id]?.transports.media == [.pictures, .sound])
        #expect(client.say("TEARDOWN", "rtsp://h/live", [("Session", id)]).status == .ok)
        // A session of one medium may be named by that.
        let alone = client.setUp(1, Self.tcp + "0-1").session
        #expect(client.say("TEARDOWN", "rtsp://h/live/trackID=1", [("Session", alone)]).status == .ok)
        #expect(client.signalling.sessions.isEmpty)
    }

    @Test func addsAMediumAfterAPause() {
        let client = Client()
        let id = client.setUp(0, Self.tcp + "0-1").session
        client.say("PLAY", "rtsp://h/live", [("Session", id)])
        client.say("PAUSE", "rtsp://h/live", [("Session", id)])
        #expect(client.setUp(1, Self.tcp + "2-3", session: id).status == .ok)
        #expect(client.actions.contains(.end(sessionID: id, .replaced, reader: 1)))
        client.say("PLAY", "rtsp://h/live", [("Session", id)])
        #expect(client.order?.number == 2 && client.order?.transports.media == [.pictures, .sound])
    }

    @Test func endsBothWithTheConnectionOrTheStream() {
        let client = Client()
        let id = client.setUp(0, Self.tcp + "0-1").session
        _ = client.setUp(1, Self.tcp + "2-3", session: id)
        #expect(client.signalling.closed(1, now: 0) == [.end(sessionID: id, .closed)])
        client.connect(2)
        let other = client.setUp(0, Self.udp + "5000-5001", on: 2).session
        _ = client.setUp(1, Self.udp + "5002-5003", session: other, on: 2)
        #expect(client.signalling.removePath("/live") == [.end(sessionID: other, .streamEnded)])
        _ = client.signalling.closed(2, now: 0)
        _ = client.signalling.expire(now: 1000 * second)
        #expect(client.signalling.isEmpty)
    }

    @Test func describesBothWithControlURLs() {
        let description = Client().say("DESCRIBE").description?.text ?? ""
        #expect(description.contains("a=control:trackID=0\r\nm=audio 0 RTP/AVP 97\r\n"))
        #expect(description.hasSuffix("a=control:trackID=1\r\n"))
    }
}
