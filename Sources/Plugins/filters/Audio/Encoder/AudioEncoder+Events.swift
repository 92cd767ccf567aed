// SPDX-License-Identifier: Apache-2.0

import FrameCore

extension AudioEncoder {
    /// The events that it posts.
    static let events = [
        EventDeclaration(
            "sound-gap", "Sound is missing in the input.",
            [
                .number("milliseconds", "How much, since the last event of this name (ms)."),
                .bool("isFilled", "Whether silence replaces it. If not, the times jump."),
            ]),
        EventDeclaration(
            "sound-overlap", "The input has sound that overlaps earlier sound. The overlap is left out.",
            [.number("milliseconds", "How much, since the last event of this name (ms).")]),
    ]
}

/// Sums up what is to be reported, so that it is said at most once a second.
struct SoundReport {
    private var samples: Int64 = 0
    private var last = Int64.min / 2

    /// Adds `count` samples at the time `now`, nanoseconds.
    ///
    /// - Returns: All samples since the last report, when it is time for one.
    mutating func add(_ count: Int64, at now: Int64) -> Int64? {
        samples += count
        guard now - last >= 1_000_000_000 else { return nil }
        last = now
        return rest()
    }

    /// What was not reported; nil for nothing.
    mutating func rest() -> Int64? {
        defer { samples = 0 }
        return samples > 0 ? samples : nil
    }
}
