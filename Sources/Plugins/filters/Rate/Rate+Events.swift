// SPDX-License-Identifier: Apache-2.0

import FrameCore

extension Rate {
    /// The events that it posts.
    static let events = [
        EventDeclaration(
            "gap", "The frames have a gap that is longer than 'maxGapSeconds'; it is not filled.",
            [
                .number("seconds", "How long (s).")
            ]),
        EventDeclaration(
            "rate", "At the end: how many frames were repeated and dropped.",
            [
                .number("taken", "Frames that arrived."),
                .number("given", "Frames that were passed on."),
                .number("repeats", "Frames that were repeated."),
                .number("drops", "Frames that were dropped."),
                .number("gaps", "Gaps that were not filled."),
            ]),
    ]
}
