// SPDX-License-Identifier: Apache-2.0

import FrameCore

/// Figures of a run of ``Rate``.
struct RateFigures: Equatable {
    var taken = 0
    var given = 0
    var repeats = 0
    var drops = 0
    /// Gaps that were too long to be filled.
    var gaps = 0

    /// `120 frames in, 150 out: 31 repeats, 1 drop, 0 unfilled gaps.`
    var text: String {
        "\(count(taken, "frame")) in, \(given) out: \(count(repeats, "repeat")), \(count(drops, "drop")), \(count(gaps, "unfilled gap"))."
    }

    var details: JSONNode {
        [
            "taken": .number(taken), "given": .number(given), "repeats": .number(repeats), "drops": .number(drops),
            "gaps": .number(gaps),
        ]
    }

    private func count(_ number: Int, _ word: String) -> String { "\(number) \(word)\(number == 1 ? "" : "s")" }
}
