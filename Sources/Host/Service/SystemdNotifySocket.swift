// SPDX-License-Identifier: Apache-2.0

import Glibc

/// The socket through which this process reports to the service manager: datagrams with lines `NAME=value`.
///
/// - SeeAlso: sd_notify(3), which states the protocol and that programs may speak it without libsystemd; unix(7).
final class SystemdNotifySocket: Sendable {
    enum Outcome: Equatable {
        case sent
        /// Earlier datagrams have not been read yet. The same datagram may be sent again later.
        case full
        /// The socket cannot be reached; the errno.
        case lost(Int32)
    }

    private let file: Int32
    private let address: sockaddr_un
    private let length: socklen_t

    /// - Parameter name: An absolute path, or an abstract name that begins with `@`. At most 107 bytes. The result is
    ///   nil for any other text, and where the process has no descriptor left.
    init?(_ name: String) {
        let bytes = Array(name.utf8)
        var address = sockaddr_un()
        let room = MemoryLayout.size(ofValue: address.sun_path) - 1
        guard bytes.count > 1, bytes.count <= room, bytes[0] == UInt8(ascii: "/") || bytes[0] == UInt8(ascii: "@"),
            !bytes.contains(0)
        else { return nil }
        let file = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard file >= 0 else { return nil }
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { path in
            path.copyBytes(from: bytes)
            // An abstract name begins with a zero byte and ends with the address's length.
            if bytes[0] == UInt8(ascii: "@") { path[0] = 0 }
        }
        let isPath = bytes[0] == UInt8(ascii: "/")
        length = socklen_t(MemoryLayout<sa_family_t>.size + bytes.count + (isPath ? 1 : 0))
        self.address = address
        self.file = file
    }

    deinit { close(file) }

    /// [any thread] One datagram; does not wait.
    func send(_ text: String) -> Outcome {
        var address = address
        let bytes = Array(text.utf8)
        let count = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                sendto(file, bytes, bytes.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT), $0, length)
            }
        }
        guard count < 0 else { return .sent }
        return [EAGAIN, EINTR, ENOBUFS].contains(errno) ? .full : .lost(errno)
    }
}
