// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Tells whether each input gives pictures, as seen at the ticks of the clock: a value.
struct InputWatch {
    struct Input {
        /// When it last gave a new picture of its own, by the chain clock; nil before the first.
        fileprivate(set) var lastNew: Int64?
        /// Since when it has given such pictures without being lost; nil while it is lost.
        fileprivate(set) var goodSince: Int64?
        fileprivate(set) var hasEnded = false
        fileprivate(set) var isSubstitute = false
        /// Whether it was lost at the last tick.
        fileprivate(set) var wasLost = false
        /// Whether it has ever given a picture of its own.
        var hasPicture: Bool { lastNew != nil }
    }

    /// An input that gives nothing for this long counts as lost, nanoseconds.
    private(set) var patience: Int64
    private(set) var inputs: [Input]
    /// The time of the first tick.
    private var begin: Int64?

    init(count: Int, patience: Int64) {
        self.patience = patience
        inputs = [Input](repeating: Input(), count: count)
    }

    /// Notes what `input` gave at a tick.
    ///
    /// - Returns: Whether it is lost now, where that has changed; nil otherwise.
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

    /// Whether it has ended, shows substitutes for its pictures, or has given nothing for ``patience``.
    func isLost(_ input: Int, now: Int64) -> Bool {
        let state = inputs[input]
        if state.hasEnded || state.isSubstitute { return true }
        return now &- (state.lastNew ?? begin ?? now) >= patience
    }

    /// Whether it is lost, and another input gives pictures that can be shown instead.
    func wouldBeLeft(_ input: Int, now: Int64) -> Bool {
        isLost(input, now: now) && inputs.indices.contains { $0 != input && isGood($0, now: now) }
    }

    /// Whether it has given pictures of its own for `time` nanoseconds.
    func isGood(_ input: Int, now: Int64, for time: Int64 = 0) -> Bool {
        guard !isLost(input, now: now), let since = inputs[input].goodSince else { return false }
        return now &- since >= time
    }
}

/// Decides which input a switch shows: a value.
struct SwitchState {
    enum Reason: String { case command, lost, back }

    struct Change: Equatable {
        var from: Int
        var to: Int
        var reason: Reason
    }

    /// The input that the user has chosen.
    private(set) var chosen: Int
    private(set) var shown: Int

    init(shown: Int) { (chosen, self.shown) = (shown, shown) }

    /// The user has chosen `input`; nil where it is shown already.
    mutating func choose(_ input: Int) -> Change? {
        chosen = input
        return show(input, .command)
    }

    /// Shows another input by itself at a tick, where that is due; nil where the input stays.
    ///
    /// - Parameters:
    ///   - takesNext: Whether another input is shown while this one is lost.
    ///   - backAfter: How long the chosen input must give pictures before it is shown again, nanoseconds; nil: it
    ///     is not shown again by itself.
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
    /// Like ``note(_:now:isNew:isSubstitute:hasEnded:)``, for what an input gave at a tick.
    mutating func note(_ index: Int, of joined: JoinInputs, now: Int64) -> Bool? {
        // By their own times no input is late. One that is silent has nothing else to show.
        if joined.followsTimes { patience = .max }
        let isNew = joined.isNew(index)
        return note(
            index, now: now, isNew: isNew, isSubstitute: isNew && joined.isSubstitute(index),
            hasEnded: joined.hasEnded(index))
    }

    /// For a stage's figures: whether each input gives pictures.
    static func figures(_ ids: [String], _ isGood: [Bool]) -> JSONNode {
        JSONNode(
            .object(zip(ids, isGood).map { JSONNode.Member(key: $0, value: .string($1 ? "good" : "lost")) }))
    }
}

extension StageContext {
    /// Posts that an input is lost, or gives pictures again.
    func say(input: Int, isLost: Bool) {
        let id = inputIDs[input]
        post(
            isLost ? "input-lost" : "input-back", level: isLost ? .warning : .info,
            text: isLost
                ? "\(stageID): '\(id)' gives no pictures; this stage goes on without it."
                : "\(stageID): '\(id)' gives pictures again.",
            details: ["input": .string(id)])
    }
}
