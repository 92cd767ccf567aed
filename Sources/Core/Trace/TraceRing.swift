// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// The entries of one thread, pool, slab or queue on their way to the trace thread: a fixed ring with one writer and
/// one reader, without locks.
///
/// A thread writes its own ring; any other ring is written under the lock of the object that it belongs to. A full ring
/// loses the new entry and counts it. `@unchecked Sendable` by that rule; the two ends meet in atomics.
final class TraceRing: @unchecked Sendable {
    /// Whose entries these are.
    enum Subject: Sendable {
        case thread(name: String)
        case pool(name: String)
        case slab(name: String)
        case queue(name: String)
    }

    let subject: Subject
    let capacity: Int
    /// The writer's end.
    let pen: TracePen
    /// The kernel's number of the thread; 0 until it runs.
    let threadNumber = Atomic<Int32>(0)
    /// Whether nothing is written any more.
    let isOver = Atomic<Bool>(false)
    /// Entries that have been read.
    private(set) var head = 0

    /// - Parameter capacity: A power of two.
    init(_ subject: Subject, capacity: Int, clock: ChainClock) {
        self.subject = subject
        self.capacity = capacity
        pen = TracePen(capacity: capacity, clock: clock)
    }

    deinit { pen.free() }

    /// [the thread, at its start] Notes the kernel's number of the thread.
    func enter() { threadNumber.store(KernelThread.currentNumber, ordering: .relaxed) }

    // MARK: The reader's end

    /// Entries up to this one can be read.
    var tail: Int { pen.head.pointee.tail.load(ordering: .acquiring) }

    subscript(index: Int) -> TraceRecord { pen.head.pointee.slots[index & (capacity - 1)] }

    /// Frees the places before `index` for the writer.
    func release(to index: Int) {
        head = index
        pen.head.pointee.read.store(index, ordering: .releasing)
    }

    /// All entries that found no room.
    var lost: Int { pen.head.pointee.lost.load(ordering: .relaxed) }

    /// [any thread] Sets whether entries are kept from here on.
    func setOpen(_ isOpen: Bool) { pen.head.pointee.isOpen.store(isOpen, ordering: .relaxed) }
}

/// The writer's end of a ``TraceRing``: one word, so that nil stands for "no trace".
///
/// `@unchecked Sendable`: see the ring, which owns the memory and is kept by whatever has the pen.
struct TracePen: @unchecked Sendable {
    /// What both ends read. It has no variables: a change of one would count as an access to the whole struct.
    fileprivate struct Head: ~Copyable {
        /// Written by the writer only.
        let tail = Atomic<Int>(0)
        let isOpen = Atomic<Bool>(false)
        let lost = Atomic<Int>(0)
        /// Written by the reader only.
        let read = Atomic<Int>(0)
        let own: UnsafeMutablePointer<Own>
        let slots: UnsafeMutablePointer<TraceRecord>
        let capacity: Int
        let clock: Unmanaged<ChainClock>
    }

    /// What only the writer reads.
    fileprivate struct Own {
        var seenRead = 0
        var gap = 0
        var depth: UInt16 = 0
        var waitSince: Int64 = 0
        var waitKind = TraceRecord.Wait.time
    }

    /// A shorter wait gets no entry, nanoseconds.
    static let shortestWait: Int64 = 5_000

    fileprivate let head: UnsafeMutablePointer<Head>

    fileprivate init(capacity: Int, clock: ChainClock) {
        let own = UnsafeMutablePointer<Own>.allocate(capacity: 1)
        own.initialize(to: Own())
        head = .allocate(capacity: 1)
        head.initialize(
            to: Head(own: own, slots: .allocate(capacity: capacity), capacity: capacity, clock: .passRetained(clock)))
    }

    fileprivate func free() {
        head.pointee.own.deallocate()
        head.pointee.slots.deallocate()
        head.pointee.clock.release()
        head.deinitialize(count: 1)
        head.deallocate()
    }

    /// Nanoseconds of the chain clock.
    var now: Int64 { head.pointee.clock._withUnsafeGuaranteedRef { $0.now() } }

    // MARK: Calls of stages

    /// A stage begins with an item at `time`.
    func begin(_ kind: TraceRecord.Kind, stage: Int, frame: UInt64, at time: Int64) {
        add(kind, Int64(truncatingIfNeeded: frame), stage: Int32(truncatingIfNeeded: stage), at: time)
        own.pointee.depth &+= 1
    }

    func begin(_ kind: TraceRecord.Kind, stage: Int, frame: UInt64) {
        begin(kind, stage: stage, frame: frame, at: now)
    }

    /// A stage is called for something other than an item.
    func begin(_ call: StageCall, stage: Int) {
        add(.call, 0, stage: Int32(truncatingIfNeeded: stage), call.rawValue, at: now)
        own.pointee.depth &+= 1
    }

    /// The newest call is over at `time`.
    func end(at time: Int64) {
        own.pointee.depth &-= 1
        add(.end, 0, at: time)
    }

    func end() { end(at: now) }

    /// A join is handed an item.
    func input(_ index: Int, frame: UInt64) {
        add(.input, Int64(truncatingIfNeeded: frame), UInt8(truncatingIfNeeded: index), at: now)
    }

    func emit(stage: Int, frame: UInt64) {
        add(.emit, Int64(truncatingIfNeeded: frame), stage: Int32(truncatingIfNeeded: stage), at: now)
    }

    func drop(stage: Int, _ reason: DropReason, frame: UInt64, count: Int = 1) {
        add(
            .drop, Int64(truncatingIfNeeded: frame), stage: Int32(truncatingIfNeeded: stage), UInt8(reason.rawValue),
            count: UInt16(clamping: count), at: now)
    }

    /// The thread is about to wait.
    func beginWait(_ kind: TraceRecord.Wait) {
        (own.pointee.waitKind, own.pointee.waitSince) = (kind, now)
    }

    /// The thread goes on.
    func endWait(stage: Int32) {
        let (since, time) = (own.pointee.waitSince, now)
        guard time &- since >= Self.shortestWait else { return }
        add(.wait, since, stage: stage, own.pointee.waitKind.rawValue, at: time)
    }

    /// What a pool, slab or queue holds now.
    func level(_ value: Int) { add(.level, Int64(value), at: now) }

    // MARK: The ring

    private var own: UnsafeMutablePointer<Own> { head.pointee.own }

    private func add(
        _ kind: TraceRecord.Kind, _ value: Int64, stage: Int32 = -1, _ detail: UInt8 = 0, count: UInt16? = nil,
        at time: Int64
    ) {
        guard head.pointee.isOpen.load(ordering: .relaxed) else { return }
        let own = own
        let tail = head.pointee.tail.load(ordering: .relaxed)
        // After a loss two entries need room: the loss is written first.
        let places = own.pointee.gap == 0 ? 1 : 2
        if tail &- own.pointee.seenRead > head.pointee.capacity - places {
            own.pointee.seenRead = head.pointee.read.load(ordering: .acquiring)
            guard tail &- own.pointee.seenRead <= head.pointee.capacity - places else {
                own.pointee.gap += 1
                head.pointee.lost.store(head.pointee.lost.load(ordering: .relaxed) &+ 1, ordering: .relaxed)
                return
            }
        }
        let mask = head.pointee.capacity - 1
        var next = tail
        if places == 2 {
            head.pointee.slots[next & mask] = TraceRecord(
                time: time, value: Int64(own.pointee.gap), stage: -1, kind: .gap, detail: 0, depth: 0)
            own.pointee.gap = 0
            next &+= 1
        }
        head.pointee.slots[next & mask] = TraceRecord(
            time: time, value: value, stage: stage, kind: kind, detail: detail, depth: count ?? own.pointee.depth)
        head.pointee.tail.store(next &+ 1, ordering: .releasing)
    }
}
