// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameNetwork
import Glibc
import ServerAccess

/// The TCP port of a server.
enum Listener {
    /// Connections that may wait to be accepted.
    private static let backlog: Int32 = 1024

    /// [control thread] Listens at `endpoint`.
    ///
    /// - Parameters:
    ///   - initialize: Makes a new connection ready. [network loop]
    ///   - ranShort: Called when a connection cannot be accepted because descriptors or memory are lacking; with nil when
    ///     one is closed because its descriptor belongs to the reserve of the process. [network loop]
    /// - Throws: ``FrameHostError`` where the port is taken.
    static func open(
        _ endpoint: ServerEndpoint, group: any EventLoopGroup,
        initialize: @escaping @Sendable (any Channel) throws -> Void,
        ranShort: @escaping @Sendable (IOError?) -> Void
    ) throws -> any Channel {
        let bootstrap = ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: backlog)
            .serverChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(AcceptPause(ranShort: ranShort))
                }
            }
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelOption(.socketOption(.so_sndbuf), value: 512 << 10)
            .childChannelOption(.writeBufferWaterMark, value: .init(low: 32 << 10, high: 128 << 10))
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    guard try admit(channel) else {
                        ranShort(nil)
                        throw NoDescriptor()
                    }
                    try initialize(channel)
                }
            }
        return try bind(bootstrap, endpoint)
    }

    /// Ends a connection that got one of the process's last descriptors.
    private struct NoDescriptor: Error {}

    /// [network loop] NIO accepts without close-on-exec: a program that a plugin starts would keep a client's
    /// connection open after it was closed here. A program that starts before this call still does.
    ///
    /// - Returns: False where the descriptor is one of those that the process keeps for its own work.
    private static func admit(_ channel: any Channel) throws -> Bool {
        try channel.pipeline.syncOperations.withUnsafeTransportIfAvailable { (socket: NIOBSDSocket.Handle) in
            _ = fcntl(socket, F_SETFD, FD_CLOEXEC)
            return Descriptors.mayKeep(socket)
        } ?? true
    }

    private static func bind(_ bootstrap: ServerBootstrap, _ endpoint: ServerEndpoint) throws -> any Channel {
        do {
            let socket = try bound(endpoint)
            let channel = try bootstrap.withBoundSocket(NIOBSDSocket.Handle(socket)).wait()
            // NIO listens to a socket that it is handed with a backlog of its own, 128.
            _ = Glibc.listen(socket, backlog)
            return channel
        } catch {
            let shown = endpoint.address.isEmpty ? "port \(endpoint.port)" : "\(endpoint.address) port \(endpoint.port)"
            let code = (error as? IOError)?.errnoCode
            throw FrameHostError(
                .unavailable, place: code == EADDRNOTAVAIL ? "address" : "port",
                what: code == EADDRINUSE
                    ? "\(shown) is in use by another program" : "the RTSP server cannot listen on \(shown)",
                remedy: remedy(code),
                cause: code == EADDRINUSE ? "" : code.map { String(cString: strerror($0)) } ?? String(describing: error)
            )
        }
    }

    private static func remedy(_ code: Int32?) -> String {
        switch code {
        case EADDRINUSE: "End that program, or set another 'port'."
        case EADDRNOTAVAIL: "Set 'address' to an address of this machine, or leave it out to listen on all of them."
        case EMFILE, ENFILE: "Raise the limit of open files (ulimit -n)."
        case EACCES: "Set a 'port' of 1024 or more, which every user may use."
        default: "Set another 'port' or 'address'."
        }
    }

    /// A bound socket that is closed in every program that this one starts (`SOCK_CLOEXEC`, socket(2)). NIO's own
    /// socket would hold the port until such a program ends.
    private static func bound(_ endpoint: ServerEndpoint) throws -> Int32 {
        guard endpoint.address.isEmpty else {
            return try bound(SocketAddress.makeAddressResolvingHost(endpoint.address, port: endpoint.port))
        }
        // `::` accepts IPv4 too (ipv6(7)). Where the kernel has no IPv6, only IPv4 is used.
        do {
            return try bound(SocketAddress(ipAddress: "::", port: endpoint.port))
        } catch let error as IOError where error.errnoCode == EAFNOSUPPORT || error.errnoCode == EADDRNOTAVAIL {
            return try bound(SocketAddress(ipAddress: "0.0.0.0", port: endpoint.port))
        }
    }

    private static func bound(_ address: SocketAddress) throws -> Int32 {
        let family = address.protocol == .inet6 ? AF_INET6 : AF_INET
        let socket = socket(
            family, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
        guard socket >= 0 else { throw IOError(errnoCode: errno, reason: "socket") }
        var on: Int32 = 1
        setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
        let result = address.withSockAddr { Glibc.bind(socket, $0, socklen_t($1)) }
        guard result == 0 else {
            let reason = errno
            close(socket)
            throw IOError(errnoCode: reason, reason: "bind")
        }
        return socket
    }
}

/// Stops accepting for a while when descriptors or memory are lacking: a connection that waits keeps the socket
/// readable, and the loop would spin. [network loop]
///
/// NIO's `AcceptBackoffHandler` defers the next `read`, but after a failed one NIO 2.101 treats a read as still
/// pending and requests none.
private final class AcceptPause: ChannelInboundHandler {
    typealias InboundIn = any Channel
    private static let pause = TimeAmount.milliseconds(100)
    private let ranShort: @Sendable (IOError?) -> Void

    init(ranShort: @escaping @Sendable (IOError?) -> Void) { self.ranShort = ranShort }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // A client that left before it was accepted (ECONNABORTED) is not a reason to wait.
        guard let error = error as? IOError, [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(error.errnoCode) else { return }
        ranShort(error)
        let channel = context.channel
        channel.setOption(.autoRead, value: false).whenSuccess {
            channel.eventLoop.scheduleTask(in: Self.pause) { channel.setOption(.autoRead, value: true) }
        }
    }
}
