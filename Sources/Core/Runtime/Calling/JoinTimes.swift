// SPDX-License-Identifier: Apache-2.0

/// Decides what a join does next whose clock is the times of its inputs: a value without locks, threads or items.
///
/// None of its inputs is live, so it waits until each has shown an item behind the tick, or is known to have none up to it.
/// What it decides therefore does not depend on which thread was faster. docs/design/017-clocked-joins.md.
struct JoinTimes {
    enum Action: Equatable {
        /// Nothing can be decided yet.
        case wait
        /// The oldest item of this input is its newest at the next tick, unless one more follows.
        case take(Int)
        /// The picture of this time is due.
        case tick(at: Int64)
        /// No picture follows.
        case end
    }

    /// An item this much behind a tick belongs to it, at most: containers round times to milliseconds.
    static let mostTolerance: Int64 = 1_000_000

    private(set) var rate: Rational
    private let whenEnded: JoinEnd
    private var tolerance: Int64
    /// The tick that the others are counted from: the first, or the first of another rate; nil before any is known.
    private var origin: Int64?
    private var count: Int64 = 0
    /// For each input the end of the newest item that was taken; nil before the first.
    private var ends: [Int64?]

    /// - Parameter rate: Greater than 0.
    init(rate: Rational, inputs: Int, whenEnded: JoinEnd) {
        self.rate = rate
        self.whenEnded = whenEnded
        tolerance = Self.tolerance(rate)
        ends = [Int64?](repeating: nil, count: inputs)
    }

    private static func tolerance(_ rate: Rational) -> Int64 { min(mostTolerance, rate.period / 4) }

    /// The time of the next tick; nil before the first item is known.
    var due: Int64? {
        guard let origin else { return nil }
        // Whole seconds apart, so that no product leaves 64 bits.
        let (numerator, denominator) = (Int64(rate.numerator), Int64(rate.denominator))
        let (rounds, rest) = count.quotientAndRemainder(dividingBy: numerator)
        return origin &+ rounds &* denominator &* 1_000_000_000 &+ rest &* denominator &* 1_000_000_000 / numerator
    }

    /// Another instance may have another rate: it holds from the next tick on.
    mutating func set(rate: Rational) {
        guard rate != self.rate, rate.numerator > 0 else { return }
        (origin, count) = (due, 0)
        self.rate = rate
        tolerance = Self.tolerance(rate)
    }

    /// Notes the item that was taken from an input.
    mutating func took(_ input: Int, at pts: Int64, duration: Int64) {
        ends[input] = pts &+ max(duration, tolerance + 1)
    }

    /// Whether an input has ended at the tick that is given.
    func hasEnded(_ input: Int, _ head: QueueHead, at tick: Int64) -> Bool { head.isExhausted && isPast(input, tick) }

    private func isPast(_ input: Int, _ tick: Int64) -> Bool {
        guard let end = ends[input] else { return true }
        return tick &+ tolerance >= end
    }

    mutating func next(_ inputs: [QueueHead]) -> Action {
        guard let due else { return first(inputs) }
        var mustWait = false
        for index in inputs.indices {
            if let head = inputs[index].head {
                if head <= due &+ tolerance { return .take(index) }
            } else if !inputs[index].hasEnded, inputs[index].nothingUpTo < due &+ tolerance {
                mustWait = true
            }
        }
        if mustWait { return .wait }
        if hasEnded(inputs, due) { return .end }
        count += 1
        return .tick(at: due)
    }

    /// The first tick is at the earliest item of all inputs. An input that will have no earlier one is not waited for: it
    /// may have none because a link before it dropped what came first.
    private mutating func first(_ inputs: [QueueHead]) -> Action {
        guard let earliest = inputs.lazy.compactMap(\.head).min() else {
            return inputs.allSatisfy(\.hasEnded) ? .end : .wait
        }
        let mayBeEarlier = inputs.contains { $0.head == nil && !$0.hasEnded && $0.nothingUpTo < earliest &- 1 }
        if mayBeEarlier { return .wait }
        origin = earliest
        return next(inputs)
    }

    private func hasEnded(_ inputs: [QueueHead], _ due: Int64) -> Bool {
        func isOver(_ index: Int) -> Bool { hasEnded(index, inputs[index], at: due) }
        switch whenEnded {
        case .lead: return isOver(0)
        case .first: return inputs.indices.contains(where: isOver)
        case .last: return inputs.indices.allSatisfy(isOver)
        }
    }
}
