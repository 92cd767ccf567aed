// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameNetwork
import Glibc
import ServerAccess

/// The server's pair of UDP ports: RTP on an even one, RTCP on the next (RFC 3550, 11). All readers share it.
struct DatagramPorts {
    let ports: TransportSpec.Pair<UInt16>
    let sender: DatagramSender
    /// What comes to either port.
    let channels: [any Channel]

    private static let attempts = 200

    /// [control thread] Binds a pair that is free.
    ///
    /// - Throws: ``FrameHostError`` `.unavailable`.
    static func open(
        address: IPAddress, isIPv6: Bool, group: any EventLoopGroup,
        heard: @escaping @Sendable (Signalling.Endpoint, ByteBuffer) -> Void
    ) throws -> DatagramPorts {
        var reason: Int32 = 0
        for _ in 0..<attempts {
            let port = UInt16.random(in: 10_000...32_000) * 2
            guard let media = bound(address, port, isIPv6) else {
                reason = errno
                continue
            }
            guard let control = bound(address, port + 1, isIPv6) else {
                reason = errno
                close(media)
                continue
            }
            let sender = DatagramSender(mediaSocket: media, controlSocket: control, isIPv6: isIPv6)
            var channels: [any Channel] = []
            do {
                for socket in [media, control] {
                    channels.append(
                        try DatagramBootstrap(group: group)
                            .channelInitializer { channel in
                                channel.eventLoop.makeCompletedFuture {
                                    try channel.pipeline.syncOperations.addHandler(DatagramListener(heard: heard))
                                }
                            }
                            .withBoundSocket(NIOBSDSocket.Handle(socket)).wait())
                }
            } catch {
                // NIO may have closed the socket that it refused; the other one is ours.
                for channel in channels { try? channel.close().wait() }
                if channels.isEmpty { close(control) }
                throw error
            }
            return DatagramPorts(ports: TransportSpec.Pair(port, port + 1), sender: sender, channels: channels)
        }
        throw fault(reason)
    }

    /// - Parameter reason: The errno of the last attempt.
    static func fault(_ reason: Int32) -> FrameHostError {
        let remedy =
            switch reason {
            case EMFILE, ENFILE: "Raise the limit of open files (ulimit -n)."
            case EADDRINUSE: "End programs that use these ports, or set \"transport\": \"tcp\"."
            default: "Set \"transport\": \"tcp\" to serve without UDP."
            }
        return FrameHostError(
            .unavailable,
            what: "\(attempts) attempts to open a pair of UDP ports from 20000 to 64001 failed",
            remedy: remedy, cause: String(cString: strerror(reason)))
    }

    /// A bound socket with room for bursts; nil where the port is taken.
    private static func bound(_ address: IPAddress, _ port: UInt16, _ isIPv6: Bool) -> Int32? {
        let socket = socket(
            isIPv6 ? AF_INET6 : AF_INET,
            Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue), 0)
        guard socket >= 0 else { return nil }
        var off: Int32 = 0
        if isIPv6 { setsockopt(socket, Int32(IPPROTO_IPV6), IPV6_V6ONLY, &off, socklen_t(MemoryLayout<Int32>.size)) }
        var room: Int32 = 4 << 20
        setsockopt(socket, SOL_SOCKET, SO_SNDBUF, &room, socklen_t(MemoryLayout<Int32>.size))
        let storage = SocketAddressStorage(address, port: port, isIPv6: isIPv6)
        guard bind(socket, storage.generic, storage.byteCount) == 0 else {
            close(socket)
            return nil
        }
        return socket
    }
}

/// Hands on what comes to a UDP port. [network loop]
private final class DatagramListener: ChannelInboundHandler {
    typealias InboundIn = AddressedEnvelope<ByteBuffer>
    private let heard: @Sendable (Signalling.Endpoint, ByteBuffer) -> Void

    init(heard: @escaping @Sendable (Signalling.Endpoint, ByteBuffer) -> Void) { self.heard = heard }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let envelope = unwrapInboundIn(data)
        guard let address = IPAddress(envelope.remoteAddress), let port = envelope.remoteAddress.port else { return }
        heard(Signalling.Endpoint(address: address, port: UInt16(port)), envelope.data)
    }

    /// An ICMP message about a reader that has gone is not a fault: its session ends when its signs of life stop.
    func errorCaught(context: ChannelHandlerContext, error: any Error) {}
}

extension IPAddress {
    init?(_ address: SocketAddress?) {
        switch address {
        case .v4(let v4): self.init(v4: UInt32(bigEndian: v4.address.sin_addr.s_addr))
        case .v6(let v6):
            let words = withUnsafeBytes(of: v6.address.sin6_addr) { bytes in
                (bytes.loadUnaligned(as: UInt64.self), bytes.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
            }
            self.init(high: UInt64(bigEndian: words.0), low: UInt64(bigEndian: words.1))
        default: return nil
        }
    }
}
