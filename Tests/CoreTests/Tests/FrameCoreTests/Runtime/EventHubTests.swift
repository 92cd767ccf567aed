import Testing

@testable import FrameCore

@Suite struct EventHubTests {
    private func event(_ number: Int) -> Event { Event(name: "e\(number)", text: "", time: Int64(number)) }

    @Test func givesEachEventOnceInOrder() {
        let hub = EventHub()
        for number in 0..<3 { hub.post(event(number)) }
        let first = hub.drain()
        #expect(first.events.map(\.name) == ["e0", "e1", "e2"] && first.lost == 0)
        #expect(hub.drain().events.isEmpty)
    }

    @Test func losesTheOldestWhenNobodyReadsAndCountsThem() {
        let hub = EventHub()
        let count = EventHub.mostEvents * 3 + 17
        for number in 0..<count { hub.post(event(number)) }
        let (events, lost) = hub.drain()
        #expect(events.count <= EventHub.mostEvents)
        #expect(lost + events.count == count)
        #expect(events.map(\.time) == (lost..<count).map { Int64($0) }, "the newest are all there")
        hub.post(event(0))
        #expect(hub.drain().lost == 0, "each loss is told once")
    }

    @Test func takesEventsFromManyThreads() throws {
        let hub = EventHub()
        let threads = try (0..<4).map { thread in
            try TestThread("poster") { [self] in for number in 0..<500 { hub.post(event(thread * 1000 + number)) } }
        }
        var events: [Event] = []
        while threads.contains(where: { !$0.isOver }) { events += hub.drain().events }
        for thread in threads { thread.join() }
        events += hub.drain().events
        #expect(events.count == 2000)
        for thread in 0..<4 {
            let own = events.map(\.time).filter { $0 / 1000 == thread }
            #expect(own == own.sorted())
        }
    }

    @Test func ordersLevelsByWeight() {
        #expect(Event.Level.debug < .info && .info < .warning && .warning < Event.Level.error)
    }
}
