// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// One client of the WebSocket: what it watches, and what must be sent to it. A value without socket or clock, whose
/// methods return what to do. [network loop]
///
/// A JPEG preview has one picture in flight. The next one is asked for when the client has answered that it has drawn
/// the last, so that a slow client gets fewer pictures, each the newest. The channel alone cannot tell this, since a
/// browser accepts everything. A preview of access units has several in flight (``UnitFlow``).
struct LiveSession {
    /// Names a preview for as long as it is open: a client may use its own number again.
    typealias Key = Int

    enum Action: Equatable {
        case text(String)
        /// Ask ``PictureRequests`` for the next picture; its answer goes to ``take(_:for:now:)``.
        case ask(Key, stage: String, form: PictureForm, delayNs: Int64)
        /// Watch a stage's access units; each goes to ``take(_:for:now:)``.
        case watch(Key, stage: String, Codec)
        case unwatch(Key)
        case wantKeyframe(stage: String)
        case binary(LiveHead, AnswerMemory.Piece)
        case readEvents(after: String?)
        case close(UInt16, String)
    }

    private struct Preview {
        var key: Key
        var request: PreviewRequest
        var isPaused = false
        /// Whether ``PictureRequests`` has a request of this preview.
        var isAsked = false
        /// Whether the next answer of ``PictureRequests`` will be for an earlier request.
        var isStale = false
        /// The picture that the client has not yet reported as drawn.
        var inFlight: UInt32?
        var number: UInt32 = 0
        /// No picture is due before this time of the system clock.
        var due: Int64 = 0
        var hasSaidNone = false
        /// Of access units only.
        var flow = UnitFlow()
    }

    private var previews: [UInt16: Preview] = [:]
    private var nextKey = 1
    /// Requests at ``PictureRequests`` whose preview was closed.
    private var orphans = 0
    private var readsEvents = false
    private var messages = 0
    private var second: Int64 = 0
    private(set) var isClosed = false

    /// Previews that are open.
    var count: Int { previews.count }

    // MARK: What the client says

    mutating func take(_ message: LiveMessage, now: Int64) -> [Action] {
        guard !isClosed else { return [] }
        if now / 1_000_000_000 != second { (second, messages) = (now / 1_000_000_000, 0) }
        messages += 1
        guard messages <= LiveProtocol.mostMessagesPerSecond else {
            return fail(
                LiveFault(
                    "message",
                    "a client must send at most \(LiveProtocol.mostMessagesPerSecond) messages a second, but has sent more",
                    "Send fewer messages: one 'shown' for each picture."))
        }
        switch message {
        case .open(let id, let request): return open(id, request, now)
        case .close(let id): return close(id)
        case .pause(let id): return pause(id)
        case .resume(let id): return resume(id, now)
        case .shown(let id, let number):
            if previews[id]?.request.kind.codec != nil {
                previews[id]?.flow.shown(number)
                return []
            }
            guard previews[id]?.inFlight == number else { return [] }
            previews[id]?.inFlight = nil
            return next(id, now)
        case .ping(let number):
            let answer: JSONNode = ["pong": .number(number), "now": .number(now)]
            return [.text(answer.text())]
        case .events(let id):
            guard !readsEvents else {
                return fail(
                    LiveFault(
                        "events", "this connection already reads events", "Send 'events' once for each connection."))
            }
            readsEvents = true
            return [.readEvents(after: id)]
        }
    }

    private mutating func open(_ id: UInt16, _ request: PreviewRequest, _ now: Int64) -> [Action] {
        if var preview = previews[id], preview.request.stage == request.stage, preview.request.kind == request.kind {
            preview.isStale = preview.isStale || preview.isAsked && preview.request.form != request.form
            preview.request = request
            preview.due = min(preview.due, now + request.intervalNs)
            previews[id] = preview
            return next(id, now)
        }
        let closing = close(id)
        guard previews.count < LiveProtocol.mostPreviews else {
            return closing
                + fail(
                    LiveFault(
                        "open", "this connection already has \(LiveProtocol.mostPreviews) previews, the most",
                        "Connect again, and close a preview before you open another."))
        }
        guard orphans < LiveProtocol.mostPreviews else {
            return fail(
                LiveFault(
                    "open", "previews are opened and closed faster than the stages answer",
                    "To change a preview, open it again with its number, without closing it first."))
        }
        previews[id] = Preview(key: nextKey, request: request, due: now)
        nextKey += 1
        if request.kind.codec != nil { return closing + watch(id) }
        return closing + next(id, now)
    }

    private mutating func close(_ id: UInt16) -> [Action] {
        guard let preview = previews.removeValue(forKey: id) else { return [] }
        if preview.isAsked { orphans += 1 }
        return preview.request.kind.codec != nil && !preview.isPaused ? [.unwatch(preview.key)] : []
    }

    private mutating func pause(_ id: UInt16) -> [Action] {
        guard let preview = previews[id], !preview.isPaused else { return [] }
        previews[id]?.isPaused = true
        return preview.request.kind.codec != nil ? [.unwatch(preview.key)] : []
    }

    private mutating func resume(_ id: UInt16, _ now: Int64) -> [Action] {
        guard let preview = previews[id], preview.isPaused else { return [] }
        previews[id]?.isPaused = false
        guard preview.request.kind.codec != nil else { return next(id, now) }
        // Units that are still on their way belong to the former key.
        previews[id]?.key = nextKey
        nextKey += 1
        previews[id]?.flow.restart()
        return watch(id)
    }

    private func watch(_ id: UInt16) -> [Action] {
        guard let preview = previews[id], let codec = preview.request.kind.codec else { return [] }
        return [.watch(preview.key, stage: preview.request.stage, codec)]
    }

    /// Asks for the next picture where one is due.
    private mutating func next(_ id: UInt16, _ now: Int64) -> [Action] {
        guard let preview = previews[id], preview.request.kind == .jpeg, !preview.isPaused, !preview.isAsked,
            preview.inFlight == nil
        else { return [] }
        previews[id]?.isAsked = true
        return [
            .ask(
                preview.key, stage: preview.request.stage, form: preview.request.form,
                delayNs: max(preview.due - now, 0))
        ]
    }

    // MARK: What PictureRequests answers

    mutating func take(_ outcome: PictureRequests.Outcome, for key: Key, now: Int64) -> [Action] {
        guard !isClosed else { return [] }
        guard let (id, preview) = previews.first(where: { $0.value.key == key }) else {
            orphans = max(orphans - 1, 0)
            return []
        }
        previews[id]?.isAsked = false
        previews[id]?.isStale = false
        guard !preview.isPaused else { return [] }
        switch outcome {
        case .failed(let error):
            previews[id] = nil
            return [.text(Self.ended(id, Answer.json(error)))]
        case .refused(let refusal):
            previews[id] = nil
            return [.text(Self.ended(id, Answer.json(refusal)))]
        case .none:
            previews[id]?.due = now
            guard !preview.hasSaidNone else { return next(id, now) }
            previews[id]?.hasSaidNone = true
            let none: JSONNode = ["none": .number(Int(id))]
            return [.text(none.text())] + next(id, now)
        case .crowded:
            // This picture is lost to all who asked for it.
            previews[id]?.due = now + preview.request.intervalNs
            return next(id, now)
        case .shot(let shot):
            guard !preview.isStale else { return next(id, now) }
            let number = preview.number &+ 1
            previews[id]?.number = number
            previews[id]?.inFlight = number
            previews[id]?.hasSaidNone = false
            // Keeps the interval. A late picture is not made up for.
            previews[id]?.due = max(preview.due + preview.request.intervalNs, now - preview.request.intervalNs)
            let head = LiveHead(
                kind: .jpeg, preview: id, number: number, sequenceNumber: shot.sequenceNumber,
                capturedAt: shot.capturedAt)
            return [.binary(head, shot.piece)]
        }
    }

    // MARK: What UnitFanOut gives

    mutating func take(_ news: UnitFanOut.News, for key: Key, isCongested: Bool = false, now: Int64) -> [Action] {
        guard !isClosed, let (id, preview) = previews.first(where: { $0.value.key == key }), !preview.isPaused else {
            return []
        }
        switch news {
        case .failed(let error):
            previews[id] = nil
            return [.unwatch(key), .text(Self.ended(id, Answer.json(error)))]
        case .refused(let refusal):
            previews[id] = nil
            return [.unwatch(key), .text(Self.ended(id, Answer.json(refusal)))]
        case .unit(let unit):
            let verdict = previews[id]?.flow.offer(
                isKeyframe: unit.header.isKeyframe, followsGap: unit.followsGap, bytes: unit.piece.count,
                isCongested: isCongested, now: now)
            switch verdict {
            case .send(let followsGap)?:
                let number = previews[id]?.flow.number ?? 0
                let head = LiveHead(
                    unit.header, kind: preview.request.kind, preview: id, number: number, followsGap: followsGap)
                return [.binary(head, unit.piece)]
            case .leaveOut(let wantsKeyframe)?:
                return wantsKeyframe ? [.wantKeyframe(stage: preview.request.stage)] : []
            case nil: return []
            }
        }
    }

    static func ended(_ id: UInt16, _ error: JSONNode) -> String {
        let ended: JSONNode = ["ended": .number(Int(id)), "error": error]
        return ended.text()
    }

    // MARK: Faults

    /// Tells the client what was wrong, and closes the socket: 1007 for an invalid message, 1008 for one that is
    /// refused.
    mutating func fail(_ fault: LiveFault) -> [Action] {
        let error: JSONNode = ["error": fault.json]
        let code: UInt16 = fault.place == "message" ? 1007 : 1008
        return [.text(error.text())] + end(code, "\(fault.place): \(fault.what)")
    }

    /// - Parameter reason: Cut to the room in a close frame.
    mutating func end(_ code: UInt16, _ reason: String) -> [Action] {
        guard !isClosed else { return [] }
        isClosed = true
        previews = [:]
        var short = reason
        while short.utf8.count > 120 { short.removeLast() }
        return [.close(code, short)]
    }
}
