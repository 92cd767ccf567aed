// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Merges the measurements of several sensors, each of which has its own times: every sample of the leading sensor
/// gets the values of the others at its time. Pure.
///
/// The leading sensor is the first of rotation rate, attitude and acceleration that has given a sample. Which sensors
/// there are shows within ``patience`` of the start, and no sample is complete before that. Between two measurements
/// of another sensor that are at most ``mostAge`` apart, values are interpolated. Before its first and after its last
/// one the nearest is taken, unless it is further than ``mostHeld`` away. The times of each sensor must rise. A
/// leading sample whose time does not rise goes on as it is, for ``SampleGate`` to count; one of another sensor is
/// dropped.
struct SensorMerge {
    /// How far the newest leading sample may be ahead of one that waits for another sensor, nanoseconds.
    let patience: Int64
    /// A sensor that has been silent for longer is not waited for, nanoseconds.
    static let mostAge: Int64 = 1_000_000_000
    /// How far away a measurement may be to be taken as it is, nanoseconds: two periods of a sensor at 10 Hz.
    static let mostHeld: Int64 = 200_000_000
    /// The most samples of one sensor that are kept.
    static let most = 8192

    private var leader: MotionSample.Contents?
    /// The time of the first sample, until the sensors are known; nil before the first.
    private var begin: MediaTime?
    private var isSettled = false
    private var waiting: [MotionSample] = []
    private var firstWaiting = 0
    /// The sensors that do not lead.
    private var others: [Companion] = []

    private struct Companion {
        let part: MotionSample.Contents
        var samples: [MotionSample] = []
        /// Samples before this one are no longer needed.
        var first = 0
        var last: MediaTime { samples.last?.time ?? .min }
    }

    private static let order: [MotionSample.Contents] = [.rotationRate, .attitude, .acceleration]

    init(patience: Int64) { self.patience = patience }

    /// Takes a sample, and appends those that are complete.
    mutating func add(_ sample: MotionSample, into ready: inout [MotionSample]) {
        choose(sample)
        guard let leader else { return ready.append(sample) }
        if sample.contents.contains(leader) {
            if let last = waiting.last, firstWaiting < waiting.count, sample.time <= last.time {
                return ready.append(sample)
            }
            waiting.append(sample)
        } else {
            for index in others.indices where sample.contents.contains(others[index].part) {
                guard sample.time > others[index].last else { continue }
                others[index].samples.append(sample)
                if others[index].samples.count - others[index].first > Self.most { others[index].first += 1 }
            }
        }
        settle(at: sample.time)
        if isSettled { give(into: &ready, isEnd: false) }
    }

    /// Appends what still waits.
    mutating func end(into ready: inout [MotionSample]) {
        isSettled = true
        give(into: &ready, isEnd: true)
    }

    private mutating func settle(at time: MediaTime) {
        guard !isSettled else { return }
        guard let begin else { return begin = time }
        isSettled = (time - begin).nanoseconds > patience || waiting.count > Self.most
    }

    /// Forgets everything, also the samples that wait: the sensors' clock has started anew.
    mutating func restart() { self = SensorMerge(patience: patience) }

    /// A sensor that ranks before the present leader takes over. The samples that wait become those of a sensor that
    /// follows.
    private mutating func choose(_ sample: MotionSample) {
        guard let best = Self.order.first(where: { sample.contents.contains($0) }) else { return }
        let rank = { (part: MotionSample.Contents) in Self.order.firstIndex(of: part) ?? Self.order.count }
        guard leader.map({ rank(best) < rank($0) }) ?? true else { return }
        leader = best
        let (known, left) = (others, waiting[firstWaiting...])
        others = Self.order.filter { $0 != best }.map { part in
            var other = known.first { $0.part == part } ?? Companion(part: part)
            for sample in left where sample.contents.contains(part) && sample.time > other.last {
                other.samples.append(sample)
            }
            return other
        }
        waiting.removeAll(keepingCapacity: true)
        firstWaiting = 0
    }

    private mutating func give(into ready: inout [MotionSample], isEnd: Bool) {
        while firstWaiting < waiting.count {
            let sample = waiting[firstWaiting]
            let isLate =
                isEnd || (waiting[waiting.count - 1].time - sample.time).nanoseconds > patience
                || waiting.count - firstWaiting > Self.most
            guard isLate || !others.contains(where: { isAwaited($0, for: sample) }) else { break }
            ready.append(completed(sample))
            firstWaiting += 1
        }
        if firstWaiting == waiting.count {
            waiting.removeAll(keepingCapacity: true)
            firstWaiting = 0
        } else if firstWaiting > Self.most {
            waiting.removeFirst(firstWaiting)
            firstWaiting = 0
        }
    }

    private func isAwaited(_ other: Companion, for sample: MotionSample) -> Bool {
        guard !sample.contents.contains(other.part), !other.samples.isEmpty, other.last < sample.time else {
            return false
        }
        return (sample.time - other.last).nanoseconds <= Self.mostAge
    }

    private mutating func completed(_ sample: MotionSample) -> MotionSample {
        var whole = sample
        for index in others.indices where !sample.contents.contains(others[index].part) {
            guard let value = Self.value(of: &others[index], at: sample.time) else { continue }
            whole.contents.insert(others[index].part)
            if others[index].part == .rotationRate { whole.rotationRate = value.rotationRate }
            if others[index].part == .acceleration { whole.acceleration = value.acceleration }
            if others[index].part == .attitude { whole.attitude = value.attitude }
        }
        return whole
    }

    /// What the sensor measured at `time`, between its two measurements around it, or the nearest one.
    private static func value(of other: inout Companion, at time: MediaTime) -> MotionSample? {
        while other.first + 1 < other.samples.count, other.samples[other.first + 1].time <= time { other.first += 1 }
        if other.first > most {
            other.samples.removeFirst(other.first)
            other.first = 0
        }
        guard other.first < other.samples.count else { return nil }
        let before = other.samples[other.first]
        if before.time <= time, other.first + 1 < other.samples.count {
            let after = other.samples[other.first + 1]
            if (after.time - before.time).nanoseconds <= mostAge { return before.interpolated(to: after, at: time) }
        }
        return abs((before.time - time).nanoseconds) <= mostHeld ? before : nil
    }
}
