// SPDX-License-Identifier: Apache-2.0

import FrameCore
import FrameSupport

/// Server-sent events (WHATWG HTML, 9.2): `id` and one line of `data` for each event, and a comment where nothing
/// happens.
enum EventStream {
    static let type = "text/event-stream; charset=utf-8"
    /// The most clients at once.
    static let mostClients = 2000
    /// A comment is sent after this time without events, since a proxy might close an idle connection.
    static let commentNs: Int64 = 15_000_000_000
    /// Milliseconds after which a client asks again.
    static let retryMs = 2000

    static func text(_ batch: EventRing.Batch, run: String) -> String {
        var text = ""
        if batch.lost > 0 {
            let lost: JSONNode = ["event": "events-lost", "count": .number(batch.lost)]
            text += "data: \(lost.text())\n\n"
        }
        for event in batch.events { text += "id: \(run)-\(event.number)\ndata: \(event.text)\n\n" }
        return text
    }

    /// A message of the WebSocket for each event, after one for lost events.
    static func messages(_ batch: EventRing.Batch, run: String) -> [String] {
        let lost = batch.lost > 0 ? ["{\"lost\":\(batch.lost)}"] : []
        return lost + batch.events.map { "{\"id\":\"\(run)-\($0.number)\",\"event\":\($0.text)}" }
    }

    /// Writes new events as messages until the listener has gone or the run has ended.
    static func messages(
        _ ring: EventRing, _ listener: Int, after last: Int?, write: (String) async throws -> Void
    ) async {
        var next = last.map { min($0 + 1, ring.next) } ?? ring.next
        while !ring.hasGone(listener) {
            let batch = ring.read(from: next)
            next = batch.next
            do {
                for message in messages(batch, run: ring.run) { try await write(message) }
            } catch {
                return
            }
            guard batch.events.isEmpty else { continue }
            if ring.isClosed { return }
            await ring.wait(listener, for: next, until: .max)
        }
    }

    /// The number of the last event that a client has seen; nil for an id of another run, or for a text that is not an
    /// id.
    static func number(lastSeen id: String?, run: String) -> Int? {
        guard let id, let dash = id.lastIndex(of: "-"), id[..<dash] == run else { return nil }
        let digits = id[id.index(after: dash)...]
        guard (1...18).contains(digits.utf8.count), digits.utf8.allSatisfy({ (48...57).contains($0) }) else {
            return nil
        }
        return Int(digits)
    }
}

extension ControlAPI {
    func eventStream(_ call: Call) throws -> Answer {
        let ring = events
        let last = EventStream.number(lastSeen: call.head["last-event-id"], run: ring.run)
        guard let place = place(\.events, most: EventStream.mostClients) else {
            throw Self.tooMany("\(EventStream.mostClients) clients already read events")
        }
        return Answer(
            200, EventStream.type,
            .stream { writer in
                defer { place.leave() }
                try await Self.stream(ring, after: last, to: writer, while: call.caller.isAlive)
            })
    }

    static func tooMany(_ what: String) -> Refusal {
        Refusal(503, "exhausted", place: "connections", what, "Close one of them, or try again later.")
    }

    private static func stream(
        _ ring: EventRing, after last: Int?, to writer: any StreamWriter, while isAlive: @Sendable () -> Bool
    ) async throws {
        let listener = ring.addListener()
        defer { ring.remove(listener) }
        writer.whenClosed { ring.end(listener) }
        // The comment that is then written shows whether the client still reads.
        writer.whenHalfClosed { ring.wake(listener) }
        // A number that was not used yet cannot be from this run.
        var next = last.map { min($0 + 1, ring.next) } ?? ring.next
        try await writer.write(Array("retry: \(EventStream.retryMs)\n\n".utf8))
        while !ring.hasGone(listener), isAlive() {
            let batch = ring.read(from: next)
            next = batch.next
            if !batch.events.isEmpty || batch.lost > 0 {
                try await writer.write(Array(EventStream.text(batch, run: ring.run).utf8))
                continue
            }
            if ring.isClosed { return }
            let deadline = MonotonicTime.now() + EventStream.commentNs
            await ring.wait(listener, for: next, until: deadline)
            if ring.next <= next, !ring.isClosed, !ring.hasGone(listener) {
                try await writer.write(Array(": nothing new\n\n".utf8))
            }
        }
    }
}
