// SPDX-License-Identifier: Apache-2.0

/// Stages that run one after the other on one thread: filters, then at most one stage of another kind.
///
/// Every frame takes this loop. It visits filters one after the other without going through an output; the last stage
/// hands on through its ``Output``.
final class InlineRun {
    let filters: [StageRunner]
    /// The same, without reference counting in the loop; `filters` keeps them alive.
    private let cells: UnsafeMutablePointer<Unmanaged<StageRunner>>
    /// The transform, join or sink that ends the run; nil when the last filter's output is not one inline link.
    let last: StageRunner?
    private let lastFilter: StageRunner?
    private let clock: ChainClock
    private let isTimed: Bool
    private let isTraced: Bool

    init(filters: [StageRunner], last: StageRunner?, clock: ChainClock, isTimed: Bool, isTraced: Bool = false) {
        self.filters = filters
        self.last = last
        self.clock = clock
        self.isTimed = isTimed
        self.isTraced = isTraced
        lastFilter = filters.last
        cells = .allocate(capacity: max(filters.count, 1))
        for (index, filter) in filters.enumerated() { (cells + index).initialize(to: Unmanaged.passUnretained(filter)) }
    }

    deinit { cells.deallocate() }

    /// The stages of this run in order.
    var stages: [StageRunner] { filters + (last.map { [$0] } ?? []) }

    /// [stage thread] Takes one item through the run; false when the run of the chain was stopped.
    func receive(_ lease: consuming Lease) -> Bool {
        if isTraced, let trace = (last ?? lastFilter)?.thread.trace { return take(lease, trace) }
        return take(lease, nil)
    }

    /// The compiler makes two copies of this function, so that tracing costs nothing in a run without a trace.
    @inline(__always)
    private func take(_ lease: consuming Lease, _ trace: TracePen?) -> Bool {
        var time = isTimed ? begin() : 0
        let count = filters.count
        if count == 0 { return finish(lease, &time, trace) }
        var frame = Frame(lease)
        var index = 0
        while index < count {
            if let trace {
                let sequence = frame.sequenceNumber
                cells[index]._withUnsafeGuaranteedRef { trace.begin(.item, stage: $0.number, frame: sequence) }
            }
            let outcome = cells[index]._withUnsafeGuaranteedRef { $0.filter(&frame) }
            if let trace { trace.end() }
            if isTimed { cells[index]._withUnsafeGuaranteedRef { $0.addTime(&time) } }
            guard outcome == .forward else {
                let pts = frame.pts.nanoseconds
                announceNothing(upTo: pts, after: index)
                return outcome != .stopped
            }
            if isTimed {
                let capturedAt = frame.capturedAt
                cells[index]._withUnsafeGuaranteedRef { $0.addLatency(time, since: capturedAt) }
            }
            index += 1
        }
        return finish(frame.release(), &time, trace)
    }

    /// [stage thread] The time at which the first stage begins with an item. Waits before that do not count as its
    /// time.
    private func begin() -> Int64 {
        (last ?? lastFilter)?.thread.elsewhere = 0
        return clock.now()
    }

    @inline(__always)
    private func finish(_ lease: consuming Lease, _ time: inout Int64, _ trace: TracePen?) -> Bool {
        guard let last else {
            guard let lastFilter, let output = lastFilter.output else { return true }
            // `filter` has counted the frame as emitted.
            return output.sendCounted(lease)
        }
        if !filters.isEmpty || last.kind != .join {
            lease.record.pointee.holder.store(last.holderCode, ordering: .relaxed)
        }
        if let trace {
            trace.begin(.item, stage: last.number, frame: lease.record.pointee.header.sequenceNumber)
        }
        let goesOn = last.accept(lease, since: time)
        if let trace { trace.end() }
        if isTimed { last.addTime(&time) }
        // Where a tap is removed, only the tap is stopped. The thread goes on without it.
        return goesOn || (last.isTap && lastFilter.map { !$0.stop.isRaised } ?? false)
    }

    /// A filter at `index` dropped the item of time `pts`.
    func announceNothing(upTo pts: Int64, after index: Int) {
        guard let output = (last ?? lastFilter)?.output, output.announcesGaps else { return }
        if let last, last.heldNow > 0 { return }
        output.announceNothing(upTo: pts)
    }

    /// [stage thread] No item follows: drains each stage in order, then what is behind them.
    func end() {
        last?.drain()
        (last ?? lastFilter)?.output?.end()
    }
}
