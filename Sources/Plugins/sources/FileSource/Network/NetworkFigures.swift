// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Synchronization

/// Figures of a stream. Written by the stage thread, read by any.
final class NetworkFigures: Sendable {
    let given = Atomic<Int>(0)
    let damaged = Atomic<Int>(0)
    let concealed = Atomic<Int>(0)
    let skipped = Atomic<Int>(0)
    let jumps = Atomic<Int>(0)
    let losses = Atomic<Int>(0)
    let isStreaming = Atomic<Bool>(false)

    func add(_ counter: borrowing Atomic<Int>, _ count: Int = 1) { counter.add(count, ordering: .relaxed) }

    func json(_ reader: NetworkReader) -> JSONNode {
        func value(_ counter: borrowing Atomic<Int>) -> JSONNode { .number(counter.load(ordering: .relaxed)) }
        return .object([
            ("state", .string(isStreaming.load(ordering: .relaxed) ? "streaming" : "recovering")),
            ("packets", .number(reader.packets)), ("given", value(given)), ("dropped", .number(reader.queue.dropped)),
            ("missed", .number(reader.missed.packets)), ("missedSegments", .number(reader.missed.segments)),
            ("damaged", value(damaged)), ("concealed", value(concealed)),
            ("skipped", .number(skipped.load(ordering: .relaxed) + reader.late)),
            ("timeJumps", value(jumps)),
            ("losses", value(losses)), ("attempts", .number(reader.attempts)),
        ])
    }
}
