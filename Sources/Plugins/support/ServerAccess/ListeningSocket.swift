// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameNetwork
import Glibc

/// A socket for a server, before any network library has it.
public enum ListeningSocket {
    /// A bound socket that is closed in every program that this one starts (`SOCK_CLOEXEC`, socket(2)).
    ///
    /// - Parameters:
    ///   - address: Where; port 0 takes any free port.
    ///   - server: What listens, for faults: "the control server".
    /// - Returns: Its descriptor, which belongs to the caller.
    /// - Throws: ``FrameHostError`` where the port is taken.
    public static func bound(_ address: ListenAddress, for server: String) throws -> Int32 {
        let socket = socket(
            address.isIPv6 ? AF_INET6 : AF_INET,
            Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
        guard socket >= 0 else { throw cannotListen(address, errno, server) }
        var on: Int32 = 1
        setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
        do {
            let place = try SocketAddress(ipAddress: address.address, port: address.port)
            guard place.withSockAddr({ Glibc.bind(socket, $0, socklen_t($1)) }) == 0 else {
                throw cannotListen(address, errno, server)
            }
        } catch {
            close(socket)
            throw error as? FrameHostError ?? cannotListen(address, EINVAL, server)
        }
        return socket
    }

    /// The port that the kernel has chosen.
    public static func port(of socket: Int32) -> Int? {
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

    /// Why a server cannot listen: the error of a system call, or 0.
    public static func cannotListen(_ address: ListenAddress, _ error: Int32, _ server: String) -> FrameHostError {
        let isTaken = error == EADDRINUSE
        let remedy =
            switch error {
            case EADDRINUSE: "End that program, or set another port. Port 0 takes any free port."
            case EMFILE, ENFILE: "Raise the limit of open files (ulimit -n)."
            default: "Choose an address of this machine and a port that this user may use."
            }
        return FrameHostError(
            .unavailable, place: "listen",
            what: isTaken
                ? "\(address.authority) is in use by another program"
                : "\(server) cannot listen on \(address.authority)", remedy: remedy,
            cause: isTaken || error == 0 ? "" : String(cString: strerror(error)))
    }
}
