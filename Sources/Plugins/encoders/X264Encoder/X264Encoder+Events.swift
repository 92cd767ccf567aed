// SPDX-License-Identifier: Apache-2.0

import FrameCore

extension X264Encoder {
    /// The events that it posts.
    static let events = [
        EventDeclaration(
            "picture-cut", "The picture has an odd side. It is encoded without its last row or column.",
            [
                .number("width", "Encoded width."),
                .number("height", "Encoded height."),
            ])
    ]
}
