// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// One stage of a running chain: calls it, counts for it, catches its errors.
///
/// Belongs to one stage thread from `start` on; counters and atomics are read by the control thread. `@unchecked
/// Sendable` for that reason.
final class StageRunner: @unchecked Sendable {
    enum FilterOutcome { case forward, dropped, stopped }

    /// What happens to an item that reaches the stage.
    enum Mode: UInt8 {
        case runs
        /// It has failed: items end here.
        case failed
        /// Paused: a filter lets frames pass.
        case passes
        /// Paused: items end here, and a source gives none.
        case drops
        /// It runs again, and the next item follows a gap.
        case followsGap
    }

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

    // Counters: written by the stage thread.
    let taken = Counter()
    let made = Counter()
    let emitted = Counter()
    let delivered = Counter()
    let merged = Counter()
    let idle = Counter()
    let unconnected = Counter()
    /// Additional leases that this stage's fork has made.
    let copies = Counter()
    /// Pictures whose pixels were copied so that this stage could write.
    let pixelCopies = Counter()
    private let dropped: UnsafeMutablePointer<Counter>
    /// Items accepted and unanswered by the stage's own count, read after each call.
    private let held = Atomic<Int>(0)
    let keeper: UnsafeMutablePointer<KeeperCell>
    /// How long it works on an item, without waits and without the stages behind it on the same thread.
    let histogram: Histogram?
    /// The time that a source has worked since the last item it gave: it may be called often for one item.
    @exclusivity(unchecked) private var timeOfItem: Int64 = 0
    @exclusivity(unchecked) private var timedItems = 0
    /// In a timed chain: the time from an item's capture until the stage has handed it on, or until a sink is done
    /// with it.
    let latency: Histogram?
    /// Copies pictures that the stage gives, for readers outside the chain.
    let pictures = PictureTap()
    /// Copies access units that the stage gives, for readers outside the chain.
    let units = UnitTap()
    /// Calls of `produce`: a source may give nothing for long and still not hang.
    let productions = Counter()
    /// Checks the times of the items that the stage makes.
    @exclusivity(unchecked) var times = TimeCheck()
    /// Keeps the times of a source rising over all its instances.
    @exclusivity(unchecked) private var sourceTimes = SourceTimes()
    /// Where the crash handler finds the stage's title; nil where crashes are not reported.
    var crashStages: CrashReport.Stages?
    private var hasReportedHold = false
    private var hasReportedMetadata = false
    private let modeCode = Atomic<UInt8>(Mode.runs.rawValue)
    /// A bit for each input whose access units are dropped up to a keyframe: they cannot be decoded without the units
    /// that were left out.
    private var awaitsKeyframe: UInt64 = 0
    /// A bit for each input whose next item follows a gap.
    private var followsGap: UInt64 = 0
    /// Whether the next frame that passes the stage by follows a gap. Only true in the mode `passes`. [stage thread]
    private var owesGap = false
    private var hasStopped = false
    /// The time up to which joins behind have been told that nothing comes. An answer to an older item, which the stage
    /// still held, is too late.
    @exclusivity(unchecked) private(set) var toldUpTo = Int64.min
    /// A bit for each input with sound or motion beside pictures. The stage's frame numbers count only pictures.
    @exclusivity(unchecked) var companionInputs: UInt64 = 0
    /// The last property, so that it is freed after the stage, whose `deinit` may still release frames.
    private let keeperOwner = KeeperOwner()

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
        dropped = .allocate(capacity: DropReason.allCases.count)
        for reason in DropReason.allCases { (dropped + reason.rawValue).initialize(to: Counter()) }
        keeper = keeperOwner.cell
        histogram = isTimed ? Histogram() : nil
        latency = isTimed ? Histogram() : nil
    }

    deinit {
        dropped.deinitialize(count: DropReason.allCases.count)
        dropped.deallocate()
    }

    /// What ``LeaseRecord/holder`` says while this stage has a lease; one more while it waits in the queue before it.
    var holderCode: Int32 { Int32(number) &* 2 }
    /// [any thread] The kind of the present instance.
    var kind: StageKind { StageKind(code: kindCode.load(ordering: .relaxed)) }
    /// [any thread] A filter that keeps no frame back.
    var isPlainFilter: Bool { kind == .filter && shown.demand.delay == 0 }
    /// [any thread] Whether frames can pass the stage by, and its declaration allows it.
    var canBePassed: Bool { shown.canBePassed }
    var mode: Mode { Mode(rawValue: modeCode.load(ordering: .acquiring)) ?? .runs }
    var hasFailed: Bool { mode == .failed }
    var isPaused: Bool { mode == .passes || mode == .drops }
    /// [any thread] Whether items pass it because it has failed, not because it was paused.
    let isBypassed = Atomic<Bool>(false)
    /// [any thread] Whether it has failed, bypassed or not, and no other instance has taken its place.
    var isDown: Bool { hasFailed || isBypassed.load(ordering: .acquiring) }
    /// Whether an instance answers for the last time before another takes its place. [stage thread]
    private(set) var isLettingGo = false
    /// Whether the instance that was replaced last had failed. [stage thread]
    private(set) var replacedHadFailed = false
    var heldNow: Int { held.load(ordering: .acquiring) }
    var keptNow: Int { keeper.pointee.kept.load(ordering: .relaxed) }
    var mostKept: Int { keeper.pointee.most.load(ordering: .relaxed) }

    /// [any thread] What the chain file says now; nil where it says nothing.
    var onError: OnError? {
        get { onErrorBox.withLock { $0 } }
        set { onErrorBox.withLock { $0 = newValue } }
    }

    /// [any thread] The present instance, of which other threads may read what does not change.
    var shown: StageInstance { shownBox.withLock { $0 } }
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
    var nextFrame: UInt64 { taken.value + made.value == 0 ? 0 : shownFrame + 1 }

    /// Changes with every call and every item of the stage.
    var progress: Int { taken.value &+ made.value &+ emitted.value &+ productions.value }

    @inline(__always)
    func countDrop(_ reason: DropReason) {
        dropped[reason.rawValue].add()
        if let trace = thread?.trace { trace.drop(stage: number, reason, frame: lastSequence) }
    }

    func dropCount(_ reason: DropReason) -> Int { dropped[reason.rawValue].value }

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

    /// [stage thread of a source] Adds the time of a call that began at `before`.
    private func addTimeOfCall(since before: Int64) {
        timeOfItem &+= clock.now() &- before &- thread.elsewhere
        guard made.value != timedItems else { return }
        timedItems = made.value
        histogram?.add(nanoseconds: timeOfItem)
        timeOfItem = 0
    }

    // MARK: Items

    /// [stage thread] One frame through a filter.
    @inline(__always)
    func filter(_ frame: inout Frame) -> FilterOutcome {
        taken.add()
        frame.record.pointee.holder.store(holderCode, ordering: .relaxed)
        frame.record.pointee.keeper = keeper
        if modeCode.load(ordering: .relaxed) != Mode.runs.rawValue, let outcome = letBy(&frame) { return outcome }
        do {
            if modifies, !frame.isUnique { try makeWritable(&frame) }
            thread.inside.store(Int32(number), ordering: .relaxed)
            context.item.set(frame.sequenceNumber, pts: frame.pts)
            let verdict = try asFilter.unsafelyUnwrapped.process(&frame)
            if hold > 0 || keptNow > 0 { checkHold() }
            frame.record.pointee.unkeep()
            switch verdict {
            case .forward:
                emitted.add()
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
                if mode == .passes { owesGap = true }
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
            if owesGap {
                frame.isDiscontinuity = true
                owesGap = false
            }
            emitted.add()
            pictures.see(frame)
            return .forward
        case .runs, .followsGap:
            frame.isDiscontinuity = true
            modeCode.store(Mode.runs.rawValue, ordering: .releasing)
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
        copy.record.pointee.keeper = keeper
        pixelCopies.add()
        swap(&frame, &copy)
    }

    /// [stage thread] One item of a further input into a filter; false when the run was stopped.
    func takeCompanion(_ lease: consuming Lease, from index: Int) -> Bool {
        taken.add()
        let record = lease.record
        guard !hasFailed, !isPaused, let filter = instance.multiFilter else {
            countDrop(hasFailed ? .failed : .paused)
            return true
        }
        record.pointee.holder.store(holderCode, ordering: .relaxed)
        record.pointee.keeper = keeper
        record.pointee.keep()
        thread.inside.store(Int32(number), ordering: .relaxed)
        // Nothing is given for it: it goes into the pictures.
        merged.add()
        do {
            try filter.receive(Sample(lease), from: index)
            return true
        } catch {
            if isStop(error) { return false }
            fail(error, sequence: lastSequence, pts: context.item.pts)
            return true
        }
    }

    /// [stage thread] One item of one of several inputs into a sink or transform; false when the run was stopped.
    func take(_ lease: consuming Lease, from index: Int, isInTurn: Bool = true) -> Bool {
        lease.record.pointee.holder.store(holderCode, ordering: .relaxed)
        if let trace = thread.trace {
            trace.begin(.item, stage: number, frame: lease.record.pointee.header.sequenceNumber)
        }
        var time = histogram == nil ? 0 : clock.now()
        thread.elsewhere = 0
        let goesOn = accept(lease, since: time, from: index, isInTurn: isInTurn)
        if let trace = thread.trace { trace.end() }
        if histogram != nil { addTime(&time) }
        return goesOn
    }

    /// [stage thread] One item into a transform or sink; false when the run was stopped.
    func accept(_ lease: consuming Lease, since time: Int64, from index: Int = 0, isInTurn: Bool = true) -> Bool {
        taken.add()
        let record = lease.record
        let sequence = record.pointee.header.sequenceNumber
        let pts = record.pointee.header.pts
        let earlier = context.item.pts
        if companionInputs >> UInt64(index & 63) & 1 == 0 { context.item.set(sequence, pts: pts) }
        if modeCode.load(ordering: .relaxed) != Mode.runs.rawValue, endsHere(record, of: index) {
            tellLoss(upTo: pts, after: earlier)
            return true
        }
        record.pointee.keeper = keeper
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
            held.store(instance.body?.held ?? 0, ordering: .releasing)
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
                delivered.add()
                if latency != nil { addLatency(clock.now(), since: capturedAt) }
            case .idle: idle.add()
            case .dropped(let reason): countDrop(reason)
            }
        case .transform(let transform):
            guard let output else { return }
            if context.ownKeyframeRequest.take() { transform.keyframeRequested() }
            let (pts, before) = (record.pointee.header.pts, emitted.value)
            times.came(record.pointee.header.orderTime)
            heldHeaders?.note(record.pointee.header)
            if let several = instance.multiTransform {
                try several.process(Sample(lease), from: index, isInTurn: isInTurn, output)
            } else {
                try transform.process(Sample(lease), output)
            }
            settle(held: transform.held, output, pts, before)
        case .delaying(let filter):
            guard let output else { return }
            let (pts, before) = (record.pointee.header.pts, emitted.value)
            times.came(record.pointee.header.orderTime)
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
        held.store(count, ordering: .releasing)
        if output.announcesGaps, emitted.value == emittedBefore, count == 0 {
            output.announceNothing(upTo: pts.nanoseconds)
        }
    }

    /// [stage thread] No item has come up to ``MultiTransform/idleTime``; false when the run was stopped.
    func giveWhileIdle() -> Bool {
        guard mode == .runs, let transform = instance.multiTransform, let output else { return true }
        thread.inside.store(Int32(number), ordering: .relaxed)
        do { try transform.idle(output) } catch {
            if isStop(error) {
                settleAfterStop()
                return false
            }
            fail(error, sequence: lastSequence, pts: context.item.pts)
        }
        return true
    }

    /// Tells joins behind that items up to `pts` ended here. This includes items that the stage still holds: when it
    /// answers them, the joins will have passed their times.
    ///
    /// A join that matches by time must also know that nothing follows within its window. The next item would say so,
    /// but a stage that delays does not answer it at once, and the fork before cannot give it while it waits for that
    /// join. So three quarters of the time to the next item are announced as empty, and an item within them is too
    /// late. docs/design/010-joins.md.
    private func tellLoss(upTo pts: MediaTime, after earlier: MediaTime?) {
        guard let output, output.announcesGaps else { return }
        let frameTime = instance.output?.frameTime ?? 0
        let step = frameTime > 0 ? frameTime : pts.nanoseconds &- (earlier ?? pts).nanoseconds
        toldUpTo = max(toldUpTo, pts.nanoseconds &+ max(0, min(step, 1_000_000_000)) / 4 * 3)
        output.announceNothing(upTo: toldUpTo)
    }

    /// [stage thread] Whether an answer comes too late for the joins behind, and is dropped. Access units go on with a
    /// keyframe.
    func isTooLate(_ header: borrowing ItemHeader) -> Bool {
        guard header.pts.nanoseconds <= toldUpTo else { return false }
        countDrop(.paused)
        if header.kind == .accessUnit { context.ownKeyframeRequest.raise() }
        return true
    }

    /// Returns true, and counts the item, where it ends here: the stage has failed, is paused, or waits for a keyframe
    /// afterwards. Otherwise marks the item as the first one after the gap.
    private func endsHere(_ record: UnsafeMutablePointer<LeaseRecord>, of index: Int) -> Bool {
        let input = UInt64(1) << UInt64(index & 63)
        switch mode {
        case .failed, .passes, .drops:
            countDrop(mode == .failed ? .failed : .paused)
            if record.pointee.header.kind == .accessUnit { awaitsKeyframe |= input }
            followsGap = .max
            return true
        case .runs, .followsGap:
            if awaitsKeyframe & input != 0, !record.pointee.header.isKeyframe {
                context.keyframeRequest?.raise()
                countDrop(.untilKeyframe)
                return true
            }
            awaitsKeyframe &= ~input
            // The first item follows the gap even where no item came meanwhile.
            if followsGap == 0 { followsGap = input }
            if followsGap & input != 0 { record.pointee.header.isDiscontinuity = true }
            followsGap &= ~input
            // Sound goes on at once; the pictures beside it may still wait for their keyframe.
            guard awaitsKeyframe == 0 else { return false }
            followsGap = 0
            modeCode.store(Mode.runs.rawValue, ordering: .releasing)
            return false
        }
    }

    /// [stage thread] One item of each input into a join; false when the run was stopped.
    func merge(_ inputs: JoinInputs) -> Bool {
        guard case .join(let join) = instance.body, let output else { return true }
        let count = inputs.present
        let pts = inputs.pts
        taken.add(count)
        if isPaused || hasFailed {
            for _ in 0..<count { countDrop(hasFailed ? .failed : .paused) }
            inputs.releaseAll()
            output.announceNothing(upTo: pts)
            return true
        }
        times.came(MediaTime(nanoseconds: pts))
        inputs.mark(keeper: keeper, holder: holderCode, now: clock.now())
        thread.inside.store(Int32(number), ordering: .relaxed)
        context.item.set(inputs.sequenceNumber, pts: MediaTime(nanoseconds: pts))
        let before = histogram == nil ? 0 : clock.now()
        thread.elsewhere = 0
        defer {
            if histogram != nil {
                var time = before
                addTime(&time)
            }
        }
        do {
            let emittedBefore = emitted.value
            let answeredBefore = count == 0 ? answered : 0
            merged.add(max(count - 1, 0))
            try join.merge(inputs, output)
            inputs.releaseAll()
            // At a tick of the clock without a new item, the join makes the picture itself.
            if count == 0 { made.add(answered - answeredBefore) }
            if emitted.value == emittedBefore { output.announceNothing(upTo: pts) }
            checkHold()
            return true
        } catch {
            inputs.releaseAll()
            if isStop(error) {
                settleAfterStop()
                return false
            }
            countFailed()
            fail(error, sequence: lastSequence, pts: MediaTime(nanoseconds: pts))
            output.announceNothing(upTo: pts)
            return true
        }
    }

    /// [stage thread] See ``Join/activeInput``.
    var activeInput: Int? { if case .join(let join) = instance.body { join.activeInput } else { nil } }

    /// [stage thread] One call of a source; nil when the run was stopped.
    func produce() -> SourceProgress? {
        guard case .source(let source) = instance.body, let output else { return .ended }
        productions.add()
        thread.inside.store(Int32(number), ordering: .relaxed)
        context.item.set(UInt64(made.value), pts: nil)
        let before = histogram == nil ? 0 : clock.now()
        thread.elsewhere = 0
        if context.ownKeyframeRequest.take() { source.keyframeRequested() }
        do {
            let progress = try source.produce(output)
            if histogram != nil { addTimeOfCall(since: before) }
            return progress
        } catch {
            if isStop(error) { return nil }
            fail(error, sequence: UInt64(made.value), pts: nil)
            return .ended
        }
    }

    /// [stage thread] Puts an item of a source on the timeline that all its instances share.
    @inline(__always)
    func place(_ header: inout ItemHeader, rate: @autoclosure () -> Rational?) {
        if sourceTimes.place(&header, isLive: demand.isLive, rate: rate()) {
            context.timeOffset.value.store(sourceTimes.offset, ordering: .releasing)
        }
    }

    /// [stage thread] No item follows.
    func drain() {
        guard !hasFailed else { return }
        do {
            try thread.call(.drain, stage: number) { try instance.body?.drain(output) }
            held.store(instance.body?.held ?? 0, ordering: .releasing)
        } catch {
            if isStop(error) { settleAfterStop() } else { fail(error, sequence: lastSequence, pts: nil) }
        }
    }

    /// Ends what `start` began. Only the first call does something.
    ///
    /// - Parameter current: The thread that calls: the stage's own, or the one that started the stage where its own
    ///   thread never ran.
    func stop(on current: ThreadState) {
        guard !hasStopped else { return }
        hasStopped = true
        settleAfterStop()
        guard !isDown else { return stopFailedInstance(on: current) }
        do { try current.call(.stop, stage: number) { try instance.stop() } } catch {
            fail(error, sequence: lastSequence, pts: nil)
        }
    }

    /// [stage thread, between two items] Ends the instance that has failed. Its failure is known, so what this throws is
    /// none of its own.
    func stopFailedInstance(on current: ThreadState) {
        do { try current.call(.stop, stage: number) { try instance.stop() } } catch {
            context.post(
                "stage-end-failed", level: .warning, text: FrameHostError.wrap(error, place: title).description)
        }
    }

    /// The item in hand when a call threw; it may have been answered before that.
    private func countFailed() {
        if taken.value + made.value > answered + heldNow { countDrop(.failed) }
    }

    /// Counts as dropped the items that a stopped or failed stage will never answer, so that the ledger adds up.
    private func settleAfterStop() {
        guard hasFailed || stop.isRaised else { return }
        let unanswered = taken.value + made.value - answered
        for _ in 0..<max(0, unanswered) { countDrop(hasFailed ? .failed : .stopped) }
        // Even where every item is answered: an item that the stage held before a stopped drain may still be on its
        // way.
        held.store(0, ordering: .releasing)
    }

    /// Emitted, ended and dropped items: law 3 of the ledger without `held`.
    var answered: Int {
        emitted.value + delivered.value + merged.value + idle.value
            + DropReason.allCases.reduce(0) { $0 + dropCount($1) }
    }

    // MARK: Changes

    /// [stage thread] The first item of a source after a pause.
    func goOn(after record: UnsafeMutablePointer<LeaseRecord>) {
        record.pointee.header.isDiscontinuity = true
        modeCode.store(Mode.runs.rawValue, ordering: .releasing)
    }

    /// [stage thread] Counts an item that reached the stage after the run was stopped.
    func refuseStopped(_ lease: consuming Lease) {
        taken.add()
        countDrop(.stopped)
    }

    /// What ``setMode(_:)`` has done.
    enum ModeChange {
        case done
        /// The stage was in that mode already.
        case unchanged
        /// The stage has failed.
        case refused
    }

    /// [stage thread, between two items] Pauses the stage or lets it go on. A stage that frames cannot pass by drops
    /// them.
    func setMode(_ asked: Mode) -> ModeChange {
        guard !hasFailed, !hasStopped, !instance.isStopped else { return .refused }
        // Decided here: the thread may have replaced the instance since the pause was asked for.
        let mode = asked == .passes && !canBePassed ? .drops : asked
        // A bypassed filter runs again. A stage that follows a gap runs, and its next item must still be marked.
        let isInMode = self.mode == mode || mode == .runs && self.mode == .followsGap
        if isInMode, !isBypassed.load(ordering: .acquiring) { return .unchanged }
        let lostItems = self.mode == .drops || self.mode == .followsGap || owesGap || (!canBePassed && isPaused)
        if mode == .runs, isPaused { context.resumedAt = clock.now() }
        owesGap = mode == .passes && lostItems
        modeCode.store((mode == .runs && lostItems ? .followsGap : mode).rawValue, ordering: .releasing)
        isBypassed.store(false, ordering: .releasing)
        return .done
    }

    /// [stage thread, between two items] Puts another instance in the place of the present one, which is returned to be
    /// stopped. Counters, output and mailbox stay.
    ///
    /// - Parameters:
    ///   - other: The new instance: made, negotiated for the same formats, and started.
    ///   - isDraining: Whether the present instance first answers the items that it holds. Otherwise they are counted
    ///     as `detached`.
    func exchange(_ other: StageInstance, isDraining: Bool) -> StageInstance {
        let modeBefore = mode
        let wasPaused = isPaused && !isDown
        isLettingGo = true
        letGo(isDraining: isDraining)
        isLettingGo = false
        replacedHadFailed = isDown
        let canBePassed = other.canBePassed
        let old = instance
        other.context.item.take(over: context.item)
        other.context.thread = thread
        (instance, context) = (other, other.context)
        asFilter = other.plainFilter
        modifies = other.demand.access == .modify
        hold = other.demand.hold
        kindCode.store(other.kind.code, ordering: .relaxed)
        hasReportedHold = false
        hasReportedMetadata = false
        times = TimeCheck()
        sourceTimes.beginAnew()
        // A failed stage has dropped the items since. Frames that passed a failed filter leave no gap, but the one on
        // which it failed does.
        if wasPaused, isDown {
            // The instance before failed in its last answer: the pause holds.
            owesGap = modeBefore == .passes && canBePassed
            modeCode.store((owesGap ? Mode.passes : .drops).rawValue, ordering: .releasing)
            isBypassed.store(false, ordering: .releasing)
        } else if hasFailed {
            modeCode.store(Mode.followsGap.rawValue, ordering: .releasing)
        } else if isBypassed.load(ordering: .acquiring) {
            modeCode.store((owesGap ? Mode.followsGap : .runs).rawValue, ordering: .releasing)
            isBypassed.store(false, ordering: .releasing)
            owesGap = false
        } else if mode == .passes, !canBePassed {
            // The instance before let frames pass while it was paused; this one must not, or cannot.
            modeCode.store(Mode.drops.rawValue, ordering: .releasing)
            owesGap = false
        }
        // Last: whoever finds the stage failed after it has looked here has seen the instance that failed.
        shownBox.withLock { $0 = other }
        return old
    }

    /// As a change calls it, which knows the parts of the instance beside it.
    func exchange(
        _ other: StageInstance, _ otherContext: StageContext, type: StageType, format: MediaFormat?, isDraining: Bool
    ) -> StageInstance { exchange(other, isDraining: isDraining) }

    /// [stage thread, between two items] Gives the present instance no further item. It answers the items that it
    /// holds, or they are dropped.
    func letGo(isDraining: Bool) {
        if isDraining { drain() }
        let lost = max(0, taken.value + made.value - answered)
        for _ in 0..<lost { countDrop(.detached) }
        held.store(0, ordering: .releasing)
        // A join behind may wait for these items, and the fork before may wait for that join.
        if lost > 0, kind != .source, let pts = context.item.pts { tellLoss(upTo: pts, after: nil) }
    }

    // MARK: Faults

    private func isStop(_ error: any Error) -> Bool {
        (error as? FrameHostError)?.code == .stopped && (stop.isRaised || context.stop.isRaised)
    }

    /// [stage thread, between two items] Lets frames pass a stage that has failed, or no longer lets them, as `onError`
    /// says now.
    func settleBypass() {
        let passes = onError == .bypass && canBePassed
        guard isDown, passes == hasFailed else { return }
        // Those since have been dropped.
        owesGap = passes
        // It is down at each moment of this.
        if passes { isBypassed.store(true, ordering: .releasing) }
        modeCode.store((passes ? Mode.passes : .failed).rawValue, ordering: .releasing)
        isBypassed.store(passes, ordering: .releasing)
    }

    private func fail(_ error: any Error, sequence: UInt64, pts: MediaTime?) {
        let isBypassed = onError == .bypass && canBePassed
        owesGap = isBypassed && mode == .followsGap
        modeCode.store((isBypassed ? Mode.passes : .failed).rawValue, ordering: .releasing)
        self.isBypassed.store(isBypassed, ordering: .releasing)
        var place = FaultPlace(stage: id, title: title)
        if taken.value + made.value > 0 { (place.frame, place.pts) = (sequence, pts) }
        onFailure?(self, FrameHostError.wrap(error, place: place))
    }

    /// Checks after a call whether the stage keeps more than it declares.
    private func checkHold() {
        let kept = keptNow
        if kept > keeper.pointee.most.load(ordering: .relaxed) { keeper.pointee.most.store(kept, ordering: .relaxed) }
        guard kept > mostHeld, !hasReportedHold else { return }
        hasReportedHold = true
        context.post(
            "over-retention", level: .warning, text: "\(holdSentence(kept)). \(Self.holdRemedy)",
            details: ["kept": JSONNode(.number(String(kept))), "declared": JSONNode(.number(String(demand.hold)))])
    }

    /// [stage thread] Reports an answer whose PTS matches no item that the stage holds.
    func reportLostMetadata(_ record: UnsafeMutablePointer<LeaseRecord>) {
        guard !hasReportedMetadata else { return }
        hasReportedMetadata = true
        let pts = record.pointee.header.pts.nanoseconds
        context.post(
            "metadata-lost", level: .warning,
            text:
                "\(title) gave an output the PTS \(text(seconds: Double(pts) / 1e9)) s (\(pts) ns), but holds no input with this PTS: the metadata of the picture is lost."
                + " In the plugin, give each output the PTS of its input; if the plugin is not yours, tell its author.",
            details: ["ptsNanoseconds": JSONNode(.number(String(pts)))])
    }

    private var mostHeld: Int { demand.hold * max(inputs?.count ?? 1, 1) }
    private static let holdRemedy =
        "The chain may run out of buffers. In the plugin, raise 'hold' or release buffers earlier; if it is not yours, tell its author."
    private func holdSentence(_ kept: Int) -> String {
        "\(title) keeps \(kept) buffer\(kept == 1 ? "" : "s") after its call but declares a 'hold' of \(demand.hold)"
            + (inputs.map { $0.count > 1 ? " for each of its \($0.count) inputs" : "" } ?? "")
    }

    /// The fault of a stage that keeps more than it declares, for ``StageDriver``.
    var holdFault: FrameHostError? {
        guard keptNow > mostHeld else { return nil }
        return FrameHostError(.broken, what: holdSentence(keptNow), remedy: Self.holdRemedy)
    }
}
