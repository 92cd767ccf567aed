// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Synchronization

/// Figures of a camera's pictures. Written by the stage thread, read by any.
final class CameraFigures: Sendable {
    let lent = Atomic<Int>(0)
    let copied = Atomic<Int>(0)
    let decoded = Atomic<Int>(0)
    /// Access units, and those that were left out until a keyframe came.
    let passed = Atomic<Int>(0)
    let untilKeyframe = Atomic<Int>(0)
    let missed = Atomic<Int>(0)
    let damaged = Atomic<Int>(0)
    let timesReplaced = Atomic<Int>(0)
    let losses = Atomic<Int>(0)
    let isStreaming = Atomic<Bool>(false)

    func add(_ counter: borrowing Atomic<Int>, _ count: Int = 1) { counter.add(count, ordering: .relaxed) }

    var json: JSONNode {
        func value(_ counter: borrowing Atomic<Int>) -> JSONNode { .number(counter.load(ordering: .relaxed)) }
        return .object([
            ("state", .string(isStreaming.load(ordering: .relaxed) ? "streaming" : "recovering")),
            ("lent", value(lent)), ("copied", value(copied)), ("decoded", value(decoded)),
            ("passed", value(passed)), ("untilKeyframe", value(untilKeyframe)), ("missed", value(missed)),
            ("damaged", value(damaged)), ("timesReplaced", value(timesReplaced)), ("losses", value(losses)),
        ])
    }
}
