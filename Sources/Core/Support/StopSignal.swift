// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Ends every wait of a chain, or of one of its stages, at once.
///
/// The signal of a stage lies under the signal of its chain. Raising the chain's signal raises those of all stages.
/// Raising a stage's signal ends only the waits of that stage, when its branch is removed. Each object that waits
/// registers its condition when it is made. Every thread may use it.
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

    /// Makes a signal that is not raised.
    public init() {}

    /// A signal that `parent` raises as well.
    init(under parent: StopSignal) {
        parent.book.withLock { book in
            // Removes the signals of stages that have gone, which need not happen often.
            if book.below.count >= 64, book.below.count.nonzeroBitCount == 1 {
                book.below.removeAll { $0.signal == nil }
            }
            book.below.append(Weak(signal: self))
        }
        if parent.isRaised { raise() }
    }

    /// Whether the signal is raised. It stays raised.
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
