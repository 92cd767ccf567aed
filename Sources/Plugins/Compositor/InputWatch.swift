// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Whether each input gives pictures, as far as ticks of the clock show: a value.
struct InputWatch {
    struct Input {
        /// Chain clock: when it last gave a picture of its own that was new; nil before.
        fileprivate(set) var lastNew: Int64?
        /// Since when it has given them without being lost; nil while it is.
        fileprivate(set) var goodSince: Int64?
        fileprivate(set) var hasEnded = false
        fileprivate(set) var isSubstitute = false
        /// At the last tick.
        fileprivate(set) var wasLost = false
        /// Gave a picture of its own at some time.
        var hasPicture: Bool { lastNew != nil }
    }

    /// How long one gives nothing before it counts as lost, nanoseconds.
    let patience: Int64
    private(set) var inputs: [Input]
    /// Of the first tick.
    private var begin: Int64?

    init(count: Int, patience: Int64) {
        self.patience = patience
        inputs = [Input](repeating: Input(), count: count)
    }

    /// One tick has come, in which `input` gave this.
    ///
    /// - Returns: Whether it is lost now, where that is news.
    mutating func note(_ input: Int, now: Int64, isNew: Bool, isSubstitute: Bool, hasEnded: Bool) -> Bool? {
        begin = begin ?? now
        inputs[input].hasEnded = hasEnded
        if isNew {
            inputs[input].isSubstitute = isSubstitute
            if !isSubstitute {
                if isLost(input, now: now) || inputs[input].goodSince == nil { inputs[input].goodSince = now }
                inputs[input].lastNew = now
            }
        }
        let isLost = isLost(input, now: now)
        if isLost { inputs[input].goodSince = nil }
        guard isLost != inputs[input].wasLost else { return nil }
        inputs[input].wasLost = isLost
        return isLost
    }

    /// It has ended, shows pictures in the place of its own, or has given nothing for ``patience``.
    func isLost(_ input: Int, now: Int64) -> Bool {
        let state = inputs[input]
        if state.hasEnded || state.isSubstitute { return true }
        return now &- (state.lastNew ?? begin ?? now) >= patience
    }

    /// It is lost, and another input gives pictures that can be shown in its stead.
    func wouldBeLeft(_ input: Int, now: Int64) -> Bool {
        isLost(input, now: now) && inputs.indices.contains { $0 != input && isGood($0, now: now) }
    }

    /// Gives pictures of its own, and has for `time` nanoseconds.
    func isGood(_ input: Int, now: Int64, for time: Int64 = 0) -> Bool {
        guard !isLost(input, now: now), let since = inputs[input].goodSince else { return false }
        return now &- since >= time
    }
}

/// Which input a switch shows: a value.
struct SwitchState {
    enum Reason: String { case command, lost, back }

    struct Change: Equatable {
        var from: Int
        var to: Int
        var reason: Reason
    }

    /// What a person has chosen.
    private(set) var chosen: Int
    private(set) var shown: Int

    init(shown: Int) { (chosen, self.shown) = (shown, shown) }

    /// A person has chosen `input`; nil where it is shown already.
    mutating func choose(_ input: Int) -> Change? {
        chosen = input
        return show(input, .command)
    }

    /// What a tick changes by itself.
    ///
    /// - Parameters:
    ///   - takesNext: Another input is shown while this one is lost.
    ///   - backAfter: How long the chosen one gives pictures before it is shown again, nanoseconds; nil: never.
    mutating func tick(_ watch: InputWatch, now: Int64, takesNext: Bool, backAfter: Int64?) -> Change? {
        if shown != chosen, let backAfter, watch.isGood(chosen, now: now, for: backAfter) { return show(chosen, .back) }
        guard takesNext, watch.isLost(shown, now: now) else { return nil }
        let count = watch.inputs.count
        for step in 1..<count {
            let other = (shown + step) % count
            if watch.isGood(other, now: now) { return show(other, .lost) }
        }
        return nil
    }

    private mutating func show(_ input: Int, _ reason: Reason) -> Change? {
        guard input != shown else { return nil }
        defer { shown = input }
        return Change(from: shown, to: input, reason: reason)
    }
}

extension InputWatch {
    /// As ``note(_:now:isNew:isSubstitute:hasEnded:)``, by what a tick has brought.
    mutating func note(_ index: Int, of joined: JoinInputs, now: Int64) -> Bool? {
        let isNew = joined.isNew(index)
        return note(
            index, now: now, isNew: isNew, isSubstitute: isNew && joined.isSubstitute(index),
            hasEnded: joined.hasEnded(index))
    }

    /// For a stage's figures: of each input whether it gives pictures.
    static func figures(_ ids: [String], _ isGood: [Bool]) -> JSONNode {
        JSONNode(
            .object(zip(ids, isGood).map { JSONNode.Member(key: $0, value: .string($1 ? "good" : "lost")) }))
    }
}

extension StageContext {
    /// Says that an input is lost, or gives pictures again.
    func say(input: Int, isLost: Bool) {
        let id = inputIDs[input]
        post(
            isLost ? "input-lost" : "input-back", level: isLost ? .warning : .info,
            text: isLost
                ? "\(stageID): '\(id)' has stopped giving pictures." : "\(stageID): '\(id)' gives pictures again.",
            details: ["input": .string(id)])
    }
}
