// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameHTTP
import FrameSupport
import Glibc
import ServerAccess

/// Serves a ``ControlAPI`` over HTTP/1.1: hummingbird's channels on a listener of ours.
///
/// Each connection's requests are answered by a task of ``ServerThreads``. The listener is ours because hummingbird's
/// opens sockets that programs which plugins start would inherit, and spins where descriptors run out.
final class HTTPServer: Sendable {
    /// The limits for a client.
    private enum Limits {
        /// For an answer that is not a stream, until the client has read all of it.
        static let answer = TimeAmount.seconds(60)
        static let headerField = 16 << 10
        static let headers = 32 << 10
        static let headerCount = 100
        /// For a connection without a request, or whose request makes no progress.
        static let idle = TimeAmount.seconds(60)
    }

    /// Connections that may wait to be accepted.
    private static let backlog: Int32 = 1024

    private struct Connections {
        var open: [ObjectIdentifier: any Channel] = [:]
        var book: ConnectionBook<ObjectIdentifier>
        /// Requests that are answered at this moment, streams aside.
        var busy = 0
        /// Requests so far.
        var requests = 0
        /// Whether each answer closes its connection.
        var isLeaving = false
        var isStopping = false
    }

    private let api: ControlAPI
    private let listener: any Channel
    /// The listener's; it belongs to ``listener``.
    private let socket: Int32
    private let connections: Locked<Connections>
    private let tasks: TaskCount
    /// Closes strangers that are silent for too long.
    private let expiry: RepeatedTask

    /// [control thread] Accepts connections from here on.
    ///
    /// - Parameters:
    ///   - progress: Milliseconds after which a client that reads nothing of a stream is disconnected.
    ///   - limits: Of connections.
    ///   - ping: Milliseconds between two pings of a WebSocket.
    ///   - tls: The certificate and its key; without it the server speaks plain HTTP.
    ///   - makeAPI: Given the port, which the kernel may have chosen.
    /// - Throws: ``FrameHostError`` where the port is taken, or where descriptors or threads are lacking.
    init(
        _ address: ListenAddress, progress: Int64 = 10_000,
        limits: ConnectionBook<ObjectIdentifier>.Limits = .init(),
        ping: Int64 = 20_000, tls: NIOSSLContext? = nil, makeAPI: (_ port: Int) -> ControlAPI
    ) throws {
        let threads = try ServerThreads.ready()
        let socket = try ListeningSocket.bound(address, for: "the control server")
        self.socket = socket
        let port = ListeningSocket.port(of: socket) ?? address.port
        let api = makeAPI(port)
        let connections = Locked(Connections(book: ConnectionBook(limits)))
        let tasks = TaskCount()
        let progress = TimeAmount.milliseconds(progress)
        let timing = LiveSocket.Timing(progress: progress, ping: .milliseconds(ping))
        (self.api, self.connections, self.tasks) = (api, connections, tasks)
        let logger = Logger(label: "control-server") { _ in SwiftLogNoOpLogHandler() }
        let http = HTTP1Channel(
            responder: { (request: Request, writer: consuming ResponseWriter, channel: any Channel) in
                try await Self.respond(api, connections, progress, request, writer, channel)
            },
            configuration: Self.configuration)
        let bootstrap = Self.bootstrap(threads.loop) { channel in
            do {
                guard try Self.take(channel, connections) else { return Self.turnAway(channel, isSecure: tls != nil) }
            } catch { return channel.eventLoop.makeFailedFuture(error) }
            return channel.eventLoop.makeCompletedFuture {
                let key = ObjectIdentifier(channel)
                if let tls {
                    try channel.pipeline.syncOperations.addHandlers(PlainRequest(), NIOSSLServerHandler(context: tls))
                }
                try channel.pipeline.syncOperations.addHandler(
                    FirstRequest(api, timing: timing, tasks: tasks, idle: Limits.idle) {
                        connections.withLock { $0.book.welcome(key) }
                    } goOn: { channel in
                        http.setup(channel: channel, logger: logger).flatMapThrowing { value in
                            try MessageRules.add(to: channel, isSecure: tls != nil)
                            return value
                        }.map { value in
                            tasks.begin()
                            threads.begin {
                                await http.handle(value: value, logger: logger)
                                tasks.end()
                            }
                        }
                    })
            }
        }
        do {
            listener = try bootstrap.withBoundSocket(NIOBSDSocket.Handle(socket)).wait()
            // NIO listens to a socket that it is handed with a backlog of its own, 128.
            _ = Glibc.listen(socket, Self.backlog)
        } catch {
            throw ListeningSocket.cannotListen(
                address, (error as? IOError)?.errnoCode ?? 0, "the control server")
        }
        expiry = threads.loop.scheduleRepeatedTask(initialDelay: .seconds(1), delay: .seconds(1)) { _ in
            Self.close(connections) { $0.book.expire(now: MonotonicTime.now()) }
        }
    }

    private static let configuration = HTTP1Channel.Configuration(
        idleTimeout: Limits.idle,
        httpDecoderConfiguration: HTTP1Channel.Configuration.DecoderConfiguration(
            maxHeaderFieldSize: Limits.headerField, maxHeaderListSize: Limits.headers,
            maxHeaderFieldCount: Limits.headerCount))

    private static func bootstrap(
        _ loop: any EventLoopGroup, _ initialise: @escaping @Sendable (any Channel) -> EventLoopFuture<Void>
    ) -> ServerBootstrap {
        ServerBootstrap(group: loop)
            .serverChannelOption(.backlog, value: backlog)
            .serverChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(AcceptPause())
                }
            }
            .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            // By itself the kernel's buffer grows to megabytes. A slow viewer's pictures would wait there and become
            // old, and the server could not see what the viewer reads.
            .childChannelOption(.socketOption(.so_sndbuf), value: 256 << 10)
            .childChannelOption(.writeBufferWaterMark, value: .init(low: 32 << 10, high: 64 << 10))
            .childChannelInitializer(initialise)
    }

    /// The port in use.
    var port: Int { listener.localAddress?.port ?? 0 }

    // MARK: Requests

    /// Ends a connection whose request was not read to its end, or whose server leaves.
    private struct LastRequest: Error {}

    private static func respond(
        _ api: ControlAPI, _ connections: Locked<Connections>, _ progress: TimeAmount, _ request: Request,
        _ writer: consuming ResponseWriter, _ channel: any Channel
    ) async throws {
        let head = RequestHead(request.head)
        let body = BodyReader(request.body, channel)
        let key = ObjectIdentifier(channel)
        let address = PeerAddress(of: channel)
        // Once for each request: wrong logins are counted. The page's files show nothing of who asks.
        let isMalformed = head[MessageRules.malformed] != nil
        let verdict = isMalformed ? .success(.nobody) : api.judge(head, from: address)
        let isKnown = api.gate.desk.isOpen || (try? verdict.get())?.rights.isEmpty == false
        let isWelcome = !isMalformed && verdict.isAllowed && isKnown
        connections.withLock { connections in
            connections.busy += 1
            connections.requests += 1
            connections.book.beginAnswer(key)
            if isWelcome { connections.book.welcome(key) }
        }
        defer { connections.withLock { $0.book.endAnswer(key, now: MonotonicTime.now()) } }
        let isBusy = Locked(true)
        func isIdle() {
            if isBusy.withLock({ was in
                defer { was = false }
                return was
            }) {
                connections.withLock { $0.busy -= 1 }
            }
        }
        defer { isIdle() }
        let answer = await answer(api, head, verdict, address, body, channel)
        // Unread bytes of a body would be taken for the next request.
        let isWhole = !head.hasBody || body.isAtEnd
        var response = HTTPResponse(status: HTTPResponse.Status(code: answer.status))
        let usual = Self.fields.filter { field in !answer.fields.contains { $0.name == field.name } }
        // Of a server that leaves, no client should send another request on this connection.
        let isLast = connections.withLock { $0.isLeaving }
        for field in answer.fields + usual + (isWhole && !isLast ? [] : [("Connection", "close")]) {
            if let name = HTTPField.Name(field.name) {
                response.headerFields.append(HTTPField(name: name, value: field.value))
            }
        }
        try await send(answer, response, isHead: head.method == "HEAD", writer, channel, api.memory, progress) {
            isIdle()
        }
        if !isWhole {
            await body.drain()
            throw LastRequest()
        }
        if isLast { throw LastRequest() }
    }

    private static func answer(
        _ api: ControlAPI, _ head: RequestHead, _ verdict: Result<Caller, Refusal>, _ address: PeerAddress,
        _ body: BodyReader, _ channel: any Channel
    ) async -> Answer {
        var answer: Answer
        if let fault = head[MessageRules.malformed] {
            answer = .refused(
                Refusal(
                    400, "invalid-configuration", place: "request", fault,
                    "Send one Host field with the server's address, and a path as the target."))
        } else {
            answer = await api.answer(head, verdict, from: address) { most in
                if head["expect"]?.lowercased() == "100-continue" {
                    try await channel.writeAndFlush(HTTPResponsePart.head(HTTPResponse(status: .continue))).get()
                }
                return try await body.all(most)
            }
        }
        if case .bytes(let bytes) = answer.body, bytes.count >= AnswerMemory.leastBytes {
            if let piece = api.memory.piece(bytes) {
                answer.body = .piece(piece)
            } else {
                answer = .refused(AnswerMemory.full("there is no room for the answer"))
            }
        }
        return answer
    }

    /// - Parameter onStream: Called where the answer is a stream, which has no end.
    private static func send(
        _ answer: Answer, _ head: HTTPResponse, isHead: Bool, _ writer: consuming ResponseWriter,
        _ channel: any Channel, _ memory: AnswerMemory, _ progress: TimeAmount, onStream: () -> Void
    ) async throws {
        var response = head
        // A stream has a time limit of its own for each piece.
        let isStream = if case .stream = answer.body { !isHead } else { false }
        let timer = isStream ? nil : channel.closing(in: Limits.answer)
        defer { timer?.cancel() }
        switch answer.body {
        case .bytes(let bytes):
            response.headerFields[.contentLength] = "\(bytes.count)"
            if isHead {
                try await writer.writeResponse(response)
            } else {
                try await writer.write(response: response, body: ResponseBody(byteBuffer: ByteBuffer(bytes: bytes)))
            }
        case .piece(let piece):
            response.headerFields[.contentLength] = "\(piece.count)"
            if isHead {
                try await writer.writeResponse(response)
            } else {
                let rest = try await writer.writeHead(response)
                try await ChannelWriter(channel, memory).write(piece, stalls: Limits.answer)
                try await rest.finish(nil)
            }
        case .none:
            if answer.status != 204 { response.headerFields[.contentLength] = "0" }
            try await writer.writeResponse(response)
        case .stream(let run):
            if isHead {
                // The length of a stream is unknown.
                response.headerFields[.contentLength] = "0"
                try await writer.writeResponse(response)
            } else {
                onStream()
                let rest = try await writer.writeHead(response)
                try await run(ChannelWriter(channel, memory, progress: progress))
                try await rest.finish(nil)
            }
        }
    }

    /// Fields of every answer that does not set others: answers are not stored, not embedded, and not taken for another
    /// type.
    private static let fields: [(name: String, value: String)] = [
        ("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"),
        ("Cross-Origin-Resource-Policy", "same-origin"),
        ("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'"), ("Server", "framehost"),
    ]

    // MARK: Connections

    /// Ends a connection that got one of the very last descriptors, without an answer.
    private struct NoDescriptor: Error {}

    /// [network loop] Registers a connection, for which another one may have to go. False where there is no room, or where
    /// the server is stopping.
    private static func take(_ channel: any Channel, _ connections: Locked<Connections>) throws -> Bool {
        let key = ObjectIdentifier(channel)
        let (address, isShort) = try admit(channel)
        let (entrance, pushedOut) = connections.withLock { connections -> (Entrance, (any Channel)?) in
            guard !connections.isStopping else { return (.refused, nil) }
            let entrance = connections.book.open(key, address, isShort: isShort, now: MonotonicTime.now())
            guard case .taken(let other) = entrance else { return (entrance, nil) }
            connections.open[key] = channel
            return (entrance, other.flatMap { connections.open.removeValue(forKey: $0) })
        }
        pushedOut?.close(promise: nil)
        guard entrance != .refused else {
            // An answer would hold the descriptor for longer.
            if isShort { throw NoDescriptor() }
            return false
        }
        channel.closeFuture.whenComplete { _ in
            connections.withLock { connections in
                // Another channel may have the key by now.
                guard connections.open[key] === channel else { return }
                connections.open[key] = nil
                connections.book.close(key)
            }
        }
        return true
    }

    private typealias Entrance = ConnectionBook<ObjectIdentifier>.Entrance

    /// [network loop] Closes the connections that `choose` names.
    private static func close(
        _ connections: Locked<Connections>, _ choose: (inout Connections) -> [ObjectIdentifier]
    ) {
        let channels = connections.withLock { connections in
            choose(&connections).compactMap { connections.open.removeValue(forKey: $0) }
        }
        for channel in channels { channel.close(promise: nil) }
    }

    /// [network loop] Answers every request that there is no room.
    private static func turnAway(_ channel: any Channel, isSecure: Bool) -> EventLoopFuture<Void> {
        // Nobody could read it without a handshake.
        if isSecure {
            channel.eventLoop.scheduleTask(in: .milliseconds(20)) { channel.close(promise: nil) }
            return channel.eventLoop.makeSucceededVoidFuture()
        }
        let text = """
            {"error":{"what":"the server has no free connection","place":"connections","remedy":"Close \
            another connection, or try again later.","code":"exhausted"}}

            """
        let answer =
            "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: \(text.utf8.count)\r\n"
            + "Connection: close\r\n\r\n\(text)"
        // The channel is registered only after this.
        channel.eventLoop.scheduleTask(in: .milliseconds(20)) {
            channel.writeAndFlush(ByteBuffer(string: answer)).whenComplete { _ in channel.close(promise: nil) }
        }
        return channel.eventLoop.makeSucceededVoidFuture()
    }

    /// [network loop] NIO accepts without close-on-exec: a program that a plugin starts would keep a client's
    /// connection open after it was closed here.
    ///
    /// - Returns: Where the client is, and whether it got one of the process's last descriptors.
    private static func admit(_ channel: any Channel) throws -> (address: PeerAddress, isShort: Bool) {
        try channel.pipeline.syncOperations.withUnsafeTransportIfAvailable { (socket: NIOBSDSocket.Handle) in
            _ = fcntl(socket, F_SETFD, FD_CLOEXEC)
            return (PeerAddress(of: socket), !Descriptors.mayKeep(socket, isControl: true))
        } ?? (PeerAddress(v4: 0), false)
    }

    /// How long requests are answered that were sent before their client could see the end, and without how long a pause,
    /// milliseconds.
    private static let (longestRest, quiet) = (150, 25)

    /// How much of the time for the end is left for connections that close, ns.
    private static let closing: Int64 = 100_000_000

    /// Drops the first packet of each new connection, by a filter that lets nothing through (socket(7), SO_ATTACH_FILTER).
    /// The kernel resets those that wait to be accepted when the listener closes, after their clients have sent a request.
    /// A client whose packet was dropped sends it again after a second, and is refused then.
    private func refuseConnections() {
        // struct sock_filter: BPF_RET | BPF_K, no jumps, 0 bytes.
        var program: (UInt16, UInt8, UInt8, UInt32) = (0x06, 0, 0, 0)
        withUnsafeMutablePointer(to: &program) { program in
            /// struct sock_fprog.
            struct Filter {
                var length: UInt16
                var program: UnsafeMutableRawPointer
            }
            var filter = Filter(length: 1, program: UnsafeMutableRawPointer(program))
            // Where it is forbidden, some requests at the very end get no answer.
            _ = setsockopt(socket, SOL_SOCKET, 26, &filter, socklen_t(MemoryLayout<Filter>.size))
        }
    }

    /// Waits until no request has come for a moment, and none is being answered.
    private func waitForQuiet(_ end: Int64) {
        var (seen, pause) = (-1, 0)
        MonotonicTime.wait(milliseconds: Self.longestRest, until: end) {
            let (requests, busy) = connections.withLock { ($0.requests, $0.busy) }
            pause = requests == seen && busy == 0 ? pause + 1 : 0
            seen = requests
            return pause >= Self.quiet
        }
    }

    /// [thread of the end] Answers the requests that come now, gives answers under way a moment, and closes everything
    /// else, streams too.
    ///
    /// - Parameter end: When it has ended, by ``MonotonicTime``.
    func stop(by end: Int64 = MonotonicTime.now() + 500_000_000) {
        refuseConnections()
        connections.withLock { $0.isLeaving = true }
        waitForQuiet(end - Self.closing)
        connections.withLock { $0.isStopping = true }
        expiry.cancel()
        listener.close(promise: nil)
        MonotonicTime.wait(milliseconds: 200, until: end - Self.closing) { connections.withLock { $0.busy } == 0 }
        for channel in connections.withLock({ Array($0.open.values) }) {
            channel.pipeline.fireUserInboundEventTriggered(LiveSocket.ServerStops())
            channel.close(promise: nil)
        }
        // A task may still wait for a stage that does not answer.
        MonotonicTime.wait(milliseconds: 400, until: end) { tasks.now == 0 }
        MonotonicTime.wait(milliseconds: 200, until: end) { !listener.isActive }
    }
}

extension RequestHead {
    init(_ head: HTTPRequest) {
        self.init(
            method: head.method.rawValue, target: head.path ?? "", host: head.authority,
            fields: head.headerFields.map { ($0.name.canonicalName, $0.value) })
    }
}
