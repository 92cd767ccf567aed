// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Lets a producer wait until one of its links has a free place.
///
/// Each output has one: a fork waits for all its full branches at once, and serves the branch that has room first. With
/// the shortest queues this keeps a fork before a join from standing still (docs/design/001-budgets.md).
final class RoomGate: @unchecked Sendable {
    private let condition = Condition()
    private let news = EventCount()
    private let sleeps = Atomic<Bool>(false)
    private let stop: StopSignal
    /// Only for the producer.
    private var spinner = Spinner()

    init(stop: StopSignal) {
        self.stop = stop
        stop.register(condition)
    }

    /// [any thread] A place has become free, or the link has been closed.
    @inline(__always)
    func announce() {
        news.advance()
        if sleeps.load(ordering: .sequentiallyConsistent) { condition.locked { condition.signal() } }
    }

    /// [consumer's thread] A place has become free, and the consumer has more to take, so a sleeping producer is not
    /// woken yet. True when the consumer must call `wake()` before it waits for anything.
    @inline(__always)
    func announceLater() -> Bool {
        news.advance()
        return sleeps.load(ordering: .sequentiallyConsistent)
    }

    /// [consumer's thread] Wakes the producer if it sleeps.
    func wake() {
        if sleeps.load(ordering: .sequentiallyConsistent) { condition.locked { condition.signal() } }
    }

    /// [any thread] Whether the producer sleeps, so that it sees news only once it is woken.
    var isAsleep: Bool { condition.locked { sleeps.load(ordering: .relaxed) } }

    /// [producer's thread] The version of the news that the following offers have seen.
    @inline(__always)
    var version: UInt32 { news.seen }

    /// [producer's thread] Waits for news later than `version`; false when the run was stopped.
    func wait(after version: UInt32) -> Bool {
        if spinner.spin(until: { news.glimpse != version || stop.isRaised }) { return !stop.isRaised }
        condition.lock()
        sleeps.store(true, ordering: .sequentiallyConsistent)
        Spinner.fallAsleep()
        while news.seen == version, !stop.isRaised { condition.wait() }
        Spinner.wakeUp()
        sleeps.store(false, ordering: .relaxed)
        condition.unlock()
        return !stop.isRaised
    }
}
