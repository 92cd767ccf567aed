// SPDX-License-Identifier: Apache-2.0

/// The items that belong together, one from each input of a join.
///
/// The runner uses the same object for every call: take what you need before ``Join/merge(_:_:)`` returns.
public final class JoinInputs {
    /// What became of one input's items. Written by the join's thread, read by any.
    struct Counts: ~Copyable {
        /// Given to the stage.
        let given = Counter()
        /// Items that matched no item of the leading input.
        let unmatched = Counter()
        /// Items that were given without an item of another input, though that input went on.
        let incomplete = Counter()
        /// Times the last item was given again.
        let repeated = Counter()
        /// Times the stage was called without an item of this input, while the input went on.
        let missing = Counter()
        /// The same after the input's end.
        let missingAfterEnd = Counter()
    }

    /// How many inputs the join has.
    public let count: Int
    /// The input that leads: its item is always there, and the items of the other inputs belong to it.
    ///
    /// With `"match": "exact"` the first input that has an item leads, where the leading one has none.
    public internal(set) var lead = 0
    /// The PTS of the leading item, which the answer takes over. It rises from call to call.
    public var time: MediaTime { MediaTime(nanoseconds: pts) }

    /// How many ticks a join by the clock (``StageDemand/outputRate``) could not answer in time before this one.
    public internal(set) var missed = 0

    /// Whether the times of the inputs are the clock of a join with a rate of its own, since none is live
    /// (``StageDemand/outputRate``). ``time`` is then in their time, and each input gives the newest item up to it: none is late.
    public internal(set) var followsTimes = false

    /// Ids of the stages the inputs come from, for people.
    let names: [String]
    let counts: UnsafeMutablePointer<Counts>
    private let records: UnsafeMutablePointer<UnsafeMutablePointer<LeaseRecord>?>
    /// The last item of each input whose last item may be given again.
    private let last: UnsafeMutablePointer<UnsafeMutablePointer<LeaseRecord>?>
    /// Inputs that give their last item again this time.
    private let isRepeated: UnsafeMutablePointer<Bool>
    private let ended: UnsafeMutablePointer<Bool>
    /// PTS of the leading item, nanoseconds.
    private(set) var pts = Int64.min
    /// Sequence number of the leading item.
    private(set) var sequenceNumber: UInt64 = 0
    /// New items; those that are given again do not count.
    private(set) var present = 0
    private var keeper: UnsafeMutablePointer<KeeperCell>?
    private var holder: Int32 = -1
    private var now: Int64 = 0

    init(names: [String]) {
        self.names = names
        count = names.count
        counts = .allocate(capacity: count)
        records = .allocate(capacity: count)
        last = .allocate(capacity: count)
        isRepeated = .allocate(capacity: count)
        ended = .allocate(capacity: count)
        for index in 0..<count { (counts + index).initialize(to: Counts()) }
        records.initialize(repeating: nil, count: count)
        last.initialize(repeating: nil, count: count)
        isRepeated.initialize(repeating: false, count: count)
        ended.initialize(repeating: false, count: count)
    }

    deinit {
        releaseAll()
        releaseKept()
        counts.deinitialize(count: count)
        counts.deallocate()
        records.deallocate()
        last.deallocate()
        isRepeated.deallocate()
        ended.deallocate()
    }

    /// Takes the item of input `index`.
    ///
    /// The same item may come again with its old time. With `"hold": true` an input that has ended goes on giving
    /// its last item. With `"match": "newest"` an input gives its newest item until it has a newer one. Take the
    /// time of the answer from ``time``.
    ///
    /// - Returns: Nil when no item of the input belongs to the leading one, when it was dropped on its way, or when it
    ///   is taken already.
    public func take(_ index: Int) -> Sample? {
        precondition(index >= 0 && index < count, "input \(index) of \(count)")
        if let record = records[index] {
            records[index] = nil
            return Sample(Lease(record))
        }
        guard isRepeated[index], let kept = last[index] else { return nil }
        isRepeated[index] = false
        let record = kept.pointee.owner.share(kept)
        mark(record)
        return Sample(Lease(record))
    }

    /// Whether ``take(_:)`` will give an item that it has not given before. Ask before you take it.
    public func isNew(_ index: Int) -> Bool {
        precondition(index >= 0 && index < count, "input \(index) of \(count)")
        return records[index] != nil
    }

    /// Gives a second lease of the item that ``take(_:)`` would give, for a stage that needs it more than once.
    public func peek(_ index: Int) -> Sample? {
        precondition(index >= 0 && index < count, "input \(index) of \(count)")
        guard let record = records[index] ?? (isRepeated[index] ? last[index] : nil) else { return nil }
        let other = record.pointee.owner.share(record)
        mark(other)
        return Sample(Lease(other))
    }

    /// Whether ``take(_:)`` will give a picture in place of one that its source lacks (``Frame/isSubstitute``). Ask
    /// before you take it.
    public func isSubstitute(_ index: Int) -> Bool {
        precondition(index >= 0 && index < count, "input \(index) of \(count)")
        return records[index]?.pointee.header.isSubstitute ?? last[index]?.pointee.header.isSubstitute ?? false
    }

    /// In a join by the clock: whether the input gives nothing new any more.
    public func hasEnded(_ index: Int) -> Bool {
        precondition(index >= 0 && index < count, "input \(index) of \(count)")
        return ended[index]
    }

    // MARK: The join's thread

    /// A tick of the clock takes the place of the leading item.
    func beginTick(at instant: Int64, number: UInt64, missed: Int) {
        (pts, sequenceNumber, self.missed) = (instant, number, missed)
    }

    func setEnded(_ index: Int) { ended[index] = true }

    func put(_ lease: consuming Lease, at index: Int) {
        let record = lease.release()
        if present == 0 || index == lead {
            pts = record.pointee.header.pts.nanoseconds
            sequenceNumber = record.pointee.header.sequenceNumber
        }
        if let former = records[index] { _ = Lease(former) } else { present += 1 }
        records[index] = record
    }

    /// Keeps a further lease of the item that lies at `index`, in place of the one before.
    func keep(at index: Int) {
        guard let record = records[index] else { return }
        keep(Lease(record.pointee.owner.share(record)), at: index)
    }

    /// Keeps this item of an input, in place of the one before.
    func keep(_ lease: consuming Lease, at index: Int) {
        if let former = last[index] { _ = Lease(former) }
        let record = lease.release()
        record.pointee.hand(to: nil)
        last[index] = record
    }

    /// Gives the stage the last item of `index` again; false when there is none.
    func repeatLast(at index: Int) -> Bool {
        isRepeated[index] = last[index] != nil
        return isRepeated[index]
    }

    func mark(keeper: UnsafeMutablePointer<KeeperCell>, holder: Int32, now: Int64) {
        (self.keeper, self.holder, self.now) = (keeper, holder, now)
        for index in 0..<count {
            if let record = records[index] { mark(record) }
            last[index]?.pointee.holder.store(holder, ordering: .relaxed)
        }
    }

    /// Notes in the trace what the stage is about to be handed.
    func note(in trace: TracePen) {
        for index in 0..<count {
            guard let record = records[index] ?? (isRepeated[index] ? last[index] : nil) else { continue }
            trace.input(index, frame: record.pointee.header.sequenceNumber)
        }
    }

    private func mark(_ record: UnsafeMutablePointer<LeaseRecord>) {
        record.pointee.hand(to: keeper)
        record.pointee.keep()
        record.pointee.holder.store(holder, ordering: .relaxed)
        record.pointee.since.store(now, ordering: .relaxed)
    }

    /// Releases the items that the stage has not taken.
    func releaseAll() {
        for index in 0..<count {
            if let record = records[index] { _ = Lease(record) }
            records[index] = nil
            isRepeated[index] = false
        }
        present = 0
    }

    /// Releases the last items of the inputs: nothing is given again.
    func releaseKept() {
        for index in 0..<count {
            if let record = last[index] { _ = Lease(record) }
            last[index] = nil
        }
    }
}
