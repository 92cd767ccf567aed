// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameHTTP
import Glibc

extension HTTPServer {
    /// A bound socket that no program which this one starts keeps open (`SOCK_CLOEXEC`, socket(2)).
    ///
    /// - Throws: ``FrameHostError`` where the port is taken.
    static func bound(_ address: ListenAddress) throws -> Int32 {
        let socket = socket(
            address.isIPv6 ? AF_INET6 : AF_INET,
            Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
        guard socket >= 0 else { throw cannotListen(address, errno) }
        var on: Int32 = 1
        setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
        do {
            let place = try SocketAddress(ipAddress: address.address, port: address.port)
            guard place.withSockAddr({ Glibc.bind(socket, $0, socklen_t($1)) }) == 0 else {
                throw cannotListen(address, errno)
            }
        } catch {
            close(socket)
            throw error as? FrameHostError ?? cannotListen(address, EINVAL)
        }
        return socket
    }

    /// The port that the kernel has chosen.
    static func port(of socket: Int32) -> Int? {
        var storage = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let result = withUnsafeMutablePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(socket, $0, &length) }
        }
        guard result == 0 else { return nil }
        // Both families have the port at the same place (ip(7), ipv6(7)).
        return withUnsafePointer(to: &storage) { pointer in
            pointer.withMemoryRebound(to: sockaddr_in.self, capacity: 1) { Int(UInt16(bigEndian: $0.pointee.sin_port)) }
        }
    }

    static func cannotListen(_ address: ListenAddress, _ error: Int32) -> FrameHostError {
        let isTaken = error == EADDRINUSE
        return FrameHostError(
            .unavailable, place: "control.listen",
            what: isTaken
                ? "\(address.authority) is in use by another program" : "cannot listen on \(address.authority)",
            remedy: isTaken
                ? "End that program, or set another port. Port 0 takes any free port."
                : "Choose an address of this machine and a port that this user may use.",
            cause: isTaken || error == 0 ? "" : String(cString: strerror(error)))
    }
}

/// How many files and sockets the process may have open (getrlimit(2), `RLIMIT_NOFILE`).
enum DescriptorLimit {
    private static let wanted: rlim_t = 16_384

    /// [control thread] Raises the soft limit where the hard one allows: shells usually grant 1,024 and allow far more.
    ///
    /// - Returns: what holds now.
    static func raise() -> Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 1024 }
        let before = limit.rlim_cur
        limit.rlim_cur = min(limit.rlim_max, max(before, wanted))
        if setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) != 0 { limit.rlim_cur = before }
        return Int(min(limit.rlim_cur, rlim_t(Int32.max)))
    }

    /// How many of them connections may take, so that files and devices of the stages find some left.
    static func connections(of limit: Int) -> Int { max(limit - min(256, limit / 2), 1) }
}

/// Stops accepting for a while when that fails for want of descriptors or memory: a connection that waits keeps the
/// socket readable, and the loop would spin. [network loop]
///
/// NIO's `AcceptBackoffHandler` defers the next `read`, but after a failed one NIO 2.101 takes a read as still pending
/// and asks for none.
final class AcceptPause: ChannelInboundHandler {
    typealias InboundIn = any Channel

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // A client that has gone before it was accepted (ECONNABORTED) is no reason to wait.
        guard let error = error as? IOError, [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(error.errnoCode) else { return }
        let channel = context.channel
        channel.setOption(.autoRead, value: false).whenSuccess {
            channel.eventLoop.scheduleTask(in: .milliseconds(100)) { channel.setOption(.autoRead, value: true) }
        }
    }
}
