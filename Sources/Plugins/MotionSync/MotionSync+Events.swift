// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Synchronization

extension MotionSync {
    /// The events that it posts.
    static let events = [
        EventDeclaration(
            "motion-missing", "Pictures have no motion: none has come for their time. Given when that begins.",
            [.number("withoutMotion", "How many pictures had none so far.")]),
        EventDeclaration(
            "motion-present", "Pictures have motion, for the first time or again.",
            [
                .number("missingMs", "For how long it was missing (ms)."),
                .number("withoutMotion", "How many pictures had none so far."),
            ]),
    ]
}

/// How many pictures were matched and how. Written by the stage thread, read by any.
final class MatchFigures: Sendable {
    let matched = Atomic<Int>(0)
    let extrapolated = Atomic<Int>(0)
    let without = Atomic<Int>(0)
    let samples = Atomic<Int>(0)
    let leftOut = Atomic<Int>(0)
    /// Of the last picture that was matched, nanoseconds.
    let age = Atomic<Int>(0)

    func add(_ counter: borrowing Atomic<Int>) { counter.add(1, ordering: .relaxed) }

    var json: JSONNode {
        func value(_ counter: borrowing Atomic<Int>) -> JSONNode { .number(counter.load(ordering: .relaxed)) }
        return .object([
            ("matched", value(matched)), ("extrapolated", value(extrapolated)), ("withoutMotion", value(without)),
            ("samples", value(samples)), ("samplesLeftOut", value(leftOut)),
            ("ageMs", .number(Double(age.load(ordering: .relaxed)) / 1e6)),
        ])
    }
}
