// SPDX-License-Identifier: Apache-2.0

/// What a queue does with an offer, a take and an end: a value without locks or threads.
///
/// It counts and decides; the items themselves lie in ``ItemQueue``, which performs what the returned action says.
struct ItemQueueState: Sendable {
    enum OfferAction: Equatable {
        /// Put it behind the last item.
        case accept
        /// Remove this many of the oldest items first, then accept. Of `latest` and `dropOldest` it is one, and
        /// ``ItemQueueState/settleEviction(bytes:oldestTime:newestTime:)`` says whether more go.
        case evictThenAccept(Int)
        /// The item is dropped.
        case reject(DropReason)
        /// Nothing has changed. Offer again when there is room.
        case wait
    }

    /// Counts of one link; ledger law 1 is `offered = accepted + Σ dropped` and `accepted = taken + Σ evicted + depth`.
    struct Counts: Sendable, Equatable {
        var offered = 0
        var accepted = 0
        var taken = 0
        var dropped = [Int](repeating: 0, count: DropReason.allCases.count)
        var evicted = [Int](repeating: 0, count: DropReason.allCases.count)
        var mostDepth = 0

        /// Items that gave their place to a newer one, as ``DropPolicy/latest`` says.
        var replaced: Int { evicted[DropReason.replaced.rawValue] }
        /// Items that were lost for `reason`; those in ``replaced`` are not.
        func lost(_ reason: DropReason) -> Int {
            reason == .replaced ? 0 : dropped[reason.rawValue] + evicted[reason.rawValue]
        }
    }

    let settings: LinkSettings
    private(set) var counts = Counts()
    private(set) var depth = 0
    private(set) var bytes = 0
    /// Time of the oldest item, nil when empty. All times are without gaps, as ``QueueTimeline`` gives them.
    private var oldestTime: Int64?
    private var isSkipping = false
    private(set) var hasEnded = false
    /// What made the queue full when an offer found it so last.
    private(set) var lastBound: QueueBound?
    /// Why the consumer takes nothing any more; nil while it takes items.
    private var closed: DropReason?

    init(settings: LinkSettings) { self.settings = settings }

    private mutating func isFull(bytes more: Int, time: Int64) -> Bool {
        guard let bound = bound(bytes: more, time: time) else { return false }
        lastBound = bound
        return true
    }

    /// What keeps an item out; nil where it has a place.
    private func bound(bytes more: Int, time: Int64) -> QueueBound? {
        if depth >= settings.capacity { return .items }
        guard depth > 0 else { return nil }
        if let most = settings.mostBytes, bytes + more > most { return .bytes }
        guard let oldestTime, isTooLong(from: oldestTime, to: time) else { return nil }
        return .time
    }

    /// Whether so much time is more than the queue may hold.
    private func isTooLong(from oldest: Int64, to newest: Int64) -> Bool {
        guard let most = settings.mostTime, newest > oldest else { return false }
        // As unsigned numbers any two times have a distance without overflow.
        return UInt64(bitPattern: newest &- oldest) > UInt64(max(most.nanoseconds, 0))
    }

    /// An item of `bytes` bytes (0 for frames) at `time` asks for a place.
    ///
    /// - Parameter mayWait: False on a live source's thread: a full `wait` link rejects with `.noBuffer`.
    mutating func offer(bytes more: Int = 0, time: Int64 = 0, isKeyframe: Bool = false, mayWait: Bool = true)
        -> OfferAction
    {
        if let closed { return reject(closed) }
        guard isFull(bytes: more, time: time) || isSkipping else {
            accept(bytes: more, time: time)
            return .accept
        }
        switch settings.policy {
        case .wait:
            if mayWait { return .wait }
            return reject(.noBuffer)
        case .dropNewest:
            return reject(.queueFull)
        case .dropOldest, .latest:
            // ``settleEviction(bytes:oldestTime:newestTime:)`` is told which item it was.
            counts.evicted[(settings.policy == .latest ? DropReason.replaced : .evicted).rawValue] += 1
            depth -= 1
            accept(bytes: more, time: time)
            return .evictThenAccept(1)
        case .dropToKeyframe:
            guard isKeyframe else {
                isSkipping = true
                return reject(.untilKeyframe)
            }
            isSkipping = false
            guard isFull(bytes: more, time: time) else {
                accept(bytes: more, time: time)
                return .accept
            }
            let all = depth
            counts.evicted[DropReason.untilKeyframe.rawValue] += all
            depth = 0
            bytes = 0
            accept(bytes: more, time: time)
            return .evictThenAccept(all)
        }
    }

    /// One item has gone before the last offer was accepted: its bytes, and the times of the oldest one now and of
    /// the new one.
    ///
    /// - Returns: Whether the oldest one goes too, since the queue still has too many bytes or too much time. It is
    ///   counted already, and must be settled in turn.
    mutating func settleEviction(bytes less: Int, oldestTime time: Int64, newestTime: Int64) -> Bool {
        bytes -= less
        oldestTime = time
        guard depth > 1 else { return false }
        let hasTooManyBytes = settings.mostBytes.map { bytes > $0 } ?? false
        guard hasTooManyBytes || isTooLong(from: time, to: newestTime) else { return false }
        counts.evicted[DropReason.evicted.rawValue] += 1
        depth -= 1
        return true
    }

    private mutating func reject(_ reason: DropReason) -> OfferAction {
        counts.offered += 1
        counts.dropped[reason.rawValue] += 1
        return .reject(reason)
    }

    private mutating func accept(bytes more: Int, time: Int64) {
        counts.offered += 1
        counts.accepted += 1
        if depth == 0 { oldestTime = time }
        depth += 1
        bytes += more
        if depth > counts.mostDepth { counts.mostDepth = depth }
    }

    /// Takes the oldest item: its bytes, and the time of the item behind it.
    mutating func take(bytes less: Int = 0, nextTime: Int64? = nil) {
        depth -= 1
        bytes -= less
        oldestTime = nextTime
        counts.taken += 1
    }

    /// The run was stopped with an item that was offered and found no place.
    mutating func refuseStopped() {
        counts.offered += 1
        counts.dropped[DropReason.stopped.rawValue] += 1
    }

    /// Evicts all queued items.
    mutating func evictAll(_ reason: DropReason) -> Int {
        let all = depth
        counts.evicted[reason.rawValue] += all
        depth = 0
        bytes = 0
        return all
    }

    /// Drops everything that is offered from now on for `reason`.
    mutating func close(_ reason: DropReason) { closed = reason }

    /// Reopens a queue that was closed as ``DropReason/unconnected``.
    mutating func open() { if closed == .unconnected { closed = nil } }

    /// No item follows. Items already queued are still taken.
    mutating func end() { hasEnded = true }

    /// The link is removed: as `end()`, and every later offer is rejected.
    mutating func detach() {
        hasEnded = true
        closed = .detached
    }
}
