// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The record of a lease: the item's header, the buffer, and which stage has held it since when.
///
/// It lies in memory of its pool and never moves. Only the holder of the lease writes it. It takes two cache lines, one
/// for the header and one for the rest, so that leases on two threads share none.
struct LeaseRecord: ~Copyable {
    var header: ItemHeader

    /// The pool or slab that takes the lease back.
    unowned(unsafe) let owner: LeaseOwner
    /// Index in the owner's table of leases.
    let index: Int32
    private let bufferIndex = Atomic<Int32>(-1)
    /// Index of the buffer (pool) or block (slab) that is held; −1 when the lease is free. [any thread]
    var buffer: Int32 {
        @inline(__always) get { bufferIndex.load(ordering: .relaxed) }
        @inline(__always) nonmutating set { bufferIndex.store(newValue, ordering: .relaxed) }
    }
    /// First byte of the payload.
    var base: UnsafeMutableRawPointer?
    /// Bytes of the payload: a whole frame buffer, or what an access unit uses.
    var byteCount = 0

    /// Stage index × 2, +1 while in the queue before it; −1 for nobody. Written by the runner, read by the starvation
    /// report.
    let holder = Atomic<Int32>(-1)
    /// Whether the lease counts in `keeper`: the stage was given it for good, or shared it itself. Beside `holder`, where
    /// it needs no room of its own.
    var isKept = false
    /// Chain-clock time at which `holder` changed last.
    let since = Atomic<Int64>(0)
    /// The count of the stage that has this lease in hand; set by the runner at each delivery.
    private(set) var keeper: UnsafeMutablePointer<KeeperCell>?
    /// Where the item lies on the ``QueueTimeline`` of the queue that it waits in. Under that queue's lock.
    var queuePlace: Int64 = 0

    init(owner: LeaseOwner, index: Int32, header: consuming ItemHeader) {
        self.owner = owner
        self.index = index
        self.header = header
    }

    /// Bytes that count towards a link's limit: those of a slab. Frames are limited by their pool.
    @inline(__always)
    var queuedBytes: Int { header.kind == .frame ? 0 : byteCount }

    /// Puts the lease into the hands of another instance, or of none. What the one before kept ends: each count of kept
    /// leases goes up and down by the same leases, or its memory would be freed too early.
    @inline(__always)
    mutating func hand(to keeper: UnsafeMutablePointer<KeeperCell>?) {
        unkeep()
        self.keeper = keeper
    }

    /// Counts the lease as kept by the stage that has it in hand.
    @inline(__always)
    mutating func keep() {
        guard !isKept, let keeper else { return }
        isKept = true
        keeper.pointee.holders.add(1, ordering: .relaxed)
    }

    /// Ends what `keep()` began.
    @inline(__always)
    mutating func unkeep() {
        guard isKept else { return }
        isKept = false
        if let keeper { KeeperCell.letGo(keeper) }
    }
}

/// How many leases an instance of a stage keeps now, and the most it ever kept after a call. The last of its holders frees
/// it: the instance itself, or a lease that the instance keeps and that ends with its stage or later.
struct KeeperCell: ~Copyable {
    /// The instance as long as it lives, and each lease that it keeps.
    fileprivate let holders = Atomic<Int>(1)
    let most = Atomic<Int>(0)

    /// [any thread, while the instance lives] How many leases it keeps.
    var kept: Int { holders.load(ordering: .relaxed) - 1 }

    /// [any thread] Ends what one holder has of it.
    @inline(__always)
    fileprivate static func letGo(_ cell: UnsafeMutablePointer<KeeperCell>) {
        guard cell.pointee.holders.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 else { return }
        cell.deinitialize(count: 1)
        cell.deallocate()
    }
}

/// Owns the cell of one instance of a stage. `@unchecked Sendable`: the cell is two atomics.
final class KeeperOwner: @unchecked Sendable {
    let cell: UnsafeMutablePointer<KeeperCell>

    init() {
        cell = .allocate(capacity: 1)
        cell.initialize(to: KeeperCell())
    }

    // [any thread]
    var kept: Int { cell.pointee.kept }
    var most: Int { cell.pointee.most.load(ordering: .relaxed) }

    deinit { KeeperCell.letGo(cell) }
}

/// A pool or slab: what a lease goes back to. Subclassed within Core only.
class LeaseOwner: @unchecked Sendable {
    /// [any thread] Takes the lease back; frees its payload when it was the last.
    func giveBack(_ record: UnsafeMutablePointer<LeaseRecord>) { fatalError("LeaseOwner is abstract") }

    /// [holder's thread] Makes a further lease of the same payload, with the same header and metadata.
    func share(_ record: UnsafeMutablePointer<LeaseRecord>) -> UnsafeMutablePointer<LeaseRecord> {
        fatalError("LeaseOwner is abstract")
    }
}

/// The right to hold a payload: one owner at a time, moved and never copied. ``Frame`` and ``AccessUnit`` are its
/// public faces.
struct Lease: ~Copyable, @unchecked Sendable {
    /// Only this value owns the record until it is given back: the invariant behind `@unchecked Sendable`.
    let record: UnsafeMutablePointer<LeaseRecord>

    @inline(__always)
    init(_ record: UnsafeMutablePointer<LeaseRecord>) { self.record = record }

    /// Gives up the ownership without ending the lease. `init(_:)` takes it over again.
    @inline(__always)
    consuming func release() -> UnsafeMutablePointer<LeaseRecord> {
        let record = record
        discard self
        return record
    }

    deinit { record.pointee.owner.giveBack(record) }
}
