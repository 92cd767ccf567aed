// SPDX-License-Identifier: Apache-2.0

import FrameCore
import Synchronization

/// Figures of a card's sound. Written by the stage thread, read by any.
final class SoundFigures: Sendable {
    let isStreaming = Atomic<Bool>(false)
    /// The card's rate against the chain clock, thousandths of a ppm.
    let ppmThousandths = Atomic<Int>(0)
    /// How far the sound is from its place before the next correction, microseconds; positive: it is late.
    let errorMicroseconds = Atomic<Int>(0)
    let overruns = Atomic<Int>(0)
    let losses = Atomic<Int>(0)
    let jumps = Atomic<Int>(0)
    /// Frames of output: silence for what is missing, and what was left out.
    let silent = Atomic<Int>(0)
    let excess = Atomic<Int>(0)
    let stampsReplaced = Atomic<Int>(0)

    func add(_ counter: borrowing Atomic<Int>, _ count: Int = 1) { counter.add(count, ordering: .relaxed) }

    var json: JSONNode {
        func value(_ counter: borrowing Atomic<Int>) -> JSONNode { .number(counter.load(ordering: .relaxed)) }
        return .object([
            ("state", .string(isStreaming.load(ordering: .relaxed) ? "streaming" : "recovering")),
            ("ppm", .number(Double(ppmThousandths.load(ordering: .relaxed)) / 1000)),
            ("errorMs", .number(Double(errorMicroseconds.load(ordering: .relaxed)) / 1000)),
            ("overruns", value(overruns)), ("losses", value(losses)), ("jumps", value(jumps)),
            ("silentSamples", value(silent)), ("excessSamples", value(excess)),
            ("stampsReplaced", value(stampsReplaced)),
        ])
    }
}
