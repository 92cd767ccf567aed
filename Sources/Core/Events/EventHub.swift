// SPDX-License-Identifier: Apache-2.0

/// Gives the events of a run to several listeners.
///
/// Posting never waits for a listener. Each listener has a bounded box, which loses its oldest events when it is full.
final class EventHub: @unchecked Sendable {
    /// What a listener has not taken yet.
    private struct Box {
        let capacity: Int
        var events: [Event] = []
        var lost = 0
        var isEnding = false

        mutating func add(_ event: Event) {
            if events.count >= capacity {
                // Removes several at once, so that a full box does not move all its events for each that comes.
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
    /// What was posted before the first listener came. That listener gets it.
    private var backlog: Box? = Box(capacity: EventSubscription.capacity)

    /// [any thread] Gives `event` to every listener. All listeners get events in the same order.
    func post(_ event: Event) {
        condition.locked {
            backlog?.add(event)
            for number in boxes.keys { boxes[number]!.add(event) }
            condition.broadcast()
        }
    }

    /// [any thread] Adds a listener, which gets what is posted from now on. It also gets what was posted before, as
    /// long as no listener has taken that.
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
            guard !boxes[number]!.events.isEmpty || boxes[number]!.lost > 0 else { return ([], 0) }
            defer {
                boxes[number]!.events.removeAll(keepingCapacity: true)
                boxes[number]!.lost = 0
            }
            return (boxes[number]!.events, boxes[number]!.lost)
        }
    }

    fileprivate func wait(_ number: Int, until deadline: Int64) -> Bool {
        condition.locked {
            while boxes[number]!.events.isEmpty, !boxes[number]!.isEnding, ChainClock.system.now() < deadline {
                condition.wait(until: deadline)
            }
            return !boxes[number]!.events.isEmpty
        }
    }

    fileprivate func endWaits(_ number: Int) {
        condition.locked {
            boxes[number]!.isEnding = true
            condition.broadcast()
        }
    }
}

/// The events of a run that one listener has not taken yet. A listener that is slow loses the oldest, and learns how
/// many.
///
/// The subscription ends when it is freed. Every thread may use it.
public final class EventSubscription: Sendable {
    /// How many events wait for a listener that asks for no other number.
    public static let capacity = 4096
    private let hub: EventHub
    private let number: Int

    fileprivate init(_ hub: EventHub, _ number: Int) {
        self.hub = hub
        self.number = number
    }

    deinit { hub.remove(number) }

    /// [any thread] Takes all events since the last call, in the order in which they were posted. `lost` says how many
    /// older ones were lost.
    public func take() -> (events: [Event], lost: Int) { hub.take(number) }

    /// [any thread but a stage's] Waits until there is an event to take.
    ///
    /// - Parameter seconds: The longest wait.
    /// - Returns: False when no event came in time.
    public func wait(seconds: Double) -> Bool {
        hub.wait(number, until: ChainClock.system.now() + MediaTime(seconds: min(max(seconds, 0), 1e9)).nanoseconds)
    }

    /// [any thread] From here on ``wait(seconds:)`` does not wait, for a listener that ends.
    public func endWaits() { hub.endWaits(number) }
}
