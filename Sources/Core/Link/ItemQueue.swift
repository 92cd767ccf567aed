// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A bounded hand-over from one thread to another: ``ItemQueueState`` behind a lock, with its items.
///
/// One producer thread, one consumer thread. The inputs of a join share the consumer's condition and so one lock.
final class ItemQueue: @unchecked Sendable {
    /// What the consumer finds.
    enum Taken: ~Copyable {
        case item(Lease)
        /// No item with a PTS up to this one will come any more.
        case nothing(upTo: Int64)
        /// There is something else for the consumer to do, such as a command.
        case interrupted
        case ended
        case stopped
    }

    let name: String
    /// The number of the consumer's stage.
    let consumerNumber: Int
    /// The ``LeaseRecord/holder`` of an item that waits here.
    let holderCode: Int32
    /// Where the consumer waits; its lock guards everything below.
    let consumer: Condition
    /// Where the producer waits for a place; shared by all branches of a fork.
    private let room: RoomGate
    /// Chain-clock time since which the producer waits for a place here; 0 when it does not.
    let stalledSince = Atomic<Int64>(0)
    /// The trace of its depth and its drops, written under the lock; nil without a trace. Set before the queue is used.
    var traceRing: TraceRing? { didSet { trace = traceRing?.pen } }
    @exclusivity(unchecked) private var trace: TracePen?
    private let stop: StopSignal
    /// The counts that other threads read without the lock.
    private let figures = ItemQueueFigures()
    private var state: ItemQueueState
    private var timeline = QueueTimeline()
    private let ring: UnsafeMutablePointer<UnsafeMutablePointer<LeaseRecord>>
    private let ringCount: Int
    private var head = 0
    private var consumerSleeps = false
    private var isInterrupted = false
    private var isInterruptUrgent = false
    private var nothingUpTo = Int64.min
    /// Whether an item was turned away, so that the next accepted one follows a gap.
    private var hasLost = false
    /// The last offer found no place, and nothing was taken since.
    private var isPressed = false
    /// The sequence number of the last accepted item.
    private var lastSequence: UInt64 = 0
    /// The sequence number of the last item that was turned away.
    private var lastRefused: UInt64?
    private var isHeldBack = false
    private var heldStep: Int64 = 0
    fileprivate var nothingSeen = Int64.min
    /// Changes with every event that the consumer could wait for. A spinning consumer reads it without the lock.
    private let consumerNews = EventCount()
    private var consumerSpinner = Spinner()
    /// Only for the consumer: see `settleWake()`.
    private var owesWake = false

    init(
        name: String, settings: LinkSettings, room: RoomGate, consumer: Condition = Condition(), stop: StopSignal,
        consumerNumber: Int = 0
    ) {
        self.name = name
        self.consumerNumber = consumerNumber
        holderCode = Int32(consumerNumber * 2 + 1)
        self.consumer = consumer
        self.room = room
        self.stop = stop
        state = ItemQueueState(settings: settings)
        ringCount = max(settings.capacity, 1)
        ring = .allocate(capacity: ringCount)
        stop.register(consumer)
    }

    deinit {
        // Any thread may release the queue last, and it must not allocate then.
        if state.depth > 0 { discardAll(.stopped) }
        traceRing?.isOver.store(true, ordering: .releasing)
        ring.deallocate()
    }

    // MARK: Producer

    /// [producer's thread] Offers an item; gives it back when the policy says to wait for a place. The producer then
    /// waits at its ``RoomGate``, which hears of every place that becomes free.
    func offer(_ lease: consuming Lease, mayWait: Bool) -> Lease? {
        consumer.lock()
        return offerLocked(lease, mayWait: mayWait)
    }

    /// [producer's thread] The run was stopped while this item waited for a place: counts the item and releases it.
    func refuseStopped(_ lease: consuming Lease) {
        consumer.locked {
            state.refuseStopped()
            figures.show(state, losses: true)
        }
        stalledSince.store(0, ordering: .relaxed)
        _ = consume lease
    }

    /// Performs one offer and unlocks. Dropped leases are released outside the lock.
    private func offerLocked(_ lease: consuming Lease, mayWait: Bool) -> Lease? {
        let record = lease.record
        let place = timeline.place(of: record.pointee.header, isFirst: state.depth == 0)
        let action = state.offer(
            bytes: record.pointee.queuedBytes, time: place, isKeyframe: record.pointee.header.isKeyframe,
            mayWait: mayWait)
        switch action {
        case .accept:
            figures.show(state, losses: false)
            append(lease.release(), at: place)
            wakeConsumerAndUnlock()
            return nil
        case .evictThenAccept(var count):
            // Under `latest` one item goes, under `dropOldest` as many as the new item needs bytes or time, under
            // `dropToKeyframe` a whole group. The first one's place may be taken by the new item. The others stay where
            // they are in the ring, which only this thread writes, until they are released below.
            let first = ring[head]
            if let trace { noteEviction(trace, first, count) }
            let second = head + 1
            head = (head + count) % ringCount
            append(lease.release(), at: place)
            if state.settings.policy != .dropToKeyframe { count += settleEvictions(first, newestTime: place) }
            figures.show(state, losses: true)
            ring[head].pointee.header.isDiscontinuity = true
            wakeConsumerAndUnlock()
            _ = Lease(first)
            for index in second..<second + count - 1 { _ = Lease(ring[index % ringCount]) }
            return nil
        case .reject(let reason):
            figures.show(state, losses: true)
            if let trace {
                trace.drop(stage: consumerNumber, reason, frame: record.pointee.header.sequenceNumber)
            }
            hasLost = true
            isPressed = true
            lastRefused = record.pointee.header.sequenceNumber
            nothingUpTo = max(nothingUpTo, record.pointee.header.pts.nanoseconds &+ heldStep)
            wakeConsumerAndUnlock()
            return nil
        case .wait:
            // A sink that waits for another input hears that this one is full.
            isPressed = true
            let sleeps = consumerSleeps
            consumer.unlock()
            if sleeps { consumer.signal() }
            return lease
        }
    }

    /// With the lock held: removes further items behind `first`, which has gone, while the queue has too many bytes or
    /// too much time.
    ///
    /// - Returns: How many. They are still in the ring.
    private func settleEvictions(_ first: UnsafeMutablePointer<LeaseRecord>, newestTime: Int64) -> Int {
        var (gone, more) = (first, 0)
        while state.settleEviction(
            bytes: gone.pointee.queuedBytes, oldestTime: ring[head].pointee.queuePlace,
            newestTime: newestTime)
        {
            gone = removeFirst()
            more += 1
            if let trace {
                noteEviction(trace, gone, 1)
                trace.level(state.depth)
            }
        }
        return more
    }

    private func append(_ record: UnsafeMutablePointer<LeaseRecord>, at place: Int64) {
        timeline.add(record.pointee.header)
        record.pointee.queuePlace = place
        if hasLost { record.pointee.header.isDiscontinuity = true }
        hasLost = false
        lastSequence = record.pointee.header.sequenceNumber
        record.pointee.holder.store(holderCode, ordering: .relaxed)
        ring[(head + state.depth - 1) % ringCount] = record
        if let trace { trace.level(state.depth) }
    }

    private func noteEviction(_ trace: TracePen, _ first: UnsafeMutablePointer<LeaseRecord>, _ count: Int) {
        let reason: DropReason =
            switch state.settings.policy {
            case .latest: .replaced
            case .dropToKeyframe: .untilKeyframe
            case .wait, .dropOldest, .dropNewest: .evicted
            }
        trace.drop(stage: consumerNumber, reason, frame: first.pointee.header.sequenceNumber, count: count)
    }

    private func removeFirst() -> UnsafeMutablePointer<LeaseRecord> {
        let record = ring[head]
        head = (head + 1) % ringCount
        return record
    }

    private func wakeConsumerAndUnlock() {
        consumerNews.advance()
        let sleeps = consumerSleeps
        consumer.unlock()
        if sleeps { consumer.signal() }
    }

    /// [producer's thread] No item with a PTS up to `pts` will come: a stage before this link dropped it.
    func announceNothing(upTo pts: Int64) {
        consumer.lock()
        nothingUpTo = max(nothingUpTo, pts)
        wakeConsumerAndUnlock()
    }

    /// [producer's thread] No item follows.
    func end() {
        consumer.lock()
        state.end()
        wakeConsumerAndUnlock()
    }

    /// [any thread] The link is being removed. Items that are offered from now on are dropped as
    /// ``DropReason/detached``. A producer that waits for a place here goes on at once, and the consumer finds the end
    /// behind the items that are queued.
    ///
    /// - Returns: Sequence number of the last accepted item; nil when there was none.
    func detach() -> UInt64? {
        consumer.lock()
        state.detach()
        let last = state.counts.accepted > 0 ? lastSequence : nil
        wakeConsumerAndUnlock()
        room.announce()
        return last
    }

    /// [any thread] A branch that several threads feed is being attached. Items that are offered before all of these
    /// threads have their links are dropped as ``DropReason/unconnected``. Otherwise one thread could wait here for the
    /// item of another that waits for it.
    ///
    /// - Parameter step: The time after an item in which nothing follows, for a join that matches by time; nanoseconds.
    func holdBack(step: Int64) {
        consumer.locked {
            state.close(.unconnected)
            isHeldBack = true
            heldStep = step
        }
    }

    /// [producer's thread] The link begins after an item of this time. Where several threads feed the branch, its join
    /// must know which items were given before.
    func begin(after pts: Int64) {
        consumer.lock()
        if isHeldBack, pts != .min { nothingUpTo = max(nothingUpTo, pts &+ heldStep) }
        wakeConsumerAndUnlock()
    }

    /// [any thread] Opens the queues once all threads have their links. The queues of one join open at the same
    /// time.
    ///
    /// - Returns: Sequence number of the last item that was turned away; nil when there was none.
    static func open(_ queues: [ItemQueue]) -> UInt64? {
        var last: UInt64?
        var conditions: [Condition] = []
        for queue in queues where !conditions.contains(where: { $0 === queue.consumer }) {
            conditions.append(queue.consumer)
            queue.consumer.locked {
                for one in queues where one.consumer === queue.consumer {
                    one.state.open()
                    (one.isHeldBack, one.heldStep) = (false, 0)
                    if let refused = one.lastRefused { last = max(last ?? refused, refused) }
                }
            }
        }
        return last
    }

    // MARK: Consumer

    /// [consumer's thread] Takes the oldest item, and waits for one.
    func take() -> Taken {
        while true {
            consumer.lock()
            if let found = takeLocked() { return found }
            let news = consumerNews.glimpse
            consumer.unlock()
            if consumerSpinner.spin(until: { consumerNews.glimpse != news || stop.isRaised }) { continue }
            consumer.lock()
            if consumerNews.glimpse == news, !stop.isRaised {
                consumerSleeps = true
                Spinner.fallAsleep()
                consumer.wait()
                Spinner.wakeUp()
                consumerSleeps = false
            }
            consumer.unlock()
        }
    }

    /// With the lock held: returns what is there and unlocks. Returns nil, still locked, when there is nothing yet.
    private func takeLocked() -> Taken? {
        if stop.isRaised {
            consumer.unlock()
            return .stopped
        }
        if takeInterrupt(ifUrgent: true) {
            consumer.unlock()
            return .interrupted
        }
        if state.depth > 0 { return .item(popAndUnlock()) }
        if let pts = takeNothing() {
            consumer.unlock()
            return .nothing(upTo: pts)
        }
        if state.hasEnded {
            consumer.unlock()
            return .ended
        }
        // Last: whoever interrupts without an end must hold up neither the items nor their end. The consumer looks for
        // its messages before each item.
        if takeInterrupt() {
            consumer.unlock()
            return .interrupted
        }
        return nil
    }

    /// With the lock held and an item there: takes it and unlocks.
    private func popAndUnlock() -> Lease {
        let record = removeFirst()
        let nextTime = state.depth > 1 ? ring[head].pointee.queuePlace : nil
        state.take(bytes: record.pointee.queuedBytes, nextTime: nextTime)
        figures.show(state, losses: false)
        if let trace { trace.level(state.depth) }
        let hasPlenty = state.depth > state.settings.capacity / 2
        consumer.unlock()
        if !hasPlenty {
            owesWake = false
            room.announce()
        } else if room.announceLater() {
            owesWake = true
        }
        return Lease(record)
    }

    /// [consumer's thread] Called before the consumer waits for anything else. Wakes a producer that was left asleep
    /// while the queue still had items. So a producer is woken once for several places, and never sleeps while its
    /// consumer waits.
    @inline(__always)
    func settleWake() {
        guard owesWake else { return }
        owesWake = false
        room.wake()
    }

    /// [any thread] Makes a consumer that waits, or would wait next, return `.interrupted` once.
    ///
    /// - Parameter isUrgent: The consumer returns so before it takes the next item. Only for what does not come without
    ///   an end.
    func interrupt(isUrgent: Bool = false) {
        consumer.lock()
        isInterrupted = true
        if isUrgent { isInterruptUrgent = true }
        wakeConsumerAndUnlock()
    }

    // MARK: The consumer of several inputs, which looks at all of them under their one lock

    /// With the lock held: the state by which a stage of several inputs decides.
    var shown: QueueHead {
        var shown = QueueHead(nothingUpTo: nothingUpTo, hasEnded: state.hasEnded, isPressed: isPressed)
        guard state.depth > 0 else { return shown }
        shown.head = ring[head].pointee.header.pts.nanoseconds
        shown.orderTime = ring[head].pointee.header.orderTime.nanoseconds
        return shown
    }

    /// With the lock held: the time up to which no item will come, where the consumer has not heard it yet.
    func takeNothing() -> Int64? {
        guard nothingUpTo > nothingSeen else { return nil }
        nothingSeen = nothingUpTo
        return nothingSeen
    }

    /// With the lock held: reads and clears what `interrupt(isUrgent:)` has set.
    func takeInterrupt(ifUrgent: Bool = false) -> Bool {
        guard ifUrgent ? isInterruptUrgent : isInterrupted else { return false }
        (isInterrupted, isInterruptUrgent) = (false, false)
        return true
    }
    /// With the lock held: the thread of a stage of several inputs is about to sleep on `consumer`, or has woken.
    func setConsumerSleeps(_ sleeps: Bool) { consumerSleeps = sleeps }

    /// With the lock held: takes the oldest item, keeps the lock.
    func popLocked() -> Lease {
        let record = removeFirst()
        isPressed = false
        let nextTime = state.depth > 1 ? ring[head].pointee.queuePlace : nil
        state.take(bytes: record.pointee.queuedBytes, nextTime: nextTime)
        figures.show(state, losses: false)
        if let trace { trace.level(state.depth) }
        room.announce()
        return Lease(record)
    }

    /// [consumer's thread] The consumer takes nothing any more. The queued items and all that are offered from now on
    /// are dropped for `reason`, and a producer that waits for a place goes on at once.
    func close(_ reason: DropReason) {
        consumer.locked { state.close(reason) }
        discardAll(reason)
        room.announce()
    }

    // MARK: Watching

    /// Releases all queued items, counted as evicted for `reason`.
    func discardAll(_ reason: DropReason) {
        var records: [UnsafeMutablePointer<LeaseRecord>] = []
        records.reserveCapacity(ringCount)
        consumer.lock()
        for _ in 0..<state.depth {
            records.append(ring[head])
            head = (head + 1) % ringCount
        }
        let count = state.evictAll(reason)
        figures.show(state, losses: true)
        if let trace, let first = records.first {
            trace.drop(stage: consumerNumber, reason, frame: first.pointee.header.sequenceNumber, count: count)
            trace.level(0)
        }
        consumer.unlock()
        for record in records { _ = Lease(record) }
    }

    /// [any thread] Counts and depth, each as it was at some moment of the call. Does not wait, and makes no thread
    /// wait.
    func snapshot() -> (counts: ItemQueueState.Counts, depth: Int, bytes: Int) { figures.read() }
    /// [any thread] What made the queue full when it lost an item last; nil before.
    var lastBound: QueueBound? { figures.bound }
}

extension ItemQueue {
    /// With the lock held: notes that a join told the stages behind it that nothing up to `pts` comes; true the first
    /// time.
    func noteAnnounced(_ pts: Int64) -> Bool {
        guard pts > nothingSeen else { return false }
        nothingSeen = pts
        return true
    }
}
