// SPDX-License-Identifier: Apache-2.0

import FrameCore

extension PictureOverlay {
    /// The events that it posts.
    static let events = [
        EventDeclaration(
            "picture-changed", "The picture that a command has named is shown from now on.",
            [.string("path", "Its file.")]),
        EventDeclaration(
            "picture-refused", "The picture that a command has named cannot be shown. The one before stays.",
            [.string("path", "Its file."), .string("reason", "What is wrong with it.")]),
    ]
}
