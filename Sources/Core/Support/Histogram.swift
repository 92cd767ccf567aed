// SPDX-License-Identifier: Apache-2.0

import Synchronization

/// Durations in buckets of at most 6 % width, from 1 ns to an hour: one writer, no allocation, percentiles for any
/// reader.
final class Histogram: @unchecked Sendable {
    private static let subBits = 4
    private static let bucketCount = (64 - subBits) << subBits
    /// Written by one thread with plain 64-bit stores; a reader may be a few samples behind.
    private let buckets: UnsafeMutablePointer<Counter>

    init() {
        buckets = .allocate(capacity: Self.bucketCount)
        for index in 0..<Self.bucketCount { (buckets + index).initialize(to: Counter()) }
    }

    deinit {
        buckets.deinitialize(count: Self.bucketCount)
        buckets.deallocate()
    }

    private static func bucket(of value: UInt64) -> Int {
        guard value >= 1 << UInt64(subBits) else { return Int(value) }
        let exponent = 63 - value.leadingZeroBitCount
        let mantissa = Int(value >> UInt64(exponent - subBits)) & ((1 << subBits) - 1)
        return ((exponent - subBits + 1) << subBits) + mantissa
    }

    /// The largest value of a bucket.
    private static func upperBound(of bucket: Int) -> Double {
        guard bucket >= 1 << subBits else { return Double(bucket) }
        let exponent = (bucket >> subBits) + subBits - 1
        let mantissa = UInt64(bucket & ((1 << subBits) - 1)) | 1 << UInt64(subBits)
        return Double((mantissa + 1) << UInt64(exponent - subBits)) - 1
    }

    /// [the writer's thread]
    @inline(__always)
    func add(nanoseconds: Int64) { buckets[Self.bucket(of: UInt64(max(nanoseconds, 0)))].add() }

    /// [any thread] How many samples there are, their approximate sum in nanoseconds (each counts as the largest of
    /// its bucket), and how many lie at or below each of `bounds`, which rise.
    func summary(upTo bounds: [Double]) -> (count: Int, sum: Double, below: [Int]) {
        var (count, sum) = (0, 0.0)
        var below = [Int](repeating: 0, count: bounds.count)
        for bucket in 0..<Self.bucketCount {
            let samples = buckets[bucket].value
            guard samples > 0 else { continue }
            let value = Self.upperBound(of: bucket)
            count += samples
            sum += Double(samples) * value
            for index in bounds.indices where value <= bounds[index] { below[index] += samples }
        }
        return (count, sum, below)
    }

    /// [any thread] The value in nanoseconds that a share of `fraction` of the samples does not exceed; nil without
    /// samples.
    func percentile(_ fraction: Double) -> Double? {
        let counts = (0..<Self.bucketCount).map { buckets[$0].value }
        let total = counts.reduce(0, +)
        guard total > 0 else { return nil }
        var left = Int((Double(total) * fraction).rounded(.up))
        for (bucket, count) in counts.enumerated() {
            left -= count
            if left <= 0, count > 0 { return Self.upperBound(of: bucket) }
        }
        return nil
    }
}
