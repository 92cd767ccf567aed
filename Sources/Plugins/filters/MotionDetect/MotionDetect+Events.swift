// SPDX-License-Identifier: Apache-2.0

import FrameCore

extension MotionDetect {
    /// The events that it posts.
    static let events = [
        EventDeclaration(
            "motion-began", "Something has begun to move.",
            [
                .list(
                    "areas",
                    "Where it moves: objects with x, y, width and height, in fractions of the upright picture."),
                .number("size", "How much of the picture the largest of them moves (%)."),
                .number("since", "How long before the event it was first seen to move (s)."),
            ]),
        EventDeclaration(
            "motion-ended", "Nothing has moved for endSeconds, or the stage ends.",
            [
                .number("seconds", "From the first to the last picture in which something moved (s)."),
                .number("size", "How much of the picture the largest thing moved (%)."),
            ]),
    ]
}
