// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameHTTP
import FrameSupport
import Glibc
import ServerAccess

/// Serves a ``DeviceEndpoint`` over HTTP/1.1, on one network loop.
final class WebServer: Sendable {
    enum Limits {
        static let connections = ConnectionBook<ObjectIdentifier>.Limits(
            all: 128, strangersPerAddress: 16, patience: 10_000_000_000)
        /// Of a request's target and fields together.
        static let head = 8 << 10
        /// For a request to arrive, for an answer to be read, and for a connection without a request.
        static let request = TimeAmount.seconds(10)
        static let answer = TimeAmount.seconds(30)
        static let idle = TimeAmount.seconds(30)
    }

    private struct Connections {
        var open: [ObjectIdentifier: any Channel] = [:]
        var book = ConnectionBook<ObjectIdentifier>(Limits.connections)
        var isStopping = false
    }

    private let listener: any Channel
    private let connections = Locked(Connections())
    private let expiry: RepeatedTask
    /// The port in use.
    let port: Int

    /// [control thread] Accepts connections from here on.
    ///
    /// - Parameter makeEndpoint: Given the port, which the kernel may have chosen.
    /// - Throws: ``FrameHostError`` where the port is taken, or where descriptors or threads are lacking.
    init(_ address: ListenAddress, makeEndpoint: (_ port: Int) throws -> DeviceEndpoint) throws {
        let loop = try NetworkLoop.ready()
        let socket = try ListeningSocket.bound(address, for: "ONVIF")
        let port = ListeningSocket.port(of: socket) ?? address.port
        self.port = port
        let connections = connections
        do {
            let endpoint = try makeEndpoint(port)
            listener = try ServerBootstrap(group: loop)
                .serverChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.addHandler(AcceptPause())
                    }
                }
                .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
                .childChannelInitializer { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try Self.open(channel, endpoint, connections)
                    }
                }
                .withBoundSocket(NIOBSDSocket.Handle(socket)).wait()
        } catch let error as FrameHostError {
            Glibc.close(socket)
            throw error
        } catch {
            throw ListeningSocket.cannotListen(address, (error as? IOError)?.errnoCode ?? 0, "ONVIF")
        }
        expiry = loop.scheduleRepeatedTask(initialDelay: .seconds(1), delay: .seconds(1)) { _ in
            let late = connections.withLock { connections in
                connections.book.expire(now: MonotonicTime.now()).compactMap {
                    connections.open.removeValue(forKey: $0)
                }
            }
            late.forEach { $0.close(promise: nil) }
        }
    }

    /// Ends a connection for which there is no room.
    private struct NoRoom: Error {}

    /// [network loop]
    private static func open(
        _ channel: any Channel, _ endpoint: DeviceEndpoint, _ connections: Locked<Connections>
    ) throws {
        let key = ObjectIdentifier(channel)
        let client = Client(
            network: PeerAddress(of: channel),
            address: channel.remoteAddress?.ipAddress.flatMap { IPAddress($0) } ?? IPAddress(high: 0, low: 0))
        let isShort =
            try channel.pipeline.syncOperations.withUnsafeTransportIfAvailable { (socket: NIOBSDSocket.Handle) in
                // NIO accepts without close-on-exec.
                _ = fcntl(socket, F_SETFD, FD_CLOEXEC)
                return !Descriptors.mayKeep(socket, isControl: true)
            } ?? false
        let (isTaken, pushedOut) = connections.withLock { connections -> (Bool, (any Channel)?) in
            guard !connections.isStopping,
                case .taken(let other) = connections.book.open(
                    key, client.network, isShort: isShort, now: MonotonicTime.now())
            else { return (false, nil) }
            connections.open[key] = channel
            return (true, other.flatMap { connections.open.removeValue(forKey: $0) })
        }
        pushedOut?.close(promise: nil)
        guard isTaken else { throw NoRoom() }
        channel.closeFuture.whenComplete { _ in
            connections.withLock { connections in
                guard connections.open[key] === channel else { return }
                connections.open[key] = nil
                connections.book.close(key)
            }
        }
        var limits = NIOHTTPDecoderLimitConfiguration()
        limits.maxHeaderFieldSize = Limits.head / 2
        limits.maxHeaderListSize = Limits.head
        limits.maxHeaderFieldCount = 64
        try channel.pipeline.syncOperations.configureHTTPServerPipeline(
            withPipeliningAssistance: true, withErrorHandling: true, withEncoderConfiguration: .init(),
            withDecoderLimitConfiguration: limits)
        try channel.pipeline.syncOperations.addHandler(
            WebHandler(endpoint, client: client) { news in
                connections.withLock { connections in
                    switch news {
                    case .begins: connections.book.beginAnswer(key)
                    case .ends(let isKnown):
                        if isKnown { connections.book.welcome(key) }
                        connections.book.endAnswer(key, now: MonotonicTime.now())
                    }
                }
            })
    }

    /// [thread of the end] Closes everything.
    ///
    /// - Parameter end: When it has ended, by ``MonotonicTime``.
    func stop(by end: Int64) {
        connections.withLock { $0.isStopping = true }
        expiry.cancel()
        listener.close(promise: nil)
        // What waited was answered just now; its clients get a moment to read that.
        MonotonicTime.wait(milliseconds: 50, until: end) { connections.withLock { $0.open.isEmpty } }
        for channel in connections.withLock({ Array($0.open.values) }) { channel.close(promise: nil) }
        MonotonicTime.wait(milliseconds: 200, until: end) { !listener.isActive }
    }
}
