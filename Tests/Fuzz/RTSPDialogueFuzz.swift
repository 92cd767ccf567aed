// SPDX-License-Identifier: Apache-2.0

import ServerAccess

/// Several clients in one dialogue with ``Signalling``, as the bytes say: they come and go, ask anything in any order
/// with headers that fit or do not, are heard over UDP, fall silent, are given up by the fan-out; streams end and
/// begin. After every fourth step the books must balance, and at the end nothing is left.
func fuzzRTSPDialogue(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    var dialogue = Dialogue(input: UnsafeBufferPointer(start: bytes, count: count)[...])
    var steps = 0
    while dialogue.step() {
        steps += 1
        if steps % 4 == 0 { dialogue.check() }
    }
    dialogue.check()
    dialogue.finish()
    return 0
}

private struct Dialogue {
    static let addresses = ["127.0.0.1", "::1", "10.0.0.1", "10.0.0.2", "fd00::3"].map { IPAddress($0)! }
    static let targets = [
        "rtsp://h/live", "rtsp://h/live/trackID=0", "rtsp://h/live/", "/live", "rtsp://h/live?x=1/trackID=0",
        "rtsp://h/live/trackID=1",
        "rtsp://h/closed", "rtsp://h/closed/trackID=0", "rtsp://h/narrow", "rtsp://h/none", "*", "nonsense",
        "rtsp://h/",
        "rtsp://[::1]:554/live",
    ]
    static let methods = RTSPMethod.allCases.map(\.rawValue) + ["SETUP", "PLAY", "SETUP", "NONSENSE"]
    static let transports = [
        "RTP/AVP/TCP;unicast;interleaved=0-1", "RTP/AVP/TCP", "RTP/AVP/TCP;unicast;interleaved=1-2",
        "RTP/AVP/TCP;interleaved=255-0",
        "RTP/AVP;unicast;client_port=5000-5001", "RTP/AVP;unicast;client_port=5001-5002",
        "RTP/AVP;unicast;client_port=5002-5003",
        "RTP/AVP/UDP;client_port=5000", "RTP/AVP;multicast", "RTP/AVP;unicast;client_port=0-1",
        "RTP/SAVP;unicast,RTP/AVP/TCP;unicast",
        "RTP/AVP;unicast;client_port=5004-5005;mode=RECORD", "RTP/AVP;unicast", "",
    ]
    static let ranges = ["npt=0.000-", "npt=now-", "npt=5-", "clock=20260101T000000Z-", "x", "npt=0-10"]
    static let credentials = Credentials(["anna": "secret"])
    static let mostReaders = 3

    var input: Slice<UnsafeBufferPointer<UInt8>>
    var signalling: Signalling
    var open: [ConnectionID: IPAddress] = [:]
    /// Sessions whose packets flow, as the fan-out would know them.
    var playing: Set<String> = []
    var now: Int64 = 0
    var lastConnection: ConnectionID = 0

    init(input: Slice<UnsafeBufferPointer<UInt8>>) {
        self.input = input
        let numbers = Numbers()
        var policy = SessionPolicy(serverPorts: .init(8000, 8001))
        policy.mostConnectionsPerAddress = 4
        policy.mostConnections = 10
        policy.requestsPerSecond = 20
        signalling = Signalling(policy: policy, random: { numbers.next() })
        serve()
    }

    mutating func serve() {
        let description = SessionDescription(
            sessionID: 1, address: "", name: "live", sps: [0x67, 1, 2, 3], pps: [0x68])
        var path = ServedPath(description: description, ssrc: 1)
        path.mostReaders = Self.mostReaders
        signalling.setPath("/live", path)
        path.challenge = Challenge(scheme: .digest, credentials: Self.credentials)
        signalling.setPath("/closed", path)
        path.challenge = Challenge(scheme: .basic, credentials: Self.credentials)
        path.allowed = [AddressRange("10.0.0.0/8")!]
        signalling.setPath("/narrow", path)
    }

    // MARK: Steps

    mutating func byte() -> Int { Int(input.popFirst() ?? 0) }

    mutating func pick<Element>(_ list: [Element]) -> Element? {
        let place = byte()
        return list.isEmpty ? nil : list[place % list.count]
    }

    /// False at the end of the input.
    mutating func step() -> Bool {
        guard let kind = input.popFirst() else { return false }
        switch kind % 16 {
        case 0, 1: connect()
        case 2: if let id = pick(open.keys.sorted()) { close(id) }
        case 3: hear()
        case 4: pass(seconds: byte())
        case 5:
            if let id = pick(signalling.sessions.keys.sorted()) {
                perform(signalling.readerFailed(id, signalling.sessions[id]?.reader ?? 0, .stuck))
            }
        case 6: perform(signalling.removePath(["/live", "/closed", "/narrow"][byte() % 3]))
        case 7: serve()
        case 8: if let id = pick(open.keys.sorted()) { tunnel(id) }
        default: if let id = pick(open.keys.sorted()) { ask(id) }
        }
        return true
    }

    mutating func connect() {
        let peer = Self.addresses[byte() % Self.addresses.count]
        lastConnection += 1
        let refusal = signalling.open(lastConnection, peer: peer, local: .loopback, isSecure: byte() & 7 == 0, now: now)
        if refusal == nil { open[lastConnection] = peer }
    }

    mutating func close(_ id: ConnectionID) {
        guard open.removeValue(forKey: id) != nil else { return }
        perform(signalling.closed(id, now: now))
    }

    mutating func hear() {
        let endpoint = Signalling.Endpoint(
            address: Self.addresses[byte() % Self.addresses.count], port: UInt16(5000 + byte() % 6))
        if let id = signalling.heard(from: endpoint, now: now) {
            precondition(signalling.sessions[id]?.lastHeard == now, "heard from a session that is not there")
        }
    }

    mutating func pass(seconds: Int) {
        now += Int64(seconds) * 1_000_000_000
        perform(signalling.expire(now: now))
    }

    mutating func ask(_ id: ConnectionID) {
        let method = Self.methods[byte() % Self.methods.count]
        let target = Self.targets[byte() % Self.targets.count]
        let has = byte()
        var headers = HeaderFields(has & 3 == 3 ? [] : [("CSeq", "5")])
        if has & 4 != 0 { headers.append("Session", pick(signalling.sessions.keys.sorted()) ?? "none") }
        if has & 8 != 0 { headers.append("Transport", pick(Self.transports)!) }
        if has & 16 != 0 { headers.append("Authorization", authorization(id, method, target)) }
        if has & 32 != 0 { headers.append("Range", pick(Self.ranges)!) }
        if has & 192 == 192 { headers.append(byte() & 1 == 0 ? "Require" : "Scale", "2") }
        now += 1_000_000
        let actions = signalling.handle(RTSPRequest(method, target, headers: headers), from: id, now: now)
        precondition(
            actions.count { if case .end = $0 { false } else if case .close = $0 { false } else { true } } == 1,
            "not one answer")
        perform(actions)
    }

    /// One of the two requests of a tunnel, with one of three cookies.
    mutating func tunnel(_ id: ConnectionID) {
        let kind = byte()
        let headers = HeaderFields([("x-sessioncookie", "c\(kind % 3)")])
        perform(
            signalling.handle(
                RTSPRequest(kind & 4 == 0 ? "GET" : "POST", "/live", version: "HTTP/1.0", headers: headers), from: id,
                now: now))
    }

    mutating func authorization(_ id: ConnectionID, _ method: String, _ uri: String) -> String {
        let nonce = byte() & 1 == 0 ? signalling.connections[id]!.nonce : "old"
        let password = byte() & 3 == 0 ? "wrong" : "secret"
        if byte() & 3 == 0 { return Authorization.basic(name: "anna", password: password).text }
        let response = Authorization.digestResponse(
            .digest, name: "anna", password: password, realm: Challenge.realm, nonce: nonce, method: method, uri: uri)
        return Authorization.digest(
            .init(username: "anna", realm: Challenge.realm, nonce: nonce, uri: uri, response: response)
        ).text
    }

    // MARK: The server's part

    mutating func perform(_ actions: [SignallingAction]) {
        for action in actions {
            switch action {
            case .respond, .openTunnel, .joinTunnel: continue
            case .play(let order, _): precondition(playing.insert(order.sessionID).inserted, "it plays twice")
            case .pause(let id, _): precondition(playing.remove(id) != nil, "paused, and did not play")
            case .end(let id, _, _): playing.remove(id)
            case .close(let id, _): close(id)
            }
        }
    }

    // MARK: The books

    func check() {
        let sessions = signalling.sessions
        precondition(playing == Set(sessions.filter { $0.value.isPlaying }.keys), "the fan-out knows other sessions")
        precondition(Set(signalling.connections.keys) == Set(open.keys), "other connections are known than are open")
        for path in ["/live", "/closed", "/narrow"] {
            precondition(signalling.readerCount(of: path) <= Self.mostReaders, "too many readers")
        }
        var ports = 0
        var channels: Set<[UInt64]> = []
        for (id, session) in sessions {
            if let owner = session.owner {
                precondition(open[owner] == session.peer, "its owner is another's connection")
            }
            switch session.transport {
            case .udp(let address, let pair):
                precondition(address == session.peer, "packets for somebody else")
                ports += 2
                for port in [pair.rtp, pair.rtcp] {
                    precondition(
                        signalling.endpoints[.init(address: address, port: port)] == id, "a port of \(id) is another's")
                }
            case .tcp(let connection, let pair):
                precondition(open[connection] == session.peer, "packets for a connection that is closed")
                for channel in [pair.rtp, pair.rtcp] {
                    precondition(channels.insert([connection, UInt64(channel)]).inserted, "a channel has two sessions")
                }
            }
        }
        for (cookie, id) in signalling.tunnels {
            guard case .output(cookie, let input) = signalling.connections[id]?.tunnel else {
                preconditionFailure("a tunnel of nobody")
            }
            guard let input else { continue }
            precondition(
                signalling.connections[input]?.tunnel == .input(of: id), "the way in of \(cookie) is another's")
            precondition(open[input] == open[id], "the ways of a tunnel have two clients")
        }
        precondition(signalling.endpoints.count == ports, "ports of sessions that have ended")
        for (address, use) in signalling.addresses {
            precondition(
                use.connections == open.values.count { $0 == address }, "\(use.connections) connections of \(address)")
        }
    }

    mutating func finish() {
        for id in open.keys { close(id) }
        pass(seconds: 1 << 20)
        precondition(signalling.isEmpty && playing.isEmpty, "something is left")
    }
}
