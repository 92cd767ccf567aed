// SPDX-License-Identifier: Apache-2.0

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
        let headers = [
            ("Content-Base", base.text + (base.text.hasSuffix("/") ? "" : "/")), ("Content-Type", "application/sdp"),
        ]
        var response = inquiry.response(.ok, headers)
        // The text is made where it is sent, without the lock.
        response.description = description
        return [.respond(response)]
    }

    /// An empty body is a ping (RFC 2326, 10.8); there is no parameter to read or set.
    mutating func parameter(_ inquiry: Inquiry) -> [SignallingAction] {
        if let id = inquiry.sessionID {
            guard owns(inquiry, id) else { return inquiry.refuse(.sessionNotFound) }
            updateSession(id) { $0.lastHeard = inquiry.now }
        }
        let session = inquiry.sessionID.map { [("Session", $0)] } ?? []
        return inquiry.refuse(inquiry.values.hasBody ? .parameterNotUnderstood : .ok, session)
    }

    // MARK: SETUP

    /// VLC and others set up the stream's own URL after a failure. With one track it is clear what they mean; with
    /// two, RFC 2326, 10.4, requires that they name one.
    mutating func setUp(_ path: ServedPath, _ inquiry: Inquiry) -> [SignallingAction] {
        guard let number = inquiry.url.track ?? path.onlyMedium?.rawValue else {
            return inquiry.refuse(.aggregateNotAllowed)
        }
        guard let medium = Medium(rawValue: number), let ssrc = path.ssrc(of: medium) else {
            return inquiry.refuse(.notFound)
        }
        var actions: [SignallingAction] = []
        var present: SessionTransports?
        if let id = inquiry.sessionID {
            guard owns(inquiry, id), let session = sessions[id] else { return inquiry.refuse(.sessionNotFound) }
            guard session.path == inquiry.url.path else { return inquiry.refuse(.aggregateNotAllowed) }
            guard !session.isPlaying else { return inquiry.refuse(.notValidInThisState) }
            present = session.transports
        }
        visits += inquiry.values.transports.count
        guard let spec = inquiry.values.transports.first(where: { isUsable($0, path, inquiry) }) else {
            return inquiry.refuse(.unsupportedTransport)
        }
        guard let transport = transport(spec, medium, inquiry) else { return inquiry.refuse(.unsupportedTransport) }
        // A medium that the session lacks must travel like the other one, or is refused (RFC 2326, 10.4): the other
        // one must not end unasked. A medium that it has is set up anew; see `SessionTransports.with(_:_:)`.
        if let present, present[medium] == nil, let other = present[medium.other], !other.isLike(transport) {
            return inquiry.refuse(.unsupportedTransport)
        }
        let old = superseded(by: transport, inquiry)
        guard
            readerCount(of: inquiry.url.path) - old.count(where: { sessions[$0]?.path == inquiry.url.path })
                < path.mostReaders,
            inquiry.connection.sessions.subtracting(old).count < Self.mostSessionsPerConnection,
            inquiry.connection.peer.isLoopback
                || (addresses[inquiry.connection.peer]?.sessions ?? 0) - old.count < policy.mostConnectionsPerAddress
        else { return inquiry.refuse(.notEnoughBandwidth) }
        for id in old { actions += end(id, .replaced) }
        let id = inquiry.sessionID ?? newSessionID()
        insert(
            id,
            Session(
                path: inquiry.url.path,
                transports: present?.with(medium, transport) ?? SessionTransports(medium, transport),
                peer: inquiry.connection.peer, user: inquiry.user, owner: inquiry.connectionID,
                lastHeard: inquiry.now))
        let headers = [
            ("Session", SessionHeader(id: id, timeoutSeconds: timeout).text),
            ("Transport", answer(spec, transport, ssrc).text),
        ]
        return actions + [.respond(inquiry.response(.ok, headers))]
    }

    private func isUsable(_ spec: TransportSpec, _ path: ServedPath, _ inquiry: Inquiry) -> Bool {
        guard !spec.isMulticast, spec.mode == nil || spec.mode == "PLAY" else { return false }
        switch spec.lower {
        case .tcp: return path.carriesTCP
        // With TLS nothing may be sent unencrypted.
        case .udp:
            return path.carriesUDP && spec.clientPort != nil && policy.serverPorts != nil
                && !inquiry.connection.isSecure
        }
    }

    /// Whether the client is on this machine and names a port of this server. The server would send to itself, and
    /// each packet would be a sign of life of a client that may have gone.
    private func isOwn(_ ports: TransportSpec.Pair<UInt16>, _ connection: Connection) -> Bool {
        guard connection.peer.isLoopback || connection.peer == connection.local, let own = policy.serverPorts else {
            return false
        }
        return [ports.rtp, ports.rtcp].contains { $0 == own.rtp || $0 == own.rtcp }
    }

    /// The transport for a medium. Nil where the port belongs to another client behind the same address, to the
    /// session's other medium, or to this server; or where no channel is free.
    private mutating func transport(_ spec: TransportSpec, _ medium: Medium, _ inquiry: Inquiry) -> SessionTransport? {
        let otherTransport = inquiry.sessionID.flatMap { sessions[$0]?.transports[medium.other] }
        if let ports = spec.clientPort, spec.lower == .udp {
            let owners = holders(of: inquiry.connection.peer, ports).compactMap { sessions[$0]?.owner }
            guard owners.allSatisfy({ $0 == inquiry.connectionID }), !isOwn(ports, inquiry.connection) else {
                return nil
            }
            if case .udp(_, let taken) = otherTransport, ports.overlaps(taken) { return nil }
            return .udp(inquiry.connection.peer, ports: ports)
        }
        // QuickTime names no channels, and some clients ask for those of another track.
        visits += inquiry.connection.sessions.count
        var taken: Set<UInt8> = []
        func take(_ transport: SessionTransport?) {
            guard case .tcp(inquiry.connectionID, let channels) = transport else { return }
            taken.formUnion([channels.rtp, channels.rtcp])
        }
        for id in inquiry.connection.sessions where id != inquiry.sessionID { sessions[id]?.transports.forEach(take) }
        take(otherTransport)
        if let asked = spec.interleaved, !taken.contains(asked.rtp), !taken.contains(asked.rtcp) {
            return .tcp(inquiry.connectionID, channels: asked)
        }
        guard
            let free = (0..<127).map({ UInt8(2 * $0) }).first(where: { !taken.contains($0) && !taken.contains($0 + 1) })
        else {
            return nil
        }
        return .tcp(inquiry.connectionID, channels: TransportSpec.Pair(free, free + 1))
    }

    /// Sessions of the same client that this SETUP ends: the session itself, which is set up anew; FFmpeg's old
    /// session after it found UDP silent (it pauses, forgets the session and sets up another); or one whose port has
    /// a new user, so that its own client must have gone; see `transport(_:_:)`.
    private mutating func superseded(by transport: SessionTransport, _ inquiry: Inquiry) -> Set<String> {
        visits += inquiry.connection.sessions.count + 2
        var old = inquiry.connection.sessions.filter {
            sessions[$0].map { $0.path == inquiry.url.path && !$0.isPlaying } ?? false
        }
        if let id = inquiry.sessionID { old.insert(id) }
        if case .udp(let address, let ports) = transport { old.formUnion(holders(of: address, ports)) }
        return old
    }

    private func answer(_ asked: TransportSpec, _ transport: SessionTransport, _ ssrc: UInt32) -> TransportSpec {
        var spec = TransportSpec(asked.lower)
        switch transport {
        case .tcp(_, let channels): spec.interleaved = channels
        case .udp(_, let ports):
            spec.clientPort = ports
            spec.serverPort = policy.serverPorts
        }
        spec.ssrc = ssrc
        return spec
    }

    /// 24 letters and digits: some clients fail at `$` or dashes.
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
        // A live stream plays from now on at its own speed, whatever range and scale a client asks for, and the answer
        // says so. gst-rtsp-server and VLC's server do the same.
        guard inquiry.values.range != .unreadable else { return inquiry.refuse(.invalidRange, [("Session", id)]) }
        let pace =
            (inquiry.values.hasScale ? [("Scale", "1.0")] : [])
            + (inquiry.values.hasSpeed ? [("Speed", "1.0")] : [])
        let response = inquiry.response(
            .ok, [("Session", SessionHeader(id: id, timeoutSeconds: timeout).text), ("Range", "npt=now-")] + pace)
        guard !session.isPlaying else { return [.respond(response)] }
        let number = nextReader()
        updateSession(id) {
            $0.reader = number
            $0.lastReader = number
        }
        let order = PlayOrder(
            sessionID: id, number: number, path: session.path, transports: session.transports, peer: session.peer,
            user: session.user, url: inquiry.url)
        return [.play(order, response)]
    }

    mutating func pause(_ id: String, _ inquiry: Inquiry) -> [SignallingAction] {
        guard sessions[id]?.isPlaying == true else { return inquiry.refuse(.notValidInThisState, [("Session", id)]) }
        updateSession(id) { $0.reader = nil }
        return [
            .pause(
                sessionID: id, inquiry.response(.ok, [("Session", SessionHeader(id: id, timeoutSeconds: timeout).text)])
            )
        ]
    }

    /// A session of both media only ends as a whole. `TEARDOWN` of one of them is refused, since it would have to
    /// leave the other (RFC 2326, 10.7).
    mutating func tearDown(_ id: String, _ inquiry: Inquiry) -> [SignallingAction] {
        if inquiry.url.track != nil, let session = sessions[id], session.transports.media.count > 1 {
            return inquiry.refuse(.onlyAggregateAllowed, [("Session", id)])
        }
        return end(id, .teardown) + [.respond(inquiry.response(.ok, [("Session", id)]))]
    }
}
