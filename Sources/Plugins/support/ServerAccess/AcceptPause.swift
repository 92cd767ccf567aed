// SPDX-License-Identifier: Apache-2.0

import FrameNetwork
import Glibc

/// Stops accepting for a while when descriptors or memory are lacking: a connection that waits keeps the socket
/// readable, and the loop would spin. [network loop]
///
/// NIO's `AcceptBackoffHandler` defers the next `read`. But after a failed read, NIO 2.101 counts a read as still
/// pending and starts no other.
public final class AcceptPause: ChannelInboundHandler {
    public typealias InboundIn = any Channel

    /// [network loop]
    public init() {}

    public func errorCaught(context: ChannelHandlerContext, error: any Error) {
        // A client that went before it was accepted (ECONNABORTED) is no reason to wait.
        guard let error = error as? IOError, [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(error.errnoCode) else { return }
        let channel = context.channel
        channel.setOption(.autoRead, value: false).whenSuccess {
            channel.eventLoop.scheduleTask(in: .milliseconds(100)) { channel.setOption(.autoRead, value: true) }
        }
    }
}
