// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameHTTP
import FrameSupport

/// The WebSocket of one client: frames in and out, time, and what ``LiveSession`` wants done. [network loop]
///
/// Pings every 20 s and closes after two pings without an answer. Also closes where the client has read nothing for the
/// time limit of all streams.
final class LiveSocket: ChannelInboundHandler {
    typealias InboundIn = WebSocketFrame
    typealias OutboundOut = WebSocketFrame

    struct Timing: Sendable {
        /// Without progress for this time, the client has stopped reading.
        var progress: TimeAmount
        var ping = TimeAmount.seconds(20)
        /// How long a client may take to answer a close.
        var closing = TimeAmount.seconds(2)
    }

    /// The event of the pipeline that ends every socket: the server stops.
    struct ServerStops: Sendable {}

    private let api: ControlAPI
    private let caller: Caller
    private let timing: Timing
    private let tasks: TaskCount
    private let place: ControlAPI.Place
    private var session = LiveSession()
    private var context: ChannelHandlerContext?
    /// A message of several frames, of which the last has not come.
    private var parts: [UInt8]?
    private var partCount = 0
    private var ticker: RepeatedTask?
    /// How many messages, and how many bytes of them, were written and not yet taken by the kernel.
    private var pending = 0
    private var pendingBytes = 0
    private var lastProgress = NIODeadline.now()
    private var lastPing = NIODeadline.now()
    private var unanswered = 0
    private var hasSentClose = false
    /// A place for each open preview, which the metrics count.
    private var previews: [ControlAPI.Place] = []
    /// Its part in ``AnswerMemory`` while it is open.
    private var reader: AnswerMemory.Reader?
    /// Viewers in ``UnitFanOut``, by preview.
    private var watches: [LiveSession.Key: (stage: String, viewer: Int)] = [:]

    init(_ api: ControlAPI, _ caller: Caller, timing: Timing, tasks: TaskCount, place: ControlAPI.Place) {
        (self.api, self.caller, self.timing, self.tasks, self.place) = (api, caller, timing, tasks, place)
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        let socket = NIOLoopBound(self, eventLoop: context.eventLoop)
        let every = min(timing.ping, timing.progress, .seconds(1))
        ticker = context.eventLoop.scheduleRepeatedTask(initialDelay: every, delay: every) { _ in socket.value.tick() }
        let (place, channel) = (place, context.channel)
        context.channel.closeFuture.whenComplete { _ in place.leave() }
        reader = api.memory.reader { channel.close(promise: nil) }
    }

    func handlerRemoved(context: ChannelHandlerContext) { forget() }

    func channelInactive(context: ChannelHandlerContext) {
        forget()
        context.fireChannelInactive()
    }

    private func forget() {
        ticker?.cancel()
        ticker = nil
        reader = nil
        context = nil
        _ = session.end(1006, "")
        unwatchAll()
        previews = []
        place.leave()
    }

    // MARK: In

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let frame = Self.unwrapInboundIn(data)
        guard !hasSentClose || frame.opcode == .connectionClose else { return }
        guard frame.maskKey != nil, !frame.rsv1, !frame.rsv2, !frame.rsv3 else {
            return act(session.end(1002, "a client's frames must be masked and must not use extensions"))
        }
        let payload = frame.unmaskedData
        switch frame.opcode {
        case .text:
            guard parts == nil else { return act(session.end(1002, "a message starts within another message")) }
            guard frame.fin else {
                (parts, partCount) = ([], 0)
                return collect(payload)
            }
            take(Array(payload.readableBytesView))
        case .continuation:
            guard parts != nil else { return act(session.end(1002, "a continuation frame has no message to continue")) }
            collect(payload)
            guard frame.fin, let whole = parts else { return }
            parts = nil
            take(whole)
        case .binary: act(session.end(1003, "messages to the server must be text"))
        case .ping: write(.pong, payload)
        case .pong: unanswered = 0
        case .connectionClose:
            if !hasSentClose {
                hasSentClose = true
                // The client's status code is sent back to it.
                write(
                    .connectionClose,
                    payload.getSlice(at: payload.readerIndex, length: min(payload.readableBytes, 2)) ?? ByteBuffer())
            }
            close()
        default: act(session.end(1002, "the frame's opcode is unknown"))
        }
    }

    private func collect(_ payload: ByteBuffer) {
        partCount += 1
        guard partCount <= LiveProtocol.mostFragments,
            (parts?.count ?? 0) + payload.readableBytes <= LiveProtocol.mostMessageBytes
        else {
            parts = nil
            return act(
                session.end(
                    1009,
                    "a message must have at most \(LiveProtocol.mostMessageBytes) bytes in \(LiveProtocol.mostFragments) frames"
                ))
        }
        parts?.append(contentsOf: payload.readableBytesView)
    }

    private func take(_ bytes: [UInt8]) {
        guard !session.isClosed else { return }
        guard String(validating: bytes, as: UTF8.self) != nil else {
            return act(session.fail(LiveFault("message", "the message must be UTF-8", "Send JSON.")))
        }
        do {
            act(session.take(try LiveMessage(bytes), now: MonotonicTime.now()))
        } catch {
            act(session.fail(error as? LiveFault ?? LiveFault("message", "the message cannot be read", "Send JSON.")))
        }
        countPreviews()
    }

    /// The metrics count each preview as they count a viewer of MJPEG.
    private func countPreviews() {
        while previews.count > session.count { previews.removeLast().leave() }
        while previews.count < session.count, let place = api.place(\.previews, most: Int.max) {
            previews.append(place)
        }
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        guard let error = error as? NIOWebSocketError else { return close() }
        act(
            error == .invalidFrameLength
                ? session.end(1009, "a frame must have at most \(LiveProtocol.mostMessageBytes) bytes")
                : session.end(1002, "the frame must follow RFC 6455"))
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event is ServerStops {
            act(session.end(1001, "the run has ended"))
            close()
        } else if case ChannelEvent.inputClosed = event {
            // The client closed without a close frame, so it will acknowledge nothing.
            close()
        } else {
            context.fireUserInboundEventTriggered(event)
        }
    }

    // MARK: Time

    private func tick() {
        guard caller.isAlive() else { return act(session.end(1008, "the session has ended")) }
        let now = NIODeadline.now()
        if pending > 0, now - lastProgress > timing.progress { return close() }
        guard now - lastPing >= timing.ping, !session.isClosed else { return }
        guard unanswered < 2 else { return close() }
        lastPing = now
        unanswered += 1
        write(.ping, ByteBuffer())
    }

    // MARK: Out

    private func act(_ actions: [LiveSession.Action]) {
        for action in actions {
            switch action {
            case .text(let text): write(.text, ByteBuffer(string: text))
            case .binary(let head, let piece): write(.binary, piece, after: head)
            case .ask(let key, let stage, let form, let delay): ask(key, stage, form, delay)
            case .watch(let key, let stage, let codec): watch(key, stage, codec)
            case .unwatch(let key):
                if let watch = watches.removeValue(forKey: key) {
                    api.units.unwatch(watch.stage, viewer: watch.viewer)
                }
            case .wantKeyframe(let stage): api.units.wantKeyframe(stage)
            case .readEvents(let id): readEvents(after: id)
            case .close(let code, let reason):
                unwatchAll()
                sayGoodbye(code, reason)
            }
        }
    }

    /// The head goes before the payload in one frame, with room before it for the frame's own head. Clients share the
    /// payload.
    private func write(_ opcode: WebSocketOpcode, _ piece: AnswerMemory.Piece, after head: LiveHead) {
        let room = 16
        var buffer = ByteBufferAllocator().buffer(capacity: room + LiveProtocol.headBytes)
        buffer.writeRepeatingByte(0, count: room)
        buffer.moveReaderIndex(forwardBy: room)
        buffer.writeBytes(head.bytes)
        write(opcode, piece.buffer, after: buffer, of: piece)
    }

    /// - Parameters:
    ///   - head: The first bytes of the frame's payload.
    ///   - piece: Kept until the client has it.
    private func write(
        _ opcode: WebSocketOpcode, _ payload: ByteBuffer, after head: ByteBuffer? = nil,
        of piece: AnswerMemory.Piece? = nil, promise: EventLoopPromise<Void>? = nil
    ) {
        // After a close frame nothing is sent (RFC 6455 §5.5.1).
        guard let context, !hasSentClose || opcode == .connectionClose else {
            promise?.fail(ChannelError.ioOnClosedChannel)
            return
        }
        // A client that takes a little now and then makes progress, but the queue for it must still be limited.
        guard pending < LiveProtocol.mostPendingMessages, pendingBytes < LiveProtocol.longestPending else {
            promise?.fail(ChannelError.ioOnClosedChannel)
            return close()
        }
        let bytes = payload.readableBytes + (head?.readableBytes ?? 0)
        pending += 1
        pendingBytes += bytes
        if pending == 1 { hasProgressed() }
        let written = promise ?? context.eventLoop.makePromise()
        let socket = NIOLoopBound(self, eventLoop: context.eventLoop)
        written.futureResult.whenComplete { _ in
            withExtendedLifetime(piece) {}
            socket.value.pending -= 1
            socket.value.pendingBytes -= bytes
            socket.value.hasProgressed()
        }
        // NIO's encoder writes the extension data before the data, as parts of one frame, and copies neither.
        context.writeAndFlush(
            Self.wrapOutboundOut(WebSocketFrame(fin: true, opcode: opcode, data: payload, extensionData: head)),
            promise: written)
    }

    private func hasProgressed() {
        lastProgress = NIODeadline.now()
        reader?.progressed(holds: pendingBytes)
    }

    private func sayGoodbye(_ code: UInt16, _ reason: String) {
        guard !hasSentClose, let context else { return }
        hasSentClose = true
        var payload = ByteBuffer()
        payload.writeInteger(code)
        payload.writeString(reason)
        write(.connectionClose, payload)
        let socket = NIOLoopBound(self, eventLoop: context.eventLoop)
        context.eventLoop.scheduleTask(in: timing.closing) { socket.value.close() }
    }

    private func close() { context?.close(promise: nil) }

    // MARK: Pictures and events

    private func ask(_ key: LiveSession.Key, _ stage: String, _ form: PictureForm, _ delay: Int64) {
        guard let loop = context?.eventLoop else { return }
        let socket = NIOLoopBound(self, eventLoop: loop)
        api.pictures.ask(
            of: stage, as: form, isPreview: true, after: delay, patience: PictureStream.patienceNs,
            permit: api.permit(caller)
        ) { outcome in
            loop.execute { socket.value.take(outcome, for: key) }
        }
    }

    private func take(_ outcome: PictureRequests.Outcome, for key: LiveSession.Key) {
        // After the end of the run, nothing is answered.
        guard !api.events.isClosed else { return act(session.end(1001, "the run has ended")) }
        act(session.take(outcome, for: key, now: MonotonicTime.now()))
        countPreviews()
    }

    private func watch(_ key: LiveSession.Key, _ stage: String, _ codec: Codec) {
        guard let loop = context?.eventLoop else { return }
        let socket = NIOLoopBound(self, eventLoop: loop)
        let viewer = api.units.watch(stage, codec, permit: api.permit(caller)) { news in
            loop.execute { socket.value.take(news, for: key) }
        }
        watches[key] = (stage, viewer)
    }

    private func unwatchAll() {
        for watch in watches.values { api.units.unwatch(watch.stage, viewer: watch.viewer) }
        watches = [:]
    }

    private func take(_ news: UnitFanOut.News, for key: LiveSession.Key) {
        let isCongested = pendingBytes > LiveProtocol.mostPendingBytes
        act(session.take(news, for: key, isCongested: isCongested, now: MonotonicTime.now()))
        countPreviews()
    }

    private func readEvents(after id: String?) {
        guard let context else { return }
        let ring = api.events
        // Events count from this moment on, not from the start of the task that writes them.
        let last = EventStream.number(lastSeen: id, run: ring.run) ?? ring.next - 1
        guard let place = api.place(\.events, most: EventStream.mostClients) else {
            return act(session.end(1013, "\(EventStream.mostClients) clients already read events"))
        }
        let listener = ring.addListener()
        context.channel.closeFuture.whenComplete { _ in ring.end(listener) }
        let loop = context.eventLoop
        let socket = NIOLoopBound(self, eventLoop: loop)
        tasks.begin()
        ServerThreads.shared.begin { [tasks] in
            await EventStream.messages(ring, listener, after: last) { text in
                try await loop.flatSubmit {
                    let promise = loop.makePromise(of: Void.self)
                    socket.value.write(.text, ByteBuffer(string: text), promise: promise)
                    return promise.futureResult
                }.get()
            }
            ring.remove(listener)
            place.leave()
            loop.execute { if ring.isClosed { socket.value.runHasEnded() } }
            tasks.end()
        }
    }

    private func runHasEnded() { act(session.end(1001, "the run has ended")) }
}

/// Tasks that use the server's loop, which must not end before them.
final class TaskCount: Sendable {
    private let count = Locked(0)
    var now: Int { count.withLock { $0 } }
    func begin() { count.withLock { $0 += 1 } }
    func end() { count.withLock { $0 -= 1 } }
}
