import Glibc
import Synchronization

/// Lets a few threads look for work a moment longer before they sleep.
///
/// A sleeping thread takes the kernel tens of microseconds to wake; one that looks for up to `limitNs` answers in less than one. At most
/// as many threads look as there are processors less one, and a thread that looked in vain several times looks less often, so that
/// a chain at 30 frames per second pays nothing for it.
struct Spinner {
    static let limitNs: Int64 = 25_000
    private static let spinners = Atomic<Int>(0)
    private static let most = max(0, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))) - 1)
    /// Grows with each vain look; that many waits are then made without looking.
    private var vain = 0
    private var skip = 0

    /// Looks until `ready` or the limit; true when it became ready.
    mutating func spin(until ready: () -> Bool) -> Bool {
        if skip > 0 {
            skip -= 1
            return false
        }
        guard Self.spinners.add(1, ordering: .relaxed).newValue <= Self.most else {
            Self.spinners.subtract(1, ordering: .relaxed)
            return false
        }
        defer { Self.spinners.subtract(1, ordering: .relaxed) }
        let start = Self.monotonic()
        repeat {
            for _ in 0..<32 {
                if ready() {
                    vain = 0
                    return true
                }
                spinPause()
            }
        } while Self.monotonic() - start < Self.limitNs
        vain = min(vain + 1, 6)
        skip = (1 << vain) - 1
        return false
    }

    /// The processor's own time, not the chain's: a simulated clock must not decide how long a thread looks.
    private static func monotonic() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
    }

    @inline(__always)
    private func spinPause() { _ = Self.spinners.load(ordering: .sequentiallyConsistent) }
}
