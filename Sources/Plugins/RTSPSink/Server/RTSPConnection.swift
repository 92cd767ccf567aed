import FrameNetwork

/// One client's connection: bytes to requests, answers to bytes. [network loop]
///
/// Bounded in what it keeps by ``WireReader/Limits``, in time by ``requestSeconds``, and in answers by what the client takes.
final class RTSPConnection: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// A request begun must be whole after this.
    static let requestSeconds: Int64 = 10
    /// Answers that a client may leave untaken.
    static let mostUntakenAnswers = 64

    private let server: RTSPServer
    private let isSecure: Bool
    private let id: ConnectionID
    private var reader = WireReader()
    private var readers: [String: TCPReader] = [:]
    private var untakenAnswers = 0
    private var isClosing = false
    private var deadline: Scheduled<Void>?

    init(server: RTSPServer, isSecure: Bool) {
        self.server = server
        self.isSecure = isSecure
        id = server.newConnectionID()
    }

    // MARK: NIO

    func channelActive(context: ChannelHandlerContext) {
        guard let peer = IPAddress(context.remoteAddress), let local = IPAddress(context.localAddress),
            server.open(id, context.channel, peer: peer, local: local, isSecure: isSecure)
        else {
            context.close(promise: nil)
            return
        }
        // The handshake is part of the first request: who stays in it is cut off as well.
        if isSecure { limitRequest(context) }
        context.fireChannelActive()
    }

    func channelInactive(context: ChannelHandlerContext) {
        deadline?.cancel()
        server.closed(id)
        context.fireChannelInactive()
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !isClosing else { return }
        unwrapInboundIn(data).withUnsafeReadableBytes { reader.append($0) }
        var hasRead = false
        while !isClosing, let item = reader.next() {
            hasRead = true
            take(item, context)
        }
        watch(hasRead: hasRead, context)
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        context.flush()
        context.fireChannelReadComplete()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable {
            untakenAnswers = 0
            let now = StreamHub.monotonic()
            for reader in readers.values { reader.pump(now: now) }
        }
        context.fireChannelWritabilityChanged()
    }

    /// Ends a connection whose request stays unfinished, however slowly it comes.
    private func watch(hasRead: Bool, _ context: ChannelHandlerContext) {
        if hasRead || reader.isIdle {
            deadline?.cancel()
            deadline = nil
        }
        guard !reader.isIdle, deadline == nil, !isClosing else { return }
        limitRequest(context)
    }

    private func limitRequest(_ context: ChannelHandlerContext) {
        let channel = context.channel
        deadline = context.eventLoop.assumeIsolated().scheduleTask(in: .seconds(Self.requestSeconds)) { channel.close(promise: nil) }
    }

    // MARK: Requests

    private func take(_ item: WireReader.Item, _ context: ChannelHandlerContext) {
        switch item {
        case .request(let request):
            for action in server.handle(request, from: id) { perform(action, context) }
        case .frame(let channel, let payload):
            for reader in readers.values { reader.receive(on: channel, payload) }
        case .response:
            break
        case .fault(let status, _):
            answer(RTSPResponse(status, headers: HeaderFields([("Server", "framehost"), ("Connection", "close")])), context)
            finish(context)
        }
    }

    private func perform(_ action: SignallingAction, _ context: ChannelHandlerContext) {
        switch action {
        case .respond(let response): answer(response, context)
        case .play(let order, let response): play(order, response, context)
        case .pause(let sessionID, let response):
            readers[sessionID] = nil
            server.pause(sessionID, from: context.eventLoop)
            answer(response, context)
        case .end(let sessionID, let departure):
            readers[sessionID] = nil
            server.end(sessionID, departure, from: context.eventLoop)
        case .close(let connection, _):
            if connection == id { finish(context) } else { server.close(connection) }
        }
    }

    /// The answer first, then packets.
    private func play(_ order: PlayOrder, _ response: RTSPResponse, _ context: ChannelHandlerContext) {
        var response = response
        guard let start = server.start(order, on: context.eventLoop) else {
            response.status = .notFound
            return answer(response, context)
        }
        var info = RTPInfo(url: order.controlURL)
        if let first = start.entry.kept.first {
            info.sequenceNumber = first.firstSequenceNumber
            info.rtpTime = first.timestamp
        }
        response.headers.append("RTP-Info", info.text)
        answer(response, context)
        switch order.transport {
        case .tcp(_, let channels):
            let reader = TCPReader(order: order, channels: channels, channel: context.channel, limits: start.fan.hub.queueLimits)
            readers[order.sessionID] = reader
            start.fan.add(reader, start.entry)
        case .udp(let address, let ports):
            guard let reader = server.udpReader(order, address, ports) else { return }
            // The answer is on its way before the first datagram.
            context.flush()
            start.fan.add(reader, start.entry)
        }
    }

    private func answer(_ response: RTSPResponse, _ context: ChannelHandlerContext) {
        if !context.channel.isWritable {
            untakenAnswers += 1
            guard untakenAnswers < Self.mostUntakenAnswers else { return context.close(promise: nil) }
        }
        let bytes = response.bytes
        var buffer = context.channel.allocator.buffer(capacity: bytes.count)
        buffer.writeBytes(bytes)
        context.write(wrapOutboundOut(buffer), promise: nil)
    }

    /// Closes after what was said has gone out, and at once where it does not.
    private func finish(_ context: ChannelHandlerContext) {
        isClosing = true
        let channel = context.channel
        context.writeAndFlush(wrapOutboundOut(context.channel.allocator.buffer(capacity: 0))).whenComplete { _ in
            channel.close(promise: nil)
        }
        context.eventLoop.assumeIsolated().scheduleTask(in: .seconds(2)) { channel.close(promise: nil) }
    }
}
