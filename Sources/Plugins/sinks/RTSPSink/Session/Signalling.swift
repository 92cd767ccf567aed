// SPDX-License-Identifier: Apache-2.0

import ServerAccess

/// All RTSP sessions of a port. It takes requests and says what to do.
///
/// A value without sockets, threads or clock. It answers by RFC 2326 and tolerates what real clients do; each
/// tolerance is explained where it is made. Its size is bounded by the number of connections, and by that of the
/// sessions of each connection (``mostSessionsPerConnection``) and each address.
///
/// An answer costs the same however many clients there are: a request is parsed before (``RequestValues``), and it
/// only looks at the sessions of its own connection, which are found by key (``visits`` counts them).
struct Signalling: Sendable {
    struct Connection: Sendable {
        var peer: IPAddress
        /// The server's address as this client reached it.
        var local: IPAddress
        var isSecure: Bool
        /// The nonce of this connection's challenge.
        var nonce: String
        var failures = 0
        var lastRequest: Int64
        /// Whether it has sent a complete request.
        var hasAsked = false
        /// The sessions that it has set up and that have not ended.
        var sessions: Set<String> = []
        var tunnel: Tunnel?
    }

    struct Session: Sendable {
        var path: String
        var transports: SessionTransports
        var peer: IPAddress
        var user: String?
        /// The number of the PLAY by which it plays; nil while it does not.
        var reader: UInt64?
        /// The number of its last PLAY.
        var lastReader: UInt64 = 0
        /// The connection that set it up, while that is open.
        var owner: ConnectionID?
        var lastHeard: Int64

        var isPlaying: Bool { reader != nil }
        /// Of the medium that was set up first. The other one travels in the same way.
        var transport: SessionTransport { transports.first }
    }

    struct AddressUse: Sendable {
        var connections = 0
        var sessions = 0
        var bucket: RateBucket
    }

    var policy: SessionPolicy
    private(set) var paths: [String: PathEntry] = [:]
    /// The sessions of each path.
    private(set) var sessionsOfPath: [String: Set<String>] = [:]
    private(set) var connections: [ConnectionID: Connection] = [:]
    private(set) var sessions: [String: Session] = [:]
    private(set) var addresses: [IPAddress: AddressUse] = [:]
    /// UDP ports of clients, RTP and RTCP, to their sessions.
    private(set) var endpoints: [Endpoint: String] = [:]
    /// Tunnels by their cookies: the connections of their GETs.
    var tunnels: [String: ConnectionID] = [:]
    var failedLogins = FailedLogins()
    /// Sessions, transports and ports that were looked at to answer requests. This measures how long the lock is held,
    /// independent of the machine's speed.
    var visits = 0
    private var lastReader: UInt64 = 0
    private var lastEdition: UInt64 = 0
    /// Random numbers for session ids and nonces; replaced in tests.
    let random: @Sendable () -> UInt64

    struct Endpoint: Hashable, Sendable {
        var address: IPAddress
        var port: UInt16
    }

    init(
        policy: SessionPolicy = SessionPolicy(),
        random: @escaping @Sendable () -> UInt64 = { UInt64.random(in: .min ... .max) }
    ) {
        self.policy = policy
        self.random = random
    }

    // MARK: Paths

    mutating func setPath(_ path: String, _ served: ServedPath) {
        lastEdition += 1
        paths[path] = PathEntry(served: served, edition: lastEdition)
    }

    /// What a path demands of a client on a connection.
    struct Demand: Sendable {
        var challenge: Challenge
        var edition: UInt64
        var nonce: String
    }

    /// Nil where everybody may ask, or where there is no such path.
    func demand(of path: String, on id: ConnectionID) -> Demand? {
        guard let entry = paths[path], let challenge = entry.served.challenge, let connection = connections[id] else {
            return nil
        }
        return Demand(challenge: challenge, edition: entry.edition, nonce: connection.nonce)
    }

    /// Removes a path. Its sessions end, and the connections on which their packets flow are closed.
    ///
    /// - Parameter most: The most sessions in one call, which must be repeated until there is nothing left to do.
    mutating func removePath(_ path: String, atMost most: Int = .max) -> [SignallingAction] {
        paths[path] = nil
        return (sessionsOfPath[path] ?? []).prefix(most).flatMap { id -> [SignallingAction] in
            guard let session = sessions[id] else { return [] }
            var actions = end(id, .streamEnded)
            if case .tcp(let connection, _) = session.transport {
                actions.append(.close(connection, "the stream has ended"))
            }
            return actions
        }
    }

    func readerCount(of path: String) -> Int { sessionsOfPath[path]?.count ?? 0 }

    // MARK: Connections

    /// Registers a client that has connected.
    ///
    /// - Returns: Why it must be closed at once; nil when it may stay.
    mutating func open(_ id: ConnectionID, peer: IPAddress, local: IPAddress, isSecure: Bool, now: Int64) -> String? {
        guard connections.count < policy.mostConnections else {
            return "there are already \(policy.mostConnections) connections"
        }
        var use = addresses[peer] ?? AddressUse(bucket: RateBucket(perSecond: policy.requestsPerSecond, now: now))
        guard use.connections < policy.mostConnectionsPerAddress || peer.isLoopback else {
            return "\(peer) already has \(policy.mostConnectionsPerAddress) connections ('maxConnectionsPerAddress')"
        }
        use.connections += 1
        addresses[peer] = use
        let nonce = [random(), random()].map {
            ASCII.hex(UInt32(truncatingIfNeeded: $0 >> 32), digits: 8)
                + ASCII.hex(UInt32(truncatingIfNeeded: $0), digits: 8)
        }.joined()
        connections[id] = Connection(peer: peer, local: local, isSecure: isSecure, nonce: nonce, lastRequest: now)
        return nil
    }

    /// A client's connection was closed: sessions whose packets flowed on it end at once. Those over UDP go on as long
    /// as they give signs of life.
    mutating func closed(_ id: ConnectionID, now: Int64) -> [SignallingAction] {
        guard let connection = connections.removeValue(forKey: id) else { return [] }
        addresses[connection.peer]?.connections -= 1
        var actions = closeTunnel(connection.tunnel, of: id)
        for sessionID in connection.sessions {
            guard let session = sessions[sessionID] else { continue }
            if case .tcp = session.transport {
                actions += end(sessionID, .closed)
            } else {
                sessions[sessionID]?.owner = nil
            }
        }
        forgetAddress(connection.peer, now: now)
        return actions
    }

    /// Forgets an address that has no connection and no session, unless it has sent too many requests.
    private mutating func forgetAddress(_ address: IPAddress, now: Int64) {
        guard let use = addresses[address], use.connections == 0, use.sessions == 0, use.bucket.isRested(now: now)
        else { return }
        addresses[address] = nil
    }

    // MARK: Signs of life

    /// Notes a sign of life: RTCP, or anything else, from a client's UDP port.
    ///
    /// - Returns: The session that has the port.
    mutating func heard(from endpoint: Endpoint, now: Int64) -> String? {
        guard let id = endpoints[endpoint] else { return nil }
        sessions[id]?.lastHeard = now
        return id
    }

    /// Must be called about once a second: ends sessions and connections that have given no sign of life.
    mutating func expire(now: Int64) -> [SignallingAction] {
        let actions = expireSessions(now: now) + expireConnections(now: now)
        expireAddresses(now: now)
        return actions
    }

    /// A session that plays over TCP lives as long as its connection.
    mutating func expireSessions(now: Int64) -> [SignallingAction] {
        var actions: [SignallingAction] = []
        for (id, session) in sessions where now - session.lastHeard > policy.patience {
            if case .tcp = session.transport, session.isPlaying { continue }
            actions += end(id, .timeout)
        }
        return actions
    }

    func expireConnections(now: Int64) -> [SignallingAction] {
        var actions: [SignallingAction] = []
        for (id, connection) in connections where connection.sessions.isEmpty {
            let patience = connection.hasAsked ? policy.patience : min(policy.firstPatience, policy.patience)
            guard now - connection.lastRequest > patience else { continue }
            // The POST of a tunnel lives as long as its GET.
            if case .input = connection.tunnel { continue }
            actions.append(.close(id, "it sent no request for \(patience / 1_000_000_000) s"))
        }
        return actions
    }

    mutating func expireAddresses(now: Int64) {
        for (address, use) in addresses where use.connections == 0 && use.sessions == 0 && use.bucket.isRested(now: now)
        {
            addresses[address] = nil
        }
    }

    /// The fan-out has given up a reader. Nothing happens where the session has another reader by now.
    mutating func readerFailed(_ sessionID: String, _ number: UInt64, _ departure: Departure) -> [SignallingAction] {
        guard let session = sessions[sessionID], session.reader == number else { return [] }
        var actions = end(sessionID, departure)
        if case .tcp(let connection, _) = session.transport { actions.append(.close(connection, departure.rawValue)) }
        return actions
    }

    mutating func end(_ id: String, _ departure: Departure) -> [SignallingAction] {
        guard let session = sessions.removeValue(forKey: id) else { return [] }
        if let owner = session.owner { connections[owner]?.sessions.remove(id) }
        sessionsOfPath[session.path]?.remove(id)
        if sessionsOfPath[session.path]?.isEmpty == true { sessionsOfPath[session.path] = nil }
        addresses[session.peer]?.sessions -= 1
        setEndpoints(session.transports, nil)
        return [.end(sessionID: id, departure, reader: session.lastReader)]
    }

    // MARK: For the methods

    mutating func update(_ id: ConnectionID, _ body: (inout Connection) -> Void) {
        guard let place = connections.index(forKey: id) else { return }
        body(&connections.values[place])
    }

    mutating func updateSession(_ id: String, _ body: (inout Session) -> Void) {
        guard let place = sessions.index(forKey: id) else { return }
        body(&sessions.values[place])
    }

    /// The number of the next PLAY.
    mutating func nextReader() -> UInt64 {
        lastReader += 1
        return lastReader
    }

    mutating func insert(_ id: String, _ session: Session) {
        sessions[id] = session
        if let owner = session.owner { connections[owner]?.sessions.insert(id) }
        sessionsOfPath[session.path, default: []].insert(id)
        addresses[session.peer]?.sessions += 1
        setEndpoints(session.transports, id)
    }

    private mutating func setEndpoints(_ transports: SessionTransports, _ id: String?) {
        transports.forEach { transport in
            guard case .udp(let address, let ports) = transport else { return }
            endpoints[Endpoint(address: address, port: ports.rtp)] = id
            endpoints[Endpoint(address: address, port: ports.rtcp)] = id
        }
    }

    /// The sessions that have one of these ports of a client, one for each port that is taken.
    func holders(of address: IPAddress, _ ports: TransportSpec.Pair<UInt16>) -> [String] {
        [ports.rtp, ports.rtcp].compactMap { endpoints[Endpoint(address: address, port: $0)] }
    }

    /// Whether this address may send one more request now.
    mutating func admitsRequest(from address: IPAddress, now: Int64) -> Bool {
        guard !address.isLoopback, addresses[address] != nil else { return true }
        return addresses[address]!.bucket.take(now: now)
    }
}

extension Signalling {
    /// Whether nothing is left of any client.
    var isEmpty: Bool {
        connections.isEmpty && sessions.isEmpty && addresses.isEmpty && endpoints.isEmpty && tunnels.isEmpty
            && sessionsOfPath.isEmpty
    }
}
