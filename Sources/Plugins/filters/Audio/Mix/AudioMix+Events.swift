// SPDX-License-Identifier: Apache-2.0

import FrameCore

extension AudioMix {
    /// The events that it posts.
    static let events = [
        EventDeclaration(
            "input-lost", "An input has given no sound for waitMs. It counts as silent.",
            [.string("input", "Its id.")]),
        EventDeclaration("input-back", "An input that was lost gives sound again.", [.string("input", "Its id.")]),
        EventDeclaration(
            "input-late", "Sound of an input came too late and is left out.",
            [
                .string("input", "Its id."),
                .number("milliseconds", "How much, since the last event of this name for this input (ms)."),
            ]),
    ]
}
