// SPDX-License-Identifier: Apache-2.0

import FrameHTTP

/// Stands before TLS, and tells a client that speaks without it what to do. [network loop]
///
/// The first byte of a TLS connection is that of a handshake record (RFC 8446 §5.1). Any letter is a request over plain
/// HTTP, of which nothing is read: it may have a password.
final class PlainRequest: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private var isRefused = false

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isRefused else { return }
        let first = Self.unwrapInboundIn(data).readableBytesView.first ?? 22
        guard (65...90).contains(first) || (97...122).contains(first) else {
            context.fireChannelRead(data)
            context.pipeline.syncOperations.removeHandler(self, promise: nil)
            return
        }
        isRefused = true
        let text = """
            {"error":{"what":"this port takes TLS only","place":"request","remedy":"Use an https address.",\
            "code":"tls-required"}}

            """
        let answer =
            "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nContent-Length: \(text.utf8.count)\r\n"
            + "Connection: close\r\n\r\n\(text)"
        let channel = context.channel
        context.writeAndFlush(Self.wrapOutboundOut(ByteBuffer(string: answer))).whenComplete { _ in
            // `close` would begin with the end of TLS.
            channel.eventLoop.scheduleTask(in: .milliseconds(20)) { channel.close(promise: nil) }
        }
    }
}
