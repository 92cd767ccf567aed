/// A bounded mailbox of events from every thread to the control thread. When it is full the oldest go, counted.
final class EventHub: @unchecked Sendable {
    static let mostEvents = 4096
    private let condition = Condition()
    // Below: under `condition`.
    private var events: [Event] = []
    private var lost = 0

    /// [any thread] Never waits for a reader.
    func post(_ event: Event) {
        condition.locked {
            if events.count >= Self.mostEvents {
                events.removeFirst(Self.mostEvents / 4)
                lost += Self.mostEvents / 4
            }
            events.append(event)
        }
    }

    /// [control thread] All events since the last call, and how many were lost.
    func drain() -> (events: [Event], lost: Int) {
        condition.locked {
            defer {
                events.removeAll(keepingCapacity: true)
                lost = 0
            }
            return (events, lost)
        }
    }
}
