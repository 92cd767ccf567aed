// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A stage's output: it makes frames and access units, and hands them on.
///
/// It belongs to the stage's thread. Making and handing on may wait for a free buffer or for room in a queue. A stop of
/// the chain ends such a wait with an error of code ``FrameHostError/Code/stopped``, which the stage lets through.
public final class Output {
    /// Whether an item answers one that came in, or is the stage's own.
    public enum Origin: Sendable {
        /// The item answers one that came in.
        case answer
        /// The item answers none: a repeat, a slate.
        case made
    }

    unowned let stage: StageRunner
    let room: RoomGate
    /// Exchanged by the stage's own thread between two items; see ``relink(_:)``.
    @exclusivity(unchecked) private(set) var links: [LinkEnd] = []
    var pool: FramePool?
    var slab: Slab?
    /// False for every stage on the thread of a live source: an item that finds no place is dropped there.
    var mayWait = true
    /// True when a join somewhere behind waits for every item, so that drops are announced.
    ///
    /// [any thread] The thread that makes a change sets it while the stage's own thread runs. The change itself,
    /// which links the join, orders the two.
    var announcesGaps: Bool {
        get { announces.load(ordering: .relaxed) }
        set { announces.store(newValue, ordering: .relaxed) }
    }
    private let announces = Atomic<Bool>(false)
    /// Time of the last item.
    @exclusivity(unchecked) private var lastSent = Int64.min
    /// How many links, from the first on, lead to taps. The very last link does not count.
    private var tapCount = 0
    private var pending: UnsafeMutablePointer<UnsafeMutablePointer<LeaseRecord>?>?

    init(stage: StageRunner, stop: StopSignal) {
        self.stage = stage
        room = RoomGate(stop: stop)
    }

    deinit { pending?.deallocate() }

    /// [stage thread, between two items; control thread before it runs] Sets where items go from here on.
    func relink(_ links: [LinkEnd]) {
        pending?.deallocate()
        pending = nil
        for link in links where !self.links.contains(where: { $0 === link }) {
            link.begin(emitted: stage.counters.emitted.value)
            link.queue?.begin(after: lastSent)
        }
        self.links = links
        tapCount = min(links.prefix { $0.isTap }.count, max(links.count - 1, 0))
        guard links.count > 1 else { return }
        pending = .allocate(capacity: links.count)
        pending!.initialize(repeating: nil, count: links.count)
    }

    // MARK: Making

    /// Lends buffers of the output pool to a library that fills them in its own time, at most ``StageDemand/floor`` at
    /// once; nil without a pool.
    public internal(set) var lender: BufferLender?

    /// Makes a frame to fill.
    ///
    /// Waits for a free buffer, except in a live source.
    ///
    /// - Returns: Nil only in a live source: no buffer is free, and the picture counts as dropped (`noBuffer`).
    /// - Throws: ``FrameHostError`` with code `.stopped`.
    public func makeFrame() throws -> Frame? {
        guard let pool else {
            throw FrameHostError(
                .broken, place: stage.id, what: "makeFrame() is only for stages that give raw video of their own")
        }
        if stage.demand.isLive {
            guard let frame = pool.tryLease() else {
                stage.counters.made.add()
                stage.countDrop(.noBuffer)
                return nil
            }
            frame.record.pointee.holder.store(stage.holderCode, ordering: .relaxed)
            return frame
        }
        let inside = stage.thread.enterWait(for: .buffer)
        let frame = try pool.lease()
        stage.thread.leaveWait(inside)
        frame.record.pointee.holder.store(stage.holderCode, ordering: .relaxed)
        return frame
    }

    /// [a tap's thread] Makes a copy of `frame` with its header, in a buffer of this stage's own pool. Waits for a
    /// free buffer; on a live source's thread nil means that none is free.
    func makeCopy(of frame: borrowing Frame) throws -> Frame? {
        guard let pool, let copy = mayWait ? try makeFrame() : pool.tryLease() else { return nil }
        copy.record.pointee.holder.store(stage.holderCode, ordering: .relaxed)
        copy.copyPixels(from: frame)
        copy.copyProperties(from: frame)
        stage.counters.pixelCopies.add()
        return copy
    }

    /// [a tap's thread] The same for an access unit; nil for a unit that is larger than the whole slab.
    func makeCopy(of unit: borrowing AccessUnit) throws -> AccessUnit? {
        guard let slab, slab.mayHold(byteCount: unit.byteCount) else { return nil }
        var copy = try makeAccessUnit(byteCount: unit.byteCount)
        unit.withBytes { bytes in copy.withMutableBytes { $0.copyMemory(from: bytes) } }
        slab.copyHeader(of: unit.record, to: copy.record)
        stage.counters.pixelCopies.add()
        return copy
    }

    /// [a tap's thread] The same for a block of sound.
    func makeCopy(of block: borrowing AudioBlock) throws -> AudioBlock? {
        guard let slab, slab.mayHold(byteCount: block.record.pointee.byteCount) else { return nil }
        var copy = try makeAudioBlock(sampleCount: block.sampleCount)
        block.withSamples { samples in copy.withMutableSamples { _ = $0.update(fromContentsOf: samples) } }
        slab.copyHeader(of: block.record, to: copy.record)
        stage.counters.pixelCopies.add()
        return copy
    }

    /// Makes an access unit of `byteCount` bytes to fill. Waits for room.
    ///
    /// - Throws: ``FrameHostError`` with code `.stopped`, or `.exhausted` when the unit is larger than all the memory
    ///   that is reserved.
    public func makeAccessUnit(byteCount: Int) throws -> AccessUnit {
        guard let slab, slab.content == .accessUnits else {
            throw FrameHostError(
                .broken, place: stage.id,
                what: "makeAccessUnit() is only for stages that give access units of their own")
        }
        // Readers of a network sink hold access units on threads of their own.
        let inside = stage.thread.enterWait(ThreadState.Place.outsideWait, for: .memory)
        let unit = try slab.lease(byteCount: byteCount)
        stage.thread.leaveWait(inside)
        unit.record.pointee.holder.store(stage.holderCode, ordering: .relaxed)
        return unit
    }

    /// Makes a block of `sampleCount` samples of each channel to fill. Waits for room.
    ///
    /// - Throws: ``FrameHostError`` with code `.stopped`, or `.exhausted` when the block is larger than all the memory
    ///   that is reserved.
    public func makeAudioBlock(sampleCount: Int) throws -> AudioBlock {
        guard let slab, slab.channelCount > 0 else {
            throw FrameHostError(
                .broken, place: stage.id, what: "makeAudioBlock() is only for stages that give sound of their own")
        }
        guard sampleCount > 0 else {
            throw FrameHostError(
                .broken, place: stage.id,
                what: "makeAudioBlock() must be asked for 1 sample or more, but was asked for \(sampleCount)")
        }
        let inside = stage.thread.enterWait(ThreadState.Place.outsideWait, for: .memory)
        let block = try slab.lease(sampleCount: sampleCount)
        stage.thread.leaveWait(inside)
        block.record.pointee.holder.store(stage.holderCode, ordering: .relaxed)
        return block
    }

    /// Makes a block of `samples` (`array.span`), of which there is at least one and whose times rise. Waits for room.
    ///
    /// - Throws: ``FrameHostError`` with code `.stopped`, or `.exhausted` when the block is larger than all the memory
    ///   that is reserved.
    public func makeMotionBlock(_ samples: Span<MotionSample>) throws -> MotionBlock {
        guard let slab, slab.content == .motion else {
            throw FrameHostError(
                .broken, place: stage.id, what: "makeMotionBlock() is only for stages that give motion of their own")
        }
        guard !samples.isEmpty else {
            throw FrameHostError(.broken, place: stage.id, what: "makeMotionBlock was called without samples")
        }
        let inside = stage.thread.enterWait(ThreadState.Place.outsideWait, for: .memory)
        var block = try slab.lease(motionCount: samples.count)
        stage.thread.leaveWait(inside)
        block.record.pointee.holder.store(stage.holderCode, ordering: .relaxed)
        block.fill(samples)
        return block
    }

    /// [a tap's thread] The same for a block of motion.
    func makeCopy(of block: borrowing MotionBlock) throws -> MotionBlock? {
        guard let slab, slab.mayHold(byteCount: block.record.pointee.byteCount) else { return nil }
        let inside = stage.thread.enterWait(ThreadState.Place.outsideWait, for: .memory)
        let copy = try slab.lease(motionCount: block.sampleCount)
        stage.thread.leaveWait(inside)
        copy.record.pointee.holder.store(stage.holderCode, ordering: .relaxed)
        UnsafeMutableRawPointer(copy.record.pointee.base!).copyMemory(
            from: block.record.pointee.base!, byteCount: block.record.pointee.byteCount)
        slab.copyHeader(of: block.record, to: copy.record)
        stage.counters.pixelCopies.add()
        return copy
    }

    // MARK: Sending

    /// Hands a frame on to every link of the output.
    public func emit(_ frame: consuming Frame, as origin: Origin = .answer) throws {
        try emit(frame.release(), origin)
    }

    /// Hands an access unit on to every link of the output.
    public func emit(_ unit: consuming AccessUnit, as origin: Origin = .answer) throws {
        try emit(unit.release(), origin)
    }

    /// Hands a block of sound on to every link of the output.
    public func emit(_ block: consuming AudioBlock, as origin: Origin = .answer) throws {
        try emit(block.release(), origin)
    }

    /// Hands a block of motion on to every link of the output.
    public func emit(_ block: consuming MotionBlock, as origin: Origin = .answer) throws {
        try emit(block.release(), origin)
    }

    /// Says that the stage answers an item that came in with nothing, and why.
    public func drop(_ reason: DropReason) {
        stage.countDrop(reason)
        stage.heldHeaders?.doubt()
    }

    /// Says that an item that came in goes on as a part of others: an encoder of sound cuts blocks anew. The stage
    /// emits what it makes of them as ``Origin/made``.
    public func absorb() { stage.counters.merged.add() }

    private func emit(_ lease: consuming Lease, _ origin: Origin) throws {
        let record = lease.record
        if stage.isSource {
            record.pointee.header.sequenceNumber = UInt64(stage.counters.made.value)
            stage.place(&record.pointee.header, rate: pool?.format.frameRate)
            if record.pointee.header.capturedAt == 0 { record.pointee.header.capturedAt = stage.clock.now() }
            stage.counters.made.add()
            if stage.mode == .followsGap { stage.goOn(after: record) }
        } else if origin == .made {
            stage.counters.made.add()
        }
        if stage.inputs != nil, stage.demand.outputRate != nil {
            // The numbers rise by one, whichever input the join shows.
            record.pointee.header.sequenceNumber = UInt64(stage.counters.emitted.value)
        }
        if origin == .answer, let held = stage.heldHeaders, !held.answer(&record.pointee.header) {
            stage.reportLostMetadata(record)
        }
        if origin == .answer, stage.isTooLate(record.pointee.header) { return }
        stage.lastSequence = record.pointee.header.sequenceNumber
        if stage.times.check.gave(record.pointee.header.orderTime) {
            stage.reportTime(record)
        }
        let thread = stage.thread!
        if let trace = thread.trace, stage.isSource || origin == .made || stage.inputs != nil {
            trace.emit(stage: stage.number, frame: record.pointee.header.sequenceNumber)
        }
        stage.pictures.see(lease)
        stage.units.see(lease)
        // Stages that run inline behind set the thread's place to themselves. Afterwards the thread is in this stage
        // again.
        let inside = thread.inside.load(ordering: .relaxed)
        defer { thread.inside.store(inside, ordering: .relaxed) }
        // The time of the stages behind on this thread is not this stage's.
        let (before, elsewhere) = stage.histogram == nil ? (0, 0) : (stage.clock.now(), thread.elsewhere)
        stage.addLatency(before, since: record.pointee.header.capturedAt)
        let isSent = send(lease)
        if stage.histogram != nil { thread.elsewhere = elsewhere &+ stage.clock.now() &- before }
        guard isSent else {
            throw FrameHostError(.stopped, place: stage.id, what: "stopped while handing on")
        }
    }

    /// False when the run was stopped.
    @inline(__always)
    func send(_ lease: consuming Lease) -> Bool {
        stage.counters.emitted.add()
        return sendCounted(lease)
    }

    /// As `send`, for the frame of a filter, which is counted already.
    @inline(__always)
    func sendCounted(_ lease: consuming Lease) -> Bool {
        // The next stage sets its own; this stage may be gone by then.
        lease.record.pointee.hand(to: nil)
        lastSent = lease.record.pointee.header.pts.nanoseconds
        if links.count == 1 { return sendAlone(lease, 0) }
        return fork(lease)
    }

    private func fork(_ lease: consuming Lease) -> Bool {
        guard !links.isEmpty, let pending else {
            stage.counters.unconnected.add()
            return true
        }
        let record = lease.release()
        record.pointee.since.store(stage.clock.now(), ordering: .relaxed)
        stage.counters.copies.add(links.count - 1)
        // Taps copy the item and release it before the other links get it.
        for index in 0..<tapCount { sendInline(record.pointee.owner.share(record), index) }
        let first = tapCount
        if first + 1 == links.count { return sendAlone(Lease(record), first) }
        pending[first] = record
        for index in first + 1..<links.count {
            pending[index] = record.pointee.owner.share(record)
        }
        guard offerToQueues(pending) else {
            for index in first..<links.count {
                if let record = pending[index] { links[index].refuseStopped(Lease(record)) }
                pending[index] = nil
            }
            return false
        }
        // Consumers on this thread come last, so that no other thread waits for them.
        for index in first..<links.count {
            guard let record = pending[index] else { continue }
            pending[index] = nil
            sendInline(record, index)
        }
        return !stage.stop.isRaised
    }

    /// Hands the item to a branch that runs on this thread. A branch that was stopped alone, because it is being
    /// removed, does not stop the others.
    private func sendInline(_ record: UnsafeMutablePointer<LeaseRecord>, _ index: Int) {
        _ = links[index].send(Lease(record), from: self)
    }

    /// Hands the item on over the only link that is left; false when the run was stopped.
    @inline(__always)
    private func sendAlone(_ lease: consuming Lease, _ index: Int) -> Bool {
        if links[index].send(lease, from: self) { return true }
        return links[index].inline != nil && !stage.stop.isRaised
    }

    /// Offers the pending items to each queue until all have taken them; false when the run was stopped.
    private func offerToQueues(_ pending: UnsafeMutablePointer<UnsafeMutablePointer<LeaseRecord>?>) -> Bool {
        while true {
            let version = room.version
            var waits = false
            for index in tapCount..<links.count {
                guard case .queue(let queue) = links[index].way, let record = pending[index] else { continue }
                if let back = queue.offer(Lease(record), mayWait: mayWait) {
                    pending[index] = back.release()
                    if queue.stalledSince.load(ordering: .relaxed) == 0 {
                        queue.stalledSince.store(stage.clock.now(), ordering: .relaxed)
                    }
                    waits = true
                } else {
                    queue.stalledSince.store(0, ordering: .relaxed)
                    pending[index] = nil
                }
            }
            if !waits { return true }
            let inside = stage.thread.enterWait(for: .room)
            let goesOn = room.wait(after: version)
            stage.thread.leaveWait(inside)
            if !goesOn { return false }
        }
    }

    /// Tells joins behind that nothing up to `pts` will come.
    func announceNothing(upTo pts: Int64) {
        guard announcesGaps else { return }
        for link in links { link.announceNothing(upTo: pts) }
    }

    /// No item follows: drains what runs inline behind, and ends the queues.
    func end() { for link in links { link.end() } }
}
