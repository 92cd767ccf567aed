// SPDX-License-Identifier: Apache-2.0

/// Decides for a stage of several inputs what is taken next. The deciders are values without locks, threads or items,
/// with tests of their own; ``StageInlet`` performs what they say.
///
/// It cannot be copied, so that the arrays of a decider are changed where they lie.
enum InletDecider: ~Copyable {
    /// A join that waits for items that belong together.
    case matcher(JoinMatcher)
    /// A join by the chain clock.
    case beat(JoinBeat)
    /// A join by the times of its inputs.
    case times(JoinTimes)
    /// A stage that takes its items one by one, in the order of their time.
    case order(TimeOrder)

    enum Decision {
        /// Nothing can be decided before an input changes, or before the moment `until`. The stage gives nothing any
        /// more whose time is at most `nothingUpTo`. `awaited` has a bit for each input that the others wait for.
        case wait(until: Int64? = nil, nothingUpTo: Int64? = nil, awaited: UInt64 = 0)
        /// A join is given the items that its matcher names.
        case give
        /// A join is given what it has: before that, with `takesHeads`, the oldest item of each input.
        case tick(at: Int64, missed: Int = 0, takesHeads: Bool)
        /// The oldest item of this input goes to a join at the next tick, unless a newer one follows before.
        case keep(Int)
        /// The oldest item of this input matches nothing.
        case leaveOut(Int)
        /// The oldest item of this input goes to the stage; ``TimeOrder/isInTurn``.
        case take(Int, isInTurn: Bool)
        /// No item follows.
        case end
    }

    /// What the present instance of a stage says. Only what its decider asks for is set.
    struct Wishes {
        var rate: Rational?
        var active: Int?
        var longestWait: Int64?
        var idleTime: Int64?
        var lookAhead: Int64?
    }

    /// The decider of a join.
    init(_ rule: JoinRule, rate: Rational?) {
        if let rate, rule.followsTimes {
            self = .times(JoinTimes(rate: rate, inputs: rule.frameTimes.count, whenEnded: rule.whenEnded))
        } else if let period = rule.period {
            self = .beat(JoinBeat(period: period, whenEnded: rule.whenEnded))
        } else {
            self = .matcher(JoinMatcher(rule))
        }
    }

    mutating func next(_ heads: [QueueHead], _ wishes: Wishes, _ clock: ChainClock) -> Decision {
        let decision: Decision
        switch consume self {
        case .matcher(var matcher):
            for index in heads.indices { matcher.inputs[index] = heads[index] }
            switch matcher.next() {
            case .wait:
                let upTo = matcher.givesNothingUpTo
                decision = .wait(
                    nothingUpTo: upTo == .max || upTo == .min ? nil : upTo, awaited: matcher.awaited)
            case .merge: decision = .give
            case .drop(let input): decision = .leaveOut(input)
            case .end: decision = .end
            }
            self = .matcher(matcher)
        case .beat(var beat):
            if let rate = wishes.rate { beat.set(period: rate.period) }
            switch beat.next(now: clock.now(), inputs: heads, active: wishes.active) {
            case .wait(let until): decision = .wait(until: until)
            case .tick(let time, let missed): decision = .tick(at: time, missed: missed, takesHeads: true)
            case .end: decision = .end
            }
            self = .beat(beat)
        case .times(var times):
            if let rate = wishes.rate { times.set(rate: rate) }
            switch times.next(heads) {
            case .wait: decision = .wait(nothingUpTo: times.due.map { $0 &- 1 }, awaited: heads.awaited())
            case .take(let input): decision = .keep(input)
            case .tick(let time): decision = .tick(at: time, takesHeads: false)
            case .end: decision = .end
            }
            self = .times(times)
        case .order(var order):
            for index in heads.indices { order.inputs[index] = heads[index] }
            order.longestWait = wishes.longestWait
            switch order.next(now: clock.now()) {
            case .wait(let until): decision = .wait(until: until, awaited: order.awaited)
            case .take(let input): decision = .take(input, isInTurn: order.isInTurn)
            case .end: decision = .end
            }
            self = .order(order)
        }
        return decision
    }

    /// Says what a join is given after ``Decision/give``.
    var matcher: JoinMatcher? {
        switch self {
        case .matcher(let matcher): matcher
        default: nil
        }
    }

    /// Whether an input that showed `head` gives nothing new from this tick on.
    func hasEnded(_ input: Int, _ head: QueueHead, at tick: Int64) -> Bool {
        switch self {
        case .times(let times): times.hasEnded(input, head, at: tick)
        default: head.isExhausted
        }
    }

    /// Notes the item that ``Decision/keep(_:)`` asked for.
    mutating func took(_ input: Int, _ header: borrowing ItemHeader) {
        switch consume self {
        case .times(var times):
            times.took(input, at: header.pts.nanoseconds, duration: header.duration.nanoseconds)
            self = .times(times)
        case let other: self = other
        }
    }
}
