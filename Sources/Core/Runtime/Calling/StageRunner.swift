// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// One stage of a running chain: calls it, counts for it, catches its errors.
///
/// Belongs to one stage thread from `start` on; counters and atomics are read by the control thread. `@unchecked
/// Sendable` for that reason.
final class StageRunner: @unchecked Sendable {
    enum FilterOutcome { case forward, dropped, stopped }

    /// The stage's number in this run; no other stage ever has it.
    let number: Int
    let id: String
    /// Whether the stage is a source, which is never replaced by another kind of stage.
    let isSource: Bool
    private let kindCode: Atomic<UInt8>
    /// Whether it is a ``CopyTap``, which gets each item before the other stages behind the same fork.
    let isTap: Bool
    /// The present instance. Its own thread exchanges it between two items (``exchange(_:isDraining:)``); others use
    /// ``shown``.
    @exclusivity(unchecked) private(set) var instance: StageInstance
    private let shownBox: Locked<StageInstance>
    // Of the present instance, at hand for `filter`: every frame takes this way.
    @exclusivity(unchecked) private(set) var context: StageContext
    @exclusivity(unchecked) private var asFilter: (any Filter)?
    @exclusivity(unchecked) private var modifies: Bool
    @exclusivity(unchecked) private var hold: Int
    /// Ends the waits of this stage, through all its instances.
    let stop: StopSignal
    let clock: ChainClock
    private let onErrorBox: Locked<OnError?>

    /// Present unless the stage has no output.
    @exclusivity(unchecked) var output: Output?
    /// Copies for a writer whose input is shared.
    var copyPool: FramePool?
    /// Tells the chain that this stage has failed.
    var onFailure: ((StageRunner, FrameHostError) -> Void)?
    /// Tells the chain that this join has ended before its inputs.
    var onJoinEnd: ((StageRunner) -> Void)?
    /// The thread it runs on. Its context knows it too, since a source sleeps through the context.
    @exclusivity(unchecked) var thread: ThreadState! {
        didSet {
            context.thread = thread
            if histogram != nil { thread?.clock = clock }
        }
    }
    @exclusivity(unchecked) var inputs: JoinInputs?

    let counters = StageCounters()
    let modes = StageMode()
    @exclusivity(unchecked) var times = StageTimes()
    /// Of the present instance. [stage thread]
    @exclusivity(unchecked) private(set) var keeper: UnsafeMutablePointer<KeeperCell>
    /// How long it works on an item, without waits and without the stages behind it on the same thread.
    let histogram: Histogram?
    /// In a timed chain: the time from an item's capture until the stage has handed it on, or until a sink is done
    /// with it.
    let latency: Histogram?
    /// Copies pictures that the stage gives, for readers outside the chain.
    let pictures = PictureTap()
    /// Copies access units that the stage gives, for readers outside the chain.
    let units = UnitTap()
    /// Where the crash handler finds the stage's title; nil where crashes are not reported.
    var crashStages: CrashReport.Stages?
    @exclusivity(unchecked) var hasReportedHold = false
    @exclusivity(unchecked) var hasReportedMetadata = false
    @exclusivity(unchecked) var hasStopped = false
    /// The time up to which joins behind have been told that nothing comes. An answer to an older item, which the stage
    /// still held, is too late.
    @exclusivity(unchecked) var toldUpTo = Int64.min
    /// A bit for each input with sound or motion beside pictures. The stage's frame numbers count only pictures.
    @exclusivity(unchecked) var companionInputs: UInt64 = 0

    init(number: Int, id: String, instance: StageInstance, onError: OnError?, isTimed: Bool) {
        self.number = number
        self.id = id
        self.instance = instance
        shownBox = Locked(instance)
        context = instance.context
        asFilter = instance.plainFilter
        modifies = instance.demand.access == .modify
        hold = instance.demand.hold
        isSource = instance.kind == .source
        kindCode = Atomic(instance.kind.code)
        isTap = instance.stage is CopyTap
        stop = context.stop
        onErrorBox = Locked(onError)
        clock = context.clock
        keeper = instance.keeper.cell
        histogram = isTimed ? Histogram() : nil
        latency = isTimed ? Histogram() : nil
    }

    /// [stage thread] Takes another instance in the place of the present one; see ``exchange(_:isDraining:)``.
    func adopt(_ other: StageInstance) {
        (instance, context) = (other, other.context)
        asFilter = other.plainFilter
        modifies = other.demand.access == .modify
        hold = other.demand.hold
        keeper = other.keeper.cell
        kindCode.store(other.kind.code, ordering: .relaxed)
    }

    /// What ``LeaseRecord/holder`` says while this stage has a lease; one more while it waits in the queue before it.
    var holderCode: Int32 { Int32(number) &* 2 }
    /// [any thread] The kind of the present instance.
    var kind: StageKind { StageKind(code: kindCode.load(ordering: .relaxed)) }
    /// [any thread] A filter that keeps no frame back.
    var isPlainFilter: Bool { kind == .filter && shown.demand.delay == 0 }
    /// [any thread] Whether frames can pass the stage by, and its declaration allows it.
    var canBePassed: Bool { shown.canBePassed }
    var mode: Mode { modes.value }
    var hasFailed: Bool { modes.hasFailed }
    var isPaused: Bool { modes.isPaused }
    /// [any thread] Whether it has failed, bypassed or not, and no other instance has taken its place.
    var isDown: Bool { modes.isDown }
    /// Whether an instance answers for the last time before another takes its place. [stage thread]
    @exclusivity(unchecked) var isLettingGo = false
    /// Whether the instance that was replaced last had failed. [stage thread]
    @exclusivity(unchecked) var replacedHadFailed = false
    var heldNow: Int { counters.held }
    /// Leases that the present instance keeps, and the most that it kept after a call.
    var keptNow: Int { shown.keeper.kept }
    var mostKept: Int { shown.keeper.most }
    /// [stage thread] The same as ``keptNow``, for each item.
    @inline(__always)
    var ownKept: Int { keeper.pointee.kept }

    /// [any thread] What the chain file says now; nil where it says nothing.
    var onError: OnError? {
        get { onErrorBox.withLock { $0 } }
        set { onErrorBox.withLock { $0 = newValue } }
    }

    /// [any thread] The present instance, of which other threads may read what does not change.
    var shown: StageInstance { shownBox.withLock { $0 } }
    func show(_ instance: StageInstance) { shownBox.withLock { $0 = instance } }
    // [stage thread]
    var info: StageInfo { instance.info }
    var demand: StageDemand { instance.demand }
    var heldHeaders: HeldHeaders? { context.heldHeaders }
    /// [any thread] Sequence number of the item it has in hand or had last.
    var shownFrame: UInt64 { shown.context.item.frame ?? 0 }

    /// `cam (v4l2-source)`.
    var title: String { "\(id) (\(shown.info.id))" }

    /// [stage thread] Sequence number of the item that the stage has in hand or had last.
    var lastSequence: UInt64 {
        @inline(__always) get { context.item.frame ?? 0 }
        @inline(__always) set { context.item.set(newValue) }
    }

    /// [any thread] The number of the next item at this place.
    var nextFrame: UInt64 { counters.taken.value + counters.made.value == 0 ? 0 : shownFrame + 1 }

    /// Changes with every call and every item of the stage.
    var progress: Int { counters.progress }

    @inline(__always)
    func countDrop(_ reason: DropReason, _ count: Int = 1) {
        counters.drop(reason, count)
        if let trace = thread?.trace { trace.drop(stage: number, reason, frame: lastSequence, count: count) }
    }

    func dropCount(_ reason: DropReason) -> Int { counters.dropCount(reason) }

    @inline(__always)
    func addTime(_ time: inout Int64) {
        let now = clock.now()
        histogram?.add(nanoseconds: now &- time &- thread.elsewhere)
        thread.elsewhere = 0
        time = now
    }

    /// [stage thread] An item that was captured at `capturedAt` leaves the stage.
    @inline(__always)
    func addLatency(_ now: Int64, since capturedAt: Int64) {
        if capturedAt > 0 { latency?.add(nanoseconds: now &- capturedAt) }
    }

    // MARK: Items

    /// [stage thread] One frame through a filter.
    @inline(__always)
    func filter(_ frame: inout Frame) -> FilterOutcome {
        counters.taken.add()
        frame.record.pointee.holder.store(holderCode, ordering: .relaxed)
        frame.record.pointee.hand(to: keeper)
        if !modes.simplyRuns, let outcome = letBy(&frame) { return outcome }
        do {
            if modifies, !frame.isUnique { try makeWritable(&frame) }
            thread.inside.store(Int32(number), ordering: .relaxed)
            context.item.set(frame.sequenceNumber, pts: frame.pts)
            let verdict = try asFilter.unsafelyUnwrapped.process(&frame)
            if hold > 0 || ownKept > 0 { checkHold() }
            frame.record.pointee.unkeep()
            switch verdict {
            case .forward:
                counters.emitted.add()
                pictures.see(frame)
                return .forward
            case .drop(let reason):
                countDrop(reason)
                return .dropped
            }
        } catch {
            let wasStopped = isStop(error)
            countDrop(wasStopped ? .stopped : .failed)
            if !wasStopped {
                fail(error, sequence: frame.sequenceNumber, pts: frame.pts)
                // The frame is lost, and a mark that it had with it.
                if mode == .passes { modes.owesGap = true }
            }
            return wasStopped ? .stopped : .dropped
        }
    }

    /// What happens to a frame at a filter that does not run. Returns nil when the filter runs again, with the frame
    /// marked as the first after a gap.
    private func letBy(_ frame: inout Frame) -> FilterOutcome? {
        context.item.set(frame.sequenceNumber, pts: frame.pts)
        switch mode {
        case .failed:
            countDrop(.failed)
            return .dropped
        case .drops:
            countDrop(.paused)
            return .dropped
        case .passes:
            do {
                // The plan relies on this: a writer behind takes the frame for its own.
                if modifies, !frame.isUnique { try makeWritable(&frame) }
            } catch {
                countDrop(.stopped)
                return .stopped
            }
            if modes.owesGap {
                frame.isDiscontinuity = true
                modes.owesGap = false
            }
            counters.emitted.add()
            pictures.see(frame)
            return .forward
        case .runs, .followsGap:
            frame.isDiscontinuity = true
            modes.value = .runs
            return nil
        }
    }

    /// Replaces a frame that others hold by a copy, unless they release it first.
    private func makeWritable(_ frame: inout Frame) throws {
        guard let copyPool else {
            throw FrameHostError(
                .broken, what: "the frame is shared, but the plan provides no copies",
                remedy: "This is a bug of framehost: report it, with the chain file.")
        }
        _ = thread.enterWait(for: .buffer)
        let free = try copyPool.leaseCopy(unlessUnique: frame)
        thread.leaveWait(Int32(number))
        guard var copy = free else { return }
        copy.copyPixels(from: frame)
        copy.copyProperties(from: frame)
        copy.record.pointee.holder.store(holderCode, ordering: .relaxed)
        copy.record.pointee.hand(to: keeper)
        counters.pixelCopies.add()
        swap(&frame, &copy)
    }

    /// [stage thread] One item into a transform or sink; false when the run was stopped.
    func accept(_ lease: consuming Lease, since time: Int64, from index: Int = 0, isInTurn: Bool = true) -> Bool {
        counters.taken.add()
        let record = lease.record
        let sequence = record.pointee.header.sequenceNumber
        let pts = record.pointee.header.pts
        let earlier = context.item.pts
        if companionInputs >> UInt64(index & 63) & 1 == 0 { context.item.set(sequence, pts: pts) }
        if !modes.simplyRuns, let reason = modes.end(of: &record.pointee.header, from: index) {
            if reason == .untilKeyframe { context.keyframeRequest?.raise() }
            countDrop(reason)
            tellLoss(upTo: pts, after: earlier)
            return true
        }
        record.pointee.hand(to: keeper)
        record.pointee.keep()
        record.pointee.since.store(time != 0 ? time : clock.now(), ordering: .relaxed)
        thread.inside.store(Int32(number), ordering: .relaxed)
        do {
            try hand(lease, from: index, isInTurn: isInTurn)
            checkHold()
            return true
        } catch {
            if isStop(error) {
                // The item in hand. An item that was stopped on its way out is counted at its link.
                settleAfterStop()
                return false
            }
            counters.held = instance.body?.held ?? 0
            heldHeaders?.doubt()
            countFailed()
            fail(error, sequence: sequence, pts: pts)
            output?.announceNothing(upTo: pts.nanoseconds)
            return true
        }
    }

    /// Calls the stage with an item, and notes what it answers.
    @inline(__always)
    private func hand(_ lease: consuming Lease, from index: Int, isInTurn: Bool) throws {
        let record = lease.record
        switch instance.body {
        case .sink(let sink):
            let capturedAt = record.pointee.header.capturedAt
            switch try sink.consume(Sample(lease), from: index) {
            case .delivered:
                counters.delivered.add()
                if latency != nil { addLatency(clock.now(), since: capturedAt) }
            case .idle: counters.idle.add()
            case .dropped(let reason): countDrop(reason)
            }
        case .transform(let transform):
            guard let output else { return }
            if context.ownKeyframeRequest.take() { transform.keyframeRequested() }
            let (pts, before) = (record.pointee.header.pts, counters.emitted.value)
            times.check.came(record.pointee.header.orderTime)
            heldHeaders?.note(record.pointee.header)
            if let several = instance.multiTransform {
                try several.process(Sample(lease), from: index, isInTurn: isInTurn, output)
            } else {
                try transform.process(Sample(lease), output)
            }
            settle(held: transform.held, output, pts, before)
        case .delaying(let filter):
            guard let output else { return }
            let (pts, before) = (record.pointee.header.pts, counters.emitted.value)
            times.check.came(record.pointee.header.orderTime)
            var frame = Frame(lease)
            if modifies, !frame.isUnique {
                try makeWritable(&frame)
                frame.record.pointee.keep()
                frame.record.pointee.since.store(clock.now(), ordering: .relaxed)
            }
            try filter.process(frame, output)
            settle(held: filter.held, output, pts, before)
        case .source, .filter, .join, nil: break
        }
    }

    /// Notes what a stage holds after a call, and tells joins behind that it gave nothing for an item that it did not keep.
    private func settle(held count: Int, _ output: Output, _ pts: MediaTime, _ emittedBefore: Int) {
        counters.held = count
        if output.announcesGaps, counters.emitted.value == emittedBefore, count == 0 {
            output.announceNothing(upTo: pts.nanoseconds)
        }
    }

    /// [stage thread] One call of a source; nil when the run was stopped.
    func produce() -> SourceProgress? {
        guard case .source(let source) = instance.body, let output else { return .ended }
        counters.productions.add()
        thread.inside.store(Int32(number), ordering: .relaxed)
        context.item.set(UInt64(counters.made.value), pts: nil)
        let before = histogram == nil ? 0 : clock.now()
        thread.elsewhere = 0
        if context.ownKeyframeRequest.take() { source.keyframeRequested() }
        do {
            let progress = try source.produce(output)
            if let histogram {
                let time = clock.now() &- before &- thread.elsewhere
                if let ofItem = times.add(call: time, items: counters.made.value) {
                    histogram.add(nanoseconds: ofItem)
                }
            }
            return progress
        } catch {
            if isStop(error) { return nil }
            fail(error, sequence: UInt64(counters.made.value), pts: nil)
            return .ended
        }
    }

    /// [stage thread] Puts an item of a source on the timeline that all its instances share.
    @inline(__always)
    func place(_ header: inout ItemHeader, rate: @autoclosure () -> Rational?) {
        if times.source.place(&header, isLive: demand.isLive, rate: rate()) {
            context.timeOffset.value.store(times.source.offset, ordering: .releasing)
        }
    }

    /// [stage thread] No item follows.
    func drain() {
        guard !hasFailed else { return }
        do {
            try thread.call(.drain, stage: number) { try instance.body?.drain(output) }
            counters.held = instance.body?.held ?? 0
        } catch {
            if isStop(error) { settleAfterStop() } else { fail(error, sequence: lastSequence, pts: nil) }
        }
    }

    /// The item in hand when a call threw; it may have been answered before that.
    func countFailed() {
        if counters.unanswered > heldNow { countDrop(.failed) }
    }

    /// Counts as dropped the items that a stopped or failed stage will never answer, so that the ledger adds up.
    func settleAfterStop() {
        guard hasFailed || stop.isRaised else { return }
        for _ in 0..<max(0, counters.unanswered) { countDrop(hasFailed ? .failed : .stopped) }
        // Even where every item is answered: an item that the stage held before a stopped drain may still be on its
        // way.
        counters.held = 0
    }

    // MARK: Faults

    func isStop(_ error: any Error) -> Bool {
        (error as? FrameHostError)?.code == .stopped && (stop.isRaised || context.stop.isRaised)
    }

    func fail(_ error: any Error, sequence: UInt64, pts: MediaTime?) {
        modes.fail(passes: onError == .bypass && canBePassed)
        var place = FaultPlace(stage: id, title: title)
        if counters.taken.value + counters.made.value > 0 { (place.frame, place.pts) = (sequence, pts) }
        onFailure?(self, FrameHostError.wrap(error, place: place))
    }
}
