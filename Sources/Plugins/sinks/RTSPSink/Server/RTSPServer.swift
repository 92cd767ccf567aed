// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameNetwork
import FrameSupport
import Glibc
import ServerAccess
import Synchronization

/// All streams of one port: sockets, sessions and readers.
///
/// Sessions and readers are one value (``Readership``) under one lock. Loops need the lock in order to answer, so
/// media waits for it. Under the lock no client's text is parsed or hashed, nothing is sent and nothing is waited
/// for, and a request only looks at the sessions of its own connection. ``longestHold`` is measured. Readers belong
/// to the loop of the connection that started them.
final class RTSPServer: Sendable {
    /// A stream of this server.
    struct Stream: Sendable {
        var hub: StreamHub
        /// Reports readers that come and go; never blocks.
        var report: @Sendable (ReaderEvent) -> Void
    }

    private struct State {
        var readership: Readership<LoopFan>
        var streams: [String: Stream] = [:]
        var connections: [ConnectionID: any Channel] = [:]
        /// One fan for each path and loop.
        var fans: [String: [ObjectIdentifier: LoopFan]] = [:]
        var listeners: [any Channel] = []
        var refusals = Refusals()
        var isClosing = false
        var longestHold: Int64 = 0
    }

    let endpoint: ServerEndpoint
    private let group: MultiThreadedEventLoopGroup
    private let state: NIOLockedValueBox<State>
    private let nextConnection = Atomic<UInt64>(0)
    /// Set once, before the first stream is added that may go over UDP.
    private let datagrams: NIOLockedValueBox<DatagramSender?>

    private static var loopCount: Int { max(min(System.coreCount, 4), 1) }

    private init(endpoint: ServerEndpoint, policy: SessionPolicy) {
        self.endpoint = endpoint
        group = MultiThreadedEventLoopGroup(numberOfThreads: Self.loopCount)
        state = NIOLockedValueBox(State(readership: Readership(Signalling(policy: policy))))
        datagrams = NIOLockedValueBox(nil)
    }

    /// Takes the lock. All changes go through here: they are short, and timed.
    private func locked<Value>(_ body: (inout State) throws -> Value) rethrows -> Value {
        try state.withLockedValue { state in
            let begin = MonotonicTime.now()
            defer { state.longestHold = max(state.longestHold, MonotonicTime.now() - begin) }
            return try body(&state)
        }
    }

    /// [any thread] The longest time that the lock was held so far, nanoseconds. It includes time in which the thread
    /// had no processor.
    var longestHold: Int64 { state.withLockedValue { $0.longestHold } }

    // MARK: Life

    /// [control thread] Listens.
    ///
    /// - Throws: ``FrameHostError`` where the port is taken or the certificate cannot be used.
    static func open(_ endpoint: ServerEndpoint, policy: SessionPolicy) throws -> RTSPServer {
        Descriptors.raise()
        try LoopRoom.check(loops: loopCount)
        let server = RTSPServer(endpoint: endpoint, policy: policy)
        do {
            try server.listen()
        } catch {
            server.shutDown()
            throw error
        }
        return server
    }

    private func listen() throws {
        let tls = try endpoint.tlsContext()
        let channel = try Listener.open(endpoint, group: group) { [self] channel in
            if let tls { try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: tls)) }
            try channel.pipeline.syncOperations.addHandler(RTSPConnection(server: self, isSecure: tls != nil))
        } ranShort: { [weak self] error in
            let raise = "(raise the limit of open files, ulimit -n)"
            let reason =
                switch error?.errnoCode {
                case nil: "the last descriptors of the process are kept for the chain's own work \(raise)"
                case EMFILE?: "the system gave no socket for it: \(String(cString: strerror(EMFILE))) \(raise)"
                case let code?: "the system gave no socket for it: \(String(cString: strerror(code)))"
                }
            self?.locked { $0.refusals.add(reason) }
        }
        locked { $0.listeners.append(channel) }
    }

    /// [control thread] The first stream that may go over UDP opens the ports, which then stay open.
    private func openDatagramPorts() throws {
        // With TLS nothing may be sent unencrypted.
        guard !endpoint.isSecure, serverPorts == nil else { return }
        let address = locked { $0.listeners.first?.localAddress }
        let ports = try DatagramPorts.open(
            address: IPAddress(address) ?? IPAddress(high: 0, low: 0), isIPv6: address?.protocol == .inet6, group: group
        ) { [weak self] in
            self?.heard($0, $1)
        }
        datagrams.withLockedValue { $0 = ports.sender }
        locked { state in
            state.listeners += ports.channels
            state.readership.signalling.policy.serverPorts = ports.ports
        }
    }

    /// [any thread] The UDP ports; nil while no stream may use them.
    var serverPorts: TransportSpec.Pair<UInt16>? { locked { $0.readership.signalling.policy.serverPorts } }

    /// [control thread] Closes everything and ends the loops' threads.
    ///
    /// In this order, so that no work is handed to a loop that has ended: no new connections, then the existing ones
    /// close, then work on its way between loops arrives.
    func shutDown() {
        let listeners = locked { state in
            state.isClosing = true
            defer { state.listeners = [] }
            return state.listeners
        }
        Self.close(listeners)
        drainLoops()
        Self.close(locked { Array($0.connections.values) })
        drainLoops()
        // NIO ends its loops by Dispatch, which waits for ever where the system gives it no thread. Without one the loops
        // stay, idle, until the process ends.
        if (try? ThreadRoom.check(2, for: "the end of the RTSP server")) != nil {
            try? group.syncShutdownGracefully()
        } else {
            Self.idleGroups.withLockedValue { $0.append(group) }
        }
        datagrams.withLockedValue { $0 = nil }
    }

    private static let idleGroups = NIOLockedValueBox<[MultiThreadedEventLoopGroup]>([])

    private static func close(_ channels: [any Channel]) {
        for channel in channels { channel.close(promise: nil) }
        for channel in channels { try? channel.closeFuture.wait() }
    }

    /// An accepted connection passes from loop to loop three times until it is open or closed.
    private func drainLoops() {
        for _ in 0..<4 {
            for loop in group.makeIterator() { try? loop.submit {}.wait() }
        }
    }

    // MARK: Streams

    /// [control thread] One call at a time.
    ///
    /// - Returns: False where the path is taken.
    /// - Throws: ``FrameHostError`` where the UDP ports that the stream may use cannot be opened.
    func add(_ stream: Stream, _ served: ServedPath) throws -> Bool {
        guard locked({ $0.streams[stream.hub.path] == nil }) else { return false }
        if served.carriesUDP { try openDatagramPorts() }
        return locked { state in
            guard state.streams[stream.hub.path] == nil else { return false }
            state.streams[stream.hub.path] = stream
            state.readership.signalling.setPath(stream.hub.path, served)
            return true
        }
    }

    /// How long readers have at the end of a stream: UDP readers for the last packets, before they get BYE; and all
    /// readers to leave on their own, before their connections are closed.
    private enum Grace {
        static let packetMilliseconds = 100
        static let leaveMilliseconds = 800
        static let stepMicroseconds: UInt32 = 5000
        /// How many sessions end while the lock is held once.
        static let sessionsAtOnce = 64
    }

    /// [stage thread] The stream has ended: tells its readers, ends their sessions and closes their connections. It
    /// holds no lock while it waits, so that streams of one port can end at the same time.
    ///
    /// Readers get a little time. FFmpeg reads RTCP before RTP, and at BYE drops what still waits in its socket.
    /// GStreamer sends PAUSE and TEARDOWN after BYE, and reports a closed connection as an error. A run that must stop
    /// at once gives no time.
    ///
    /// - Parameter isHurried: True once the run must stop at once; called again and again.
    func sendAway(_ path: String, isHurried: () -> Bool) {
        wait(Grace.packetMilliseconds, isHurried) { hasReaders(path, overUDP: true) }
        let fans = locked { Array(($0.fans[path] ?? [:]).values) }
        for fan in fans { fan.loop.execute { fan.sendBye() } }
        wait(Grace.leaveMilliseconds, isHurried) { hasReaders(path) }
        while true {
            let outcome = locked { state in
                state.readership.change { $0.removePath(path, atMost: Grace.sessionsAtOnce) }
            }
            if outcome.actions.isEmpty { break }
            perform(outcome)
        }
        // Events about readers are posted before the stage ends.
        for fan in fans { try? fan.loop.submit {}.wait() }
    }

    /// [stage thread] Removes a stream whose readers have gone.
    ///
    /// - Returns: whether no stream is left.
    func remove(_ path: String) -> Bool {
        let (isLast, stream, news, refusals) = locked { state in
            state.fans[path] = nil
            let stream = state.streams.removeValue(forKey: path)
            let now = MonotonicTime.now()
            let news = state.readership.signalling.failedLogins.takeNews(now: now, endOf: path)
            let isLast = state.streams.isEmpty
            return (isLast, stream, news, isLast ? state.refusals.takeNews(now: now, isLast: true) : nil)
        }
        if let refusals { stream?.report(.refused(refusals)) }
        for one in news { stream?.report(.failedLogins(one)) }
        return isLast
    }

    private func wait(_ milliseconds: Int, _ isHurried: () -> Bool, while condition: () -> Bool) {
        MonotonicTime.wait(milliseconds: milliseconds, lookingEvery: Grace.stepMicroseconds) {
            !condition() || isHurried()
        }
    }

    private func hasReaders(_ path: String, overUDP: Bool = false) -> Bool {
        let count = locked { $0.readership.counts[path] }
        return (overUDP ? count?.udp : count?.all) ?? 0 > 0
    }

    // MARK: Connections

    func newConnectionID() -> ConnectionID { nextConnection.wrappingAdd(1, ordering: .relaxed).newValue }

    /// [network loop] Registers a connection; false where it must be closed.
    func open(_ id: ConnectionID, _ channel: any Channel, peer: IPAddress, local: IPAddress, isSecure: Bool) -> Bool {
        locked { state in
            if state.isClosing { return false }
            let now = MonotonicTime.now()
            if let reason = state.readership.signalling.open(id, peer: peer, local: local, isSecure: isSecure, now: now)
            {
                state.refusals.add(reason)
                return false
            }
            state.connections[id] = channel
            return true
        }
    }

    func closed(_ id: ConnectionID) {
        perform(
            locked { state in
                state.connections[id] = nil
                return state.readership.change { $0.closed(id, now: MonotonicTime.now()) }
            })
    }

    func close(_ id: ConnectionID) { locked { $0.connections[id] }?.close(promise: nil) }

    /// [network loop] Hands something to the other connection of a tunnel; false where that is closed.
    func send(_ event: RTSPConnection.TunnelEvent, to id: ConnectionID) -> Bool {
        guard let channel = locked({ $0.connections[id] }) else { return false }
        channel.eventLoop.execute { channel.pipeline.fireUserInboundEventTriggered(event) }
        return true
    }

    /// [network loop] What to do about a request. Its text is parsed, and its credentials are checked, before the lock
    /// is taken.
    func handle(_ request: RTSPRequest, from id: ConnectionID, on loop: any EventLoop) -> [SignallingAction] {
        var values = RequestValues(request)
        if let path = values.path, let demand = locked({ $0.readership.signalling.demand(of: path, on: id) }) {
            values.prove(demand)
        }
        let outcome = locked { state in
            state.readership.change { $0.handle(values, from: id, now: MonotonicTime.now()) }
        }
        dismiss(outcome.stoppedReaders, from: loop)
        return outcome.actions
    }

    /// Performs actions that were not caused by a request. [any thread]
    private func perform(_ outcome: Readership<LoopFan>.Outcome) {
        dismiss(outcome.stoppedReaders, from: nil)
        for case .close(let id, _) in outcome.actions { close(id) }
    }

    /// [any thread] Called about once a second: ends sessions and connections without a sign of life, and reports
    /// refusals and failed logins. The lock is free between these parts.
    func expire() {
        let now = MonotonicTime.now()
        perform(locked { state in state.readership.change { $0.expireSessions(now: now) } })
        perform(locked { state in state.readership.change { $0.expireConnections(now: now) } })
        let (news, logins, streams) = locked { state in
            state.readership.signalling.expireAddresses(now: now)
            return (
                state.refusals.takeNews(now: now), state.readership.signalling.failedLogins.takeNews(now: now),
                state.streams
            )
        }
        if let news { streams.min { $0.key < $1.key }?.value.report(.refused(news)) }
        for one in logins { streams[one.path]?.report(.failedLogins(one)) }
    }

    /// [any thread] How many connections to the port were closed at once.
    var refusedConnections: Int { locked { $0.refusals.total } }

    /// [any thread] Wrong passwords for a path so far.
    func failedLogins(of path: String) -> Int { locked { $0.readership.signalling.failedLogins.totals[path] ?? 0 } }

    /// Notes that a datagram came from a client. [network loop]
    private func heard(_ endpoint: Signalling.Endpoint, _ data: ByteBuffer) {
        let whose = locked { state -> (String, Medium)? in
            guard let id = state.readership.signalling.heard(from: endpoint, now: MonotonicTime.now()),
                let medium = state.readership.signalling.sessions[id]?.transports.medium(onPort: endpoint.port)
            else { return nil }
            return (id, medium)
        }
        guard let (id, medium) = whose, let report = RTCP.receptionReport(Array(data.readableBytesView)) else { return }
        locked { state in
            state.readership.note(id) { figures in
                figures.note(report, of: medium)
            }
        }
    }

    func repeatEachSecond(_ body: @escaping @Sendable () -> Void) -> RepeatedTask {
        group.next().scheduleRepeatedTask(initialDelay: .seconds(1), delay: .seconds(1)) { _ in body() }
    }

    // MARK: Readers

    /// The outcome for a session that was told to play.
    enum Start {
        case plays(LoopFan, StreamHub.Entry)
        /// The stream or session has ended, or another connection was quicker; the status to answer instead.
        case refused(RTSPStatus)
    }

    /// [network loop] Starts to play a session on this loop. From now on it can only be removed on this loop, after
    /// this call.
    func start(_ order: PlayOrder, on loop: any EventLoop) -> Start {
        let hasPictures = order.transports[.pictures] != nil
        guard let fan = fan(of: order.path, on: loop), var entry = fan.hub.join(fan, hasPictures: hasPictures) else {
            return .refused(.notFound)
        }
        let beginning = locked { $0.readership.begin(order, on: fan, now: MonotonicTime.now()) }
        switch beginning {
        case .joined:
            if hasPictures { fan.hub.countJoin(atOnce: entry.backlog != nil) }
            fan.report(.joined(order))
        // It has already had a part of the kept group. Starting again at the keyframe would make its times step back.
        case .resumed where entry.backlog != nil: (entry.kept, entry.backlog) = ([], nil)
        case .resumed: break
        case .ended, .overtaken:
            fan.leaveWhereNobodyIs()
            return .refused(beginning == .ended ? .sessionNotFound : .notValidInThisState)
        }
        return .plays(fan, entry)
    }

    private func fan(of path: String, on loop: any EventLoop) -> LoopFan? {
        locked { state in
            guard let stream = state.streams[path] else { return nil }
            let key = ObjectIdentifier(loop)
            if let fan = state.fans[path]?[key] { return fan }
            // Here, since the stream may be the first one over UDP: the ports are opened before it is added.
            let sender = datagrams.withLockedValue { $0 }
            let fan = LoopFan(hub: stream.hub, loop: loop, sender: sender, report: stream.report) { [weak self] in
                self?.fail($0, .stuck)
            }
            state.fans[path, default: [:]][key] = fan
            return fan
        }
    }

    /// [network loop] The reader of a session over UDP; nil where the server has no such ports.
    func udpReader(_ order: PlayOrder) -> UDPReader? {
        guard let sender = datagrams.withLockedValue({ $0 }) else { return nil }
        let addresses = PerMedium(pictures: Medium.pictures, sound: .sound).map { medium -> UDPReader.Addresses? in
            guard case .udp(let address, let ports) = order.transports[medium] else { return nil }
            return UDPReader.Addresses(
                media: SocketAddressStorage(address, port: ports.rtp, isIPv6: sender.isIPv6),
                control: SocketAddressStorage(address, port: ports.rtcp, isIPv6: sender.isIPv6))
        }
        return UDPReader(order: order, addresses: addresses)
    }

    /// Stops the packets of readers that have lost their sessions: at once for those on `loop`, for others on their
    /// own loops, after they have started there. [any thread]
    private func dismiss(_ stoppedReaders: [Readership<LoopFan>.StoppedReader], from loop: (any EventLoop)?) {
        for stopped in stoppedReaders {
            let fan = stopped.reader.fan
            let leave: @Sendable () -> Void = { [weak self] in self?.leave(stopped) }
            if let loop, loop === fan.loop { leave() } else { fan.loop.execute(leave) }
        }
    }

    /// [network loop] Called on the reader's own loop.
    private func leave(_ stopped: Readership<LoopFan>.StoppedReader) {
        let (reader, fan) = (stopped.reader, stopped.reader.fan)
        let seen = fan.remove(reader.order.number)
        var figures = seen ?? reader.figures
        figures.raiseLosses(to: reader.figures)
        // It may also have lost units before a pause.
        if seen != nil { figures.addDrops(of: reader.figures) }
        guard let departure = stopped.departure else {
            return locked { state in
                state.readership.note(reader.order.sessionID) {
                    $0.droppedUnits = figures.droppedUnits
                    $0.refusedPackets = figures.refusedPackets
                    $0.sound?.droppedUnits = figures.sound?.droppedUnits ?? 0
                }
            }
        }
        fan.report(.left(figures, departure, nanoseconds: MonotonicTime.now() - reader.since))
    }

    private func fail(_ order: PlayOrder, _ departure: Departure) {
        perform(
            locked { state in state.readership.change { $0.readerFailed(order.sessionID, order.number, departure) } })
    }

    /// [any thread but a loop's] The readers of a stream.
    func readers(of path: String) -> [ReaderFigures] {
        // A reference to the present readers, not a copy: a thousand readers take no time under the lock.
        let (fans, known) = locked { state in (Array((state.fans[path] ?? [:]).values), state.readership.readers) }
        return fans.flatMap { fan in (try? fan.loop.submit { fan.figures }.wait()) ?? [] }.map { figures in
            var figures = figures
            if let known = known[figures.sessionID]?.figures, figures.transport == "udp" {
                figures.takeLosses(of: known)
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
    case failedLogins(FailedLogins.News)
}
