/// The items of one time, one from each input of a join. Reused from call to call: take what you need before you
/// return.
public final class JoinInputs {
    /// Inputs of the join.
    public let count: Int
    private let records: UnsafeMutablePointer<UnsafeMutablePointer<LeaseRecord>?>
    /// PTS of these items, nanoseconds.
    private(set) var pts = Int64.min
    /// Sequence number of one of them.
    private(set) var sequenceNumber: UInt64 = 0
    /// Items that are there.
    private(set) var present = 0

    init(count: Int) {
        self.count = count
        records = .allocate(capacity: count)
        records.initialize(repeating: nil, count: count)
    }

    deinit {
        releaseAll()
        records.deallocate()
    }

    /// The item of input `index`, once; nil when it was dropped on its way or is taken already.
    public func take(_ index: Int) -> Sample? {
        precondition(index >= 0 && index < count, "input \(index) of \(count)")
        guard let record = records[index] else { return nil }
        records[index] = nil
        return record.pointee.owner is Slab ? .accessUnit(AccessUnit(Lease(record))) : .frame(Frame(Lease(record)))
    }

    func put(_ lease: consuming Lease, at index: Int) {
        let record = lease.release()
        pts = record.pointee.pts.nanoseconds
        sequenceNumber = record.pointee.sequenceNumber
        records[index] = record
        present += 1
    }

    func mark(keeper: UnsafeMutablePointer<KeeperCell>, holder: Int32, now: Int64) {
        for index in 0..<count {
            guard let record = records[index] else { continue }
            record.pointee.keeper = keeper
            record.pointee.keep()
            record.pointee.holder.store(holder, ordering: .relaxed)
            record.pointee.since.store(now, ordering: .relaxed)
        }
    }

    func releaseAll() {
        for index in 0..<count {
            if let record = records[index] { _ = Lease(record) }
            records[index] = nil
        }
        present = 0
    }
}
