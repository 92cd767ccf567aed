// SPDX-License-Identifier: Apache-2.0

/// Decides from the oldest item of each input what a join does next: a value without locks, threads or items.
///
/// The loop (``StageInlet``) tells it what each queue shows, asks ``next()``, does what it says and asks again. It
/// waits only as long as it must. With ``JoinMatch/nearest`` it waits until each input has shown an item past the
/// window of the leading one, or is known to have none in it. What it decides therefore does not depend on which
/// thread was faster. docs/design/010-joins.md.
struct JoinMatcher {
    enum Action: Equatable {
        /// Nothing can be decided yet.
        case wait
        /// The items of the inputs that ``takes(_:)`` names go to the stage.
        case merge
        /// The oldest item of this input matches nothing.
        case drop(Int)
        /// No item follows.
        case end
    }

    /// The frame time that is assumed for an input of unknown rate that has given only one item. An item may be up
    /// to half of it away from the leading item.
    static let unknownFrameTime: Int64 = 1_000_000_000 / 60

    let rule: JoinRule
    /// Written by the loop before each ``next()``.
    var inputs: [QueueHead]
    /// The input that leads now.
    private(set) var lead: Int
    private var taken: [Bool]
    /// The time of the last leading item that was given, and the step to it from the one before; nil before there was
    /// one.
    private var lastTime: Int64?
    private var lastStep: Int64?

    init(_ rule: JoinRule) {
        self.rule = rule
        lead = rule.lead
        inputs = rule.frameTimes.map { _ in QueueHead() }
        taken = rule.frameTimes.map { _ in false }
    }

    /// After ``Action/merge``: whether the oldest item of `input` is among those that are given.
    func takes(_ input: Int) -> Bool { taken[input] }

    /// After ``Action/merge``: the input whose time counts. With ``JoinMatch/exact`` it may be any input, since the
    /// leading input may have no item.
    var leadOfTaken: Int {
        if taken[lead] { return lead }
        for index in taken.indices where taken[index] { return index }
        return lead
    }

    /// Whether `input` gives its last item again where ``Action/merge`` takes nothing from it.
    func repeats(_ input: Int) -> Bool {
        guard !taken[input] else { return false }
        if inputs[input].isExhausted { return rule.hold }
        return rule.match == .newest
    }

    /// A bit for each input that the join waits for.
    var awaited: UInt64 { inputs.awaited(lead: rule.match == .exact ? nil : lead) }

    /// The join gives nothing from now on whose time is at most this one; `.min` when nothing is known.
    var givesNothingUpTo: Int64 {
        if rule.match != .exact, !inputs[lead].isExhausted { return known(lead) }
        var upTo = Int64.max
        for index in inputs.indices { upTo = min(upTo, known(index)) }
        return upTo
    }

    /// The time up to which an input has nothing more.
    private func known(_ input: Int) -> Int64 {
        if let head = inputs[input].head { return head &- 1 }
        return inputs[input].hasEnded ? .max : inputs[input].nothingUpTo
    }

    mutating func next() -> Action {
        if hasEnded { return .end }
        return rule.match == .exact ? exact() : led()
    }

    // MARK: The end

    private var hasEnded: Bool {
        switch rule.whenEnded {
        case .lead: return isOver(rule.lead)
        case .first:
            // In a join with a leading input, the ends of the others are handled where they matter: see `led()`.
            if rule.match == .nearest { return isOver(rule.lead) }
            for index in inputs.indices where isOver(index) { return true }
            return false
        case .last:
            for index in inputs.indices where !inputs[index].isExhausted { return false }
            return true
        }
    }

    /// Whether the input has ended, and the join has waited for the times of what was lost before the end.
    private func isOver(_ input: Int) -> Bool {
        guard inputs[input].isExhausted else { return false }
        guard rule.match == .exact else { return true }
        // Items of the other inputs that are as old as an item dropped before this end are still given. Otherwise
        // chance would decide whether they are.
        let lost = inputs[input].nothingUpTo
        for index in inputs.indices where index != input && known(index) < lost { return false }
        return true
    }

    // MARK: Equal times

    private mutating func exact() -> Action {
        var earliest: Int64?
        var emptyUpTo = Int64.max
        for input in inputs {
            if let head = input.head {
                earliest = min(earliest ?? head, head)
            } else {
                emptyUpTo = min(emptyUpTo, input.hasEnded ? .max : input.nothingUpTo)
            }
        }
        guard let earliest, emptyUpTo >= earliest else { return .wait }
        for index in inputs.indices { taken[index] = inputs[index].head == earliest }
        return .merge
    }

    // MARK: One input leads

    private mutating func led() -> Action {
        if inputs[lead].isExhausted {
            // Not all inputs are over, or the join would have ended.
            while inputs[lead].isExhausted { lead = (lead + 1) % inputs.count }
            lastStep = nil
        }
        guard let time = inputs[lead].head else { return dropBefore(max(inputs[lead].nothingUpTo, lastTime ?? .min)) }
        if rule.match == .nearest {
            let half = halfStep(to: time)
            var mustWait = false
            for index in inputs.indices {
                taken[index] = index == lead
                guard index != lead else { continue }
                if let head = inputs[index].head {
                    if head < time &- early(index, half) { return .drop(index) }
                    taken[index] = head <= time &+ half
                } else if inputs[index].nothingUpTo < time &+ half {
                    if !inputs[index].hasEnded { mustWait = true } else if rule.whenEnded == .first { return .end }
                }
            }
            if mustWait { return .wait }
        } else {
            for index in inputs.indices { taken[index] = inputs[index].head != nil }
        }
        if let lastTime, time > lastTime { lastStep = time &- lastTime }
        lastTime = time
        return .merge
    }

    /// The next leading item is later than `time`. Items that are too early for it match nothing.
    private func dropBefore(_ time: Int64) -> Action {
        guard rule.match == .nearest, time > .min / 2 else { return .wait }
        let half = halfStep(to: nil)
        for index in inputs.indices where index != lead {
            if let head = inputs[index].head, head <= time &- early(index, half) { return .drop(index) }
        }
        return .wait
    }

    /// Half the time from one leading item to the next: as the input's format says, or else by the last two items.
    private func halfStep(to time: Int64?) -> Int64 {
        if rule.frameTimes[lead] > 0 { return rule.frameTimes[lead] / 2 }
        if let time, let lastTime, time > lastTime { return (time &- lastTime) / 2 }
        if let lastStep { return lastStep / 2 }
        for known in rule.frameTimes where known > 0 { return known / 2 }
        return Self.unknownFrameTime / 2
    }

    /// How much earlier than the leading item an item of `input` may be. For an input with a higher rate that is half
    /// of its own frame time, since its next item is nearer.
    private func early(_ input: Int, _ half: Int64) -> Int64 {
        let own = rule.frameTimes[input] / 2
        return own > 0 ? min(half, own) : half
    }
}
