/// All RTSP sessions of a port: requests in, what to do out.
///
/// A value without sockets, threads or clock. It answers by RFC 2326 and tolerates what real clients do, each tolerance where it is made.
/// Its size is bounded by the number of connections: a connection has one session for each path at most.
struct Signalling: Sendable {
    struct Connection: Sendable {
        var peer: IPAddress
        /// The server's address as this client reached it.
        var local: IPAddress
        var isSecure: Bool
        /// Of this connection's challenge.
        var nonce: String
        var failures = 0
        var lastRequest: Int64
    }

    struct Session: Sendable {
        var path: String
        var transport: SessionTransport
        var peer: IPAddress
        var user: String?
        var isPlaying = false
        /// The connection that set it up, while that is open.
        var owner: ConnectionID?
        var lastHeard: Int64
    }

    struct AddressUse: Sendable {
        var connections = 0
        var bucket: RateBucket
    }

    var policy: SessionPolicy
    private(set) var paths: [String: ServedPath] = [:]
    private(set) var connections: [ConnectionID: Connection] = [:]
    private(set) var sessions: [String: Session] = [:]
    private(set) var addresses: [IPAddress: AddressUse] = [:]
    /// UDP ports of clients, RTP and RTCP, to their sessions.
    private(set) var endpoints: [Endpoint: String] = [:]
    /// Random numbers for session ids and nonces; replaced in tests.
    let random: @Sendable () -> UInt64

    struct Endpoint: Hashable, Sendable {
        var address: IPAddress
        var port: UInt16
    }

    init(policy: SessionPolicy = SessionPolicy(), random: @escaping @Sendable () -> UInt64 = { UInt64.random(in: .min ... .max) }) {
        self.policy = policy
        self.random = random
    }

    // MARK: Paths

    mutating func setPath(_ path: String, _ served: ServedPath) { paths[path] = served }

    /// The path is no more; its sessions end, and connections whose packets flow on them are closed.
    mutating func removePath(_ path: String) -> [SignallingAction] {
        paths[path] = nil
        return sessions.filter { $0.value.path == path }.flatMap { id, session in
            var actions = end(id, .streamEnded)
            if case .tcp(let connection, _) = session.transport { actions.append(.close(connection, "the stream has ended")) }
            return actions
        }
    }

    func readerCount(of path: String) -> Int { sessions.values.count { $0.path == path } }

    // MARK: Connections

    /// A client has connected.
    ///
    /// - Returns: why it is to be closed at once; nil when it may stay.
    mutating func open(_ id: ConnectionID, peer: IPAddress, local: IPAddress, isSecure: Bool, now: Int64) -> String? {
        guard connections.count < policy.mostConnections else { return "there are \(policy.mostConnections) connections already" }
        var use = addresses[peer] ?? AddressUse(bucket: RateBucket(perSecond: policy.requestsPerSecond, now: now))
        guard use.connections < policy.mostConnectionsPerAddress || peer.isLoopback else {
            return "\(peer) has \(policy.mostConnectionsPerAddress) connections already"
        }
        use.connections += 1
        addresses[peer] = use
        let nonce = [random(), random()].map {
            ASCII.hex(UInt32(truncatingIfNeeded: $0 >> 32), digits: 8) + ASCII.hex(UInt32(truncatingIfNeeded: $0), digits: 8)
        }.joined()
        connections[id] = Connection(peer: peer, local: local, isSecure: isSecure, nonce: nonce, lastRequest: now)
        return nil
    }

    /// A client's connection is closed: sessions whose packets flowed on it end at once, those over UDP live on by their own signs of life.
    mutating func closed(_ id: ConnectionID, now: Int64) -> [SignallingAction] {
        guard let connection = connections.removeValue(forKey: id) else { return [] }
        if var use = addresses[connection.peer] {
            use.connections -= 1
            addresses[connection.peer] = use.connections > 0 || !use.bucket.isRested(now: now) ? use : nil
        }
        var actions: [SignallingAction] = []
        for (sessionID, session) in sessions where session.owner == id {
            if case .tcp = session.transport { actions += end(sessionID, .closed) } else { sessions[sessionID]?.owner = nil }
        }
        return actions
    }

    // MARK: Signs of life

    /// RTCP, or anything else, came from a client's UDP port.
    ///
    /// - Returns: whose it is.
    mutating func heard(from endpoint: Endpoint, now: Int64) -> String? {
        guard let id = endpoints[endpoint] else { return nil }
        sessions[id]?.lastHeard = now
        return id
    }

    /// To be called about once a second: what has given no sign of life ends. A session that plays over TCP lives as long as its connection.
    mutating func expire(now: Int64) -> [SignallingAction] {
        var actions: [SignallingAction] = []
        for (id, session) in sessions where now - session.lastHeard > policy.patience {
            if case .tcp = session.transport, session.isPlaying { continue }
            actions += end(id, .timeout)
        }
        let busy = Set(sessions.values.compactMap(\.owner))
        for (id, connection) in connections where now - connection.lastRequest > policy.patience && !busy.contains(id) {
            actions.append(.close(id, "no request came for \(policy.patience / 1_000_000_000) s"))
        }
        for (address, use) in addresses where use.connections == 0 && use.bucket.isRested(now: now) { addresses[address] = nil }
        return actions
    }

    /// The fan-out has given a reader up.
    mutating func readerFailed(_ sessionID: String, _ departure: Departure) -> [SignallingAction] {
        guard let session = sessions[sessionID] else { return [] }
        var actions = end(sessionID, departure)
        if case .tcp(let connection, _) = session.transport { actions.append(.close(connection, departure.rawValue)) }
        return actions
    }

    mutating func end(_ id: String, _ departure: Departure) -> [SignallingAction] {
        guard let session = sessions.removeValue(forKey: id) else { return [] }
        if case .udp(let address, let ports) = session.transport {
            endpoints[Endpoint(address: address, port: ports.rtp)] = nil
            endpoints[Endpoint(address: address, port: ports.rtcp)] = nil
        }
        return [.end(sessionID: id, departure)]
    }

    // MARK: For the methods

    mutating func update(_ id: ConnectionID, _ body: (inout Connection) -> Void) {
        guard var connection = connections[id] else { return }
        body(&connection)
        connections[id] = connection
    }

    mutating func updateSession(_ id: String, _ body: (inout Session) -> Void) {
        guard var session = sessions[id] else { return }
        body(&session)
        sessions[id] = session
    }

    mutating func insert(_ id: String, _ session: Session) {
        sessions[id] = session
        if case .udp(let address, let ports) = session.transport {
            endpoints[Endpoint(address: address, port: ports.rtp)] = id
            endpoints[Endpoint(address: address, port: ports.rtcp)] = id
        }
    }

    /// The sessions that have one of these ports of a client: two where they overlap with both.
    func holders(of address: IPAddress, _ ports: TransportSpec.Pair<UInt16>) -> [String] {
        [ports.rtp, ports.rtcp].compactMap { endpoints[Endpoint(address: address, port: $0)] }
    }

    /// Whether this address may ask once more now.
    mutating func admitsRequest(from address: IPAddress, now: Int64) -> Bool {
        guard !address.isLoopback, addresses[address] != nil else { return true }
        return addresses[address]!.bucket.take(now: now)
    }
}

extension Signalling {
    /// True when nothing is left of any client.
    var isEmpty: Bool { connections.isEmpty && sessions.isEmpty && addresses.isEmpty && endpoints.isEmpty }
}
