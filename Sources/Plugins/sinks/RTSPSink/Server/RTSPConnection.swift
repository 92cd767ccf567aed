// SPDX-License-Identifier: Apache-2.0

import FrameNetwork
import ServerAccess
import FrameSupport

/// One client's connection: turns bytes into requests, and answers into bytes. [network loop]
///
/// ``WireReader/Limits`` bounds what it keeps, ``requestSeconds`` how long a request may take, and
/// ``mostUntakenAnswers`` the answers that the client has not read.
///
/// In a tunnel through HTTP (``Signalling/Tunnel``) the connection of the GET stands for the client. The connection of
/// the POST hands it decoded bytes, a piece at a time, and reads on once a piece has been taken.
final class RTSPConnection: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    /// A request must be complete within this time after its start.
    static let requestSeconds: Int64 = 10
    /// The most answers that a client may leave unread.
    static let mostUntakenAnswers = 64

    /// The most meaningless bytes on the connection of a GET before it is closed.
    static let mostStrayBytes = 1 << 10

    private enum Role {
        case plain
        case tunnelOutput(input: ConnectionID?)
        case tunnelInput(of: ConnectionID)
    }

    private let server: RTSPServer
    private let isSecure: Bool
    private let id: ConnectionID
    private var reader = WireReader()
    private var readers: [String: TCPReader] = [:]
    private var untakenAnswers = 0
    private var isClosing = false
    private var deadline: Scheduled<Void>?
    private var role = Role.plain
    private var strayBytes = 0
    private var decoder = Base64Stream()
    /// Pieces on their way to the tunnel's other connection; while there is one, nothing is read.
    private var underway = 0
    private var wantsRead = false

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
        // The handshake counts as part of the first request, so a client that stays in it is disconnected too.
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
        unwrapInboundIn(data).withUnsafeReadableBytes { bytes in
            switch role {
            case .plain: read(bytes, context)
            case .tunnelInput(let output): forward(bytes, to: output, context)
            case .tunnelOutput:
                strayBytes += bytes.count
                if strayBytes > Self.mostStrayBytes { context.close(promise: nil) }
            }
        }
    }

    /// Reads RTSP, from the connection itself or through a tunnel.
    private func read(_ bytes: UnsafeRawBufferPointer, _ context: ChannelHandlerContext) {
        reader.append(bytes)
        var hasRead = false
        while !isClosing, let item = reader.next() {
            hasRead = true
            take(item, context)
        }
        // The connections of a tunnel have time limits of their own.
        switch role {
        case .plain, .tunnelOutput(.some): watch(hasRead: hasRead, context)
        case .tunnelOutput(nil), .tunnelInput: break
        }
    }

    /// On the POST of a tunnel, one piece must be taken before the next is read.
    func read(context: ChannelHandlerContext) {
        if underway > 0 { wantsRead = true } else { context.read() }
    }

    func channelReadComplete(context: ChannelHandlerContext) {
        context.flush()
        context.fireChannelReadComplete()
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        if context.channel.isWritable {
            untakenAnswers = 0
            let now = MonotonicTime.now()
            for reader in readers.values { reader.pump(now: now) }
        }
        context.fireChannelWritabilityChanged()
    }

    /// Closes a connection whose request stays incomplete, however slowly it comes.
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
        deadline = context.eventLoop.assumeIsolated().scheduleTask(in: .seconds(Self.requestSeconds)) {
            channel.close(promise: nil)
        }
    }

    // MARK: Requests

    private func take(_ item: WireReader.Item, _ context: ChannelHandlerContext) {
        switch item {
        case .request(let request):
            for action in server.handle(request, from: id, on: context.eventLoop) { perform(action, context) }
        case .frame(let channel, let payload):
            for reader in readers.values { reader.receive(on: channel, payload) }
        case .response:
            break
        case .fault(let status, _):
            answer(
                RTSPResponse(status, headers: HeaderFields([("Server", "framehost"), ("Connection", "close")])), context
            )
            finish(context)
        }
    }

    private func perform(_ action: SignallingAction, _ context: ChannelHandlerContext) {
        switch action {
        case .respond(let response): answer(response, context)
        case .play(let order, let response): play(order, response, context)
        case .pause(let sessionID, let response):
            readers[sessionID] = nil
            answer(response, context)
        case .end(let sessionID, _, _): readers[sessionID] = nil
        case .openTunnel(let response):
            answer(response, context)
            role = .tunnelOutput(input: nil)
            reader = WireReader()
            // The client's POST must follow within this time.
            limitRequest(context)
        case .joinTunnel(let output):
            role = .tunnelInput(of: output)
            deadline?.cancel()
            send(.joined, to: output, context)
            reader.takeRaw().withUnsafeBytes { forward($0, to: output, context) }
        case .close(let connection, _):
            if connection == id { finish(context) } else { server.close(connection) }
        }
    }

    // MARK: Tunnels

    /// What the connection of a POST sends to that of the GET.
    struct TunnelEvent: Sendable {
        enum News: Sendable {
            case joined
            case bytes([UInt8])
            /// The bytes were not Base64.
            case broken
        }

        var news: News
        var input: ConnectionID
        /// Must be called once the event has been handled.
        var taken: @Sendable () -> Void
    }

    private func forward(_ bytes: UnsafeRawBufferPointer, to output: ConnectionID, _ context: ChannelHandlerContext) {
        var decoded: [UInt8] = []
        let isWhole = decoder.decode(bytes, into: &decoded)
        if !decoded.isEmpty { send(.bytes(decoded), to: output, context) }
        guard !isWhole else { return }
        send(.broken, to: output, context)
        isClosing = true
        context.close(promise: nil)
    }

    private func send(_ news: TunnelEvent.News, to output: ConnectionID, _ context: ChannelHandlerContext) {
        underway += 1
        let back = NIOLoopBound(self, eventLoop: context.eventLoop)
        let channel = context.channel
        let event = TunnelEvent(news: news, input: id) {
            channel.eventLoop.execute {
                let connection = back.value
                connection.underway -= 1
                guard connection.underway == 0, connection.wantsRead else { return }
                connection.wantsRead = false
                channel.read()
            }
        }
        if !server.send(event, to: output) { context.close(promise: nil) }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard let event = event as? TunnelEvent else { return context.fireUserInboundEventTriggered(event) }
        defer { event.taken() }
        guard case .tunnelOutput(let input) = role, !isClosing else { return }
        switch event.news {
        case .joined:
            role = .tunnelOutput(input: event.input)
            deadline?.cancel()
            deadline = nil
            // An incomplete request from before is lost with its connection.
            reader = WireReader()
        case .bytes(let bytes):
            guard input == event.input else { return }
            bytes.withUnsafeBytes { read($0, context) }
            context.flush()
        case .broken:
            guard input == event.input else { return }
            take(.fault(.badRequest, "the data in the tunnel is not Base64"), context)
            context.flush()
        }
    }

    /// Sends the answer first, then packets.
    private func play(_ order: PlayOrder, _ response: RTSPResponse, _ context: ChannelHandlerContext) {
        var response = response
        let fan: LoopFan
        let entry: StreamHub.Entry
        switch server.start(order, on: context.eventLoop) {
        case .plays(let itsFan, let itsEntry): (fan, entry) = (itsFan, itsEntry)
        case .refused(let status):
            response.status = status
            return answer(response, context)
        }
        let info = order.transports.media.map { medium in
            let first = entry.firstPacket(of: medium)
            return RTPInfo(
                url: order.controlURL(of: medium), sequenceNumber: first?.sequenceNumber, rtpTime: first?.timestamp)
        }
        response.headers.append("RTP-Info", info.map(\.text).joined(separator: ","))
        answer(response, context)
        switch order.transport {
        case .tcp:
            let reader = TCPReader(order: order, channel: context.channel, limits: fan.hub.queueLimits)
            readers[order.sessionID] = reader
            fan.add(reader, entry)
        case .udp:
            guard let reader = server.udpReader(order) else { return }
            // The answer is sent before the first datagram.
            context.flush()
            fan.add(reader, entry)
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

    /// Closes once everything has been sent, and after two seconds at the latest.
    private func finish(_ context: ChannelHandlerContext) {
        isClosing = true
        let channel = context.channel
        context.writeAndFlush(wrapOutboundOut(context.channel.allocator.buffer(capacity: 0))).whenComplete { _ in
            channel.close(promise: nil)
        }
        context.eventLoop.assumeIsolated().scheduleTask(in: .seconds(2)) { channel.close(promise: nil) }
    }
}
