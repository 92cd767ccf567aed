// SPDX-License-Identifier: Apache-2.0

import FrameHTTP
import ServerAccess

/// One connection: collects a request, has it answered, writes the answer. NIO hands it one request at a time.
/// [network loop]
final class WebHandler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    /// What the server's book of connections is told.
    enum News: Sendable {
        case begins
        /// Whether the answer was for somebody who may use the device.
        case ends(isKnown: Bool)
    }

    private let endpoint: DeviceEndpoint
    private let client: Client
    private let tell: (News) -> Void
    private var request: DeviceRequest?
    private var isLast = false
    private var isHead = false
    /// Set where the request is refused before it was read to its end.
    private var refusal: DeviceAnswer?
    private var deadline: Scheduled<Void>?
    /// Tells what answers later that the client has gone.
    private var withdraw: (@Sendable () -> Void)?

    init(_ endpoint: DeviceEndpoint, client: Client, tell: @escaping (News) -> Void) {
        (self.endpoint, self.client, self.tell) = (endpoint, client, tell)
    }

    func handlerAdded(context: ChannelHandlerContext) { wait(WebServer.Limits.idle, context) }
    func handlerRemoved(context: ChannelHandlerContext) { deadline?.cancel() }

    func channelInactive(context: ChannelHandlerContext) {
        deadline?.cancel()
        withdraw?()
        withdraw = nil
        context.fireChannelInactive()
    }

    /// Closes the connection unless something else is waited for by then.
    private func wait(_ time: TimeAmount, _ context: ChannelHandlerContext) {
        deadline?.cancel()
        let channel = context.channel
        deadline = context.eventLoop.scheduleTask(in: time) { channel.close(promise: nil) }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch Self.unwrapInboundIn(data) {
        case .head(let head): begin(head, context)
        case .body(let bytes):
            guard refusal == nil, request != nil else { return }
            guard (request?.body.count ?? 0) + bytes.readableBytes <= XMLReader.mostBytes else {
                return refuse(413, "A request has at most \(XMLReader.mostBytes) bytes.")
            }
            request?.body += bytes.readableBytesView
        case .end: end(context)
        }
    }

    private func refuse(_ status: Int, _ text: String) {
        refusal = DeviceAnswer(status: status, type: "text/plain; charset=utf-8", body: Array("\(text)\n".utf8))
        isLast = true
        request?.body = []
    }

    private func begin(_ head: HTTPRequestHead, _ context: ChannelHandlerContext) {
        wait(WebServer.Limits.request, context)
        refusal = nil
        isLast = !head.isKeepAlive
        isHead = head.method == .HEAD
        let hosts = head.headers["host"]
        var request = DeviceRequest(method: head.method.rawValue, target: head.uri, host: hosts.first)
        request.authorization = head.headers.first(name: "authorization")
        // Browsers set these fields, and pages cannot change them (Fetch standard, 3.2 and 5.6).
        request.isFromPage =
            head.headers.contains(name: "origin")
            || head.headers.first(name: "sec-fetch-site").map { $0 != "none" && $0 != "same-origin" } ?? false
            // They leave those fields out where the device has a plain address; no recorder sends this one.
            || head.headers.contains(name: "referer")
        request.client = client
        if let local = context.localAddress, let text = local.ipAddress {
            // A socket of both families sees clients of the version 4 at mapped addresses.
            request.localHost = IPAddress(text).map { $0.isIPv4 ? "\($0)" : "[\(text)]" } ?? text
        }
        self.request = request
        if hosts.count > 1 || hosts.isEmpty && (head.version.major, head.version.minor) >= (1, 1) {
            return refuse(400, "A request must have one Host field.")
        }
        guard head.uri.hasPrefix("/") else { return refuse(400, "The target must be a path.") }
        if let text = head.headers.first(name: "content-length"), let length = Int(text), length > XMLReader.mostBytes {
            return refuse(413, "A request has at most \(XMLReader.mostBytes) bytes.")
        }
        if head.headers.first(name: "expect")?.lowercased() == "100-continue" {
            context.writeAndFlush(
                Self.wrapOutboundOut(.head(HTTPResponseHead(version: .http1_1, status: .continue))), promise: nil)
        }
    }

    private func end(_ context: ChannelHandlerContext) {
        guard let request else { return }
        self.request = nil
        deadline?.cancel()
        tell(.begins)
        if let refusal { return write(refusal, context) }
        switch endpoint.answer(request) {
        case .now(let answer): write(answer, context)
        case .later(let start):
            let channel = NIOLoopBound(context, eventLoop: context.eventLoop)
            let handler = NIOLoopBound(self, eventLoop: context.eventLoop)
            let loop = context.eventLoop
            withdraw = start { answer in
                // Later, also where it is answered at once.
                loop.execute {
                    handler.value.withdraw = nil
                    guard channel.value.channel.isActive else { return }
                    handler.value.write(answer, channel.value)
                }
            }
        }
    }

    private func write(_ answer: DeviceAnswer, _ context: ChannelHandlerContext) {
        tell(.ends(isKnown: answer.isKnown))
        wait(WebServer.Limits.answer, context)
        var head = HTTPResponseHead(version: .http1_1, status: HTTPResponseStatus(statusCode: answer.status))
        if !answer.type.isEmpty { head.headers.add(name: "Content-Type", value: answer.type) }
        head.headers.add(name: "Content-Length", value: "\(answer.body.count)")
        head.headers.add(name: "Cache-Control", value: "no-store")
        head.headers.add(name: "X-Content-Type-Options", value: "nosniff")
        // A page of another place must not even show a picture (Fetch standard, 3.7).
        head.headers.add(name: "Cross-Origin-Resource-Policy", value: "same-origin")
        head.headers.add(name: "Server", value: "framehost")
        for (name, value) in answer.fields.sorted(by: { $0.key < $1.key }) {
            head.headers.add(name: name, value: value)
        }
        if isLast { head.headers.add(name: "Connection", value: "close") }
        context.write(Self.wrapOutboundOut(.head(head)), promise: nil)
        if !isHead, !answer.body.isEmpty {
            context.write(Self.wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: answer.body)))), promise: nil)
        }
        let (channel, isLast) = (context.channel, isLast)
        let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
        context.writeAndFlush(Self.wrapOutboundOut(.end(nil))).whenComplete { result in
            guard case .success = result, !isLast else { return channel.close(promise: nil) }
            let (handler, context) = bound.value
            // The next request may be under way already.
            if handler.request == nil, channel.isActive { handler.wait(WebServer.Limits.idle, context) }
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }
}
