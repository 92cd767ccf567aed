// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The lease records of one pool or slab with their metadata regions: made once, lent and taken back under the owner's
/// lock.
///
/// A fixed number of records is made at setup. A stage that shares more often than its declared `hold` allows may
/// use them up. Then the table grows by a block. Every growth is counted (`growths`) and reported as a fault of
/// that stage.
struct LeaseTable: ~Copyable {
    /// Records begin at cache lines.
    private static let alignment = 64

    /// All records, for threads that read them without the owner's lock.
    let records = LeaseRecords()
    private var free: UnsafeMutablePointer<UnsafeMutablePointer<LeaseRecord>>
    private var freeCount = 0
    private(set) var capacity = 0
    private(set) var growths = 0
    private let kind: ItemKind
    private let layout: MetadataLayout

    init(_ kind: ItemKind, layout: MetadataLayout) {
        self.kind = kind
        self.layout = layout
        free = .allocate(capacity: 1)
    }

    /// [control thread, setup] Makes the records. It is called once.
    mutating func reserve(_ count: Int, owner: LeaseOwner) { grow(by: max(count, 1), owner: owner) }

    /// [control thread] Makes records up to `count` in all.
    mutating func reserve(atLeast count: Int, owner: LeaseOwner) {
        if count > capacity { grow(by: count - capacity, owner: owner) }
    }

    private mutating func grow(by count: Int, owner: LeaseOwner) {
        let block = UnsafeMutableRawPointer.allocate(
            byteCount: count * MemoryLayout<LeaseRecord>.stride, alignment: Self.alignment
        ).bindMemory(to: LeaseRecord.self, capacity: count)
        let region =
            layout.byteCount == 0
            ? nil
            : UnsafeMutableRawPointer.allocate(
                byteCount: count * layout.byteCount, alignment: MetadataLayout.alignment)
        let longer = UnsafeMutablePointer<UnsafeMutablePointer<LeaseRecord>>.allocate(capacity: capacity + count)
        longer.moveInitialize(from: free, count: freeCount)
        free.deallocate()
        free = longer
        for index in 0..<count {
            let header = ItemHeader(kind, metadata: region.map { $0 + index * layout.byteCount })
            (block + index).initialize(
                to: LeaseRecord(owner: owner, index: Int32(capacity + index), header: header))
        }
        for index in (0..<count).reversed() {
            (free + freeCount).initialize(to: block + index)
            freeCount += 1
        }
        capacity += count
        records.add(block, count, metadata: region)
    }

    mutating func take(owner: LeaseOwner) -> UnsafeMutablePointer<LeaseRecord> {
        if freeCount == 0 {
            growths += 1
            grow(by: capacity, owner: owner)
        }
        freeCount -= 1
        return free[freeCount]
    }

    /// Takes back a record whose metadata the owner has cleared.
    mutating func giveBack(_ record: UnsafeMutablePointer<LeaseRecord>) {
        record.pointee.buffer = -1
        record.pointee.holder.store(-1, ordering: .relaxed)
        free[freeCount] = record
        freeCount += 1
    }

    deinit { free.deallocate() }
}

/// The records of one ``LeaseTable``, in blocks that are added and never go while it lives.
///
/// A thread may walk them while others lend and take back, and neither side waits. Each value that it reads was right
/// at some moment of the walk. `@unchecked Sendable`: blocks are added under the owner's lock and are complete when
/// they become visible, and what is read of a record is atomic.
final class LeaseRecords: @unchecked Sendable {
    private struct Block {
        var base: UnsafeMutablePointer<LeaseRecord>
        var count: Int
        var metadata: UnsafeMutableRawPointer?
        var older: UnsafeMutablePointer<Block>?
    }

    private let newest = Atomic<UnsafeMutablePointer<Block>?>(nil)

    /// [under the owner's lock] Takes over a block of records that have been made.
    func add(_ base: UnsafeMutablePointer<LeaseRecord>, _ count: Int, metadata: UnsafeMutableRawPointer?) {
        let block = UnsafeMutablePointer<Block>.allocate(capacity: 1)
        block.initialize(
            to: Block(base: base, count: count, metadata: metadata, older: newest.load(ordering: .relaxed)))
        newest.store(block, ordering: .releasing)
    }

    /// [any thread] Calls `body` for each lease that is held.
    func forEachOut(_ body: (borrowing LeaseRecord) -> Void) {
        var next = newest.load(ordering: .acquiring)
        while let block = next {
            for index in 0..<block.pointee.count where block.pointee.base[index].buffer >= 0 {
                body(block.pointee.base[index])
            }
            next = block.pointee.older
        }
    }

    deinit {
        var next = newest.load(ordering: .acquiring)
        while let block = next {
            let value = block.move()
            block.deallocate()
            value.base.deinitialize(count: value.count)
            UnsafeMutableRawPointer(value.base).deallocate()
            value.metadata?.deallocate()
            next = value.older
        }
    }
}
