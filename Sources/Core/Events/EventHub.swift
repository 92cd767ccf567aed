/// Gives the events of a run to each of several listeners.
///
/// Whoever posts never waits for a listener: each has a bounded box, which loses its oldest.
final class EventHub: @unchecked Sendable {
    /// What a listener has not taken yet.
    private struct Box {
        let capacity: Int
        var events: [Event] = []
        var lost = 0

        mutating func add(_ event: Event) {
            if events.count >= capacity {
                // Some at once, so that a full box does not move all its events for each that comes.
                let count = max(capacity / 4, 1)
                events.removeFirst(count)
                lost += count
            }
            events.append(event)
        }
    }

    private let condition = Condition()
    // Below: under `condition`.
    private var boxes: [Int: Box] = [:]
    private var nextNumber = 0
    /// What came before the first listener did; it is that one's.
    private var backlog: Box? = Box(capacity: EventSubscription.capacity)

    /// [any thread] Gives `event` to every listener, to all of them in the same order.
    func post(_ event: Event) {
        condition.locked {
            backlog?.add(event)
            for number in boxes.keys { boxes[number]!.add(event) }
            condition.broadcast()
        }
    }

    /// [any thread] A further listener, who gets what is posted from now on; the first of all also what was posted
    /// before.
    ///
    /// - Parameter takesBacklog: False leaves what was posted before to the next listener too.
    func subscribe(capacity: Int = EventSubscription.capacity, takesBacklog: Bool = true) -> EventSubscription {
        let number = condition.locked { () -> Int in
            var box = Box(capacity: max(capacity, 1))
            if let missed = backlog {
                for event in missed.events { box.add(event) }
                box.lost += missed.lost
                if takesBacklog { backlog = nil }
            }
            boxes[nextNumber] = box
            nextNumber += 1
            return nextNumber - 1
        }
        return EventSubscription(self, number)
    }

    var listenerCount: Int { condition.locked { boxes.count } }

    fileprivate func remove(_ number: Int) { condition.locked { boxes[number] = nil } }

    fileprivate func take(_ number: Int) -> (events: [Event], lost: Int) {
        condition.locked {
            defer {
                boxes[number]!.events.removeAll(keepingCapacity: true)
                boxes[number]!.lost = 0
            }
            return (boxes[number]!.events, boxes[number]!.lost)
        }
    }

    fileprivate func wait(_ number: Int, until deadline: Int64) -> Bool {
        condition.locked {
            while boxes[number]!.events.isEmpty, ChainClock.system.now() < deadline { condition.wait(until: deadline) }
            return !boxes[number]!.events.isEmpty
        }
    }
}

/// One listener's events of a run: those it has not taken yet, at most so many. Whoever is slow loses the oldest, and is
/// told how many.
///
/// Ends when it is let go. Safe from every thread.
public final class EventSubscription: Sendable {
    /// Events that a listener has room for unless it asks for another number.
    public static let capacity = 4096
    private let hub: EventHub
    private let number: Int

    fileprivate init(_ hub: EventHub, _ number: Int) {
        self.hub = hub
        self.number = number
    }

    deinit { hub.remove(number) }

    /// [any thread] All events since the last call in the order they were posted, and how many older ones were lost.
    public func take() -> (events: [Event], lost: Int) { hub.take(number) }

    /// [any thread but a stage's] Waits until there is an event to take; false when none came in time.
    ///
    /// - Parameter seconds: How long at most.
    public func wait(seconds: Double) -> Bool {
        hub.wait(number, until: ChainClock.system.now() + MediaTime(seconds: min(max(seconds, 0), 1e9)).nanoseconds)
    }
}
