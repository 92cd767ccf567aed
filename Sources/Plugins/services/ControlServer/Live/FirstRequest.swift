// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameHTTP
import ServerAccess

/// Looks at a connection's first bytes. A WebSocket that passes the gate begins here. Everything else goes on to HTTP,
/// unchanged. [network loop]
final class FirstRequest: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let api: ControlAPI
    private let timing: LiveSocket.Timing
    private let tasks: TaskCount
    private let idle: TimeAmount
    /// Called when the gate has let a WebSocket through.
    private let welcome: @Sendable () -> Void
    /// Adds HTTP's handlers behind this one, at once.
    private let goOn: @Sendable (any Channel) -> EventLoopFuture<Void>
    private var received = ByteBuffer()
    private var isDecided = false
    private var timer: Scheduled<Void>?

    init(
        _ api: ControlAPI, timing: LiveSocket.Timing, tasks: TaskCount, idle: TimeAmount,
        welcome: @escaping @Sendable () -> Void,
        goOn: @escaping @Sendable (any Channel) -> EventLoopFuture<Void>
    ) {
        (self.api, self.timing, self.tasks, self.idle) = (api, timing, tasks, idle)
        (self.welcome, self.goOn) = (welcome, goOn)
    }

    func handlerAdded(context: ChannelHandlerContext) {
        let channel = context.channel
        timer = context.eventLoop.scheduleTask(in: idle) { channel.close(promise: nil) }
    }

    func handlerRemoved(context: ChannelHandlerContext) { timer?.cancel() }

    func channelInactive(context: ChannelHandlerContext) {
        timer?.cancel()
        context.fireChannelInactive()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        // The client has closed before its request was complete.
        if case ChannelEvent.inputClosed = event, !isDecided { return context.close(promise: nil) }
        context.fireUserInboundEventTriggered(event)
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isDecided else { return context.fireChannelRead(data) }
        var buffer = Self.unwrapInboundIn(data)
        received.writeBuffer(&buffer)
        switch LiveHandshake.look(received.readableBytesView) {
        case .more: break
        case .http: become(context) { [goOn] in goOn(context.channel) }
        case .live(let request):
            // HTTP answers the refusals, and counts the wrong logins.
            guard
                case .success(let caller) = api.gate.judge(
                    request.head, room: .socket, from: PeerAddress(of: context.channel), counts: false),
                caller.rights.contains(.watch), let place = api.place(\.sockets, most: LiveProtocol.mostSockets)
            else { return become(context) { [goOn] in goOn(context.channel) } }
            received.moveReaderIndex(forwardBy: request.byteCount)
            welcome()
            become(context) { self.open(context, request, caller, place) }
        }
    }

    /// After `setUp`, passes the received bytes on to the new handlers.
    private func become(_ context: ChannelHandlerContext, _ setUp: () -> EventLoopFuture<Void>) {
        isDecided = true
        timer?.cancel()
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        setUp().whenComplete { result in
            let (this, context) = bound.value
            guard case .success = result else { return context.close(promise: nil) }
            let rest = this.received
            this.received = ByteBuffer()
            if rest.readableBytes > 0 {
                context.fireChannelRead(Self.wrapInboundOut(rest))
                context.fireChannelReadComplete()
            }
            context.pipeline.syncOperations.removeHandler(this, promise: nil)
        }
    }

    private func open(
        _ context: ChannelHandlerContext, _ request: LiveHandshake.Request, _ caller: Caller, _ place: ControlAPI.Place
    ) -> EventLoopFuture<Void> {
        var head = HTTPRequestHead(version: .http1_1, method: .GET, uri: LiveProtocol.path)
        head.headers.add(name: "Sec-WebSocket-Key", value: request.key)
        head.headers.add(name: "Sec-WebSocket-Version", value: "13")
        let isNamed = LiveProtocol.offered(in: request.head).contains { $0 == LiveProtocol.name }
        // NIO's upgrader is only used to compute `Sec-WebSocket-Accept`.
        let upgrader = NIOWebSocketServerUpgrader(
            shouldUpgrade: { channel, _ in channel.eventLoop.makeSucceededFuture(HTTPHeaders()) },
            upgradePipelineHandler: { channel, _ in channel.eventLoop.makeSucceededVoidFuture() })
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        return upgrader.buildUpgradeResponse(
            channel: context.channel, upgradeRequest: head, initialResponseHeaders: HTTPHeaders()
        ).flatMapThrowing { fields in
            let (this, context) = bound.value
            var text = "HTTP/1.1 101 Switching Protocols\r\n"
            for (name, value) in fields { text += "\(name): \(value)\r\n" }
            if isNamed { text += "Sec-WebSocket-Protocol: \(LiveProtocol.name)\r\n" }
            context.writeAndFlush(
                Self.wrapOutboundOut(ByteBuffer(string: "\(text)Server: framehost\r\n\r\n")), promise: nil)
            let pipeline = context.pipeline.syncOperations
            try pipeline.addHandler(WebSocketFrameEncoder())
            try pipeline.addHandler(
                ByteToMessageHandler(WebSocketFrameDecoder(maxFrameSize: LiveProtocol.mostMessageBytes)))
            try pipeline.addHandler(LiveSocket(this.api, caller, timing: this.timing, tasks: this.tasks, place: place))
        }
    }
}
