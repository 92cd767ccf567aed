// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The PullPoint subscriptions of all clients. Everything is bounded; times are nanoseconds of the monotonic clock, and
/// seconds since 1970 in messages.
final class EventDesk: Sendable {
    static let mostSubscriptions = 16
    /// Subscriptions of one address.
    static let mostOfAnAddress = 4
    /// Seconds without a PullMessages after which a subscription may be ended for a new one.
    static let idleTime = 30.0
    /// Of a subscription. The states of 32 video sources, of three topics each, find room.
    static let mostMessages = 96
    /// Of a PullMessages, seconds.
    static let longestPull = 60.0
    /// Of a subscription: unless asked otherwise, and the bounds of what may be asked for. Seconds.
    static let (usualLife, shortestLife, longestLife) = (600.0, 10.0, 3600.0)

    /// One notification: a topic of a property.
    struct Message: Sendable, Equatable {
        var topic: String
        var change: EventState.Change
        /// Seconds since 1970.
        var at: Int64
        /// Whether it tells a state that was there before.
        var isFirst: Bool
    }

    struct Pulled: Sendable {
        var messages: [Message]
        /// Seconds until the subscription ends.
        var left: Double
    }

    private struct Pull {
        var number: UInt64
        var most: Int
        var until: Int64
        var give: @Sendable (Pulled?) -> Void
    }

    private struct Subscription {
        var filter: TopicFilter
        /// The address of who made it.
        var client: String
        var messages: [Message] = []
        var ends: Int64
        var pull: Pull?
        /// When the last PullMessages came or was answered; before the first one, when the subscription was made.
        var pulled: Int64

        /// Queues what the filter takes of changes, one message for each topic. The oldest messages go if there are too
        /// many.
        ///
        /// - Returns: How many went.
        mutating func queue(_ changes: [EventState.Change], at wall: Int64, isFirst: Bool) -> Int {
            messages += changes.flatMap { change in
                filter.topics(of: change.property.kind).map {
                    Message(topic: $0, change: change, at: wall, isFirst: isFirst)
                }
            }
            let lost = max(messages.count - EventDesk.mostMessages, 0)
            messages.removeFirst(lost)
            return lost
        }
    }

    private struct State {
        var properties = EventState()
        var subscriptions: [String: Subscription] = [:]
        var lost = 0
        var pulls: UInt64 = 0
        var isClosed = false
    }

    /// To be called when the lock is free again.
    private typealias Due = @Sendable () -> Void

    private let state = Locked(State())

    /// Subscriptions at this moment, and messages that were lost in full ones.
    var counts: (subscriptions: Int, lost: Int) { state.withLock { ($0.subscriptions.count, $0.lost) } }

    /// Kinds of properties that the device has.
    var kinds: Set<EventProperty.Kind> { state.withLock { Set($0.properties.all.map(\.property.kind)) } }

    private static func ns(_ seconds: Double) -> Int64 { Int64(seconds * 1e9) }

    private static func life(_ seconds: Double?) -> Double {
        min(max(seconds ?? usualLife, shortestLife), longestLife)
    }

    // MARK: What happens

    /// [service thread]
    func setStages(_ stages: [EventProperty.Kind: [String: String]], wall: Int64, now: Int64) {
        let due = state.withLock { state in
            Self.tell(state.properties.setStages(stages), wall, &state, now)
        }
        due.forEach { $0() }
    }

    /// [service thread]
    func note(_ kind: EventProperty.Kind, stage: String, isTrue: Bool, wall: Int64, now: Int64) {
        let due = state.withLock { state -> [Due] in
            guard let change = state.properties.note(kind, stage: stage, isTrue: isTrue) else { return [] }
            return Self.tell([change], wall, &state, now)
        }
        due.forEach { $0() }
    }

    private static func tell(
        _ changes: [EventState.Change], _ wall: Int64, _ state: inout State, _ now: Int64
    ) -> [Due] {
        var due: [Due] = []
        for id in state.subscriptions.keys {
            state.lost += state.subscriptions[id]?.queue(changes, at: wall, isFirst: false) ?? 0
            if state.subscriptions[id]?.messages.isEmpty == false, let one = answer(id, &state, now) {
                due.append(one)
            }
        }
        return due
    }

    /// Answers a waiting PullMessages, if there is one.
    private static func answer(_ id: String, _ state: inout State, _ now: Int64) -> Due? {
        guard var subscription = state.subscriptions[id], let pull = subscription.pull else { return nil }
        let messages = Array(subscription.messages.prefix(pull.most))
        subscription.messages.removeFirst(messages.count)
        (subscription.pull, subscription.pulled) = (nil, now)
        state.subscriptions[id] = subscription
        let pulled = Pulled(messages: messages, left: Double(max(subscription.ends - now, 0)) / 1e9)
        return { pull.give(pulled) }
    }

    /// [service thread] Ends what has waited, and subscriptions whose time is over.
    func tick(now: Int64) {
        let due = state.withLock { state -> [Due] in
            var due: [Due] = []
            for (id, subscription) in state.subscriptions {
                if subscription.ends <= now {
                    state.subscriptions[id] = nil
                    if let pull = subscription.pull { due.append { pull.give(nil) } }
                } else if let pull = subscription.pull, pull.until <= now, let one = Self.answer(id, &state, now) {
                    due.append(one)
                }
            }
            return due
        }
        due.forEach { $0() }
    }

    /// [thread of the end] Ends all subscriptions.
    func close() {
        let due = state.withLock { state -> [Due] in
            state.isClosed = true
            defer { state.subscriptions = [:] }
            return state.subscriptions.values.compactMap { $0.pull }.map { pull in { pull.give(nil) } }
        }
        due.forEach { $0() }
    }

    // MARK: What clients ask

    /// A new subscription, which begins with all states. If there is no room, it takes the place of another one:
    /// recorders that crash subscribe again and never unsubscribe.
    ///
    /// - Parameter client: Its address: those of each address are counted.
    /// - Returns: Its id and its life in seconds; nil if there are too many that are in use.
    func subscribe(
        _ filter: TopicFilter, from client: String, seconds: Double?, wall: Int64, now: Int64
    ) -> (id: String, left: Double)? {
        let life = Self.life(seconds)
        var random = SystemRandomNumberGenerator()
        let id = String(UInt64.random(in: .min ... .max, using: &random), radix: 16)
        let (isMade, due) = state.withLock { state -> (Bool, Due?) in
            guard !state.isClosed, state.subscriptions[id] == nil else { return (false, nil) }
            var due: Due?
            switch Self.room(for: client, state, now) {
            case .none: return (false, nil)
            case .free: break
            case .instead(let old):
                if let pull = state.subscriptions.removeValue(forKey: old)?.pull { due = { pull.give(nil) } }
            }
            var subscription = Subscription(filter: filter, client: client, ends: now + Self.ns(life), pulled: now)
            state.lost += subscription.queue(state.properties.all, at: wall, isFirst: true)
            state.subscriptions[id] = subscription
            return (true, due)
        }
        due?()
        return isMade ? (id, life) : nil
    }

    private enum Room {
        case none, free
        case instead(of: String)
    }

    /// Where a new subscription of an address finds room. An address that has its number of them loses its own that was
    /// pulled longest ago, however recently that was: nobody else loses one.
    private static func room(for client: String, _ state: State, _ now: Int64) -> Room {
        let own = state.subscriptions.filter { $0.value.client == client }
        if own.count >= mostOfAnAddress { return unused(own) }
        guard state.subscriptions.count >= mostSubscriptions else { return .free }
        return unused(state.subscriptions.filter { $0.value.pull == nil && now - $0.value.pulled >= ns(idleTime) })
    }

    /// The one that was pulled longest ago. One whose client waits is being pulled.
    private static func unused(_ subscriptions: [String: Subscription]) -> Room {
        func use(_ one: Subscription) -> (Int, Int64) { (one.pull == nil ? 0 : 1, one.pulled) }
        return subscriptions.min { use($0.value) < use($1.value) }.map { .instead(of: $0.key) } ?? .none
    }

    /// Tells all states again. False for an unknown subscription.
    func synchronise(_ id: String, wall: Int64, now: Int64) -> Bool {
        let due = state.withLock { state -> Due?? in
            guard var subscription = state.subscriptions[id] else { return nil }
            // Behind what was not fetched yet; the oldest of that go.
            state.lost += subscription.queue(state.properties.all, at: wall, isFirst: true)
            state.subscriptions[id] = subscription
            let hasSome = !subscription.messages.isEmpty
            return .some(hasSome ? Self.answer(id, &state, now) : nil)
        }
        due.flatMap { $0 }?()
        return due != nil
    }

    /// The seconds that the subscription has from now on; nil for an unknown one.
    func renew(_ id: String, seconds: Double?, now: Int64) -> Double? {
        let life = Self.life(seconds)
        return state.withLock { state in
            guard state.subscriptions[id] != nil else { return nil }
            state.subscriptions[id]?.ends = now + Self.ns(life)
            return life
        }
    }

    /// False for an unknown subscription.
    func unsubscribe(_ id: String) -> Bool {
        guard let gone = state.withLock({ $0.subscriptions.removeValue(forKey: id) }) else { return false }
        gone.pull?.give(nil)
        return true
    }

    func has(_ id: String) -> Bool { state.withLock { $0.subscriptions[id] != nil } }

    /// Gives messages when there are some, at most `seconds` from now. One waits for each subscription: an earlier one
    /// is answered with what there is.
    ///
    /// - Parameters:
    ///   - most: Messages that the client takes.
    ///   - give: Called once, on any thread, unless withdrawn; nil when the subscription has ended.
    /// - Returns: Its number, for ``withdraw(_:_:)``.
    func pull(
        _ id: String, most: Int, seconds: Double, now: Int64, give: @escaping @Sendable (Pulled?) -> Void
    ) -> UInt64 {
        let (number, due) = state.withLock { state -> (UInt64, [Due]) in
            state.pulls += 1
            let number = state.pulls
            guard state.subscriptions[id] != nil else { return (number, [{ give(nil) }]) }
            var due: [Due] = []
            if let earlier = Self.answer(id, &state, now) { due.append(earlier) }
            let wait = min(max(seconds, 0), Self.longestPull)
            state.subscriptions[id]?.pulled = now
            state.subscriptions[id]?.pull = Pull(
                number: number, most: min(max(most, 1), Self.mostMessages), until: now + Self.ns(wait), give: give)
            if state.subscriptions[id]?.messages.isEmpty == false || wait == 0,
                let one = Self.answer(id, &state, now)
            {
                due.append(one)
            }
            return (number, due)
        }
        due.forEach { $0() }
        return number
    }

    /// Its client has gone: what it would have got stays for the next one.
    func withdraw(_ id: String, _ number: UInt64) {
        state.withLock { state in
            if state.subscriptions[id]?.pull?.number == number { state.subscriptions[id]?.pull = nil }
        }
    }
}
