/// What each method does (RFC 2326, 10).
extension Signalling {
    static let mostSessionsPerConnection = 16
    private var timeout: Int { policy.timeoutSeconds }

    func options(_ inquiry: Inquiry) -> [SignallingAction] {
        if let id = inquiry.sessionID, !owns(inquiry, id) { return inquiry.refuse(.sessionNotFound) }
        return inquiry.refuse(.ok, [("Public", RTSPMethod.offered)])
    }

    func describe(_ path: ServedPath, _ inquiry: Inquiry) -> [SignallingAction] {
        var description = path.description
        description.address = inquiry.connection.local.description
        var base = inquiry.url
        base.track = nil
        let headers = [("Content-Base", base.text + (base.text.hasSuffix("/") ? "" : "/")), ("Content-Type", "application/sdp")]
        return [.respond(inquiry.response(.ok, headers, body: Array(description.text.utf8)))]
    }

    /// An empty body is a ping (RFC 2326, 10.8); there is no parameter to read or set.
    mutating func parameter(_ inquiry: Inquiry) -> [SignallingAction] {
        if let id = inquiry.sessionID {
            guard owns(inquiry, id) else { return inquiry.refuse(.sessionNotFound) }
            updateSession(id) { $0.lastHeard = inquiry.now }
        }
        let session = inquiry.sessionID.map { [("Session", $0)] } ?? []
        return inquiry.refuse(inquiry.request.body.isEmpty ? .ok : .parameterNotUnderstood, session)
    }

    // MARK: SETUP

    /// VLC and others set up the stream's own URL after a failure; with one track there is no doubt what is meant.
    mutating func setUp(_ path: ServedPath, _ inquiry: Inquiry) -> [SignallingAction] {
        guard inquiry.url.track ?? 0 == 0 else { return inquiry.refuse(.notFound) }
        var actions: [SignallingAction] = []
        if let id = inquiry.sessionID {
            guard owns(inquiry, id), let session = sessions[id] else { return inquiry.refuse(.sessionNotFound) }
            guard session.path == inquiry.url.path else { return inquiry.refuse(.aggregateNotAllowed) }
            guard !session.isPlaying else { return inquiry.refuse(.notValidInThisState) }
        }
        let offered = TransportHeader.parse(inquiry.request.headers["Transport"] ?? "")
        guard let spec = offered.first(where: { isUsable($0, path, inquiry) }) else { return inquiry.refuse(.unsupportedTransport) }
        guard let transport = transport(spec, inquiry) else { return inquiry.refuse(.unsupportedTransport) }
        // The session's old transport, or FFmpeg's after it found UDP silent: it pauses, forgets the session and sets up anew.
        let old = sessions.filter { isSuperseded($0.key, $0.value, by: transport, inquiry) }.keys
        let others = sessions.filter { !old.contains($0.key) }.values
        guard others.count(where: { $0.path == inquiry.url.path }) < path.mostReaders,
            others.count(where: { $0.owner == inquiry.connectionID }) < Self.mostSessionsPerConnection,
            inquiry.connection.peer.isLoopback
                || others.count(where: { $0.peer == inquiry.connection.peer }) < policy.mostConnectionsPerAddress
        else { return inquiry.refuse(.notEnoughBandwidth) }
        for id in old { actions += end(id, .replaced) }
        let id = inquiry.sessionID ?? newSessionID()
        insert(
            id,
            Session(
                path: inquiry.url.path, transport: transport, peer: inquiry.connection.peer, user: inquiry.user,
                owner: inquiry.connectionID,
                lastHeard: inquiry.now))
        let headers = [
            ("Session", SessionHeader(id: id, timeoutSeconds: timeout).text), ("Transport", answer(spec, transport, path).text),
        ]
        return actions + [.respond(inquiry.response(.ok, headers))]
    }

    private func isUsable(_ spec: TransportSpec, _ path: ServedPath, _ inquiry: Inquiry) -> Bool {
        guard !spec.isMulticast, spec.mode == nil || spec.mode == "PLAY" else { return false }
        switch spec.lower {
        case .tcp: return path.carriesTCP
        // Over TLS nothing leaves in the clear.
        case .udp: return path.carriesUDP && spec.clientPort != nil && policy.serverPorts != nil && !inquiry.connection.isSecure
        }
    }

    /// Nil where another client behind the same address has the port.
    private func transport(_ spec: TransportSpec, _ inquiry: Inquiry) -> SessionTransport? {
        if let ports = spec.clientPort, spec.lower == .udp {
            let owners = holders(of: inquiry.connection.peer, ports).compactMap { sessions[$0]?.owner }
            guard owners.allSatisfy({ $0 == inquiry.connectionID }) else { return nil }
            return .udp(inquiry.connection.peer, ports: ports)
        }
        // QuickTime names no channels; some ask for those of another track.
        let taken = sessions.filter { $0.key != inquiry.sessionID }.compactMap { _, session -> [UInt8]? in
            guard case .tcp(inquiry.connectionID, let channels) = session.transport else { return nil }
            return [channels.rtp, channels.rtcp]
        }.flatMap { $0 }
        if let asked = spec.interleaved, !taken.contains(asked.rtp), !taken.contains(asked.rtcp) {
            return .tcp(inquiry.connectionID, channels: asked)
        }
        guard let free = (0..<127).map({ UInt8(2 * $0) }).first(where: { !taken.contains($0) && !taken.contains($0 + 1) }) else {
            return nil
        }
        return .tcp(inquiry.connectionID, channels: TransportSpec.Pair(free, free + 1))
    }

    private func isSuperseded(_ id: String, _ session: Session, by transport: SessionTransport, _ inquiry: Inquiry) -> Bool {
        if id == inquiry.sessionID { return true }
        if session.path == inquiry.url.path, session.owner == inquiry.connectionID, !session.isPlaying { return true }
        // Its client's port has a new user, so the old one is gone; see `transport(_:_:)`.
        if case .udp(let address, let ports) = transport { return holders(of: address, ports).contains(id) }
        return false
    }

    private func answer(_ asked: TransportSpec, _ transport: SessionTransport, _ path: ServedPath) -> TransportSpec {
        var spec = TransportSpec(asked.lower)
        switch transport {
        case .tcp(_, let channels): spec.interleaved = channels
        case .udp(_, let ports):
            spec.clientPort = ports
            spec.serverPort = policy.serverPorts
        }
        spec.ssrc = path.ssrc
        return spec
    }

    /// 24 letters and digits: some clients trip over `$` or dashes.
    private func newSessionID() -> String {
        let alphabet = Array("0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ".utf8)
        while true {
            var text: [UInt8] = []
            while text.count < 24 {
                var word = random()
                for _ in 0..<8 {
                    text.append(alphabet[Int(word % 62)])
                    word /= 62
                }
            }
            let id = String(decoding: text, as: UTF8.self)
            if sessions[id] == nil { return id }
        }
    }

    // MARK: PLAY, PAUSE, TEARDOWN

    mutating func play(_ id: String, _ inquiry: Inquiry) -> [SignallingAction] {
        guard let session = sessions[id] else { return inquiry.refuse(.sessionNotFound) }
        if let text = inquiry.request.headers["Range"] {
            guard let range = PlayRange(text), range.isLive else { return inquiry.refuse(.invalidRange, [("Session", id)]) }
        }
        if let scale = inquiry.request.headers["Scale"], Double(scale) != 1 { return inquiry.refuse(.invalidRange, [("Session", id)]) }
        var control = inquiry.url
        control.track = 0
        let response = inquiry.response(.ok, [("Session", SessionHeader(id: id, timeoutSeconds: timeout).text), ("Range", "npt=now-")])
        guard !session.isPlaying else { return [.respond(response)] }
        updateSession(id) { $0.isPlaying = true }
        let order = PlayOrder(
            sessionID: id, path: session.path, transport: session.transport, peer: session.peer, user: session.user,
            controlURL: control.text)
        return [.play(order, response)]
    }

    mutating func pause(_ id: String, _ inquiry: Inquiry) -> [SignallingAction] {
        guard sessions[id]?.isPlaying == true else { return inquiry.refuse(.notValidInThisState, [("Session", id)]) }
        updateSession(id) { $0.isPlaying = false }
        return [.pause(sessionID: id, inquiry.response(.ok, [("Session", SessionHeader(id: id, timeoutSeconds: timeout).text)]))]
    }

    mutating func tearDown(_ id: String, _ inquiry: Inquiry) -> [SignallingAction] {
        end(id, .teardown) + [.respond(inquiry.response(.ok, [("Session", id)]))]
    }
}
