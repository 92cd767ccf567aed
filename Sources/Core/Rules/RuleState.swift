// SPDX-License-Identifier: Apache-2.0

/// The state of one rule. Its methods return what to do. Times are nanoseconds of the chain clock, and must not fall.
struct RuleState: Equatable {
    /// Without `every`, a rule is carried out at most this often within ``span``. Then it rests for as long, since
    /// most likely its command leads to its own event.
    static let mostDone = 20
    static let span: Int64 = 10_000_000_000

    enum Phase: Equatable {
        case off
        /// What the events say has fitted since then.
        case rising(Int64)
        /// `do` has been done.
        case on
        /// What the events say has no longer fitted since then, and `do` has been done.
        case falling(Int64)
    }

    enum Step: Equatable {
        case `do`, otherwise
        /// The rule would have been carried out too often.
        case rest
    }

    private(set) var phase = Phase.off
    /// When it was done the last time.
    private var lastDone: Int64?
    /// When it was done, in the span before now.
    private var recent: [Int64] = []
    /// The rule does nothing before this time.
    private var restsUntil = Int64.min
    /// How often each was done.
    private(set) var doneCount = 0
    private(set) var otherwiseCount = 0

    /// Whether `do` has been done, and `otherwise` has not been done since.
    var holds: Bool {
        switch phase {
        case .on, .falling: true
        case .off, .rising: false
        }
    }

    /// When time alone will bring the next step; nil where it never will.
    func due(_ rule: Rule) -> Int64? {
        switch phase {
        case .off, .on: nil
        case .rising(let since):
            max(since &+ (rule.holdNs ?? 0), earliest(rule))
        case .falling(let since): since &+ (rule.otherwise?.holdNs ?? 0)
        }
    }

    /// When `do` may be done again.
    private func earliest(_ rule: Rule) -> Int64 {
        guard let every = rule.everyNs, let lastDone else { return restsUntil }
        return max(lastDone &+ every, restsUntil)
    }

    /// Takes the step that is due by `now`.
    mutating func advance(to now: Int64, _ rule: Rule) -> Step? {
        guard let due = due(rule), due <= now else { return nil }
        guard case .rising = phase else {
            phase = .off
            otherwiseCount += 1
            return .otherwise
        }
        return done(at: due, rule)
    }

    /// Takes an event that the rule hears. It was posted at `time`, up to which the state has been advanced.
    mutating func see(_ fits: Bool, at time: Int64, _ rule: Rule) -> Step? {
        guard rule.followsState else {
            return fits && time >= earliest(rule) ? done(at: time, rule) : nil
        }
        switch (phase, fits) {
        case (.off, true): phase = .rising(time)
        case (.rising, false): phase = .off
        case (.on, false): phase = rule.otherwise == nil ? .off : .falling(time)
        case (.falling, true): phase = .on
        default: return nil
        }
        return advance(to: time, rule)
    }

    private mutating func done(at time: Int64, _ rule: Rule) -> Step {
        recent.removeAll { time &- $0 >= Self.span }
        guard rule.everyNs != nil || recent.count < Self.mostDone else {
            recent = []
            restsUntil = time &+ Self.span
            return .rest
        }
        if rule.everyNs == nil { recent.append(time) }
        lastDone = time
        doneCount += 1
        if rule.followsState { phase = .on }
        return .do
    }
}
