// SPDX-License-Identifier: Apache-2.0

/// How a live source stands: whether it is there, lost, or was never there, and what is to be said and shown of that. Pure:
/// events in, actions out.
///
/// ```
///            given                    lost
/// waiting ──────────► connected ──────────────► away
///                         ▲        given          │
///                         └───────────────────────┘
/// ```
///
/// A connection that has given nothing yet changes nothing: the source is back with its first item. A source that counts
/// as back once it is opened says then that it gives.
package struct LiveState {
    package enum Phase: Equatable {
        /// It was never there. It is looked for.
        case waiting
        /// It is there.
        case connected
        /// It is lost, and is looked for.
        case away
    }

    /// What is to be done about an event.
    package enum Action: Equatable {
        /// Say that it is lost, and why.
        case sayLost(String)
        /// End the stage, since nothing is shown while it is lost; and why it is.
        case fail(String)
        /// Say that it is there, for the first time or again, after nanoseconds.
        case sayBack(isFirst: Bool, after: Int64)
        /// Say why it could not be used.
        case sayRefused(String)
    }

    /// Reasons that are kept, so that each is said once for each loss.
    private static let mostReasons = 16
    /// The least time between two stand-ins, nanoseconds.
    private static let leastPeriod: Int64 = 10_000_000

    package private(set) var phase: Phase
    /// Whether nothing of the present connection was given yet.
    package private(set) var isFresh = true
    private let whileLost: WhileLost
    /// Whether something can be shown in its place.
    private let canStandIn: Bool
    /// Since when it has been away.
    private var since: Int64
    /// When the next stand-in is due.
    private var nextPicture: Int64
    private var refusals: Set<String> = []
    /// When it is to be looked for again: after 0.1 s, then at ever longer intervals, at most a second.
    package private(set) var nextTry: Int64
    private var backoff = Backoff()

    /// - Parameters:
    ///   - isThere: Whether it was opened already.
    ///   - canStandIn: Whether something can be shown in its place while it is away.
    ///   - now: The clock, nanoseconds, as everywhere here.
    package init(isThere: Bool, whileLost: WhileLost, canStandIn: Bool, now: Int64) {
        phase = isThere ? .connected : .waiting
        (self.whileLost, self.canStandIn) = (whileLost, canStandIn && whileLost != .stop)
        (since, nextPicture) = (now, now)
        nextTry = now + backoff.next()
    }

    package var isAway: Bool { phase != .connected }
    /// Whether items of the present connection are given.
    package var isStreaming: Bool { phase == .connected && !isFresh }

    /// It was opened. That it is there is said with its first item.
    package mutating func opened() { isFresh = true }

    /// One of its own items is about to be given.
    package mutating func given(now: Int64) -> Action? {
        isFresh = false
        guard isAway else { return nil }
        let isFirst = phase == .waiting
        phase = .connected
        refusals = []
        return .sayBack(isFirst: isFirst, after: now - since)
    }

    /// It gives nothing more. It is looked for soon.
    ///
    /// - Parameters:
    ///   - next: When its next item would have come; nil where that is not known.
    ///   - since: Since when nothing has come; nil for now.
    package mutating func lost(_ reason: String, now: Int64, next: Int64? = nil, since: Int64? = nil) -> Action? {
        backoff.reset()
        missed(now: now)
        guard !isAway else { return nil }
        (phase, refusals, self.since) = (.away, [], since ?? now)
        nextPicture = max(now, next ?? now)
        return whileLost == .stop ? .fail(reason) : .sayLost(reason)
    }

    /// It was looked for in vain, or gave nothing. It is looked for later.
    package mutating func missed(now: Int64) { nextTry = now + backoff.next() }

    /// It could not be opened, or cannot be used.
    package mutating func refused(_ reason: String) -> Action? {
        guard refusals.count < Self.mostReasons, refusals.insert(reason).inserted else { return nil }
        return .sayRefused(reason)
    }

    // MARK: Stand-ins

    /// Whether something is to be shown in its place now.
    package func isStandInDue(now: Int64) -> Bool { isAway && canStandIn && now >= nextPicture }

    /// It was stood in for.
    package mutating func stoodIn(now: Int64, period: Int64) { nextPicture = now + max(period, Self.leastPeriod) }

    /// When there is something to do: to look for it, or to show something in its place.
    package var nextTurn: Int64 { isAway && canStandIn ? min(nextTry, nextPicture) : nextTry }

    /// How long may be waited for an event, nanoseconds.
    package func patience(now: Int64, most: Int64) -> Int64 {
        isAway && canStandIn ? min(max(nextPicture - now, 0), most) : most
    }
}
