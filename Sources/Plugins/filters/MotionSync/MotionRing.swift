// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// The newest samples of motion, in the order of their time. Its memory is taken once.
struct MotionRing {
    /// The motion at one moment.
    enum Match: Equatable {
        /// Between two samples, the nearer of which is `age` nanoseconds away.
        case between(MotionSample, age: Int64)
        /// After the last sample, by `age` nanoseconds.
        case after(MotionSample, age: Int64)
        /// Between two samples that are too far apart.
        case gap
        /// Before the first sample that is still known, or there is none.
        case nothing
    }

    private var samples: [MotionSample]
    private var head = 0
    private(set) var count = 0
    /// The usual time from one sample to the next, in nanoseconds; 0 before the second.
    private(set) var period: Int64

    /// - Parameters:
    ///   - capacity: How many samples are kept; 2 or more.
    ///   - rate: Samples per second as the source says; 0 where it does not.
    init(capacity: Int, rate: Double) {
        samples = [MotionSample](repeating: MotionSample(time: .zero), count: max(capacity, 2))
        period = rate > 0 ? Int64(min(1e9 / rate, Double(Self.longestPeriod))) : 0
    }

    /// The longest period, nanoseconds: samples that come less often are not the motion of a camera.
    static let longestPeriod: Int64 = 60_000_000_000

    private func place(_ index: Int) -> Int { (head + index) % samples.count }
    private func at(_ index: Int) -> MotionSample { samples[place(index)] }

    /// Forgets all samples: what follows has other times.
    mutating func removeAll() { (head, count) = (0, 0) }

    /// Adds a sample; where there is no room, the oldest is dropped. One that is earlier than the newest is inserted
    /// in order, and one whose time is already there is left out.
    ///
    /// - Returns: Whether it was added.
    @discardableResult
    mutating func add(_ sample: MotionSample) -> Bool {
        var index = count
        while index > 0, at(index - 1).time > sample.time { index -= 1 }
        if index > 0, at(index - 1).time == sample.time { return false }
        if count == samples.count {
            // Older than all that are kept.
            guard index > 0 else { return false }
            head = place(1)
            count -= 1
            index -= 1
        }
        if index == count, count > 0 { learn(sample.time.nanoseconds - at(count - 1).time.nanoseconds) }
        var moved = count
        while moved > index {
            samples[place(moved)] = samples[place(moved - 1)]
            moved -= 1
        }
        samples[place(index)] = sample
        count += 1
        return true
    }

    /// Learns the period from a step. A step of more than four periods is a gap, and is ignored.
    private mutating func learn(_ step: Int64) {
        guard step > 0 else { return }
        let step = min(step, Self.longestPeriod)
        if period == 0 {
            period = step
        } else if step / 4 < period {
            period += (step - period) / 16
        }
    }

    /// What there is at `time`.
    ///
    /// - Parameter mostApart: Samples further apart than this, in nanoseconds, are not interpolated.
    func match(at time: MediaTime, mostApart: Int64) -> Match {
        var (low, high) = (0, count)
        while low < high {
            let middle = (low + high) / 2
            if at(middle).time > time { high = middle } else { low = middle + 1 }
        }
        guard low > 0 else { return .nothing }
        let before = at(low - 1)
        let since = time.nanoseconds - before.time.nanoseconds
        if since == 0 { return .between(before, age: 0) }
        guard low < count else { return .after(before, age: since) }
        let after = at(low)
        guard after.time.nanoseconds - before.time.nanoseconds <= mostApart else { return .gap }
        return .between(
            before.interpolated(to: after, at: time), age: min(since, after.time.nanoseconds - time.nanoseconds))
    }
}
