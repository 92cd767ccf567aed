// SPDX-License-Identifier: Apache-2.0

/// The first `capacity` latencies of a run, since capture. Memory is allocated at the start.
struct LatencySamples: ~Copyable {
    private let samples: UnsafeMutablePointer<Int64>
    private let capacity: Int
    private(set) var count = 0

    init(capacity: Int) {
        self.capacity = capacity
        samples = .allocate(capacity: capacity)
    }

    deinit { samples.deallocate() }

    mutating func add(_ nanoseconds: Int64) {
        guard count < capacity else { return }
        samples[count] = nanoseconds
        count += 1
    }

    /// `pingpong_ns p50=21840 p99=40310`; nil without samples. Sorts the samples.
    mutating func report() -> String? {
        guard count > 0 else { return nil }
        var all = UnsafeMutableBufferPointer(start: samples, count: count)
        all.sort()
        /// The smallest sample that at least `percent` of all do not exceed.
        func percentile(_ percent: Int) -> Int64 { all[max((count * percent + 99) / 100 - 1, 0)] }
        return "pingpong_ns p50=\(percentile(50)) p99=\(percentile(99))"
    }
}
