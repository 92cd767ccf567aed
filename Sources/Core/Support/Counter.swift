// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// A 64-bit count with one writer and any number of readers; never reset.
struct Counter: ~Copyable, Sendable {
    private let count = Atomic<Int>(0)

    /// [the writer's thread] A plain load and store: no locked instruction.
    @inline(__always)
    func add(_ amount: Int = 1) { count.store(count.load(ordering: .relaxed) &+ amount, ordering: .releasing) }

    /// [any thread]
    var value: Int {
        @inline(__always) get { count.load(ordering: .acquiring) }
    }
}
