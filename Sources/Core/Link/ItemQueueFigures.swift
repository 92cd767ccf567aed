// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// What a queue has counted. The counts are written under the queue's lock and read without it.
///
/// A thread of low priority that reads them must not hold a lock that frames wait for. It must not keep a copy of the
/// counts either, since the next item would then have to copy them anew. `@unchecked Sendable`: everything is atomic.
final class ItemQueueFigures: @unchecked Sendable {
    private static let reasons = DropReason.allCases.count

    private let offered = Atomic<Int>(0)
    private let accepted = Atomic<Int>(0)
    private let taken = Atomic<Int>(0)
    private let mostDepth = Atomic<Int>(0)
    private let depth = Atomic<Int>(0)
    private let bytes = Atomic<Int>(0)
    private let boundCode = Atomic<UInt8>(0)
    /// Dropped by reason, then evicted by reason.
    private let losses: UnsafeMutablePointer<Atomic<Int>>
    /// ``reasons``, without the check that belongs to a static.
    private let count: Int

    init() {
        count = Self.reasons
        losses = .allocate(capacity: 2 * count)
        for index in 0..<2 * count { (losses + index).initialize(to: Atomic(0)) }
    }

    deinit {
        losses.deinitialize(count: 2 * count)
        losses.deallocate()
    }

    /// [under the queue's lock]
    ///
    /// - Parameter losses: Whether something has been dropped or evicted.
    @inline(__always)
    func show(_ state: borrowing ItemQueueState, losses isLoss: Bool) {
        offered.store(state.counts.offered, ordering: .relaxed)
        accepted.store(state.counts.accepted, ordering: .relaxed)
        taken.store(state.counts.taken, ordering: .relaxed)
        mostDepth.store(state.counts.mostDepth, ordering: .relaxed)
        depth.store(state.depth, ordering: .relaxed)
        bytes.store(state.bytes, ordering: .relaxed)
        guard isLoss else { return }
        boundCode.store(state.lastBound?.rawValue ?? 0, ordering: .relaxed)
        for index in 0..<count {
            losses[index].store(state.counts.dropped[index], ordering: .relaxed)
            losses[count + index].store(state.counts.evicted[index], ordering: .relaxed)
        }
    }

    /// [any thread]
    var bound: QueueBound? { QueueBound(rawValue: boundCode.load(ordering: .relaxed)) }

    /// [any thread] Each as it was at some moment of the call.
    func read() -> (counts: ItemQueueState.Counts, depth: Int, bytes: Int) {
        var counts = ItemQueueState.Counts()
        counts.offered = offered.load(ordering: .relaxed)
        counts.accepted = accepted.load(ordering: .relaxed)
        counts.taken = taken.load(ordering: .relaxed)
        counts.mostDepth = mostDepth.load(ordering: .relaxed)
        for index in 0..<count {
            counts.dropped[index] = losses[index].load(ordering: .relaxed)
            counts.evicted[index] = losses[count + index].load(ordering: .relaxed)
        }
        return (counts, depth.load(ordering: .relaxed), bytes.load(ordering: .relaxed))
    }
}
