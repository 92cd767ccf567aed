/// What is asked before the method is looked at, in this order: who may ask at all, syntax, version, method, required options, path, access.
extension Signalling {
    /// A request and what was found out about it on the way.
    struct Inquiry {
        var request: RTSPRequest
        var connectionID: ConnectionID
        var connection: Connection
        var sequence: String
        var now: Int64
        var url = RTSPURL(path: "/")
        var user: String?
        /// From `Session`.
        var sessionID: String?

        func response(_ status: RTSPStatus, _ headers: [(String, String)] = [], body: [UInt8] = []) -> RTSPResponse {
            RTSPResponse(status, headers: HeaderFields([("CSeq", sequence), ("Server", "framehost")] + headers), body: body)
        }

        func refuse(_ status: RTSPStatus, _ headers: [(String, String)] = []) -> [SignallingAction] {
            [.respond(response(status, headers))]
        }
    }

    /// Answers one request.
    mutating func handle(_ request: RTSPRequest, from id: ConnectionID, now: Int64) -> [SignallingAction] {
        guard let connection = connections[id] else { return [] }
        update(id) { $0.lastRequest = now }
        for sessionID in sessions.filter({ $0.value.owner == id }).keys { updateSession(sessionID) { $0.lastHeard = now } }
        // CSeq is at most a number of 10 digits; without a usable one the answer has none.
        let sequence = request.headers["CSeq"].flatMap { ASCII.number($0, atMost: 9_999_999_999) }
        var inquiry = Inquiry(
            request: request, connectionID: id, connection: connection, sequence: sequence.map(String.init) ?? "0", now: now)
        guard admitsRequest(from: connection.peer, now: now) else {
            return inquiry.refuse(.serviceUnavailable) + [.close(id, "\(connection.peer) asks too often")]
        }
        guard request.version == "RTSP/1.0" else { return refuseVersion(inquiry) }
        guard sequence != nil, request.headers.all("CSeq").count == 1 else {
            return [.respond(RTSPResponse(.badRequest, headers: HeaderFields([("Server", "framehost")])))]
        }
        guard let method = RTSPMethod(rawValue: request.method) else {
            return inquiry.refuse(.notImplemented, [("Public", RTSPMethod.offered)])
        }
        guard method.isOffered else { return inquiry.refuse(.methodNotAllowed, [("Allow", RTSPMethod.offered)]) }
        let required = request.headers.all("Require") + request.headers.all("Proxy-Require")
        guard required.isEmpty else { return inquiry.refuse(.optionNotSupported, [("Unsupported", required.joined(separator: ", "))]) }
        inquiry.sessionID = request.headers["Session"].flatMap { SessionHeader($0)?.id }
        // Everybody asks OPTIONS before it has credentials, some with `*` or without a URL of use.
        if method == .options { return options(inquiry) }
        guard let url = RTSPURL(request.target) else { return inquiry.refuse(.badRequest) }
        inquiry.url = url
        return dispatch(method, inquiry)
    }

    private func refuseVersion(_ inquiry: Inquiry) -> [SignallingAction] {
        let version = inquiry.request.version
        guard version.hasPrefix("HTTP/") else { return inquiry.refuse(.versionNotSupported) }
        // RTSP over HTTP (QuickTime's tunnel), or somebody with a browser.
        var response = RTSPResponse(.methodNotAllowed, headers: HeaderFields([("Server", "framehost"), ("Connection", "close")]))
        response.version = "HTTP/1.1"
        return [.respond(response), .close(inquiry.connectionID, "it speaks HTTP")]
    }

    private mutating func dispatch(_ method: RTSPMethod, _ asked: Inquiry) -> [SignallingAction] {
        var inquiry = asked
        guard let path = paths[inquiry.url.path] else { return inquiry.refuse(.notFound) }
        guard path.allows(inquiry.connection.peer) else { return inquiry.refuse(.forbidden) }
        if let challenge = path.challenge {
            let verdict = challenge.judge(
                inquiry.request.headers["Authorization"], method: method.rawValue, url: inquiry.url, nonce: inquiry.connection.nonce)
            guard case .granted(let user) = verdict else { return demandCredentials(challenge, verdict, inquiry) }
            inquiry.user = user
        }
        switch method {
        case .describe: return describe(path, inquiry)
        case .setup: return setUp(path, inquiry)
        case .play: return inSession(inquiry) { $0.play($1, inquiry) }
        case .pause: return inSession(inquiry) { $0.pause($1, inquiry) }
        case .teardown: return inSession(inquiry) { $0.tearDown($1, inquiry) }
        case .getParameter, .setParameter: return parameter(inquiry)
        case .options, .announce, .record, .redirect: return inquiry.refuse(.methodNotAllowed, [("Allow", RTSPMethod.offered)])
        }
    }

    private mutating func demandCredentials(_ challenge: Challenge, _ verdict: Challenge.Verdict, _ inquiry: Inquiry) -> [SignallingAction]
    {
        let header = challenge.header(nonce: inquiry.connection.nonce, isStale: verdict == .stale)
        let refusal = inquiry.refuse(.unauthorized, [("WWW-Authenticate", header)])
        guard verdict == .wrong else { return refusal }
        update(inquiry.connectionID) { $0.failures += 1 }
        guard inquiry.connection.failures + 1 >= policy.mostFailures else { return refusal }
        return refusal + [.close(inquiry.connectionID, "\(policy.mostFailures) wrong passwords came from \(inquiry.connection.peer)")]
    }

    /// Runs a method that needs a session: one of this client's address, and for packets on a connection of that connection.
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
