import Synchronization

/// Ends every wait of a chain, or of one of its stages, at once.
///
/// A stage's signal lies under its chain's: raising the chain's raises all below it, raising a stage's ends that stage's
/// waits alone, when its branch is taken away. Each object that waits registers its condition where it is made. [any
/// thread]
public final class StopSignal: @unchecked Sendable {
    private struct Weak {
        weak var signal: StopSignal?
    }

    private struct Book {
        var conditions: [Condition] = []
        var below: [Weak] = []
    }

    private let flag = Atomic<Bool>(false)
    private let book = Locked(Book())

    public init() {}

    /// A signal that `parent` raises as well.
    init(under parent: StopSignal) {
        parent.book.withLock { book in
            // Those of stages that have gone; looked for seldom.
            if book.below.count >= 64, book.below.count.nonzeroBitCount == 1 {
                book.below.removeAll { $0.signal == nil }
            }
            book.below.append(Weak(signal: self))
        }
        if parent.isRaised { raise() }
    }

    /// True from `raise()` on, for good.
    public var isRaised: Bool {
        @inline(__always) get { flag.load(ordering: .acquiring) }
    }

    /// Ends every wait that is under way and every later one.
    public func raise() {
        flag.store(true, ordering: .releasing)
        let (conditions, below) = book.withLock { ($0.conditions, $0.below) }
        for condition in conditions { condition.locked { condition.broadcast() } }
        for signal in below { signal.signal?.raise() }
    }

    func register(_ condition: Condition) { book.withLock { $0.conditions.append(condition) } }
}
