// SPDX-License-Identifier: Apache-2.0

import Glibc

/// Whether a process that is late has had a processor: proc(5), clock_getcpuclockid(3). [stage thread]
struct Patience {
    private let nanoseconds: Int64
    private var spent: Int64?
    private var count = 0
    /// How often the time of a call may pass while the process waits for a processor.
    private static let most = 10

    init(_ nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    /// The time of a call has passed once more.
    mutating func mayWait(for pid: pid_t) -> Bool {
        count += 1
        // A process that sleeps waits for something else than a processor.
        guard count <= Self.most, Self.isRunnable(pid), let now = Self.processorTime(of: pid) else { return false }
        defer { spent = now }
        guard let spent else { return true }
        return now - spent < nanoseconds / 2
    }

    private static func isRunnable(_ pid: pid_t) -> Bool {
        let file = open("/proc/\(pid)/stat", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return false }
        defer { close(file) }
        // "PID (NAME) STATE …"
        var bytes = [UInt8](repeating: 0, count: 256)
        let count = read(file, &bytes, bytes.count)
        guard count > 0, let end = bytes[..<count].lastIndex(of: UInt8(ascii: ")")), end + 2 < count else {
            return false
        }
        return bytes[end + 2] == UInt8(ascii: "R")
    }

    private static func processorTime(of pid: pid_t) -> Int64? {
        var clock = clockid_t()
        var time = timespec()
        guard clock_getcpuclockid(pid, &clock) == 0, clock_gettime(clock, &time) == 0 else { return nil }
        return Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
    }
}
