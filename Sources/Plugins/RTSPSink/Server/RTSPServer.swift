import FrameCore
import FrameNetwork
import Glibc
import Synchronization

/// All streams of one port: sockets, sessions and readers.
///
/// Signalling is one value under one lock, held for microseconds and never while something is sent. Readers belong to the loop of the connection that
/// began them.
final class RTSPServer: Sendable {
    /// A stream of this server.
    struct Stream: Sendable {
        var hub: StreamHub
        /// Tells of readers that come and go; never blocks.
        var report: @Sendable (ReaderEvent) -> Void
    }

    /// A reader that has joined.
    private struct Joined {
        var order: PlayOrder
        var fan: LoopFan
        var since: Int64
        var figures: ReaderFigures
        /// False between PAUSE and PLAY.
        var isPlaying: Bool
    }

    private struct State {
        var signalling: Signalling
        var streams: [String: Stream] = [:]
        var connections: [ConnectionID: any Channel] = [:]
        var joined: [String: Joined] = [:]
        /// One for each path and loop.
        var fans: [String: [ObjectIdentifier: LoopFan]] = [:]
        var listeners: [any Channel] = []
        var refusals = Refusals()
        var isClosing = false
    }

    let endpoint: ServerEndpoint
    fileprivate let group: MultiThreadedEventLoopGroup
    private let state: NIOLockedValueBox<State>
    private let nextConnection = Atomic<UInt64>(0)
    /// Set once in ``open(_:policy:)`` before a client can come.
    private let datagrams: NIOLockedValueBox<DatagramSender?>

    private init(endpoint: ServerEndpoint, policy: SessionPolicy) {
        self.endpoint = endpoint
        group = MultiThreadedEventLoopGroup(numberOfThreads: max(min(System.coreCount, 4), 1))
        state = NIOLockedValueBox(State(signalling: Signalling(policy: policy)))
        datagrams = NIOLockedValueBox(nil)
    }

    // MARK: Life

    /// [control thread] Listens.
    ///
    /// - Throws: ``FrameHostError`` where the port is taken or the certificate is of no use.
    static func open(_ endpoint: ServerEndpoint, policy: SessionPolicy, usesUDP: Bool) throws -> RTSPServer {
        let server = RTSPServer(endpoint: endpoint, policy: policy)
        do {
            try server.listen(usesUDP: usesUDP && !endpoint.isSecure)
        } catch {
            server.shutDown()
            throw error
        }
        return server
    }

    private func listen(usesUDP: Bool) throws {
        let descriptors = DescriptorLimit.raise()
        let tls = try endpoint.tlsContext()
        let channel = try Listener.open(endpoint, group: group) { [self] channel in
            if let tls { try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: tls)) }
            try channel.pipeline.syncOperations.addHandler(RTSPConnection(server: self, isSecure: tls != nil))
        } ranShort: { [weak self] error in
            let reason = String(cString: strerror(error.errnoCode))
            self?.state.withLockedValue { $0.refusals.add("none can be accepted: \(reason)") }
        }
        state.withLockedValue { state in
            state.listeners.append(channel)
            let most = state.signalling.policy.mostConnections
            state.signalling.policy.mostConnections = min(most, DescriptorLimit.connections(of: descriptors))
        }
        guard usesUDP else { return }
        let isIPv6 = channel.localAddress?.protocol == .inet6
        let local = IPAddress(channel.localAddress) ?? IPAddress(high: 0, low: 0)
        let ports = try DatagramPorts.open(address: local, isIPv6: isIPv6, group: group) { [weak self] in self?.heard($0, $1) }
        state.withLockedValue { state in
            state.listeners += ports.channels
            state.signalling.policy.serverPorts = ports.ports
        }
        datagrams.withLockedValue { $0 = ports.sender }
    }

    /// [control thread] Closes everything and ends the loops' threads.
    ///
    /// In this order, so that nobody hands a loop work that has ended: no connection comes any more, those that are there close, what is on its way
    /// from loop to loop arrives.
    func shutDown() {
        let listeners = state.withLockedValue { state in
            state.isClosing = true
            defer { state.listeners = [] }
            return state.listeners
        }
        Self.close(listeners)
        drainLoops()
        Self.close(state.withLockedValue { Array($0.connections.values) })
        drainLoops()
        try? group.syncShutdownGracefully()
        datagrams.withLockedValue { $0 = nil }
    }

    private static func close(_ channels: [any Channel]) {
        for channel in channels { channel.close(promise: nil) }
        for channel in channels { try? channel.closeFuture.wait() }
    }

    /// An accepted connection passes from loop to loop three times until it stands or is closed.
    private func drainLoops() {
        for _ in 0..<4 {
            for loop in group.makeIterator() { try? loop.submit {}.wait() }
        }
    }

    // MARK: Streams

    /// [control thread] False where the path is taken.
    func add(_ stream: Stream, _ served: ServedPath) -> Bool {
        state.withLockedValue { state in
            guard state.streams[stream.hub.path] == nil else { return false }
            state.streams[stream.hub.path] = stream
            state.signalling.setPath(stream.hub.path, served)
            return true
        }
    }

    /// What readers have at the end of a stream: over UDP time for the last packets, before they are told; and all of them time to leave by themselves,
    /// before they are sent away.
    private enum Grace {
        static let packetMicroseconds: UInt32 = 100_000
        static let stepMicroseconds: UInt32 = 10_000
        static let steps = 30
    }

    /// [stage thread] The stream has ended: its readers are told, their sessions end, their connections are closed.
    ///
    /// They have a little time. FFmpeg reads RTCP before RTP, and gives up at BYE what still waits in its socket; GStreamer says PAUSE and TEARDOWN after
    /// BYE, and takes a closed connection for a fault.
    ///
    /// - Returns: whether no stream is left.
    func remove(_ path: String) -> Bool {
        let fans = state.withLockedValue { $0.fans[path] ?? [:] }
        if hasReaders(path, over: "udp") { usleep(Grace.packetMicroseconds) }
        for fan in fans.values { try? fan.loop.submit { fan.sayFarewell() }.wait() }
        for _ in 0..<Grace.steps where hasReaders(path) { usleep(Grace.stepMicroseconds) }
        let actions = state.withLockedValue { $0.signalling.removePath(path) }
        perform(actions)
        return state.withLockedValue { state in
            state.streams[path] = nil
            state.fans[path] = nil
            return state.streams.isEmpty
        }
    }

    private func hasReaders(_ path: String, over transport: String? = nil) -> Bool {
        state.withLockedValue { state in
            state.joined.values.contains { $0.order.path == path && (transport == nil || $0.order.transport.name == transport) }
        }
    }

    // MARK: Connections

    func newConnectionID() -> ConnectionID { nextConnection.wrappingAdd(1, ordering: .relaxed).newValue }

    /// [network loop] False where it may not stay.
    func open(_ id: ConnectionID, _ channel: any Channel, peer: IPAddress, local: IPAddress, isSecure: Bool) -> Bool {
        state.withLockedValue { state in
            if state.isClosing { return false }
            if let reason = state.signalling.open(id, peer: peer, local: local, isSecure: isSecure, now: StreamHub.monotonic()) {
                state.refusals.add(reason)
                return false
            }
            state.connections[id] = channel
            return true
        }
    }

    func closed(_ id: ConnectionID) {
        perform(
            state.withLockedValue { state in
                state.connections[id] = nil
                return state.signalling.closed(id, now: StreamHub.monotonic())
            })
    }

    func close(_ id: ConnectionID) { state.withLockedValue { $0.connections[id] }?.close(promise: nil) }

    /// [network loop] What to do about a request.
    func handle(_ request: RTSPRequest, from id: ConnectionID) -> [SignallingAction] {
        state.withLockedValue { $0.signalling.handle(request, from: id, now: StreamHub.monotonic()) }
    }

    /// Actions that concern nobody's request. [any thread]
    private func perform(_ actions: [SignallingAction]) {
        for action in actions {
            switch action {
            case .end(let sessionID, let departure): end(sessionID, departure, from: nil)
            case .close(let id, _): close(id)
            case .respond, .play, .pause: continue
            }
        }
    }

    /// [any thread] About once a second: what gives no sign of life ends, and refusals are told of, by one of the port's streams.
    func expire() {
        let now = StreamHub.monotonic()
        let (actions, news, stream) = state.withLockedValue { state in
            (state.signalling.expire(now: now), state.refusals.takeNews(now: now), state.streams.min { $0.key < $1.key }?.value)
        }
        perform(actions)
        if let news { stream?.report(.refused(news)) }
    }

    /// [any thread] Connections to the port that were closed at once.
    var refusedConnections: Int { state.withLockedValue { $0.refusals.total } }

    /// A datagram came from a client. [network loop]
    private func heard(_ endpoint: Signalling.Endpoint, _ data: ByteBuffer) {
        let found = state.withLockedValue { state -> (String, LoopFan)? in
            guard let id = state.signalling.heard(from: endpoint, now: StreamHub.monotonic()), let joined = state.joined[id] else {
                return nil
            }
            return (id, joined.fan)
        }
        guard let (id, _) = found, let report = RTCP.receptionReport(Array(data.readableBytesView)) else { return }
        state.withLockedValue { state in
            state.joined[id]?.figures.packetsLost = report.packetsLost
            state.joined[id]?.figures.fractionLost = report.fractionLost
        }
    }

    // MARK: Readers

    /// [network loop] A session begins to play on this loop; nil where its stream has just ended.
    func start(_ order: PlayOrder, on loop: any EventLoop) -> (fan: LoopFan, entry: StreamHub.Entry)? {
        let sender = datagrams.withLockedValue { $0 }
        let found = state.withLockedValue { state -> (LoopFan, Stream)? in
            guard let stream = state.streams[order.path] else { return nil }
            let key = ObjectIdentifier(loop)
            let fan =
                state.fans[order.path]?[key]
                ?? LoopFan(hub: stream.hub, loop: loop, sender: sender) { [weak self] in self?.fail($0, .stuck) }
            state.fans[order.path, default: [:]][key] = fan
            return (fan, stream)
        }
        guard let (fan, stream) = found, let entry = stream.hub.join(fan) else { return nil }
        let isNew = state.withLockedValue { state -> Bool in
            if let old = state.joined[order.sessionID] {
                state.joined[order.sessionID] = Joined(order: order, fan: fan, since: old.since, figures: old.figures, isPlaying: true)
                return false
            }
            let figures = ReaderFigures(sessionID: order.sessionID, peer: order.peer, transport: order.transport.name, user: order.user)
            state.joined[order.sessionID] = Joined(order: order, fan: fan, since: StreamHub.monotonic(), figures: figures, isPlaying: true)
            return true
        }
        if isNew { stream.report(.joined(order)) }
        return (fan, entry)
    }

    /// [network loop] The reader of a session over UDP; nil where the server has no such ports.
    func udpReader(_ order: PlayOrder, _ address: IPAddress, _ ports: TransportSpec.Pair<UInt16>) -> UDPReader? {
        guard let sender = datagrams.withLockedValue({ $0 }) else { return nil }
        return UDPReader(
            order: order, media: SocketAddressStorage(address, port: ports.rtp, isIPv6: sender.isIPv6),
            control: SocketAddressStorage(address, port: ports.rtcp, isIPv6: sender.isIPv6))
    }

    /// [network loop] No packet follows once this returns where the reader is on `loop`, else very soon.
    func pause(_ sessionID: String, from loop: any EventLoop) {
        let fan = state.withLockedValue { state -> LoopFan? in
            state.joined[sessionID]?.isPlaying = false
            return state.joined[sessionID]?.fan
        }
        if let fan { Self.remove(sessionID, fan, from: loop) }
    }

    /// A session has ended. [any thread]
    func end(_ sessionID: String, _ departure: Departure, from loop: (any EventLoop)?) {
        let found = state.withLockedValue { state -> (Joined, Stream?)? in
            guard let joined = state.joined.removeValue(forKey: sessionID) else { return nil }
            return (joined, state.streams[joined.order.path])
        }
        guard let (joined, stream) = found else { return }
        let fan = joined.fan
        let leave: @Sendable () -> Void = {
            var figures = fan.figures.first { $0.sessionID == sessionID } ?? joined.figures
            figures.packetsLost = max(figures.packetsLost, joined.figures.packetsLost)
            fan.remove(sessionID)
            stream?.report(.left(figures, departure, nanoseconds: StreamHub.monotonic() - joined.since))
        }
        if let loop, loop === fan.loop { leave() } else { fan.loop.execute(leave) }
    }

    private static func remove(_ sessionID: String, _ fan: LoopFan, from loop: any EventLoop) {
        if loop === fan.loop { fan.remove(sessionID) } else { fan.loop.execute { fan.remove(sessionID) } }
    }

    private func fail(_ sessionID: String, _ departure: Departure) {
        perform(state.withLockedValue { $0.signalling.readerFailed(sessionID, departure) })
    }

    /// [any thread but a loop's] The readers of a stream.
    func readers(of path: String) -> [ReaderFigures] {
        let (fans, known) = state.withLockedValue { state in
            (Array((state.fans[path] ?? [:]).values), state.joined.mapValues(\.figures))
        }
        return fans.flatMap { fan in (try? fan.loop.submit { fan.figures }.wait()) ?? [] }.map { figures in
            var figures = figures
            if let known = known[figures.sessionID], figures.transport == "udp" {
                (figures.packetsLost, figures.fractionLost) = (known.packetsLost, known.fractionLost)
            }
            return figures
        }
    }
}

/// A reader has come or gone, or could not come.
enum ReaderEvent: Sendable {
    case joined(PlayOrder)
    case left(ReaderFigures, Departure, nanoseconds: Int64)
    case refused(Refusals.News)
}

extension RTSPServer {
    func repeatEachSecond(_ body: @escaping @Sendable () -> Void) -> RepeatedTask {
        group.next().scheduleRepeatedTask(initialDelay: .seconds(1), delay: .seconds(1)) { _ in body() }
    }
}
