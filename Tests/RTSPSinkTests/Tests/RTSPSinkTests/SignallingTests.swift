// SPDX-License-Identifier: Apache-2.0

import ServerAccess
import Synchronization
import Testing

@testable import RTSPSink

private let second: Int64 = 1_000_000_000

/// A client before a signalling without sockets: what it says, and what was to be done about it.
private final class Dialogue {
    var signalling: Signalling
    var now: Int64 = 0
    var sequence = 0
    var actions: [SignallingAction] = []

    static let client = IPAddress("192.168.1.7")!

    static func path(_ change: (inout ServedPath) -> Void = { _ in }) -> ServedPath {
        var path = ServedPath(
            description: SessionDescription(
                sessionID: 1, address: "", name: "live", sps: RTSPHeaderTests.sps, pps: RTSPHeaderTests.pps),
            ssrc: 0xabcd)
        change(&path)
        return path
    }

    init(policy: SessionPolicy = SessionPolicy(serverPorts: .init(8000, 8001)), path: ServedPath = path()) {
        let counter = Atomic<UInt64>(0)
        let box = Box(counter: counter)
        signalling = Signalling(policy: policy) {
            box.counter.wrappingAdd(0x9e37_79b9_7f4a_7c15, ordering: .relaxed).newValue
        }
        signalling.setPath("/live", path)
        signalling.setPath("/other", Self.path())
        connect(1)
    }

    private final class Box: Sendable {
        let counter: Atomic<UInt64>
        init(counter: consuming Atomic<UInt64>) { self.counter = counter }
    }

    func connect(_ id: ConnectionID, from address: IPAddress = client, isSecure: Bool = false) {
        #expect(open(id, peer: address, local: IPAddress("192.168.1.2")!, isSecure: isSecure, now: now) == nil)
    }

    /// Says something and gives the response to it.
    @discardableResult
    func say(
        _ method: String, _ target: String = "rtsp://h/live", _ headers: [String: String] = [:],
        on connection: ConnectionID = 1,
        version: String = "RTSP/1.0", body: [UInt8] = []
    ) -> RTSPResponse? {
        sequence += 1
        let fields = headers["CSeq"] == nil ? [("CSeq", String(sequence))] : []
        let request = RTSPRequest(
            method, target, version: version,
            headers: HeaderFields(fields + headers.filter { $0.value != "-" }.map { ($0.key, $0.value) }),
            body: body)
        actions = signalling.handle(request, from: connection, now: now)
        for action in actions {
            switch action {
            case .respond(let response), .play(_, let response), .pause(_, let response), .openTunnel(let response):
                return response
            case .end, .close, .joinTunnel: continue
            }
        }
        return nil
    }

    /// SETUP; the session's id.
    func setUp(_ transport: String = "RTP/AVP/TCP;interleaved=0-1", on connection: ConnectionID = 1) -> String {
        let response = say("SETUP", "rtsp://h/live/trackID=0", ["Transport": transport], on: connection)
        #expect(response?.status == .ok)
        return response?.headers["Session"].flatMap { SessionHeader($0)?.id } ?? ""
    }

    func open(_ id: ConnectionID, peer: IPAddress, local: IPAddress, isSecure: Bool, now: Int64) -> String? {
        signalling.open(id, peer: peer, local: local, isSecure: isSecure, now: now)
    }

    func closed(_ id: ConnectionID, now: Int64) -> [SignallingAction] { signalling.closed(id, now: now) }
    func heard(from endpoint: Signalling.Endpoint, now: Int64) -> String? { signalling.heard(from: endpoint, now: now) }
    func expire(now: Int64) -> [SignallingAction] { signalling.expire(now: now) }
    func removePath(_ path: String) -> [SignallingAction] { signalling.removePath(path) }

    var order: PlayOrder? {
        for case .play(let order, _) in actions { return order }
        return nil
    }

    var ended: [String: Departure] {
        var ended: [String: Departure] = [:]
        for case .end(let id, let why, _) in actions { ended[id] = why }
        return ended
    }

    var isClosed: Bool { actions.contains { if case .close = $0 { true } else { false } } }
}

@Suite struct SignallingTests {
    // MARK: What comes before the method

    @Test func echoesCSeqAndRefusesOneMissingTwiceOrNoNumber() {
        let client = Dialogue()
        #expect(client.say("OPTIONS", "*", ["CSeq": "77"])?.headers["CSeq"] == "77")
        for sequence in ["-", "x", "-1", "99999999999999999999"] {
            #expect(client.say("OPTIONS", "*", ["CSeq": sequence])?.status == .badRequest)
        }
        #expect(client.say("OPTIONS", "*", ["CSeq": "1", "cseq": "2"])?.status == .badRequest)
    }

    @Test(arguments: [
        ("ANNOUNCE", RTSPStatus.methodNotAllowed), ("RECORD", .methodNotAllowed), ("REDIRECT", .methodNotAllowed),
        ("FLY", .notImplemented),
        ("options", .notImplemented), ("GET", .notImplemented),
    ]) func refusesOtherMethods(method: String, status: RTSPStatus) {
        let client = Dialogue()
        let response = client.say(method)
        #expect(response?.status == status)
        let listed = response?.headers["Allow"] ?? response?.headers["Public"] ?? ""
        #expect(listed.contains("GET_PARAMETER"))
    }

    @Test func answersOtherVersionsAndHTTP() {
        let client = Dialogue()
        #expect(client.say("OPTIONS", "*", version: "RTSP/2.0")?.status == .versionNotSupported)
        #expect(client.say("OPTIONS", "*", version: "SIP/2.0")?.status == .versionNotSupported)
        for method in ["GET", "POST", "PUT"] {
            let response = client.say(method, "/live", version: "HTTP/1.0")
            #expect(response?.status == .methodNotAllowed)
            #expect(response?.version == "HTTP/1.1")
            #expect(client.isClosed)
        }
    }

    // MARK: RTSP through HTTP

    private static let cookie = ["x-sessioncookie": "abc"]

    @Test func joinsTheTwoConnectionsOfATunnel() {
        let client = Dialogue()
        let answer = client.say("GET", "/live", Self.cookie, version: "HTTP/1.0")
        #expect(answer?.status == .ok)
        #expect(answer?.version == "HTTP/1.0")
        #expect(answer?.headers["Content-Type"] == "application/x-rtsp-tunnelled")
        client.connect(2)
        #expect(client.say("POST", "/live", Self.cookie, on: 2, version: "HTTP/1.0") == nil)
        #expect(client.actions == [.joinTunnel(1)])
        // What comes in through it is the first connection's; its session is over TCP there.
        let id = client.setUp()
        client.say("PLAY", "rtsp://h/live", ["Session": id])
        // The way in lives with the way out, however still it is.
        #expect(client.expire(now: 1000 * second).isEmpty)
        #expect(
            client.closed(1, now: 0) == [.close(2, "its tunnel is closed"), .end(sessionID: id, .closed, reader: 1)])
        #expect(client.closed(2, now: 0).isEmpty)
        _ = client.expire(now: 2000 * second)
        #expect(client.signalling.isEmpty)
    }

    /// QuickTime ends its POST and begins another.
    @Test func takesAnotherWayIn() {
        let client = Dialogue()
        client.say("GET", "/live", Self.cookie, version: "HTTP/1.0")
        client.connect(2)
        client.connect(3)
        client.connect(4)
        client.say("POST", "/live", Self.cookie, on: 2, version: "HTTP/1.0")
        client.say("POST", "/live", Self.cookie, on: 3, version: "HTTP/1.0")
        #expect(client.actions == [.joinTunnel(1), .close(2, "its tunnel has a new input connection")])
        _ = client.closed(2, now: 0)
        #expect(client.closed(3, now: 0).isEmpty)
        client.say("POST", "/live", Self.cookie, on: 4, version: "HTTP/1.0")
        #expect(client.actions == [.joinTunnel(1)])
    }

    @Test func refusesWhatMakesNoTunnel() {
        let client = Dialogue()
        client.connect(2)
        client.connect(3, from: IPAddress("192.168.1.8")!)
        client.connect(4)
        // Without its GET.
        #expect(client.say("POST", "/live", Self.cookie, on: 2, version: "HTTP/1.0")?.status == .badRequest)
        #expect(client.isClosed)
        #expect(client.say("GET", "/live", Self.cookie, version: "HTTP/1.0")?.status == .ok)
        // Another's cookie, and somebody else who has read it.
        #expect(client.say("GET", "/live", Self.cookie, on: 4, version: "HTTP/1.0")?.status == .badRequest)
        #expect(client.say("POST", "/live", Self.cookie, on: 3, version: "HTTP/1.0")?.status == .badRequest)
        // A tunnel in a tunnel; cookies that are none.
        #expect(
            client.say("GET", "/live", ["x-sessioncookie": "other"], version: "HTTP/1.0")?.status == .methodNotAllowed)
        for cookie in ["", String(repeating: "c", count: 129)] {
            #expect(
                client.say("GET", "/live", ["x-sessioncookie": cookie], on: 4, version: "HTTP/1.0")?.status
                    == .methodNotAllowed)
        }
        #expect(client.signalling.tunnels == ["abc": 1])
    }

    /// ONVIF clients ask for a back channel first and go on without.
    @Test func saysWhatItDoesNotSupport() {
        let client = Dialogue()
        let response = client.say("DESCRIBE", "rtsp://h/live", ["Require": "www.onvif.org/ver20/backchannel"])
        #expect(response?.status == .optionNotSupported)
        #expect(response?.headers["Unsupported"] == "www.onvif.org/ver20/backchannel")
        #expect(client.say("DESCRIBE")?.status == .ok)
    }

    @Test(arguments: ["*", "rtsp://h/nothing", "nonsense", "rtsp://h/live"]) func answersOptionsWhateverItsURL(
        target: String
    ) {
        let client = Dialogue(
            path: Dialogue.path { $0.challenge = Challenge(scheme: .digest, credentials: AccessTests.users) })
        let response = client.say("OPTIONS", target)
        #expect(response?.status == .ok)
        #expect(
            response?.headers["Public"]
                == "OPTIONS, DESCRIBE, SETUP, PLAY, PAUSE, TEARDOWN, GET_PARAMETER, SET_PARAMETER")
    }

    @Test func tellsBadURLsFromUnknownPaths() {
        let client = Dialogue()
        #expect(client.say("DESCRIBE", "live")?.status == .badRequest)
        #expect(client.say("DESCRIBE", "rtsp://h/nothing")?.status == .notFound)
        #expect(client.say("SETUP", "rtsp://h/live/trackID=1", ["Transport": "RTP/AVP/TCP"])?.status == .notFound)
    }

    // MARK: DESCRIBE

    @Test(arguments: [
        ("rtsp://h/live", "rtsp://h/live/"), ("rtsp://h:8554/live/", "rtsp://h:8554/live/"),
        ("rtsp://h/live/trackID=0", "rtsp://h/live/"),
    ]) func describes(target: String, base: String) {
        let client = Dialogue()
        let response = client.say("DESCRIBE", target, ["Accept": "application/sdp"])
        #expect(response?.headers["Content-Base"] == base)
        #expect(response?.headers["Content-Type"] == "application/sdp")
        let text = String(
            decoding: response.flatMap { $0.description?.text.utf8 }.map { Array($0) } ?? [], as: UTF8.self)
        #expect(text.contains("o=- 1 1 IN IP4 192.168.1.2\r\n"))
    }

    // MARK: Access

    @Test func asksForCredentialsAndLetsIn() {
        let client = Dialogue(
            path: Dialogue.path { $0.challenge = Challenge(scheme: .digest, credentials: AccessTests.users) })
        let asked = client.say("DESCRIBE")
        #expect(asked?.status == .unauthorized)
        #expect(!client.isClosed)
        let nonce = Authorization.parameters(String((asked?.headers["WWW-Authenticate"] ?? "").dropFirst(7)))?.first {
            $0.name == "nonce"
        }?
        .value
        let right = AccessTests.digest(.digest, uri: "rtsp://h/live", nonce: nonce ?? "", method: "DESCRIBE")
        #expect(nonce?.count == 32)
        #expect(client.say("DESCRIBE", "rtsp://h/live", ["Authorization": right])?.status == .ok)
        // Another path asks for nothing.
        #expect(client.say("DESCRIBE", "rtsp://h/other")?.status == .ok)
        // live555 comes back on a new connection with the old nonce.
        client.connect(2)
        let stale = client.say("DESCRIBE", "rtsp://h/live", ["Authorization": right], on: 2)
        #expect(stale?.headers["WWW-Authenticate"]?.hasSuffix(", stale=TRUE") == true)
        #expect(!client.isClosed)
    }

    @Test func closesAfterManyWrongPasswords() {
        let client = Dialogue(
            path: Dialogue.path { $0.challenge = Challenge(scheme: .basic, credentials: AccessTests.users) })
        for attempt in 1...6 {
            let header = Authorization.basic(name: "Mufasa", password: String(attempt)).text
            #expect(client.say("DESCRIBE", "rtsp://h/live", ["Authorization": header])?.status == .unauthorized)
            #expect(client.isClosed == (attempt == 6))
        }
        #expect(
            client.signalling.failedLogins.takeNews(now: 0) == [
                .init(address: Dialogue.client, path: "/live", count: 6, total: 6)
            ])
    }

    @Test func letsInOnlyListedAddresses() {
        let client = Dialogue(path: Dialogue.path { $0.allowed = [AddressRange("10.0.0.0/8")!] })
        #expect(client.say("DESCRIBE")?.status == .forbidden)
        #expect(
            client.signalling.failedLogins.takeNews(now: 0) == [
                .init(address: Dialogue.client, path: "/live", count: 1, total: 1, kind: .address)
            ])
        #expect(client.signalling.failedLogins.totals.isEmpty)
        client.connect(2, from: IPAddress("10.1.1.1")!)
        #expect(client.say("DESCRIBE", on: 2)?.status == .ok)
    }

    @Test func boundsConnectionsAndRequestsOfAnAddress() {
        var policy = SessionPolicy()
        policy.mostConnections = 4
        policy.mostConnectionsPerAddress = 2
        policy.requestsPerSecond = 10
        let client = Dialogue(policy: policy)
        let here = IPAddress("192.168.1.2")!
        #expect(client.open(2, peer: Dialogue.client, local: here, isSecure: false, now: 0) == nil)
        #expect(
            client.open(3, peer: Dialogue.client, local: here, isSecure: false, now: 0)
                == "192.168.1.7 already has 2 connections ('maxConnectionsPerAddress')")
        #expect(client.open(3, peer: .loopback, local: here, isSecure: false, now: 0) == nil)
        #expect(client.open(4, peer: .loopback, local: here, isSecure: false, now: 0) == nil)
        #expect(
            client.open(5, peer: .loopback, local: here, isSecure: false, now: 0) == "there are already 4 connections")
        for _ in 0..<10 { #expect(client.say("OPTIONS")?.status == .ok) }
        #expect(client.say("OPTIONS", on: 2)?.status == .serviceUnavailable)
        #expect(client.isClosed)
        client.now = second
        #expect(client.say("OPTIONS")?.status == .ok)
        for _ in 0..<30 { #expect(client.say("OPTIONS", on: 3)?.status == .ok) }
        // A closed connection makes room.
        _ = client.closed(2, now: second)
        #expect(client.open(6, peer: Dialogue.client, local: here, isSecure: false, now: second) == nil)
    }

    // MARK: SETUP

    @Test(arguments: [
        ("RTP/AVP/TCP;unicast;interleaved=0-1", "RTP/AVP/TCP;unicast;interleaved=0-1;ssrc=0000ABCD"),
        ("RTP/AVP/TCP;interleaved=6-7", "RTP/AVP/TCP;unicast;interleaved=6-7;ssrc=0000ABCD"),
        // QuickTime names no channels.
        ("RTP/AVP/TCP;unicast", "RTP/AVP/TCP;unicast;interleaved=0-1;ssrc=0000ABCD"),
        (
            "RTP/AVP;unicast;client_port=5000-5001",
            "RTP/AVP;unicast;client_port=5000-5001;server_port=8000-8001;ssrc=0000ABCD"
        ),
        // Exactly one comes back, the first that is possible.
        (
            "RTP/AVP;multicast,RTP/AVP;unicast;client_port=5000-5001,RTP/AVP/TCP",
            "RTP/AVP;unicast;client_port=5000-5001;server_port=8000-8001;ssrc=0000ABCD"
        ),
        // Packets go to the one who asked, wherever he wants them.
        (
            "RTP/AVP;unicast;destination=10.0.0.1;client_port=1-2",
            "RTP/AVP;unicast;client_port=1-2;server_port=8000-8001;ssrc=0000ABCD"
        ),
    ]) func agreesOnATransport(asked: String, answered: String) {
        let client = Dialogue()
        let response = client.say("SETUP", "rtsp://h/live/trackID=0", ["Transport": asked])
        #expect(response?.headers["Transport"] == answered)
        let session = response?.headers["Session"] ?? ""
        #expect(session.hasSuffix(";timeout=60"))
        let id = session.prefix { $0 != ";" }
        #expect(id.count == 24)
        #expect(id.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber) })
    }

    @Test(arguments: [
        "-", "", "RTP/AVP;multicast", "RTP/SAVP;unicast;client_port=1-2", "RTP/AVP;unicast", "RTP/AVP;client_port=0-1",
        "RTP/AVP/TCP;interleaved=255-256",
        "RTP/AVP/TCP;mode=RECORD", "RTP/AVP;unicast;client_port=65535",
    ]) func refusesOtherTransports(asked: String) {
        let client = Dialogue()
        #expect(client.say("SETUP", "rtsp://h/live/trackID=0", ["Transport": asked])?.status == .unsupportedTransport)
        #expect(client.signalling.sessions.isEmpty)
    }

    @Test func keepsUDPOffWhereItIsNotWanted() {
        let udp = ["Transport": "RTP/AVP;unicast;client_port=5000-5001"]
        var client = Dialogue(path: Dialogue.path { $0.carriesUDP = false })
        #expect(client.say("SETUP", "rtsp://h/live", udp)?.status == .unsupportedTransport)
        client = Dialogue()
        client.connect(2, isSecure: true)
        #expect(client.say("SETUP", "rtsp://h/live", udp, on: 2)?.status == .unsupportedTransport)
        client = Dialogue(policy: SessionPolicy())
        #expect(client.say("SETUP", "rtsp://h/live", udp)?.status == .unsupportedTransport)
    }

    /// VLC after any failure.
    @Test func takesTheStreamsOwnURLForItsOneTrack() {
        let client = Dialogue()
        #expect(client.say("SETUP", "rtsp://h/live/", ["Transport": "RTP/AVP/TCP;interleaved=0-1"])?.status == .ok)
    }

    @Test func renumbersChannelsThatAreTaken() {
        let client = Dialogue()
        _ = client.setUp()
        let response = client.say("SETUP", "rtsp://h/other", ["Transport": "RTP/AVP/TCP;interleaved=1-2"])
        #expect(response?.headers["Transport"]?.contains("interleaved=2-3") == true)
    }

    @Test func setsUpAgainBeforeButNotWhilePlaying() {
        let client = Dialogue()
        let id = client.setUp()
        let again = client.say(
            "SETUP", "rtsp://h/live", ["Session": id, "Transport": "RTP/AVP;unicast;client_port=5000-5001"])
        #expect(again?.status == .ok)
        #expect(client.signalling.sessions.count == 1)
        #expect(client.say("PLAY", "rtsp://h/live", ["Session": id])?.status == .ok)
        #expect(
            client.say("SETUP", "rtsp://h/live", ["Session": id, "Transport": "RTP/AVP/TCP"])?.status
                == .notValidInThisState)
        #expect(
            client.say("SETUP", "rtsp://h/other", ["Session": id, "Transport": "RTP/AVP/TCP"])?.status
                == .aggregateNotAllowed)
        #expect(
            client.say("SETUP", "rtsp://h/live", ["Session": "nobody", "Transport": "RTP/AVP/TCP"])?.status
                == .sessionNotFound)
    }

    /// FFmpeg, when no packet came over UDP: PAUSE, then SETUP over TCP without the session and without TEARDOWN.
    @Test func reapsTheSessionThatFFmpegForgets() {
        let client = Dialogue()
        let id = client.setUp("RTP/AVP;unicast;client_port=5000-5001")
        client.say("PLAY", "rtsp://h/live", ["Session": id])
        client.say("PAUSE", "rtsp://h/live", ["Session": id])
        _ = client.setUp()
        #expect(client.ended == [id: .replaced])
        #expect(client.signalling.sessions.count == 1)
    }

    @Test func givesAPortOfOneAddressToOneClient() {
        let client = Dialogue()
        let udp = ["Transport": "RTP/AVP;unicast;client_port=5000-5001"]
        let first = client.setUp(udp["Transport"]!)
        client.connect(2)
        #expect(client.say("SETUP", "rtsp://h/live", udp, on: 2)?.status == .unsupportedTransport)
        client.connect(3, from: IPAddress("192.168.1.8")!)
        #expect(client.say("SETUP", "rtsp://h/live", udp, on: 3)?.status == .ok)
        // The first one's connection is gone: whoever has the port now is somebody else.
        #expect(client.closed(1, now: 0).isEmpty)
        #expect(client.say("SETUP", "rtsp://h/live", udp, on: 2)?.status == .ok)
        #expect(client.ended == [first: .replaced])
    }

    /// What the server sends itself would be a sign of life for ever.
    @Test(arguments: ["8000-8001", "7999-8000", "8001-8002"]) func givesNoClientOfThisMachineItsOwnPorts(ports: String)
    {
        let client = Dialogue()
        let udp = ["Transport": "RTP/AVP;unicast;client_port=\(ports)"]
        for (number, address) in ["127.0.0.1", "::1", "192.168.1.2"].enumerated() {
            let id = ConnectionID(10 + number)
            client.connect(id, from: IPAddress(address)!)
            #expect(client.say("SETUP", "rtsp://h/live", udp, on: id)?.status == .unsupportedTransport)
        }
        #expect(client.say("SETUP", "rtsp://h/live", udp)?.status == .ok, "another machine has ports of its own")
    }

    /// Ports that overlap with those of two sessions, and those of another path: none may be two sessions' at once.
    @Test func givesAPortToOneSessionWhateverPathItPlays() {
        let client = Dialogue()
        let first = client.setUp("RTP/AVP;unicast;client_port=5000-5001")
        client.say("PLAY", "rtsp://h/live", ["Session": first])
        let other = client.setUp("RTP/AVP;unicast;client_port=5002-5003")
        client.connect(2)
        let udp = ["Transport": "RTP/AVP;unicast;client_port=5001-5002"]
        #expect(client.say("SETUP", "rtsp://h/other", udp, on: 2)?.status == .unsupportedTransport)
        #expect(client.say("SETUP", "rtsp://h/other", udp)?.status == .ok)
        #expect(client.ended == [first: .replaced, other: .replaced])
        #expect(client.signalling.endpoints.count == 2)
        _ = client.closed(1, now: 0)
        _ = client.closed(2, now: 0)
        _ = client.signalling.expire(now: 1000 * second)
        #expect(client.signalling.isEmpty)
    }

    /// One address cannot take every place of a stream, over however few connections.
    @Test func boundsSessionsOfAnAddress() {
        var policy = SessionPolicy(serverPorts: .init(8000, 8001))
        policy.mostConnectionsPerAddress = 2
        let client = Dialogue(policy: policy)
        for _ in 0..<2 { client.say("PLAY", "rtsp://h/live", ["Session": client.setUp("RTP/AVP/TCP")]) }
        #expect(client.say("SETUP", "rtsp://h/live", ["Transport": "RTP/AVP/TCP"])?.status == .notEnoughBandwidth)
        client.connect(2, from: IPAddress("192.168.1.8")!)
        #expect(client.say("SETUP", "rtsp://h/live", ["Transport": "RTP/AVP/TCP"], on: 2)?.status == .ok)
    }

    @Test func boundsReadersAndSessions() {
        var client = Dialogue(path: Dialogue.path { $0.mostReaders = 1 })
        _ = client.setUp()
        client.connect(2)
        #expect(
            client.say("SETUP", "rtsp://h/live", ["Transport": "RTP/AVP/TCP"], on: 2)?.status == .notEnoughBandwidth)
        client = Dialogue()
        for _ in 0..<16 { client.say("PLAY", "rtsp://h/live", ["Session": client.setUp("RTP/AVP/TCP")]) }
        #expect(client.say("SETUP", "rtsp://h/live", ["Transport": "RTP/AVP/TCP"])?.status == .notEnoughBandwidth)
    }

    // MARK: PLAY, PAUSE, TEARDOWN

    @Test func playsPausesAndTearsDown() throws {
        let client = Dialogue()
        let id = client.setUp()
        let session = ["Session": id]
        #expect(client.say("PAUSE", "rtsp://h/live", session)?.status == .notValidInThisState)
        let playing = client.say("PLAY", "rtsp://h/live/", session)
        #expect(playing?.headers["Range"] == "npt=now-")
        #expect(
            client.order
                == PlayOrder(
                    sessionID: id, number: 1, path: "/live",
                    transports: SessionTransports(.pictures, .tcp(1, channels: .init(0, 1))), peer: Dialogue.client,
                    user: nil, url: RTSPURL(host: "h", path: "/live")))
        #expect(client.order?.controlURL(of: .pictures) == "rtsp://h/live/trackID=0")
        #expect(client.say("PLAY", "rtsp://h/live", session)?.status == .ok)
        #expect(client.order == nil)
        #expect(client.say("PAUSE", "rtsp://h/live", session)?.status == .ok)
        #expect(client.say("PLAY", "rtsp://h/live", session)?.status == .ok)
        #expect(client.order != nil)
        #expect(client.say("TEARDOWN", "rtsp://h/live/", session)?.status == .ok)
        #expect(client.ended == [id: .teardown])
        #expect(client.say("PLAY", "rtsp://h/live", session)?.status == .sessionNotFound)
        #expect(client.signalling.sessions.isEmpty)
    }

    @Test(arguments: ["PLAY", "PAUSE", "TEARDOWN"]) func wantsTheRightSession(method: String) {
        let client = Dialogue()
        let id = client.setUp()
        #expect(client.say(method)?.status == .sessionNotFound)
        #expect(client.say(method, "rtsp://h/live", ["Session": "12345678"])?.status == .sessionNotFound)
        #expect(client.say(method, "rtsp://h/other", ["Session": id])?.status == .sessionNotFound)
        // Somebody else's: of another address, and of another connection where the packets flow on that.
        client.connect(2, from: IPAddress("192.168.1.8")!)
        #expect(client.say(method, "rtsp://h/live", ["Session": id], on: 2)?.status == .sessionNotFound)
        client.connect(3)
        #expect(client.say(method, "rtsp://h/live", ["Session": id], on: 3)?.status == .sessionNotFound)
        #expect(client.signalling.sessions.count == 1)
    }

    /// openRTSP's `-d 3` and `-s 5`, recorders' clock times: a live stream plays from now on, and says so.
    /// gst-rtsp-server and VLC's server do the same.
    @Test(arguments: [
        ("npt=now-", RTSPStatus.ok), ("npt=0.000-", .ok), ("npt=0-3.000", .ok), ("npt=5.0-", .ok), ("npt=10-20", .ok),
        ("clock=19961108T142300Z-", .ok), ("smpte=0:10:00-", .ok), ("nonsense", .invalidRange),
        ("npt=x-", .invalidRange),
    ]) func playsFromNowOnWhateverRangeIsAsked(range: String, status: RTSPStatus) {
        let client = Dialogue()
        let response = client.say("PLAY", "rtsp://h/live", ["Session": client.setUp(), "Range": range])
        #expect(response?.status == status)
        #expect(response?.headers["Range"] == (status == .ok ? "npt=now-" : nil))
    }

    /// The answer names the pace there is (RFC 2326, 12.34 and 12.35).
    @Test(arguments: ["1", "1.0", "2.0", "-1", "x"]) func playsAtItsOwnPaceAndSaysSo(scale: String) {
        let client = Dialogue()
        let response = client.say("PLAY", "rtsp://h/live", ["Session": client.setUp(), "Scale": scale])
        #expect(response?.status == .ok)
        #expect(response?.headers["Scale"] == "1.0")
        #expect(response?.headers["Speed"] == nil)
        #expect(
            client.say("PLAY", "rtsp://h/live", ["Session": client.setUp(), "Speed": scale])?.headers["Speed"] == "1.0")
    }

    @Test(arguments: ["rtsp://h//live", "rtsp://h///live//", "rtsp://h//live/trackID=0", "//live"])
    func doublesOfSlashesAreOne(
        target: String
    ) {
        #expect(Dialogue().say("DESCRIBE", target)?.status == .ok)
    }

    @Test func answersPingsAndKnowsNoParameters() {
        let client = Dialogue()
        let id = client.setUp()
        for method in ["GET_PARAMETER", "SET_PARAMETER"] {
            #expect(client.say(method)?.status == .ok)
            #expect(client.say(method, "rtsp://h/live", ["Session": id])?.headers["Session"] == id)
            #expect(
                client.say(method, "rtsp://h/live", ["Session": id], body: Array("position\r\n".utf8))?.status
                    == .parameterNotUnderstood)
            #expect(client.say(method, "rtsp://h/live", ["Session": "nobody"])?.status == .sessionNotFound)
        }
    }

    // MARK: Life

    @Test func endsSessionsOfAClosedConnectionAtOnceUnlessOverUDP() {
        let client = Dialogue()
        let tcp = client.setUp()
        #expect(client.closed(1, now: 0) == [.end(sessionID: tcp, .closed)])
        client.connect(2)
        let udp = client.setUp("RTP/AVP;unicast;client_port=5000-5001", on: 2)
        #expect(client.closed(2, now: 0).isEmpty)
        // Its client goes on with another connection.
        client.connect(3)
        #expect(client.say("PLAY", "rtsp://h/live", ["Session": udp], on: 3)?.status == .ok)
    }

    /// Media Foundation pings exactly at the timeout that is said.
    @Test func enforcesLaterThanItSays() {
        let client = Dialogue()
        let id = client.setUp("RTP/AVP;unicast;client_port=5000-5001")
        client.now = 60 * second
        #expect(client.expire(now: client.now).isEmpty)
        #expect(client.say("GET_PARAMETER", "rtsp://h/live", ["Session": id])?.status == .ok)
        client.now = 135 * second
        #expect(client.expire(now: client.now).isEmpty)
        client.now += 1
        #expect(client.expire(now: client.now).contains(.end(sessionID: id, .timeout)))
        #expect(client.signalling.sessions.isEmpty)
    }

    @Test func livesByRTCPFromItsPorts() {
        let client = Dialogue()
        let id = client.setUp("RTP/AVP;unicast;client_port=5000-5001")
        let other = IPAddress("192.168.1.8")!
        #expect(client.heard(from: .init(address: other, port: 5001), now: 70 * second) == nil)
        #expect(client.heard(from: .init(address: Dialogue.client, port: 5002), now: 70 * second) == nil)
        #expect(client.heard(from: .init(address: Dialogue.client, port: 5001), now: 70 * second) == id)
        #expect(!client.expire(now: 100 * second).contains(.end(sessionID: id, .timeout)))
    }

    /// Clients that receive over TCP need not ping (MS-RTSP).
    @Test func letsASessionOverTCPLiveWhileItPlays() {
        let client = Dialogue()
        let id = client.setUp()
        client.say("PLAY", "rtsp://h/live", ["Session": id])
        #expect(client.expire(now: 3600 * second).isEmpty)
        client.now = 3600 * second
        client.say("PAUSE", "rtsp://h/live", ["Session": id])
        #expect(
            client.expire(now: 3676 * second) == [
                .end(sessionID: id, .timeout, reader: 1), .close(1, "it sent no request for 75 s"),
            ])
    }

    @Test func closesConnectionsThatNeverAsk() {
        let client = Dialogue()
        #expect(client.expire(now: 10 * second).isEmpty)
        #expect(client.expire(now: 10 * second + 1) == [.close(1, "it sent no request for 10 s")])
    }

    @Test func closesConnectionsThatAskNoMore() {
        let client = Dialogue()
        client.say("OPTIONS")
        #expect(client.expire(now: 75 * second).isEmpty)
        #expect(client.expire(now: 75 * second + 1) == [.close(1, "it sent no request for 75 s")])
    }

    @Test func endsAllWithTheStream() {
        let client = Dialogue()
        let tcp = client.setUp()
        client.connect(2)
        let udp = client.setUp("RTP/AVP;unicast;client_port=5000-5001", on: 2)
        let actions = client.removePath("/live")
        #expect(actions.contains(.end(sessionID: tcp, .streamEnded)))
        #expect(actions.contains(.end(sessionID: udp, .streamEnded)))
        #expect(actions.contains(.close(1, "the stream has ended")))
        #expect(actions.count == 3)
        #expect(client.say("DESCRIBE")?.status == .notFound)
    }

    @Test func forgetsEverythingAfterManyClients() {
        let client = Dialogue()
        for number in ConnectionID(10)..<2010 {
            client.now += 20_000_000
            client.connect(number)
            let id = client.setUp(number % 2 == 0 ? "RTP/AVP/TCP" : "RTP/AVP;unicast;client_port=5000-5001", on: number)
            client.say("PLAY", "rtsp://h/live", ["Session": id], on: number)
            if number % 3 == 0 { client.say("TEARDOWN", "rtsp://h/live", ["Session": id], on: number) }
            _ = client.closed(number, now: client.now)
        }
        _ = client.closed(1, now: client.now)
        _ = client.expire(now: client.now + 100 * second)
        #expect(client.signalling.isEmpty)
    }
}
