/// Lends buffers of a stage's pool to a library that fills them in its own time and may read them long after: a decoder
/// whose pictures are references of pictures to come.
///
/// At most ``StageDemand/floor`` buffers are lent at once, which is what the plan has set aside for it; so the stage
/// can always get a frame of its own, whatever the library keeps. A finished picture goes into the chain as a share of
/// its loan. `@unchecked Sendable`: the table of loans is reached under the lock alone; a loan's buffer is written by
/// whoever has borrowed it.
public final class BufferLender: @unchecked Sendable {
    private let pool: FramePool
    private let condition = Condition()
    // Below: under `condition`.
    private var loans: [UnsafeMutablePointer<LeaseRecord>?]
    private var free: [Int]
    private let holderCode: Int32

    init(pool: FramePool, count: Int, holderCode: Int32) {
        self.pool = pool
        self.holderCode = holderCode
        loans = Array(repeating: nil, count: count)
        free = Array((0..<count).reversed())
    }

    /// Nobody can give a loan back any more: the stage and its library are gone.
    deinit { for record in loans { if let record { pool.giveBack(record) } } }

    /// What every loan looks like.
    public var format: VideoFormat { pool.format }

    /// Bytes of a loan from its first plane on, room behind the last plane included.
    public var bufferBytes: Int { pool.byteCount / max(pool.bufferCount, 1) }

    /// [any thread] A loan of one buffer; nil when as many are out as the plan foresaw, or when no buffer is free.
    /// Never waits.
    public func lend() -> Int? {
        condition.lock()
        defer { condition.unlock() }
        guard let loan = free.last, let frame = pool.tryLease(isStarving: false) else { return nil }
        frame.record.pointee.holder.store(holderCode, ordering: .relaxed)
        free.removeLast()
        loans[loan] = frame.release().release()
        return loan
    }

    /// [borrower's thread] Plane `index` of a loan, to write; its rows have the room that ``StageDemand/padding`` asked
    /// for.
    public func plane(_ index: Int, of loan: Int) -> MutablePlane {
        let record = condition.locked { loans[loan] }
        guard let record else { preconditionFailure("loan \(loan) has been given back") }
        return pool.plane(index, at: record.pointee.base!)
    }

    /// [stage thread] The buffer of a loan as a frame for the chain. The borrower may go on reading it, so whoever
    /// wants to write makes a copy.
    public func share(_ loan: Int) -> Frame {
        let record = condition.locked { loans[loan] }
        guard let record else { preconditionFailure("loan \(loan) has been given back") }
        return Frame(Lease(pool.share(record)))
    }

    /// [any thread] The borrower needs the buffer no more; each loan once.
    public func takeBack(_ loan: Int) {
        condition.lock()
        guard let record = loans[loan] else { preconditionFailure("loan \(loan) was given back twice") }
        loans[loan] = nil
        free.append(loan)
        condition.unlock()
        pool.giveBack(record)
    }

    /// Loans that are out. [any thread]
    public var count: Int { condition.locked { loans.count - free.count } }
}
