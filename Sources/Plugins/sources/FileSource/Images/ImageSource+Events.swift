// SPDX-License-Identifier: Apache-2.0

import FrameCore

extension ImageSource {
    /// The events that it posts.
    static let events = [
        EventDeclaration(
            "picture-damaged", "A picture is left out.",
            [
                .string("path", "Its file.")
            ]),
        EventDeclaration(
            "orientation-changed", "A picture has another orientation than those before.",
            [
                .string("to", "The new orientation.")
            ]),
    ]
}
