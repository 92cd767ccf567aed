// SPDX-License-Identifier: Apache-2.0

import ServerAccess

/// What signalling must know about a path: its stream, and who may play it and how.
struct ServedPath: Sendable {
    /// The stream's description. Its address is filled in for each client.
    var description: SessionDescription
    var ssrc: UInt32
    /// Nil where there is no sound.
    var soundSSRC: UInt32? = nil
    /// Nil where everybody may play.
    var challenge: Challenge?
    /// Whose addresses may play; all where it is empty.
    var allowed: [AddressRange] = []
    var carriesUDP = true
    var carriesTCP = true
    var mostReaders = 1000

    func ssrc(of medium: Medium) -> UInt32? {
        medium == .sound ? soundSSRC : description.hasPictures ? ssrc : nil
    }

    /// The medium of a stream of one; nil where there are both.
    var onlyMedium: Medium? { !description.hasPictures ? .sound : soundSSRC == nil ? .pictures : nil }

    func allows(_ address: IPAddress) -> Bool { allowed.isEmpty || allowed.contains { $0.contains(address) } }
}

/// A path of ``Signalling`` with what belongs to it.
struct PathEntry: Sendable {
    var served: ServedPath
    /// Rises whenever the path is set. Proofs of one edition do not hold for the next.
    var edition: UInt64
}

/// What holds for all paths of a port. Times are nanoseconds.
struct SessionPolicy: Sendable {
    /// The timeout in `Session`. It is shorter than the one that is enforced, since Media Foundation pings exactly at
    /// the timeout.
    var timeoutSeconds = 60
    /// How long a session lives without a sign of life, and a connection without a request or session.
    var patience: Int64 { Int64(timeoutSeconds) * 1_250_000_000 }
    /// How long a connection lives that never sent a request, nanoseconds. Clients send one at once.
    var firstPatience: Int64 = 10_000_000_000
    var mostConnections = 12_000
    /// The most connections of one address. The machine's own is exempt, since a proxy may use it.
    var mostConnectionsPerAddress = 256
    /// The most requests a second of one address, and as many at once. The machine's own is exempt.
    var requestsPerSecond = 100
    /// A connection is closed after this many wrong answers to a challenge.
    var mostFailures = 6
    /// UDP ports of the server; nil where there are none.
    var serverPorts: TransportSpec.Pair<UInt16>?
}

/// A connection's number, never used twice.
typealias ConnectionID = UInt64

/// How a session's packets travel.
enum SessionTransport: Sendable, Equatable {
    case tcp(ConnectionID, channels: TransportSpec.Pair<UInt8>)
    case udp(IPAddress, ports: TransportSpec.Pair<UInt16>)

    var name: String { if case .tcp = self { "tcp" } else { "udp" } }

    /// Whether both travel over the same connection, or both as datagrams.
    func isLike(_ other: SessionTransport) -> Bool {
        switch (self, other) {
        case (.tcp(let one, _), .tcp(let another, _)): one == another
        case (.udp, .udp): true
        default: false
        }
    }
}

/// How the packets of a session's media travel. Where both are set up, they travel in the same way.
struct SessionTransports: Sendable, Equatable {
    /// The medium that was set up first.
    private let firstMedium: Medium
    /// The transport of the medium that was set up first.
    let first: SessionTransport
    /// The transport of the other medium; nil where that is not set up.
    private let second: SessionTransport?

    init(_ medium: Medium, _ transport: SessionTransport) {
        (firstMedium, first, second) = (medium, transport, nil)
    }

    private init(_ firstMedium: Medium, _ first: SessionTransport, and second: SessionTransport) {
        (self.firstMedium, self.first, self.second) = (firstMedium, first, second)
    }

    subscript(medium: Medium) -> SessionTransport? { medium == firstMedium ? first : second }

    /// Those that are set up, pictures first.
    var media: [Medium] { Medium.allCases.filter { self[$0] != nil } }

    /// With this medium set up, or set up anew. The other medium is dropped where it travels in another way.
    func with(_ medium: Medium, _ transport: SessionTransport) -> SessionTransports {
        guard let kept = self[medium.other], kept.isLike(transport) else { return SessionTransports(medium, transport) }
        return SessionTransports(medium.other, kept, and: transport)
    }

    func forEach(_ body: (SessionTransport) -> Void) {
        body(first)
        if let second { body(second) }
    }

    /// The medium that has this port of the client, for RTP or for RTCP.
    func medium(onPort port: UInt16) -> Medium? {
        Medium.allCases.first { medium in
            guard case .udp(_, let ports) = self[medium] else { return false }
            return ports.rtp == port || ports.rtcp == port
        }
    }

    /// The channels of each medium; nil where packets are datagrams, or for a medium that is not set up.
    var channels: PerMedium<TransportSpec.Pair<UInt8>?> {
        PerMedium(pictures: Medium.pictures, sound: .sound).map { medium in
            if case .tcp(_, let channels) = self[medium] { channels } else { nil }
        }
    }
}

/// A session that plays, with what the fan-out must know about it.
struct PlayOrder: Sendable, Equatable {
    var sessionID: String
    /// The number of this PLAY, never used twice: a session that pauses and plays again has another reader.
    var number: UInt64
    var path: String
    var transports: SessionTransports
    var peer: IPAddress
    var user: String?
    /// The stream's URL as the client has written it.
    var url: RTSPURL

    var transport: SessionTransport { transports.first }

    /// A track's URL, for `RTP-Info`.
    func controlURL(of medium: Medium) -> String {
        var control = url
        control.track = medium.rawValue
        return control.text
    }
}

/// Why a reader has left; also the text of the event.
enum Departure: String, Sendable {
    case teardown = "it sent TEARDOWN"
    case closed = "its connection was closed"
    case timeout = "it sent nothing within the timeout"
    case replaced = "it set up another session instead"
    case stuck = "it took no data for too long"
    case streamEnded = "the stream has ended"
}

/// What the server is to do.
enum SignallingAction: Sendable, Equatable {
    /// Send this to the client whose request it was.
    case respond(RTSPResponse)
    /// Complete `RTP-Info`, send this, then let packets flow. None may come before the response.
    case play(PlayOrder, RTSPResponse)
    /// Send this. The packets have stopped.
    case pause(sessionID: String, RTSPResponse)
    /// - Parameter reader: The number of its last PLAY; 0 where there was none. A session that is set up anew under the
    ///   same id has readers of higher numbers.
    case end(sessionID: String, Departure, reader: UInt64 = 0)
    /// Send this. Further bytes on this connection mean nothing.
    case openTunnel(RTSPResponse)
    /// Further bytes on this connection are the Base64 of what the client of the other connection sends. There is no
    /// answer.
    case joinTunnel(ConnectionID)
    /// Close this connection after everything was sent.
    case close(ConnectionID, String)
}
