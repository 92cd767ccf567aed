import Synchronization

/// Ends every wait of a chain at once.
///
/// Each object that waits registers its condition at setup; `raise()` sets the flag and wakes them all. [any thread]
public final class StopSignal: @unchecked Sendable {
    private let flag = Atomic<Bool>(false)
    /// Grows at setup only, under its lock.
    private let conditions = Locked<[Condition]>([])

    public init() {}

    /// True from `raise()` on, for good.
    public var isRaised: Bool {
        @inline(__always) get { flag.load(ordering: .acquiring) }
    }

    /// Ends every wait that is under way and every later one.
    public func raise() {
        flag.store(true, ordering: .releasing)
        for condition in conditions.withLock({ $0 }) { condition.locked { condition.broadcast() } }
    }

    func register(_ condition: Condition) { conditions.withLock { $0.append(condition) } }
}
