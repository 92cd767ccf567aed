// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A fixed set of equal buffers, which are lent as frames.
///
/// The control thread makes all memory. One thread waits for buffers; every thread may take a free one without waiting
/// (a ``BufferLender``), and return one. Several leases may hold a buffer (`share()`); it is free when the last one
/// ends.
final class FramePool: LeaseOwner, @unchecked Sendable {
    /// One buffer's share count. Leases of a buffer may end on different threads.
    private struct BufferRecord: ~Copyable {
        let leases = Atomic<Int>(0)
    }

    let name: String
    let format: VideoFormat
    /// How many buffers the pool has; the number never changes.
    let bufferCount: Int
    /// How many buffers have their memory. The others get theirs when they are written, unless ``touch(_:)`` comes first.
    /// Their addresses are the highest, and a buffer that came back is lent before them. So they are written only if more
    /// buffers are out than ever before. [control thread]
    private(set) var touchedCount = 0
    /// Bytes of all buffers together.
    let byteCount: Int

    private let memory: any FrameMemory
    private let base: UnsafeMutableRawPointer
    private let memoryLayout: BufferLayout
    private let buffers: UnsafeMutablePointer<BufferRecord>
    let layout: MetadataLayout

    let condition = Condition()
    /// The trace of how many buffers are leased; nil without a trace. Set before the pool is used.
    var traceRing: TraceRing? { didSet { trace = traceRing?.pen } }
    @exclusivity(unchecked) private var trace: TracePen?
    private let stop: StopSignal
    private let clock: ChainClock
    // Below: under `condition`.
    private var freeBuffers: [Int32]
    private var leases: LeaseTable
    private var outstanding = 0
    private var waiters = 0
    /// Conditions of copy pools whose writer may wait until it is a buffer's only holder. The list does not hold
    /// the pools, since the pools of two writers would keep each other alive.
    private var uniquenessListeners: [Condition] = []
    private let uniquenessWaiters = Atomic<Int>(0)
    // Written under `condition`, read without it: a thread of low priority that reads must not hold a lock that frames
    // wait for.
    private let records: LeaseRecords
    private let shownFree: Atomic<Int>
    private let starvedSince = Atomic<Int64>(0)
    private let starved = Atomic<Int64>(0)

    /// [control thread] Makes all buffers.
    ///
    /// - Parameters:
    ///   - padding: Room that a library needs around the pixels.
    ///   - touching: How many buffers get their memory now, so that no frame thread meets their page faults; nil for all.
    ///   - leasesPerBuffer: How many holders one buffer can have at once, from the plan.
    ///   - furtherLeases: Leases for repeats of one buffer that lie in queues, beside those that each buffer has.
    /// - Throws: ``FrameHostError`` `.exhausted`.
    init(
        name: String, format: VideoFormat, padding: BufferPadding = BufferPadding(), bufferCount: Int,
        touching: Int? = nil, leasesPerBuffer: Int = 4,
        furtherLeases: Int = 0, metadata: MetadataLayout = .none,
        memory: any FrameMemory = AnonymousMemory(), stop: StopSignal, clock: ChainClock
    ) throws {
        self.name = name
        self.format = format
        self.bufferCount = bufferCount
        self.memory = memory
        self.stop = stop
        self.clock = clock
        layout = metadata
        leases = LeaseTable(.frame, layout: metadata)
        records = leases.records
        shownFree = Atomic(bufferCount)
        memoryLayout = BufferLayout(format, padding: padding)
        byteCount = memoryLayout.byteCount * bufferCount
        do {
            base = try memory.allocate(byteCount: byteCount, touching: false)
        } catch { throw FrameHostError.wrap(error, place: name) }
        buffers = .allocate(capacity: max(bufferCount, 1))
        for index in 0..<bufferCount { (buffers + index).initialize(to: BufferRecord()) }
        freeBuffers = (0..<Int32(bufferCount)).reversed()
        super.init()
        try touch(touching ?? bufferCount, isNew: true)
        leases.reserve(bufferCount * max(leasesPerBuffer, 1) + furtherLeases, owner: self)
        stop.register(condition)
    }

    deinit {
        traceRing?.isOver.store(true, ordering: .releasing)
        buffers.deinitialize(count: bufferCount)
        buffers.deallocate()
        memory.free(base, byteCount: byteCount)
    }

    /// [control thread] Gives the first `count` buffers their memory, if they have none yet. What the buffers hold stays.
    ///
    /// - Throws: ``FrameHostError`` `.exhausted`.
    func touch(_ count: Int) throws { try touch(count, isNew: false) }

    private func touch(_ count: Int, isNew: Bool) throws {
        let count = min(count, bufferCount)
        guard count > touchedCount else { return }
        let start = memoryLayout.byteCount * touchedCount
        do {
            try AnonymousMemory.touch(base + start, byteCount: memoryLayout.byteCount * count - start, isNew: isNew)
        } catch { throw FrameHostError.wrap(error, place: name) }
        touchedCount = count
    }

    /// [control thread] Wakes a writer's copy pool from now on when a buffer of this pool is down to one holder.
    func addUniquenessListener(_ copyPool: FramePool) {
        condition.locked {
            guard !uniquenessListeners.contains(where: { $0 === copyPool.condition }) else { return }
            uniquenessListeners.append(copyPool.condition)
        }
    }

    /// [control thread] Makes room for `count` leases in all, for branches that are attached.
    func reserveLeases(_ count: Int) { condition.locked { leases.reserve(atLeast: count, owner: self) } }

    // MARK: Lending

    /// [any thread] Leases a free buffer; nil when none is free.
    ///
    /// - Parameter isStarving: Whether finding none counts as starvation; false for a caller that can do without a
    ///   buffer.
    func tryLease(isStarving: Bool = true) -> Frame? {
        condition.lock()
        guard let record = takeLocked() else {
            if isStarving { noteStarving() }
            condition.unlock()
            return nil
        }
        condition.unlock()
        return Frame(Lease(record))
    }

    /// [allocating thread] Leases a free buffer, and waits for one until `stop`.
    ///
    /// - Throws: ``FrameHostError`` `.stopped`.
    func lease() throws -> Frame {
        condition.lock()
        defer { condition.unlock() }
        while true {
            if stop.isRaised { throw FrameHostError(.stopped, place: name, what: "stopped while waiting for a buffer") }
            if let record = takeLocked() { return Frame(Lease(record)) }
            noteStarving()
            waiters += 1
            Spinner.fallAsleep()
            condition.wait()
            Spinner.wakeUp()
            waiters -= 1
        }
    }

    /// As `lease()`, but returns nil as soon as `original` has no other holder.
    func leaseCopy(unlessUnique original: borrowing Frame) throws -> Frame? {
        let origin = original.pool
        origin.uniquenessWaiters.add(1, ordering: .sequentiallyConsistent)
        defer { origin.uniquenessWaiters.subtract(1, ordering: .sequentiallyConsistent) }
        condition.lock()
        defer { condition.unlock() }
        while true {
            // Sequentially consistent, as is the other side in `giveBack`: each raises its own flag and then looks at
            // the other's.
            if origin.buffers[Int(original.record.pointee.buffer)].leases.load(ordering: .sequentiallyConsistent) == 1 {
                return nil
            }
            if stop.isRaised { throw FrameHostError(.stopped, place: name, what: "stopped while waiting for a buffer") }
            if let record = takeLocked() { return Frame(Lease(record)) }
            noteStarving()
            waiters += 1
            Spinner.fallAsleep()
            condition.wait()
            Spinner.wakeUp()
            waiters -= 1
        }
    }

    /// With the lock held: notes that no buffer is free.
    private func noteStarving() {
        if starvedSince.load(ordering: .relaxed) == 0 { starvedSince.store(clock.now(), ordering: .relaxed) }
    }

    /// [stage thread] Leases this buffer, for a pool whose buffers another process names; nil where it is not free.
    func lease(buffer: Int32) -> Frame? {
        condition.lock()
        defer { condition.unlock() }
        guard let place = freeBuffers.firstIndex(of: buffer) else { return nil }
        freeBuffers.swapAt(place, freeBuffers.count - 1)
        guard let record = takeLocked() else { return nil }
        return Frame(Lease(record))
    }

    /// [any thread] A bit for each buffer that is leased, of the first 64.
    var leasedBits: UInt64 {
        condition.locked {
            let all = bufferCount >= 64 ? UInt64.max : (1 << UInt64(bufferCount)) - 1
            return freeBuffers.reduce(all) { $1 < 64 ? $0 & ~(1 << UInt64($1)) : $0 }
        }
    }

    private func takeLocked() -> UnsafeMutablePointer<LeaseRecord>? {
        guard let buffer = freeBuffers.popLast() else { return nil }
        shownFree.store(freeBuffers.count, ordering: .relaxed)
        let since = starvedSince.load(ordering: .relaxed)
        if since != 0 {
            starved.store(starved.load(ordering: .relaxed) + clock.now() - since, ordering: .relaxed)
            starvedSince.store(0, ordering: .relaxed)
        }
        if let trace { trace.level(bufferCount - freeBuffers.count) }
        buffers[Int(buffer)].leases.store(1, ordering: .relaxed)
        if outstanding == 0 { _ = Unmanaged.passRetained(self) }
        outstanding += 1
        let record = leases.take(owner: self)
        record.pointee.buffer = buffer
        record.pointee.base = base + Int(buffer) * memoryLayout.byteCount
        record.pointee.byteCount = memoryLayout.byteCount
        // Reading the clock costs time. The runner sets this time when it hands the frame on.
        record.pointee.since.store(0, ordering: .relaxed)
        record.pointee.header.reset(orientation: format.orientation)
        return record
    }

    override func share(_ record: UnsafeMutablePointer<LeaseRecord>) -> UnsafeMutablePointer<LeaseRecord> {
        buffers[Int(record.pointee.buffer)].leases.add(1, ordering: .relaxed)
        condition.lock()
        outstanding += 1
        let other = leases.take(owner: self)
        other.pointee.buffer = record.pointee.buffer
        condition.unlock()
        other.pointee.base = record.pointee.base
        other.pointee.byteCount = record.pointee.byteCount
        other.pointee.holder.store(record.pointee.holder.load(ordering: .relaxed), ordering: .relaxed)
        other.pointee.since.store(record.pointee.since.load(ordering: .relaxed), ordering: .relaxed)
        other.pointee.header.replace(with: record.pointee.header, layout)
        return other
    }

    override func giveBack(_ record: UnsafeMutablePointer<LeaseRecord>) {
        record.pointee.hand(to: nil)
        // Before the lock is taken: destroying a value may take time.
        if record.pointee.header.metadataPresent != 0 { layout.clear(&record.pointee.header) }
        let buffer = record.pointee.buffer
        condition.lock()
        let left = buffers[Int(buffer)].leases.subtract(1, ordering: .sequentiallyConsistent).newValue
        // Read under the lock. Once it is released, and this was not the last lease, another thread may return the last
        // one and so free the pool.
        let listeners =
            left == 1 && uniquenessWaiters.load(ordering: .sequentiallyConsistent) > 0 ? uniquenessListeners : []
        leases.giveBack(record)
        if left == 0 {
            freeBuffers.append(buffer)
            shownFree.store(freeBuffers.count, ordering: .relaxed)
            if let trace { trace.level(bufferCount - freeBuffers.count) }
            if waiters > 0 { condition.signal() }
        }
        outstanding -= 1
        let isLast = outstanding == 0
        condition.unlock()
        for listener in listeners { listener.locked { listener.broadcast() } }
        if isLast { Unmanaged.passUnretained(self).release() }
    }

    @inline(__always)
    func isUnique(_ record: UnsafeMutablePointer<LeaseRecord>) -> Bool {
        buffers[Int(record.pointee.buffer)].leases.load(ordering: .acquiring) == 1
    }

    /// The time of the chain clock, for a lease that a stage keeps.
    var now: Int64 { clock.now() }

    /// Plane `index` of the buffer at `base`.
    @inline(__always)
    func plane(_ index: Int, at base: UnsafeMutableRawPointer) -> MutablePlane {
        MutablePlane(
            baseAddress: (base + memoryLayout.offsets[index]).assumingMemoryBound(to: UInt8.self),
            strideBytes: memoryLayout.strides[index],
            rowBytes: format.pixelFormat.rowBytes(plane: index, width: format.width),
            height: format.pixelFormat.rows(plane: index, height: format.height))
    }

    // MARK: Watching

    /// [any thread] Buffers that nobody holds. Does not wait.
    var freeCount: Int { shownFree.load(ordering: .relaxed) }

    /// [any thread] Milliseconds for which allocations found no buffer, in total. Does not wait.
    var starvedMs: Int {
        let since = starvedSince.load(ordering: .relaxed)
        let ended = starved.load(ordering: .relaxed)
        return Int((ended + (since == 0 ? 0 : max(clock.now() - since, 0))) / 1_000_000)
    }

    /// [any thread] When the present shortage began; nil when there is none. Does not wait.
    var starvedSinceTime: Int64? {
        let since = starvedSince.load(ordering: .relaxed)
        return since == 0 ? nil : since
    }

    /// [any thread] How often a stage shared more leases than its declaration reserved.
    var leaseGrowths: Int { condition.locked { leases.growths } }

    /// [any thread] `(holder code, buffer, since)` of every lease that is out, each as it was at some moment of the
    /// call. Does not wait, and makes no thread wait.
    func holders() -> [(holder: Int32, buffer: Int32, since: Int64)] {
        var result: [(holder: Int32, buffer: Int32, since: Int64)] = []
        records.forEachOut {
            let (holder, buffer) = ($0.holder.load(ordering: .relaxed), $0.buffer)
            // The lease may have been returned since it was found.
            if buffer >= 0 { result.append((holder, buffer, $0.since.load(ordering: .relaxed))) }
        }
        return result
    }

    /// [control thread] Free buffers and distinct leased ones: ledger law 5 says they add up to `bufferCount`.
    func census() -> (free: Int, leased: Int) {
        condition.locked {
            var seen = Set<Int32>()
            records.forEachOut { seen.insert($0.buffer) }
            return (freeBuffers.count, seen.count)
        }
    }
}
