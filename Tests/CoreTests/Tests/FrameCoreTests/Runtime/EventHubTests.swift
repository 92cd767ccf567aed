// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import FrameCore

@Suite struct EventHubTests {
    private func event(_ number: Int) -> Event { Event(name: "e\(number)", text: "", time: Int64(number)) }

    @Test func givesEachEventOnceInOrder() {
        let hub = EventHub()
        let listener = hub.subscribe()
        for number in 0..<3 { hub.post(event(number)) }
        let first = listener.take()
        #expect(first.events.map(\.name) == ["e0", "e1", "e2"] && first.lost == 0)
        #expect(listener.take().events.isEmpty)
    }

    @Test func givesTheFirstListenerWhatCameBeforeItAndAnotherWhatComesAfter() {
        let hub = EventHub()
        hub.post(event(0))
        let first = hub.subscribe()
        let second = hub.subscribe()
        hub.post(event(1))
        #expect(first.take().events.map(\.name) == ["e0", "e1"])
        #expect(second.take().events.map(\.name) == ["e1"])
    }

    @Test func losesTheOldestWhenNobodyReadsAndCountsThem() {
        let hub = EventHub()
        let count = EventSubscription.capacity + 17
        // Without a listener, then with one.
        for number in 0..<count { hub.post(event(number)) }
        let listener = hub.subscribe()
        for expected in [count, count] {
            let (events, lost) = listener.take()
            #expect(events.count <= EventSubscription.capacity)
            #expect(lost + events.count == expected)
            #expect(events.map(\.time) == (lost..<count).map { Int64($0) }, "the newest are all there")
            for number in 0..<count { hub.post(event(number)) }
        }
        _ = listener.take()
        hub.post(event(0))
        #expect(listener.take().lost == 0, "each loss is told once")
    }

    @Test func aSlowListenerCostsTheOthersNothing() {
        let hub = EventHub()
        let (slow, quick) = (hub.subscribe(capacity: 2), hub.subscribe(capacity: 100))
        for number in 0..<9 { hub.post(event(number)) }
        #expect(quick.take().events.count == 9)
        let (events, lost) = slow.take()
        #expect(events.map(\.time) == [7, 8] && lost == 7)
    }

    @Test func endsWithItsListener() {
        let hub = EventHub()
        var listener: EventSubscription? = hub.subscribe()
        #expect(hub.listenerCount == 1)
        _ = listener?.take()
        listener = nil
        #expect(hub.listenerCount == 0)
        hub.post(event(0))
        #expect(hub.subscribe().take().events.isEmpty, "what came while nobody listened is nobody's")
    }

    @Test func waitsForAnEvent() throws {
        let hub = EventHub()
        let listener = hub.subscribe()
        #expect(!listener.wait(seconds: 0))
        let poster = try TestThread("poster") { [self] in hub.post(event(1)) }
        #expect(listener.wait(seconds: 20))
        poster.join()
        #expect(listener.wait(seconds: 1e300), "it is there already")
        #expect(listener.take().events.count == 1)
    }

    @Test func waitsNoLongerOnceItsListenerEnds() throws {
        let hub = EventHub()
        let (listener, other) = (hub.subscribe(), hub.subscribe())
        let waiter = try TestThread("waiter") { #expect(!listener.wait(seconds: 600)) }
        pauseTest(ms: 20)
        listener.endWaits()
        waiter.join()
        #expect(!listener.wait(seconds: 600) && !other.wait(seconds: 0))
        hub.post(event(1))
        #expect(listener.wait(seconds: 600) && listener.take().events.count == 1, "it still gets the last events")
    }

    @Test func takesEventsFromManyThreads() throws {
        let hub = EventHub()
        let listeners = (0..<3).map { _ in hub.subscribe() }
        let threads = try (0..<4).map { thread in
            try TestThread("poster") { [self] in for number in 0..<500 { hub.post(event(thread * 1000 + number)) } }
        }
        var events: [[Event]] = [[], [], []]
        while threads.contains(where: { !$0.isOver }) {
            for (index, listener) in listeners.enumerated() { events[index] += listener.take().events }
        }
        for thread in threads { thread.join() }
        for (index, listener) in listeners.enumerated() { events[index] += listener.take().events }
        #expect(events.allSatisfy { $0.count == 2000 })
        #expect(events.allSatisfy { $0.map(\.time) == events[0].map(\.time) }, "one order for all")
        for thread in 0..<4 {
            let own = events[0].map(\.time).filter { $0 / 1000 == thread }
            #expect(own == own.sorted())
        }
    }

    @Test func ordersLevelsByWeight() {
        #expect(Event.Level.debug < .info && .info < .warning && .warning < Event.Level.error)
    }
}
