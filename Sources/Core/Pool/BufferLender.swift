// SPDX-License-Identifier: Apache-2.0

/// Lends buffers of a stage's pool to a library that fills them in its own time and may read them long after, such as a
/// decoder whose pictures are references of later pictures.
///
/// At most ``StageDemand/floor`` buffers are lent at once. The plan sets that many aside, so that the stage can always
/// get a frame of its own. A finished picture goes into the chain as a share of its loan.
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

    /// Ends all loans: the stage and its library are gone, so no loan can be returned any more.
    deinit { for record in loans { if let record { pool.giveBack(record) } } }

    /// The format of every loan.
    public var format: VideoFormat { pool.format }

    /// The size of a loan in bytes, from its first plane to the end of the room behind the last plane.
    public var bufferBytes: Int { pool.byteCount / max(pool.bufferCount, 1) }

    /// [any thread] Lends one buffer, and returns the number of the loan. Never waits.
    ///
    /// - Returns: Nil when ``StageDemand/floor`` loans are out, or when no buffer is free: make a frame and copy.
    public func lend() -> Int? {
        condition.lock()
        defer { condition.unlock() }
        guard let loan = free.last, let frame = pool.tryLease(isStarving: false) else { return nil }
        frame.record.pointee.holder.store(holderCode, ordering: .relaxed)
        free.removeLast()
        loans[loan] = frame.release().release()
        return loan
    }

    /// [borrower's thread] Plane `index` of a loan, to write. Its rows have the room that ``StageDemand/padding`` asks
    /// for.
    public func plane(_ index: Int, of loan: Int) -> MutablePlane {
        let record = condition.locked { loans[loan] }
        guard let record else { preconditionFailure("loan \(loan) has been given back") }
        return pool.plane(index, at: record.pointee.base!)
    }

    /// [stage thread] Makes a frame for the chain from the buffer of a loan. The borrower may go on reading the
    /// buffer, so that a stage that writes gets a copy.
    public func share(_ loan: Int) -> Frame {
        let record = condition.locked { loans[loan] }
        guard let record else { preconditionFailure("loan \(loan) has been given back") }
        return Frame(Lease(pool.share(record)))
    }

    /// [any thread] Takes back a loan that the borrower no longer needs; call it once for each loan.
    public func takeBack(_ loan: Int) {
        condition.lock()
        guard let record = loans[loan] else { preconditionFailure("loan \(loan) was given back twice") }
        loans[loan] = nil
        free.append(loan)
        condition.unlock()
        pool.giveBack(record)
    }

    /// [any thread] How many loans are out.
    public var count: Int { condition.locked { loans.count - free.count } }
}
