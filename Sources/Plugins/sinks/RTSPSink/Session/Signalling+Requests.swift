// SPDX-License-Identifier: Apache-2.0

/// The checks before a method is carried out, in this order: who may ask at all, syntax, version, method, required
/// options, path, access.
extension Signalling {
    /// A request, and what the checks have found out about it.
    struct Inquiry {
        var values: RequestValues
        var connectionID: ConnectionID
        var connection: Connection
        var sequence: String
        var now: Int64
        var url = RTSPURL(path: "/")
        var user: String?
        /// From `Session`.
        var sessionID: String? { values.sessionID }

        func response(_ status: RTSPStatus, _ headers: [(String, String)] = [], body: [UInt8] = []) -> RTSPResponse {
            RTSPResponse(
                status, headers: HeaderFields([("CSeq", sequence), ("Server", "framehost")] + headers), body: body)
        }

        func refuse(_ status: RTSPStatus, _ headers: [(String, String)] = []) -> [SignallingAction] {
            [.respond(response(status, headers))]
        }
    }

    /// Answers one request, with ``RequestValues/prove(_:)`` in between. For tests; the server parses and proves
    /// without its lock.
    mutating func handle(_ request: RTSPRequest, from id: ConnectionID, now: Int64) -> [SignallingAction] {
        var values = RequestValues(request)
        if let path = values.path, let demand = demand(of: path, on: id) { values.prove(demand) }
        return handle(values, from: id, now: now)
    }

    /// Answers what a request asks.
    mutating func handle(_ values: RequestValues, from id: ConnectionID, now: Int64) -> [SignallingAction] {
        guard let connection = connections[id] else { return [] }
        update(id) { ($0.lastRequest, $0.hasAsked) = (now, true) }
        for sessionID in connection.sessions {
            visits += 1
            updateSession(sessionID) { $0.lastHeard = now }
        }
        var inquiry = Inquiry(
            values: values, connectionID: id, connection: connection, sequence: values.sequence ?? "0", now: now)
        guard admitsRequest(from: connection.peer, now: now) else {
            return inquiry.refuse(.serviceUnavailable) + [.close(id, "\(connection.peer) asks too often")]
        }
        guard values.version != .http else { return tunnel(inquiry) }
        guard values.version == .rtsp1 else { return inquiry.refuse(.versionNotSupported) }
        guard values.sequence != nil else {
            return [.respond(RTSPResponse(.badRequest, headers: HeaderFields([("Server", "framehost")])))]
        }
        guard !values.isExcessive else { return inquiry.refuse(.badRequest) }
        guard let method = values.method else {
            return inquiry.refuse(.notImplemented, [("Public", RTSPMethod.offered)])
        }
        guard method.isOffered else { return inquiry.refuse(.methodNotAllowed, [("Allow", RTSPMethod.offered)]) }
        if let required = values.required { return inquiry.refuse(.optionNotSupported, [("Unsupported", required)]) }
        // Clients send OPTIONS before they have credentials, some with `*` or without a usable URL.
        if method == .options { return options(inquiry) }
        guard let url = values.url else { return inquiry.refuse(.badRequest) }
        inquiry.url = url
        return dispatch(method, inquiry)
    }

    private mutating func dispatch(_ method: RTSPMethod, _ asked: Inquiry) -> [SignallingAction] {
        var inquiry = asked
        guard let entry = paths[inquiry.url.path] else { return inquiry.refuse(.notFound) }
        let path = entry.served
        guard path.allows(inquiry.connection.peer) else {
            failedLogins.add(inquiry.connection.peer, inquiry.url.path, .address)
            return inquiry.refuse(.forbidden)
        }
        if let challenge = path.challenge {
            // A proof for another edition of the path does not count: the client is asked again.
            let proof = inquiry.values.proof.flatMap { $0.edition == entry.edition ? $0 : nil }
            guard case .granted(let user) = proof?.verdict else {
                return demandCredentials(challenge, proof?.verdict ?? .missing, inquiry)
            }
            inquiry.user = user
        }
        switch method {
        case .describe: return describe(path, inquiry)
        case .setup: return setUp(path, inquiry)
        case .play: return inSession(inquiry) { $0.play($1, inquiry) }
        case .pause: return inSession(inquiry) { $0.pause($1, inquiry) }
        case .teardown: return inSession(inquiry) { $0.tearDown($1, inquiry) }
        case .getParameter, .setParameter: return parameter(inquiry)
        case .options, .announce, .record, .redirect:
            return inquiry.refuse(.methodNotAllowed, [("Allow", RTSPMethod.offered)])
        }
    }

    private mutating func demandCredentials(_ challenge: Challenge, _ verdict: Challenge.Verdict, _ inquiry: Inquiry)
        -> [SignallingAction]
    {
        let header = challenge.header(nonce: inquiry.connection.nonce, isStale: verdict == .stale)
        let refusal = inquiry.refuse(.unauthorized, [("WWW-Authenticate", header)])
        guard verdict == .wrong else { return refusal }
        failedLogins.add(inquiry.connection.peer, inquiry.url.path)
        update(inquiry.connectionID) { $0.failures += 1 }
        guard inquiry.connection.failures + 1 >= policy.mostFailures else { return refusal }
        return refusal + [
            .close(inquiry.connectionID, "\(inquiry.connection.peer) gave \(policy.mostFailures) wrong passwords")
        ]
    }

    /// Runs a method that needs a session. The session must belong to this client's address, and to this connection
    /// where its packets flow on a connection.
    private mutating func inSession(
        _ inquiry: Inquiry, _ body: (inout Signalling, String) -> [SignallingAction]
    ) -> [SignallingAction] {
        guard let id = inquiry.sessionID, owns(inquiry, id), sessions[id]?.path == inquiry.url.path else {
            return inquiry.refuse(.sessionNotFound)
        }
        updateSession(id) { $0.lastHeard = inquiry.now }
        return body(&self, id)
    }

    func owns(_ inquiry: Inquiry, _ id: String) -> Bool {
        guard let session = sessions[id], session.peer == inquiry.connection.peer else { return false }
        if case .tcp(let connection, _) = session.transport { return connection == inquiry.connectionID }
        return true
    }
}
