// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Lets a few threads look for work a moment longer before they sleep.
///
/// A sleeping thread takes the kernel tens of microseconds to wake; one that looks for up to `limitNs` answers in
/// less than one. A thread looks only while there is a processor for each stage thread that is awake. Otherwise the
/// work of another thread would stand still. A thread that looked in vain several times looks less often, so that a
/// chain at 30 frames per second pays nothing for it.
struct Spinner {
    static let limitNs: Int64 = 25_000
    /// Stage threads of the process that do not sleep in a wait of framehost.
    private static let awake = Atomic<Int>(0)
    private static let processors = Processors.online
    /// Grows with each vain look; that many waits are then made without looking.
    private var vain = 0
    private var skip = 0

    /// Looks until `ready` or the limit; true when it became ready.
    mutating func spin(until ready: () -> Bool) -> Bool {
        if skip > 0 {
            skip -= 1
            return false
        }
        guard Self.processors > 1, Self.awake.load(ordering: .relaxed) <= Self.processors else { return false }
        // Not the chain clock's time: a simulated clock must not decide how long a thread looks.
        let start = MonotonicTime.now()
        repeat {
            for _ in 0..<32 {
                if ready() {
                    vain = 0
                    return true
                }
                spinPause()
            }
        } while MonotonicTime.now() - start < Self.limitNs
        vain = min(vain + 1, 6)
        skip = (1 << vain) - 1
        return false
    }

    /// [stage thread] The thread begins its work, or wakes.
    @inline(__always)
    static func wakeUp() { awake.add(1, ordering: .relaxed) }

    /// [stage thread] The thread goes to sleep, or ends.
    @inline(__always)
    static func fallAsleep() { awake.subtract(1, ordering: .relaxed) }

    @inline(__always)
    private func spinPause() { _ = Self.awake.load(ordering: .sequentiallyConsistent) }
}
