// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import ControlServer
@testable import FrameCore

@Suite struct EventRingTests {
    @Test func givesEachListenerEveryEventInOrder() {
        let ring = EventRing(run: "r")
        let first = ring.next
        for number in 1...3 { ring.append("e\(number)") }
        #expect(ring.read(from: first).events.map(\.text) == ["e1", "e2", "e3"])
        #expect(ring.read(from: 2, most: 1).events.map(\.text) == ["e2"])
        #expect(ring.read(from: 4).events.isEmpty)
    }

    @Test func tellsASlowListenerHowManyItLost() {
        let ring = EventRing(run: "r", capacity: 8)
        for number in 1...20 { ring.append("e\(number)") }
        var (seen, lost, next) = (0, 0, 1)
        while true {
            let batch = ring.read(from: next, most: 3)
            if batch.events.isEmpty { break }
            seen += batch.events.count
            lost += batch.lost
            next = batch.next
        }
        #expect(lost > 0)
        #expect(seen + lost == 20)
        #expect(ring.read(from: next).events.isEmpty)
    }

    @Test func keepsNoMoreThanSoManyBytes() {
        let ring = EventRing(run: "r")
        let long = String(repeating: "x", count: 1 << 20)
        for _ in 1...40 { ring.append(long) }
        let batch = ring.read(from: 1)
        #expect((1...4).contains(40 - batch.lost) && batch.events.count == 1, "a long one is a batch of its own")
        ring.append(String(repeating: "y", count: 8 << 20))
        #expect(ring.read(from: 1).events.count == 1, "the newest is given, whatever its length")
    }

    @Test func wakesWhoeverWaits() async {
        let ring = EventRing(run: "r")
        let listener = ring.addListener()
        let next = ring.next
        async let wait: Void = ring.wait(listener, for: next, until: Int64.max)
        ring.append("e")
        await wait
        #expect(ring.next == 2)
    }

    @Test func endsAWaitByItsDeadlineByItsClientsEndAndByClosing() async {
        let ring = EventRing(run: "r")
        let (late, gone, last) = (ring.addListener(), ring.addListener(), ring.addListener())
        async let a: Void = ring.wait(late, for: 1, until: 100)
        async let b: Void = ring.wait(gone, for: 1, until: Int64.max)
        async let c: Void = ring.wait(last, for: 1, until: Int64.max)
        // A wait that begins after its end was told does not begin at all, so none of these can be too early.
        let ticking = Task { while !Task.isCancelled { ring.tick(100); await Task.yield() } }
        await a
        ticking.cancel()
        ring.end(gone)
        await b
        ring.close()
        await c
        #expect(ring.hasGone(gone) && ring.isClosed)
    }

    @Test(
        arguments: [
            ("r-7", 7), ("r-0", 0), ("q-7", nil), ("r", nil), ("r-", nil), ("r--1", nil),
            ("r-99999999999999999999", nil),
            ("", nil), ("r-7x", nil),
        ] as [(String, Int?)]) func readsOnlyIdsOfItsRun(id: String, number: Int?)
    {
        #expect(EventStream.number(lastSeen: id, run: "r") == number)
    }

    @Test func writesServerSentEvents() {
        let batch = EventRing.Batch(events: [(7, #"{"event":"x"}"#)], lost: 2, next: 8)
        #expect(
            EventStream.text(batch, run: "r")
                == "data: {\"event\":\"events-lost\",\"count\":2}\n\nid: r-7\ndata: {\"event\":\"x\"}\n\n")
    }
}

/// A client in a test: collects what is written, and goes when it has enough.
final class Listener: StreamWriter {
    struct Gone: Error {}
    private struct State {
        var text: [UInt8] = []
        var actions: [@Sendable () -> Void] = []
        var isGone = false
    }
    private let state = Locked(State())
    private let enough: @Sendable (String) -> Bool

    init(until enough: @escaping @Sendable (String) -> Bool) { self.enough = enough }

    var text: String { state.withLock { String(decoding: $0.text, as: UTF8.self) } }

    func write(_ bytes: [UInt8]) async throws {
        let actions = try state.withLock { state in
            if state.isGone { throw Gone() }
            state.text += bytes
            guard enough(String(decoding: state.text, as: UTF8.self)) else { return [] as [@Sendable () -> Void] }
            state.isGone = true
            return state.actions
        }
        for action in actions { action() }
    }

    func whenClosed(_ action: @escaping @Sendable () -> Void) { state.withLock { $0.actions.append(action) } }
}

@Suite struct EventStreamTests {
    private func read(_ api: ControlAPI, lastSeen: String? = nil, until enough: @escaping @Sendable (String) -> Bool)
        async throws -> String
    {
        let asked = await api.ask(
            "GET", "/api/v1/events", fields: lastSeen.map { ["last-event-id": $0] } ?? [:])
        #expect(asked.field("Content-Type") == "text/event-stream; charset=utf-8")
        guard case .stream(let run) = asked.answer.body else { throw Listener.Gone() }
        let listener = Listener(until: enough)
        try? await run(listener)
        return listener.text
    }

    @Test func goesOnBehindTheLastSeenEvent() async throws {
        let api = ControlAPI.over(FakeRun())
        for number in 1...5 { api.events.append("{\"n\":\(number)}") }
        let text = try await read(api, lastSeen: "run-3") { $0.contains("run-5") }
        #expect(text == "retry: 2000\n\nid: run-4\ndata: {\"n\":4}\n\nid: run-5\ndata: {\"n\":5}\n\n")
    }

    @Test func beginsWithWhatComesForAnIdOfAnotherRun() async throws {
        let api = ControlAPI.over(FakeRun())
        for number in 1...5 { api.events.append("{\"n\":\(number)}") }
        async let text = read(api, lastSeen: "other-3") { $0.contains("data") }
        let more = Task {
            while !Task.isCancelled {
                api.events.append(#"{"n":"more"}"#)
                await Task.yield()
            }
        }
        #expect(try await text.contains(#"data: {"n":"more"}"#))
        #expect(!(try await text.contains(#"{"n":5}"#)))
        more.cancel()
        #expect(api.viewers.withLock { $0.events } == 0)
    }

    @Test func endsWithTheRun() async throws {
        let api = ControlAPI.over(FakeRun())
        api.events.append("{}")
        api.events.close()
        #expect(try await read(api, lastSeen: "run-0") { _ in false } == "retry: 2000\n\nid: run-1\ndata: {}\n\n")
    }

    @Test func refusesMoreClientsThanItTakes() async {
        let api = ControlAPI.over(FakeRun())
        api.viewers.withLock { $0.events = EventStream.mostClients }
        #expect(await api.ask("GET", "/api/v1/events").status == 503)
    }
}
