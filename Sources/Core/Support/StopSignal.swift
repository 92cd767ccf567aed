// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Ends every wait of a chain, or of one of its stages, at once.
///
/// The signal of a stage lies under the signal of its chain. Raising the chain's signal raises those of all stages.
/// Raising a stage's signal ends only the waits of that stage, when its branch is removed. Each object that waits
/// registers its condition when it is made. Every thread may use it.
public final class StopSignal: @unchecked Sendable {
    /// Objects that may go at any time.
    private struct Weakly<Object: AnyObject> {
        private struct Weak {
            weak var object: Object?
        }
        private var all: [Weak] = []

        var objects: [Object] { all.compactMap(\.object) }
        var count: Int { all.count }

        mutating func append(_ object: Object) {
            // Removes those that have gone, which need not happen often.
            if all.count >= 64, all.count.nonzeroBitCount == 1 { all.removeAll { $0.object == nil } }
            all.append(Weak(object: object))
        }
    }

    private struct Book {
        var conditions = Weakly<Condition>()
        var below = Weakly<StopSignal>()
    }

    private let flag = Atomic<Bool>(false)
    private let book = Locked(Book())

    /// Makes a signal that is not raised.
    public init() {}

    /// A signal that `parent` raises as well.
    init(under parent: StopSignal) {
        parent.book.withLock { $0.below.append(self) }
        if parent.isRaised { raise() }
    }

    /// Whether the signal is raised. It stays raised.
    public var isRaised: Bool {
        @inline(__always) get { flag.load(ordering: .acquiring) }
    }

    /// Ends every wait that is under way and every later one.
    public func raise() {
        flag.store(true, ordering: .releasing)
        let (conditions, below) = book.withLock { ($0.conditions.objects, $0.below.objects) }
        for condition in conditions { condition.locked { condition.broadcast() } }
        for signal in below { signal.raise() }
    }

    /// Makes ``raise()`` end the waits on a condition. Whoever waits on it keeps it.
    func register(_ condition: Condition) { book.withLock { $0.conditions.append(condition) } }

    /// For tests: how many conditions and signals are registered, those that have gone included.
    var registered: Int { book.withLock { $0.conditions.count + $0.below.count } }
}
